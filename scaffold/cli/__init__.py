"""The command line: one thin module a command, and one way out.

Start-up is a feature. A command imports what it needs inside its function; rich,
TensorFlow and cookiecutter are imported by no module that every command loads. Their
signatures are not written under `from __future__ import annotations`: typer evaluates
those of all commands, and those that are texts twice.
"""

import sys
from typing import Annotated

import typer

from scaffold import __version__
from scaffold.cli.init import init
from scaffold.cli.kinds import kinds
from scaffold.cli.new import new
from scaffold.cli.outcome import outcome
from scaffold.cli.remove import remove
from scaffold.cli.update import update
from scaffold.errors import INTERRUPTED

app = typer.Typer(
    name="mplayer",
    help="Writes custom Keras layers, and the tests that prove them, for every dtype "
    "policy.",
    no_args_is_help=True,
    # Rich costs a third of a run, for colours in the help.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (new, init, kinds, update, remove):
    app.command()(outcome(command))


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
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A name that the terminal cannot show must not end in a traceback.
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
