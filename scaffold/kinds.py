"""The catalogue of kinds: one folder under `templates/layer/kinds/`, and nothing else.

A kind says what names alone mean: `--weights w,b` is a kernel and a bias because the
`dense` kind has roles with these names.

A team's folder of templates has the layout of ours. It comes first: what it has
replaces ours, file by file, and its further kinds join the catalogue. A package may
ship kinds too, by an entry point of the group `mplayer.templates`.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from scaffold.errors import MplayerError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

ENTRY_POINTS = "mplayer.templates"
DIALECTS = ("tf", "keras")
"""What a layer can be written with: TensorFlow, or `keras.ops` alone."""
BOUNDS: dict[str, tuple[str, Callable[[float], bool]]] = {
    "positive": ("positive", lambda value: value > 0),
    "not negative": ("0 or more", lambda value: value >= 0),
    "small": ("above 0 and at most 1", lambda value: 0 < value <= 1),
    "share": ("from 0 to 1", lambda value: 0 <= value <= 1),
}
"""What a kind may demand of a number: its words, and whether a value meets it."""
BY_WEIGHTS = ("dense", "scale")
"""The kinds that weights alone can mean, as they are tried; others are named."""


class Role(NamedTuple):
    """What a weight is for, and what its name alone means."""

    role: str
    names: tuple[str, ...]
    shape: str
    """In the weight grammar: `[in,units]`."""
    initializer: str
    required: bool
    use: str = ""
    """How the default call uses it: `{x} @ {name}`."""
    attributes: str = ""
    """In the weight grammar: `state`, or `int32:frozen`."""
    wide: bool = False
    """Whether it is read in at least float32, unrounded by autocast."""
    tf_only: bool = False
    """Whether the tf dialect alone has it: `keras.random` counts draws by itself."""


class Body(NamedTuple):
    """What a kind computes whose template, and no expression, says how."""

    computes: str
    """For the docstring: `Normalises the last axis to a mean of 0...`."""
    inputs: str
    """The shape of one input in the weight grammar, batch apart: `[axis_1,in]`."""
    outputs: str
    any_rank: bool
    """Whether there may be any axes before the last."""
    dtypes: str = ""
    """What the dtype contract in the docstring says beyond that of all layers."""


class Kind(NamedTuple):
    """A kind of layer, as its `kind.toml` has it.

    `weights` and `arguments` are the texts of `--weights` and `--arg` that stand where
    neither is given. `large` caps the inputs that the tests feed.
    """

    name: str
    templates: Path
    """The folder of templates that has it: ours, a team's or a package's."""
    summary: str
    hazard: str
    example: str
    weights: str
    arguments: tuple[str, ...]
    large: float
    roles: tuple[Role, ...]
    body: Body | None = None
    """None: an expression over the weights, the default of `--call`."""
    help: Mapping[str, str] = MappingProxyType({})
    """What each argument is for, as the docstring says it."""
    bounds: Mapping[str, str] = MappingProxyType({})
    """Which of `BOUNDS` a number must meet."""
    tested: Mapping[str, float] = MappingProxyType({})
    """What the laws make layers with, where a default may be one that tells nothing."""
    no_keras: str = ""
    """Why it cannot be written with `keras.ops`, for the message that refuses it."""

    def role_of(self, weight: str) -> Role | None:
        """Returns the role that a weight of this name takes, if any."""
        return next((role for role in self.roles if weight in role.names), None)


@functools.cache
def templates_dir() -> Path:
    """Returns our templates: inside an installed package, beside it in a checkout."""
    package = Path(__file__).resolve().parent
    installed = package / "templates"
    return installed if installed.is_dir() else package.parent / "templates"


@functools.cache
def kind_names(team: Path | None = None) -> tuple[str, ...]:
    """Returns the names of all kinds: those that weights can mean, ours, a team's."""
    names = (*BY_WEIGHTS, *_kinds_in(templates_dir()), *_kinds_in(team))
    return tuple(dict.fromkeys(names))


@functools.cache
def packaged_kinds() -> dict[str, Path]:
    """Returns the kinds that installed packages ship, and the folder of each.

    Reading the metadata of all packages takes as long as a run of `mplayer new`, so
    only a name that is not ours, or the whole catalogue, asks for it.
    """
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    found: dict[str, Path] = {}
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name):
        try:
            spec = find_spec(entry.module)
        except ImportError:
            spec = None
        places = (spec.submodule_search_locations if spec else None) or []
        for folder in map(Path, places):
            found.update(dict.fromkeys(_kinds_in(folder), folder))
    return found


@functools.cache
def load_kind(name: str, team: Path | None = None) -> Kind:
    """Returns the kind of this name.

    Args:
        name: Its name.
        team: A team's folder of templates.

    Raises:
        MplayerError: If there is none, or its `kind.toml` is not what it should be.
    """
    for folder in (team, templates_dir()):
        if folder and _has_kind(name, folder):
            return _read_kind(name, folder)
    packaged = packaged_kinds()
    if name in packaged:
        return _read_kind(name, packaged[name])
    known = (*kind_names(team), *packaged)
    raise MplayerError(
        f"--kind: there is no kind {name!r}.{nearest(name, known)} "
        f"The kinds are {', '.join(known)}; a team's own are in the folder that"
        " --templates, or [tool.mplayer], names."
    )


def in_dialect(kind: Kind, dialect: str, team: Path | None = None) -> Kind:
    """Returns a kind as it is in a dialect, with the roles that it has there.

    Args:
        kind: The kind.
        dialect: One of `DIALECTS`.
        team: A team's folder of templates.

    Raises:
        MplayerError: If the kind has no template in this dialect.
    """
    if dialect == "tf":
        return kind
    template = kind_template(kind, dialect, "layer.py.jinja")
    folders = (team, kind.templates, templates_dir())
    if not any((f / "layer" / template).is_file() for f in folders if f):
        reason = (
            f"cannot be written in the {dialect} dialect: {kind.no_keras}"
            if kind.no_keras
            else f"is not yet written in the {dialect} dialect"
        )
        raise MplayerError(
            f"--dialect: the kind {kind.name!r} {reason}. Take --dialect tf, or another"
            " kind: see mplayer kinds."
        )
    roles = tuple(role for role in kind.roles if not role.tf_only)
    gone = {name for role in kind.roles if role.tf_only for name in role.names}
    weights = [name.strip() for name in kind.weights.split(",")]
    return kind._replace(
        roles=roles, weights=", ".join(name for name in weights if name not in gone)
    )


def kind_template(kind: Kind, dialect: str, template: str) -> str:
    """Returns where a kind has a template: that of the keras dialect in a folder."""
    folder = "" if dialect == "tf" else f"{dialect}/"
    return f"kinds/{kind.name}/{folder}{template}"


def _kinds_in(folder: Path | None) -> tuple[str, ...]:
    kinds = folder / "layer" / "kinds" if folder else None
    paths = kinds.glob("*/kind.toml") if kinds else ()
    return tuple(sorted(path.parent.name for path in paths))


def _has_kind(name: str, templates: Path) -> bool:
    """Whether a folder of templates has this very name: no path, no other case."""
    kinds = templates / "layer" / "kinds"
    names = os.listdir(kinds) if kinds.is_dir() else ()  # noqa: PTH208 -- names alone
    return name in names and _toml_of(name, templates).is_file()


def _toml_of(name: str, templates: Path) -> Path:
    return templates / "layer" / "kinds" / name / "kind.toml"


def _read_kind(name: str, templates: Path) -> Kind:
    path = _toml_of(name, templates)
    table = read_toml(path)
    roles, body = table.pop("roles", []), table.pop("body", None)
    if not _holds(roles, dict, empty=body is not None):
        raise MplayerError(f"'{path}' needs at least one [[roles]] table.")
    if body is not None and not isinstance(body, dict):
        raise MplayerError(f"'{path}': body must be a table. Received: {body!r}.")
    apart = {"name", "templates", "roles", "body"}
    values = _checked(path, "", table, Kind, apart)
    for argument, bound in values.get("bounds", {}).items():
        if bound not in BOUNDS:
            raise MplayerError(
                f"'{path}': bounds: {argument} must be one of {', '.join(BOUNDS)}."
                f" Received: {bound!r}.{nearest(bound, tuple(BOUNDS))}"
            )
    return Kind(
        name=name,
        templates=templates,
        roles=tuple(_role(path, role) for role in roles),
        body=Body(**_checked(path, "body: ", body, Body)) if body else None,
        **values,
    )


def _role(path: Path, table: dict[str, Any]) -> Role:
    role = Role(**_checked(path, "roles: ", table, Role))
    for key, form, example in (
        ("shape", r"\[(\w+(, ?\w+)*)?\]", "[in,units]"),
        ("initializer", r"\w+(\([\w.+=, -]*\))?", "glorot_uniform"),
        ("use", r"([^{}]|\{x\}|\{name\})*", "{x} @ {name}"),
    ):
        value = getattr(role, key)
        if not re.fullmatch(form, value):
            raise MplayerError(
                f"'{path}': roles: {key} must be written as in {example!r}. Received:"
                f" {value!r}."
            )
    return role


def _checked(
    path: Path,
    where: str,
    table: dict[str, Any],
    made: type[Kind | Role | Body],
    apart: Collection[str] = (),
) -> dict[str, Any]:
    """The values of a table, if they are the fields of the class made of them."""
    types = get_type_hints(made)
    known = [name for name in types if name not in apart]
    for key in table:
        if key not in known:
            raise MplayerError(
                f"'{path}': {where}there is no key '{key}'; the keys are"
                f" {', '.join(known)}.{nearest(key, known)}"
            )
    for key in known:
        if key not in table:
            if key in made._field_defaults:
                continue
            raise MplayerError(f"'{path}': {where}the key '{key}' is missing.")
        kind, holds = _TYPES[types[key]]
        if not holds(table[key]):
            raise MplayerError(
                f"'{path}': {where}{key} must be {kind}. Received: {table[key]!r}."
            )
    return {k: tuple(v) if isinstance(v, list) else v for k, v in table.items()}


def _holds(
    value: object, kind: type | tuple[type, ...], *, empty: bool = False
) -> bool:
    """Whether it is a list of values of one type."""
    return (
        isinstance(value, list)
        and (empty or bool(value))
        and all(isinstance(item, kind) for item in value)
    )


_TYPES: dict[object, tuple[str, Callable[[object], bool]]] = {
    str: ("a string", lambda value: isinstance(value, str)),
    bool: ("true or false", lambda value: isinstance(value, bool)),
    float: ("a positive float", lambda value: isinstance(value, float) and value > 0),
    Mapping[str, str]: (
        "a table of strings",
        lambda value: isinstance(value, dict) and _holds([*value.values()], str),
    ),
    Mapping[str, float]: (
        "a table of numbers",
        lambda value: (
            isinstance(value, dict) and _holds([*value.values()], (int, float))
        ),
    ),
    tuple[str, ...]: (
        "a list of strings",
        lambda value: _holds(value, str, empty=True),
    ),
}


def read_toml(path: Path) -> dict[str, Any]:
    """Returns the tables of a TOML file.

    Raises:
        MplayerError: If it cannot be read, or is none.
    """
    import importlib
    import sys

    name = "tomllib" if sys.version_info >= (3, 11) else "tomli"
    toml = importlib.import_module(name)
    try:
        table: dict[str, Any] = toml.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise MplayerError(f"'{path}' cannot be read: {error}.") from error
    return table
