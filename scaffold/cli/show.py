"""Views of one plan: lines, a diff or JSON on standard output, status beside it."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import PurePosixPath

    from scaffold.plan import Plan
    from scaffold.project import Placement

_DONE = {"create": "created", "update": "updated"}
_TO_DO = {"create": "would create", "update": "would update"}


def show(
    plan: Plan,
    place: Placement,
    test: PurePosixPath,
    *,
    written: bool,
    diff: bool,
    as_json: bool,
) -> None:
    """Prints what was done, or would be.

    Args:
        plan: The plan.
        place: Where its files go, and why.
        test: The test file, relative to the root of the plan.
        written: Whether the plan has been published.
        diff: Whether to print the plan as a diff.
        as_json: Whether to print it as JSON.
    """
    command = f"{place.command} {shlex.quote(str(test))}"
    if as_json:
        import json

        report = {
            **plan.as_json(),
            "written": written,
            "reason": place.reason,
            "command": command,
        }
        if diff:
            report["diff"] = plan.diff()
        print(json.dumps(report, indent=2))
    elif diff:
        print(plan.diff(), end="")
    else:
        words = _DONE if written else _TO_DO
        width = max(len(words.get(c.status, c.status)) for c in plan.changes) + 2
        for change in plan.changes:
            print(f"{words.get(change.status, change.status):<{width}}{change.path}")
    sys.stdout.flush()
    if plan.conflicts:
        names = " and ".join(f"'{change.path}'" for change in plan.conflicts)
        verb = "exists" if len(plan.conflicts) == 1 else "exist"
        _say(
            f"mplayer: {names} {verb} with other contents; nothing was written. See "
            "the changes with --diff, or replace with --force."
        )
    elif not (diff or as_json):
        _say(place.reason)
        if written:
            if place.command_hint:
                _say(f"Once, so that its test finds the layer:  {place.command_hint}")
            _say(f"Run the matrix:  {command}")


def _say(text: str) -> None:
    print(text, file=sys.stderr)
