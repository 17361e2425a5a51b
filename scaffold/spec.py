"""What a layer is: the frozen values between the grammar and the templates.

Everything here is already valid. `scaffold.grammar` turns text into a `LayerSpec` or
an error that teaches; `scaffold.rendering` turns a `LayerSpec` into texts.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

Dim: TypeAlias = int | str
"""A size: an integer, "in" (the last input axis), the name of an integer argument, or
"axis_1", "axis_2"... (an axis of the inputs between the batch and the last)."""

Scalar: TypeAlias = int | float | bool | str | None
ArgumentType = Literal["int", "float", "bool", "str", "activation"]


class Initializer(NamedTuple):
    """A Keras initializer by its snake-case name, with keyword arguments."""

    name: str
    arguments: tuple[tuple[str, Scalar], ...] = ()


class Weight(NamedTuple):
    """One `add_weight`.

    `dtype` pins the storage dtype (None: the layer's variable dtype). `frozen` and
    `state` weights are not trained; a `state` weight is kept in at least float32.
    Pinned and state weights are opted out of autocast.
    """

    name: str
    shape: tuple[Dim, ...]
    initializer: Initializer
    dtype: str | None = None
    frozen: bool = False
    state: bool = False
    read: bool = True
    """Whether the call reads it."""
    wide: bool = False
    """Whether the call reads it in at least float32, unrounded by autocast."""

    @property
    def trainable(self) -> bool:
        """Whether a gradient must reach it."""
        return not (self.frozen or self.state)

    @property
    def averaged(self) -> bool:
        """Whether replicas that update it shall agree on their mean."""
        return self.state and self.dtype in (None, "float32", "float64")


class Argument(NamedTuple):
    """One constructor argument beyond the initializers."""

    name: str
    type: ArgumentType
    default: Scalar = None
    required: bool = False
    size: bool = False
    """Whether a weight's shape names it: then it must be positive."""
    bound: str = ""
    """What its kind makes of it: a name in `scaffold.kinds.BOUNDS`, or anything."""


class Request(NamedTuple):
    """A layer as it was asked for: texts of a command line, a record or a prompt.

    `scaffold.grammar.parse` has what each means; None is its default.
    """

    name: str
    weights: str | None = None
    arguments: tuple[str, ...] = ()
    call: str | None = None
    kind: str | None = None
    options: str = ""
    doc: str | None = None
    dialect: str = "tf"


class LayerSpec(NamedTuple):
    """A layer that can be rendered, with what its call was found to do.

    `input_shape` and `output_shape` are without the batch axis. Where `any_rank` is
    true the call keeps all axes but the last, whatever their number, and both shapes
    are those of the two-dimensional case.
    """

    name: str
    kind: str
    weights: tuple[Weight, ...]
    arguments: tuple[Argument, ...]
    call: str
    doc: str | None
    options: frozenset[str]
    input_shape: tuple[Dim, ...]
    output_shape: tuple[Dim, ...]
    any_rank: bool
    large: float
    """The largest input magnitude at which float16 holds every intermediate value."""
    dialect: str = "tf"
    """What it is written with: TensorFlow, or "keras" for keras.ops alone."""

    @property
    def module(self) -> str:
        """The module's name: `MyLayer` gives `my_layer`, `RMSNorm2D` `rms_norm2d`."""
        words = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", self.name)
        joints = r"(?<=[a-z])(?=[A-Z])|(?<=[0-9])(?=[A-Z][a-z])"
        return re.sub(joints, "_", words).lower()
