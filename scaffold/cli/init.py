"""`mplayer init`: a repository for a team's layers."""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from scaffold.cli.options import Diff, DryRun, Json
from scaffold.errors import DONE, FINDINGS


def init(
    name: Annotated[
        str,
        typer.Argument(
            help="The repository, and the distribution that it makes: acme-layers.",
            show_default=False,
        ),
    ],
    package: Annotated[
        str | None, typer.Option(metavar="NAME", help="The package that is imported.")
    ] = None,
    description: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What it is, in one line.")
    ] = None,
    author: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Whose it is.")
    ] = None,
    license_: Annotated[
        str | None,
        typer.Option(
            "--license",
            metavar="NAME",
            help="Apache-2.0, MIT, BSD-3-Clause or Proprietary.",
        ),
    ] = None,
    layer: Annotated[
        str | None, typer.Option(metavar="NAME", help="The class of the first layer.")
    ] = None,
    weights: Annotated[
        str | None, typer.Option(metavar="SPEC", help="Its weights, as in `new`.")
    ] = None,
    arg: Annotated[
        list[str] | None,
        typer.Option(metavar="SPEC", help="A constructor argument, as in `new`."),
    ] = None,
    call: Annotated[
        str | None, typer.Option(metavar="EXPR", help="What it computes, as in `new`.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="Its kind: see `mplayer kinds`.")
    ] = None,
    with_: Annotated[
        str | None,
        typer.Option("--with", metavar="LIST", help="regularizers,constraints."),
    ] = None,
    doc: Annotated[
        str | None, typer.Option(metavar="TEXT", help="First line of its docstring.")
    ] = None,
    dialect: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="tf, or keras: of all layers, as in `new`."),
    ] = None,
    mplayer: Annotated[
        str | None,
        typer.Option(
            metavar="REQUIREMENT",
            help="What pip installs for `mplayer update --check`.",
        ),
    ] = None,
    dry_run: DryRun = False,
    diff: Diff = False,
    json: Json = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace files that differ.")
    ] = False,
) -> int:
    """Set up a repository: packaging, lint, CI, shared fixtures and a first layer.

    On a terminal, with a name alone, it asks; else it takes the defaults. It is the
    same template that `cookiecutter` finds in mplayer's repository.
    """
    from scaffold.cli.show import settle, show
    from scaffold.errors import MplayerError
    from scaffold.names import require_distribution_name
    from scaffold.plan import make_plan
    from scaffold.publish import publish
    from scaffold.team import ask_team_repo, render_team_repo

    given = {
        "package": package,
        "description": description,
        "author": author,
        "license": license_,
        "name": layer,
        "weights": weights,
        "arguments": None if arg is None else ", ".join(arg),
        "call": call,
        "kind": kind,
        "with": with_,
        "doc": doc,
        "dialect": dialect,
        "mplayer": mplayer,
    }
    answers = {key: answer for key, answer in given.items() if answer is not None}
    terminal = sys.stdin.isatty() and sys.stderr.isatty()
    ask = terminal and not (answers or dry_run or diff or json)
    answers["slug"] = require_distribution_name(name)
    if ask:
        from scaffold.cli.ask import prompt

        answers = ask_team_repo(answers, prompt)
    folder, texts = render_team_repo(answers)
    root = Path.cwd() / folder
    if os.path.lexists(root) and not root.is_dir():
        raise MplayerError(f"NAME: '{folder}' is there, and no folder. Choose another.")
    settle(root, dry_run=dry_run or diff)
    plan = make_plan(root, texts, {}, force=force)
    written = not (dry_run or diff or plan.conflicts)
    if written:
        publish(plan)
    enter = f"cd {shlex.quote(folder)}"
    status = [f"Go on:  {enter} && git init && pip install -e '.[test]' && pytest"]
    show(
        plan, written=written, diff=diff, as_json=json, status=status if written else []
    )
    return FINDINGS if plan.conflicts else DONE
