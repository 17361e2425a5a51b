"""Arithmetic on a tape: values and gradients of small tensors, in any float dtype.

A tensor is a list of scalars on the tape, so that transposing, reshaping, broadcasting
and cutting patches are lists of indices, and only arithmetic has derivatives. Each step
is rounded as TensorFlow rounds it, forward and backward, where that is known to matter.
"""

from __future__ import annotations

import functools
import itertools
import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from scaffold.functions import Curve, Reduction, Rule

Edges = tuple[tuple[int, float], ...]

FLOAT16_TOP = 65504 / 4
FLOAT32_TOP = 3e38


class Array(NamedTuple):
    """A tensor: its shape, and its scalars on the tape in row-major order."""

    shape: tuple[int, ...]
    items: list[int]


@dataclass(frozen=True)
class Leaf:
    """An input of the call: its shape and its values, and what moves it."""

    shape: tuple[int, ...]
    values: list[float]
    floating: bool = True
    trainable: bool = True


@dataclass(frozen=True)
class Precision:
    """A dtype, and somewhat less than the generated test allows it.

    `coarse` says that TensorFlow adds up one by one in this dtype, not in float32,
    where it reduces outer axes but not the last, and `coarse_bias` that `bias_add`
    does so: float16 and bfloat16 are each right where the other is not.
    """

    name: str
    rounding: Callable[[float], float]
    roundoff: float
    smallest: float
    top: float
    limit: float
    coarse: bool = False
    coarse_bias: bool = False


class Tape:
    """Scalars and their derivatives, each rounded as one dtype rounds."""

    def __init__(
        self, leaves: Mapping[str, Leaf], precision: Precision, repeat: int = 1
    ) -> None:
        """Puts the leaves on the tape.

        `repeat` is how often the rows stand in the batch, for the sums over them.
        """
        self.rounding = precision.rounding
        self.precision = precision
        self.repeat = repeat
        self.values: list[float] = []
        self.edges: list[Edges] = []
        # Where products are rounded before they are added up, and where sums are too.
        self.products: set[int] = set()
        self.one_by_one: set[int] = set()
        self.fine: set[int] = set()
        # What all rows share.
        self.shared: set[int] = set()
        self.rows: dict[int, tuple[list[int], list[int]]] = {}
        self.steps = 0
        self.leaves = {
            name: Array(leaf.shape, [self.put(x) for x in leaf.values])
            for name, leaf in leaves.items()
        }

    def put(self, value: float, edges: Edges = ()) -> int:
        """Returns the place of a new scalar; `edges` are (operand, derivative)."""
        self.values.append(self.rounding(value))
        self.edges.append(edges)
        self.steps += len(edges)
        return len(self.values) - 1

    def tensor(self, value: Array | float) -> Array:
        """Returns a number as a scalar tensor, and a tensor as it is."""
        return value if isinstance(value, Array) else Array((), [self.put(value)])

    def reshape(self, a: Array, shape: Sequence[int]) -> Array:
        """Returns the same scalars in another shape."""
        return Array(tuple(shape), a.items)

    def transpose(self, a: Array, order: Sequence[int]) -> Array:
        """Returns the same scalars with the axes in another order."""
        places = _transposed(a.shape, tuple(order))
        shape = tuple(a.shape[axis] for axis in order)
        return Array(shape, [a.items[place] for place in places])

    def matmul(self, a: Array, b: Array, left: str, right: str) -> Array:
        """Multiplies matrices `left` and `right`, "nk" and "km" or their transposes."""
        outer = broadcast(a.shape[:-2], b.shape[:-2])
        shapes = [(*outer, *x.shape[-2:]) for x in (a, b)]
        full = [
            Array(shape, spread(x, shape))
            for x, shape in zip((a, b), shapes, strict=True)
        ]
        names = "ABCDEF"[: len(outer)]
        return self.contract((names + left, names + right), f"{names}nm", full)

    def map(self, curve: Curve, a: Array) -> Array:
        """Applies an elementwise function."""
        rounding, values = self.rounding, self.values
        items = []
        for i in a.items:
            x = values[i]
            y = rounding(curve.rough(x, rounding) if curve.rough else curve.value(x))
            if curve.rough_slope:
                slope = curve.rough_slope(x, rounding)
            else:
                slope = curve.slope(x, y)
            items.append(self.put(y, ((i, rounding(slope)),)))
        return Array(a.shape, items)

    def zip(
        self,
        rule: Rule,
        a: Array,
        b: Array,
        *,
        bias: bool = False,
    ) -> Array:
        """Applies a function of two numbers, with broadcasting.

        `rule` returns the value and both derivatives. `bias`: it is `bias_add`.
        """
        shape = broadcast(a.shape, b.shape)
        values = self.values
        items = []
        for i, j in zip(spread(a, shape), spread(b, shape), strict=True):
            value, left, right = rule(values[i], values[j])
            items.append(self.put(value, ((i, left), (j, right))))
        self.products.update(items)
        coarse = self.precision.coarse_bias if bias else self.precision.coarse
        for operand in (a, b):
            if coarse and operand.shape != shape and operand.shape[-1:] == shape[-1:]:
                self.one_by_one.update(items)
            if len(operand.shape) < len(shape) or operand.shape[:1] != shape[:1]:
                self.shared.update(operand.items)
        return Array(shape, items)

    def contract(
        self,
        letters: tuple[str, ...],
        result: str,
        operands: Sequence[Array],
        *,
        fine: bool = False,
    ) -> Array:
        """Multiplies and sums as `einsum` does; one operand, or two.

        `fine`: even float16 is added up in float32, as convolutions are. In matrix
        products TensorFlow 2.15 adds it up in float16.
        """
        step = self.rounding if self.precision.coarse and not fine else exactly
        sizes = dict(
            pair
            for names, operand in zip(letters, operands, strict=True)
            for pair in zip(names, operand.shape, strict=True)
        )
        summed = [x for x in sizes if x not in result]
        places = [
            _einsum_places(names, result, tuple(summed), tuple(sizes.items()))
            for names in letters
        ]
        values, items = self.values, []
        for rows in zip(*places, strict=True):
            edges: list[tuple[int, float]] = []
            total = 0.0
            for indices in zip(*rows, strict=True):
                if len(operands) == 1:
                    i = operands[0].items[indices[0]]
                    total = step(total + values[i])
                    edges.append((i, 1.0))
                else:
                    i = operands[0].items[indices[0]]
                    j = operands[1].items[indices[1]]
                    left, right = values[i], values[j]
                    total = step(total + left * right)
                    edges += ((i, right), (j, left))
            items.append(self.put(total, tuple(edges)))
        if fine:
            self.fine.update(items)
        return Array(tuple(sizes[x] for x in result), items)

    def add_one_by_one(self, values: Sequence[float]) -> float:
        """Returns a sum that is rounded at each step."""
        total = 0.0
        for value in values:
            total = self.rounding(total + value)
        return total

    def reduce(
        self,
        rule: Reduction,
        a: Array,
        axes: Sequence[int],
    ) -> Array:
        """Reduces `axes` to size 1; `rule` returns the value and the derivatives.

        It is given a function that adds up, and the operands.
        """
        shape, rows = _groups(a, axes)
        inner = len(a.shape) - 1 in axes
        add: Callable[[list[float]], float] = sum
        if self.precision.coarse and not inner:
            add = self.add_one_by_one
        items = []
        for row in rows:
            value, slopes = rule(add, [self.values[i] for i in row])
            rounded = map(self.rounding, slopes)
            items.append(self.put(value, tuple(zip(row, rounded, strict=True))))
        return Array(shape, items)

    def softmax(self, a: Array, axis: int) -> Array:
        """Returns the softmax along an axis."""
        _, rows = _groups(a, [axis])
        rounding = self.rounding
        places: dict[int, int] = {}
        for row in rows:
            logits = [self.values[i] for i in row]
            top = max(logits)
            # Rounded at each step, as in TensorFlow 2.15.
            powers = [
                rounding(math.exp(rounding(x - top))) if x > -math.inf else 0.0
                for x in logits
            ]
            total = rounding(sum(powers))
            items = [self.put(x / total) for x in powers]
            places.update(zip(row, items, strict=True))
            self.rows[items[0]] = (items, row)
        return Array(a.shape, [places[i] for i in a.items])

    def convolve(self, a: Array, kernel: Array) -> Array:
        """Convolves the axes between the first and the last, with zeros around."""
        field, steps = kernel.shape[:-2], a.shape[1:-1]
        before = [(n - 1) // 2 for n in field]
        zero = self.put(0.0)
        channels = a.shape[-1]
        patches = []
        for row in range(a.shape[0]):
            for at in itertools.product(*map(range, steps)):
                for offset in itertools.product(*map(range, field)):
                    place = [p + o - b for p, o, b in zip(at, offset, before)]  # noqa: B905 -- one rank
                    inside = all(0 <= p < n for p, n in zip(place, steps))  # noqa: B905 -- one rank
                    start = _flat((row, *place, 0), a.shape)
                    patches += (
                        a.items[start : start + channels]
                        if inside
                        else [zero] * channels
                    )
        width = math.prod(field) * channels
        cut = Array((a.shape[0] * math.prod(steps), width), patches)
        matrix = Array((width, kernel.shape[-1]), kernel.items)
        result = self.contract(("ab", "bc"), "ac", (cut, matrix), fine=True)
        return Array((*a.shape[:-1], kernel.shape[-1]), result.items)

    def gradients(
        self, outputs: Array, factors: Sequence[float]
    ) -> dict[str, list[float]]:
        """Returns the gradient of the sum of `factors * outputs` for each leaf."""
        adjoints = [0.0] * len(self.values)
        for i, factor in zip(outputs.items, factors, strict=True):
            adjoints[i] += factor
        for i in range(len(adjoints) - 1, -1, -1):
            if i in self.rows:
                self.softmax_gradient(adjoints, *self.rows[i])
            if adjoints[i]:
                adjoints[i] = self.rounding(adjoints[i])
                self.pass_on(adjoints, i)
        return {
            name: [adjoints[i] for i in leaf.items]
            for name, leaf in self.leaves.items()
        }

    def pass_on(self, adjoints: list[float], i: int) -> None:
        """Adds the adjoint of a scalar to those of its operands."""
        rounding, adjoint = self.rounding, adjoints[i]
        if i in self.products:
            for j, slope in self.edges[i]:
                product = rounding(adjoint * slope)
                times = self.repeat if j in self.shared else 1
                if i not in self.one_by_one:
                    adjoints[j] += times * product
                    continue
                for _ in range(times):
                    adjoints[j] = rounding(adjoints[j] + product)
        elif self.precision.coarse and i not in self.fine:
            for j, slope in self.edges[i]:
                adjoints[j] = rounding(adjoints[j] + adjoint * slope)
        else:
            for j, slope in self.edges[i]:
                adjoints[j] += adjoint * slope

    def softmax_gradient(
        self, adjoints: list[float], shares: list[int], logits: list[int]
    ) -> None:
        """Adds the adjoints of one row of logits, as TensorFlow computes them."""
        rounding = self.rounding
        given = [rounding(adjoints[i]) for i in shares]
        values = [self.values[i] for i in shares]
        products = [rounding(g * p) for g, p in zip(given, values, strict=True)]
        total = rounding(sum(products))
        for g, p, j in zip(given, values, logits, strict=True):
            adjoints[j] += rounding(rounding(g - total) * p)


def _groups(a: Array, axes: Sequence[int]) -> tuple[tuple[int, ...], list[list[int]]]:
    """Returns the reduced shape, and the scalars that a reduction puts together."""
    shape = tuple(1 if k in axes else n for k, n in enumerate(a.shape))
    rows: list[list[int]] = [[] for _ in range(math.prod(shape))]
    for place, item in zip(_spread(shape, a.shape), a.items, strict=True):
        rows[place].append(item)
    return shape, rows


@functools.cache
def broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape of two tensors together."""
    pairs = itertools.zip_longest(reversed(a), reversed(b), fillvalue=1)
    return tuple(reversed([x if y == 1 else y for x, y in pairs]))


def spread(a: Array, shape: tuple[int, ...]) -> list[int]:
    """Returns the scalars of `a`, repeated to fill `shape`."""
    return [a.items[place] for place in _spread(a.shape, shape)]


@functools.cache
def _spread(small: tuple[int, ...], shape: tuple[int, ...]) -> list[int]:
    padded = (1,) * (len(shape) - len(small)) + small
    strides = [
        0 if n == 1 else math.prod(padded[k + 1 :]) for k, n in enumerate(padded)
    ]
    places = [0]
    for stride, size in zip(strides, shape, strict=True):
        places = [place + stride * k for place in places for k in range(size)]
    return places


@functools.cache
def _transposed(shape: tuple[int, ...], order: tuple[int, ...]) -> list[int]:
    """Returns which scalars come where, in row-major order."""
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    places = [0]
    for axis in order:
        places = [p + strides[axis] * k for p in places for k in range(shape[axis])]
    return places


@functools.cache
def _einsum_places(
    names: str, result: str, summed: tuple[str, ...], sizes: tuple[tuple[str, int], ...]
) -> list[list[int]]:
    """Returns, for each scalar of the result, those of an operand that go into it."""
    size = dict(sizes)
    stride = {
        x: math.prod(size[y] for y in names[k + 1 :]) for k, x in enumerate(names)
    }

    def along(letters: Sequence[str]) -> list[int]:
        places = [0]
        for x in letters:
            step = stride.get(x, 0)
            places = [place + step * k for place in places for k in range(size[x])]
        return places

    inner = along(summed)
    return [[outer + place for place in inner] for outer in along(result)]


def _flat(place: Sequence[int], shape: Sequence[int]) -> int:
    index = 0
    for at, size in zip(place, shape, strict=True):
        index = index * size + at
    return index


def exactly(value: float) -> float:
    """Rounds to float64, which every number here already is."""
    return value


def to_float16(value: float) -> float:
    """Rounds to float16, of which a quarter of the range is kept in reserve."""
    return _packed("e", value) if abs(value) <= FLOAT16_TOP else _beyond(value)


def to_float32(value: float) -> float:
    """Rounds to float32."""
    return _packed("f", value) if abs(value) < FLOAT32_TOP else _beyond(value)


def to_bfloat16(value: float) -> float:
    """Rounds to bfloat16."""
    if not abs(value) < FLOAT32_TOP:
        return _beyond(value)
    bits = struct.unpack("I", struct.pack("f", value))[0]
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    rounded: float = struct.unpack("f", struct.pack("I", bits))[0]
    return rounded


def _packed(code: str, value: float) -> float:
    rounded: float = struct.unpack(code, struct.pack(code, value))[0]
    return rounded


def _beyond(value: float) -> float:
    return value if math.isnan(value) else math.copysign(math.inf, value)


FLOAT64 = Precision("float64", exactly, 2.0**-53, 2.0**-1022, math.inf, 8.0)
FLOAT32 = Precision("float32", to_float32, 2.0**-24, 2.0**-126, 8e37, 10.0)
FLOAT16 = Precision(
    "float16", to_float16, 2.0**-11, 2.0**-24, FLOAT16_TOP, 3.0, coarse=True
)
BFLOAT16 = Precision(
    "bfloat16", to_bfloat16, 2.0**-8, 2.0**-126, 8e37, 5.0, coarse_bias=True
)
