"""How a command ends: its exit code, and the one line of an error."""

from __future__ import annotations

import functools
import os
import sys
from typing import TYPE_CHECKING, ParamSpec

import typer

from scaffold.errors import DONE, INTERRUPTED, USAGE, MplayerError

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")


def outcome(command: Callable[P, int]) -> Callable[P, None]:
    """Makes a command exit with the code that it returns, or with that of its error."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = command(*args, **kwargs)
        except MplayerError as error:
            print(f"mplayer: {error}", file=sys.stderr)
            code = USAGE
        except BrokenPipeError:
            # Whoever read has seen enough. What was to be written has been by now; what
            # is left to say must not fail once more at the exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = DONE
        except OSError as error:
            # A full device, a folder that is gone: no fault of ours.
            name = f"'{error.filename}': " if error.filename else ""
            print(f"mplayer: {name}{error.strerror or error}.", file=sys.stderr)
            code = USAGE
        except (KeyboardInterrupt, typer.Abort):
            print("mplayer: interrupted.", file=sys.stderr)
            code = INTERRUPTED
        raise typer.Exit(code)

    return run
