"""The one exception that reaches a user, and the exit codes."""

from __future__ import annotations

DONE = 0
FINDINGS = 1
USAGE = 2
INTERRUPTED = 3


class MplayerError(Exception):
    """A mistake that the user can mend.

    The message is a sentence or two: it names the value that was wrong and a way
    out, usually a flag or a spec that works. The command line prints it on standard
    error and exits with code 2; nothing has been written.
    """


def nearest(word: str, known: list[str] | tuple[str, ...]) -> str:
    """Returns " Did you mean 'x'?" for the closest of `known`, or an empty string."""
    import difflib

    folded = {name.casefold(): name for name in known}
    matches = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=0.6)
    return f" Did you mean '{folded[matches[0]]}'?" if matches else ""
