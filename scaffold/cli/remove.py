"""`mplayer remove`: takes back what `mplayer new` has written."""

from pathlib import Path
from typing import Annotated

import typer

from scaffold.cli.options import Diff, DryRun, Json
from scaffold.errors import DONE, FINDINGS


def remove(
    name: Annotated[
        str,
        typer.Argument(help="The layer: MyLayer, or its module.", show_default=False),
    ],
    dry_run: DryRun = False,
    diff: Diff = False,
    json: Json = False,
    force: Annotated[
        bool, typer.Option("--force", help="Remove edited files too.")
    ] = False,
) -> int:
    """Take back a layer: its module, its test, its export and its record.

    Files that were moved are found. Edited ones stay, unless forced; so do folders that
    were there before it. The exit code is 1 where something is left to be done by hand.
    """
    from scaffold.cli.show import settle, show
    from scaffold.publish import publish
    from scaffold.record import find_root, read_records, select
    from scaffold.remove import plan_remove

    root = find_root(Path.cwd())
    settle(root, dry_run=dry_run or diff)
    records = read_records(root)
    record = select(records, name)
    others = [other for other in records if other is not record]
    plan, findings = plan_remove(root, record, others, force=force)
    written = not (dry_run or diff or plan.conflicts)
    if written:
        publish(plan)
    show(
        plan,
        written=written,
        diff=diff,
        as_json=json,
        status=[f"mplayer: {finding}" for finding in findings],
        report={"findings": [*findings]},
    )
    return FINDINGS if plan.conflicts or findings else DONE
