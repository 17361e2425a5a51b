"""The command line: one thin module a command, and one way out.

Start-up is a feature. A command is imported when it is called, and imports what it
needs inside its function; rich, TensorFlow and cookiecutter are imported by no module
that every command loads. Signatures are not written under `from __future__ import
annotations`: typer evaluates those that are texts, and does so twice.
"""

import importlib
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from scaffold import __version__
from scaffold.cli.outcome import outcome
from scaffold.errors import INTERRUPTED

COMMANDS = ("new", "init", "kinds", "update", "remove")
"""Each is the function of this name in the module of this name."""


class _Commands(TyperGroup):
    """Makes a command when it is called, or when the help lists them all."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 -- typer's own
        super().__init__(**attributes)
        # Typer suggests one of these names for another.
        commands: dict[str, Any] = dict.fromkeys(COMMANDS)
        self.commands = commands

    def get_command(self, _ctx: object, cmd_name: str) -> Any:  # noqa: ANN401
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"scaffold.cli.{cmd_name}")
        alone = typer.Typer(rich_markup_mode=None, add_completion=False)
        alone.command()(outcome(getattr(module, cmd_name)))
        return typer.main.get_command(alone)


app = typer.Typer(
    name="mplayer",
    cls=_Commands,
    help="Writes custom Keras layers, and the tests that prove them, for every dtype "
    "policy.",
    no_args_is_help=True,
    # Rich costs a third of a run, for colours in the help.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(value: bool) -> None:
    if value:
        print(f"mplayer {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    pass


def run() -> None:
    """Runs the command that the arguments name, and exits with its code."""
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # whoever started us has closed it
            mode = "r" if name == "stdin" else "w"
            stream = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, stream)
        elif name != "stdin" and hasattr(stream, "reconfigure"):
            # A name that the terminal cannot show must not end in a traceback.
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
