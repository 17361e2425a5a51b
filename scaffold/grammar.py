"""Text -> spec: what a layer is, or an error that teaches.

The same texts come from the command line, a manifest, a prompt or Python: this is the
one parser. Every accepted text gives a layer whose mixed-precision matrix passes.
"""

from __future__ import annotations

import functools
import math
import re
from typing import TYPE_CHECKING, NamedTuple, cast, get_args

from scaffold.call import Analysis, analyse, parse_call
from scaffold.errors import MplayerError, nearest
from scaffold.functions import ACTIVATIONS
from scaffold.initializers import parse_initializer, require_initializable
from scaffold.kinds import (
    BOUNDS,
    BY_WEIGHTS,
    DIALECTS,
    Body,
    Kind,
    in_dialect,
    load_kind,
    templates_dir,
)
from scaffold.names import parse_name, require_ascii, require_variable_name
from scaffold.spec import (
    Argument,
    ArgumentType,
    Dim,
    Initializer,
    LayerSpec,
    Request,
    Scalar,
    Weight,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = [
    "OPTIONS",
    "WeightText",
    "parse",
    "parse_argument",
    "parse_arguments",
    "parse_call",
    "parse_dialect",
    "parse_doc",
    "parse_name",
    "parse_options",
    "parse_request",
    "parse_weights",
    "require_some_call",
    "split_arguments",
]

OPTIONS = ("regularizers", "constraints")
LARGEST_SIZE = 65536
LONGEST_DOC = 200
PROVEN = (None, "gelu", "hard_sigmoid", "linear", "relu", "softplus", "swish")
"""The defaults with which the kinds' own calls are known to pass."""
MOST_AXES = 5
MOST_DECLARED = 16
"""Of weights, and of arguments."""

HALVES = ("float16", "bfloat16")
FLOATS = (*HALVES, "float32", "float64")
INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
DTYPES = (*FLOATS, *INTEGERS, "bool")
_ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "int": "int32",
    "boolean": "bool",
}
# What each option, and every trainable weight, adds to the constructor.
_GENERATED: dict[str, str | None] = {
    "initializer": None,
    "regularizer": "regularizers",
    "constraint": "constraints",
}
_BRACKETS = {"(": ")", "[": "]"}
# The layers of a manifest are often alike, and a rehearsal takes a fifth of a second.
_analysed = functools.cache(analyse)


class WeightText(NamedTuple):
    """One weight as its text has it; None is what the text leaves to a role."""

    name: str
    shape: tuple[Dim, ...] | None
    initializer: Initializer | None
    dtype: str | None
    frozen: bool
    state: bool

    @property
    def trainable(self) -> bool:
        """Whether a gradient must reach it."""
        return not (self.frozen or self.state)


def parse(
    name: str,
    *,
    weights: str | None = None,
    arguments: Sequence[str] = (),
    call: str | None = None,
    kind: str | None = None,
    options: str | Sequence[str] = (),
    doc: str | None = None,
    dialect: str = "tf",
    team: Path | None = None,
) -> LayerSpec:
    """Returns the layer that these texts describe.

    Args:
        name: The class name, `MyLayer`.
        weights: The weights, `kernel[in,units]=he_normal, bias`; None: the kind's.
        arguments: Constructor arguments, each `rate:float=0.1`.
        call: A Python expression; None: the kind's own, folded over the weights.
        kind: A name in the catalogue; None: the first whose roles fit the weights.
        options: Some of `regularizers` and `constraints`, or a text that lists them.
        doc: The first line of the class docstring.
        dialect: `tf`, or `keras` for a layer that runs on every backend of Keras.
        team: A team's folder of templates, whose kinds come before ours.

    Returns:
        A spec whose generated module passes its generated tests.

    Raises:
        MplayerError: If there is none, with the value, its flag and a way out.
    """
    class_name = parse_name(name)
    dialect = parse_dialect(dialect)
    chosen = load_kind(kind, team) if kind is not None else None
    chosen = chosen and in_dialect(chosen, dialect, team)
    chosen_options = parse_options(options)
    declared = list(parse_arguments(arguments))
    if weights is None and chosen is None:
        chosen = load_kind(BY_WEIGHTS[0], team)
    texts = _weight_texts(weights, chosen)
    kinds = [load_kind(name, team) for name in BY_WEIGHTS]
    with_call = call is not None
    chosen = chosen or _kind_for(texts, kinds, with_call=with_call)
    chosen = in_dialect(chosen, dialect, team)
    if chosen.body is not None:
        _require_body(chosen, texts, declared, call)
    if weights is None or chosen.body is not None:
        known = {argument.name for argument in declared}
        own = parse_arguments(chosen.arguments)
        declared += [argument for argument in own if argument.name not in known]
    if chosen.body is not None:
        declared = [_bounded(argument, chosen) for argument in declared]
    specified = [
        _specified(text, (chosen, *kinds), with_call=with_call) for text in texts
    ]
    all_arguments = _with_sizes(specified, declared)
    if call is not None and dialect == "keras":
        _require_operators(call, all_arguments)
    _require_distinct(specified, all_arguments, chosen_options)
    if chosen.body is not None:
        analysis = _analysis(chosen.body, specified, chosen.large)
    else:
        analysis = _analysed(
            _default_call(specified, all_arguments, chosen) if call is None else call,
            tuple(specified),
            all_arguments,
            chosen.large,
            rehearsed=not (
                chosen.templates == templates_dir()
                and _is_proven(texts, all_arguments, call)
            ),
        )
    return LayerSpec(
        name=class_name,
        kind=chosen.name,
        weights=tuple(w._replace(read=w.name in analysis.read) for w in specified),
        arguments=all_arguments,
        call=analysis.call,
        doc=parse_doc(doc),
        options=chosen_options,
        input_shape=analysis.input_shape,
        output_shape=analysis.output_shape,
        any_rank=analysis.any_rank,
        large=analysis.large,
        dialect=dialect,
    )


def parse_request(request: Request, team: Path | None = None) -> LayerSpec:
    """Returns the layer that was asked for; see `parse`.

    Args:
        request: The texts.
        team: A team's folder of templates.

    Raises:
        MplayerError: As `parse` does.
    """
    return parse(
        request.name,
        weights=request.weights,
        arguments=request.arguments,
        call=request.call,
        kind=request.kind,
        options=request.options,
        doc=request.doc,
        dialect=request.dialect,
        team=team,
    )


def require_some_call(request: Request, team: Path | None = None) -> None:
    """Refuses weights and arguments with which no call can go, whatever it is.

    Args:
        request: The texts; its call is not looked at.
        team: A team's folder of templates.

    Raises:
        MplayerError: As `parse` does, if it is about them.
    """
    own = request.kind is not None and load_kind(request.kind, team).body is not None
    try:
        parse_request(request._replace(call=None if own else "inputs"), team)
    except MplayerError as error:
        if not str(error).startswith("--call"):
            raise


def parse_dialect(text: str) -> str:
    """Returns the dialect of this name.

    Raises:
        MplayerError: If there is none.
    """
    name = text.strip()
    if name in DIALECTS:
        return name
    raise MplayerError(
        f"--dialect: there is no dialect {text!r}.{nearest(name, DIALECTS)} Take one of"
        f" {' and '.join(DIALECTS)}."
    )


def parse_doc(text: str | None) -> str | None:
    """Returns a docstring's first line, with its full stop; None for an empty one.

    Raises:
        MplayerError: If it is not one printable line that a docstring can hold.
    """
    doc = (text or "").strip()
    if not doc:
        return None
    strange = next((x for x in doc if not x.isprintable() or x in '\\"'), None)
    if strange:
        raise MplayerError(
            f"--doc: {strange!r} has no place in the docstring {doc!r}. Write one line "
            "without backslashes and double quotes, as in 'Projects the last axis.'"
        )
    if len(doc) > LONGEST_DOC:
        raise MplayerError(
            f"--doc: '{doc[:40]}...' has {len(doc)} characters, and {LONGEST_DOC} is "
            "the limit. Write one short line, as in 'Projects the last axis.'"
        )
    return doc if doc[-1] in ".!?" else f"{doc}."


def parse_options(text: str | Sequence[str]) -> frozenset[str]:
    """Returns the options in `regularizers,constraints`.

    Raises:
        MplayerError: If one is not known.
    """
    texts = [text] if isinstance(text, str) else text
    words = [word.strip() for part in texts for word in part.split(",")]
    options = [word for word in words if word]
    for option in options:
        if option not in OPTIONS:
            raise MplayerError(
                f"--with: there is no option {option!r}.{nearest(option, OPTIONS)} "
                f"The options are {' and '.join(OPTIONS)}."
            )
    return frozenset(options)


# ------------------------------------------------------------------- the arguments


def parse_arguments(texts: Sequence[str]) -> tuple[Argument, ...]:
    """Returns the constructor arguments, those without a default first.

    Raises:
        MplayerError: If a text is wrong, or a name stands twice.
    """
    arguments: list[Argument] = []
    for text in texts:
        argument = parse_argument(text)
        if any(argument.name == other.name for other in arguments):
            raise MplayerError(
                f"--arg: {argument.name!r} stands twice. Give it once, as in "
                f"'{text.strip()}'."
            )
        arguments.append(argument)
    if len(arguments) > MOST_DECLARED:
        raise MplayerError(
            f"--arg: {len(arguments)} arguments are more than {MOST_DECLARED}. Keep "
            "the main ones, and add the others in the file."
        )
    return tuple(sorted(arguments, key=lambda argument: not argument.required))


def split_arguments(text: str) -> list[str]:
    """Returns the arguments that a text lists with commas; none for "none" or ""."""
    items = [item.strip() for item in text.split(",")]
    return [] if items == ["none"] else [item for item in items if item]


def parse_argument(text: str) -> Argument:
    """Returns the argument in `name:type` or `name:type=default`.

    Raises:
        MplayerError: If it is not one, or has a name that an argument cannot have.
    """
    head, equals, default = text.partition("=")
    name, colon, type_name = (part.strip() for part in head.partition(":"))
    require_variable_name(name, "--arg", "argument")
    types = get_args(ArgumentType)
    if not colon or type_name not in types:
        raise MplayerError(
            f"--arg: {text.strip()!r} has "
            f"{f'the unknown type {type_name!r}' if type_name else 'no type'}."
            f"{nearest(type_name, types)} Write a name and one of {', '.join(types)}, "
            f"as in '{name}:float=0.1'."
        )
    argument_type = cast("ArgumentType", type_name)
    if not equals:
        return Argument(name, argument_type, required=argument_type != "activation")
    value = _DEFAULTS[argument_type](name, default.strip())
    return Argument(name, argument_type, default=value)


def _int_default(name: str, text: str) -> int:
    if re.fullmatch(r"[+-]?[0-9]{1,9}", text):
        return int(text)
    raise MplayerError(
        f"--arg: {text!r} is not an integer of at most nine digits, the default of "
        f"{name!r}. Write '{name}:int=32', or '{name}:float=0.1' for a float."
    )


def _float_default(name: str, text: str) -> float:
    try:
        value = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if math.isfinite(value):
        return value
    raise MplayerError(
        f"--arg: {text!r} is not a finite number, the default of {name!r}. Write "
        f"'{name}:float=0.1'."
    )


def _bool_default(name: str, text: str) -> bool:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    raise MplayerError(
        f"--arg: {text!r} is neither true nor false, the default of {name!r}. Write "
        f"'{name}:bool=true'."
    )


def _str_default(name: str, text: str) -> str:
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    value = text[1:-1] if quoted else text
    strange = next((x for x in value if not x.isprintable() or x in "\\'\"{}"), None)
    if strange or len(value) > 40:  # noqa: PLR2004 -- one line of code must hold it
        what = f"holds {strange!r}" if strange else "has more than 40 characters"
        raise MplayerError(
            f"--arg: {text!r}, the default of {name!r}, {what}. Write a short plain "
            f"text, as in '{name}:str=same'."
        )
    return value


def _activation_default(name: str, text: str) -> str | None:
    bare = text.strip("'\"")
    if bare.lower() == "none":
        return None
    if bare in ACTIVATIONS:
        return bare
    raise MplayerError(
        f"--arg: {text!r} is no activation that every Keras has, the default of "
        f"{name!r}.{nearest(bare, ACTIVATIONS)} Write '{name}:activation=relu', or one "
        f"of {', '.join(ACTIVATIONS)}."
    )


_DEFAULTS: dict[ArgumentType, Callable[[str, str], Scalar]] = {
    "int": _int_default,
    "float": _float_default,
    "bool": _bool_default,
    "str": _str_default,
    "activation": _activation_default,
}


def _with_sizes(
    weights: Sequence[Weight], declared: Sequence[Argument]
) -> tuple[Argument, ...]:
    """Returns all arguments: implied sizes first, then those without a default."""
    sizes = [
        (dim, weight)
        for weight in weights
        for dim in weight.shape
        if isinstance(dim, str) and dim != "in"
    ]
    arguments = {argument.name: argument for argument in declared}
    implied: dict[str, Argument] = {}
    for dim, weight in sizes:
        argument = arguments.get(dim)
        if argument is None:
            implied[dim] = Argument(dim, "int", required=True, size=True)
            continue
        default = argument.default
        if argument.type != "int":
            raise MplayerError(
                f"--arg: {dim!r} is a {argument.type}, and the shape of "
                f"{weight.name!r} names it. Write '{dim}:int'."
            )
        if not argument.required and not 1 <= cast("int", default) <= LARGEST_SIZE:
            raise MplayerError(
                f"--arg: the size {dim!r} of {weight.name!r} cannot be {default}. Give "
                f"it from 1 to {LARGEST_SIZE}, as in '{dim}:int=32'."
            )
        arguments[dim] = argument._replace(size=True)
    return tuple(
        sorted(
            [*implied.values(), *arguments.values()],
            key=lambda argument: not argument.required,
        )
    )


# --------------------------------------------------------------------- the weights


def parse_weights(text: str) -> tuple[WeightText, ...]:
    """Returns the weights in `kernel[in,units]:float32=he_normal, bias`.

    Raises:
        MplayerError: If the text is not a list of weights, or one cannot be.
    """
    require_ascii(text, "--weights")
    if any(not x.isprintable() and not x.isspace() for x in text):
        raise MplayerError(
            f"--weights: {text!r} holds a control character. Write 'kernel, bias'."
        )
    parts = _split(" ".join(text.split()), "--weights")
    if not any(parts):
        raise MplayerError(
            f"--weights: {text!r} names no weight. Name at least one, as in 'w,b'."
        )
    weights: list[WeightText] = []
    for part in parts:
        weight = _weight_text(part)
        if any(weight.name == other.name for other in weights):
            raise MplayerError(
                f"--weights: {weight.name!r} stands twice. Give each weight its own "
                f"name, as in '{weight.name}, {weight.name[:20]}_2'."
            )
        weights.append(weight)
    if len(weights) > MOST_DECLARED:
        raise MplayerError(
            f"--weights: {len(weights)} weights are more than {MOST_DECLARED}. Write "
            "several layers, each with its own."
        )
    return tuple(weights)


def _split(text: str, flag: str) -> list[str]:
    """Splits at commas outside brackets, and refuses unbalanced brackets."""
    parts, start, opened = [], 0, list[int]()
    for position, character in enumerate(text):
        if character in _BRACKETS:
            opened.append(position)
        elif character in _BRACKETS.values():
            expected = _BRACKETS[text[opened[-1]]] if opened else ""
            if character != expected:
                _point(text, position, flag, f"this '{character}' closes nothing")
            opened.pop()
        elif character == "," and not opened:
            parts.append(text[start:position].strip())
            start = position + 1
    if opened:
        bracket = text[opened[-1]]
        _point(text, opened[-1], flag, f"this '{bracket}' is never closed")
    return [*parts, text[start:].strip()]


def _point(text: str, position: int, flag: str, what: str) -> None:
    raise MplayerError(
        f"{flag}: {what}, at character {position + 1}. Write brackets in pairs, as in "
        f"'kernel[in,units]=constant(0.1)'.\n  {text}\n  {' ' * position}^"
    )


def _weight_text(text: str) -> WeightText:
    head, equals, initializer = text.partition("=")
    head, initializer = head.strip(), initializer.strip()
    match = re.fullmatch(r"([^\[\]:()]*)(?:\[([^\[\]()]*)\])?\s*((?::[^\[\]]*)?)", head)
    if not match:
        raise MplayerError(
            f"--weights: {text!r} is not a weight. Write "
            "'name[dims]:attribute=initializer', as in 'kernel[in,units]=he_normal'."
        )
    name = match[1].strip()
    if not name:
        raise MplayerError(
            f"--weights: {text!r} has no name. Write one before it, as in "
            "'kernel[in,units]', and single commas between weights."
        )
    require_variable_name(name, "--weights", "weight")
    if equals and not initializer:
        raise MplayerError(
            f"--weights: {text!r} has no initializer after '='. Write '{name}=zeros'."
        )
    shape = None if match[2] is None else _dims(name, match[2])
    dtype, marks = _attributes(name, match[3])
    weight = WeightText(
        name=name,
        shape=shape,
        initializer=parse_initializer(initializer, name) if equals else None,
        dtype=dtype,
        frozen="frozen" in marks,
        state="state" in marks,
    )
    _require_trainable(weight)
    return weight


def _dims(name: str, text: str) -> tuple[Dim, ...]:
    if not text.strip():
        return ()
    words = [word.strip() for word in text.split(",")]
    if len(words) > MOST_AXES:
        raise MplayerError(
            f"--weights: '{name}[{text}]' has {len(words)} axes, and {MOST_AXES} is "
            f"the limit. Write fewer, as in '{name}[in,units]'."
        )
    return tuple(_dim(name, word, text) for word in words)


def _dim(name: str, word: str, text: str) -> Dim:
    if re.fullmatch(r"[0-9]+", word):
        if len(word) < 8 and 1 <= int(word) <= LARGEST_SIZE:  # noqa: PLR2004 -- digits
            return int(word)
        raise MplayerError(
            f"--weights: the size {word} in '{name}[{text}]' is not from 1 to "
            f"{LARGEST_SIZE}. Write an integer, 'in' or an argument, as in "
            f"'{name}[in,units]'."
        )
    if word == "in":
        return word
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", word):
        raise MplayerError(
            f"--weights: {word!r} in '{name}[{text}]' is no size. Write a positive "
            f"integer, 'in' or the name of an integer argument, as in "
            f"'{name}[in,units]', or '{name}[]' for a scalar."
        )
    require_variable_name(word, "--weights", "argument")
    return word


def _attributes(name: str, text: str) -> tuple[str | None, list[str]]:
    """Returns the dtype and the marks in `:float32:frozen`."""
    words = [word.strip() for word in text.split(":")[1:]]
    dtypes, marks = [], []
    for word in words:
        if word in ("frozen", "state"):
            marks.append(word)
            continue
        dtype = _ALIASES.get(word, word)
        if dtype not in DTYPES:
            known = (*DTYPES, "frozen", "state")
            raise MplayerError(
                f"--weights: {word!r} of {name!r} is no attribute."
                f"{nearest(word, known)} Write a float, integer or boolean dtype, "
                f"'frozen' or 'state', as in '{name}:float32'."
            )
        dtypes.append(dtype)
    for found, what in ((dtypes, "dtype"), (marks, "of 'frozen' and 'state'")):
        if len(found) > 1:
            raise MplayerError(
                f"--weights: {name!r} has {' and '.join(map(repr, found))}. Give it "
                f"one {what}, as in '{name}:{found[0]}'."
            )
    return (dtypes[0] if dtypes else None), marks


def _require_trainable(weight: WeightText) -> None:
    """Refuses dtypes in which a weight of its kind cannot be kept."""
    name, dtype, initializer = weight.name, weight.dtype, weight.initializer
    if dtype in HALVES and weight.state:
        raise MplayerError(
            f"--weights: {name!r} is state in {dtype}, where small updates vanish. "
            f"Write '{name}:state', which is kept in at least float32."
        )
    if dtype in HALVES and weight.trainable:
        raise MplayerError(
            f"--weights: {name!r} would be trained in {dtype}, where small steps "
            f"vanish. Write '{name}:frozen:{dtype}', or '{name}' for a float32 master."
        )
    if dtype is None or dtype in FLOATS:
        return
    if weight.trainable:
        raise MplayerError(
            f"--weights: {name!r} is {dtype}, which has no gradient. Write "
            f"'{name}:{dtype}:frozen' or '{name}:{dtype}:state'."
        )
    if initializer is None:
        return
    allowed = ("zeros", "ones") + (("constant",) if dtype in INTEGERS else ())
    value = dict(initializer.arguments).get("value", 0)
    bits = int(dtype.lstrip("uint") or 1) if dtype in INTEGERS else 1
    low, high = (
        (0, 2**bits) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    )
    if (
        initializer.name not in allowed
        or not isinstance(value, int)
        or not low <= value < high
    ):
        raise MplayerError(
            f"--weights: {initializer.name}"
            f"{f'({value})' if initializer.name == 'constant' else ''} cannot fill "
            f"{name!r} in {dtype}. Write {' or '.join(allowed)} of a value that "
            f"{dtype} holds, as in '{name}:{dtype}:frozen=ones'."
        )


def _is_proven(
    texts: Sequence[WeightText], arguments: Sequence[Argument], call: str | None
) -> bool:
    """Whether a layer is a kind's own, which is known to pass at its largest inputs.

    This is what most people write: they need not wait for the rehearsal.
    """
    return (
        call is None
        and all(
            text == WeightText(text.name, None, None, None, frozen=False, state=False)
            for text in texts
        )
        and all(argument.default in PROVEN for argument in arguments)
    )


def _weight_texts(weights: str | None, kind: Kind | None) -> tuple[WeightText, ...]:
    text = kind.weights if weights is None and kind else weights or ""
    if kind and kind.body is not None and not text.strip():
        return ()
    return parse_weights(text)


def _require_body(
    kind: Kind,
    texts: Sequence[WeightText],
    arguments: Sequence[Argument],
    call: str | None,
) -> None:
    """Refuses what a kind cannot take whose `call` stands in its template."""
    if call is not None:
        raise MplayerError(
            f"--call: what the kind {kind.name!r} computes is its point, so it takes no"
            " expression. Leave it out and edit `call` afterwards, or begin with --kind"
            " dense."
        )
    _require_roles(kind, texts)
    own = {argument.name: argument for argument in parse_arguments(kind.arguments)}
    for argument in arguments:
        mine = own.get(argument.name)
        if mine is None:
            raise MplayerError(
                f"--arg: the kind {kind.name!r} has no argument {argument.name!r} that"
                f" its `call` would use.{nearest(argument.name, tuple(own))} It has"
                f" {', '.join(own) or 'none'}: leave it out, and add it afterwards."
            )
        if mine.type != argument.type:
            raise MplayerError(
                f"--arg: {argument.name!r} is a {mine.type} in the kind {kind.name!r}."
                f" Write '{argument.name}:{mine.type}'."
            )


def _bounded(argument: Argument, kind: Kind) -> Argument:
    """Returns an argument of a kind with its bound, if its default meets that."""
    bound, value = kind.bounds.get(argument.name, ""), argument.default
    if argument.type not in ("int", "float") or argument.required:
        return argument._replace(bound=bound)
    number = cast("float", value)
    words, holds = BOUNDS.get(bound, ("", lambda _: True))
    if not holds(number):
        fault = f"must be {words} in the kind {kind.name!r}"
    elif number and argument.type == "float" and not 1e-30 <= abs(number) <= 1e30:  # noqa: PLR2004
        fault = "would be 0 or infinite where float32 computes with it"
    else:
        return argument._replace(bound=bound)
    own = next(text for text in kind.arguments if text.startswith(f"{argument.name}:"))
    raise MplayerError(
        f"--arg: {argument.name!r} {fault}. Received: {value}. Write '{own}', or leave"
        " it out."
    )


def _require_operators(call: str, arguments: Sequence[Argument]) -> None:
    """Refuses what the keras dialect does not take in a call: all functions but ours.

    The call is interpreted by what TensorFlow's functions do; those of `keras.ops` are
    others here and there.
    """
    import ast

    activations = {a.name for a in arguments if a.type == "activation"}
    for node in ast.walk(parse_call(call)):
        if not isinstance(node, ast.Attribute) and not (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id not in activations
        ):
            continue
        function = ast.unparse(node if isinstance(node, ast.Attribute) else node.func)
        reason = (
            "use keras.ops; tf. is the tf dialect"
            if function.startswith("tf.")
            else "in the keras dialect a call has operators and activation(...) alone"
        )
        raise MplayerError(
            f"--call: {function!r} cannot stand here: {reason}. Begin with operators,"
            f" as in 'activation(inputs @ kernel + bias)', and put keras.ops into"
            " `call` in the file; or take --dialect tf."
        )


def _require_roles(kind: Kind, texts: Sequence[WeightText]) -> None:
    taken: dict[str, str] = {}
    for text in texts:
        role = kind.role_of(text.name)
        if role is None:
            roles = " and ".join(f"{r.names[0]!r}" for r in kind.roles) or "no weights"
            raise MplayerError(
                f"--weights: {text.name!r} is no weight of the kind {kind.name!r}; it"
                f" has {roles}. Take those, or another kind: see mplayer kinds."
            )
        if role.role in taken:
            raise MplayerError(
                f"--weights: {taken[role.role]!r} and {text.name!r} are both the"
                f" {role.role} of the kind {kind.name!r}. Leave one out."
            )
        taken[role.role] = text.name
        if text.shape is not None and text.shape != _dims(
            text.name, role.shape.strip("[]")
        ):
            raise MplayerError(
                f"--weights: {text.name!r} has the shape {role.shape} in the kind"
                f" {kind.name!r}. Leave the shape out."
            )
        if text.dtype or text.frozen or text.state:
            raise MplayerError(
                f"--weights: how {text.name!r} is stored is settled in the kind"
                f" {kind.name!r}. Leave what follows ':' out."
            )
    for role in kind.roles:
        if role.required and role.role not in taken:
            raise MplayerError(
                f"--weights: the kind {kind.name!r} needs its {role.role}. Add it, as"
                f" in '{kind.weights}'."
            )


def _shape(text: str) -> tuple[Dim, ...]:
    """The shape that a kind's `[body]` gives."""
    words = text.strip("[] ").replace(" ", "").split(",")
    return tuple(int(word) if word.isdecimal() else word for word in words if word)


def _analysis(body: Body, weights: Sequence[Weight], large: float) -> Analysis:
    return Analysis(
        call="",
        read=frozenset(weight.name for weight in weights),
        input_shape=_shape(body.inputs),
        output_shape=_shape(body.outputs),
        any_rank=body.any_rank,
        large=large,
    )


def _kind_for(
    texts: Sequence[WeightText], kinds: Sequence[Kind], *, with_call: bool
) -> Kind:
    """Returns the first kind whose roles fit, or what says that none does."""
    names = {text.name for text in texts}
    trainable = [text.name for text in texts if text.trainable]

    def fits(kind: Kind) -> bool:
        return all(
            names & {*role.names} for role in kind.roles if role.required
        ) and all(kind.role_of(name) for name in trainable)

    def share(kind: Kind) -> int:
        return sum(kind.role_of(name) is not None for name in names)

    fitting = next((kind for kind in kinds if fits(kind)), None)
    # Where a call is given the kind only says what names alone mean.
    return fitting or (max(kinds, key=share) if with_call else kinds[0])


def _specified(text: WeightText, kinds: Sequence[Kind], *, with_call: bool) -> Weight:
    """Returns the weight, with what its text leaves to its role in the first kind."""
    kind = kinds[0]
    name, role = text.name, kind.role_of(text.name)
    shape = text.shape
    if shape is None:
        if role is None:
            way_out = (
                f"Give it one: '{name}[in,units]', '{name}[in]' or '{name}[]'"
                if with_call
                else f"Give it one and say what all do: --weights '{name}[in]' --call "
                f"'inputs * {name}' for it alone"
            )
            raise MplayerError(
                f"--weights: {name!r} has no shape, and its name is that of no role of "
                f"the kind {kind.name!r}. {way_out}."
            )
        shape = _dims(name, role.shape.strip("[]"))
    initializer = text.initializer
    if initializer is None and role and kind.body is not None:
        initializer = parse_initializer(role.initializer, name)
    elif initializer is None:
        integral = text.dtype is not None and text.dtype not in FLOATS
        initializer = Initializer(
            "zeros" if integral else _initializer_for(name, kinds, len(shape))
        )
    dtype, frozen, state = text.dtype, text.frozen, text.state
    if role and role.attributes:
        dtype, marks = _attributes(name, f":{role.attributes}")
        frozen, state = "frozen" in marks, "state" in marks
    require_initializable(initializer, name, len(shape), dtype)
    return Weight(
        name, shape, initializer, dtype, frozen, state, wide=bool(role and role.wide)
    )


def _initializer_for(name: str, kinds: Sequence[Kind], rank: int) -> str:
    """Returns an initializer for a weight that was given none.

    A name tells more than a shape: `gamma` starts at 1 in every kind. What draws at
    random is for matrices alone.
    """
    roles = [role for each in kinds if (role := each.role_of(name))]
    matrix = rank > 1
    if roles and (matrix or roles[0].initializer in ("zeros", "ones")):
        return roles[0].initializer
    return "glorot_uniform" if matrix else "zeros"


def _require_distinct(
    weights: Sequence[Weight], arguments: Sequence[Argument], options: frozenset[str]
) -> None:
    """Refuses two things of one name, constructor arguments that are made included."""
    owners: dict[str, str] = {weight.name: "a weight" for weight in weights}
    for argument in arguments:
        if argument.name in owners:
            raise MplayerError(
                f"--arg: {argument.name!r} is a weight too. Give the argument another "
                f"name, as in '{argument.name[:18]}_value:{argument.type}'."
            )
        owners[argument.name] = "an argument"
    for weight in weights:
        for part, option in _GENERATED.items():
            made = f"{weight.name}_{part}"
            if not weight.trainable or (option and option not in options):
                continue
            if made in owners:
                flag = "--arg" if owners[made] == "an argument" else "--weights"
                raise MplayerError(
                    f"{flag}: {made!r} is {owners[made]}, and the constructor argument "
                    f"for the {part} of {weight.name!r}. Use another name, such as "
                    f"'{weight.name[:16]}_{part[:4]}'."
                )


def _default_call(
    weights: Sequence[Weight], arguments: Sequence[Argument], kind: Kind
) -> str:
    """Returns the uses of the roles, in their order, over `inputs`."""
    trainable = [weight for weight in weights if weight.trainable]
    taken: dict[str, str] = {}
    for weight in weights:
        role = kind.role_of(weight.name)
        if role is None:
            if weight.trainable:
                raise MplayerError(
                    f"--weights: the kind {kind.name!r} does not know what to do with "
                    f"{weight.name!r}. Say it, as in --call "
                    f"'{_example_call(trainable, kind)}'."
                )
        elif role.role in taken:
            raise MplayerError(
                f"--weights: {taken[role.role]!r} and {weight.name!r} are both the "
                f"{role.role} of the kind {kind.name!r}. Say what they do, as in "
                f"--call '{_example_call(trainable, kind)}'."
            )
        else:
            taken[role.role] = weight.name
    call = "inputs"
    for role in kind.roles:
        if role.role in taken:
            call = role.use.format(x=call, name=taken[role.role])
        elif role.required:
            raise MplayerError(
                f"--weights: the kind {kind.name!r} needs a {role.role}, which none of "
                f"{', '.join(weight.name for weight in weights)} is. Name it, as in "
                f"--weights '{kind.weights}', or give shapes and a call, as in "
                f"--weights '{weights[0].name}[in]' --call 'inputs + "
                f"{weights[0].name}'."
            )
    activations = [a.name for a in arguments if a.type == "activation"]
    if len(activations) > 1:
        raise MplayerError(
            f"--arg: {' and '.join(map(repr, activations))} are both activations. Say "
            f"which goes where, as in --call '{activations[0]}({call})'."
        )
    return f"{activations[0]}({call})" if activations else call


def _example_call(weights: Sequence[Weight], kind: Kind) -> str:
    """Returns a call that uses each of the weights."""
    call = "inputs"
    for weight in weights:
        role = kind.role_of(weight.name)
        use = role.use if role and role.use.format(x="", name="") not in call else None
        if use is None:
            use = "{x} @ {name}" if len(weight.shape) > 1 else "{x} * {name}"
        call = use.format(x=f"({call})" if " + " in call else call, name=weight.name)
    return call
