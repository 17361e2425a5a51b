"""A manifest -> specs: many layers from one TOML file, or all that is wrong with it.

    [[layer]]
    name = "MyLayer"
    weights = "w,b"
    arguments = ["units:int=32"]

The keys are those of the command line; `scaffold.grammar` says what each means.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from scaffold.errors import MplayerError, nearest
from scaffold.grammar import (
    parse_argument,
    parse_dialect,
    parse_doc,
    parse_name,
    parse_options,
    parse_request,
    parse_weights,
)
from scaffold.kinds import read_toml
from scaffold.spec import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from scaffold.spec import LayerSpec

_KEYS = ("name", "weights", "arguments", "call", "kind", "with", "doc", "dialect")


def read_manifest(
    path: Path, team: Path | None = None, dialect: str = "tf"
) -> list[tuple[Request, LayerSpec]]:
    """Returns the layers of a manifest, in its order.

    Args:
        path: The file.
        team: A team's folder of templates.
        dialect: That of layers for which the manifest names none.

    Raises:
        MplayerError: With a line for each problem: the file, its line, the layer and
            what is wrong there.
    """
    tables = read_toml(path)
    layers = tables.get("layer", [])
    if not isinstance(layers, list) or not all(isinstance(x, dict) for x in layers):
        layers = []
    lines = _Lines(path.read_text(encoding="utf-8-sig"), len(layers))
    faults = [
        f"{path}:{lines.at_top(key)}: there is no key '{key}'; layers are [[layer]]"
        " tables."
        for key in tables
        if key != "layer"
    ]
    if not layers:
        where = f":{lines.at_top('layer')}" if "layer" in tables else ""
        faults.append(f"{path}{where}: there is no layer. Begin one with [[layer]].")
    found: list[tuple[Request, LayerSpec]] = []
    modules: dict[str, int] = {}
    for number, table in enumerate(layers):
        layer = _layer(table, team, dialect)
        if not isinstance(layer, list):
            module = layer[1].module
            first = modules.setdefault(module, number)
            if first == number:
                found.append(layer)
                continue
            twice = _Fault(
                "name",
                f"this layer and the one at line {lines.of(first, 'name')} would be one"
                f" module, {module}.py. Give one another name.",
            )
            layer = [twice]
        name = table.get("name")
        what = f"{name}: " if isinstance(name, str) else ""
        faults += [
            f"{path}:{lines.of(number, fault.key)}: {what}{fault.message}"
            for fault in layer
        ]
    if faults:
        raise MplayerError("\n".join(faults))
    return found


class _Fault(NamedTuple):
    """What is wrong with a layer, and at which of its keys."""

    key: str
    message: str


def _layer(
    table: dict[str, Any], team: Path | None, dialect: str
) -> tuple[Request, LayerSpec] | list[_Fault]:
    faults = [*_table_faults(table)]
    if faults:
        return faults
    request = Request(
        name=table["name"],
        weights=table.get("weights"),
        arguments=tuple(table.get("arguments", ())),
        call=table.get("call"),
        kind=table.get("kind"),
        options=table.get("with", ""),
        doc=table.get("doc"),
        dialect=table.get("dialect", dialect),
    )
    try:
        return request, parse_request(request, team)
    except MplayerError as error:
        # The parser stops at the first fault; each text alone may have another.
        messages = dict.fromkeys([str(error), *_faults_alone(request)])
        return [_Fault(_key_of(message), message) for message in messages]


def _faults_alone(request: Request) -> list[str]:
    """What is wrong with each text of a request, whatever the others say."""
    faults = [
        _fault_of(parse_name, request.name),
        _fault_of(parse_weights, request.weights),
        *(_fault_of(parse_argument, text) for text in request.arguments),
        _fault_of(parse_options, request.options),
        _fault_of(parse_doc, request.doc),
        _fault_of(parse_dialect, request.dialect),
    ]
    return [fault for fault in faults if fault]


def _fault_of(parser: Callable[[str], object], text: str | None) -> str:
    try:
        if text is not None:
            parser(text)
    except MplayerError as error:
        return str(error)
    return ""


def _table_faults(table: dict[str, Any]) -> Iterator[_Fault]:
    for key, value in table.items():
        if key not in _KEYS:
            yield _Fault(
                key,
                f"there is no key '{key}'; the keys are {', '.join(_KEYS)}."
                f"{nearest(key, _KEYS)}",
            )
            continue
        listed = key == "arguments"
        texts = value if listed and isinstance(value, list) else [value]
        if listed != isinstance(value, list) or not all(
            isinstance(text, str) for text in texts
        ):
            must = 'a list of strings, as in ["units:int=32"]' if listed else "a string"
            yield _Fault(key, f"{key} must be {must}. Received: {value!r}.")
    if "name" not in table:
        yield _Fault("", 'the layer has no name. Add name = "MyLayer".')


def _key_of(message: str) -> str:
    """The key that a message of the grammar is about: it begins with the flag."""
    flag = re.match(r"--(\w+)|NAME", message)
    if not flag:
        return ""
    return {"NAME": "name", "--arg": "arguments"}.get(flag.group(), flag.group(1) or "")


class _Lines:
    """Where tables and keys stand in a manifest, which its parser does not say."""

    def __init__(self, text: str, count: int) -> None:
        self._lines = text.splitlines()
        starts = [
            number
            for number, line in enumerate(self._lines)
            if re.match(r"\s*\[\[\s*layer\s*\]\]", line)
        ]
        # A string of several lines may look like a table: then nothing is certain.
        self._starts = starts if len(starts) == count else [0] * count

    def at_top(self, key: str) -> int:
        """Returns the line of a key, or a table, that stands outside the layers."""
        for number, line in enumerate(self._lines, 1):
            if re.match(rf"\s*\[*\s*[\"']?{re.escape(key)}\b", line):
                return number
        return 1

    def of(self, layer: int, key: str) -> int:
        """Returns the line of a key of a layer, or of the layer, counted from 1."""
        start, *following = [*self._starts[layer:], len(self._lines)]
        for number in range(start, following[0] if following else start):
            if key and re.match(
                rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", self._lines[number]
            ):
                return number + 1
        return start + 1
