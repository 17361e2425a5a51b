"""What the cookiecutter templates know of mplayer: an extension of Jinja.

`cookiecutter PATH-OR-URL` finds it in this repository, with nothing else installed.
What it renders is what `mplayer` renders, since it calls the same functions. An answer
that cannot be stops cookiecutter before it has made a folder.
"""

from __future__ import annotations

import functools
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from cookiecutter.exceptions import FailedHookException
from jinja2.ext import Extension

from scaffold import __version__
from scaffold.errors import MplayerError
from scaffold.generate import new_record
from scaffold.grammar import parse_request, require_some_call, split_arguments
from scaffold.kinds import load_kind
from scaffold.names import (
    module_name,
    parse_name,
    require_distribution_name,
    require_package_name,
)
from scaffold.project import Placement
from scaffold.record import record_texts
from scaffold.rendering import render
from scaffold.spec import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jinja2 import Environment

_PLAIN = " -_.,:/+@#=<>~[]*%&?"
"""What may stand in a requirement, or an address, beside letters and digits."""
P = ParamSpec("P")
R = TypeVar("R")


class WrongAnswerError(FailedHookException, MplayerError):  # type: ignore[misc]
    """An answer that cannot be, which both programs report without a traceback."""


class MplayerExtension(Extension):
    """The filters of the cookiecutter templates."""

    def __init__(self, environment: Environment) -> None:
        """Adds them to an environment."""
        super().__init__(environment)
        environment.globals["mplayer_version"] = __version__
        filters: dict[str, Callable[..., str]] = {
            "layer_module": layer_module,
            "layer_text": layer_text,
            "answered": answered,
            "weights_of": weights_of,
            "folder_name": folder_name,
            "distribution": require_distribution_name,
            "package": require_package_name,
            "one_line": one_line,
            "requirement": requirement,
            "toml_string": toml_string,
        }
        for name, function in filters.items():
            environment.filters[name] = _reporting(function)


def layer_module(name: str) -> str:
    """Returns the module of a class: `MyLayer` gives `my_layer`.

    Raises:
        MplayerError: If a layer cannot have this name.
    """
    return module_name(parse_name(name))


def layer_text(answers: Mapping[str, Any], part: str, package: str = "") -> str:
    """Returns a file of the layer that the answers describe.

    Args:
        answers: `cookiecutter`, with the fields of a `Request`.
        part: `module`, `test` or `record`.
        package: The package of a team repository; "" for a pair that stands alone.

    Raises:
        MplayerError: If the answers describe no layer.
    """
    return _layer_texts(_request(answers), package)[part]


def answered(answers: Mapping[str, Any]) -> str:
    """Returns "", if there is a layer that has been described like this so far.

    Args:
        answers: `cookiecutter`, with what has been answered yet.

    Raises:
        MplayerError: If there is none.
    """
    request = _request(answers)
    if "weights" in answers and "call" not in answers:
        require_some_call(request)
    else:
        parse_request(request)
    return ""


def weights_of(kind: str) -> str:
    """Returns the weights that a kind has of itself, in the weight grammar.

    Raises:
        MplayerError: If there is no such kind.
    """
    return load_kind(kind).weights


def folder_name(text: str) -> str:
    """Returns a folder's name, if it leads nowhere else.

    Raises:
        MplayerError: If it does.
    """
    if not text.strip() or text != text.strip() or {*text} & {*'/\\:*?"<>|\0'}:
        fault = "is no name of one folder"
    elif text.startswith((".", "-", "~")) or text.endswith("."):
        fault = "is no ordinary name of a folder"
    else:
        return text
    raise MplayerError(f"folder: {text!r} {fault}. Use a name such as 'my_layer'.")


def one_line(text: str, what: str) -> str:
    """Returns a text that stands in one line of many files.

    Raises:
        MplayerError: If it cannot.
    """
    line = text.strip()
    if not line:
        raise MplayerError(f"--{what}: is empty. Write one line of plain text.")
    strange = next((x for x in line if not x.isprintable() or x in '\\"{}'), None)
    if strange:
        raise MplayerError(
            f"--{what}: {text!r} holds {strange!r}. Write one line of plain text."
        )
    return line


def requirement(text: str) -> str:
    """Returns what pip shall install, if a shell takes it between quotes as it is.

    Raises:
        MplayerError: If it cannot be.
    """
    line = one_line(text, "mplayer")
    strange = next((x for x in line if not x.isalnum() and x not in _PLAIN), None)
    if strange:
        raise MplayerError(
            f"--mplayer: {text!r} holds {strange!r}. Write what pip installs, as in"
            f" 'mplayer-scaffold=={__version__}'."
        )
    return line


def toml_string(text: str) -> str:
    """Returns a text as TOML and YAML have it, in quotes."""
    import json

    return json.dumps(text, ensure_ascii=False)


def _request(answers: Mapping[str, Any]) -> Request:
    return Request(
        name=answers["name"],
        weights=answers.get("weights") or None,
        arguments=tuple(split_arguments(answers.get("arguments", ""))),
        call=answers.get("call") or None,
        kind=answers.get("kind") or None,
        options=answers.get("with", ""),
        doc=answers.get("doc") or None,
        dialect=answers["dialect"],
    )


@functools.cache
def _layer_texts(request: Request, package: str) -> dict[str, str]:
    spec = parse_request(request)
    layers = PurePosixPath(f"src/{package}/layers") if package else PurePosixPath()
    place = Placement(
        root=Path(),
        layer_dir=layers,
        test_dir=PurePosixPath("tests/layers") if package else PurePosixPath(),
        package=f"{package}.layers" if package else "",
        init=layers / "__init__.py" if package else None,
        packages=(),
        reason="",
        command="pytest",
        command_hint="",
    )
    texts = render(spec, place.package)
    record = new_record(request, spec, place, texts)
    return {
        "module": texts.module,
        "test": texts.test,
        "record": record_texts(record, texts.module, texts.test)[record.path],
    }


def _reporting(function: Callable[P, R]) -> Callable[P, R]:
    @functools.wraps(function)
    def filtered(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except MplayerError as error:
            raise WrongAnswerError(str(error)) from error

    return filtered
