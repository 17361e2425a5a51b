"""`mplayer new`: a layer module and its mixed-precision test."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from scaffold.cli.options import Diff, DryRun, Json, Templates
from scaffold.errors import DONE, FINDINGS


def new(
    name: Annotated[
        str, typer.Argument(help="The class: MyLayer.", show_default=False)
    ],
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Weights: 'w,b', or 'kernel[in,units]=he_normal, n[]:int32:frozen'.",
        ),
    ] = None,
    arg: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SPEC",
            help="A constructor argument, each its own --arg: 'units:int=32', "
            "'activation:activation=relu'.",
        ),
    ] = None,
    call: Annotated[
        str | None,
        typer.Option(
            metavar="EXPR",
            help="What the layer computes: 'activation(inputs @ kernel + bias)'.",
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="KIND", help="See `mplayer kinds`; without it, what fits."
        ),
    ] = None,
    with_: Annotated[
        str,
        typer.Option(
            "--with",
            metavar="LIST",
            help="Further arguments for each trained weight: regularizers,constraints.",
        ),
    ] = "",
    doc: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="First line of the layer's docstring."),
    ] = None,
    dialect: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="tf, or keras: keras.ops alone, for TensorFlow, JAX and PyTorch.",
        ),
    ] = "tf",
    layer_dir: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of the module.")
    ] = None,
    test_dir: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of the test.")
    ] = None,
    templates: Templates = None,
    dry_run: DryRun = False,
    diff: Diff = False,
    json: Json = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace files that differ.")
    ] = False,
) -> int:
    """Write a Keras layer and the test file that proves it under every dtype policy.

    Without --weights it asks, on a terminal; elsewhere it takes the defaults of the
    kind.
    """
    from scaffold.cli.show import settle, show
    from scaffold.generate import plan_layer
    from scaffold.grammar import parse_dialect, parse_name, parse_request
    from scaffold.project import place, team_templates
    from scaffold.publish import publish
    from scaffold.spec import Request

    parse_name(name)
    dialect = parse_dialect(dialect)
    team = team_templates(Path.cwd(), templates)
    arguments = arg or []
    if weights is None and not json and sys.stdin.isatty() and sys.stderr.isatty():
        from scaffold.cli.ask import ask

        weights, arguments, call = ask(name, kind, arguments, call, team)
    request = Request(name, weights, tuple(arguments), call, kind, with_, doc, dialect)
    spec = parse_request(request, team)
    where = place(Path.cwd(), layer_dir, test_dir)
    settle(where.root, dry_run=dry_run or diff)
    plan = plan_layer(request, spec, where, team=team, force=force)
    written = not (dry_run or diff or plan.conflicts)
    if written:
        publish(plan)
    test = where.test_dir / f"test_{spec.module}.py"
    command = f"{where.command} {shlex.quote(str(test))}"
    status = [] if diff else [where.reason]
    if written and where.command_hint:
        status.append(f"Once, so that its test finds the layer:  {where.command_hint}")
    if written:
        status.append(f"Run the matrix:  {command}")
    show(
        plan,
        written=written,
        diff=diff,
        as_json=json,
        status=status,
        report={"reason": where.reason, "command": command},
    )
    return FINDINGS if plan.conflicts else DONE
