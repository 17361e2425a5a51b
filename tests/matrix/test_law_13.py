"""Law 13 holds, and catches, whatever has started TensorFlow before the tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from kind_twins import KIND_TWINS

from scaffold.grammar import parse
from scaffold.rendering import render

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tensorflow

STARTS = "import tensorflow as tf\n\ntf.constant(1.0) + 1.0\n"
# Where TensorFlow is started with the one device that it has by itself.
STARTED_BY = {
    "a conftest.py": ("conftest.py", STARTS),
    "a test that runs before": ("test_a.py", f"{STARTS}\n\ndef test_a():\n    pass\n"),
    "the module of the layer": ("", STARTS),
}


@pytest.mark.parametrize("started_by", STARTED_BY)
def test_it_works_whatever_ran_before(started_by: str, tmp_path: Path) -> None:
    twin = next(twin for twin in KIND_TWINS if twin.name == "StatsOfOneReplica")
    name, text = STARTED_BY[started_by]
    if name:
        (tmp_path / name).write_text(text, "utf-8")
    for folder, edited in (("sound", False), ("faulty", True)):
        # So long that pytest's summary has no room for more than the test's name.
        spec = parse(f"{folder.title()}StatsOfManyFeatures", kind="stats")
        texts = render(spec)
        module = twin.edited(texts.module) if edited else texts.module
        if not name:
            module = module.replace("import tensorflow as tf\n", text, 1)
        (tmp_path / f"{spec.module}.py").write_text(module, "utf-8")
        (tmp_path / f"test_{spec.module}.py").write_text(texts.test, "utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-k", "law_13 or test_a", "-rfs"],
        cwd=tmp_path,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    failed = re.findall(r"^FAILED (\w+)\.py::\w+\[(\w+)\]", run.stdout, re.MULTILINE)
    test = "test_faulty_stats_of_many_features"
    assert {module for module, _ in failed} == {test}, run.stdout
    assert len({policy for _, policy in failed}) == 6
    # Each policy tells of itself, and of no other.
    told = re.findall(r"Law (\d+), (\w+)", run.stdout)
    assert sorted(told) == sorted(("13", policy) for _, policy in failed)
    assert "skipped" not in run.stdout
    assert "replicas have" in run.stdout
