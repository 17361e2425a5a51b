"""plan -> disk, all or nothing."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import signal
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scaffold.errors import MplayerError
from scaffold.plan import os_errors_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scaffold.plan import Change, Plan

# What a file system says that has no hard links.
_NO_LINKS = frozenset({
    errno.EACCES, errno.EMLINK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP,
    errno.EPERM, errno.EXDEV,
})  # fmt: skip
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")


def publish(plan: Plan) -> None:
    """Writes a plan: each file whole, and either all of them or none.

    New contents wait in temporary files beside their targets until all are written and
    no target has changed since the plan was made; then each is moved into place. If
    anything fails before the end, all is put back. A signal that would end the process,
    such as Ctrl-C, waits for the end of a step and counts as a failure.

    Args:
        plan: A plan without conflicts.

    Raises:
        MplayerError: If there is a conflict, a file has changed meanwhile, or the
            system refuses. Nothing has been changed then.
        KeyboardInterrupt: If Ctrl-C came meanwhile. Nothing has been changed then.
    """
    if plan.conflicts:
        names = ", ".join(f"'{change.path}'" for change in plan.conflicts)
        raise MplayerError(
            f"{names} would be overwritten. See what differs with --diff, or overwrite"
            " with --force."
        )
    changes = [c for c in plan.changes if c.status in ("create", "update")]
    if not changes:
        return
    with _signals_deferred() as checkpoint, _Undo() as undo:
        staged = []
        for change in changes:
            checkpoint()
            with os_errors_of(change.path):
                staged.append(_stage(plan.root, change, undo))
        for file in staged:
            checkpoint()
            with os_errors_of(file.change.path):
                _require_unchanged(file)
        # Creations come first ("create" < "update"): undoing one loses nothing.
        for file in sorted(staged, key=lambda file: file.change.status):
            with os_errors_of(file.change.path):
                _move(file, undo)
            checkpoint()


@dataclass(frozen=True)
class _Staged:
    """A change whose new contents are on disk, beside the file that they shall be."""

    change: Change
    target: Path
    temporary: Path
    mode: int | None
    """The permission bits of the file that is there."""


class _Undo(contextlib.AbstractContextManager["_Undo"]):
    """The steps back; taken, last first, if the block fails."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], None]] = []

    def add(self, step: Callable[[], None]) -> None:
        self._steps.append(step)

    def __exit__(self, _type: object, error: BaseException | None, _at: object) -> None:
        if error is None:
            return
        left = []
        for step in reversed(self._steps):
            try:  # one that fails must not keep the others from running
                step()
            except OSError as problem:  # noqa: PERF203 -- it is rare, and not in a hurry
                left.append(f"'{problem.filename}': {problem.strerror}")
        if left:
            cause = str(error) or "Interrupted."
            raise MplayerError(
                f"{cause} Not all could be put back: {'; '.join(left)}."
            ) from error


@contextlib.contextmanager
def _signals_deferred() -> Iterator[Callable[[], None]]:
    """Holds back what would end the process, so that it never falls between two steps.

    Yields:
        A function to call between steps: it raises KeyboardInterrupt if a signal waits.
        The signal itself is raised again when the block is left.
    """
    import threading

    waiting: list[int] = []
    handlers = {}

    def checkpoint() -> None:
        if waiting:
            raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        for name in _SIGNALS:
            number = getattr(signal, name, None)
            # An ignored signal stays ignored; None is a handler not made by Python.
            if number and signal.getsignal(number) not in (signal.SIG_IGN, None):
                handlers[number] = signal.signal(
                    number, lambda number, _: waiting.append(number)
                )
    try:
        yield checkpoint
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if waiting:
            signal.raise_signal(waiting[0])


def _stage(root: Path, change: Change, undo: _Undo) -> _Staged:
    # A link to a file stays: what it leads to is replaced.
    target = Path(os.path.realpath(root / change.path))
    _make_folder(target.parent, undo)
    mode = None
    if change.before is not None:
        mode = stat.S_IMODE(target.stat().st_mode)
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, "the file is read-only", str(target))
    temporary = _write_temporary(target.parent, change.after, mode, undo)
    return _Staged(change, target, temporary, mode)


def _make_folder(folder: Path, undo: _Undo) -> None:
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir()
        undo.add(functools.partial(_remove_folder, path))


def _remove_folder(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError as error:
        # Someone else has put a file there since: it is theirs now.
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
            raise


def _write_temporary(folder: Path, data: bytes, mode: int | None, undo: _Undo) -> Path:
    path = folder / f".mplayer-{os.urandom(8).hex()}.tmp"
    # Made by open(), not by tempfile, so that the umask rules and nothing is imported.
    with path.open("xb") as file:
        undo.add(lambda: path.unlink(missing_ok=True))
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if mode is not None:
        path.chmod(mode)
    return path


def _require_unchanged(file: _Staged) -> None:
    before = file.change.before
    if before is None:
        same = not os.path.lexists(file.target)
    else:
        same = file.target.is_file() and file.target.read_bytes() == before
    if not same:
        raise _changed(file)


def _changed(file: _Staged) -> MplayerError:
    return MplayerError(
        f"'{file.change.path}' was changed by someone else meanwhile. Nothing was"
        " written: run the command again."
    )


def _move(file: _Staged, undo: _Undo) -> None:
    if file.change.before is None:
        _create(file, undo)
    else:
        file.temporary.replace(file.target)
        undo.add(lambda: _restore(file))


def _create(file: _Staged, undo: _Undo) -> None:
    """Moves a new file into place; never over one that has appeared meanwhile."""
    try:
        try:
            os.link(file.temporary, file.target)
            linked = True
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            file.target.open("xb").close()  # takes the name
            linked = False
    except FileExistsError as error:
        raise _changed(file) from error
    undo.add(lambda: file.target.unlink(missing_ok=True))
    if linked:
        file.temporary.unlink()
    else:
        file.temporary.replace(file.target)


def _restore(file: _Staged) -> None:
    """Writes back what an update has replaced."""
    # If this fails too, the temporary file is left: it holds what the user had.
    old = file.change.before or b""
    path = _write_temporary(file.target.parent, old, file.mode, _Undo())
    path.replace(file.target)
