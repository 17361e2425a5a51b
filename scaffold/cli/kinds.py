"""`mplayer kinds`: the catalogue."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scaffold.cli.options import Diff, DryRun, Json, Templates
from scaffold.errors import DONE, FINDINGS

if TYPE_CHECKING:
    from scaffold.kinds import Kind


def kinds(
    kind: Annotated[
        str | None,
        typer.Argument(help="One kind, in full.", show_default=False),
    ] = None,
    templates: Templates = None,
    eject: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="Copy its templates out, to edit them."),
    ] = None,
    dry_run: DryRun = False,
    diff: Diff = False,
    json: Json = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace ejected files that differ.")
    ] = False,
) -> int:
    """Show the kinds of layers, what each is for and what it guards against.

    --eject copies a kind to the team's templates, the folder that --templates or
    `[tool.mplayer]` names, where it comes before ours.
    """
    from scaffold.kinds import kind_names, load_kind, packaged_kinds
    from scaffold.project import team_templates

    if eject is not None:
        return _eject(eject, templates, dry_run, diff, json, force)
    team = team_templates(Path.cwd(), templates)
    if kind is not None:
        _show_one(load_kind(kind, team), as_json=json)
        return DONE
    names = dict.fromkeys((*kind_names(team), *packaged_kinds()))
    found = [load_kind(name, team) for name in names]
    if json:
        _print_json([_table(kind) for kind in found])
        return DONE
    width = max(map(len, names)) + 2
    for each in found:
        print(f"{each.name:<{width}}{each.summary}")
    typer.echo("More of one:  mplayer kinds dense", err=True)
    return DONE


def _show_one(kind: "Kind", *, as_json: bool) -> None:
    if as_json:
        _print_json(_table(kind))
        return
    import textwrap

    rows = {
        "For": kind.summary,
        "Hazard": kind.hazard,
        "Weights": kind.weights,
        "Arguments": ", ".join(kind.arguments) or "none",
        "Example": kind.example,
        "Templates": str(kind.templates),
    }
    print(kind.name)
    for title, text in rows.items():
        head = f"  {title:<11}"
        breaks = title not in ("Example", "Templates")
        lines = textwrap.wrap(text, 74) if breaks else [text]
        print(head + f"\n{'':<13}".join(lines))


def _table(kind: "Kind") -> dict[str, object]:
    return {
        "name": kind.name,
        "summary": kind.summary,
        "hazard": kind.hazard,
        "weights": kind.weights,
        "arguments": [*kind.arguments],
        "example": kind.example,
    }


def _print_json(value: object) -> None:
    import json

    print(json.dumps(value, indent=2))


def _eject(
    name: str, templates: str | None, dry_run: bool, diff: bool, json: bool, force: bool
) -> int:
    from scaffold.cli.show import settle, show
    from scaffold.kinds import load_kind
    from scaffold.plan import make_plan
    from scaffold.project import ejected_to
    from scaffold.publish import publish

    kind = load_kind(name)
    root, folder = ejected_to(Path.cwd(), templates)
    source = kind.templates / "layer" / "kinds" / name
    texts = {
        folder / "layer" / "kinds" / name / file.relative_to(source).as_posix(): (
            file.read_text("utf-8")
        )
        for file in sorted(source.rglob("*"))
        if file.is_file()
    }
    settle(root, dry_run=dry_run or diff)
    plan = make_plan(root, texts, {}, force=force)
    written = not (dry_run or diff or plan.conflicts)
    if written:
        publish(plan)
    status = [
        "mplayer takes them from there as long as pyproject.toml says so:",
        f'[tool.mplayer] templates = "{folder}"',
    ]
    show(plan, written=written, diff=diff, as_json=json, status=status)
    return FINDINGS if plan.conflicts else DONE
