"""`publish`: all files or none, whatever fails and whenever."""

from __future__ import annotations

import errno
import io
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest

from scaffold.errors import MplayerError
from scaffold.plan import Plan, make_plan
from scaffold.publish import publish

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REPOSITORY = Path(__file__).parents[1]
OPERATIONS = [
    *((os, name) for name in ("chmod", "fsync", "link", "listdir", "mkdir")),
    *((os, name) for name in ("replace", "rmdir", "stat", "unlink")),
    (io, "open"),
]


def snapshot(root: Path) -> dict[str, object]:
    """Everything below a folder: contents, permissions and where links lead."""
    return {
        str(path.relative_to(root)): (
            stat.filemode(path.lstat().st_mode),
            os.readlink(path) if path.is_symlink() else None,  # noqa: PTH115 -- as text
            path.read_bytes() if path.is_file() else None,
        )
        for path in sorted(root.rglob("*"))
    }


def project(root: Path) -> Plan:
    """A plan with all that can happen: two updates, one by a link, three new files.

    Three go, one with its folders; one folder stays, since the user's file is in it.
    """
    root.mkdir()
    for name in ("gone.py", "old/deep/gone.py", "busy/gone.py", "busy/mine.py"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"old = 3\n")
    (root / "gone.py").chmod(0o600)
    (root / "old/deep").chmod(0o750)
    (root / "kept.py").write_bytes(b"old = 1\r\n")
    (root / "kept.py").chmod(0o640)
    (root / "real.py").write_bytes(b"old = 2")
    (root / "link.py").symlink_to("real.py")
    (root / "same.py").write_bytes(b"x = 1\n")
    names = ("kept.py", "link.py", "same.py", "new.py", "a/b/new.py", "a/c/new.py")
    texts = {PurePosixPath(name): "x = 1\n" for name in names}
    return make_plan(
        root,
        texts,
        {},
        force=True,
        removed={PurePosixPath(name): True for name in REMOVED},
        folders=[PurePosixPath(name) for name in ("old", "old/deep", "busy", "never")],
    )


REMOVED = ("gone.py", "old/deep/gone.py", "busy/gone.py")
EXPECTED = {
    "a": ("drwxr-xr-x", None, None),
    "a/b": ("drwxr-xr-x", None, None),
    "a/b/new.py": ("-rw-r--r--", None, b"x = 1\n"),
    "a/c": ("drwxr-xr-x", None, None),
    "a/c/new.py": ("-rw-r--r--", None, b"x = 1\n"),
    "busy": ("drwxr-xr-x", None, None),
    "busy/mine.py": ("-rw-r--r--", None, b"old = 3\n"),
    "kept.py": ("-rw-r-----", None, b"x = 1\n"),
    "link.py": ("lrwxrwxrwx", "real.py", b"x = 1\n"),
    "new.py": ("-rw-r--r--", None, b"x = 1\n"),
    "real.py": ("-rw-r--r--", None, b"x = 1\n"),
    "same.py": ("-rw-r--r--", None, b"x = 1\n"),
}


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_a_plan_is_written(tmp_path: Path) -> None:
    root = tmp_path / "root"
    publish(project(root))
    assert snapshot(root) == EXPECTED


def test_a_plan_is_written_where_there_are_no_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_links(monkeypatch)
    test_a_plan_is_written(tmp_path)


def refuse_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)


def inject(
    monkeypatch: pytest.MonkeyPatch, position: int, error: BaseException
) -> list[str]:
    """Makes the call to the system at `position` fail; returns all that are made."""
    calls: list[str] = []

    def failing(name: str, call: Callable[..., object]) -> Callable[..., object]:
        def wrapper(*args: object, **kwargs: object) -> object:
            calls.append(name)
            if len(calls) == position:
                raise error
            return call(*args, **kwargs)

        return wrapper

    for module, name in OPERATIONS:
        monkeypatch.setattr(module, name, failing(name, getattr(module, name)))
    return calls


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), MplayerError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_a_failure_at_any_call_changes_nothing(
    tmp_path: Path, *, error: BaseException, raised: type[BaseException], links: bool
) -> None:
    """Every position in turn, until none is left and the plan is written."""
    position = 0
    while True:
        position += 1
        root = tmp_path / str(position)
        plan = project(root)
        before = snapshot(root)
        with pytest.MonkeyPatch.context() as monkeypatch:
            if not links:
                refuse_links(monkeypatch)
            calls = inject(monkeypatch, position, error)
            try:
                publish(plan)
            except raised as failure:
                message = str(failure)
            else:
                break
        assert snapshot(root) == before, f"{calls[position - 1]}, call {position}"
        assert raised is KeyboardInterrupt or "No space left on device" in message
        assert ".tmp" not in message
    assert len(calls) < position, "a failure was swallowed"
    assert snapshot(root) == EXPECTED
    assert {"fsync", "open", "mkdir", "replace", "unlink", "rmdir"} <= {*calls}


def test_a_real_full_disk_changes_nothing(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    plan = make_plan(tmp_path, {PurePosixPath("a/b.txt"): "x" * 5000}, {}, force=False)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(MplayerError, match=r"'a/b\.txt': File too large"):
            publish(plan)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert snapshot(tmp_path) == {}


@pytest.mark.parametrize(
    ("name", "what"),
    [
        *(("kept.py", what) for what in ("written", "removed", "folder")),
        *(("link.py", what) for what in ("written", "removed", "folder")),
        *(("gone.py", what) for what in ("written", "removed", "folder")),
        *(("new.py", what) for what in ("written", "folder")),
        *(("a/b/new.py", what) for what in ("written", "folder")),
    ],
)
def test_what_someone_else_did_meanwhile_is_kept(
    tmp_path: Path, name: str, what: str
) -> None:
    root = tmp_path / "root"
    plan = project(root)
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if what == "written":
        path.write_bytes(b"mine")
    else:
        path.unlink(missing_ok=True)
    if what == "folder":
        path.mkdir()
    before = snapshot(root)
    with pytest.raises(MplayerError, match=name):
        publish(plan)
    assert snapshot(root) == before


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_at_the_last_moment_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, links: bool
) -> None:
    link = os.link

    def late(source: Path, target: Path) -> None:
        target.write_bytes(b"mine")
        if not links:
            raise OSError(errno.ENOTSUP, "Operation not supported")
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    plan = make_plan(tmp_path, {PurePosixPath("a/x.py"): "x = 1\n"}, {}, force=True)
    with pytest.raises(MplayerError, match=r"'a/x\.py' was changed by someone else"):
        publish(plan)
    # The folder is ours, but now there is something of theirs in it.
    assert [*snapshot(tmp_path)] == ["a", "a/x.py"]
    assert (tmp_path / "a/x.py").read_bytes() == b"mine"


def test_a_conflict_is_never_written(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"mine")
    texts = {PurePosixPath("new.py"): "", PurePosixPath("a.py"): ""}
    before = snapshot(tmp_path)
    with pytest.raises(MplayerError, match=r"'a\.py' would be overwritten.*--force"):
        publish(make_plan(tmp_path, texts, {}, force=False))
    assert snapshot(tmp_path) == before


def test_nothing_is_touched_where_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.py").write_bytes(b"x = 1\n")
    plan = make_plan(tmp_path, {PurePosixPath("a.py"): "x = 1\n"}, {}, force=True)
    assert inject(monkeypatch, 1, AssertionError()) == []
    publish(plan)


def test_a_read_only_file_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    plan = project(root)
    before = snapshot(root)
    # By a fake, since root may write everything.
    monkeypatch.setattr(os, "access", lambda path, _: "kept" not in str(path))
    with pytest.raises(MplayerError, match=r"'kept\.py': the file is read-only"):
        publish(plan)
    assert snapshot(root) == before


def test_new_files_follow_the_umask(tmp_path: Path) -> None:
    os.umask(0o077)
    publish(make_plan(tmp_path, {PurePosixPath("a/x.py"): ""}, {}, force=False))
    modes = [entry[0] for entry in snapshot(tmp_path).values()]  # type: ignore[index]
    assert modes == ["drwx------", "-rw-------"]


def test_what_cannot_be_put_back_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    plan = project(root)
    replace = os.replace
    done: list[Path] = []

    def once(source: Path, target: Path) -> None:
        if done:
            raise OSError(errno.EIO, "Input/output error", str(source))
        done.append(target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", once)
    with pytest.raises(MplayerError, match="Not all could be put back") as refusal:
        publish(plan)
    # What the user had is in the file that the message names.
    kept = Path(str(refusal.value).split("put back: '")[1].split("'")[0])
    assert kept.read_bytes() == b"old = 1\r\n"
    assert not (root / "a").exists()


def test_nothing_is_replaced_before_all_is_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    plan = project(root)

    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(os, "replace", lambda *_: pytest.fail("too early"))
    with pytest.raises(MplayerError, match=r"'new\.py': Input/output error"):
        publish(plan)


@pytest.mark.parametrize("call", ["fsync", "mkdir", "link", "replace"])
def test_control_c_undoes_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    root = tmp_path / "root"
    plan = project(root)
    before = snapshot(root)
    original = getattr(os, call)

    def interrupted(*args: object) -> object:
        signal.raise_signal(signal.SIGINT)
        return original(*args)

    monkeypatch.setattr(os, call, interrupted)
    with pytest.raises(KeyboardInterrupt):
        publish(plan)
    assert snapshot(root) == before
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


KILLED = """
import os, signal, sys
from pathlib import Path, PurePosixPath
from scaffold.plan import make_plan
from scaffold.publish import publish

def link(source, target, link=os.link):
    link(source, target)
    os.kill(os.getpid(), signal.SIGTERM)

os.link = link
texts = {PurePosixPath("a/x.py"): "", PurePosixPath("a/y.py"): ""}
publish(make_plan(Path(sys.argv[1]), texts, {}, force=False))
print("not reached")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends it at once")
def test_a_terminated_process_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGTERM, "", "")
    assert snapshot(tmp_path) == {}


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGHUP")
def test_an_ignored_signal_stays_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    plan = project(root)
    link = os.link

    def hang_up(*args: Path) -> None:
        signal.raise_signal(signal.SIGHUP)
        link(*args)

    monkeypatch.setattr(os, "link", hang_up)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        publish(plan)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert snapshot(root) == EXPECTED


def test_another_thread_may_publish(tmp_path: Path) -> None:
    root = tmp_path / "root"
    thread = threading.Thread(target=publish, args=[project(root)])
    thread.start()
    thread.join()
    assert snapshot(root) == EXPECTED
