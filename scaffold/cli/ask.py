"""Questions on a terminal: of `mplayer new`, and how each is asked and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from scaffold.errors import MplayerError
from scaffold.grammar import parse, require_some_call, split_arguments
from scaffold.kinds import kind_names, load_kind
from scaffold.spec import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


def ask(
    name: str,
    kind: str | None,
    arguments: Sequence[str],
    call: str | None,
    team: Path | None,
) -> tuple[str, list[str], str | None]:
    """Asks for what the command line did not say.

    Args:
        name: The class name.
        kind: The kind, whose defaults are offered; None: that of the first kind.
        arguments: Arguments that were given; if there are any, none are asked for.
        call: The call that was given; if it is None it is asked for.
        team: A team's folder of templates.

    Returns:
        Texts for the weights, the arguments and the call; None is the kind's own call.

    Raises:
        MplayerError: If the kind is unknown.
    """
    defaults = load_kind(kind or kind_names(team)[0], team)

    def described(weights: str, chosen: Sequence[str] = arguments) -> None:
        require_some_call(Request(name, weights, tuple(chosen), kind=kind), team)

    weights = prompt("Weights", defaults.weights, described)
    chosen = list(arguments)
    if not chosen:
        offered = ", ".join(defaults.arguments) or "none"
        answer = prompt(
            "Constructor arguments",
            offered,
            lambda text: described(weights, split_arguments(text)),
        )
        chosen = split_arguments(answer)

    def check(text: str) -> object:
        return parse(
            name, weights=weights, arguments=chosen, call=text, kind=kind, team=team
        )

    if call is None:
        try:
            default = parse(
                name, weights=weights, arguments=chosen, kind=kind, team=team
            ).call
        except MplayerError as reason:
            typer.echo(reason, err=True)
            default = None
        answer = prompt("What `call` returns", default, check)
        call = None if answer == default else answer
    return weights, chosen, call


def prompt(
    question: str,
    default: str | None,
    check: Callable[[str], object],
    choices: Sequence[str] = (),
) -> str:
    """Asks until an answer passes.

    Args:
        question: What is asked.
        default: What an empty answer means; None: there must be one.
        check: Raises MplayerError if it does not pass.
        choices: What the answer must be one of, if there are any.

    Returns:
        The answer.
    """

    def checked(text: str) -> str:
        if choices and text not in choices:
            raise typer.BadParameter(f"{text!r} is none of {', '.join(choices)}.")
        try:
            check(text)
        except MplayerError as error:
            raise typer.BadParameter(str(error)) from error
        return text

    among = f" ({', '.join(choices)})" if choices else ""
    answer: str = typer.prompt(
        question + among,
        default=default,
        show_default=bool(default),
        value_proc=checked,
        err=True,
    )
    return answer
