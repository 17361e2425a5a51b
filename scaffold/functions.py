"""The functions that a `--call` may use: their curves, derivatives and arguments.

Each was run in float16, bfloat16, float32 and float64, eager, as a graph and under XLA,
forward and backward, on TF 2.12, 2.15 and 2.21; what failed anywhere is not here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

Adder = Callable[[list[float]], float]
Rule = Callable[[float, float], tuple[float, float, float]]
"""A function of two numbers: its value and both derivatives."""
Reduction = Callable[[Adder, list[float]], tuple[float, list[float]]]
"""A function that adds up, and numbers: the value and the derivatives."""

AWAY = 1e-2
"""Denominators and the operands of roots and logarithms are at least this large."""


class Curve(NamedTuple):
    """An elementwise function with its derivative.

    `turns` are the points where it may turn; between them it is monotone. `least` is
    the smallest operand at which it and its derivative are of ordinary size.
    """

    value: Callable[[float], float]
    slope: Callable[[float, float], float]
    """Of the operand and the value: where TensorFlow has only the rounded value to
    compute the derivative from, so has this."""
    turns: tuple[float, ...] = ()
    least: float = -math.inf
    values: tuple[float, float] | None = None
    """The range, where turns cannot tell it."""
    rough: Callable[[float, Callable[[float], float]], float] | None = None
    """The value as TensorFlow computes it, with a rounding between the steps."""
    rough_slope: Callable[[float, Callable[[float], float]], float] | None = None
    """The derivative as TensorFlow computes it."""


def _exp(x: float) -> float:
    return math.exp(x) if x < 709 else math.inf  # noqa: PLR2004 -- float64 ends there


def _sigmoid(x: float) -> float:
    return 1 / (1 + _exp(-x)) if x >= 0 else _exp(x) / (1 + _exp(x))


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(_exp(-abs(x)))


def _phi(x: float) -> float:
    return 0.5 * (1 + math.erf(x * math.sqrt(0.5)))


def _gelu_slope(x: float, _: float) -> float:
    return _phi(x) + x * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _step(low: float, high: float = math.inf) -> Callable[[float, float], float]:
    return lambda x, _: 1.0 if low < x < high else 0.0


def _elu(scale: float, alpha: float) -> Curve:
    return Curve(
        lambda x: scale * (x if x > 0 else alpha * math.expm1(x)),
        # What is rounded to 0 counts as positive.
        lambda _, y: y + scale * alpha if y < 0 else scale,
        rough=lambda x, rounding: (
            scale * (x if x > 0 else alpha * (rounding(_exp(x)) - 1))
        ),
    )


def leaky(alpha: float) -> Curve:
    """Returns the leaky relu."""
    return Curve(
        lambda x: x if x > 0 else alpha * x, lambda x, _: 1 if x > 0 else alpha
    )


def _clip(low: float, high: float) -> Curve:
    return Curve(lambda x: min(max(x, low), high), _step(low, high))


def power(exponent: int) -> Curve:
    """Returns a power with a positive exponent."""
    return Curve(
        lambda x: x**exponent,
        lambda x, _: exponent * x ** (exponent - 1),
        () if exponent % 2 else (0.0,),
    )


_SILU = Curve(
    lambda x: x * _sigmoid(x),
    lambda x, _: _sigmoid(x) * (1 + x * (1 - _sigmoid(x))),
    (-1.2784645,),
)
_TANH = Curve(math.tanh, lambda _, y: 1 - y * y)
NEGATIVE = Curve(lambda x: -x, lambda *_: -1.0)
# How Keras and TensorFlow call the same curves.
CURVES = {
    "elu": _elu(1.0, 1.0),
    "exponential": Curve(_exp, lambda _, y: y),
    "gelu": Curve(
        lambda x: x * _phi(x),
        _gelu_slope,
        (-0.7517916,),
        rough=lambda x, rounding: (
            rounding(0.5 * x) * rounding(1 + rounding(math.erf(x * math.sqrt(0.5))))
        ),
    ),
    "hard_sigmoid": Curve(
        lambda x: min(max(x + 3, 0.0), 6.0) / 6, lambda x, y: _step(-3, 3)(x, y) / 6
    ),
    "linear": Curve(lambda x: x, lambda *_: 1.0),
    "relu": Curve(lambda x: max(x, 0.0), _step(0.0)),
    "selu": _elu(1.05070098735548, 1.67326324235437),
    "sigmoid": Curve(_sigmoid, lambda _, y: y * (1 - y)),
    "softplus": Curve(_softplus, lambda x, _: _sigmoid(x)),
    "softsign": Curve(
        lambda x: x / (1 + abs(x)),
        lambda x, _: 1 / (1 + abs(x)) ** 2,
        rough_slope=lambda x, rounding: 1 / rounding(rounding(1 + abs(x)) ** 2),
    ),
    "swish": _SILU,
    "tanh": _TANH,
}
ACTIVATIONS = (*sorted([*CURVES, "softmax"]),)
"""The activations that every Keras from TF 2.12 on has."""

_ELEMENTWISE = {
    "tf.abs tf.math.abs": Curve(
        abs, lambda x, _: math.copysign(1.0, x) if x else 0.0, (0.0,)
    ),
    "tf.cos tf.math.cos": Curve(math.cos, lambda x, _: -math.sin(x), values=(-1, 1)),
    "tf.exp tf.math.exp": CURVES["exponential"],
    "tf.math.erf": Curve(
        math.erf, lambda x, _: 2 / math.sqrt(math.pi) * math.exp(-x * x)
    ),
    "tf.math.log": Curve(math.log, lambda x, _: 1 / x, least=AWAY),
    "tf.math.log1p": Curve(math.log1p, lambda x, _: 1 / (1 + x), least=AWAY - 1),
    "tf.math.rsqrt": Curve(lambda x: x**-0.5, lambda _, y: -0.5 * y**3, least=AWAY),
    "tf.math.softplus tf.nn.softplus": CURVES["softplus"],
    "tf.math.softsign tf.nn.softsign": CURVES["softsign"],
    "tf.negative tf.math.negative": NEGATIVE,
    "tf.nn.elu": CURVES["elu"],
    "tf.nn.gelu": CURVES["gelu"],
    "tf.nn.relu": CURVES["relu"],
    "tf.nn.relu6": _clip(0.0, 6.0),
    "tf.nn.selu": CURVES["selu"],
    "tf.nn.silu tf.nn.swish": _SILU,
    "tf.sigmoid tf.math.sigmoid tf.nn.sigmoid": CURVES["sigmoid"],
    "tf.sin tf.math.sin": Curve(math.sin, lambda x, _: math.cos(x), values=(-1, 1)),
    "tf.sqrt tf.math.sqrt": Curve(math.sqrt, lambda _, y: 0.5 / y, least=AWAY),
    "tf.square tf.math.square": power(2),
    "tf.tanh tf.math.tanh tf.nn.tanh": _TANH,
}


def add(a: float, b: float) -> tuple[float, float, float]:
    """Returns a + b, and its derivatives."""
    return a + b, 1.0, 1.0


def subtract(a: float, b: float) -> tuple[float, float, float]:
    """Returns a - b, and its derivatives."""
    return a - b, 1.0, -1.0


def multiply(a: float, b: float) -> tuple[float, float, float]:
    """Returns a * b, and its derivatives."""
    return a * b, b, a


def divide(a: float, b: float) -> tuple[float, float, float]:
    """Returns a / b, and its derivatives."""
    return a / b, 1 / b, -(a / b) / b


def maximum(a: float, b: float) -> tuple[float, float, float]:
    """Returns the larger, and its derivatives."""
    return max(a, b), float(a >= b), float(a < b)


def minimum(a: float, b: float) -> tuple[float, float, float]:
    """Returns the smaller, and its derivatives."""
    return min(a, b), float(a <= b), float(a > b)


_TWO = {
    "tf.add tf.math.add": add,
    "tf.divide tf.math.divide": divide,
    "tf.maximum tf.math.maximum": maximum,
    "tf.minimum tf.math.minimum": minimum,
    "tf.multiply tf.math.multiply": multiply,
    "tf.subtract tf.math.subtract": subtract,
}
Reduced = tuple[float, list[float]]


def total(add: Adder, row: list[float]) -> Reduced:
    """Returns the sum, and its derivatives."""
    return add(row), [1.0] * len(row)


def _mean(add: Adder, row: list[float]) -> Reduced:
    return add(row) / len(row), [1 / len(row)] * len(row)


def _largest(_: Adder, row: list[float]) -> Reduced:
    top = max(row)
    return top, [(x == top) / row.count(top) for x in row]


def _smallest(_: Adder, row: list[float]) -> Reduced:
    low = min(row)
    return low, [(x == low) / row.count(low) for x in row]


_REDUCTIONS = {
    "tf.reduce_max tf.math.reduce_max": _largest,
    "tf.reduce_mean tf.math.reduce_mean": _mean,
    "tf.reduce_min tf.math.reduce_min": _smallest,
    "tf.reduce_sum tf.math.reduce_sum": total,
}

NEEDED = object()
"""The default of an argument that has none."""


class Function(NamedTuple):
    """One function that a call may use.

    The first `operands` arguments are expressions; `literals` are the others, with
    their defaults. `rule` is the method of the interpreter that interprets it.
    """

    rule: str
    operands: int = 1
    literals: Mapping[str, object] = MappingProxyType({})
    curve: Curve | None = None
    two: Rule | None = None
    reduction: Reduction | None = None


_AXES = {"axis": None, "keepdims": False}
_TRANSPOSES = {"transpose_a": False, "transpose_b": False}
_ROWS = {
    **{names: Function("elementwise", curve=x) for names, x in _ELEMENTWISE.items()},
    **{names: Function("binary", 2, two=x) for names, x in _TWO.items()},
    **{
        names: Function("reduce", 1, _AXES, reduction=x)
        for names, x in _REDUCTIONS.items()
    },
    "tf.einsum": Function("einsum", 2),
    "tf.expand_dims": Function("expand_dims", 1, {"axis": NEEDED}),
    "tf.matmul tf.linalg.matmul": Function("matmul", 2, _TRANSPOSES),
    "tf.nn.bias_add": Function("bias_add", 2),
    "tf.nn.conv1d": Function("conv1d", 2, {"stride": NEEDED, "padding": NEEDED}),
    "tf.nn.conv2d": Function("conv2d", 2, {"strides": NEEDED, "padding": NEEDED}),
    "tf.nn.leaky_relu": Function("leaky_relu", 1, {"alpha": 0.2}),
    "tf.nn.softmax": Function("softmax", 1, {"axis": -1}),
    "tf.squeeze": Function("squeeze", 1, {"axis": NEEDED}),
    "tf.transpose": Function("transpose", 1, {"perm": None}),
}
FUNCTIONS = {name: row for names, row in _ROWS.items() for name in names.split()}
"""What a call may use, by the name under which it is called."""

REFUSED = {
    "tf.clip_by_value": "rounding carries values across its corners",
    "tf.cast": "inputs, weights and arguments are in the compute dtype already",
    "tf.concat": "a sum of sizes is no size that a spec can state",
    "tf.constant": "write the number itself",
    "tf.linalg.det": "it has no half-precision kernel",
    "tf.linalg.inv": "it has no bfloat16 kernel",
    "tf.nn.dropout": "it draws random numbers",
    "tf.nn.l2_normalize": "its default epsilon of 1e-12 is 0 in float16",
    "tf.norm": "its gradient at zeros is not finite",
    "tf.stop_gradient": "it cuts the gradient",
}
"""What is refused for a reason that is worth telling."""
