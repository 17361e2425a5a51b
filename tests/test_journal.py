"""Killed at any moment: what a run leaves, and how the next one ends it."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import sys
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest
from test_publish import EXPECTED, project, refuse_links, snapshot
from typer.testing import CliRunner

from scaffold.cli import app
from scaffold.errors import MplayerError
from scaffold.journal import JOURNAL, Journal, recover
from scaffold.plan import make_plan
from scaffold.publish import publish

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no fork")
# Whatever changes the disk: a process that dies elsewhere dies as before the next one.
OPERATIONS = [
    *((os, name) for name in ("chmod", "fsync", "link", "mkdir", "replace")),
    *((os, name) for name in ("rmdir", "unlink")),
    (io, "open"),
]


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def survives(work: Callable[[], object], position: int, *, links: bool = True) -> bool:
    """Does the work in a process that is killed before its call at `position`."""
    child = os.fork()
    if child == 0:
        try:
            with pytest.MonkeyPatch.context() as monkeypatch:
                if not links:
                    refuse_links(monkeypatch)
                kill_at(monkeypatch, position)
                work()
            os._exit(0)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL)
    return code == 0


def kill_at(monkeypatch: pytest.MonkeyPatch, position: int) -> None:
    calls = 0

    def deadly(call: Callable[..., object]) -> Callable[..., object]:
        def wrapper(*args: object, **kwargs: object) -> object:
            nonlocal calls
            calls += 1
            if calls == position:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)

        return wrapper

    for module, name in OPERATIONS:
        monkeypatch.setattr(module, name, deadly(getattr(module, name)))


def killed_runs(folder: Path, *, links: bool = True) -> Iterator[tuple[Path, object]]:
    """What each run leaves that is killed one call later than the one before it."""
    position = 0
    while True:
        position += 1
        root = folder / str(position)
        plan = project(root)
        before = snapshot(root)
        if survives(lambda plan=plan: publish(plan), position, links=links):  # type: ignore[misc]
            assert position > 30
            return
        yield root, before


@pytest.mark.parametrize("links", [True, False])
def test_all_or_nothing_wherever_it_is_killed(tmp_path: Path, *, links: bool) -> None:
    ends = set()
    for root, before in killed_runs(tmp_path, links=links):
        said = recover(root)
        after = snapshot(root)
        assert after in (before, EXPECTED), root
        assert said is None or re.fullmatch(
            r"(Took back|Ended) what a killed run of mplayer had begun\.", said
        )
        assert recover(root) is None
        ends.add(after == EXPECTED)
    assert ends == {True, False}


@pytest.mark.parametrize("links", [True, False])
def test_a_recovery_may_be_killed_too(tmp_path: Path, *, links: bool) -> None:
    for position in range(1, 70, 3):
        ended, at = False, 0
        while not ended:
            at += 1
            root = tmp_path / f"{position}-{at}"
            plan = project(root)
            before = snapshot(root)
            survives(lambda plan=plan: publish(plan), position, links=links)  # type: ignore[misc]
            ended = survives(lambda root=root: recover(root), at)  # type: ignore[misc]
            recover(root)
            assert snapshot(root) in (before, EXPECTED), root


def killed_between_the_moves(root: Path) -> None:
    """New files are there, and no old one has been touched."""
    plan = project(root)

    def publish_until_then() -> None:
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(os, "replace", lambda *_: os._exit(0))
            publish(plan)

    child = os.fork()
    if child == 0:
        publish_until_then()
    os.waitpid(child, 0)
    assert (root / "new.py").exists()
    assert (root / "kept.py").read_bytes() == b"old = 1\r\n"


@pytest.mark.parametrize("name", ["kept.py", "gone.py", "new.py", "old/deep/gone.py"])
def test_what_the_user_has_edited_since_is_kept(tmp_path: Path, name: str) -> None:
    root = tmp_path / "root"
    killed_between_the_moves(root)
    (root / name).write_bytes(b"mine")
    said = recover(root)
    assert (root / name).read_bytes() == b"mine"
    # A file that was in place already is the user's affair.
    assert name == "new.py" or (said and f"{name}' had been changed since" in said)
    others = {path: entry for path, entry in EXPECTED.items() if path != name}
    assert others.items() <= snapshot(root).items()
    assert not list(root.rglob("*.tmp"))
    assert not (root / JOURNAL).exists()


def test_a_file_put_into_a_folder_since_keeps_it(tmp_path: Path) -> None:
    root = tmp_path / "root"
    killed_between_the_moves(root)
    (root / "old/mine.txt").write_bytes(b"mine")
    recover(root)
    assert (root / "old/mine.txt").read_bytes() == b"mine"
    assert not (root / "old/deep").exists()


def run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, arguments)
    return done.exit_code, done.stdout, done.stderr


def test_the_next_command_ends_it_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    killed_between_the_moves(root)
    monkeypatch.chdir(root)
    code, _, said = run("new", "MyLayer", "--weights", "w,b")
    assert (code, "Ended what a killed run of mplayer had begun" in said) == (0, True)
    assert EXPECTED.items() <= snapshot(root).items()
    assert (root / "my_layer.py").exists()


@pytest.mark.parametrize(
    "command",
    [
        ["new", "MyLayer", "--weights", "w,b", "--dry-run"],
        ["new", "MyLayer", "--weights", "w,b", "--diff"],
        ["update", "--check"],
        ["remove", "MyLayer", "--dry-run"],
    ],
)
def test_a_dry_run_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    root = tmp_path / "root"
    killed_between_the_moves(root)
    before = snapshot(root)
    monkeypatch.chdir(root)
    code, out, said = run(*command)
    assert (code, out) == (2, "")
    assert "was killed before its end. Run this without --dry-run" in said
    assert snapshot(root) == before


def test_a_run_that_lives_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".mplayer").mkdir()
    journal = Journal(tmp_path)
    before = snapshot(tmp_path)
    code, _, said = run("new", "MyLayer", "--weights", "w,b")
    assert (code, "Another run of mplayer is writing" in said) == (2, True)
    with pytest.raises(MplayerError, match="Another run of mplayer is writing"):
        publish(make_plan(tmp_path, {PurePosixPath("a.py"): ""}, {}))
    assert snapshot(tmp_path) == before
    journal.close()
    assert run("new", "MyLayer", "--weights", "w,b")[0] == 0


@pytest.mark.parametrize(
    "notes",
    [
        '{"temporaries": ["{outside}"], "folders": []}\n',
        '{"temporaries": [], "folders": ["{outside}"]}\n',
        '{"temporaries": [], "folders": []}\n'
        '{"moves": [["{outside}", null, "{hash}"]], "folders": []}\n',
        '{"temporaries": [], "folders": []}\n'
        '{"moves": [["{inside}", "{outside}", null]], "folders": []}\n',
    ],
)
def test_a_journal_that_came_with_a_project_reaches_nothing_outside(
    tmp_path: Path, notes: str
) -> None:
    import hashlib

    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / JOURNAL).parent.mkdir(parents=True)
    outside.write_bytes(b"precious")
    names = {
        "{outside}": str(root / ".." / "outside"),
        "{inside}": str(root / "a.py"),
        "{hash}": hashlib.sha256(b"precious").hexdigest(),
    }
    for name, value in names.items():
        notes = notes.replace(name, value)
    (root / JOURNAL).write_text(notes)
    before = snapshot(tmp_path)
    with pytest.raises(MplayerError, match="outside of the project"):
        recover(root)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    "note",
    [
        *("{", "[]", "7", '{"temporaries": 3}', json.dumps({"folders": []})),
        "[" * 100_000,
    ],
)
def test_a_damaged_journal_is_said(tmp_path: Path, note: str) -> None:
    (tmp_path / JOURNAL).parent.mkdir()
    (tmp_path / JOURNAL).write_text(f"{note}\n")
    with pytest.raises(MplayerError, match="is damaged"):
        recover(tmp_path)
    assert (tmp_path / JOURNAL).exists()
