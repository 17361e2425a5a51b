"""What a call computes: its shapes, its ranges, its text, and what cannot pass."""

from __future__ import annotations

import ast
import itertools
import subprocess
import sys
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaffold import call as calls
from scaffold import rehearse
from scaffold import tape as tapes
from scaffold.call import Analysis, analyse, parse_call
from scaffold.errors import MplayerError
from scaffold.functions import ACTIVATIONS, CURVES, FUNCTIONS, REFUSED
from scaffold.grammar import parse, parse_arguments
from scaffold.printer import printed
from scaffold.spec import Argument, Dim, Initializer, Weight
from scaffold.tape import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, Leaf, Tape


def weight(text: str, **keywords: Any) -> Weight:
    """Returns the weight in `w[in,3]`; it starts at 1 unless `keywords` say more."""
    name, _, dims = text.rstrip("]").partition("[")
    shape: list[Dim] = [int(d) if d.isdigit() else d for d in dims.split(",") if d]
    initializer = keywords.pop("initializer", Initializer("ones"))
    return Weight(name, tuple(shape), initializer, **keywords)


WEIGHTS = {
    "w": weight("w[in]"),
    "m": weight("m[in,units]", initializer=Initializer("glorot_uniform")),
    "s": weight("s[in,in]", initializer=Initializer("glorot_uniform")),
    "b": weight("b[units]", initializer=Initializer("zeros")),
    "t": weight("t[]"),
    "k": weight("k[3,in,units]", initializer=Initializer("glorot_uniform")),
    "q": weight("q[2,3,in,units]", initializer=Initializer("glorot_uniform")),
    "pos": weight("pos[10,in]"),
    "four": weight("four[4,units]", initializer=Initializer("glorot_uniform")),
    "low": weight("low[1,in]"),
    "flags": weight("flags[in]", dtype="bool", frozen=True),
    "old": weight("old[in]", frozen=True),
}
ARGUMENTS = (
    Argument("units", "int", required=True, size=True),
    *parse_arguments(["rate:float=0.1", "n:int=3", "flag:bool=true", "mode:str=x"]),
    *parse_arguments(["act:activation=tanh", "soft:activation=softmax"]),
)


def look(text: str, *, rehearsed: bool = True) -> Analysis:
    """Analyses a call with the weights that it names."""
    names = {
        node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)
    }
    weights = [w for name, w in WEIGHTS.items() if name in names]
    return analyse(text, weights, ARGUMENTS, rehearsed=rehearsed)


# ---------------------------------------------------------------------- what it does

GOOD: list[tuple[str, tuple[Dim, ...], tuple[Dim, ...], bool]] = [
    ("inputs * w", ("in",), ("in",), True),
    ("inputs @ m + b", ("in",), ("units",), True),
    ("inputs @ s @ m", ("in",), ("units",), True),
    ("inputs @ four", (4,), ("units",), True),
    ("inputs + pos", (10, "in"), (10, "in"), False),
    ("inputs * low", ("in",), ("in",), True),
    ("t * inputs", ("in",), ("in",), True),
    ("act(inputs @ m)", ("in",), ("units",), True),
    ("tf.matmul(inputs, s, transpose_b=True)", ("in",), ("in",), True),
    ("inputs @ tf.transpose(s)", ("in",), ("in",), True),
    ("tf.einsum('bi,ij->bj', inputs, m)", ("in",), ("units",), False),
    ("tf.einsum('b i, i j -> b j', inputs, m)", ("in",), ("units",), False),
    (
        "tf.einsum('bti,ij->btj', inputs, m)",
        ("axis_1", "in"),
        ("axis_1", "units"),
        False,
    ),
    ("tf.reduce_sum(inputs * w, axis=-1, keepdims=True)", ("in",), (1,), True),
    ("tf.reduce_mean(inputs * w, axis=1)", ("axis_1", "in"), ("in",), False),
    ("inputs * tf.reduce_mean(w)", ("in",), ("in",), True),
    ("tf.expand_dims(inputs, 1) * w", ("in",), (1, "in"), False),
    ("tf.squeeze(tf.expand_dims(inputs * w, 1), axis=1)", ("in",), ("in",), True),
    ("tf.nn.bias_add(inputs @ m, b)", ("in",), ("units",), True),
    (
        "tf.nn.conv1d(inputs, k, 1, 'SAME')",
        ("axis_1", "in"),
        ("axis_1", "units"),
        False,
    ),
    (
        "tf.nn.conv2d(inputs, q, strides=[1, 1], padding='SAME')",
        ("axis_1", "axis_2", "in"),
        ("axis_1", "axis_2", "units"),
        False,
    ),
    ("tf.transpose(inputs * w, [0, 2, 1])", ("axis_1", "in"), ("in", "axis_1"), False),
    ("inputs / (tf.nn.softplus(w) + 0.1)", ("in",), ("in",), True),
    ("tf.sqrt(tf.square(inputs) + 0.1) * w", ("in",), ("in",), True),
    ("tf.sqrt(inputs * inputs + 0.1) * w", ("in",), ("in",), True),
    ("tf.maximum(inputs, 0.1) * w", ("in",), ("in",), True),
    ("rate * inputs * w * n", ("in",), ("in",), True),
    ("inputs * w * flags", ("in",), ("in",), True),
    ("inputs * old", ("in",), ("in",), True),
    ("tf.nn.softmax(inputs @ m)", ("in",), ("units",), True),
    ("-(inputs**2) * 0.5 + inputs * w", ("in",), ("in",), True),
]


@pytest.mark.parametrize(("text", "inputs", "outputs", "any_rank"), GOOD)
def test_shapes(
    text: str, inputs: tuple[Dim, ...], outputs: tuple[Dim, ...], any_rank: bool
) -> None:
    seen = look(text, rehearsed=False)
    assert (seen.input_shape, seen.output_shape, seen.any_rank) == (
        inputs,
        outputs,
        any_rank,
    )


def test_what_is_read() -> None:
    weights = [WEIGHTS["w"], WEIGHTS["old"]]
    assert analyse("inputs * w", weights, ()).read == {"inputs", "w"}


@pytest.mark.parametrize(
    ("text", "large"),
    [
        ("inputs * w", 300),
        ("inputs @ m", 300),
        ("tf.square(inputs) + inputs * w", 100),
        ("inputs**3 * 0.1 + inputs * w", 10),
        ("inputs**4 + inputs * w", 10),
        ("tf.exp(inputs) + w", 3),
        ("tf.tanh(inputs * w) * w", 300),
    ],
)
def test_largest_inputs(text: str, large: float) -> None:
    assert look(text).large == large


def test_no_larger_than_the_kind_says() -> None:
    assert analyse("inputs * w", [WEIGHTS["w"]], (), 30.0).large == 30


def test_a_call_that_is_not_rehearsed_is_not() -> None:
    assert look("inputs * 0 + w", rehearsed=False).large == 300
    with pytest.raises(MplayerError, match="no gradient reaches 'inputs'"):
        look("inputs * 0 + w")


# ------------------------------------------------------------------- what is refused

BAD = [
    ("", ["no expression", "inputs @ kernel"]),
    ("inputs +", ["not an expression", "^"]),
    ("inputs @ (w", ["never closed", "\n", "^"]),
    ("inputs; w", ["';'"]),
    ("inputs # w", ["'#'"]),
    ("inputs \\ w", ["'\\\\'"]),
    ("\uff49nputs * w", ["FULLWIDTH LATIN SMALL LETTER I", "'i'"]),
    ("inputs * \u0430", ["CYRILLIC SMALL LETTER A", "'a'"]),
    ("x" * 401, ["401", "400"]),
    ("(" * 150 + "w" + ")" * 150, ["inputs"]),
    ("input * w", ["'input'", "Did you mean 'inputs'"]),
    ("inputs * q1", ["'q1'", "inputs, "]),
    ("self.w * inputs", ["self.w", "Write 'w'"]),
    ("inputs.shape", ["inputs.shape"]),
    ("tf.nn.relu", ["is a function", "tf.nn.relu(inputs)"]),
    ("act * inputs", ["'act(inputs)'"]),
    ("flag * inputs", ["flag", "bool"]),
    ("mode * inputs", ["mode", "str"]),
    ("inputs[0]", ["an index"]),
    ("inputs > w", ["a comparison"]),
    ("inputs if w else 0", ["a condition"]),
    ("lambda: inputs", ["a lambda"]),
    ("inputs // w", ["an operator", "+ - * / @"]),
    ("inputs % w", ["an operator"]),
    ("inputs ** w", ["a power", "inputs**2"]),
    ("inputs ** 0.5", ["a power", "inputs**2"]),
    ("2 ** 2 * inputs", ["a power"]),
    ("inputs * True", ["True", "inputs * 0.5"]),
    ("inputs * 'a'", ["'a'", "not a number"]),
    ("inputs + 1e-8", ["1e-08", "lost in float16", "0.001"]),
    ("inputs * 1e5", ["100000.0", "beyond float16"]),
    ("inputs / 0", ["'0' divides", "softplus"]),
    ("inputs / inputs", ["divides"]),
    ("inputs / (w - 1)", ["divides"]),
    ("1 / (inputs + 10)", ["divides"]),
    ("tf.sqrt(inputs) * w", ["-300", "tf.square(inputs) + 0.1"]),
    ("tf.math.log(tf.nn.relu(inputs)) * w", ["takes what can be 0"]),
    ("tf.math.rsqrt(tf.square(inputs)) * w", ["takes what can be 0"]),
    ("tf.nn.softmx(inputs)", ["tf.nn.softmx", "'tf.nn.softmax'"]),
    ("np.tanh(inputs)", ["np.tanh", "'tf.tanh'", "edit `call`"]),
    ("tf.cast(inputs, 'float32')", ["compute dtype already"]),
    ("tf.nn.l2_normalize(inputs)", ["1e-12"]),
    ("open('x')", ["open"]),
    ("__import__('os').system('x')", ["cannot be called"]),
    ("tf.tanh()", ["Write 'tf.tanh(x)'"]),
    ("tf.tanh(inputs, w)", ["Write 'tf.tanh(x)'"]),
    ("tf.tanh(x=inputs)", ["Write 'tf.tanh(x)'"]),
    ("tf.tanh(*inputs)", ["Write 'tf.tanh(x)'"]),
    ("tf.reduce_sum(inputs, axes=1)", ["'axes'", "axis=..."]),
    ("tf.reduce_sum(inputs, axis=n)", ["not a literal"]),
    ("tf.reduce_sum(inputs, axis=5)", ["axes 5", "axis=-1"]),
    ("tf.reduce_sum(inputs, axis=0)", ["rows of a batch", "axis=-1"]),
    ("tf.reduce_sum(inputs, axis=-1, keepdims=1)", ["keepdims=True"]),
    ("tf.reduce_sum(inputs)", ["rows of a batch"]),
    ("tf.reduce_sum(inputs * w, axis=-1)", ["but the batch", "keepdims=True"]),
    ("tf.nn.softmax(inputs * w, axis=0)", ["rows of a batch"]),
    ("tf.maximum(0.5, inputs)", ["float32", "tf.maximum(inputs, 0.5)"]),
    ("tf.sqrt(2.0) * inputs", ["float32"]),
    ("tf.squeeze(inputs, axis=1)", ["size 1"]),
    ("tf.expand_dims(inputs, axis=9)", ["axis=9"]),
    ("tf.expand_dims(inputs)", ["no axis"]),
    ("tf.transpose(inputs, perm=[0])", ["each axis"]),
    ("tf.transpose(inputs)", ["batch must be the first axis"]),
    ("tf.einsum(inputs, m)", ["equation"]),
    ("tf.einsum('...i,ij->...j', inputs, m)", ["ellipsis", "bi,ij->bj"]),
    ("tf.einsum('bi,ij->ij', inputs, m)", ["rows of a batch"]),
    ("tf.einsum('bi,jk->bk', inputs, w)", ["equation", "'jk'"]),
    ("tf.einsum('bii->bi', inputs)", ["once in each"]),
    ("inputs @ w", ["inputs @ w", "kernel[in,units]", "'inputs * w'"]),
    ("inputs @ b", ["inputs * w"]),
    ("m @ inputs", ["[in,units] and [batch,in]", "kernel[in,units]"]),
    ("inputs + b", ["[batch,in] and [units]", "[in]"]),
    ("inputs @ m + w", ["do not go together"]),
    ("inputs @ tf.transpose(m)", ["in is not units"]),
    ("tf.einsum('bi,ci->bc', inputs, inputs)", ["[batch,batch]", "first axis"]),
    ("tf.nn.conv1d(inputs, m, 1, 'SAME')", ["kernel[3,in,units]"]),
    ("tf.nn.conv1d(inputs, k, 2, 'SAME')", ["strides of 1"]),
    ("tf.nn.conv1d(inputs, k, 1, 'VALID')", ['padding="SAME"']),
    ("tf.clip_by_value(inputs, -1, 1)", ["corners", "edit `call`"]),
    ("tf.nn.leaky_relu(inputs, alpha='a')", ["alpha=0.2"]),
    ("tf.nn.bias_add(inputs, s)", ["inputs + b"]),
    ("act(inputs, w)", ["'act(inputs)'"]),
    ("soft(w) * inputs", ["tf.nn.softmax(w)"]),
    ("w * 2", ["'inputs'"]),
    ("1 + 2", ["is a number"]),
    # What would fail its tests.
    ("(inputs + w) - inputs", ["no gradient reaches 'inputs'"]),
    ("inputs * 0 * w", ["no gradient"]),
    ("tf.sigmoid(inputs) + tf.sigmoid(-inputs) + w", ["'inputs'", "float16"]),
    ("(inputs * w + 1000) - 1000", ["loses digits in float16"]),
    ("tf.nn.selu(inputs @ m)", ["inputs of 6e-08", "tf.nn.softplus(inputs)"]),
    ("tf.exp(tf.square(inputs * w)) * w", ["float16"]),
    ("inputs * w * 10000 * 10000", ["beyond the range of float16"]),
    ("inputs * w * 1000", ["when the loss is scaled"]),
    ("tf.sin(inputs * w * 50)", ["inputs * w * 50"]),
    ("tf.nn.relu(inputs * 0.5 - 1000) + w", ["no gradient reaches 'inputs'"]),
]


@pytest.mark.parametrize(("text", "parts"), BAD)
def test_refused(text: str, parts: list[str]) -> None:
    names = {word for word in WEIGHTS if word in text}
    weights = [WEIGHTS[n] for n in names if _is_used(n, text)]
    with pytest.raises(MplayerError) as caught:
        analyse(text, weights, ARGUMENTS)
    message = str(caught.value)
    assert message.startswith("--call: ")
    for part in parts:
        assert part in message


def _is_used(name: str, text: str) -> bool:
    try:
        tree = ast.parse(text)
    except (SyntaxError, RecursionError, MemoryError):
        return False
    return any(getattr(node, "id", None) == name for node in ast.walk(tree))


def test_unread_weight_is_refused() -> None:
    with pytest.raises(MplayerError, match=r"'w'.*'inputs \* w'.*'w:frozen'"):
        analyse("inputs * t", [WEIGHTS["w"], WEIGHTS["t"]], ())


def test_line_that_is_too_long_is_refused() -> None:
    more = weight("more[in]")
    longest = "inputs + more" + " * w" * 14 + " + w"
    assert len("        return ") + len(longest) == 88
    weights = [WEIGHTS["w"], more]
    analyse(longest.replace(" ", "   "), weights, (), rehearsed=False)
    with pytest.raises(MplayerError, match="89 columns"):
        analyse(f"-{longest}", weights, (), rehearsed=False)
    # The module writes an argument as `self.n`.
    with pytest.raises(MplayerError, match="93 columns"):
        analyse(f"{longest[:-1]}n", weights, ARGUMENTS, rehearsed=False)


def test_sizes_that_make_tests_slow_are_refused() -> None:
    with pytest.raises(MplayerError, match=r"--weights: .*5000.*kernel\[in,units\]"):
        parse("MyLayer", weights="w[in,5000]", call="inputs @ w")


# ---------------------------------------------------------------------- how it reads

TEXTS = [
    *[text for text, *_ in GOOD],
    "inputs*w+t",
    "inputs@m@tf.transpose(m)",
    "(inputs@m)*b",
    "inputs@(m*b)",
    "inputs-(w-t)",
    "(inputs-w)-t",
    "inputs/(w/t)",
    "inputs/w/t",
    "-inputs**2",
    "(-inputs)**2",
    "-(inputs+w)",
    "-(inputs*w)",
    "--inputs",
    "inputs- -w",
    "(inputs+w)**3",
    "tf.tanh(inputs)**2",
    "inputs*w**2",
    "inputs*.5",
    "inputs*1E3",
    "inputs*2.",
    "inputs*1_000",
    "(inputs@m)/2*b",
    "tf.reduce_sum(inputs,axis=(1,))",
    "tf.reduce_sum(inputs,axis=[1,2],keepdims=True)",
    "tf.reduce_max(inputs,axis=-1)",
    "(inputs*w)*(t*w)",
]


def test_text_is_what_ruff_prints(tmp_path: Any) -> None:
    lines = [f"x = {printed(parse_call(text))}\n" for text in TEXTS]
    assert all(len(line) <= 88 for line in lines)
    file = tmp_path / "printed.py"
    file.write_text("".join(lines), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--isolated", "--diff", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("text", TEXTS)
def test_text_means_the_same(text: str) -> None:
    tree = parse_call(text)
    again = parse_call(printed(tree))
    assert ast.dump(again) == ast.dump(tree)
    assert printed(again) == printed(tree)


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """Draws an expression of names, numbers, operators and functions."""
    leaf = st.sampled_from(["inputs", "w", "t", "2", "0.5"])
    text = st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from("+-*/@"), inner).map(
                lambda parts: "({} {} {})".format(*parts)
            ),
            inner.map(lambda x: f"(-{x})"),
            inner.map(lambda x: f"({x})**2"),
            st.tuples(st.sampled_from(sorted(FUNCTIONS)), inner).map(
                lambda parts: "{}({})".format(*parts)
            ),
        ),
        max_leaves=8,
    )
    return draw(text)


@settings(max_examples=200, deadline=None)
@given(expressions())
def test_any_expression_prints_as_itself(text: str) -> None:
    tree = parse_call(text)
    assert ast.dump(parse_call(printed(tree))) == ast.dump(tree)


@settings(max_examples=60, deadline=None)
@given(expressions())
def test_any_expression_is_a_layer_or_an_error(text: str) -> None:
    caught: MplayerError | None = None
    try:
        seen = analyse(text, [WEIGHTS["w"], WEIGHTS["t"]], ())
    except MplayerError as error:
        caught = error
    else:
        assert seen.large in rehearse.LARGE
        assert {"inputs", "w", "t"} <= seen.read
    assert caught is None or str(caught).startswith(("--call: ", "--weights: "))


# -------------------------------------------------------------------- the rehearsal


def test_sizes_are_those_that_the_tests_are_made_with() -> None:
    from scaffold import rendering

    assert calls.SIZES == rendering.TEST_SIZES
    assert calls.SIZE == rendering.TEST_SIZE


def test_rounding() -> None:
    assert tapes.to_float16(1 + 2.0**-11) == 1
    assert tapes.to_float16(1 + 2.0**-10) == 1 + 2.0**-10
    assert tapes.to_float16(2.0**-26) == 0
    assert tapes.to_float16(-20000) == -float("inf")
    assert tapes.to_bfloat16(1 + 2.0**-8) == 1
    assert tapes.to_bfloat16(1 + 2.0**-7) == 1 + 2.0**-7
    assert tapes.to_bfloat16(1 + 3 * 2.0**-8) == 1 + 2.0**-6
    assert tapes.to_float32(1 + 2.0**-24) == 1


def _tape(**leaves: list[float]) -> Tape:
    return Tape({k: Leaf((len(v),), v) for k, v in leaves.items()}, FLOAT64)


def test_broadcast_gradients_are_summed() -> None:
    tape = Tape({"x": Leaf((2, 2), [1, 2, 3, 4]), "w": Leaf((2,), [5, 6])}, FLOAT64)
    product = tape.zip(lambda a, b: (a * b, b, a), tape.leaves["x"], tape.leaves["w"])
    assert [tape.values[i] for i in product.items] == [5, 12, 15, 24]
    gradients = tape.gradients(product, [1, 1, 1, 1])
    assert gradients == {"x": [5, 6, 5, 6], "w": [4, 6]}


@pytest.mark.parametrize("name", sorted(CURVES))
def test_slopes_are_derivatives(name: str) -> None:
    curve = CURVES[name]
    for x in (-4.1, -1.3, -0.2, 0.2, 1.3, 4.1):
        step = 1e-6
        measured = (curve.value(x + step) - curve.value(x - step)) / (2 * step)
        assert curve.slope(x, curve.value(x)) == pytest.approx(measured, abs=1e-6)


@pytest.mark.parametrize("name", sorted(CURVES))
def test_turns_are_where_the_slope_changes_sign(name: str) -> None:
    curve = CURVES[name]
    points = [x / 100 for x in range(-600, 600)]
    slopes = [curve.value(x + 0.01) - curve.value(x) for x in points]
    changes = sum(a * b < 0 for a, b in itertools.pairwise(slopes))
    assert changes == len(curve.turns)


def test_float16_sums_are_coarse_in_the_matter_of_a_bias() -> None:
    """TensorFlow adds up the gradient of `x + b` in float16 itself."""
    text = "tf.nn.conv2d(inputs, q, 1, 'SAME') + b"
    with pytest.raises(MplayerError, match="the gradient of 'b' is lost in float16"):
        look(text)
    with pytest.raises(MplayerError, match="the gradient of 'b' is lost in bfloat16"):
        look("tf.nn.bias_add(tf.nn.conv2d(inputs, q, 1, 'SAME'), b)")


OPERANDS = {
    1: ["inputs * w"],
    2: ["inputs * w", "old + 2"],
}
SPECIAL = {
    "tf.einsum": "tf.einsum('bi,ij->bj', inputs, s)",
    "tf.expand_dims": "tf.expand_dims(inputs * w, axis=1)",
    "tf.matmul": "tf.matmul(inputs * w, s, transpose_b=True)",
    "tf.linalg.matmul": "tf.linalg.matmul(inputs * w, s)",
    "tf.nn.bias_add": "tf.nn.bias_add(inputs, w)",
    "tf.nn.conv1d": "tf.nn.conv1d(inputs, k, stride=1, padding='SAME')",
    "tf.nn.conv2d": "tf.nn.conv2d(inputs, q, strides=1, padding='SAME')",
    "tf.squeeze": "tf.squeeze(tf.expand_dims(inputs * w, 1), axis=1)",
    "tf.transpose": "tf.transpose(inputs * w, perm=[0, 2, 1])",
}
# What these take must be positive.
POSITIVE = ("tf.sqrt", "tf.math.sqrt", "tf.math.rsqrt", "tf.math.log", "tf.math.log1p")


def example(name: str) -> str:
    """Returns a call of a function that the parser accepts."""
    if name in SPECIAL:
        return SPECIAL[name]
    if name in POSITIVE:
        return f"{name}(tf.square(inputs * w) + 1)"
    operands = ", ".join(OPERANDS[FUNCTIONS[name].operands])
    reduced = ", axis=-1, keepdims=True" if "reduce" in name else ""
    return f"{name}({operands}{reduced})"


def test_every_function_has_an_example() -> None:
    for name in FUNCTIONS:
        look(example(name), rehearsed=False)
    assert not FUNCTIONS.keys() & REFUSED.keys()


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "text", [*map(example, sorted(FUNCTIONS)), *(f"act({x})" for x in ACTIVATIONS)]
)
def test_the_rehearsal_computes_what_tensorflow_does(text: str) -> None:
    """Values and gradients agree, in each dtype as far as its digits go."""
    import numpy as np
    import tensorflow as tf

    activation = text[4:-1] if text.startswith("act(") else ""
    if activation == "hard_sigmoid" and not hasattr(tf.keras, "ops"):
        pytest.skip("in Keras 2 its slope is another one")
    text = "act(inputs * w)" if activation else text
    arguments = [
        Argument("units", "int", required=True, size=True),
        Argument("act", "activation", default=activation or None),
    ]
    weights = [w for name, w in WEIGHTS.items() if _is_used(name, text)]
    node = parse_call(text)
    (interpreter, value), *_ = calls._interpret(node, weights, arguments, 300.0)
    random = Random(3)
    leaves = {}
    for name, known in interpreter.values.items():
        if known.shape is None or (name != "inputs" and not _is_used(name, text)):
            continue
        shape = tuple(4 if n == "batch" else interpreter.size(n) for n in known.shape)
        draws = [random.gauss(0.3, 1) for _ in range(int(np.prod(shape)))]
        leaves[name] = Leaf(shape, draws)
    for precision in (FLOAT64, FLOAT32, FLOAT16, BFLOAT16):
        rounded = {
            name: Leaf(leaf.shape, [precision.rounding(x) for x in leaf.values])
            for name, leaf in leaves.items()
        }
        tape = Tape(rounded, precision)
        outputs = value.on(tape)
        factors = [1 + 0.5 * (i % 3) for i in range(len(outputs.items))]
        tensors = {
            name: tf.reshape(tf.constant(leaf.values, precision.name), leaf.shape)
            for name, leaf in rounded.items()
        }
        with tf.GradientTape() as gradient_tape:
            gradient_tape.watch(list(tensors.values()))
            act = tf.keras.activations.get(activation or None)
            result = eval(printed(node), {"tf": tf, "act": act, **tensors})  # noqa: S307 -- written here
            loss = tf.reduce_sum(
                tf.cast(result, "float64") * np.reshape(factors, result.shape)
            )
        gradients = gradient_tape.gradient(loss, tensors)
        assert result.dtype == precision.name
        assert tuple(result.shape) == outputs.shape
        pairs = [([tape.values[i] for i in outputs.items], result)]
        mine = tape.gradients(outputs, factors)
        pairs += [(mine[name], gradients[name]) for name in tensors]
        for seen, right in pairs:
            flat = tf.cast(tf.reshape(right, [-1]), "float64").numpy()
            size = max(1.0, float(np.max(np.abs(flat))))
            # Some constants of TensorFlow are those of float32 in float64 too.
            atol = max(30 * precision.roundoff, 1e-6) * size
            assert np.allclose(seen, flat, atol=atol, rtol=0)
