"""Prints the board: each kind of fault, the layers that have it, and who catches them.

    pip install '.[tensorflow,test]'
    python tests/matrix/board.py            every fault on every kind of layer
    python tests/matrix/board.py --sample   on two kinds each, as CI does

It judges the faults of `faults.py` on every kind of layer, the twins that are written by
hand, and the sound variants; beside them stands what Keras's own `run_layer_test` says
of the same layer, where it passes the sound one. `docs/board.svg` shows the sum.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from faults import FAULTS, SAMPLE, KindTwin, kind_twins, write_all
from harness import verdict
from kind_twins import KIND_TWINS
from twins import TWINS, Twin
from variants import VARIANTS

from scaffold.grammar import parse
from scaffold.rendering import render

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scaffold.spec import LayerSpec

# The kinds of fault of the twins that are written by hand.
BY_HAND: dict[str, tuple[str, ...]] = {
    "compute dtype of the global policy": ("GlobalPolicy",),
    "self.dtype in call": ("VariableDtypeInCall",),
    "floatx()": ("FloatxInCall", "NoiseInFloatx"),
    "a dtype hard-coded": ("HardCodedFloat16", "ComputedInFloat32"),
    "the global policy set": ("LeaksThePolicy",),
    "no kwargs, or dtype dropped": ("NoKwargs", "FixedDtype"),
    "config without base or argument": (
        *("ConfigWithoutBase", "ConfigWithoutArgument", "TrainableLost"),
        "KeywordArgumentLost",
    ),
    "weights in the compute dtype": ("WeightInComputeDtype",),
    "a bare tf.Variable": ("BareVariable",),
    "cast once in build": ("CastOnceInBuild",),
    "state in a half, or under autocast": (
        *("StatsInHalf", "StatsUnderAutocast", "StatsOfHalves", "AverageInHalf"),
    ),
    "an integer weight as a float": ("IntegerWeightAsFloat",),
    "the master rounded by an assignment": ("MasterRoundedByAssign",),
    "a constant of another dtype": ("Float32Constant",),
    "all in float32": ("ComputedInFloat32", "ScaledInFloat32", "ConvInFloat32"),
    "the output in float32": ("OutputInFloat32", "ResizeInFloat32"),
    "a second input uncast": ("FilmUncast",),
    "ids through a float": ("IdsInHalf", "WrapperCastsIds"),
    "an integer input uncast": ("NoInputCast", "AugmentUncast"),
    "a mask that makes NaN, or another": (
        *("AttentionToInfinity", "AttentionOfNothing", "PoolOfNothing"),
        *("PoolByProduct", "GraphOfNothing", "AttentionUnmasked", "CausalUnmasked"),
        *("MaskInverted", "MaskOfNumbers"),
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
    "wrong in training alone": (
        *("NanInTrainingOnly", "TrainingOverflows", "TrainingStopsGradient"),
        *("TrainedInFloat32", "TrainingCutsStatistics"),
    ),
    "a static batch or length": ("StaticBatch", "CausalOfOneLength"),
    "a state that changes its dtype": ("CellStateInFloat32",),
    "outputs of several dtypes": ("SecondOutputInFloat32", "DeclaredOutputOfHalf"),
    "a gradient cut": ("GradientCut", "GradientPartlyCut", "QuantizeFlat"),
    "a gradient in another dtype": ("GradientInFloat32",),
    "a loss in float16": ("LossInHalf", "DivergenceInHalf", "LossOverflows"),
    "a sublayer without the policy": ("BlockWithoutPolicy", "SublayerInFloat32"),
    "not loadable under another policy": ("WrapperKeepsPolicy",),
    "eager and graph disagree": ("GraphIsAnother",),
    "a state of one replica, or not frozen": (
        *("StatsOfOneReplica", "StatsWhileFrozen"),
    ),
    "positions, and values rounded twice": ("PositionInHalf", "QuantizeTwice"),
    "constant rows, autocast of a scale": ("NormUncentred", "NormScaleUnderAutocast"),
    "arguments that do nothing": (
        *("RegularizerIgnored", "ConstraintIgnored", "InitializerIgnored"),
        *("StateIsTrained", "MasksUnknown", "FilmUnmasked", "OutputShapeWrong"),
    ),
}


class Score(NamedTuple):
    """How many of those layers were caught that a judge could take."""

    caught: int
    of: int

    def __add__(self, other: Score) -> Score:  # type: ignore[override]
        return Score(self.caught + other.caught, self.of + other.of)


def main() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    twins = SAMPLE if "--sample" in sys.argv[1:] else list(kind_twins())
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        ours, keras = on_every_kind(Path(folder), twins, missed)
    with tempfile.TemporaryDirectory() as folder:
        more, more_keras, alarms = by_hand(Path(folder), missed)
    ours, keras = ours + more, keras + more_keras
    kinds = len(FAULTS) + len(BY_HAND)
    print(f"\n{kinds} kinds of fault, {ours.of} faulty layers; missed: {missed or 0}.")
    print(f"{len(VARIANTS)} sound variants; false alarms: {alarms or 0}.")
    print(f"run_layer_test catches {keras.caught} of the {keras.of} that it can take.")
    picture = Path(__file__).parents[2] / "docs" / "board.svg"
    picture.parent.mkdir(exist_ok=True)
    picture.write_text(drawn(kinds, ours, keras, len(alarms)), "utf-8")


def on_every_kind(
    folder: Path, twins: list[KindTwin], missed: list[str]
) -> tuple[Score, Score]:
    """Prints the faults that any kind of layer can have."""
    write_all(folder, twins)
    failed = run(folder).failed
    sys.path.insert(0, str(folder))
    print("| fault | caught on kinds | by | spared | `run_layer_test` catches |")
    print("|---|---|---|---|---|")
    ours = keras = Score(0, 0)
    for fault in FAULTS:
        own = [twin for twin in twins if twin.fault is fault]
        caught = [twin for twin in own if failed[twin.spec.module]]
        missed += [twin.spec.name for twin in own if twin not in caught]
        laws = {law for twin in own for law in failed[twin.spec.module]}
        verdicts = [harness(twin.spec) for twin in own]
        score = Score(verdicts.count("fails"), len(own) - verdicts.count("-"))
        ours, keras = ours + Score(len(caught), len(own)), keras + score
        print(
            f"| {fault.name} | {len(caught)} of {len(own)} | {listed(laws)} |"
            f" {', '.join(fault.spared) or '-'} | {score.caught} of {score.of} |"
        )
    return ours, keras


def by_hand(folder: Path, missed: list[str]) -> tuple[Score, Score, list[str]]:
    """Prints the twins that are written by hand, and what each law alone catches."""
    twins = {twin.name: twin for twin in (*TWINS, *KIND_TWINS)}
    for twin in (*twins.values(), *VARIANTS):
        write(twin, folder)
    failed, seconds = run(folder)
    sys.path.insert(0, str(folder))
    print("\n| fault | twin | laws that catch it | `run_layer_test` |")
    print("|---|---|---|---|")
    verdicts = {}
    rest = sorted({*twins} - {name for names in BY_HAND.values() for name in names})
    for fault, names in {**BY_HAND, "others": rest}.items():
        for name in names:
            laws = listed(failed[module(twins[name])])
            verdicts[name] = harness(parse(name, **twins[name].spec))
            print(f"| {fault} | {name} | {laws or '**missed**'} | {verdicts[name]} |")
    missed += [name for name, twin in twins.items() if not failed[module(twin)]]
    show_laws({name: failed[module(twin)] for name, twin in twins.items()}, seconds)
    alarms = [twin.name for twin in VARIANTS if failed[module(twin)]]
    said = [*verdicts.values()]
    caught = len(twins) - sum(not failed[module(twin)] for twin in twins.values())
    keras = Score(said.count("fails"), len(said) - said.count("-"))
    return Score(caught, len(twins)), keras, alarms


def show_laws(caught: dict[str, set[str]], seconds: dict[str, Counter[str]]) -> None:
    """Prints what each law catches, what it alone catches, and what it costs."""
    spent: Counter[str] = Counter()
    for taken in seconds.values():
        spent.update(taken)
    print(
        "\n| law | twins that it catches | that it alone catches | share of the time |"
    )
    print("|---|---|---|---|")
    laws = {*spent, *(law for of_one in caught.values() for law in of_one)}
    for law in sorted(laws, key=lambda law: (len(law), law)):
        of_it = [of_one for of_one in caught.values() if law in of_one]
        alone = sum(len(of_one) == 1 for of_one in of_it)
        share = spent[law] / spent.total()
        print(f"| {law} | {len(of_it)} | {alone} | {share:.1%} |")


def listed(laws: Iterable[str]) -> str:
    return ", ".join(sorted(laws, key=lambda law: (len(law), law)))


def drawn(kinds: int, ours: Score, keras: Score, alarms: int) -> str:
    """Returns the sum as a picture: how much of what it can take each judge catches."""
    rows = (("generated test", ours), ("run_layer_test", keras))
    bars = "".join(
        f'<text x="0" y="{y}">{name}</text>'
        f'<rect x="130" y="{y - 13}" width="300" height="16" class="all"/>'
        f'<rect x="130" y="{y - 13}" width="{300 * score.caught // score.of}"'
        f' height="16" class="caught"/>'
        f'<text x="440" y="{y}">{score.caught} of {score.of}</text>\n'
        for y, (name, score) in zip((48, 76), rows, strict=True)
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 560 112" role="img">\n'
        f"<title>{ours.caught} of {ours.of} faulty layers caught</title>\n"
        "<style>text { font: 14px sans-serif; fill: #57606a } .all { fill: #d0d7de }"
        " .caught { fill: #1a7f37 } @media (prefers-color-scheme: dark) {"
        " text { fill: #c9d1d9 } .all { fill: #30363d } }</style>\n"
        f'<text x="0" y="18">Faulty layers caught, over {kinds} kinds of fault</text>\n'
        f"{bars}"
        f'<text x="0" y="106">False alarms: {alarms} of {len(VARIANTS)} sound layers'
        " in other styles</text>\n</svg>\n"
    )


def module(twin: Twin) -> str:
    return parse(twin.name, **twin.spec).module


def write(twin: Twin, folder: Path) -> None:
    spec = parse(twin.name, **twin.spec)
    texts = render(spec)
    (folder / f"{spec.module}.py").write_text(twin.edited(texts.module), "utf-8")
    test = twin.judged_by(texts.test)
    (folder / f"test_{spec.module}.py").write_text(test, "utf-8")


class Results(NamedTuple):
    """The laws that fail, by module, and the seconds that each law takes, by test."""

    failed: dict[str, set[str]]
    seconds: dict[str, Counter[str]]


def run(folder: Path) -> Results:
    """Runs all tests of a folder. What several laws measure is the first one's."""
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", f"--junitxml={report}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if not report.exists():
        raise SystemExit(done.stdout[-5000:] + done.stderr[-5000:])
    failed: dict[str, set[str]] = defaultdict(set)
    seconds: dict[str, Counter[str]] = defaultdict(Counter)
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 -- our own report
        name = case.get("classname", "").removeprefix("test_")
        number = re.match(r"test_law_0?(\d+)", case.get("name", ""))
        law = number[1] if number else "of the kind"
        seconds[name][law] += float(case.get("time", 0))  # type: ignore[assignment]
        for problem in (*case.iter("failure"), *case.iter("error")):
            said = problem.get("message", "") + (problem.text or "")
            laws = re.findall(r"Law (\d+|of the kind), ", said) or ["an error"]
            failed[name].update(laws)
    return Results(failed, seconds)


def harness(spec: LayerSpec) -> str:
    """What `run_layer_test` says of the faulty layer that was written for a spec."""
    try:
        cls = getattr(importlib.import_module(spec.module), spec.name)
    except Exception:  # noqa: BLE001 -- a faulty layer may raise anything
        return "fails"
    return verdict(cls, spec)


if __name__ == "__main__":
    main()
