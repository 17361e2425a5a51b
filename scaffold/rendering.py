"""spec -> texts: a pure function of the spec and of where the module will live."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, NamedTuple

from scaffold.errors import MplayerError
from scaffold.kinds import in_dialect, kind_template, load_kind, templates_dir

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from jinja2 import BaseLoader, Environment

    from scaffold.kinds import Kind
    from scaffold.spec import Argument, Dim, Initializer, LayerSpec, Scalar, Weight

WIDTH = 88
# What the generated test makes layers with: unlike each other, so that a swap shows.
TEST_SIZES = {"in": 5, "axis_1": 4, "axis_2": 6, "axis_3": 7}
TEST_SIZE, OTHER_SIZE = 3, 2
_KERAS = {"tf": "tf.keras", "keras": "keras"}
"""What a module of each dialect calls Keras."""
_HALVES_AND_FLOATS = ("float16", "bfloat16", "float32", "float64")


class Texts(NamedTuple):
    """The two files of a layer, without their folders."""

    module: str
    test: str
    ours: bool
    """Whether all templates are ours."""


class _Parameter(NamedTuple):
    """A constructor parameter, as each place of the module writes it."""

    name: str
    text: str
    signature: str
    kept: str
    serialized: str


class _Check(NamedTuple):
    """What a constructor argument must be, or the constructor raises `error`."""

    name: str
    kind: str
    condition: str
    error: str

    @property
    def text(self) -> str:
        """The line in the docstring."""
        return f"{self.error}: If `{self.name}` is not {self.kind}."

    @property
    def statement(self) -> str:
        """The raise; its message is in one string where one line can hold it."""
        must = f"`{self.name}` must be {self.kind}. "
        received = f"Received: {self.name}={{{self.name}!r}}"
        if len(must + received) <= WIDTH - len('f""') - 16:
            return f'raise {self.error}(f"{must}{received}")'
        lines = [f"raise {self.error}(", f'    "{must}"', f'    f"{received}"', ")"]
        return f"\n{' ' * 12}".join(lines)


def render(spec: LayerSpec, package: str = "", team: Path | None = None) -> Texts:
    """Renders a layer's module and its test.

    Args:
        spec: A valid layer.
        package: Dotted package from which the test imports the module; "" where the
            module stands alone.
        team: A team's folder of templates; each that it has stands for ours.

    Returns:
        Both texts, formatted as `ruff format` would, in lines of at most 88 columns.

    Raises:
        MplayerError: If a line cannot be brought below 88 columns, or a template that
            is not ours fails.
    """
    kind = in_dialect(load_kind(spec.kind, team), spec.dialect, team)
    folders = dict.fromkeys(
        folder / "layer" for folder in (team, kind.templates, templates_dir()) if folder
    )
    environment = _environment(tuple(folders))

    def rendered(template: str, context: Mapping[str, object]) -> str:
        try:
            return environment.get_template(template).render(context)
        except Exception as error:
            if len(folders) == 1:
                raise
            raise _template_fault(template, tuple(folders), error) from error

    layer = kind_template(kind, spec.dialect, "layer.py.jinja")
    module = rendered(layer, _module_context(spec, kind))
    own = kind_template(kind, spec.dialect, "test_layer.py.jinja")
    has_own = any((folder / own).is_file() for folder in folders)
    base = (
        "keras/test_layer.py.jinja"
        if spec.dialect == "keras"
        else "test_layer.py.jinja"
    )
    test = rendered(
        own if has_own else base,
        {**_test_context(spec, kind, package), "role": _roles(spec, kind)},
    )
    return Texts(_fold(module), _fold(test), ours=len(folders) == 1)


def _template_fault(
    template: str, folders: Sequence[Path], error: Exception
) -> MplayerError:
    """Says which template of which folder has failed, and at which line."""
    import traceback

    from jinja2 import TemplateSyntaxError

    name, line = template, 0
    if isinstance(error, TemplateSyntaxError):
        name, line = error.filename or error.name or template, error.lineno
    else:
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename.endswith(".jinja"):
                name, line = frame.filename, frame.lineno or 0
    where = next((f / name for f in folders if (f / name).is_file()), name)
    at = f", line {line}" if line else ""
    return MplayerError(
        f"The template '{where}'{at} cannot be rendered: {type(error).__name__}:"
        f" {error}. Mend it there, or take it out of the folder to have mplayer's own."
    )


def compiled_dir() -> Path | None:
    """Returns where a wheel has our templates as modules, which start sooner.

    The name is that of the Jinja which has compiled them: no other one looks there,
    and so compiles the templates itself, as it does in a checkout.
    """
    import jinja2

    # A Jinja without the attribute looks it up, which takes longer than is gained.
    version = vars(jinja2).get("__version__")
    return templates_dir() / f"jinja2-{version}" if version else None


def compile_templates(folder: str) -> None:
    """Writes our templates as modules."""
    from jinja2 import FileSystemLoader

    sources = templates_dir() / "layer"
    environment = _environment((sources,)).overlay(loader=FileSystemLoader(sources))
    environment.compile_templates(
        folder, extensions=["jinja"], zip=None, ignore_errors=False
    )


@functools.cache
def _environment(folders: tuple[Path, ...]) -> Environment:
    """Makes what renders; templates that are not ours do it in Jinja's sandbox."""
    from jinja2 import (
        ChoiceLoader,
        Environment,
        FileSystemLoader,
        ModuleLoader,
        StrictUndefined,
    )

    loaders: list[BaseLoader] = [FileSystemLoader(folders)]
    compiled = compiled_dir()
    if len(folders) > 1:
        from jinja2.sandbox import ImmutableSandboxedEnvironment as Environment
    elif compiled:
        loaders.insert(0, ModuleLoader(compiled))
    environment = Environment(
        loader=ChoiceLoader(loaders),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # The texts are Python, not HTML.
        autoescape=False,
    )
    environment.filters["wrap"] = _wrap
    return environment


def _module_context(spec: LayerSpec, kind: Kind) -> dict[str, object]:
    keras = _KERAS[spec.dialect]
    trainable = [weight for weight in spec.weights if weight.trainable]
    options = [
        option.removesuffix("s")
        for option in ("regularizers", "constraints")
        if option in spec.options
    ]
    parameters = [
        _argument_parameter(argument, spec, kind.help.get(argument.name, ""))
        for argument in spec.arguments
    ]
    for part in ("initializer", *options):
        parameters += [_weight_parameter(weight, part, keras) for weight in trainable]
    last = spec.input_shape[-1]
    reads_input_dim = any("in" in weight.shape for weight in spec.weights)
    sizes = {"in": "input_dim", **{a.name: f"self.{a.name}" for a in spec.arguments}}
    return {
        "spec": spec,
        "call": _call(spec),
        "computes": kind.body.computes if kind.body else f"Computes `{spec.call}`.",
        "role": _roles(spec, kind),
        "dtypes": _dtypes(spec),
        "dtypes_more": f" {kind.body.dtypes}" if kind.body and kind.body.dtypes else "",
        "trainable": trainable,
        "options": options,
        "parameters": parameters,
        "checks": [c for c in map(_check, spec.arguments) if c],
        "composed": [w for w in trainable if w.initializer.arguments],
        "opted_out": [
            w.name
            for w in spec.weights
            if w.state or w.wide or w.dtype in _HALVES_AND_FLOATS
        ],
        "carries_mask": spec.any_rank,
        "reads_input_dim": reads_input_dim,
        "input_spec": _input_spec(spec, "input_dim" if reads_input_dim else last),
        "input_shape_text": _input_shape_text(spec),
        "output_shape_text": _shape_text(spec.output_shape, any_rank=spec.any_rank),
        "output_shape": _output_shape(spec),
        "example_arguments": ", ".join(
            f"{name}={value}"
            for name, value in {
                **{
                    a.name: _literal(_test_value(a, kind))
                    for a in spec.arguments
                    if a.required
                },
                "dtype": '"mixed_float16"',
            }.items()
        ),
        "example_shape": _tuple([2, *_test_shape(spec)]),
        "initializer": functools.partial(_initializer_code, keras=keras),
        "shape": lambda weight: _tuple([sizes.get(d, d) for d in weight.shape]),
        "dtype": _dtype_code,
    }


def _test_context(spec: LayerSpec, kind: Kind, package: str) -> dict[str, object]:
    module = f"{package}.{spec.module}" if package else spec.module
    arguments: dict[str, Scalar] = {}
    others: dict[str, Scalar] = {}
    for argument in spec.arguments:
        if argument.required or argument.size or argument.name in kind.tested:
            arguments[argument.name] = _test_value(argument, kind)
        others[argument.name] = _other_value(argument, kind)
    for weight in spec.weights:
        if weight.trainable:
            other = "ones" if weight.initializer.name != "ones" else "zeros"
            others[f"{weight.name}_initializer"] = other
            if "regularizers" in spec.options:
                others[f"{weight.name}_regularizer"] = "l2"
            if "constraints" in spec.options:
                others[f"{weight.name}_constraint"] = "non_neg"
    stored = {
        weight.name: f'"{weight.dtype}"' if weight.dtype else "AT_LEAST_FLOAT32"
        for weight in spec.weights
        if weight.dtype or weight.state
    }
    imported = f"from {module} import {spec.name}"
    if len(imported) > WIDTH:
        imported = f"from {module} import (\n    {spec.name},\n)"
    return {
        "spec": spec,
        "test_file": f"test_{spec.module}.py",
        "import_line": imported,
        "arguments": _dict("ARGUMENTS: dict[str, Any]", _literals(arguments)),
        "other_arguments": _dict("OTHER_ARGUMENTS: dict[str, Any]", _literals(others)),
        "input_shape": _tuple(_test_shape(spec)),
        "large": repr(float(spec.large)),
        "trained": _set(weight.name for weight in spec.weights if weight.trainable),
        "stored": _dict("STORED: dict[str, str]", stored),
    }


def _roles(spec: LayerSpec, kind: Kind) -> dict[str, Weight | None]:
    """The weights by what they are for; None for a role that no weight has."""
    return {
        role.role: next((w for w in spec.weights if w.name in role.names), None)
        for role in kind.roles
    }


def _argument_parameter(argument: Argument, spec: LayerSpec, text: str) -> _Parameter:
    name, kept, serialized = argument.name, argument.name, f"self.{argument.name}"
    if argument.type == "activation":
        keras = _KERAS[spec.dialect]
        kept = f"{keras}.activations.get({name})"
        serialized = f"{keras}.activations.serialize(self.{name})"
    kind = {
        "int": "Integer",
        "float": "Float",
        "bool": "Boolean",
        "str": "String",
        "activation": "Activation function, or its name",
    }[argument.type]
    if not text and not argument.size:
        text = f"{kind}."
    elif not text:
        shaped = [f"`{w.name}`" for w in spec.weights if name in w.shape]
        text = (
            "Positive integer, the size of the last output axis."
            if spec.output_shape[-1] == name
            else f"Positive integer, a size in the shape of {' and '.join(shaped)}."
        )
    annotation = "Any" if argument.type == "activation" else argument.type
    signature = f"{name}: {annotation}"
    if not argument.required:
        signature += f" = {_literal(argument.default)}"
        text += f" Defaults to `{_literal(argument.default)}`" + (
            " (linear)."
            if argument.type == "activation" and argument.default is None
            else "."
        )
    return _Parameter(name, text, signature, kept, serialized)


def _weight_parameter(weight: Weight, part: str, keras: str) -> _Parameter:
    name = f"{weight.name}_{part}"
    default, text = "None", f"{part.capitalize()} of `{weight.name}`"
    if part == "initializer":
        text += f", of shape `{_shape_text(weight.shape, batch=False)}`"
        if weight.initializer.arguments:
            code = _initializer_code(weight, keras)
            code = code.removeprefix(f"{keras}.initializers.")
            text += f". Defaults to `None`, which means `{code}`"
        else:
            default = f'"{weight.initializer.name}"'
            text += f". Defaults to `{default}`"
    else:
        text += ". Defaults to `None`"
    return _Parameter(
        name=name,
        text=f"{text}.",
        signature=f"{name}: Any = {default}",
        kept=f"{keras}.{part}s.get({name})",
        serialized=f"{keras}.{part}s.serialize(self.{name})",
    )


def _check(argument: Argument) -> _Check | None:
    name = argument.name
    bound = "positive" if argument.size else argument.bound
    if bound:
        least = "< 1" if argument.type == "int" else "<= 0"
        number = "integer" if argument.type == "int" else "number"
        types = "int" if argument.type == "int" else "(int, float)"
        kind, outside = {
            "positive": (f"a positive {number}", f"{name} {least}"),
            "not negative": (f"a {number} of 0 or more", f"{name} < 0"),
            "small": ("a number above 0, at most 1", f"not 0 < {name} <= 1"),
            "share": ("a number from 0 to 1", f"not 0 <= {name} <= 1"),
        }[bound]
        condition = f"not isinstance({name}, {types}) or {outside}"
        return _Check(name, kind, condition, "ValueError")
    kinds = {
        "int": ("an integer", "int"),
        "float": ("a number", "(int, float)"),
        "bool": ("a boolean", "bool"),
        "str": ("a string", "str"),
    }
    if argument.type not in kinds:
        return None
    kind, types = kinds[argument.type]
    return _Check(name, kind, f"not isinstance({name}, {types})", "TypeError")


def _dtypes(spec: LayerSpec) -> str:
    """Returns the dtype contract, as the class docstring states it."""
    text = (
        "Dtypes: weights are stored in the layer's variable dtype; `call` computes in "
        "its compute dtype, which its outputs have too. Both come from the layer's "
        "policy: `dtype=` in the constructor, or else the global policy."
        if spec.weights
        else "Dtypes: `call` computes in the layer's compute dtype, which its outputs "
        "have too. It comes from the layer's policy: `dtype=` in the constructor, or "
        "else the global policy."
    )
    for weight in spec.weights:
        if weight.state:
            text += f" `{weight.name}` is kept in at least float32."
        elif weight.dtype:
            text += f" `{weight.name}` is {weight.dtype} under every policy."
    return text


def _call(spec: LayerSpec) -> str:
    """Returns the expression with `self.` before each argument, strings untouched."""
    names = "|".join(argument.name for argument in spec.arguments)
    if not names:
        return spec.call
    pattern = re.compile(rf"(?<![\w.])({names})(?!\w|=)")
    parts = spec.call.split('"')
    parts[::2] = [pattern.sub(r"self.\1", part) for part in parts[::2]]
    return '"'.join(parts)


def _dtype_code(weight: Weight) -> str:
    if weight.dtype:
        return f'"{weight.dtype}"'
    if weight.state:
        return '"float64" if self.variable_dtype == "float64" else "float32"'
    return "self.variable_dtype"


def _initializer_code(weight: Weight, keras: str) -> str:
    initializer: Initializer = weight.initializer
    if not initializer.arguments:
        return f'"{initializer.name}"'
    name = "".join(word.capitalize() for word in initializer.name.split("_"))
    arguments = ", ".join(f"{k}={_literal(v)}" for k, v in initializer.arguments)
    return f"{keras}.initializers.{name}({arguments})"


def _input_spec(spec: LayerSpec, last: Dim) -> str:
    if last == "in" or str(last).startswith("axis_"):
        return "" if spec.any_rank else f"ndim={len(spec.input_shape) + 1}"
    rank = "min_ndim=2" if spec.any_rank else f"ndim={len(spec.input_shape) + 1}"
    return f"{rank}, axes={{-1: {last}}}"


def _input_shape_text(spec: LayerSpec) -> str:
    shape = _shape_text(spec.input_shape, any_rank=spec.any_rank)
    return f"`{shape}`, of floats or integers."


def _shape_text(
    shape: Sequence[Dim], *, any_rank: bool = False, batch: bool = True
) -> str:
    dims = [str(dim) for dim in shape]
    if any_rank:
        dims = ["...", dims[-1]]
    return _tuple(["batch", *dims] if batch else dims)


def _output_shape(spec: LayerSpec) -> str:
    if spec.output_shape == spec.input_shape:
        return "tuple(input_shape)"
    sizes: dict[Dim, str] = {"in": "input_shape[-1]"}
    sizes |= {f"axis_{i}": f"input_shape[{i}]" for i in range(1, 9)}
    sizes |= {argument.name: f"self.{argument.name}" for argument in spec.arguments}
    dims = [sizes.get(dim, str(dim)) for dim in spec.output_shape]
    if spec.any_rank:
        return f"(*input_shape[:-1], {dims[-1]})"
    return _tuple(["input_shape[0]", *dims])


def _test_shape(spec: LayerSpec) -> list[Dim]:
    return [TEST_SIZES.get(str(dim), dim) for dim in spec.input_shape]


def _test_value(argument: Argument, kind: Kind) -> Scalar:
    if argument.name in kind.tested:
        return kind.tested[argument.name]
    if argument.size:
        return TEST_SIZE
    if not argument.required:
        return argument.default
    values: dict[str, Scalar] = {"int": 2, "float": 0.5, "bool": True, "str": "text"}
    return values.get(argument.type)


def _other_value(argument: Argument, kind: Kind) -> Scalar:
    """Returns a value that is neither the default nor the one in ARGUMENTS."""
    value = _test_value(argument, kind)
    if argument.size:
        return next(n for n in (OTHER_SIZE, 4) if n != argument.default)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value / 2 if value else 0.5
    if argument.type == "str":
        return f"other {value}".strip()
    return "tanh" if value != "tanh" else "relu"


def _tuple(items: Sequence[object]) -> str:
    return f"({', '.join(map(str, items))}{',' if len(items) == 1 else ''})"


def _literal(value: Scalar) -> str:
    # The formatter has 1e30 where Python says 1e+30.
    return f'"{value}"' if isinstance(value, str) else repr(value).replace("e+", "e")


def _literals(values: Mapping[str, Scalar]) -> dict[str, str]:
    return {name: _literal(value) for name, value in values.items()}


def _set(names: Iterable[str]) -> str:
    """Returns a set display, in order."""
    listed = ", ".join(f'"{name}"' for name in sorted(names))
    return f"{{{listed}}}" if listed else "set()"


def _dict(target: str, items: Mapping[str, str]) -> str:
    """Returns a dict display, one item a line where one line cannot hold it."""
    line = ", ".join(f'"{name}": {code}' for name, code in items.items())
    if len(target) + len(" = {}") + len(line) <= WIDTH:
        return f"{{{line}}}"
    lines = "".join(f'    "{name}": {code},\n' for name, code in items.items())
    return f"{{\n{lines}}}"


def _wrap(text: str, indent: int, start: int | None = None) -> str:
    """Wraps docstring text that begins at column `start` and goes on at `indent`."""
    import textwrap

    lines = textwrap.wrap(
        text,
        WIDTH,
        initial_indent=" " * (indent if start is None else start),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines).lstrip()


def _fold(text: str) -> str:
    """Breaks each line that is too long, as the formatter does."""
    lines = text.splitlines()
    if max(map(len, lines)) > WIDTH:
        lines = [_folded(line) if len(line) > WIDTH else line for line in lines]
    return "\n".join(lines) + "\n"


def _folded(line: str) -> str:
    """Breaks a line at its last bracket."""
    # The path of an import is as long as the project has made it.
    if line.startswith("from "):
        return line
    body, tail = (line[:-1], ",") if line.endswith(",") else (line, "")
    start = _last_bracket(body)
    indent = line[: len(line) - len(line.lstrip())]
    # An example in a docstring goes on after dots.
    margin = f"{indent}... " if line.lstrip().startswith(">>> ") else indent
    inner = [f"{margin}    {body[start + 1 : -1]}"]
    if len(inner[0]) > WIDTH:
        items = body[start + 1 : -1].split(", ")
        inner = [f"{margin}    {item}," for item in items if "=" in item]
        start = start if len(inner) == len(items) else -1
    if start < 0 or max(map(len, [*inner, line[: start + 1]])) > WIDTH:
        raise MplayerError(
            f"A generated line is longer than {WIDTH} columns: '{line.strip()}'. "
            "Use shorter names, or write this line in the file afterwards."
        )
    return "\n".join([line[: start + 1], *inner, f"{margin}){tail}"])


def _last_bracket(line: str) -> int:
    """Returns where the bracket opens that ends the line, or -1."""
    depth = 0
    for position in range(len(line) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(line[position], 0)
        if depth == 0:
            return position if line[position] == "(" else -1
    return -1
