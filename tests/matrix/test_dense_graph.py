"""The generated dense layer costs no operation that keras.layers.Dense does without."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from pairs import SPECS

from scaffold.rendering import render

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tensorflow

POLICIES = [
    "float32",
    "mixed_float16",
    "mixed_bfloat16",
    "float64",
    "float16",
    "bfloat16",
]
# `+` and tf.nn.bias_add are the same addition under two names.
SAME = {"BiasAdd": "AddV2"}


def operations(layer: Any) -> Counter[str]:
    import tensorflow as tf

    dtype = "float64" if layer.compute_dtype == "float64" else "float32"
    layer(tf.ones((2, 5), dtype))
    graph = tf.function(layer).get_concrete_function(tf.TensorSpec((None, 5), dtype))
    nodes = graph.graph.as_graph_def().node
    return Counter(SAME.get(node.op, node.op) for node in nodes)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("activation", ["linear", "relu", "tanh", "gelu", "softmax"])
def test_same_operations_as_keras_dense(
    policy: str,
    activation: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import tensorflow as tf

    spec = SPECS["AskerDense"]
    (tmp_path / f"{spec.module}.py").write_text(render(spec).module, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, spec.module, raising=False)
    layer = getattr(importlib.import_module(spec.module), spec.name)
    ours = operations(layer(3, activation=activation, dtype=policy))
    keras = operations(tf.keras.layers.Dense(3, activation=activation, dtype=policy))
    table = [f"{'operation':<24}{'ours':>6}{'Dense':>8}"]
    table += [f"{n:<24}{ours[n]:>6}{keras[n]:>8}" for n in sorted({*ours, *keras})]
    print(f"{policy}, {activation}", *table, sep="\n")
    assert ours == keras, "\n" + "\n".join(table)
