"""What a `--call` expression computes: shapes and ranges, without running it.

The expression is read as syntax and interpreted over symbolic shapes and intervals.
What passes is rehearsed (`scaffold.rehearse`), so that the generated tests pass too.
"""

from __future__ import annotations

import ast
import math
import re
from typing import TYPE_CHECKING, NamedTuple, NoReturn, cast

from scaffold.errors import MplayerError, nearest
from scaffold.functions import (
    AWAY,
    CURVES,
    FUNCTIONS,
    NEEDED,
    NEGATIVE,
    REFUSED,
    Curve,
    Function,
    Reduction,
    Rule,
    add,
    divide,
    leaky,
    multiply,
    power,
    subtract,
    total,
)
from scaffold.initializers import LEAST, bounds, draw
from scaffold.names import require_ascii
from scaffold.printer import printed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from scaffold.spec import Argument, Dim, Weight
    from scaffold.tape import Array, Tape

BATCH = "batch"
# What the generated test feeds: the same sizes as `scaffold.rendering` writes into it.
SIZES = {"in": 5, "axis_1": 4, "axis_2": 6, "axis_3": 7}
SIZE = 3
NUMBERS: dict[str, float] = {"int": 2, "float": 0.5}
"""The values of required arguments that are no sizes."""

MOST_LARGE = 300.0
RANKS = (2, 3, 4)
MOST = 1e4
"""Literal numbers are at most this large: float16 ends at 65504."""
LONGEST_LINE = 88
LONGEST_TEXT = 400
MOST_ELEMENTS = 20_000
NOISE = 0.75
"""Tests add up to this to the initial value of a float weight."""
_EDIT = "or write the layer with the default call, then edit `call` in the file"


class Analysis(NamedTuple):
    """What a call was found to do; the shapes are without the batch axis."""

    call: str
    read: frozenset[str]
    input_shape: tuple[Dim, ...]
    output_shape: tuple[Dim, ...]
    any_rank: bool
    large: float


class Value(NamedTuple):
    """What is known of a subexpression. Its shape is None where it is a number."""

    shape: tuple[Dim, ...] | None
    low: float
    high: float
    run: Callable[[Tape], Array | float]

    def on(self, tape: Tape) -> Array:
        """Evaluates it to a tensor."""
        return tape.tensor(self.run(tape))

    @property
    def number(self) -> float:
        """What it is, where it is a number."""
        return self.low


# ---------------------------------------------------------------- the interpreter


_OPERATORS: dict[type[ast.operator], Rule] = {
    ast.Add: add,
    ast.Sub: subtract,
    ast.Mult: multiply,
    ast.Div: divide,
}


class OnlyBatchError(MplayerError):
    """The outputs are one number a row."""


class _Interpreter:
    """Interprets one expression for inputs of one rank."""

    def __init__(
        self,
        weights: Sequence[Weight],
        arguments: Sequence[Argument],
        input_shape: tuple[Dim, ...],
        large: float,
    ) -> None:
        self.arguments = {argument.name: argument for argument in arguments}
        self.bound: dict[str, int] = {}
        self.read: set[str] = set()
        self.visited = 0
        self.sizes = SIZES | {a.name: SIZE for a in arguments if a.size}
        self.axes = {str(dim) for dim in input_shape}
        self.values = {"inputs": _leaf("inputs", (BATCH, *input_shape), -large, large)}
        for weight in weights:
            shape = [self.size(dim) for dim in weight.shape]
            low, high = bounds(weight.initializer, shape)
            noise = NOISE if _floating(weight) else 0
            self.values[weight.name] = _leaf(
                weight.name, weight.shape, low, high + noise
            )
        for argument in arguments:
            if argument.type in NUMBERS:
                number = number_in_tests(argument)
                self.values[argument.name] = _number(number)

    # Shapes.

    def size(self, dim: Dim) -> int:
        """Returns the size that the generated test has for a dimension."""
        dim = self.resolved(dim)
        return dim if isinstance(dim, int) else self.sizes.get(dim, 1)

    def resolved(self, dim: Dim) -> Dim:
        return self.bound.get(dim, dim) if isinstance(dim, str) else dim

    def resolve(self, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        return tuple(self.resolved(dim) for dim in shape)

    def same(self, a: Dim, b: Dim) -> bool:
        """Whether two sizes agree; an axis of the inputs may be bound to a number."""
        a, b = self.resolved(a), self.resolved(b)
        if a == b:
            return True
        for axis, number in ((a, b), (b, a)):
            if axis in self.axes and isinstance(axis, str) and isinstance(number, int):
                self.bound[axis] = number
                return True
        return False

    def broadcast(
        self, node: ast.expr, a: Sequence[Dim], b: Sequence[Dim]
    ) -> tuple[Dim, ...]:
        result = []
        for k in range(1, max(len(a), len(b)) + 1):
            left = a[-k] if k <= len(a) else 1
            right = b[-k] if k <= len(b) else 1
            if left != 1 and right != 1 and not self.same(left, right):
                self.fail(
                    node,
                    f"has the shapes {show(a)} and {show(b)}, which do not go together",
                    "Give the weight a shape that does, such as "
                    f"[{show_dim(self.other(left, right))}]",
                )
            result.append(left if right == 1 else right)
        return self.resolve(result[::-1])

    def other(self, a: Dim, b: Dim) -> Dim:
        """Returns which of two sizes to suggest for a weight."""
        return next((x for x in (a, b) if x in ("in", BATCH)), a)

    def fail(self, node: ast.expr, what: str, way_out: str) -> NoReturn:
        raise MplayerError(f"--call: '{shown(node)}' {what}. {way_out}.")

    # Expressions.

    def visit(self, node: ast.expr) -> Value:
        self.visited += 1
        if isinstance(node, ast.Constant):
            return self.constant(node)
        if isinstance(node, ast.Name):
            return self.name(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self.curve(node, self.visit(node.operand), NEGATIVE)
        if isinstance(node, ast.BinOp):
            return self.operation(node)
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.Attribute):
            self.attribute(node)
        what = {
            ast.Subscript: "an index",
            ast.Compare: "a comparison",
            ast.IfExp: "a condition",
            ast.Lambda: "a lambda",
        }.get(type(node), "a form")
        return self.fail(
            node,
            f"is {what} that a call cannot have",
            "Use operators, tf functions and names, as in 'tf.tanh(inputs * w)', "
            + _EDIT,
        )

    def constant(self, node: ast.Constant) -> Value:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.fail(node, "is not a number", "Write one, as in 'inputs * 0.5'")
        require_number(value, f"--call: '{shown(node)}'")
        return _number(value)

    def name(self, node: ast.Name) -> Value:
        name = node.id
        if name in self.values:
            self.read.add(name)
            return self.values[name]
        known = [*self.values, *self.callables(), "tf"]
        argument = self.arguments.get(name)
        if argument is None:
            raise MplayerError(
                f"--call: '{name}' is not known.{nearest(name, known)} The call has "
                f"the names {', '.join(known)}."
            )
        if argument.type == "activation":
            self.fail(node, "is a function", f"Call it, as in '{name}(inputs)'")
        return self.fail(
            node,
            f"is a {argument.type}, and a call computes with numbers",
            "Leave it out: code in `call` can use it later",
        )

    def callables(self) -> list[str]:
        return [a.name for a in self.arguments.values() if a.type == "activation"]

    def attribute(self, node: ast.Attribute) -> NoReturn:
        path = shown(node)
        if path.startswith("self."):
            self.fail(
                node,
                "is not needed: weights and arguments are local names, in the compute "
                "dtype",
                f"Write '{node.attr}'",
            )
        if path in FUNCTIONS:
            self.fail(node, "is a function", f"Call it, as in '{path}(inputs)'")
        self.fail(node, "is no value that a call can have", "Use 'inputs' and weights")

    def operation(self, node: ast.BinOp) -> Value:
        if isinstance(node.op, ast.MatMult):
            return self.matmul(node, self.visit(node.left), self.visit(node.right))
        if isinstance(node.op, ast.Pow):
            return self.power(node)
        rule = _OPERATORS.get(type(node.op))
        if rule is None:
            self.fail(
                node,
                "has an operator that a call cannot have",
                "Use + - * / @ and **, " + _EDIT,
            )
        if rule is multiply and ast.dump(node.left) == ast.dump(node.right):
            # A square, which is never negative.
            return self.curve(node, self.visit(node.left), power(2))
        return self.two(node, self.visit(node.left), self.visit(node.right), rule)

    def power(self, node: ast.BinOp) -> Value:
        base, exponent = self.visit(node.left), node.right
        if (
            base.shape is None
            or not isinstance(exponent, ast.Constant)
            or type(exponent.value) is not int
            or exponent.value not in (2, 3, 4)
        ):
            self.fail(
                node,
                "is a power that may not be exact or finite in every dtype",
                "Raise a tensor to 2, 3 or 4, as in 'inputs**2'",
            )
        return self.curve(node, base, power(exponent.value))

    def call(self, node: ast.Call) -> Value:
        path = shown(node.func)
        if path in self.callables():
            return self.activation(node, path)
        if path not in FUNCTIONS:
            known = [*FUNCTIONS, *self.callables()]
            why = REFUSED.get(path, "it is not known to work in every dtype")
            self.fail(
                node.func,
                f"cannot be called here: {why}",
                f"Use one such as '{_nearest_function(path, known)}', {_EDIT}",
            )
        function = FUNCTIONS[path]
        if function.rule == "einsum":
            return self.einsum(node)
        operands, literals = self.signature(node, path, function)
        values = [self.visit(operand) for operand in operands]
        if values[0].shape is None:
            self.fail(
                operands[0],
                f"is a number, which {path} would take for float32",
                "Put a tensor first, as in 'tf.maximum(inputs, 0.5)'",
            )
        if function.curve:
            return self.curve(node, values[0], function.curve)
        if function.two:
            return self.two(node, values[0], values[1], function.two)
        if function.reduction:
            return self.reduce(node, values[0], function.reduction, **literals)
        result: Value = getattr(self, function.rule)(node, *values, **literals)
        return result

    def signature(
        self, node: ast.Call, path: str, function: Function
    ) -> tuple[list[ast.expr], dict[str, object]]:
        names = list(function.literals)
        operands = ["x", "y"][: function.operands]
        usage = (
            f"Write '{path}({', '.join([*operands, *[f'{n}=...' for n in names]])})'"
        )
        given = node.args[: function.operands]
        extra = node.args[function.operands :]
        literals = dict(function.literals)
        if (
            len(given) < function.operands
            or len(extra) > len(names)
            or any(isinstance(arg, ast.Starred) for arg in node.args)
        ):
            self.fail(node, "has not the arguments of its function", usage)
        pairs = [*zip(names, extra, strict=False)]
        pairs += [(keyword.arg or "**", keyword.value) for keyword in node.keywords]
        seen: set[str] = set()
        for key, value in pairs:
            if key not in literals or key in seen:
                self.fail(node, f"has an argument {key!r} that it cannot have", usage)
            seen.add(key)
            literals[key] = self.literal(value, key)
        for key, default in literals.items():
            if default is NEEDED:
                self.fail(node, f"has no {key}", usage)
        return given, literals

    def literal(self, node: ast.expr, key: str) -> object:
        try:
            value: object = ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError):
            self.fail(
                node,
                f"is not a literal, and {key} must be one",
                f"Write the value itself, as in '{key}=1'",
            )
        return value

    # The rules: one for each kind of function.

    def activation(self, node: ast.Call, name: str) -> Value:
        if len(node.args) != 1 or node.keywords:
            self.fail(node, "needs one tensor", f"Write '{name}(inputs)'")
        operand = self.visit(node.args[0])
        if operand.shape is None:
            self.fail(node, "needs a tensor", f"Write '{name}(inputs)'")
        default = self.arguments[name].default or "linear"
        if default != "softmax":
            return self.curve(node, operand, CURVES[str(default)])
        if len(operand.shape) < 2:  # noqa: PLR2004 -- Keras refuses vectors
            self.fail(
                node,
                "is a softmax of a tensor of less than two axes",
                f"Use 'tf.nn.softmax({shown(node.args[0])})'",
            )
        return self.softmax(node, operand, axis=-1)

    def curve(self, node: ast.expr, a: Value, curve: Curve) -> Value:
        if a.low < curve.least:
            self.fail(
                node,
                f"takes what can be {a.low:.3g}, and is not of ordinary size below "
                f"{curve.least:g} in float16",
                "Keep its operand away from that, as in "
                "'tf.sqrt(tf.square(inputs) + 0.1)' or 'tf.nn.softplus(w) + 0.1'",
            )
        inner = [x for x in curve.turns if a.low < x < a.high]
        ends = [min(max(x, -1e9), 1e9) for x in (a.low, a.high, *inner)]
        ordered = curve.values or [curve.value(x) for x in ends]
        if a.shape is None:
            return _number(curve.value(a.number))
        return Value(
            a.shape,
            min(ordered),
            max(ordered),
            lambda tape: tape.map(curve, a.on(tape)),
        )

    def leaky_relu(self, node: ast.expr, a: Value, *, alpha: object) -> Value:
        return self.curve(node, a, leaky(self.number(node, alpha, "alpha")))

    def number(self, node: ast.expr, value: object, key: str) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.fail(node, f"has {key}={value!r}", f"Write a number: '{key}=0.2'")
        require_number(value, f"--call: '{shown(node)}': {key}={value!r}")
        return value

    def two(self, node: ast.expr, a: Value, b: Value, rule: Rule) -> Value:
        low, high = self.interval(node, a, b, rule)
        if a.shape is None and b.shape is None:
            return _number(rule(a.number, b.number)[0])
        shape = self.broadcast(node, a.shape or (), b.shape or ())
        return Value(
            shape, low, high, lambda tape: tape.zip(rule, a.on(tape), b.on(tape))
        )

    def interval(
        self, node: ast.expr, a: Value, b: Value, rule: Rule
    ) -> tuple[float, float]:
        if rule is divide and not (b.low >= AWAY or b.high <= -AWAY):
            below = node.right if isinstance(node, ast.BinOp) else node
            self.fail(
                below,
                f"divides, and can be anything from {b.low:.3g} to {b.high:.3g} in the "
                "tests: near 0 float16 is not finite",
                "Keep it away from 0, as in 'inputs / (tf.nn.softplus(w) + 0.1)'",
            )
        corners = [rule(x, y)[0] for x in (a.low, a.high) for y in (b.low, b.high)]
        return _bounded(corners)

    def reduce(
        self,
        node: ast.expr,
        a: Value,
        rule: Reduction,
        *,
        axis: object = None,
        keepdims: object = False,
    ) -> Value:
        shape = _shape(a)
        axes = self.axes_of(node, shape, range(len(shape)) if axis is None else axis)
        if not isinstance(keepdims, bool):
            self.fail(node, f"has keepdims={keepdims!r}", "Write 'keepdims=True'")
        count = math.prod(self.size(shape[k]) for k in axes) if rule is total else 1
        kept = tuple(1 if k in axes else n for k, n in enumerate(shape))
        if not keepdims:
            kept = tuple(n for k, n in enumerate(shape) if k not in axes)

        def run(tape: Tape) -> Array:
            result = tape.reduce(rule, a.on(tape), axes)
            if keepdims:
                return result
            sizes = [n for k, n in enumerate(result.shape) if k not in axes]
            return tape.reshape(result, sizes)

        ends = (a.low, a.high, count * a.low, count * a.high)
        return Value(kept, min(ends), max(ends), run)

    def axes_of(
        self, node: ast.expr, shape: Sequence[Dim], axis: object, *, own: bool = True
    ) -> list[int]:
        """Returns the axes in `axis`; none may be the batch where it is `own`."""
        given = [axis] if isinstance(axis, int) else axis
        rank = len(shape)
        if (
            not isinstance(given, (list, tuple, range))
            or not all(type(k) is int and -rank <= k < rank for k in given)
            or len({k % rank for k in given}) != len(given)
        ):
            self.fail(
                node,
                f"has the axes {axis!r}, and its operand the shape {show(shape)}",
                "Write an axis that it has, as in 'axis=-1'",
            )
        axes = [k % rank for k in given]
        if own and any(shape[k] == BATCH for k in axes):
            self.fail(
                node,
                "mixes the rows of a batch",
                "Leave the batch out, as in 'axis=-1'",
            )
        return axes

    def softmax(self, node: ast.expr, a: Value, *, axis: object) -> Value:
        shape = _shape(a)
        if type(axis) is not int or not shape:
            self.fail(node, "needs one axis", "Write 'tf.nn.softmax(inputs, axis=-1)'")
        (along,) = self.axes_of(node, shape, axis)
        return Value(shape, 0.0, 1.0, lambda tape: tape.softmax(a.on(tape), along))

    def bias_add(self, node: ast.expr, a: Value, b: Value) -> Value:
        if len(_shape(a)) < 2 or b.shape is None or len(b.shape) != 1:  # noqa: PLR2004 -- as TensorFlow does
            self.fail(
                node,
                "adds a vector to the last of two or more axes",
                "Write 'inputs + b'",
            )
        shape = self.broadcast(node, _shape(a), b.shape)
        low, high = self.interval(node, a, b, add)
        # Its gradient is added up in another way than that of `+`.
        return Value(
            shape,
            low,
            high,
            lambda tape: tape.zip(add, a.on(tape), b.on(tape), bias=True),
        )

    def matmul(
        self,
        node: ast.expr,
        a: Value,
        b: Value,
        *,
        transpose_a: object = False,
        transpose_b: object = False,
    ) -> Value:
        if not isinstance(transpose_a, bool) or not isinstance(transpose_b, bool):
            self.fail(
                node,
                "transposes where that is neither true nor false",
                "Write 'transpose_b=True'",
            )
        for value in (a, b):
            if value.shape is None or len(value.shape) < 2:  # noqa: PLR2004 -- matrices
                what = "a number" if value.shape is None else show(value.shape)
                self.fail(
                    node,
                    f"multiplies matrices, and one of its operands is {what}",
                    "Give the weight two axes, as in 'kernel[in,units]', or write "
                    "'inputs * w'",
                )
        left, right = "nk", "km"
        left = left[::-1] if transpose_a else left
        right = right[::-1] if transpose_b else right
        ranks = [len(_shape(value)) - 2 for value in (a, b)]
        outer = "ABCDEF"[: max(ranks)]
        letters = [
            outer[len(outer) - rank :] + names
            for rank, names in zip(ranks, (left, right), strict=True)
        ]
        shape = self.contracted(node, letters, f"{outer}nm", [_shape(a), _shape(b)])
        count = self.size(self.letter_size)

        return Value(
            shape,
            *_products(a, b, count),
            lambda tape: tape.matmul(a.on(tape), b.on(tape), left, right),
        )

    def contracted(
        self,
        node: ast.expr,
        letters: Sequence[str],
        result: str,
        shapes: Sequence[Sequence[Dim]],
    ) -> tuple[Dim, ...]:
        """Returns the shape of an `einsum`; capital letters broadcast."""
        sizes: dict[str, Dim] = {}
        for names, shape in zip(letters, shapes, strict=True):
            for letter, dim in zip(names, shape, strict=True):
                known = sizes.setdefault(letter, dim)
                if letter.isupper() and 1 in (known, dim):
                    sizes[letter] = known if dim == 1 else dim
                elif not self.same(known, dim):
                    self.fail(
                        node,
                        f"multiplies the shapes {' and '.join(map(show, shapes))}: "
                        f"{show_dim(known)} is not {show_dim(dim)}",
                        "Give the weight a shape that fits, as in 'kernel[in,units]'",
                    )
        for letter, dim in sizes.items():
            if letter not in result and dim == BATCH:
                self.fail(
                    node,
                    "sums over the rows of a batch",
                    "Keep the batch in the result, as in 'inputs @ kernel'",
                )
        self.letter_size = sizes.get("k", 1)
        return self.resolve([sizes[letter] for letter in result])

    def einsum(self, node: ast.Call) -> Value:
        usage = "Write an equation such as 'tf.einsum(\"bi,ij->bj\", inputs, kernel)'"
        first = node.args[0] if node.args else None
        text = first.value if isinstance(first, ast.Constant) else None
        if not isinstance(text, str) or node.keywords:
            self.fail(node, "needs an equation first, and no keywords", usage)
        equation = text.replace(" ", "")
        cast("ast.Constant", first).value = equation
        if "..." in equation:
            self.fail(
                node,
                "has an ellipsis, with which TensorFlow's einsum is wrong in half "
                "precision on the CPU",
                usage,
            )
        match = re.fullmatch(r"([a-z]+)(?:,([a-z]+))?->([a-z]+)", equation)
        operands = [self.visit(operand) for operand in node.args[1:]]
        letters = [x for x in match.groups()[:2] if x] if match else []
        if (
            not match
            or len(letters) != len(operands)
            or any(value.shape is None for value in operands)
            or any(len(set(x)) != len(x) for x in (*letters, match[3]))
            or set(match[3]) - set("".join(letters))
        ):
            self.fail(
                node,
                "has an equation that is not one of one or two tensors, each letter "
                "once in each",
                usage,
            )
        shapes = [_shape(value) for value in operands]
        for names, shape in zip(letters, shapes, strict=True):
            if len(names) != len(shape):
                self.fail(node, f"gives {names!r} to the shape {show(shape)}", usage)
        result = match[3]
        shape = self.contracted(node, letters, result, shapes)
        size = {
            x: self.size(n)
            for names, dims in zip(letters, shapes, strict=True)
            for x, n in zip(names, dims, strict=True)
        }
        count = math.prod(n for x, n in size.items() if x not in result)
        low, high = _products(operands[0], (operands[1:] or [_number(1)])[0], count)

        def run(tape: Tape) -> Array:
            arrays = [value.on(tape) for value in operands]
            return tape.contract(tuple(letters), result, arrays)

        return Value(shape, low, high, run)

    def expand_dims(self, node: ast.expr, a: Value, *, axis: object) -> Value:
        shape = _shape(a)
        rank = len(shape) + 1
        if type(axis) is not int or not -rank <= axis < rank:
            self.fail(node, f"has axis={axis!r}", "Write an axis, as in 'axis=1'")
        at = axis % rank
        return a._replace(
            shape=(*shape[:at], 1, *shape[at:]),
            run=lambda tape: _with_axis(tape, a.on(tape), at),
        )

    def squeeze(self, node: ast.expr, a: Value, *, axis: object) -> Value:
        shape = _shape(a)
        axes = self.axes_of(node, shape, axis)
        if len(axes) != 1 or shape[axes[0]] != 1:
            self.fail(
                node,
                f"removes an axis of size 1, and {show(shape)} has another size there",
                "Squeeze what was expanded or kept, as in 'axis=1'",
            )
        at = axes[0]
        return a._replace(
            shape=(*shape[:at], *shape[at + 1 :]),
            run=lambda tape: _without_axis(tape, a.on(tape), at),
        )

    def transpose(self, node: ast.expr, a: Value, *, perm: object) -> Value:
        shape = _shape(a)
        order = list(range(len(shape)))[::-1] if perm is None else perm
        order = self.axes_of(node, shape, order, own=False)
        if len(order) != len(shape):
            self.fail(
                node,
                f"has perm={perm!r}, and its operand the shape {show(shape)}",
                "Name each axis once, as in 'tf.transpose(inputs, perm=[0, 2, 1])'",
            )

        return a._replace(
            shape=tuple(shape[k] for k in order),
            run=lambda tape: tape.transpose(a.on(tape), order),
        )

    def conv1d(
        self, node: ast.expr, a: Value, b: Value, *, stride: object, padding: object
    ) -> Value:
        return self.convolve(node, a, b, axes=1, strides=stride, padding=padding)

    def conv2d(
        self, node: ast.expr, a: Value, b: Value, *, strides: object, padding: object
    ) -> Value:
        return self.convolve(node, a, b, axes=2, strides=strides, padding=padding)

    def convolve(
        self,
        node: ast.expr,
        a: Value,
        b: Value,
        *,
        axes: int,
        strides: object,
        padding: object,
    ) -> Value:
        shape, field = _shape(a), b.shape or ()
        kernel = ",".join(["3"] * axes)
        ones = {1, 3} if axes == 1 else {1, 2, 4}
        if padding != "SAME" or repr(strides) not in (
            "1",
            *(repr([1] * count) for count in ones),
        ):
            self.fail(
                node,
                f"has strides {strides!r} and padding {padding!r}",
                'Sizes are kept with strides of 1 and padding="SAME"',
            )
        if len(shape) != axes + 2 or len(field) != axes + 2:
            self.fail(
                node,
                f"convolves {axes + 2} axes, and has the shapes {show(shape)} and "
                f"{show(field)}",
                f"Give the weight a shape such as 'kernel[{kernel},in,units]'",
            )
        if not all(isinstance(n, int) for n in field[:axes]):
            self.fail(
                node,
                f"has the kernel {show(field)}, whose first sizes must be numbers",
                f"Write 'kernel[{kernel},in,units]'",
            )
        if not self.same(shape[-1], field[-2]):
            self.fail(
                node,
                f"has {show_dim(shape[-1])} channels, and its kernel {show(field)}",
                f"Write 'kernel[{kernel},in,units]'",
            )
        count = math.prod(self.size(n) for n in field[:-1])
        low, high = _products(a, b, count)
        # At the edges there are zeros.
        return Value(
            self.resolve((*shape[:-1], field[-1])),
            min(low, 0.0),
            max(high, 0.0),
            lambda tape: tape.convolve(a.on(tape), b.on(tape)),
        )


def _leaf(name: str, shape: tuple[Dim, ...], low: float, high: float) -> Value:
    return Value(shape, low, high, lambda tape: tape.leaves[name])


def _number(value: float) -> Value:
    return Value(None, value, value, lambda _: value)


def _shape(value: Value) -> tuple[Dim, ...]:
    return value.shape or ()


def _floating(weight: Weight) -> bool:
    return weight.dtype is None or "float" in weight.dtype


def _products(a: Value, b: Value, count: int) -> tuple[float, float]:
    corners = [count * x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return _bounded(corners)


def _bounded(corners: Sequence[float]) -> tuple[float, float]:
    # Zero times infinity is zero here: every value is finite, if large.
    finite = [0.0 if math.isnan(x) else x for x in corners]
    return min(finite), max(finite)


def _with_axis(tape: Tape, array: Array, at: int) -> Array:
    return tape.reshape(array, (*array.shape[:at], 1, *array.shape[at:]))


def _without_axis(tape: Tape, array: Array, at: int) -> Array:
    return tape.reshape(array, (*array.shape[:at], *array.shape[at + 1 :]))


def _nearest_function(path: str, known: Sequence[str]) -> str:
    import difflib

    last = path.rsplit(".", 1)[-1]
    tails = {name.rsplit(".", 1)[-1]: name for name in reversed(known)}
    close = difflib.get_close_matches(last, list(tails), n=1, cutoff=0.5)
    return tails[close[0]] if close else "tf.tanh"


def require_number(value: float, about: str) -> None:
    """Refuses a number that float16 cannot compute with.

    Raises:
        MplayerError: If it is not finite, or not 0 and too small or too large.
    """
    if value != 0 and not LEAST <= abs(value) <= MOST:
        lost = "is lost in float16" if abs(value) < LEAST else "is beyond float16"
        raise MplayerError(
            f"{about} {lost}. Use 0 or a number between {LEAST} and {MOST:g}, such as "
            "0.001."
        )


def number_in_tests(argument: Argument) -> float:
    """Returns the value that the generated test gives a number."""
    if argument.size:
        return SIZE
    default = argument.default
    if argument.required or not isinstance(default, (int, float)):
        return NUMBERS[argument.type]
    return default


def show(shape: Sequence[Dim]) -> str:
    """Returns a shape as messages write it: `[batch,in]`."""
    return f"[{','.join(map(show_dim, shape))}]"


def show_dim(dim: Dim) -> str:
    """Returns a size as messages write it."""
    return str(dim)


def shown(node: ast.expr, limit: int = 60) -> str:
    """Returns an expression as messages write it: in one line, not too long."""
    try:
        text = ast.unparse(node).replace("\n", " ")
    except (RecursionError, ValueError):
        text = type(node).__name__
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


# ------------------------------------------------------------------- the analysis


def parse_call(text: str) -> ast.expr:
    """Returns the syntax of a call.

    Raises:
        MplayerError: If it is not one Python expression in ASCII.
    """
    import warnings

    line = " ".join(text.split())
    require_ascii(line, "--call")
    example = "Write one, as in 'inputs @ kernel + bias'."
    if not line:
        raise MplayerError(f"--call: {text!r} is no expression. {example}")
    if len(line) > LONGEST_TEXT:
        raise MplayerError(
            f"--call: '{line[:40]}...' has {len(line)} characters, and "
            f"{LONGEST_TEXT} is the limit. Use shorter names, {_EDIT}."
        )
    strange = next((x for x in line if x in "\\#;`" or not x.isprintable()), None)
    if strange:
        raise MplayerError(f"--call: {strange!r} has no place in {line!r}. {example}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(line, mode="eval").body
    except SyntaxError as error:
        place = max(0, min((error.offset or 1) - 1, len(line)))
        raise MplayerError(
            f"--call: it is not an expression: {error.msg}, at character {place + 1}. "
            f"{example}\n  {line}\n  {' ' * place}^"
        ) from None
    except (ValueError, RecursionError, MemoryError):
        raise MplayerError(
            f"--call: '{line[:40]}' is not an expression. {example}"
        ) from None


def analyse(
    text: str,
    weights: Sequence[Weight],
    arguments: Sequence[Argument],
    most: float = MOST_LARGE,
    *,
    rehearsed: bool = True,
) -> Analysis:
    """Finds what a call computes.

    Args:
        text: A Python expression over `inputs`, weights and arguments.
        weights: The layer's weights.
        arguments: The layer's constructor arguments.
        most: The largest inputs that the tests may feed.
        rehearsed: Whether to rehearse the matrix; false for what is known to pass it.

    Returns:
        What templates and tests must know of it.

    Raises:
        MplayerError: If it could not pass its tests, with the reason and a way out.
    """
    node = parse_call(text)
    found = _interpret(node, weights, arguments, most)
    call = printed(node)
    used = re.findall(r"[a-z_][a-z0-9_]*", call)
    own = sum(used.count(argument.name) for argument in arguments)
    length = len("        return ") + len(call) + own * len("self.")
    if length > LONGEST_LINE:
        raise MplayerError(
            f"--call: '{shown(node)}' makes a line of {length} columns, and "
            f"{LONGEST_LINE} is the limit. Use shorter names, {_EDIT}."
        )
    interpreter, value = found[0]
    for weight in weights:
        if weight.trainable and weight.name not in interpreter.read:
            raise MplayerError(
                f"--call: '{call}' does not use the weight {weight.name!r}, so no "
                f"gradient could reach it. Use it, as in 'inputs * {weight.name}', or "
                f"mark it in --weights: '{weight.name}:frozen'."
            )
    if "inputs" not in interpreter.read:
        raise MplayerError(
            f"--call: '{call}' does not use 'inputs'. Use them, as in "
            f"'inputs * {weights[0].name if weights else 2}'."
        )
    input_shape = interpreter.resolve(_shape(interpreter.values["inputs"])[1:])
    output_shape = interpreter.resolve(_shape(value)[1:])
    large = (
        _rehearse(call, interpreter, value, weights, arguments, most)
        if rehearsed
        else most
    )
    return Analysis(
        call=call,
        read=frozenset(interpreter.read),
        input_shape=input_shape,
        output_shape=output_shape,
        any_rank=_any_rank(found),
        large=large,
    )


def _interpret(
    node: ast.expr,
    weights: Sequence[Weight],
    arguments: Sequence[Argument],
    most: float,
) -> list[tuple[_Interpreter, Value]]:
    """Returns what fits, for inputs of 2, 3 and 4 axes; the first is the layer's."""
    found: list[tuple[_Interpreter, Value]] = []
    errors: list[tuple[int, MplayerError]] = []
    for rank in RANKS:
        axes = tuple(f"axis_{k}" for k in range(1, rank - 1))
        interpreter = _Interpreter(weights, arguments, (*axes, "in"), most)
        try:
            value = interpreter.visit(node)
            _require_output(node, interpreter, value)
        except MplayerError as error:
            errors.append((-interpreter.visited, error))
        except RecursionError:
            deep = "--call: the expression is too deep. Write it with fewer brackets."
            raise MplayerError(deep) from None
        else:
            found.append((interpreter, value))
    if not found:
        # The rank at which most of it made sense tells most.
        raise min(errors, key=lambda item: item[0])[1]
    interpreter, value = found[0]
    inputs = _shape(interpreter.values["inputs"])
    if (
        errors
        and isinstance(errors[0][1], OnlyBatchError)
        and value.shape == inputs[:-1]
    ):
        # More axes fit, and are hardly what was meant.
        raise errors[0][1]
    return found


def _require_output(node: ast.expr, interpreter: _Interpreter, value: Value) -> None:
    if value.shape is None:
        interpreter.fail(node, "is a number", "Use the inputs, as in 'inputs * 2'")
    shape = interpreter.resolve(value.shape)
    if "inputs" not in interpreter.read:
        interpreter.fail(node, "does not use 'inputs'", "Use them, as in 'inputs * w'")
    if shape[:1] != (BATCH,) or BATCH in shape[1:]:
        interpreter.fail(
            node,
            f"has the shape {show(shape)}, where the batch must be the first axis and "
            "no other",
            "Give each weight at most the axes of one input, as in 'w[in]', and reduce "
            "the others alone, as in 'axis=-1'",
        )
    if len(shape) == 1:
        raise OnlyBatchError(
            f"--call: '{shown(node)}' leaves no axis but the batch. Keep one, as in "
            "'tf.reduce_sum(inputs * w, axis=-1, keepdims=True)'."
        )


def _any_rank(found: Sequence[tuple[_Interpreter, Value]]) -> bool:
    """Whether the call keeps all axes but the last, whatever their number."""
    last = {interpreter.resolve(_shape(value))[-1] for interpreter, value in found}
    return (
        len(found) == len(RANKS)
        and len(last) == 1
        and all(
            not (interpreter.bound.keys() - {"in"})
            and _shape(value)[:-1] == _shape(interpreter.values["inputs"])[:-1]
            for interpreter, value in found
        )
    )


def _rehearse(
    call: str,
    interpreter: _Interpreter,
    value: Value,
    weights: Sequence[Weight],
    arguments: Sequence[Argument],
    most: float,
) -> float:
    """Returns the largest inputs at which the generated tests pass."""
    # It needs longer to import than the rest, and most layers are a kind's own.
    from scaffold import rehearse
    from scaffold.tape import Leaf

    shapes = {
        weight.name: tuple(interpreter.size(dim) for dim in weight.shape)
        for weight in weights
        if weight.name in interpreter.read
    }
    one = tuple(interpreter.size(n) for n in _shape(interpreter.values["inputs"])[1:])
    elements = max(map(math.prod, [one, *shapes.values()]))

    def make(rows: int, random: Random) -> dict[str, Leaf]:
        shape = (rows, *one)
        draws = [random.gauss(0.0, 1.0) for _ in range(math.prod(shape))]
        leaves = {"inputs": Leaf(shape, draws)}
        for weight in weights:
            if weight.name in shapes:
                values = draw(weight.initializer, shapes[weight.name], random)
                floating = _floating(weight)
                if floating:
                    values = [x + random.uniform(0.05, 0.25) for x in values]
                leaves[weight.name] = Leaf(
                    shapes[weight.name], values, floating, weight.trainable
                )
        return leaves

    play = rehearse.Play(value.on, make)
    rows = rehearse.fitting_rows(play) if elements <= MOST_ELEMENTS else 0
    if not rows:
        largest = max(n for shape in (one, *shapes.values()) for n in shape)
        raise MplayerError(
            f"--weights: sizes as large as {largest} make the tests slow. Write 'in' "
            "or an argument in their place, which tests make small, as in "
            "'kernel[in,units]' with --arg units:int."
        )
    large, fault = rehearse.largest_inputs(play, rows, most)
    if fault:
        ways_out = [fault.way_out, _EDIT]
        if any(
            argument.type == "activation" and argument.default for argument in arguments
        ):
            ways_out.insert(
                1, "or give the activation no default, as in --arg f:activation"
            )
        raise MplayerError(
            f"--call: '{call}' would fail its tests: {fault.what}. "
            f"{', '.join(ways_out)}."
        )
    return large
