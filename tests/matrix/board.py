"""Prints the board: each kind of fault, the twins that have it, and who catches them.

    pip install '.[tensorflow,test]'
    python tests/matrix/board.py

For each twin it says which laws of its generated test fail, and what Keras's own
`run_layer_test` says of the same layer where it takes one input of floats.
"""

from __future__ import annotations

import functools
import importlib
import io
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import defaultdict
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from kind_twins import KIND_TWINS
from twins import TWINS, VARIANTS, Twin

from scaffold.grammar import parse
from scaffold.rendering import render

if TYPE_CHECKING:
    from scaffold.spec import LayerSpec

# The kinds of fault, and the twins that have each.
FAULTS: dict[str, tuple[str, ...]] = {
    "compute dtype of the global policy": ("GlobalPolicy",),
    "self.dtype in call": ("VariableDtypeInCall",),
    "floatx()": ("FloatxInCall", "NoiseInFloatx"),
    "a dtype hard-coded": ("HardCodedFloat16", "ComputedInFloat32"),
    "the global policy set": ("LeaksThePolicy",),
    "no kwargs, or dtype dropped": ("NoKwargs", "FixedDtype"),
    "config without base or argument": ("ConfigWithoutBase", "ConfigWithoutArgument"),
    "weights in the compute dtype": ("WeightInComputeDtype",),
    "a bare tf.Variable": ("BareVariable",),
    "cast once in build": ("CastOnceInBuild",),
    "state in a half, or under autocast": (
        *("StatsInHalf", "StatsUnderAutocast", "StatsOfHalves"),
    ),
    "an integer weight as a float": ("IntegerWeightAsFloat",),
    "the master rounded by an assignment": ("MasterRoundedByAssign",),
    "a constant of another dtype": ("Float32Constant",),
    "all in float32": ("ComputedInFloat32", "ScaledInFloat32", "ConvInFloat32"),
    "the output in float32": ("OutputInFloat32", "ResizeInFloat32"),
    "a second input uncast": ("FilmUncast",),
    "ids through a float": ("IdsInHalf",),
    "an integer input uncast": ("NoInputCast", "AugmentUncast"),
    "a mask that makes NaN": (
        *("AttentionToInfinity", "AttentionOfNothing", "PoolOfNothing"),
        *("PoolByProduct", "GraphOfNothing", "AttentionUnmasked"),
    ),
    "an epsilon that vanishes": ("VanishedEpsilon",),
    "a sum or square that overflows": (
        *("SquareOverflows", "NormInHalf", "PoolInHalf", "GraphInHalf", "PowerInHalf"),
        *("NormBySquares", "AttentionInHalf"),
    ),
    "exp by hand": ("ExpByHand",),
    "noise of another dtype, or unsaved": (
        *("NoiseInFloatx", "NoiseAlways", "NoiseUncounted"),
    ),
    "wrong in training alone": ("NanInTrainingOnly",),
    "a static batch size": ("StaticBatch",),
    "a state that changes its dtype": ("CellStateInFloat32",),
    "outputs of several dtypes": ("SecondOutputInFloat32",),
    "a gradient cut": ("GradientCut", "GradientPartlyCut", "QuantizeFlat"),
    "a gradient in another dtype": ("GradientInFloat32",),
    "a loss in float16": ("LossInHalf", "DivergenceInHalf"),
    "a sublayer without the policy": ("BlockWithoutPolicy",),
    "not loadable under another policy": ("WrapperKeepsPolicy",),
    "eager and graph disagree": ("GraphIsAnother",),
    "a state of one replica": ("StatsOfOneReplica",),
    "positions, and values rounded twice": ("PositionInHalf", "QuantizeTwice"),
    "constant rows, autocast of a scale": ("NormUncentred", "NormScaleUnderAutocast"),
    "arguments that do nothing": (
        *("RegularizerIgnored", "ConstraintIgnored", "InitializerIgnored"),
        *("StateIsTrained", "MasksUnknown", "OutputShapeWrong"),
    ),
}


def main() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    twins = {twin.name: twin for twin in (*TWINS, *KIND_TWINS)}
    sound = {twin.name: twin for twin in VARIANTS}
    with tempfile.TemporaryDirectory() as folder:
        for twin in (*twins.values(), *sound.values()):
            write(twin, Path(folder))
        failed = run(Path(folder))
        sys.path.insert(0, folder)
        print("| fault | twin | laws that catch it | `run_layer_test` |")
        print("|---|---|---|---|")
        missed = [name for fault in FAULTS.values() for name in fault]
        for fault, names in FAULTS.items():
            for name in names:
                laws = failed[module(twins[name])]
                caught = ", ".join(sorted(laws, key=lambda law: (len(law), law)))
                if laws and name in missed:
                    missed.remove(name)
                keras = harness(twins[name])
                print(f"| {fault} | {name} | {caught or '**missed**'} | {keras} |")
    alarms = [name for name, twin in sound.items() if failed[module(twin)]]
    print(f"\n{len(FAULTS)} kinds of fault, {len(twins)} twins; missed: {missed or 0}.")
    print(f"{len(sound)} sound variants; false alarms: {alarms or 0}.")
    print(
        f"Without a kind: {sorted({*twins} - {n for f in FAULTS.values() for n in f})}"
    )


def module(twin: Twin) -> str:
    return parse(twin.name, **twin.spec).module


def write(twin: Twin, folder: Path) -> None:
    spec = parse(twin.name, **twin.spec)
    texts = render(spec)
    beside = spec._replace(name=f"{spec.name}Sound")
    (folder / f"{beside.module}.py").write_text(render(beside).module, "utf-8")
    (folder / f"{spec.module}.py").write_text(twin.edited(texts.module), "utf-8")
    (folder / f"test_{spec.module}.py").write_text(texts.test, "utf-8")


def run(folder: Path) -> dict[str, set[str]]:
    """Runs all tests of a folder; returns the laws that fail, by module."""
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile"]
    subprocess.run(
        [*command, "-p", "no:cacheprovider", f"--junitxml={report}"],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    failed: dict[str, set[str]] = defaultdict(set)
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 -- our own report
        if case.find("failure") is not None or case.find("error") is not None:
            name = case.get("name", "")
            law = name.removeprefix("test_law_")[:2].lstrip("0")
            kind = "of the kind" if not name.startswith("test_law_") else law
            failed[case.get("classname", "").removeprefix("test_")].add(kind)
    return failed


def harness(twin: Twin) -> str:
    """What `run_layer_test` says of a twin: "passes", "fails", or "-".

    The last is where it does not pass the sound layer either.
    """
    spec = parse(twin.name, **twin.spec)
    sound = verdict(spec._replace(name=f"{spec.name}Sound"))
    return verdict(spec) if sound == "passes" else "-"


@functools.cache
def verdict(spec: LayerSpec) -> str:
    from keras.src.testing import TestCase

    class Harness(TestCase):  # type: ignore[misc]
        def runTest(self) -> None:  # noqa: N802 -- unittest's name
            pass

    last = 3 if spec.output_shape[-1] != "in" else 5
    try:
        cls = getattr(importlib.import_module(spec.module), spec.name)
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            Harness().run_layer_test(
                cls,
                init_kwargs={a.name: 3 for a in spec.arguments if a.required},
                input_shape=(32, 5),
                expected_output_shape=(32, last),
                expected_num_trainable_weights=sum(w.trainable for w in spec.weights),
                expected_num_non_trainable_weights=sum(
                    not w.trainable for w in spec.weights
                ),
                supports_masking=spec.any_rank,
            )
    except Exception:  # noqa: BLE001 -- a faulty layer may raise anything
        return "fails"
    return "passes"


if __name__ == "__main__":
    main()
