"""Writes custom Keras layers, and the tests that prove them, for every dtype policy.

For notebooks and other tools:

>>> import scaffold
>>> spec = scaffold.parse("MyLayer", weights="w,b")
>>> texts = scaffold.render(spec)
>>> print(texts.module)  # doctest: +SKIP

`parse` raises `MplayerError` for what cannot be; a `LayerSpec` that it returns has a
module whose matrix passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scaffold.errors import MplayerError
    from scaffold.grammar import parse
    from scaffold.rendering import Texts, render
    from scaffold.spec import Argument, Initializer, LayerSpec, Weight

__version__ = "0.1.0"

_HOMES = {
    "Argument": "spec",
    "Initializer": "spec",
    "LayerSpec": "spec",
    "MplayerError": "errors",
    "Texts": "rendering",
    "Weight": "spec",
    "parse": "grammar",
    "render": "rendering",
}

__all__ = [
    "Argument",
    "Initializer",
    "LayerSpec",
    "MplayerError",
    "Texts",
    "Weight",
    "__version__",
    "parse",
    "render",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 -- whatever it is
    """Imports what is asked for: every command starts by importing this package."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
