"""`mplayer new`: a layer module and its mixed-precision test."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scaffold.cli.options import Diff, DryRun, Json, Templates
from scaffold.errors import DONE, FINDINGS

if TYPE_CHECKING:
    from scaffold.spec import LayerSpec, Request


def new(
    name: Annotated[
        str | None, typer.Argument(help="The class: MyLayer.", show_default=False)
    ] = None,
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
    from_: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="FILE", help="Many layers, from a manifest: layers.toml."
        ),
    ] = None,
    dialect: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="tf, or keras: keras.ops alone, for TensorFlow, JAX and PyTorch.",
        ),
    ] = None,
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
    from scaffold.cli.show import from_here, settle, show
    from scaffold.generate import plan_layers
    from scaffold.project import (
        has_templates,
        place,
        project_dialect,
        team_templates,
    )
    from scaffold.publish import publish
    from scaffold.spec import Request

    team = team_templates(Path.cwd(), templates)
    if from_ is not None:
        from scaffold.manifest import read_manifest

        _require_alone(name, weights, arg, call, kind, with_, doc, dialect)
        layers = read_manifest(Path(from_), team, project_dialect(Path.cwd()))
    else:
        asked = Request(
            name or "",
            weights,
            tuple(arg or ()),
            call,
            kind,
            with_,
            doc,
            dialect or project_dialect(Path.cwd()),
        )
        layers = [_one(asked, team, quiet=json)]
    where = place(Path.cwd(), layer_dir, test_dir)
    settle(where.root, dry_run=dry_run or diff)
    plan = plan_layers(layers, where, team=team, force=force)
    written = not (dry_run or diff or plan.conflicts)
    if written:
        publish(plan)
    tests = where.test_dir
    if from_ is None:
        tests /= f"test_{layers[0][1].module}.py"
    here = from_here(where.root)
    enter = "" if here == "." else f"cd {shlex.quote(here)} && "
    command = f"{enter}{where.command} {shlex.quote(str(tests))}"
    status = [] if diff else [where.reason]
    if written and where.command_hint:
        hint = enter + where.command_hint
        status.append(f"Once, so that tests find the layer:  {hint}")
    if written and templates is not None and not has_templates(Path.cwd()):
        status.append(
            "mplayer update takes these templates if pyproject.toml names them:"
            f' [tool.mplayer] templates = "{templates}"'
        )
    if written:
        status.append("Recorded under .mplayer/, for `mplayer update` and `remove`.")
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


def _one(
    asked: "Request", team: Path | None, *, quiet: bool
) -> "tuple[Request, LayerSpec]":
    """Returns the one layer of a command line, asking for what it leaves out."""
    from scaffold.errors import MplayerError
    from scaffold.grammar import parse_name, parse_request
    from scaffold.kinds import load_kind

    if not asked.name:
        raise MplayerError(
            "Which layer? Give its class, as in `mplayer new MyLayer`, or a manifest of"
            " many: --from layers.toml."
        )
    parse_name(asked.name)
    kind = asked.kind
    terminal = sys.stdin.isatty() and sys.stderr.isatty() and not quiet
    if asked.weights is None and terminal and not (kind and load_kind(kind, team).body):
        from scaffold.cli.ask import ask

        weights, arguments, call = ask(
            asked.name, kind, asked.arguments, asked.call, team
        )
        asked = asked._replace(weights=weights, arguments=tuple(arguments), call=call)
    return asked, parse_request(asked, team)


def _require_alone(*given: object) -> None:
    from scaffold.errors import MplayerError

    if any(given):
        raise MplayerError(
            "--from: the manifest says what each layer is. Leave out NAME and the"
            " options that describe a layer."
        )
