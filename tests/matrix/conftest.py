"""Every generated pair that these tests judge, run once in one pytest of its own.

TensorFlow takes seconds to import, so the pairs of all modules here are written to one
folder and run together; each test then reads what happened to its pair.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from faults import SAMPLE, write_all
from kind_twins import KIND_TWINS
from pairs import SPECS
from twins import TWINS
from variants import VARIANTS

from scaffold.grammar import parse
from scaffold.rendering import render

if TYPE_CHECKING:
    from pathlib import Path


LAW = re.compile(r"Law (\d+),")


@dataclass
class Outcome:
    """What pytest said of one generated test file."""

    passed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    def ran(self) -> set[str]:
        """The tests that were selected, whatever came of them."""
        return {*self.passed, *self.failed, *self.skipped}

    def laws(self) -> set[int]:
        """The laws that the failures name."""
        return {int(law) for text in self.failed.values() for law in LAW.findall(text)}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all pairs: sound ones, faulty twins and sound variants."""
    root = tmp_path_factory.mktemp("pairs")
    for spec in SPECS.values():
        texts = render(spec)
        (root / f"{spec.module}.py").write_text(texts.module, "utf-8")
        (root / f"test_{spec.module}.py").write_text(texts.test, "utf-8")
    for twin in (*TWINS, *KIND_TWINS, *VARIANTS):
        spec = parse(twin.name, **twin.spec)
        texts = render(spec)
        (root / f"{spec.module}.py").write_text(twin.edited(texts.module), "utf-8")
        test = twin.judged_by(texts.test)
        (root / f"test_{spec.module}.py").write_text(test, "utf-8")
    return root


@pytest.fixture(scope="session")
def outcomes(folder: Path) -> dict[str, Outcome]:
    """What happened to each pair, by the name of its module."""
    return run_all(folder)


@pytest.fixture(scope="session")
def fault_outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """What the laws that must catch a fault said of it, by the name of its module."""
    import tensorflow as tf

    if not hasattr(tf.keras, "ops"):
        pytest.skip("the board, and so its sample, is of Keras 3")
    root = tmp_path_factory.mktemp("faults")
    write_all(root, SAMPLE)
    return run_all(root)


def run_all(folder: Path, *options: str) -> dict[str, Outcome]:
    """Runs the tests of a folder in one pytest; returns what happened, by module."""
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-n", "2"]
    command += ["--dist", "loadfile", "-p", "no:cacheprovider", f"--junitxml={report}"]
    command += options
    run = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.exists(), run.stdout + run.stderr
    outcomes: dict[str, Outcome] = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314, our own report
        module = case.get("classname", "").removeprefix("test_")
        outcome = outcomes.setdefault(module, Outcome())
        name = case.get("name", "")
        problem = next(iter(case), None)
        if problem is None or problem.tag in {"system-out", "system-err"}:
            outcome.passed.append(name)
        elif problem.tag == "skipped":
            outcome.skipped[name] = problem.get("message", "")
        else:
            outcome.failed[name] = f"{problem.get('message', '')}\n{problem.text}"
    return outcomes
