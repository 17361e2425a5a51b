"""What the README tells a reader to type works, and prints what it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

from test_new import mplayer, tree

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```\w*\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


class Example(NamedTuple):
    command: list[str]
    shown: str
    """What the README prints under it."""


def examples() -> list[Example]:
    """The `mplayer` commands of all blocks, each up to two spaces and its comment."""
    found = []
    for block in BLOCKS:
        for text in re.split(r"^(?:\$ )?(?=mplayer [a-z])", block, flags=re.MULTILINE):
            line, _, shown = text.partition("\n")
            if line.startswith("mplayer "):
                command = shlex.split(re.split(r"\s{2,}", line)[0])
                found.append(Example(command[1:], "" if "$ " in shown else shown))
    return found


def test_commands_do_what_they_show(tmp_path: Path) -> None:
    assert {command[0] for command, _ in examples()} == {
        *("new", "init", "kinds", "update", "remove")
    }
    for command, shown in examples():
        run = mplayer(*command, cwd=tmp_path)
        refused = shown.startswith("mplayer: ")
        assert run.returncode == (2 if refused else 0), f"{command}: {run.stderr}"
        if shown:
            said = run.stdout + run.stderr
            assert said.split() == shown.split(), command


def test_the_manifest_is_one(tmp_path: Path) -> None:
    (manifest,) = [block for block in BLOCKS if block.startswith("[[layer]]")]
    (tmp_path / "layers.toml").write_text(manifest, encoding="utf-8")
    run = mplayer("new", "--from", "layers.toml", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert {"my_layer.py", "my_norm.py"} < {*tree(tmp_path)}
