"""Prints how long the matrix and each law take, in units of one Keras `run_layer_test`.

Each is measured as whoever runs one test file meets it, in a process of its own that
has imported TensorFlow and done nothing yet; both in turn, on the same layer. There it
is one policy and one call, here all laws under six policies.

    pip install '.[tensorflow,test]'
    python benchmarks/matrix.py                 every kind that the harness can take
    python benchmarks/matrix.py dense norm      some kinds
    python benchmarks/matrix.py --again dense   again in a process that is warm

It forks, and so needs Linux or macOS.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scaffold.grammar import parse
from scaffold.kinds import kind_names
from scaffold.names import camel_case
from scaffold.rendering import render

if TYPE_CHECKING:
    from collections.abc import Callable

    from scaffold.spec import LayerSpec

ROUNDS = 5
# The harness gives `call` one input, and takes a layer's own arguments.
NOT_TAKEN = {"film", "graph", "rnn-cell", "wrapper"}


class _Clock:
    """Runs from when pytest has imported the tests to the end of the last."""

    start = end = 0.0

    def __init__(self) -> None:
        self.laws: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: Any) -> None:  # noqa: ANN401
        name = report.nodeid.partition("::test_")[2]
        law = name[:6] if name.startswith("law_") else "of the kind"
        self.laws[law] += report.duration

    def pytest_collection_finish(self) -> None:
        self.start = time.perf_counter()

    def pytest_sessionfinish(self) -> None:
        # Then pytest collects the garbage of the whole process.
        self.end = time.perf_counter()


def main() -> None:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "matrix"))
    # What is imported here is no part of what is measured.
    import tensorflow as tf  # noqa: F401

    options = sys.argv[1:]
    rounds = 2 if "--again" in options else 1
    kinds = [kind for kind in options if kind != "--again"]
    kinds = kinds or [kind for kind in kind_names() if kind not in NOT_TAKEN]
    laws: dict[str, dict[str, float]] = {}
    print(f"medians of {ROUNDS} rounds\n\n{'kind':<16}run_layer_test  matrix  ratio")
    for kind in kinds:
        layer = parse(f"Timed{camel_case(kind)}", kind=kind)
        # Called elsewhere, so that TensorFlow is still cold here.
        expected = apart(partial(expectations, layer))
        once: list[float] = []
        whole: list[float] = []
        each: dict[str, list[float]] = defaultdict(list)
        for _ in range(ROUNDS):
            once.append(apart(partial(time_harness, layer, expected, rounds)))
            taken, by_law = apart(partial(time_matrix, layer, rounds))
            whole.append(taken)
            for law, seconds in by_law.items():
                each[law].append(seconds)
        one, all_laws = statistics.median(once), statistics.median(whole)
        ratio = all_laws / one
        print(f"{kind:<16}{one:>12.2f} s{all_laws:>7.2f} s{ratio:>6.1f}", flush=True)
        laws[kind] = {law: statistics.median(each[law]) / one for law in each}
    print(f"\n{'law':<16}" + "".join(f"{kind:>16}" for kind in laws))
    for law in sorted({law for by_law in laws.values() for law in by_law}):
        row = (f"{by_law.get(law, 0):>16.2f}" for by_law in laws.values())
        print(f"{law:<16}{''.join(row)}")
    print("What several laws measure is counted to the first of them, law 1.")


def apart(measure: Callable[[], Any]) -> Any:  # noqa: ANN401
    """Returns what a function returns in a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        code = 1
        try:
            result = measure()
            os.write(writer, json.dumps(result).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    if not text:
        raise SystemExit("the process that was measured has failed")
    return json.loads(text)


def expectations(layer: LayerSpec) -> dict[str, Any]:
    import harness

    return harness.expectations(layer)


def time_harness(layer: LayerSpec, expected: dict[str, Any], rounds: int) -> float:
    import harness

    seconds = 0.0
    for number in range(rounds):
        named = layer._replace(name=f"{layer.name}{number}")
        cls = getattr(harness.sound_test(named), named.name)
        test = harness.layer_test(named, expected)
        start = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the harness's own are no news
            test(cls)
        seconds = time.perf_counter() - start
    return seconds


def time_matrix(layer: LayerSpec, rounds: int) -> tuple[float, dict[str, float]]:
    import pytest

    clock = _Clock()
    for number in range(rounds):
        clock = _Clock()
        # A name of its own, since a module is imported only once.
        named = layer._replace(name=f"{layer.name}{number}")
        with tempfile.TemporaryDirectory() as folder:
            texts = render(named)
            Path(folder, f"{named.module}.py").write_text(texts.module, "utf-8")
            test = Path(folder, f"test_{named.module}.py")
            test.write_text(texts.test, "utf-8")
            sys.path.insert(0, folder)
            quiet = ["-q", "-p", "no:cacheprovider", "--rootdir", folder]
            with contextlib.redirect_stdout(io.StringIO()) as output:
                code = pytest.main([*quiet, str(test)], plugins=[clock])
            sys.path.remove(folder)
        if code != 0:
            sys.stderr.write(output.getvalue())
            raise SystemExit(1)
    return clock.end - clock.start, clock.laws


if __name__ == "__main__":
    main()
