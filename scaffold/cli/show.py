"""Views of one plan: lines, a diff or JSON on standard output, status beside it."""

from __future__ import annotations

import os
import sys
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from scaffold.record import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scaffold.plan import Plan

_DONE = {
    "create": "created",
    "update": "updated",
    "merge": "merged",
    "marked": "CONFLICTS MARKED",
    "delete": "removed",
}
_TO_DO = {
    "create": "would create",
    "update": "would update",
    "merge": "would merge",
    "marked": "would mark conflicts",
    "delete": "would remove",
}


def show(
    plan: Plan,
    *,
    written: bool,
    diff: bool,
    as_json: bool,
    status: Iterable[str] = (),
    report: Mapping[str, object] | None = None,
) -> None:
    """Prints what was done, or would be.

    Args:
        plan: The plan.
        written: Whether the plan has been published.
        diff: Whether to print the plan as a diff.
        as_json: Whether to print it as JSON.
        status: Lines for a reader, on standard error.
        report: What JSON says beyond the plan.
    """
    if as_json:
        import json

        table = {**plan.as_json(), "written": written, **(report or {})}
        if diff:
            table["diff"] = plan.diff()
        print(json.dumps(table, indent=2))
    elif diff:
        print(plan.diff(), end="")
    else:
        words = _DONE if written else _TO_DO
        # The record is mplayer's own affair: --json and --diff show it.
        changes = [c for c in plan.changes if not c.path.is_relative_to(FOLDER)]
        said = [words.get(c.status, c.status) for c in changes]
        width = max(map(len, said), default=0) + 2
        for word, change in zip(said, changes, strict=True):
            print(f"{word:<{width}}{change.path}")
    sys.stdout.flush()
    if (plan.changes or (report or {}).get("findings")) and not as_json:
        tell_root(plan.root)
    if plan.conflicts:
        _say(_conflict(plan))
    elif not as_json:
        for line in status:
            _say(line)


def from_here(root: Path) -> str:
    """Returns a project's root as it is named from where the user stands."""
    try:
        cwd = os.path.realpath(Path.cwd())
    except FileNotFoundError:  # removed, with the layer that was in it
        return str(root)
    # Where a link has led there, a shell takes `cd ..` back along the link.
    shell = os.environ.get("PWD", cwd)
    if shell != cwd and os.path.realpath(shell) == cwd and cwd != str(root):
        return str(root)
    return PurePath(os.path.relpath(root)).as_posix()


def tell_root(root: Path) -> None:
    """Says what paths are relative to, where that is not the current folder."""
    here = from_here(root)
    if here != ".":
        _say(f"Paths are from '{here}'.")


def settle(root: Path, *, dry_run: bool) -> None:
    """Ends what a killed run has left in a folder, and says so."""
    from scaffold.journal import recover

    said = recover(root, dry_run=dry_run)
    if said:
        _say(f"mplayer: {said}")


def _conflict(plan: Plan) -> str:
    names = " and ".join(f"'{change.path}'" for change in plan.conflicts)
    one = len(plan.conflicts) == 1
    if all(change.after is None for change in plan.conflicts):
        verb = "has" if one else "have"
        return (
            f"mplayer: {names} {verb} been edited since; nothing was removed. See what"
            f" would go with --diff, or remove {'it' if one else 'them'} with --force."
        )
    return (
        f"mplayer: {names} {'exists' if one else 'exist'} with other contents; nothing"
        " was written. See the changes with --diff, or replace with --force."
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr)
