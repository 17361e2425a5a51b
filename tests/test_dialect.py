"""`--dialect keras`: what it writes, refuses and records."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from test_new import GOLDEN, mplayer, tree

from scaffold.kinds import kind_names

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = ["new", "MyLayer", "--weights", "w,b", "--dialect", "keras"]


def test_writes_the_golden_pair(tmp_path: Path) -> None:
    run = mplayer(*COMMAND, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert tree(tmp_path) == tree(GOLDEN / "keras_dialect")
    assert "tensorflow" not in (tmp_path / "my_layer.py").read_text()


def test_all_kinds_are_as_the_formatter_would_have_them(tmp_path: Path) -> None:
    refused = []
    for number, kind in enumerate(kind_names()):
        command = ["new", f"Kind{number}Made", "--kind", kind, "--dialect", "keras"]
        run = mplayer(*command, cwd=tmp_path)
        if run.returncode:
            assert "cannot be written in the keras dialect" in run.stderr
            refused.append(kind)
    assert refused == ["graph"]
    for command in (["format", "--check"], ["check"]):
        subprocess.run(
            [sys.executable, "-m", "ruff", *command, "."], cwd=tmp_path, check=True
        )


@pytest.mark.parametrize("dialect", ["tf", "keras"])
def test_numbers_are_as_the_formatter_would_have_them(
    dialect: str, tmp_path: Path
) -> None:
    for name, *command in (
        ("Aa", "--kind", "loss", "--arg", "rate:float=-1e30"),
        ("Bb", "--weights", "w=constant(1e-4), b", "--arg", "x:float=1e-20"),
    ):
        run = mplayer("new", name, *command, "--dialect", dialect, cwd=tmp_path)
        assert run.returncode == 0, run.stderr
    for check in (["format", "--check"], ["check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *check, "."],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_record_and_updates_keep_it(tmp_path: Path) -> None:
    mplayer(*COMMAND, cwd=tmp_path)
    record = json.loads((tmp_path / ".mplayer/my_layer.json").read_text())
    assert record["dialect"] == "keras"
    assert mplayer("update", "--check", cwd=tmp_path).returncode == 0
    assert (
        mplayer("update", "MyLayer", "--weights", "kernel,b", cwd=tmp_path).returncode
        == 0
    )
    text = (tmp_path / "my_layer.py").read_text()
    assert "keras.ops.cast(self.kernel, self.compute_dtype)" in text
    assert mplayer("remove", "MyLayer", cwd=tmp_path).returncode == 0
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dialect", "kears"], "there is no dialect 'kears'. Did you mean 'keras'?"),
        (["--kind", "graph", "--dialect", "keras"], "segment_sum sums in float32"),
        (
            ["--weights", "w", "--call", "tf.tanh(inputs @ w)", "--dialect", "keras"],
            "use keras.ops; tf. is the tf dialect",
        ),
    ],
)
def test_what_it_does_not_take_is_refused(
    options: list[str], message: str, tmp_path: Path
) -> None:
    run = mplayer("new", "MyLayer", *options, cwd=tmp_path)
    assert run.returncode == 2
    assert message in run.stderr
    assert not [*tmp_path.iterdir()]


def test_a_manifest_may_mix_dialects(tmp_path: Path) -> None:
    (tmp_path / "layers.toml").write_text(
        '[[layer]]\nname = "One"\ndialect = "keras"\n[[layer]]\nname = "Two"\n'
    )
    assert mplayer("new", "--from", "layers.toml", cwd=tmp_path).returncode == 0
    assert "import keras\n" in (tmp_path / "one.py").read_text()
    assert "import tensorflow as tf\n" in (tmp_path / "two.py").read_text()


def test_a_project_has_a_dialect_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.mplayer]\ndialect = "keras"\n')
    (tmp_path / "layers.toml").write_text(
        '[[layer]]\nname = "One"\n[[layer]]\nname = "Two"\ndialect = "tf"\n'
    )
    for command in (
        ["--from", "layers.toml"],
        ["Three", "--weights", "w"],
        ["Four", "--weights", "w", "--dialect", "tf"],
    ):
        assert mplayer("new", *command, cwd=tmp_path).returncode == 0
    written = {path.stem: path.read_text() for path in tmp_path.glob("*.py")}
    for module, keras in (
        *(("one", True), ("two", False)),
        *(("three", True), ("four", False)),
    ):
        assert ("import keras\n" in written[module]) == keras, module
