"""One law, one policy, or two workers: each selects of a test file what it names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from conftest import run_all
from pairs import SPECS

from scaffold.rendering import render

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tensorflow

# Law 14 is no test: it is judged after each.
LAWS = {f"{law:02}" for law in range(1, 14)}


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The tests of one file, as one process runs them."""
    return run(tmp_path_factory.mktemp("every"), "-n", "0")


def run(folder: Path, *options: str) -> set[str]:
    """Runs one generated test file; returns the tests that were selected."""
    spec = SPECS["MyLayer"]
    texts = render(spec)
    (folder / f"{spec.module}.py").write_text(texts.module, "utf-8")
    (folder / f"test_{spec.module}.py").write_text(texts.test, "utf-8")
    outcome = run_all(folder, *options)[spec.module]
    assert not outcome.failed
    return outcome.ran()


def test_one_policy(every: set[str], tmp_path: Path) -> None:
    ran = run(tmp_path, "-n", "0", "-k", "mixed_float16")
    assert ran == {name for name in every if "mixed_float16" in name}
    # Those that judge but one policy must be found by it too.
    assert {name.removeprefix("test_law_")[:2] for name in ran} == LAWS


def test_one_law(every: set[str], tmp_path: Path) -> None:
    ran = run(tmp_path, "-n", "0", "-k", "law_05")
    assert ran == {name for name in every if name.startswith("test_law_05_")}
    policies = {name.partition("[")[2].rstrip("]") for name in ran}
    assert policies == {
        "float32",
        "mixed_float16",
        "mixed_bfloat16",
        "float64",
        "float16",
        "bfloat16",
    }


def test_workers_share_one_file(every: set[str], tmp_path: Path) -> None:
    assert run(tmp_path, "-n", "2", "--dist", "load") == every
