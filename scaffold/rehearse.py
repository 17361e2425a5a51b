"""A rehearsal of the matrix in pure Python, on what a call computes.

The promise is that every accepted spec gives a module whose matrix passes at once. So
the call is evaluated here as the generated test will evaluate it, on random inputs of
the same shapes: once in float64, twice with inputs and weights moved by one rounding,
and once with each step rounded to a narrower dtype, forward and backward. What the laws
of value, gradient, smoothness and range would find is found before anything is written.
The limits are below those of the generated test, since the draws are others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from scaffold.tape import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    Array,
    Leaf,
    Precision,
    Tape,
    exactly,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NARROW = (FLOAT16, BFLOAT16, FLOAT32)
# The most steps of one evaluation, forward, that may be rehearsed: about a second.
MOST_STEPS = 30_000
ROWS = 32
DRAWS = 2
MOST_REACHED = 0.5
"""Of a weight's scalars, how many at least a gradient must reach."""
SMALL = (0.0, 6e-8, 1e-4)
LARGE = (300.0, 100.0, 30.0, 10.0, 3.0)
"""The sizes of inputs of law 7; of the large ones, the largest that is possible."""


@dataclass(frozen=True)
class Fault:
    """What the matrix would find, and how to avoid it."""

    what: str
    way_out: str


_SMALLER = "Scale it down or bound it, as in 'tf.tanh(inputs * w)'"
_LARGER = "Keep it above 6e-08, where float16 ends, as in 'tf.nn.softplus(inputs) * w'"
_NO_DIFFERENCE = (
    "Do not subtract like numbers: 'w' where it says '(inputs + w) - inputs'"
)
_SUM = (
    "It loses sums of hundreds of terms, differences of like numbers and what is below "
    "6e-08: keep to few axes and ordinary numbers, as in 'inputs @ kernel + bias'"
)
_FOLLOW = "Let the outputs follow the inputs, as in 'inputs * w'"
_MARK = "Let the outputs follow it, as in 'inputs * {name}', or mark it '{name}:frozen'"
_SLOWER = "Use smaller factors, as in 'tf.sin(inputs * w)'"


@dataclass(frozen=True)
class Play:
    """A call to rehearse: how it runs, and what its leaves are.

    `make` returns the leaves for a number of rows; `inputs` is among them.
    """

    run: Callable[[Tape], Array]
    make: Callable[[int, Random], dict[str, Leaf]]


class _Outcome(NamedTuple):
    outputs: list[float]
    gradients: dict[str, list[float]]


def steps(play: Play, rows: int) -> int:
    """Returns how many multiplications one evaluation of `rows` rows takes."""
    tape = Tape(play.make(rows, Random(0)), FLOAT64)  # noqa: S311 -- not for secrets
    play.run(tape)
    return tape.steps


def fitting_rows(play: Play) -> int:
    """Returns how many rows can be rehearsed in a moment; 0: not even two."""
    rows = 2
    cost = steps(play, rows) / rows
    if cost * rows > MOST_STEPS:
        return 0
    return max(rows, min(ROWS, int(MOST_STEPS / 3 / max(cost, 1.0))))


def fault(play: Play, rows: int) -> Fault | None:
    """Returns what laws 4, 5 and 8 would find, on inputs of ordinary size."""
    return _first(lambda random: _ordinary_fault(play, rows, random), DRAWS)


def extreme_fault(
    play: Play, rows: int, size: float, *, inside: bool = False
) -> Fault | None:
    """Returns what law 7 would find, on inputs of this size.

    Where `inside` is true, a step that overflows float16 is a fault too, even if the
    law would not look at it because the outputs overflow with it.
    """
    # Few rows count where most are saturated: then draws differ much.
    draws = DRAWS if size <= LARGE[-1] else 3 * DRAWS
    found = _first(
        lambda random: _extreme_fault(play, rows, size, random, inside=inside), draws
    )
    if found is None:
        return None
    way_out = _LARGER if 0 < size < 1 else found.way_out
    return Fault(f"for inputs of {size:g} {found.what}", way_out)


def largest_inputs(play: Play, rows: int, most: float) -> tuple[float, Fault | None]:
    """Returns the largest inputs at which the tests pass, or why they do not."""
    found = fault(play, rows)
    for size in SMALL:
        found = found or extreme_fault(play, rows, size)
    if found:
        return 0.0, found
    # At best no step overflows; else none that the outputs hide, as those of exp do.
    for inside in (True, False):
        for large in LARGE:
            if large <= most:
                found = extreme_fault(play, rows, large, inside=inside)
                if found is None:
                    return large, None
    return 0.0, found


def _first(look: Callable[[Random], Fault | None], draws: int) -> Fault | None:
    """Returns the first fault that one of several draws shows."""
    for seed in range(draws):
        try:
            found = look(Random(seed))  # noqa: S311 -- not for secrets
        except (ArithmeticError, ValueError):
            found = Fault("a step of it is not finite", _SMALLER)
        if found:
            return found
    return None


def _extreme_fault(
    play: Play, rows: int, size: float, random: Random, *, inside: bool
) -> Fault | None:
    leaves = play.make(rows, random)
    signs = [math.copysign(size, x) for x in leaves["inputs"].values]
    leaves["inputs"] = _with(leaves["inputs"], signs)
    if inside:
        tape = Tape(_rounded(leaves, FLOAT16), FLOAT16)
        play.run(tape)
        if not all(map(math.isfinite, tape.values)):
            return Fault("a step of it overflows float16", _SMALLER)
    for each in NARROW:
        narrow = replace(each, limit=each.limit / 2) if size > LARGE[-1] else each
        found = _rounding_fault(
            play, _rounded(leaves, narrow), narrow, random, top=narrow.top, size=size
        )
        if found:
            return found
    return None


def _ordinary_fault(play: Play, rows: int, random: Random) -> Fault | None:
    leaves = play.make(rows, random)
    for narrow in NARROW:
        found = _rounding_fault(play, _rounded(leaves, narrow), narrow, random)
        if found:
            return found
        moved = {
            name: leaf
            if name == "inputs" or not leaf.floating
            else _with(leaf, [x + 0.5 for x in leaf.values])
            for name, leaf in leaves.items()
        }
        found = _rounding_fault(
            play, _rounded(moved, narrow), narrow, random, backward=False
        )
        if found:
            return found
    tape = Tape(_rounded(leaves, FLOAT16), FLOAT16)
    outputs = play.run(tape)
    # A loss scale of 2**15 and a mean over the outputs (law 8); float16 is cut to a
    # quarter here.
    scale = 2.0**13 / len(outputs.items)
    factors = [scale * x for x in _factors(len(outputs.items))]
    for name, gradient in tape.gradients(outputs, factors).items():
        if leaves[name].trainable and not all(map(math.isfinite, gradient)):
            what = f"the gradient of {name!r} overflows float16 when the loss is scaled"
            return Fault(what, _SMALLER)
    return _slope_fault(play, leaves, random) or _rough_fault(play, leaves, random)


def _with(leaf: Leaf, values: list[float]) -> Leaf:
    return Leaf(leaf.shape, values, leaf.floating, leaf.trainable)


def _rounded(leaves: Mapping[str, Leaf], narrow: Precision) -> dict[str, Leaf]:
    return {
        name: _with(leaf, [narrow.rounding(x) for x in leaf.values])
        if leaf.floating
        else leaf
        for name, leaf in leaves.items()
    }


def _evaluate(
    play: Play,
    leaves: Mapping[str, Leaf],
    precision: Precision = FLOAT64,
    repeat: int = 1,
    move: Callable[[float], float] = exactly,
) -> _Outcome:
    tape = Tape(leaves, precision, repeat)
    outputs = play.run(tape)
    factors = [move(x) for x in _factors(len(outputs.items))]
    gradients = tape.gradients(outputs, factors)
    return _Outcome([tape.values[i] for i in outputs.items], gradients)


def _factors(count: int) -> list[float]:
    """Returns the factors of the outputs in the loss."""
    draw = Random(1)  # noqa: S311 -- not for secrets
    return [draw.randrange(8, 24) / 16 for _ in range(count)]


def _outputs(
    play: Play,
    leaves: Mapping[str, Leaf],
    precision: Precision = FLOAT64,
) -> list[float]:
    tape = Tape(leaves, precision)
    return [tape.values[i] for i in play.run(tape).items]


def _repeat(leaves: Mapping[str, Leaf]) -> int:
    """Returns how often a batch of the tests holds the rows that are rehearsed."""
    return max(1, ROWS // leaves["inputs"].shape[0])


def _rms(values: Sequence[float]) -> float:
    try:
        return math.sqrt(sum(x * x for x in values) / max(1, len(values)))
    except OverflowError:
        return math.inf


@dataclass
class _Comparison:
    """What a narrow dtype makes of a call, beside what float64 makes of it."""

    play: Play
    leaves: Mapping[str, Leaf]
    narrow: Precision
    random: Random
    backward: bool = True
    ordinary: Mapping[str, list[float]] = field(default_factory=dict)
    """Gradients for inputs of ordinary size, in units of which saturated ones err."""

    def __post_init__(self) -> None:
        self.repeat = _repeat(self.leaves)
        self.exact = self.evaluate(self.leaves, FLOAT64)
        self.seen = self.evaluate(self.leaves, self.narrow)
        self.moved = [self.nearby(), self.nearby()]

    def evaluate(
        self,
        leaves: Mapping[str, Leaf],
        precision: Precision,
        move: Callable[[float], float] = exactly,
    ) -> _Outcome:
        if self.backward:
            # Sums over a batch of which these are some rows are as long.
            return _evaluate(self.play, leaves, precision, self.repeat, move)
        return _Outcome(_outputs(self.play, leaves, precision), {})

    def nearby(self) -> _Outcome:
        """Returns what float64 makes of leaves that are moved by one rounding."""
        moved = {
            name: _with(leaf, [self.move(x) for x in leaf.values])
            if leaf.floating
            else leaf
            for name, leaf in self.leaves.items()
        }
        return self.evaluate(moved, FLOAT64, self.move)

    def move(self, x: float) -> float:
        relative, absolute = self.random.choice((-1, 1)), self.random.choice((-1, 1))
        return (
            x
            + relative * self.narrow.roundoff * x
            + absolute * self.narrow.smallest / 2
        )

    def far(
        self,
        part: Callable[[_Outcome], list[float]],
        top: float,
        terms: int = 1,
        ordinary: float = 0.0,
    ) -> float:
        """Returns the error as a multiple of what rounding the leaves explains.

        It is 0 where float64's values are not all below `top`. Each of the `terms` of
        a sum may vanish below the smallest number. Where a gradient saturates, its
        error is that of an `ordinary` one.
        """
        right = part(self.exact)
        if not max(map(abs, right), default=0.0) < top:
            return 0.0
        error = _rms([x - y for x, y in zip(right, part(self.seen), strict=True)])
        sway = _rms(
            [
                x - y
                for moved in self.moved
                for x, y in zip(right, part(moved), strict=True)
            ]
        )
        narrow = self.narrow
        floor = narrow.roundoff * (_rms(right) + ordinary) + narrow.smallest * terms
        return error / (sway + floor)


def _rounding_fault(
    play: Play,
    leaves: Mapping[str, Leaf],
    narrow: Precision,
    random: Random,
    *,
    top: float = math.inf,
    backward: bool = True,
    size: float | None = None,
) -> Fault | None:
    """Compares a dtype with float64, as far as what float64 gives is below `top`."""
    ordinary: Mapping[str, list[float]] = {}
    if size is not None:
        usual = _rounded(play.make(leaves["inputs"].shape[0], random), narrow)
        gradients = _evaluate(play, usual, repeat=_repeat(usual)).gradients
        most = max(1.0, size)
        ordinary = {name: [most * x for x in g] for name, g in gradients.items()}
    found = _Comparison(play, leaves, narrow, random, backward, ordinary)
    ratio = found.far(lambda outcome: outcome.outputs, top)
    if not math.isfinite(ratio):
        return Fault(f"a step of it is beyond the range of {narrow.name}", _SMALLER)
    if ratio > narrow.limit:
        return Fault(
            f"it loses digits in {narrow.name} ({ratio:.0f} times more than rounding "
            "its operands does)",
            _NO_DIFFERENCE,
        )
    trainable = [name for name, leaf in leaves.items() if leaf.trainable]
    for name in trainable if backward else ():
        fault = _gradient_fault(found, name, top)
        if fault:
            return fault
    return None


def _gradient_fault(found: _Comparison, name: str, top: float) -> Fault | None:
    narrow = found.narrow
    terms = len(found.exact.outputs) * found.repeat
    ordinary = _rms(found.ordinary.get(name, []))
    ratio = found.far(lambda outcome: outcome.gradients[name], top, terms, ordinary)
    if not ratio <= narrow.limit:
        return Fault(f"the gradient of {name!r} is lost in {narrow.name}", _SUM)
    if top < math.inf:
        return None
    right, got = found.exact.gradients[name], found.seen.gradients[name]
    # In another draw it must not be that none is reached.
    reached = sum(1 for x in got if x) / len(got)
    if not reached or (name != "inputs" and reached < MOST_REACHED):
        mend = _FOLLOW if name == "inputs" else _MARK.format(name=name)
        return Fault(f"no gradient reaches {name!r}", mend)
    error = _rms([x - y for x, y in zip(right, got, strict=True)])
    # Law 8 lets a tenth of the step be lost.
    if name != "inputs" and error > _rms(right) / 14:
        return Fault(
            f"the gradient of {name!r} is lost in {narrow.name}", _NO_DIFFERENCE
        )
    return None


def _slope_fault(
    play: Play, leaves: Mapping[str, Leaf], random: Random
) -> Fault | None:
    """Compares each gradient with a central difference (law 5)."""
    exact = _evaluate(play, leaves)
    factors = _factors(len(exact.outputs))
    step = 1e-5
    for name, leaf in leaves.items():
        if not leaf.trainable:
            continue
        line = [random.choice((-1, 1)) for _ in leaf.values]
        ends = []
        for sign in (-step, step):
            values = [x + sign * d for x, d in zip(leaf.values, line, strict=True)]
            outputs = _outputs(play, {**leaves, name: _with(leaf, values)})
            ends.append(sum(f * y for f, y in zip(factors, outputs, strict=True)))
        terms = [g * d for g, d in zip(exact.gradients[name], line, strict=True)]
        scale = sum(map(abs, terms))
        if not abs((ends[1] - ends[0]) / (2 * step) - sum(terms)) <= 0.01 * scale:
            return Fault(f"it changes too fast along {name!r} to be measured", _SLOWER)
    return None


def _rough_fault(
    play: Play, leaves: Mapping[str, Leaf], random: Random
) -> Fault | None:
    """Looks at third differences along a line (law 4)."""
    lines = {
        name: [random.choice((-1, 1)) for _ in leaf.values]
        for name, leaf in leaves.items()
    }
    for step, threshold in ((1e-6, 1e-10), (2e-3, 1e-5)):
        points = []
        for k in (-1, 0, 1, 2):
            moved = {
                name: _with(
                    leaf,
                    [
                        x * (1 + k * step * d)
                        for x, d in zip(leaf.values, lines[name], strict=True)
                    ],
                )
                if leaf.floating
                else leaf
                for name, leaf in leaves.items()
            }
            points.append(_outputs(play, moved))
        size = max(map(abs, points[1]))
        third = [abs(a - 3 * b + 3 * c - d) for a, b, c, d in zip(*points, strict=True)]
        shares = [
            x > threshold * size for x, b in zip(third, points[1], strict=True) if b
        ]
        if sum(shares) > 0.1 * len(shares):
            return Fault("it changes too fast to be measured", _SLOWER)
    return None
