"""pristine, the user's and the new text -> merged: one file of `mplayer update`."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from scaffold.errors import MplayerError
from scaffold.plan import Merged

_YOURS = "yours"


def merge(pristine: str, users: str, new: str, *, label: str) -> Merged | None:
    r"""Merges the changes of a template into a file that may have been edited.

    Args:
        pristine: The text as it was generated, in `\\n` lines.
        users: The text that is there. If its lines end in `\\r\\n`, so do the merged.
        new: The text as it is generated now.
        label: What the conflict markers call the new text.

    Returns:
        The merged text; None where there is nothing to do.

    Raises:
        MplayerError: If both have changed and git is not there to merge them.
    """
    plain = users.replace("\r\n", "\n")
    if new in (pristine, plain):
        return None
    crlf = "\r\n" in users and "\n" not in users.replace("\r\n", "")
    merged = (
        Merged(new, False)
        if plain == pristine
        else _merged(pristine, plain if crlf else users, new, label)
    )
    return (
        Merged(merged.text.replace("\n", "\r\n"), merged.conflicts) if crlf else merged
    )


def holds_markers(text: str) -> bool:
    """Returns whether conflicts of an earlier merge are still to be resolved.

    Those of `merge` may stand in a docstring. Those of others count where they keep
    the text from being Python: else they are part of one that tells of them.
    """
    import ast

    lines = text.splitlines()

    def holds(*markers: str) -> bool:
        return all(any(line.startswith(mark) for line in lines) for mark in markers)

    if holds(f"<<<<<<< {_YOURS}", ">>>>>>> mplayer "):
        return True
    if not holds("<<<<<<< ", ">>>>>>> "):
        return False
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    return False


def _merged(pristine: str, ours: str, new: str, label: str) -> Merged:
    with tempfile.TemporaryDirectory() as folder:
        texts = {_YOURS: ours, "pristine": pristine, label: new}
        paths = [Path(folder, str(i)) for i in range(3)]
        for path, text in zip(paths, texts.values(), strict=True):
            path.write_bytes(text.encode())
        labels = [part for name in texts for part in ("-L", name)]
        try:
            run = subprocess.run(
                ["git", "merge-file", "--stdout", *labels, *paths],
                capture_output=True,
                check=False,
            )
        except OSError as error:
            raise MplayerError(
                "It has been edited, and its template has changed: git is needed to"
                f" merge the two, but does not start ({error.strerror}). Install it, or"
                " take the template's with --force."
            ) from error
    # It is the count of conflicts, up to 127; an error is above, a signal below.
    if not 0 <= run.returncode <= 127:  # noqa: PLR2004
        raise MplayerError(
            f"git cannot merge it: {run.stderr.decode(errors='replace')}"
        )
    return Merged(run.stdout.decode(), run.returncode > 0)
