"""Prints the largest error of every kind and policy, beside that of the layer of Keras.

The judge is NumPy's float64, from the formula, on inputs of `tests/matrix/oracles.py`;
inputs and weights are rounded first. Errors are in epsilons of the compute dtype, of
the largest value in a row: half an epsilon is the rounding of the result. `inf` is what
is no number, infinite, or not 0 where it should be; `-` is what Keras has no layer for.

    pip install '.[tensorflow,test]'
    python benchmarks/accuracy.py > docs/accuracy.md
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from scaffold.kinds import kind_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from measure import Engine, Errors, Meter
    from oracles import Array

POLICIES = (
    "mixed_float16",
    "float16",
    "mixed_bfloat16",
    "bfloat16",
    "float32",
    "float64",
)
FAR = 20.0
"""A case of Keras is named if its error is that many times ours, and epsilons."""


def text(error: float) -> str:
    """Two digits, without an exponent where there is a choice."""
    return f"{float(f'{error:.2g}'):g}"


def largest(errors: Errors) -> str:
    return text(max(errors.values())) if errors else "-"


def rows(meter: Meter) -> Iterator[list[str]]:
    """One row a kind: ours, and that of Keras."""
    for kind in kind_names():
        pairs = ((meter.ours(kind, p), meter.keras(kind, p)) for p in POLICIES)
        yield [kind, *(f"{largest(ours)} / {largest(keras)}" for ours, keras in pairs)]


def apart(meter: Meter) -> Iterator[list[str]]:
    """One row for a kind and a policy in which Keras is far from where we are."""
    for kind in kind_names():
        for policy in POLICIES:
            ours, keras = meter.ours(kind, policy), meter.keras(kind, policy)
            far = {key: e for key, e in keras.items() if e > FAR * max(1, ours[key])}
            if far:
                names = (case if part == "outputs" else part for case, part in far)
                cases = "; ".join(dict.fromkeys(names))
                yield [kind, policy, largest(far), cases]


def others(engine: Engine) -> Iterator[list[str]]:
    """One row for a layer of Keras beside which there is no kind, or another call."""
    import numpy as np
    from measure import EPSILON, compute_dtype
    from oracles import error

    layers, random = engine.keras.layers, np.random.default_rng(1)
    x, scale = random.normal(size=(32, 48)), 1 + 2.0**-13 * np.arange(48)

    def unit(x: Array, policy: str) -> object:
        return layers.UnitNormalization(dtype=policy)(x)

    def rms(x: Array, policy: str) -> object:
        layer = layers.RMSNormalization(dtype=policy)
        layer.build(x.shape)
        layer.scale.assign(scale)
        return layer(x)

    def attention(x: Array, policy: str) -> object:
        steps, mask = x[None], np.zeros((1, len(x)), bool)
        return layers.Attention(dtype=policy)([steps, steps], mask=[None, mask])[0]

    def of_length_1(x: Array) -> Array:
        return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))

    def of_square_1(x: Array) -> Array:
        return np.asarray(scale * x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6))

    rows: list[
        tuple[str, str, Callable[[Array, str], object], Array, Callable[[Array], Array]]
    ] = [
        ("UnitNormalization", "ordinary", unit, x, of_length_1),
        ("UnitNormalization", "x300", unit, 300 * x, of_length_1),
        ("UnitNormalization", "zeros", unit, 0 * x, np.zeros_like),
        ("RMSNormalization", "a scale that is no half", rms, x, of_square_1),
        ("Attention", "masked whole", attention, x, np.zeros_like),
    ]
    for name, case, run, inputs, formula in rows:
        if not hasattr(layers, name):
            continue
        found = []
        for policy in POLICIES:
            dtype = compute_dtype(policy)
            tensor = engine.cast(inputs, dtype)
            seen = engine.float64(run(tensor, policy))
            right = formula(engine.float64(tensor))
            found.append(text(error(seen, right, EPSILON[dtype])))
        yield [f"{name}: {case}", *found]


def print_table(head: list[str], lines: Iterator[list[str]]) -> None:
    for line in (head, ["---"] * len(head), *lines):
        print("|", " | ".join(line), "|")


def main() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "matrix"))
    import tensorflow as tf
    from measure import Meter, TensorFlow

    print("# How far each kind is from its formula\n")
    print(
        "`python benchmarks/accuracy.py` prints this, and says what the figures mean.\n"
    )
    print(f"TensorFlow {tf.__version__}, Keras {tf.keras.__version__}: ours / Keras\n")
    with tempfile.TemporaryDirectory() as folder:
        meter = Meter(Path(folder), TensorFlow())
        print_table(["kind", *POLICIES], rows(meter))
        print("\nWhere Keras is far from the formula:\n")
        print_table(["kind", "policy", "Keras", "inputs, or weights"], apart(meter))
        print("\nLayers of Keras that no kind is measured beside:\n")
        print_table(["layer: inputs, or weights", *POLICIES], others(meter.engine))


if __name__ == "__main__":
    main()
