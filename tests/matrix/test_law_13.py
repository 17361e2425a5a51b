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


# Prints headings of its own, as pytest-sugar and others do.
PLUGIN = """
import pytest

@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    reporter.write_sep = lambda sep, title="", **_: reporter.write_line(f"* {title}")
"""


@pytest.mark.parametrize("dressed", [False, True], ids=["bare", "dressed"])
@pytest.mark.parametrize("started_by", STARTED_BY)
def test_it_works_whatever_ran_before(
    started_by: str, dressed: bool, tmp_path: Path
) -> None:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    # On a CI server pytest has all of a failure in its summary too.
    for name in ("CI", "BUILD_NUMBER", "FORCE_COLOR"):
        environment.pop(name, None)
    if dressed:
        environment |= {"CI": "true", "FORCE_COLOR": "1", "PYTHONPATH": str(tmp_path)}
        install_plugin(tmp_path)
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
    options = ["-q", "-rfs", "--color=no", "-k", "law_13 or test_a"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    failed = re.findall(r"^FAILED (\w+)\.py::\w+\[(\w+)\]", run.stdout, re.MULTILINE)
    test = "test_faulty_stats_of_many_features"
    assert {module for module, _ in failed} == {test}, run.stdout
    assert len({policy for _, policy in failed}) == 6
    # Each policy tells of itself, and of no other.
    failures, _, _ = run.stdout.partition("short test summary info")
    told = re.findall(r"Law (\d+), (\w+)", failures)
    assert sorted(told) == sorted(("13", policy) for _, policy in failed)
    assert "skipped" not in run.stdout
    assert "replicas have" in run.stdout
    assert dressed == ("* short test summary info" in run.stdout)


def install_plugin(folder: Path) -> None:
    """Installs a plugin that pytest loads by itself, where PYTHONPATH has the folder."""
    (folder / "named.py").write_text(PLUGIN, "utf-8")
    installed = folder / "named-1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Name: named\nVersion: 1\n", "utf-8")
    (installed / "entry_points.txt").write_text("[pytest11]\nnamed = named\n", "utf-8")
