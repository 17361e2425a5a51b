"""Faults that a layer of any kind can have: edits of what is generated for each.

A fault is a function of a module's text, so that it follows the templates. It gives None
where a module has no place for it. `board.py` shows which law catches it on which kind.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scaffold.grammar import parse
from scaffold.kinds import kind_names
from scaffold.names import camel_case
from scaffold.rendering import render

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from scaffold.spec import LayerSpec

CALL = re.compile(r"    def call\(\s*(self, .*?)\s*\) -> [^:]+:\n", re.DOTALL)
METHOD = re.compile(r"^    def ", re.MULTILINE)
WEIGHT = re.compile(
    r"        self\.(\w+) = self\.add_weight\(\n(.*?)\n        \)\n", re.DOTALL
)
INIT = "        super().__init__("


@dataclass(frozen=True)
class Fault:
    """One kind of fault, the laws of which one must fail, and where none can.

    A layer that sets the global policy is law 14's, which watches over every test.
    """

    name: str
    laws: tuple[str, ...]
    """By the beginning of their tests: `law_03`, or `kind` for the laws of a kind."""
    edit: Callable[[str], str | None]
    spared: Mapping[str, str] = field(default_factory=dict)
    """Kinds that the edit leaves without a fault, and why."""


def in_call(old: str, new: str) -> Callable[[str], str | None]:
    """Replaces a text in `call` alone."""

    def edit(module: str) -> str | None:
        start = module.index("    def call(")
        following = METHOD.search(module, start + 1)
        end = following.start() if following else len(module)
        call = module[start:end]
        edited = call.replace(old, new)
        return None if edited == call else module[:start] + edited + module[end:]

    return edit


def anywhere(old: str, new: str) -> Callable[[str], str | None]:
    """Replaces a text wherever it stands."""
    return lambda module: module.replace(old, new) if old in module else None


def after(outputs: str, *, training: bool = False) -> Callable[[str], str | None]:
    """Makes something else, an expression in `y`, of each output of `call`."""

    def edit(module: str) -> str | None:
        found = CALL.search(module)
        assert found
        names = re.findall(r"(\w+):", found[1])
        passed = ", ".join(f"{name}={name}" for name in names)
        more = ", training: Any = None" if training and "training" not in names else ""
        wrapped = (
            f"    def call({found[1].rstrip(',')}{more}):\n"
            f"        results = self.computed({passed})\n"
            f"        return tf.nest.map_structure(lambda y: {outputs}, results)\n\n"
        )
        inner = found[0].replace("def call(", "def computed(")
        return module.replace(found[0], f"{wrapped}{inner}")

    return edit


def at_first(*lines: str) -> Callable[[str], str | None]:
    """Puts lines before the first one of `call`'s body that casts the inputs."""

    def edit(module: str) -> str | None:
        found = CALL.search(module)
        assert found
        docstring = re.compile(r'        """.*?"""\n', re.DOTALL)
        body = docstring.search(module, found.end())
        assert body
        put = "".join(f"        {line}\n" for line in lines)
        return module[: body.end()] + put + module[body.end() :]

    return edit


def in_init(*lines: str) -> Callable[[str], str | None]:
    """Puts lines before the base layer is made."""
    put = "".join(f"        {line}\n" for line in lines)
    return lambda module: module.replace(INIT, f"{put}{INIT}")


def after_init(
    line: str, edit: Callable[[str], str | None]
) -> Callable[[str], str | None]:
    """Puts a line after the base layer is made, and makes another edit."""

    def both(module: str) -> str | None:
        made = re.sub(
            rf"({re.escape(INIT)}.*?\)\n)", rf"\g<1>        {line}\n", module, count=1
        )
        return edit(made)

    return both


def untracked(module: str) -> str | None:
    """Keeps the first trained weight in a variable that Keras does not know."""
    found = next((w for w in WEIGHT.finditer(module) if "_initializer," in w[2]), None)
    if not found:
        return None
    shape = re.search(r"shape=(.*),\n", found[2])
    assert shape
    made = (
        f"        self.{found[1]} = [tf.Variable(\n"
        f"            self.{found[1]}_initializer({shape[1]}, dtype=self.variable_dtype),\n"
        "            dtype=self.variable_dtype,\n        )][0]\n"
    )
    return module.replace(found[0], made)


def cast_in_build(module: str) -> str | None:
    """Casts the first trained weight once, where it is made."""
    found = next((w for w in WEIGHT.finditer(module) if "_initializer," in w[2]), None)
    if not found or f"self.{found[1]}" not in module[found.end() :]:
        return None
    name = found[1]
    kept = (
        "        with tf.init_scope():\n"
        f"            self.once = tf.cast(self.{name}, self.compute_dtype)\n"
    )
    rest = re.sub(rf"self\.{name}\b(?!_)", "self.once", module[found.end() :])
    return module[: found.end()] + kept + rest


def without_argument(module: str) -> str | None:
    """Leaves one constructor argument out of the config."""
    shorter = re.sub(
        r"(config\.update\(\n)            \w+=.*\n", r"\1", module, count=1
    )
    return None if shorter == module else shorter


NO_HALF_WIDE = '"float64" if self.variable_dtype == "float64" else "float32"'
WIDE = '"float64" if self.compute_dtype == "float64" else "float32"'

FAULTS = (
    Fault(
        "GlobalPolicy",
        ("law_01", "law_03"),
        in_call(
            "self.compute_dtype",
            "tf.keras.mixed_precision.global_policy().compute_dtype",
        ),
    ),
    Fault(
        "VariableDtype",
        ("law_01", "law_03"),
        in_call("self.compute_dtype", "self.variable_dtype"),
    ),
    Fault(
        "Floatx",
        ("law_01", "law_03"),
        in_call("self.compute_dtype", "tf.keras.backend.floatx()"),
    ),
    Fault("Float16", ("law_01", "law_03"), in_call("self.compute_dtype", '"float16"')),
    Fault("Float32", ("law_01", "law_03"), in_call("self.compute_dtype", '"float32"')),
    Fault(
        "PolicyLeaks",
        ("law_01",),
        in_init('tf.keras.mixed_precision.set_global_policy("mixed_float16")'),
    ),
    Fault("DtypeDropped", ("law_01",), in_init('kwargs.pop("dtype", None)')),
    Fault(
        "ConfigWithoutBase",
        ("law_09",),
        anywhere("= super().get_config()", '= {"trainable": True}'),
    ),
    Fault("ConfigWithoutArgument", ("law_09",), without_argument),
    Fault(
        "ConfigOfFloat32",
        ("law_09",),
        anywhere(
            "        return config\n", '        return {**config, "dtype": "float32"}\n'
        ),
    ),
    Fault(
        "WeightsInComputeDtype",
        ("law_02",),
        anywhere("dtype=self.variable_dtype", "dtype=self.compute_dtype"),
    ),
    Fault(
        "StateInHalf",
        ("law_02",),
        anywhere(f"dtype={NO_HALF_WIDE}", "dtype=self.compute_dtype"),
    ),
    Fault("CounterAsFloat", ("law_02",), anywhere('dtype="int64"', 'dtype="float32"')),
    Fault("Untracked", ("law_02", "law_05", "law_09"), untracked),
    Fault("CastInBuild", ("law_05", "law_08"), cast_in_build),
    Fault(
        "UnderAutocast",
        ("law_08", "kind"),
        anywhere("            **{_AUTOCAST: False},\n", ""),
        dict.fromkeys(
            ("conv", "conv-2d", "conv-depthwise", "embedding", "graph", "norm"),
            "a weight may be rounded where it is read",
        ),
    ),
    Fault("ConstantOfFloat32", ("law_03",), after("y * tf.constant(1.0)")),
    Fault(
        "ComputedInFloat32",
        ("law_04",),
        after("tf.cast(tf.cast(y, 'float32'), self.compute_dtype)"),
        {"quantize": "its values are multiples of 1/4, which float32 holds"},
    ),
    Fault("OutputInFloat32", ("law_03",), after("tf.cast(y, 'float32')")),
    Fault(
        "IntegersUncast",
        ("law_10",),
        in_call("tf.cast(inputs, self.compute_dtype)", "inputs"),
        {
            **dict.fromkeys(
                ("conv-depthwise", "features", "norm", "pool", "resize", "stats"),
                "they are cast to float32 next",
            ),
            "wrapper": "the wrapped layer casts them",
        },
    ),
    Fault(
        "WideInHalf",
        ("law_04", "law_05", "law_07", "kind"),
        in_call(WIDE, "self.compute_dtype"),
    ),
    Fault(
        "NanInTraining",
        ("law_11",),
        after("tf.math.log(-tf.ones_like(y)) if training else y", training=True),
    ),
    Fault(
        "StaticBatch",
        ("law_03",),
        at_first("inputs = tf.reshape(inputs, [int(size) for size in inputs.shape])"),
    ),
    Fault("GradientCut", ("law_05",), after("tf.stop_gradient(y)")),
    Fault(
        "GradientOverflows",
        ("law_05",),
        after("y / ((1 + tf.abs(y)) / 4096) / 4096"),
    ),
    Fault(
        "GradientInFloat32",
        ("law_05", "kind"),
        after(
            "tf.custom_gradient(lambda x: (x + 0, lambda dy: tf.cast(dy, 'float32')))(y)"
        ),
        dict.fromkeys(
            ("augment", "loss", "noise", "position", "quantize"),
            "the cast of the inputs takes a gradient of any dtype",
        ),
    ),
    Fault(
        "SublayerWithoutPolicy",
        ("law_12",),
        after_init(
            'self.inner = tf.keras.layers.Activation("linear")', after("self.inner(y)")
        ),
    ),
    Fault(
        "GraphIsAnother",
        ("law_03", "law_04"),
        after("y if tf.executing_eagerly() else y * 2"),
    ),
    Fault(
        "PassesThroughNumpy",
        ("law_03", "law_05"),
        after("tf.constant(y.numpy())"),
    ),
    Fault(
        "ResultRoundedTwice",
        ("law_04", "law_07", "kind"),
        after("tf.cast(tf.cast(y, 'bfloat16'), y.dtype)"),
    ),
    Fault("Unshaped", ("law_03",), after("y[0]")),
)

# Only the tests of the laws that a twin is for: what another one says is no matter.
WANTED_ALONE = """
import json
import pathlib

WANTED = json.loads(pathlib.Path(__file__).with_name("wanted.json").read_text())


def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if is_wanted(item)]


def is_wanted(item):
    name = item.name.removeprefix("test_")
    law = name[:6] if name.startswith("law_") else "kind"
    return law in WANTED[item.module.__name__]
"""


@dataclass(frozen=True)
class KindTwin:
    """A layer of a kind with a fault."""

    fault: Fault
    kind: str
    spec: LayerSpec
    module: str
    test: str


def kind_twins(faults: Iterable[Fault] = FAULTS) -> Iterator[KindTwin]:
    """Every fault on every kind of layer where it can occur."""
    for fault in faults:
        for kind in kind_names():
            spec = parse(f"{fault.name}On{camel_case(kind)}", kind=kind)
            texts = render(spec)
            edited = None if kind in fault.spared else fault.edit(texts.module)
            if edited is not None:
                yield KindTwin(fault, kind, spec, edited, texts.test)


def write_all(folder: Path, twins: Iterable[KindTwin]) -> None:
    """Writes twins and their tests, of which the laws that are wanted will run."""
    wanted = {}
    for twin in twins:
        module = twin.spec.module
        (folder / f"{module}.py").write_text(twin.module, "utf-8")
        (folder / f"test_{module}.py").write_text(twin.test, "utf-8")
        wanted[f"test_{module}"] = twin.fault.laws
    (folder / "wanted.json").write_text(json.dumps(wanted), "utf-8")
    (folder / "conftest.py").write_text(WANTED_ALONE, "utf-8")


def sampled(twins: Iterable[KindTwin]) -> list[KindTwin]:
    """Two kinds of layer for each fault, other ones for each."""
    by_fault: dict[str, list[KindTwin]] = {}
    for twin in twins:
        by_fault.setdefault(twin.fault.name, []).append(twin)
    return [
        of_one[place]
        for number, of_one in enumerate(by_fault.values())
        for place in sorted({7 * number % len(of_one), 7 * (number + 2) % len(of_one)})
    ]


SAMPLE = sampled(kind_twins())
