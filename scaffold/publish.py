"""plan -> disk, all or nothing."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import signal
import stat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from scaffold.errors import MplayerError
from scaffold.journal import JOURNAL, Journal, Move, deepest_first, remove_empty
from scaffold.plan import changed_meanwhile, os_errors_of

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
    such as Ctrl-C, waits for the end of a step and counts as a failure. A process that
    is killed leaves a journal, by which `scaffold.journal.recover` does either.

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
    changes = [c for c in plan.changes if c.status not in ("identical", "conflict")]
    if not changes:
        return
    # Creations come first, removals last: undoing the former loses nothing.
    changes.sort(key=lambda c: (c.before is not None, c.after is None))
    with _signals_deferred() as checkpoint, _Undo() as undo:
        with os_errors_of(JOURNAL):
            _make_folder((plan.root / JOURNAL).parent, undo)
            # A new file can be made again if the power fails; one that is replaced or
            # removed cannot, so that such a run waits for the disk.
            durable = any(change.before is not None for change in changes)
            journal = Journal(plan.root, durable=durable)
            undo.add(journal.close)
        files = []
        for change in changes:
            with os_errors_of(change.path):
                files.append(_prepare(plan.root, change))
        temporaries = [f.temporary for f in files if f.temporary]
        with os_errors_of(JOURNAL):
            journal.note_temporaries(
                temporaries, {f for path in temporaries for f in _missing(path.parent)}
            )
        for file in files:
            checkpoint()
            with os_errors_of(file.change.path):
                _stage(file, undo)
        for file in files:
            checkpoint()
            with os_errors_of(file.change.path):
                _require_unchanged(file)
        folders = [plan.root / folder for folder in plan.folders]
        moves = [Move(f.target, f.temporary, f.change.before) for f in files]
        with os_errors_of(JOURNAL):
            journal.note_moves(moves, folders)
        for file in files:
            with os_errors_of(file.change.path):
                _move(file, undo)
            checkpoint()
        with os_errors_of(JOURNAL):
            for folder in deepest_first(folders):
                _remove_folder(folder, undo)
            journal.close()
            # It was made for the journal, if nothing else is in it.
            remove_empty((plan.root / JOURNAL).parent)


class _File(NamedTuple):
    """A change and where its new contents wait, beside the file that they shall be."""

    change: Change
    target: Path
    temporary: Path | None
    """None where the file shall go."""
    mode: int | None
    """The permission bits of the file that is there."""


class _Undo(contextlib.AbstractContextManager["_Undo"]):
    """The steps back; taken, last first, if the block fails."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], object]] = []

    def add(self, step: Callable[[], object]) -> None:
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


def _prepare(root: Path, change: Change) -> _File:
    # A link to a file stays, if the file does: what it leads to is replaced.
    where = root / change.path
    target = Path(os.path.realpath(where)) if change.after is not None else where
    mode = None
    if change.before is not None:
        mode = stat.S_IMODE(target.stat().st_mode)
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, "the file is read-only", str(target))
    temporary = None if change.after is None else _temporary_beside(target)
    return _File(change, target, temporary, mode)


def _remove_folder(folder: Path, undo: _Undo) -> None:
    if not folder.is_dir():
        return
    mode = stat.S_IMODE(folder.stat().st_mode)
    if remove_empty(folder):
        undo.add(lambda: folder.chmod(mode))
        undo.add(folder.mkdir)


def _temporary_beside(target: Path) -> Path:
    return target.parent / f".mplayer-{os.urandom(8).hex()}.tmp"


def _stage(file: _File, undo: _Undo) -> None:
    if file.temporary is not None and file.change.after is not None:
        _make_folder(file.target.parent, undo)
        _write_temporary(file.temporary, file.change.after, file.mode, undo)


def _missing(folder: Path) -> list[Path]:
    """The folders down to this one that are not there, the deepest first."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    return missing


def _make_folder(folder: Path, undo: _Undo) -> None:
    for path in reversed(_missing(folder)):
        path.mkdir()
        # If someone else has put a file there since, it is theirs now.
        undo.add(functools.partial(remove_empty, path))


def _write_temporary(path: Path, data: bytes, mode: int | None, undo: _Undo) -> None:
    # Made by open(), not by tempfile, so that the umask rules and nothing is imported.
    with path.open("xb") as file:
        undo.add(lambda: path.unlink(missing_ok=True))
        file.write(data)
        if mode is not None:  # it takes the place of a file
            file.flush()
            os.fsync(file.fileno())
    if mode is not None:
        path.chmod(mode)


def _require_unchanged(file: _File) -> None:
    before = file.change.before
    if before is None:
        same = not os.path.lexists(file.target)
    else:
        same = file.target.is_file() and file.target.read_bytes() == before
    if not same:
        raise changed_meanwhile(file.change.path)


def _move(file: _File, undo: _Undo) -> None:
    if file.temporary is None:
        file.target.unlink()
        undo.add(lambda: _restore(file))
    elif file.change.before is None:
        _create(file, file.temporary, undo)
    else:
        file.temporary.replace(file.target)
        undo.add(lambda: _restore(file))


def _create(file: _File, temporary: Path, undo: _Undo) -> None:
    """Moves a new file into place; never over one that has appeared meanwhile."""
    try:
        try:
            os.link(temporary, file.target)
            linked = True
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            file.target.open("xb").close()  # takes the name
            linked = False
    except FileExistsError as error:
        raise changed_meanwhile(file.change.path) from error
    undo.add(lambda: file.target.unlink(missing_ok=True))
    if linked:
        temporary.unlink()
    else:
        temporary.replace(file.target)


def _restore(file: _File) -> None:
    """Writes back what was replaced or removed."""
    # If this fails too, the temporary file is left: it holds what the user had.
    old = file.change.before or b""
    path = _temporary_beside(file.target)
    _write_temporary(path, old, file.mode, _Undo())
    path.replace(file.target)
