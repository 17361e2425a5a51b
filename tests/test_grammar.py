"""Text -> spec: what is accepted means what the design says; the rest teaches."""

from __future__ import annotations

import keyword
import subprocess
import sys
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaffold.errors import MplayerError
from scaffold.grammar import (
    PROVEN,
    WeightText,
    parse,
    parse_argument,
    parse_arguments,
    parse_doc,
    parse_name,
    parse_options,
    parse_weights,
)
from scaffold.initializers import (
    PARAMETERS,
    bounds,
    draw,
    parse_initializer,
    require_initializable,
)
from scaffold.names import (
    LAYER_ARGUMENTS,
    LAYER_ATTRIBUTES,
    camel_case,
    module_name,
    snake_case,
    variable_fault,
)
from scaffold.spec import Initializer, LayerSpec

# ------------------------------------------------------------------- what is refused

# A name, and what the message must hold: the flag, the value, a way out.
BAD_NAMES = [
    ("", ["NAME", "''", "MyLayer"]),
    ("my_layer", ["'my_layer'", "MyLayer"]),
    ("my-layer", ["'my-layer'", "MyLayer"]),
    ("myLayer", ["'myLayer'", "MyLayer"]),
    ("2Fast", ["'2Fast'", "Fast"]),
    ("_Private", ["'_Private'", "Private"]),
    ("My.Layer", ["'My.Layer'", "MyLayer"]),
    ("../Evil", ["'../Evil'", "Evil"]),
    ("None", ["Python's own", "NoneLayer"]),
    ("ValueError", ["Python's own", "ValueErrorLayer"]),
    ("__init__", ["Python", "Init"]),
    ("Layer", ["'Layer'", "MyLayer"]),
    ("Model", ["'Model'", "ModelLayer"]),
    ("TestLayer", ["pytest", "MyTestLayer"]),
    ("Signal", ["signal.py", "SignalLayer"]),
    ("Numpy", ["numpy", "NumpyLayer"]),
    ("Keras", ["keras", "KerasLayer"]),
    ("Conftest", ["conftest.py", "ConftestLayer"]),
    ("Setup", ["setup.py", "SetupLayer"]),
    ("Con", ["Windows", "ConLayer"]),
    ("Com1", ["Windows", "Com1Layer"]),
    ("A" * 49, ["48"]),
    ("М\u0443Layer", ["CYRILLIC CAPITAL LETTER EM", "'M'"]),  # noqa: RUF001 -- meant
    ("\uff2dyLayer", ["FULLWIDTH LATIN CAPITAL LETTER M", "'M'"]),
    ("My😀", ["GRINNING FACE", "ASCII"]),
    ("Lay\x00er", ["'Lay\\x00er'", "LayEr"]),
]

BAD_WEIGHTS = [
    ("", ["--weights", "names no weight", "'w,b'"]),
    (" , ", ["names no weight"]),
    ("w,,b", ["no name", "kernel[in,units]"]),
    ("weights", ["'weights'", "'kernel'"]),
    ("w, dtype", ["'dtype'", "base layer", "'dtype_weight'"]),
    ("losses", ["'losses'", "'losses_weight'"]),
    ("w, built", ["'built'"]),
    ("lambda", ["keyword", "'lambda_weight'"]),
    ("match[in]", ["keyword", "'match_weight'"]),
    ("sum", ["builtin", "'sum_weight'"]),
    ("inputs", ["'inputs'", "generated code"]),
    ("self", ["'self'"]),
    ("tf", ["'tf'"]),
    ("in", ["last axis"]),
    ("axis_1[in]", ["axis of the inputs"]),
    ("l[in]", ["E741"]),
    ("W", ["'W'", "'w'"]),
    ("_w", ["'_w'", "'w'"]),
    ("weightMatrix", ["'weight_matrix'"]),
    ("w-b", ["'w-b'", "'w_b'"]),
    ("w" * 25, ["24"]),
    ("w, w", ["twice"]),
    ("\u0432[in]", ["CYRILLIC SMALL LETTER VE"]),
    ("kernel[in,units", ["'['", "never closed", "character 7", "\n        ^"]),
    ("kernel in,units]", ["']'", "closes nothing"]),
    ("kernel[in,units)", ["')'", "closes nothing"]),
    ("w=constant(0.1", ["'('", "never closed"]),
    ("w[0]", ["size 0", "65536", "w[in,units]"]),
    ("w[99999999999]", ["99999999999"]),
    ("w[-1]", ["'-1'", "w[in,units]"]),
    ("w[2.5]", ["'2.5'"]),
    ("w[in,]", ["''", "w[]"]),
    ("w[in,1,1,1,1,1]", ["6 axes"]),
    ("w[dtype]", ["'dtype'"]),
    ("w:float23", ["'float23'", "Did you mean 'float32'"]),
    ("w:complex64", ["'complex64'"]),
    ("w:string", ["'string'"]),
    ("w:qint8", ["'qint8'"]),
    ("w:", ["''", "attribute"]),
    ("w:frozen:state", ["'frozen' and 'state'", "w:frozen"]),
    ("w:frozen:frozen", ["'frozen' and 'frozen'"]),
    ("w:float32:float64", ["one dtype"]),
    ("w:int32", ["no gradient", "'w:int32:frozen'"]),
    ("w:float16", ["small steps", "w:frozen:float16"]),
    ("w:bfloat16:state", ["small updates", "'w:state'"]),
    ("w=", ["no initializer", "'w=zeros'"]),
    ("w=he_norml", ["'he_norml'", "Did you mean 'he_normal'"]),
    ("w=1.0", ["'1.0'", "truncated_normal"]),
    ("w=constant", ["no value", "constant(0.1)"]),
    ("w=zeros(1)", ["too many", "no arguments"]),
    ("w=constant(value=1, value=2)", ["'constant(value=1, value=2)'"]),
    ("w=constant(1, value=2)", ["twice"]),
    ("w=constant(1e9)", ["1000"]),
    ("w=constant(1e-8)", ["lost in float16", "0.0001"]),
    ("w=constant(nan)", ["value=nan"]),
    ("w=constant(True)", ["value=True"]),
    ("w=random_normal(stdev=1)", ["'stdev'", "Did you mean 'stddev'"]),
    ("w=random_normal(stddev=-1)", ["stddev=-1"]),
    ("w=random_uniform(1, 0)", ["minval must be less"]),
    ("w=glorot_uniform(seed=0.5)", ["seed=0.5", "integer"]),
    ("w=variance_scaling(mode=fan)", ["mode='fan'", "fan_in"]),
    ("w=tf.zeros", ["'tf.zeros'"]),
    ("w:int32:frozen=he_normal", ["he_normal", "int32", "ones"]),
    ("w:int8:frozen=constant(300)", ["constant(300)", "int8"]),
    ("w:uint8:frozen=constant(-1)", ["uint8"]),
    ("w:bool:frozen=constant(1)", ["bool", "zeros or ones"]),
    ("w[in]=identity", ["1 axes", "w[in,in]=identity"]),
    ("w[in]=orthogonal", ["1 axes", "w[in,units]=orthogonal"]),
    ("w=orthogonal", ["bfloat16", "float32=orthogonal"]),
    ("foo", ["'foo'", "no shape", "--call"]),
    ("b", ["kernel", "--call 'inputs + b'"]),
    ("w, matrix", ["'w' and 'matrix'", "--call 'inputs @ w @ matrix'"]),
    ("w, alpha[in]", ["'alpha'", "--call"]),
    ("w[]", ["inputs @ w", "'inputs * w'"]),
    ("w[units,in]", ["in is not units", "kernel[in,units]"]),
    ("w, w_initializer[in]:frozen", ["'w_initializer'", "constructor argument"]),
    ("w[in,20000]", ["20000", "--arg"]),
    ("w\x07", ["control"]),
]

BAD_ARGUMENTS = [
    ("rate", ["--arg", "no type", "rate:float"]),
    ("rate:flaot", ["'flaot'", "Did you mean 'float'"]),
    ("rate:list=1", ["'list'", "int, float, bool, str, activation"]),
    (":int", ["''"]),
    ("dtype:str", ["'dtype'", "'dtype_argument'"]),
    ("name:str", ["'name'"]),
    ("training:bool", ["'training'"]),
    ("batch_size:int", ["'batch_size'"]),
    ("n:int=1.5", ["'1.5'", "n:int=32"]),
    ("n:int=", ["''", "n:int=32"]),
    ("n:int=99999999999", ["nine digits"]),
    ("rate:float=abc", ["'abc'", "rate:float=0.1"]),
    ("rate:float=inf", ["'inf'", "finite"]),
    ("rate:float=nan", ["'nan'"]),
    ("flag:bool=1", ["'1'", "flag:bool=true"]),
    ("mode:str=a'b", ['"\'"', "mode:str=same"]),
    ("mode:str={x}", ["'{'"]),
    ("act:activation=rleu", ["'rleu'", "Did you mean 'relu'"]),
    ("act:activation=mish", ["'mish'", "every Keras"]),
    ("r\u0430te:float", ["CYRILLIC SMALL LETTER A", "'a'"]),
]


@pytest.mark.parametrize(("text", "parts"), BAD_NAMES)
def test_bad_name(text: str, parts: list[str]) -> None:
    with pytest.raises(MplayerError) as caught:
        parse(text, weights="w,b")
    for part in ["NAME", *parts]:
        assert part in str(caught.value)


@pytest.mark.parametrize(("text", "parts"), BAD_WEIGHTS)
def test_bad_weights(text: str, parts: list[str]) -> None:
    with pytest.raises(MplayerError) as caught:
        parse("MyLayer", weights=text)
    message = str(caught.value)
    assert message.startswith(("--weights: ", "--call: "))
    for part in parts:
        assert part in message


@pytest.mark.parametrize(("text", "parts"), BAD_ARGUMENTS)
def test_bad_argument(text: str, parts: list[str]) -> None:
    with pytest.raises(MplayerError) as caught:
        parse("MyLayer", weights="w,b", arguments=[text])
    for part in ["--arg", *parts]:
        assert part in str(caught.value)


BAD_TOGETHER: list[tuple[dict[str, Any], list[str]]] = [
    ({"kind": "dens"}, ["--kind", "'dens'", "Did you mean 'dense'"]),
    ({"kind": "scale", "weights": "w"}, ["scale", "'w'", "no shape"]),
    ({"options": "regularisers"}, ["--with", "Did you mean 'regularizers'"]),
    ({"doc": 'Say """hi"""'}, ["--doc", "'\"'", "Projects the last axis."]),
    ({"doc": "a\\b"}, ["--doc", "'\\\\'"]),
    ({"doc": "one\ntwo"}, ["--doc", "'\\n'"]),
    ({"doc": "x" * 201}, ["--doc", "200"]),
    ({"arguments": ["rate:float", "rate:float=1"]}, ["--arg", "'rate'", "twice"]),
    ({"weights": "w,b", "arguments": ["w:int"]}, ["--arg", "'w'", "w_value:int"]),
    (
        {"weights": "w,b", "arguments": ["w_initializer:str=x"]},
        ["--arg", "'w_initializer'"],
    ),
    (
        {
            "weights": "w",
            "arguments": ["w_regularizer:int=1"],
            "options": "regularizers",
        },
        ["'w_regularizer'", "regularizer of 'w'"],
    ),
    (
        {"weights": "w,b", "arguments": ["units:float=1"]},
        ["--arg", "'units'", "units:int"],
    ),
    ({"weights": "w,b", "arguments": ["units:int=0"]}, ["'units'", "65536"]),
    (
        {"weights": "w", "arguments": ["f:activation", "g:activation"]},
        ["'f' and 'g'", "--call"],
    ),
    ({"weights": "foo", "call": "inputs * foo"}, ["'foo[in]'", "'foo[]'"]),
    ({"weights": "w[w]", "call": "inputs * w"}, ["'w'"]),
    ({"weights": ", ".join(f"w{i}[in]" for i in range(17))}, ["16"]),
    ({"arguments": [f"a{i}:int=1" for i in range(17)]}, ["16"]),
]


@pytest.mark.parametrize(("keywords", "parts"), BAD_TOGETHER)
def test_bad_together(keywords: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(MplayerError) as caught:
        parse("MyLayer", **keywords)
    for part in parts:
        assert part in str(caught.value)


# ------------------------------------------------------------------ what is accepted


def facts(spec: LayerSpec) -> tuple[object, ...]:
    return (spec.kind, spec.call, spec.input_shape, spec.output_shape, spec.any_rank)


GOOD: list[tuple[dict[str, Any], tuple[object, ...]]] = [
    (
        {},
        ("dense", "activation(inputs @ kernel + bias)", ("in",), ("units",), True),
    ),
    ({"weights": "w,b"}, ("dense", "inputs @ w + b", ("in",), ("units",), True)),
    ({"weights": "b, w"}, ("dense", "inputs @ w + b", ("in",), ("units",), True)),
    ({"weights": "matrix"}, ("dense", "inputs @ matrix", ("in",), ("units",), True)),
    (
        {"weights": "gamma,beta"},
        ("scale", "inputs * gamma + beta", ("in",), ("in",), True),
    ),
    ({"kind": "scale"}, ("scale", "inputs * scale + bias", ("in",), ("in",), True)),
    ({"weights": "g"}, ("scale", "inputs * g", ("in",), ("in",), True)),
    (
        {"weights": "w,b", "arguments": ["f:activation=relu"]},
        ("dense", "f(inputs @ w + b)", ("in",), ("units",), True),
    ),
    (
        {"weights": "v[]=zeros", "call": "inputs+v"},
        ("dense", "inputs + v", ("in",), ("in",), True),
    ),
    (
        {"weights": "gamma, beta", "call": "inputs * gamma + beta"},
        ("scale", "inputs * gamma + beta", ("in",), ("in",), True),
    ),
    (
        {"weights": "kernel[4,units]", "call": "inputs @ kernel"},
        ("dense", "inputs @ kernel", (4,), ("units",), True),
    ),
    (
        {"weights": "kernel[in,7]"},
        ("dense", "inputs @ kernel", ("in",), (7,), True),
    ),
    (
        {"weights": "pos[10,in]", "call": "inputs + pos"},
        ("dense", "inputs + pos", (10, "in"), (10, "in"), False),
    ),
    (
        {
            "weights": "k[3,in,units]",
            "call": "tf.nn.conv1d(inputs, k, stride=1, padding='SAME')",
        },
        (
            "dense",
            'tf.nn.conv1d(inputs, k, stride=1, padding="SAME")',
            ("axis_1", "in"),
            ("axis_1", "units"),
            False,
        ),
    ),
    (
        {"weights": "a[in,rank], c[rank,units]", "call": "inputs @ a @ c"},
        ("dense", "inputs @ a @ c", ("in",), ("units",), True),
    ),
    (
        {"weights": "w, count[]:int32:frozen=zeros"},
        ("dense", "inputs @ w", ("in",), ("units",), True),
    ),
    (
        {"weights": "w, mean[in]:state"},
        ("dense", "inputs @ w", ("in",), ("units",), True),
    ),
    (
        {"weights": "w[in,units]:float32=orthogonal(gain=0.5), b:float64"},
        ("dense", "inputs @ w + b", ("in",), ("units",), True),
    ),
    (
        {"weights": "w[in,in]=identity", "call": "inputs + inputs @ w"},
        ("dense", "inputs + inputs @ w", ("in",), ("in",), True),
    ),
    (
        {"weights": "w:bool:frozen, g", "kind": "scale", "call": "inputs * g"}
        | {"weights": "w[in]:bool:frozen, g"},
        ("scale", "inputs * g", ("in",), ("in",), True),
    ),
    (
        {
            "weights": "w[in,units]",
            "call": "rate * (inputs @ w)",
            "arguments": ["rate:float=0.1"],
        },
        ("dense", "rate * (inputs @ w)", ("in",), ("units",), True),
    ),
    (
        {"weights": "w[heads,in,dim]", "call": "tf.einsum('bti,hid->bthd', inputs, w)"},
        (
            "dense",
            'tf.einsum("bti,hid->bthd", inputs, w)',
            ("axis_1", "in"),
            ("axis_1", "heads", "dim"),
            False,
        ),
    ),
]


@pytest.mark.parametrize(("keywords", "expected"), GOOD)
def test_good(keywords: dict[str, Any], expected: tuple[object, ...]) -> None:
    assert facts(parse("MyLayer", **keywords)) == expected


def test_sizes_are_implied_required_and_first() -> None:
    spec = parse("MyLayer", weights="w,b", arguments=["rate:float", "act:activation"])
    assert [(a.name, a.required, a.size) for a in spec.arguments] == [
        ("units", True, True),
        ("rate", True, False),
        ("act", False, False),
    ]


def test_declared_sizes_keep_their_default() -> None:
    spec = parse("MyLayer", weights="w,b", arguments=["units:int=32", "n:int"])
    assert [(a.name, a.default, a.required, a.size) for a in spec.arguments] == [
        ("n", None, True, False),
        ("units", 32, False, True),
    ]


def test_defaults_of_a_kind_yield_to_the_user() -> None:
    spec = parse("MyLayer", arguments=["activation:activation=relu"])
    assert [(a.name, a.default) for a in spec.arguments] == [
        ("units", None),
        ("activation", "relu"),
    ]
    # The kind's arguments belong to its weights.
    assert [a.name for a in parse("MyLayer", weights="w").arguments] == ["units"]


@pytest.mark.parametrize(
    ("text", "name", "shape", "initializer"),
    [
        ("w", "w", ("in", "units"), "glorot_uniform"),
        ("b", "b", ("units",), "zeros"),
        ("w[in,in]", "w", ("in", "in"), "glorot_uniform"),
        ("w[in]", "w", ("in",), "zeros"),
        ("gamma[]", "gamma", (), "ones"),
        ("other[in]", "other", ("in",), "zeros"),
        ("other[in,3]", "other", ("in", 3), "glorot_uniform"),
        ("w:int8:frozen", "w", ("in", "units"), "zeros"),
        ("w=HeNormal", "w", ("in", "units"), "he_normal"),
    ],
)
def test_roles_fill_what_a_text_leaves(
    text: str, name: str, shape: tuple[object, ...], initializer: str
) -> None:
    spec = parse("MyLayer", weights=f"{text}, q[in]", call=f"inputs * q{_use(text)}")
    weight = next(w for w in spec.weights if w.name == name)
    assert (weight.shape, weight.initializer.name) == (shape, initializer)


def _use(text: str) -> str:
    """Returns a use that fits any shape, for a weight that needs one."""
    name = text.partition("[")[0].partition("=")[0]
    return "" if ":" in text else f" + tf.reduce_sum({name})"


def test_what_is_read_is_told() -> None:
    spec = parse("MyLayer", weights="w, count[]:int32:frozen")
    assert {w.name: w.read for w in spec.weights} == {"w": True, "count": False}


def test_weight_texts() -> None:
    (weight,) = parse_weights(" w [ in , 3 ] : half : frozen = Constant( 2 ) ")
    assert weight == WeightText(
        name="w",
        shape=("in", 3),
        initializer=Initializer("constant", (("value", 2),)),
        dtype="float16",
        frozen=True,
        state=False,
    )


@pytest.mark.parametrize(
    ("text", "default"),
    [
        ("a:int=-3", -3),
        ("a:float=1e-3", 0.001),
        ("a:bool=TRUE", True),
        ("a:str='same size'", "same size"),
        ("a:str=", ""),
        ("a:activation=None", None),
        ("a:activation='tanh'", "tanh"),
    ],
)
def test_argument_defaults(text: str, default: object) -> None:
    argument = parse_argument(text)
    assert argument.default == default
    assert not argument.required


def test_arguments_without_a_default() -> None:
    names = [a.name for a in parse_arguments(["a:int=1", "b:str", "c:activation"])]
    assert names == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("text", "initializer"),
    [
        ("zeros", Initializer("zeros")),
        ("Zeros()", Initializer("zeros")),
        ("constant(0.5)", Initializer("constant", (("value", 0.5),))),
        (
            "RandomNormal(stddev=0.1, mean=1)",
            Initializer("random_normal", (("mean", 1), ("stddev", 0.1))),
        ),
        (
            "variance_scaling(2.0, fan_avg, 'uniform', seed=3)",
            Initializer(
                "variance_scaling",
                (
                    ("scale", 2.0),
                    ("mode", "fan_avg"),
                    ("distribution", "uniform"),
                    ("seed", 3),
                ),
            ),
        ),
    ],
)
def test_initializers(text: str, initializer: Initializer) -> None:
    assert parse_initializer(text, "w") == initializer


def test_draws_stay_in_their_bounds() -> None:
    from random import Random

    shape = (20, 30)
    for name in PARAMETERS:
        initializer = Initializer(name)
        low, high = bounds(initializer, shape)
        values = draw(initializer, shape, Random(0))
        assert len(values) == 600
        assert low <= min(values) <= max(values) <= high
        if "uniform" in name:
            # A draw of 600 fills a uniform interval, so that it is no wider than it is.
            assert max(values) > 0.9 * high


def test_doc_and_options() -> None:
    assert parse_doc(" Projects. ") == "Projects."
    assert parse_doc("Projects") == "Projects."
    assert parse_doc("Why?") == "Why?"
    assert parse_doc("  ") is None
    assert parse_options("constraints, regularizers") == {"regularizers", "constraints"}
    assert parse_options(["constraints"]) == {"constraints"}
    assert parse_options("") == frozenset()


# ------------------------------------------------------------------------- the names


@pytest.mark.parametrize("name", ["MyLayer", "RMSNorm2D", "Dense", "X", "FiLM"])
def test_good_names(name: str) -> None:
    assert parse_name(f" {name} ") == name
    assert module_name(name) == parse(name, weights="w").module


def test_case() -> None:
    assert camel_case("rms_norm-2d layer") == "RmsNorm2dLayer"
    assert camel_case("123") == "MyLayer"
    assert snake_case("_weightMatrix-A") == "weight_matrix_a"
    assert module_name("RMSNorm2D") == "rms_norm2d"
    assert module_name("Conv2DBlock") == "conv2d_block"


def test_standard_modules_are_not_shadowed() -> None:
    for module in ("abc", "array", "code", "json", "random", "types"):
        assert module in sys.stdlib_module_names
        with pytest.raises(MplayerError, match=f"{module}.py"):
            parse_name(module.capitalize())


@pytest.mark.parametrize("word", keyword.kwlist)
def test_no_module_has_a_keyword_for_a_name(word: str) -> None:
    """`from if import If` is no Python."""
    for name in {word.capitalize(), word.upper()} - {*keyword.kwlist}:
        if keyword.iskeyword(module_name(name)):
            with pytest.raises(MplayerError, match=f"'{name}' .*Use a name such as"):
                parse_name(name)


@pytest.mark.tensorflow
def test_attributes_of_the_base_layer_are_reserved() -> None:
    import inspect

    import tensorflow as tf

    attributes = {x for x in dir(tf.keras.layers.Layer()) if not x.startswith("_")}
    assert attributes <= LAYER_ATTRIBUTES
    parameters = {*inspect.signature(tf.keras.layers.Layer.__init__).parameters}
    assert parameters - {"self", "kwargs"} <= LAYER_ARGUMENTS
    assert all(map(variable_fault, attributes | parameters))


@pytest.mark.tensorflow
def test_packages_that_tensorflow_imports_are_reserved() -> None:
    from scaffold.names import IMPORTED_MODULES

    # In a process of its own, without what these tests import.
    code = (
        "import sys, pytest, tensorflow\n"
        "for name, module in list(sys.modules.items()):\n"
        "    if 'site-packages' in str(getattr(module, '__file__', '')):\n"
        "        print(name.partition('.')[0])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    foreign = {
        name
        for name in {*run.stdout.split()} - sys.stdlib_module_names
        if name.isidentifier() and not name.startswith("_")
    }
    assert "tensorflow" in foreign
    assert foreign <= IMPORTED_MODULES


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", PARAMETERS)
def test_every_initializer_can_be_built(name: str) -> None:
    import tensorflow as tf

    kind = getattr(tf.keras.initializers, "".join(x.title() for x in name.split("_")))
    built = 0
    for shape in ((), (3,), (5, 3), (3, 5), (2, 3, 4)):
        for dtype in ("float16", "bfloat16", "float32", "float64"):
            try:
                require_initializable(Initializer(name), "w", len(shape), dtype)
            except MplayerError:
                continue
            made = kind(0.5) if name == "constant" else kind()
            assert tuple(made(shape, dtype=dtype).shape) == shape
            built += 1
    assert built >= 4


# -------------------------------------------------------------------------- any text

ALPHABET = st.text(
    st.sampled_from([*"wbkin,units[](): =.-+*/@#'\"0123456789e_\n\t\\{}é\u0430😀\x00"]),
    max_size=40,
)
PIECES = st.lists(
    st.sampled_from(
        "w b kernel bias in units [ ] ( ) , : = * / + - @ ** . 0 1 3 0.5 1e-8 inputs "  # noqa: SIM905 -- shorter so
        "frozen state float32 int32 bool zeros ones constant he_normal tf tf.nn.relu "
        "tf.reduce_sum axis=-1 'SAME' inputs@w activation [in,units] [in] [] :frozen "
        "tf.nn.softmax( tf.einsum('bi,ij->bj', w[in] w[in,in]".split()
    ),
    max_size=12,
).map("".join)
TEXT = ALPHABET | PIECES | st.text(max_size=20)


def outcome(*arguments: Any, **keywords: Any) -> LayerSpec | None:
    started = time.perf_counter()
    message, spec = "--", None
    try:
        spec = parse(*arguments, **keywords)
    except MplayerError as error:
        message = str(error)
    assert message.startswith(("--", "NAME"))
    assert time.perf_counter() - started < 5
    return spec


@settings(max_examples=150, deadline=None)
@given(TEXT)
def test_any_name_is_a_spec_or_an_error(text: str) -> None:
    outcome(text, weights="w")


@settings(max_examples=150, deadline=None)
@given(TEXT)
def test_any_weights_are_a_spec_or_an_error(text: str) -> None:
    outcome("MyLayer", weights=text)


@settings(max_examples=150, deadline=None)
@given(TEXT)
def test_any_argument_is_a_spec_or_an_error(text: str) -> None:
    outcome("MyLayer", weights="w", arguments=[text])


@settings(max_examples=150, deadline=None)
@given(TEXT)
def test_any_call_is_a_spec_or_an_error(text: str) -> None:
    outcome("MyLayer", weights="w[in,in], b[in]", call=text)


@settings(max_examples=200, deadline=None)
@given(TEXT, TEXT)
def test_any_doc_and_options_are_a_spec_or_an_error(doc: str, options: str) -> None:
    outcome("MyLayer", weights="w", doc=doc, options=options)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.sampled_from(["", " ", "  ", "\t", "\n "]), min_size=30, max_size=30)
)
def test_spaces_do_not_matter(spaces: list[str]) -> None:
    def spread(tokens: list[str]) -> str:
        return "".join(t + s for t, s in zip(tokens, spaces, strict=False))

    weights = spread("w [ in , units ] : float32 = he_normal , b".split())  # noqa: SIM905 -- shorter so
    assert parse("MyLayer", weights=weights) == parse(
        "MyLayer", weights="w[in,units]:float32=he_normal,b"
    )


def test_only_known_activations_skip_the_rehearsal() -> None:
    """Each default that is not rehearsed with a kind's own call passes if it is."""
    for default in PROVEN:
        arguments = [f"f:activation={default}"]
        for weights in ("w[in,units]", "w[in,units], b[units]"):
            spec = parse("MyLayer", weights=weights, arguments=arguments)
            assert spec.large == 300
