"""The keras dialect, on the backend that KERAS_BACKEND names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from conftest import Outcome, run_all
from twins import Twin

from scaffold.errors import MplayerError
from scaffold.grammar import parse
from scaffold.kinds import kind_names
from scaffold.names import camel_case
from scaffold.rendering import render

if TYPE_CHECKING:
    from pathlib import Path

    from scaffold.spec import LayerSpec

pytestmark = pytest.mark.keras_dialect

REFUSED = {"graph"}
KERAS: dict[str, Any] = {"dialect": "keras"}
DENSE = {**KERAS, "weights": "w, b"}
SPECS = {
    **{
        name: parse(f"Kind{camel_case(name)}", kind=name, **KERAS)
        for name in kind_names()
        if name not in REFUSED
    },
    "call": parse(
        "WithCall",
        weights="kernel[in,units]=he_normal, bias[units]=zeros, total[units]:state",
        arguments=["activation:activation=relu", "rate:float=0.5"],
        call="activation(inputs @ kernel + bias) * rate + total",
        options=["regularizers", "constraints"],
        **KERAS,
    ),
}
RETURN = "        return inputs @ w + b\n"
PLAIN_CALL = "def call(self, inputs: Any)"
TRAINING_CALL = "def call(self, inputs, training=None)"


def in_training(line: str) -> tuple[tuple[str, str], ...]:
    """Returns edits that do something to `outputs` in training alone."""
    body = f"        if training:\n            {line}\n        return outputs\n"
    return (
        (PLAIN_CALL, TRAINING_CALL),
        (RETURN, f"        outputs = inputs @ w + b\n{body}"),
    )


TWINS = (
    Twin(
        "WeightInComputeDtype",
        (("dtype=self.variable_dtype", "dtype=self.compute_dtype"),),
        (2,),
        "is stored in float16",
        DENSE,
    ),
    Twin(
        "ComputedInFloat32",
        (
            ("self.compute_dtype)", '"float32")'),
            (
                "return inputs @ w + b",
                "return keras.ops.cast(inputs @ w + b, self.compute_dtype)",
            ),
        ),
        (4,),
        "show the rounding of float32",
        DENSE,
    ),
    Twin(
        "OutputInFloat32",
        (
            (
                "return inputs @ w + b",
                'return keras.ops.cast(inputs @ w + b, "float32")',
            ),
        ),
        (3,),
        "float32",
        DENSE,
    ),
    Twin(
        "StateInHalf",
        (
            (
                'dtype="float64" if self.variable_dtype == "float64" else "float32"',
                "dtype=self.variable_dtype",
            ),
        ),
        (2,),
        "is stored in",
        {
            **KERAS,
            "weights": "gamma[in], total[in]:state",
            "call": "inputs * gamma + total",
        },
    ),
    Twin(
        "TrainingOverflows",
        in_training(
            "outputs *= keras.ops.rsqrt(keras.ops.sum(keras.ops.square(inputs)) + 1.0)"
        ),
        (11,),
        "large inputs",
        DENSE,
    ),
    Twin(
        "TrainingCutsStatistics",
        in_training("outputs -= keras.ops.stop_gradient(keras.ops.mean(outputs))"),
        (5,),
        "training=True: along a line in w",
        DENSE,
    ),
    Twin(
        "AverageInHalf",
        (
            (PLAIN_CALL, TRAINING_CALL),
            (
                "        return inputs * gamma - m\n",
                "        outputs = inputs * gamma - m\n"
                "        if training:\n"
                "            axes = list(range(len(inputs.shape) - 1))\n"
                "            mean = keras.ops.mean(inputs, axes)\n"
                "            self.m.assign(m * 0.999 + mean * 0.001)\n"
                "        return outputs\n",
            ),
        ),
        (11,),
        "m is moved by",
        {
            **KERAS,
            "weights": "gamma[in]=ones, m[in]:state=zeros",
            "call": "inputs * gamma - m",
        },
    ),
    Twin(
        "LossOverflows",
        (
            (
                RETURN,
                "        self.add_loss(keras.ops.sum(keras.ops.square(inputs)))\n"
                + RETURN,
            ),
        ),
        (7,),
        "the layer's losses are [inf]",
        DENSE,
    ),
    Twin(
        "MaskInverted",
        (
            (
                f"    {PLAIN_CALL}",
                "    def compute_mask(self, inputs, mask=None):\n"
                "        return None if mask is None else keras.ops.logical_not(mask)\n\n"
                f"    {PLAIN_CALL}",
            ),
        ),
        (11,),
        "another mask",
        DENSE,
    ),
)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    folder = tmp_path_factory.mktemp("dialect")
    for spec in SPECS.values():
        write(folder, spec)
    for twin in TWINS:
        write(folder, parse(twin.name, **twin.spec), twin)
    return run_all(folder)


def write(folder: Path, spec: LayerSpec, twin: Twin | None = None) -> None:
    texts = render(spec)
    module = twin.edited(texts.module) if twin else texts.module
    (folder / f"{spec.module}.py").write_text(module, "utf-8")
    (folder / f"test_{spec.module}.py").write_text(texts.test, "utf-8")


@pytest.mark.parametrize("name", SPECS)
def test_matrix_passes(name: str, outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes[SPECS[name].module]
    assert not outcome.failed
    assert len(outcome.passed) > 60


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_faulty_twin_is_caught(twin: Twin, outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes[parse(twin.name, **twin.spec).module]
    assert {*twin.laws} <= outcome.laws()
    assert any(twin.words in message for message in outcome.failed.values())


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_with_its_reason(name: str) -> None:
    with pytest.raises(MplayerError, match="cannot be written in the keras dialect: "):
        parse("MyLayer", kind=name, **KERAS)
