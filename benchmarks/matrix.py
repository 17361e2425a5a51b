"""Prints how long the matrix and each law take, in units of one Keras `run_layer_test`.

Both run in this process, after the import of TensorFlow and of the test file, turn by
turn on the same layer: one policy and one call there, all laws under six policies here.

    pip install '.[tensorflow,test]'
    python benchmarks/matrix.py
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from scaffold.grammar import parse
from scaffold.rendering import render

ROUNDS = 7
LAYERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "dense": (
        {"weights": "w,b"},
        {
            "init_kwargs": {"units": 3},
            "expected_output_shape": (32, 3),
            "expected_num_trainable_weights": 2,
        },
    ),
    "scale": (
        {"weights": "gamma,beta"},
        {
            "init_kwargs": {},
            "expected_output_shape": (32, 5),
            "expected_num_trainable_weights": 2,
        },
    ),
}


class _Clock:
    """Runs from when pytest has imported the tests to the end of the last."""

    start = end = 0.0

    def __init__(self) -> None:
        self.laws: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: Any) -> None:  # noqa: ANN401
        name = report.nodeid.partition("::test_")[2]
        self.laws[name[:6]] += report.duration

    def pytest_collection_finish(self) -> None:
        self.start = time.perf_counter()

    def pytest_sessionfinish(self) -> None:
        # Then pytest collects the garbage of the whole process.
        self.end = time.perf_counter()


def main() -> None:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import pytest
    from keras.src.testing import TestCase

    class Harness(TestCase):  # type: ignore[misc]
        def runTest(self) -> None:  # noqa: N802, unittest's name
            pass

    print(f"medians of {ROUNDS} rounds in turn, after one that is not counted")
    print(f"{'kind':<8}{'run_layer_test':>16}{'matrix':>10}{'ratio':>8}")
    for kind, (spec, arguments) in LAYERS.items():
        harness: list[float] = []
        matrix: list[float] = []
        laws: dict[str, list[float]] = defaultdict(list)
        for number in range(ROUNDS + 1):
            # A name of its own, since a module is imported only once.
            layer = parse(f"{kind.capitalize()}Round{number}", **spec)
            with tempfile.TemporaryDirectory() as folder:
                texts = render(layer)
                Path(folder, f"{layer.module}.py").write_text(texts.module, "utf-8")
                test = Path(folder, f"test_{layer.module}.py")
                test.write_text(texts.test, "utf-8")
                sys.path.insert(0, folder)
                cls = getattr(importlib.import_module(layer.module), layer.name)
                start = time.perf_counter()
                Harness().run_layer_test(
                    cls,
                    input_shape=(32, 5),
                    expected_num_non_trainable_weights=0,
                    supports_masking=True,
                    **arguments,
                )
                harness.append(time.perf_counter() - start)
                quiet = ["-q", "-p", "no:cacheprovider", "--rootdir", folder]
                clock = _Clock()
                with contextlib.redirect_stdout(io.StringIO()) as output:
                    code = pytest.main([*quiet, str(test)], plugins=[clock])
                matrix.append(clock.end - clock.start)
                for law, seconds in clock.laws.items():
                    laws[law].append(seconds)
                sys.path.remove(folder)
            if code != 0:
                raise SystemExit(output.getvalue())
        show(kind, harness[1:], matrix[1:], laws)


def show(
    kind: str, harness: list[float], matrix: list[float], laws: dict[str, list[float]]
) -> None:
    """Prints a line for the whole, and one for each law or test of the kind."""
    one, whole = statistics.median(harness), statistics.median(matrix)
    print(f"{kind:<8}{one:>14.2f} s{whole:>8.2f} s{whole / one:>8.1f}")
    for law, taken in sorted(laws.items()):
        seconds = statistics.median(taken[1:])
        print(f"  {law}{seconds:>26.2f} s{seconds / one:>8.1f}")


if __name__ == "__main__":
    main()
