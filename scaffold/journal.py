"""What a run is about to do, written down, so that a killed one can be ended.

A file system replaces one file at once, never several. So a run notes first which
temporary files it will write, and then, once all are whole, where each shall go.
Whoever finds the journal of a run that is no more takes back the one or ends the
other: the files are those from before it, or those that it was to leave.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from scaffold.errors import MplayerError
from scaffold.plan import os_errors_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

JOURNAL = PurePosixPath(".mplayer/journal")
# Why a folder cannot go that need not: it holds something, or is none.
_STAYS = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR})


class Move(NamedTuple):
    """One step: `temporary` becomes `target`, or `target` goes where there is none."""

    target: Path
    temporary: Path | None
    before: bytes | None
    """What `target` holds until then; None: it does not exist."""


class Journal:
    """The journal of one run, locked for as long as the run lives."""

    def __init__(self, root: Path, *, durable: bool = True) -> None:
        """Makes the file; its folder must be there.

        Args:
            root: The folder that the plan changes.
            durable: Whether it must also outlast a failure of the power.

        Raises:
            MplayerError: If another run is at work there.
        """
        self._path, self._durable = root / JOURNAL, durable
        try:
            self._file = self._path.open("xb")
        except FileExistsError:
            raise _busy(root) from None
        try:
            mine = _lock(self._file.fileno()) and _is_at(
                self._path, self._file.fileno()
            )
        except BaseException:
            self.close()
            raise
        if not mine:
            # Another run has found it, and takes it for that of a killed one.
            self._file.close()
            raise _busy(root)

    def note_temporaries(self, paths: Iterable[Path], folders: Iterable[Path]) -> None:
        """Says what to take away if the run ends before `note_moves`."""
        self._note(
            {
                "temporaries": [str(path) for path in paths],
                "folders": [str(folder) for folder in folders],
            }
        )

    def note_moves(self, moves: Iterable[Move], folders: Iterable[Path]) -> None:
        """Says what to do if the run ends after this: all temporary files are whole."""
        steps = [
            [
                str(move.target),
                move.temporary and str(move.temporary),
                _hash(move.before),
            ]
            for move in moves
        ]
        self._note({"moves": steps, "folders": [str(folder) for folder in folders]})

    def close(self) -> None:
        """Takes the file away: all is done, or all is as it was."""
        if os.name == "nt":  # there an open file cannot be unlinked
            self._file.close()
        # While it is locked: later, another run could take it for its own.
        self._path.unlink(missing_ok=True)
        self._file.close()

    def _note(self, value: object) -> None:
        self._file.write(json.dumps(value).encode() + b"\n")
        self._file.flush()
        if self._durable:
            os.fsync(self._file.fileno())


def recover(root: Path, *, dry_run: bool = False) -> str | None:
    """Ends what a killed run has left.

    Args:
        root: The folder that it was changing.
        dry_run: Whether nothing may be written now.

    Returns:
        What was done, in a sentence; None where there was nothing to do.

    Raises:
        MplayerError: If a run is at work there, if it is a dry run and there is
            something to do, or if the system refuses.
    """
    path = root / JOURNAL
    with contextlib.ExitStack() as stack:
        stack.enter_context(os_errors_of(JOURNAL))
        try:
            file = stack.enter_context(path.open("r+b"))
        except FileNotFoundError:
            if not dry_run:  # it was killed before its journal was there, or after
                remove_empty(path.parent)
            return None
        if not _lock(file.fileno()):
            raise _busy(root)
        if not _is_at(path, file.fileno()):
            return None  # its run has just ended
        if dry_run:
            raise MplayerError(
                f"A run of mplayer in '{root}' was killed before its end. Run this"
                " without --dry-run, --diff and --check first, which ends it."
            )
        said = _settle(_notes(root, file.read()))
        if os.name != "nt":  # there an open file cannot be unlinked
            path.unlink(missing_ok=True)
    with os_errors_of(JOURNAL):
        if os.name == "nt":
            path.unlink(missing_ok=True)
        remove_empty(path.parent)
    return said


def _settle(notes: Sequence[dict[str, Any]]) -> str:
    """Ends or takes back what the notes tell of; says which."""
    if len(notes) < 2:  # noqa: PLR2004 -- the second says that all is ready
        for note in notes:
            for name in note["temporaries"]:
                Path(name).unlink(missing_ok=True)
            _remove_folders(note)
        return "Took back what a killed run of mplayer had begun."
    said = "Ended what a killed run of mplayer had begun."
    if left := _end(notes[1]):
        names = ", ".join(f"'{target}'" for target in left)
        said += f" {names} had been changed since, and stayed as found."
    return said


def deepest_first(folders: Iterable[Path]) -> list[Path]:
    """Returns folders in an order in which they can be removed."""
    return sorted(folders, key=lambda path: len(path.parts), reverse=True)


def remove_empty(folder: Path) -> bool:
    """Removes a folder if it is one and is empty; returns whether it has."""
    try:
        folder.rmdir()
    except OSError as error:
        if error.errno not in _STAYS:
            raise
        return False
    return True


def _remove_folders(note: dict[str, Any]) -> None:
    for folder in deepest_first(map(Path, note["folders"])):
        remove_empty(folder)


def _end(note: dict[str, Any]) -> list[Path]:
    """Takes the steps that are left; returns the files that are no longer as noted."""
    left = []
    for name, staged, before in note["moves"]:
        target, temporary = Path(name), staged and Path(staged)
        if temporary and not temporary.exists():
            continue  # it has been moved
        now = target.read_bytes() if target.is_file() else None
        # Without hard links, a new file begins as an empty one that takes its name.
        due = _hash(now) == before or (temporary and before is None and now == b"")
        if due and temporary:
            temporary.replace(target)
        elif due:
            target.unlink(missing_ok=True)
        elif temporary:
            if now != temporary.read_bytes():  # else it has been linked
                left.append(target)
            temporary.unlink()
        elif now is not None:
            left.append(target)
    _remove_folders(note)
    return left


def _notes(root: Path, data: bytes) -> list[dict[str, Any]]:
    """The notes that were written whole: each is a line with its end.

    A journal can come with a project, so it may name nothing outside of it.
    """
    lines = [line for line in data.splitlines(keepends=True) if line[-1:] == b"\n"]
    try:
        notes: list[dict[str, Any]] = [json.loads(line) for line in lines]
        moves = [move for note in notes[1:] for move in note["moves"]]
        names = [name for note in notes for name in note["folders"]]
        names += notes[0]["temporaries"] if notes else []
        names += [name for target, staged, _ in moves for name in (target, staged)]
        paths = [Path(name) for name in names if name is not None]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise MplayerError(
            f"'{root / JOURNAL}', which a killed run of mplayer has left, is damaged"
            f" ({type(error).__name__}). Take it away, with what files are named"
            " '.mplayer-*.tmp'."
        ) from error
    inside = os.path.realpath(root)
    for path in paths:
        if not Path(os.path.realpath(path.parent)).is_relative_to(inside):
            raise MplayerError(
                f"'{root / JOURNAL}', which a killed run of mplayer has left, would"
                f" change '{path}', outside of the project. Take it away, and see to"
                " that file yourself."
            )
    return notes


def _hash(data: bytes | None) -> str | None:
    import hashlib

    return None if data is None else hashlib.sha256(data).hexdigest()


def _busy(root: Path) -> MplayerError:
    return MplayerError(
        f"Another run of mplayer is writing in '{root}'. Wait for its end, and run this"
        " again."
    )


def _is_at(path: Path, file: int) -> bool:
    """Whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))  # noqa: PTH116
    except FileNotFoundError:
        return False


def _lock(file: int) -> bool:
    """Locks an open file for this process; false where another holds it."""
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
    return True
