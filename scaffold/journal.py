"""What a run is about to do, written down, so that a killed one can be ended.

A file system replaces one file at once, never several. So a run notes first which
temporary files it will write, and then, once all are whole, where each shall go.
Whoever finds the journal of a run that is no more takes back the one or ends the
other: the files are those from before it, or those that it was to leave.
"""

from __future__ import annotations

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


class Move(NamedTuple):
    """One step: `temporary` becomes `target`, or `target` goes where there is none."""

    target: Path
    temporary: Path | None
    before: bytes | None
    """What `target` holds until then; None: it does not exist."""


class Journal:
    """The journal of one run, locked for as long as the run lives."""

    def __init__(self, root: Path) -> None:
        """Makes the file; its folder must be there.

        Args:
            root: The folder that the plan changes.

        Raises:
            MplayerError: If another run is at work there.
        """
        self._path = root / JOURNAL
        try:
            self._file = self._path.open("xb")
        except FileExistsError:
            raise _busy(root) from None
        _lock(self._file.fileno())

    def note_temporaries(self, paths: Iterable[Path]) -> None:
        """Says which files to take away if the run ends before `note_moves`."""
        self._note([str(path) for path in paths])

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
        self._file.close()
        self._path.unlink(missing_ok=True)

    def _note(self, value: object) -> None:
        self._file.write(json.dumps(value).encode() + b"\n")
        self._file.flush()
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
    try:
        file = path.open("r+b")
    except FileNotFoundError:
        return None
    with file, os_errors_of(JOURNAL):
        if not _lock(file.fileno()):
            raise _busy(root)
        if dry_run:
            raise MplayerError(
                f"A run of mplayer in '{root}' was killed before its end. Run this"
                " without --dry-run, --diff and --check first, which ends it."
            )
        notes = _notes(file.read())
        if len(notes) > 1:
            left = _end(notes[1])
            said = "Ended what a killed run of mplayer had begun."
        else:
            left = []
            for name in notes[0] if notes else ():
                Path(name).unlink(missing_ok=True)
            said = "Took back what a killed run of mplayer had begun."
    path.unlink(missing_ok=True)
    if left:
        names = ", ".join(f"'{target}'" for target in left)
        said += f" {names} had been changed since, and stayed as found."
    return said


def remove_folders(folders: Iterable[Path]) -> list[Path]:
    """Removes those folders that are empty, the deepest first; returns them."""
    removed = []
    for folder in sorted(folders, key=lambda path: len(path.parts), reverse=True):
        try:  # one that stays must not keep the others from going
            folder.rmdir()
        except OSError as error:  # noqa: PERF203 -- there are few
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                raise
        else:
            removed.append(folder)
    return removed


def _end(note: dict[str, Any]) -> list[Path]:
    """Takes the steps that are left; returns the files that are no longer as noted."""
    left = []
    for name, staged, before in note["moves"]:
        target, temporary = Path(name), staged and Path(staged)
        if temporary and not temporary.exists():
            continue  # it has been moved
        now = target.read_bytes() if target.is_file() else None
        if _hash(now) == before:
            if temporary:
                temporary.replace(target)
            else:
                target.unlink(missing_ok=True)
        elif temporary:
            left.append(target)
            temporary.unlink()
        elif now is not None:
            left.append(target)
    remove_folders(map(Path, note["folders"]))
    return left


def _notes(data: bytes) -> Sequence[Any]:
    """The notes that were written whole: each is a line with its end."""
    return [
        json.loads(line)
        for line in data.splitlines(keepends=True)
        if line[-1:] == b"\n"
    ]


def _hash(data: bytes | None) -> str | None:
    import hashlib

    return None if data is None else hashlib.sha256(data).hexdigest()


def _busy(root: Path) -> MplayerError:
    return MplayerError(
        f"Another run of mplayer is writing in '{root}'. Wait for its end, and run this"
        " again."
    )


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
