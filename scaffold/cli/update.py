"""`mplayer update`: generated code as this mplayer writes it, with all edits kept."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scaffold.cli.options import Diff, DryRun, Json, Templates
from scaffold.errors import DONE, FINDINGS

if TYPE_CHECKING:
    from scaffold.update import Update


def update(
    name: Annotated[
        str | None,
        typer.Argument(help="A layer; without it, all of them.", show_default=False),
    ] = None,
    weights: Annotated[
        str | None, typer.Option(metavar="SPEC", help="New weights, for one layer.")
    ] = None,
    arg: Annotated[
        list[str] | None,
        typer.Option(metavar="SPEC", help="New constructor arguments, all of them."),
    ] = None,
    call: Annotated[
        str | None, typer.Option(metavar="EXPR", help="What it computes from now on.")
    ] = None,
    kind: Annotated[str | None, typer.Option(metavar="KIND", help="New kind.")] = None,
    with_: Annotated[
        str | None,
        typer.Option("--with", metavar="LIST", help="regularizers,constraints."),
    ] = None,
    doc: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="New first line of the docstring."),
    ] = None,
    templates: Templates = None,
    check: Annotated[
        bool, typer.Option("--check", help="List what is stale; exit 1 if anything is.")
    ] = False,
    dry_run: DryRun = False,
    diff: Diff = False,
    json: Json = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace edited files; merge nothing.")
    ] = False,
) -> int:
    """Bring generated code up to this mplayer, or to a new spec, by a merge.

    Files that were not edited are replaced, edited ones merged. Where both changed the
    same lines, both stay, between conflict markers as git writes them. An empty text,
    as in --call '', takes the kind's default again.
    """
    from scaffold.cli.show import settle, show
    from scaffold.errors import MplayerError
    from scaffold.plan import Plan
    from scaffold.project import team_templates
    from scaffold.publish import publish
    from scaffold.record import find_root, read_records, select
    from scaffold.update import plan_update

    changes = _changes(
        weights=weights, call=call, kind=kind, doc=doc, arguments=arg, options=with_
    )
    if changes and name is None:
        raise MplayerError(
            "A new spec is for one layer. Name it: mplayer update MyLayer --weights ..."
        )
    views = check or dry_run or diff
    writes = not views
    try:
        root = find_root(Path.cwd())
    except MplayerError as error:
        if name is not None:
            raise
        # A hook runs everywhere, also where the last layer has been removed.
        show(
            Plan(Path.cwd(), ()),
            written=False,
            diff=diff,
            as_json=json,
            status=[f"Nothing to update: {error}"],
            report={"stale": [], "findings": []},
        )
        return DONE
    settle(root, dry_run=views)
    records = read_records(root)
    chosen = records if name is None else (select(records, name),)
    team = team_templates(Path.cwd(), templates)
    done = plan_update(root, chosen, changes=changes, team=team, force=force)
    if writes:
        publish(done.plan)
    status = [f"mplayer: {finding}" for finding in done.findings]
    if check and done.stale:
        asked = [part for part in sys.argv[1:] if part != "--check"]
        command = shlex.join(["mplayer", *asked] if changes else ["mplayer", "update"])
        status = [f"mplayer: Bring them up to date: {command}"]
    elif not (done.stale or status):
        status = ["All generated code is up to date."]
    if check and not (diff or json):
        _list_stale(root, done, status)
    else:
        show(
            done.plan,
            written=writes,
            diff=diff,
            as_json=json,
            status=status,
            report={"stale": [*map(str, done.stale)], "findings": [*done.findings]},
        )
    return FINDINGS if done.findings or (check and done.stale) else DONE


def _list_stale(root: Path, done: "Update", status: list[str]) -> None:
    from scaffold.cli.show import tell_root

    for path in done.stale:
        print(f"stale  {path}")
    if done.stale or done.findings:
        tell_root(root)
    for line in status:
        typer.echo(line, err=True)


def _changes(
    arguments: list[str] | None, options: str | None, **texts: str | None
) -> dict[str, Any]:
    """What shall be otherwise, by the fields of `Request`; "" is the default again."""
    changes: dict[str, Any] = {
        key: text or None for key, text in texts.items() if text is not None
    }
    if arguments is not None:
        changes["arguments"] = tuple(filter(None, arguments))
    if options is not None:
        changes["options"] = options
    return changes
