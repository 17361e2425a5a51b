"""The catalogue of kinds: one folder under `templates/layer/kinds/`, and nothing else.

A kind says what names alone mean: `--weights w,b` is a kernel and a bias because the
`dense` kind has roles with these names.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scaffold.errors import MplayerError, nearest


@dataclass(frozen=True)
class Role:
    """What a weight is for, and what its name alone means."""

    role: str
    names: tuple[str, ...]
    shape: str
    """In the weight grammar: `[in,units]`."""
    initializer: str
    required: bool
    use: str
    """How the default call uses it: `{x} @ {name}`."""


@dataclass(frozen=True)
class Kind:
    """A kind of layer, as its `kind.toml` has it.

    `weights` and `arguments` are the texts of `--weights` and `--arg` that stand where
    neither is given. `large` caps the inputs that the tests feed.
    """

    name: str
    summary: str
    hazard: str
    example: str
    weights: str
    arguments: tuple[str, ...]
    large: float
    roles: tuple[Role, ...]

    def role_of(self, weight: str) -> Role | None:
        """Returns the role that a weight of this name takes, if any."""
        return next((role for role in self.roles if weight in role.names), None)


@functools.cache
def templates_dir() -> Path:
    """Returns the templates: inside an installed package, beside it in a checkout."""
    package = Path(__file__).resolve().parent
    installed = package / "templates"
    return installed if installed.is_dir() else package.parent / "templates"


@functools.cache
def kind_names() -> tuple[str, ...]:
    """Returns the names of all kinds, in the order in which they are tried."""
    kinds = templates_dir() / "layer" / "kinds"
    return tuple(sorted(path.parent.name for path in kinds.glob("*/kind.toml")))


@functools.cache
def load_kind(name: str) -> Kind:
    """Returns the kind of this name.

    Raises:
        MplayerError: If there is none.
    """
    if name not in kind_names():
        known = ", ".join(kind_names())
        raise MplayerError(
            f"--kind: there is no kind {name!r}.{nearest(name, kind_names())} "
            f"The kinds are {known}."
        )
    fields = _read_toml(templates_dir() / "layer" / "kinds" / name / "kind.toml")
    roles = tuple(
        Role(**{**role, "names": tuple(role["names"])}) for role in fields.pop("roles")
    )
    arguments = tuple(fields.pop("arguments"))
    return Kind(name=name, roles=roles, arguments=arguments, **fields)


def _read_toml(path: Path) -> dict[str, Any]:
    import importlib
    import sys

    name = "tomllib" if sys.version_info >= (3, 11) else "tomli"
    toml = importlib.import_module(name)
    fields: dict[str, Any] = toml.loads(path.read_text(encoding="utf-8"))
    return fields
