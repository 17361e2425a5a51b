"""The Keras initializers that `--weights` accepts: their arguments, limits and values.

Every one of them was built in each float dtype, for shapes of rank 0 to 4, on Keras 3,
tf_keras and Keras 2: `orthogonal` alone lacks a kernel (QR in bfloat16).
"""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING, Literal

from scaffold.errors import MplayerError, nearest
from scaffold.spec import Initializer, Scalar

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

Taken = Literal["value", "spread", "factor", "seed", "mode", "distribution"]

_NORMAL: tuple[tuple[str, Taken], ...] = (
    ("mean", "value"),
    ("stddev", "spread"),
    ("seed", "seed"),
)
_SEED: tuple[tuple[str, Taken], ...] = (("seed", "seed"),)
# The arguments of each initializer, in Keras's order.
PARAMETERS: dict[str, tuple[tuple[str, Taken], ...]] = {
    "zeros": (),
    "ones": (),
    "constant": (("value", "value"),),
    "random_normal": _NORMAL,
    "random_uniform": (("minval", "value"), ("maxval", "value"), ("seed", "seed")),
    "truncated_normal": _NORMAL,
    "variance_scaling": (
        ("scale", "factor"),
        ("mode", "mode"),
        ("distribution", "distribution"),
        ("seed", "seed"),
    ),
    "glorot_normal": _SEED,
    "glorot_uniform": _SEED,
    "he_normal": _SEED,
    "he_uniform": _SEED,
    "lecun_normal": _SEED,
    "lecun_uniform": _SEED,
    "identity": (("gain", "factor"),),
    "orthogonal": (("gain", "factor"), ("seed", "seed")),
}
_CHOICES = {
    "mode": ("fan_in", "fan_out", "fan_avg"),
    "distribution": ("truncated_normal", "untruncated_normal", "uniform"),
}
# The limits keep every value a normal number of float16, with room to compute.
_LIMITS: dict[str, tuple[float, float, str]] = {
    "value": (-1000, 1000, "a number of at most 1000"),
    "spread": (0, 10, "a number from 0 to 10"),
    "factor": (1e-4, 100, "a number from 0.0001 to 100"),
    "seed": (0, 2**31 - 1, "an integer from 0 to 2147483647"),
}
LEAST = 1e-4
"""Half precision has few digits below it: nonzero numbers are at least this large."""

# (scale, mode, distribution) of the initializers that scale a variance.
_SCALED = {
    "glorot_normal": (1.0, "fan_avg", "truncated_normal"),
    "glorot_uniform": (1.0, "fan_avg", "uniform"),
    "he_normal": (2.0, "fan_in", "truncated_normal"),
    "he_uniform": (2.0, "fan_in", "uniform"),
    "lecun_normal": (1.0, "fan_in", "truncated_normal"),
    "lecun_uniform": (1.0, "fan_in", "uniform"),
}
# A normal distribution cut at two standard deviations has this one.
_TRUNCATED = 0.87962566103423978


def parse_initializer(text: str, weight: str) -> Initializer:
    """Returns the initializer in `text`: `zeros`, `truncated_normal(stddev=0.02)`.

    Raises:
        MplayerError: If Keras has no such initializer, or not these arguments.
    """
    about = f"--weights: the initializer {text!r} of {weight!r}"
    example = f"{weight}=truncated_normal(stddev=0.02)"
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        node = None
    name, call = node, None
    if isinstance(node, ast.Call):
        name, call = node.func, node
    if not isinstance(name, ast.Name):
        raise MplayerError(f"{about} is not a name, as in '{example}'.")
    known = _plain(name.id)
    if known not in PARAMETERS:
        raise MplayerError(
            f"--weights: {weight!r} has the unknown initializer {name.id!r}."
            f"{nearest(known, tuple(PARAMETERS))} Write one of Keras's, as in "
            f"'{example}'."
        )
    arguments = _arguments(known, call, about)
    if known == "constant" and "value" not in arguments:
        raise MplayerError(f"{about} has no value: write '{weight}=constant(0.1)'.")
    low, high = arguments.get("minval", -0.05), arguments.get("maxval", 0.05)
    if known == "random_uniform" and not low < high:  # type: ignore[operator] # both are numbers here
        raise MplayerError(
            f"{about} draws from nothing: minval must be less than maxval, as in "
            f"'{weight}=random_uniform(minval=-0.05, maxval=0.05)'."
        )
    order = [parameter for parameter, _ in PARAMETERS[known]]
    return Initializer(
        known, tuple((key, arguments[key]) for key in order if key in arguments)
    )


def _plain(name: str) -> str:
    """Returns `he_normal` for `HeNormal` and `HE_NORMAL`."""
    words = "".join(
        f"_{x}" if x.isupper() and i and name[i - 1].islower() else x
        for i, x in enumerate(name)
    )
    return words.lower()


def _arguments(name: str, call: ast.Call | None, about: str) -> dict[str, Scalar]:
    parameters = PARAMETERS[name]
    takes = ", ".join(parameter for parameter, _ in parameters) or "no arguments"
    if call is None:
        return {}
    if len(call.args) > len(parameters):
        raise MplayerError(f"{about} has too many arguments: {name} takes {takes}.")
    given: list[tuple[str, ast.expr]] = [
        (parameter, value)
        for (parameter, _), value in zip(parameters, call.args, strict=False)
    ]
    given += [(keyword.arg or "**", keyword.value) for keyword in call.keywords]
    types = dict(parameters)
    arguments: dict[str, Scalar] = {}
    for key, node in given:
        if key not in types:
            raise MplayerError(
                f"{about} has no argument {key!r}.{nearest(key, list(types))} "
                f"{name} takes {takes}."
            )
        if key in arguments:
            raise MplayerError(f"{about} has {key!r} twice: give it once.")
        arguments[key] = _argument(key, types[key], node, about)
    return arguments


def _argument(key: str, taken: Taken, node: ast.expr, about: str) -> Scalar:
    if taken in _CHOICES:
        value = node.id if isinstance(node, ast.Name) else _literal(node)
        if value in _CHOICES[taken]:
            return value
        raise MplayerError(
            f"{about} has {key}={value!r}.{nearest(str(value), _CHOICES[taken])} "
            f"It is one of {', '.join(_CHOICES[taken])}."
        )
    value = _literal(node)
    low, high, wanted = _LIMITS[taken]
    whole = taken == "seed"
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if (
        not number or (whole and not isinstance(value, int)) or not low <= value <= high  # type: ignore[operator] # a number, by `number`
    ):
        raise MplayerError(
            f"{about} has {key}={ast.unparse(node)}, and it must be {wanted}."
        )
    if taken in ("value", "spread") and value and abs(value) < LEAST:  # type: ignore[arg-type] # a number
        raise MplayerError(
            f"{about} has {key}={value}, which is lost in float16: write at least "
            f"{LEAST}."
        )
    return value


def _literal(node: ast.expr) -> Scalar:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    return value if isinstance(value, (int, float, str)) else None


def require_initializable(
    initializer: Initializer, weight: str, rank: int, dtype: str | None
) -> None:
    """Refuses an initializer that cannot fill this shape or this dtype.

    Raises:
        MplayerError: If it cannot.
    """
    name = initializer.name
    if name == "identity" and rank != 2:  # noqa: PLR2004 -- a matrix
        raise MplayerError(
            f"--weights: {weight!r} has {rank} axes, and identity fills matrices "
            f"alone: write '{weight}[in,in]=identity' or '=ones'."
        )
    if name == "orthogonal" and rank < 2:  # noqa: PLR2004 -- at least a matrix
        raise MplayerError(
            f"--weights: {weight!r} has {rank} axes, and orthogonal needs two or more: "
            f"write '{weight}[in,units]=orthogonal' or '=random_normal'."
        )
    if name == "orthogonal" and dtype not in ("float32", "float64"):
        raise MplayerError(
            f"--weights: orthogonal cannot fill {weight!r} in bfloat16, where "
            "TensorFlow has no QR decomposition: pin it, as in "
            f"'{weight}[in,units]:float32=orthogonal', or write '=glorot_uniform'."
        )


def fans(shape: Sequence[int]) -> tuple[float, float]:
    """Returns the numbers of inputs and outputs of a unit, as Keras counts them."""
    if len(shape) < 2:  # noqa: PLR2004 -- scalars and vectors
        size = float(shape[0]) if shape else 1.0
        return size, size
    field = math.prod(shape[:-2])
    return float(field * shape[-2]), float(field * shape[-1])


def _distribution(
    initializer: Initializer, shape: Sequence[int]
) -> tuple[str, float, float]:
    """Returns (distribution, center, deviation or half width)."""
    given = dict(initializer.arguments)

    def number(key: str, default: float) -> float:
        value = given.get(key, default)
        return float(value) if isinstance(value, (int, float)) else default

    name = initializer.name
    fan_in, fan_out = fans(shape)
    low, high = number("minval", -0.05), number("maxval", 0.05)
    rows = {
        "zeros": ("fixed", 0.0, 0.0),
        "ones": ("fixed", 1.0, 0.0),
        "constant": ("fixed", number("value", 0.0), 0.0),
        "identity": ("identity", 0.0, number("gain", 1.0)),
        "random_normal": ("normal", number("mean", 0.0), number("stddev", 0.05)),
        "truncated_normal": ("truncated", number("mean", 0.0), number("stddev", 0.05)),
        "random_uniform": ("uniform", (low + high) / 2, (high - low) / 2),
        # Not drawn as rotations: of the same size, which is what matters here.
        "orthogonal": (
            "normal",
            0.0,
            number("gain", 1.0) / max(fan_in, fan_out) ** 0.5,
        ),
    }
    if name in rows:
        return rows[name]
    scale, mode, kind = _SCALED.get(
        name,
        (
            number("scale", 1.0),
            str(given.get("mode", "fan_in")),
            str(given.get("distribution", "truncated_normal")),
        ),
    )
    fan = {"fan_in": fan_in, "fan_out": fan_out}.get(mode, (fan_in + fan_out) / 2)
    variance = scale / max(1.0, fan)
    return {
        "uniform": ("uniform", 0.0, math.sqrt(3 * variance)),
        "truncated_normal": ("truncated", 0.0, math.sqrt(variance) / _TRUNCATED),
    }.get(kind, ("normal", 0.0, math.sqrt(variance)))


def draw(initializer: Initializer, shape: Sequence[int], random: Random) -> list[float]:
    """Returns values as the initializer draws them, in row-major order."""
    kind, center, spread = _distribution(initializer, shape)
    count = math.prod(shape)
    if kind == "fixed":
        return [center] * count
    if kind == "identity":
        return [
            spread if row == column else 0.0
            for row in range(shape[0])
            for column in range(shape[1])
        ]
    if kind == "uniform":
        return [random.uniform(center - spread, center + spread) for _ in range(count)]
    values: list[float] = []
    while len(values) < count:
        value = random.gauss(0.0, 1.0)
        if kind == "normal" or abs(value) <= 2:  # noqa: PLR2004 -- where Keras cuts
            values.append(center + spread * value)
    return values


def bounds(initializer: Initializer, shape: Sequence[int]) -> tuple[float, float]:
    """Returns an interval that holds the values; five deviations of a normal one."""
    kind, center, spread = _distribution(initializer, shape)
    if kind == "identity":
        return 0.0, spread
    reach = spread * {"normal": 5, "truncated": 2}.get(kind, 1)
    return center - reach, center + reach
