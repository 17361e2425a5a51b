"""`mplayer new`: a layer module and its mixed-precision test."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

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
        typer.Option(metavar="KIND", help="dense or scale; without it, what fits."),
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
    layer_dir: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of the module.")
    ] = None,
    test_dir: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of the test.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what would be written; write nothing."),
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Show it as a diff; write nothing.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Report as JSON on standard output.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace files that differ.")
    ] = False,
) -> int:
    """Write a Keras layer and the test file that proves it under every dtype policy.

    Without --weights it asks, on a terminal; elsewhere it takes the defaults of the
    kind.
    """
    from scaffold.cli.show import show
    from scaffold.generate import plan_layer
    from scaffold.grammar import parse, parse_name
    from scaffold.project import place
    from scaffold.publish import publish

    parse_name(name)
    arguments = arg or []
    if weights is None and not json and sys.stdin.isatty() and sys.stderr.isatty():
        from scaffold.cli.ask import ask

        weights, arguments, call = ask(name, kind, arguments, call)
    spec = parse(
        name,
        weights=weights,
        arguments=arguments,
        call=call,
        kind=kind,
        options=with_,
        doc=doc,
    )
    where = place(Path.cwd(), layer_dir, test_dir)
    plan = plan_layer(spec, where, force=force)
    written = not (dry_run or diff or plan.conflicts)
    if written:
        publish(plan)
    test = where.test_dir / f"test_{spec.module}.py"
    show(plan, where, test, written=written, diff=diff, as_json=json)
    return FINDINGS if plan.conflicts else DONE
