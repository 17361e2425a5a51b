"""Runs a generated layer, or the one of Keras, on the cases of its oracle.

Used by the tests here and by `benchmarks/accuracy.py`.
"""

from __future__ import annotations

import functools
import importlib
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from oracles import CASES, Array, Case, Result, answer, error

from scaffold.grammar import parse
from scaffold.kinds import in_dialect, load_kind
from scaffold.names import camel_case
from scaffold.rendering import render

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

EPSILON = {
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float32": 2.0**-23,
    "float64": 2.0**-52,
}
Errors = dict[tuple[str, str], float]
"""By case and part, such as the outputs, or a gradient."""
STATE = {"mean", "variance"}
"""Weights that are kept in at least float32, whatever the policy."""


def compute_dtype(policy: str) -> str:
    return policy.removeprefix("mixed_")


def imported(kind: str, dialect: str, folder: Path) -> type[Any]:
    """The layer class of a kind as it comes, written to a folder and imported."""
    known = in_dialect(load_kind(kind), dialect)
    texts: dict[str, Any] = {"weights": known.weights, "arguments": known.arguments}
    name = f"Oracle{camel_case(kind)}In{dialect.capitalize()}"
    spec = parse(name, kind=kind, dialect=dialect, **texts)
    (folder / f"{spec.module}.py").write_text(render(spec).module, "utf-8")
    sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module(spec.module)
    finally:
        sys.path.remove(str(folder))
    layer: type[Any] = getattr(module, spec.name)
    return layer


def float64(tensor: Any) -> Array:
    import tensorflow as tf

    values: Array = tf.cast(tensor, "float64").numpy()
    return values


def rounded(value: Any, dtype: str) -> Any:
    """A float array as the dtype has it, and all else as it is."""
    import tensorflow as tf

    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return float64(tf.cast(tf.constant(value), dtype))
    return value


def rounded_case(case: Case, policy: str) -> Case:
    """The case with inputs and weights that the compute dtype holds."""
    dtype = compute_dtype(policy)
    wide = "float64" if dtype == "float64" else "float32"
    weights = {
        name: rounded(value, wide if name in STATE else dtype)
        for name, value in case.weights.items()
    }
    return case._replace(
        inputs=rounded(case.inputs, dtype),
        weights=weights,
        extra={name: rounded(value, dtype) for name, value in case.extra.items()},
        upstream=rounded(case.upstream, dtype),
    )


def tensors(value: Any, policy: str) -> Any:
    import tensorflow as tf

    if not isinstance(value, np.ndarray):
        return value
    floats = value.dtype.kind == "f"
    return tf.cast(tf.constant(value), compute_dtype(policy)) if floats else value


def put(layer: Any, weights: dict[str, Any]) -> None:
    """Assigns weights by the path of their attribute."""
    import tensorflow as tf

    for path, value in weights.items():
        *parents, name = path.split(".")
        owner = layer
        for parent in parents:
            owner = getattr(owner, parent)
        variable = getattr(owner, name)
        variable.assign(tf.cast(value, variable.dtype))


class Seen(NamedTuple):
    """What a layer returned, and what it drew."""

    result: Result
    draws: Array | None = None


def run(made: type[Any], kind: str, case: Case, policy: str) -> Seen:
    """Calls a new generated layer on a case that is rounded already."""
    import tensorflow as tf

    arguments = dict(case.arguments)
    if kind == "wrapper":
        units = case.weights["layer.bias"].shape[-1]
        arguments["layer"] = tf.keras.layers.Dense(units, dtype=policy)
    layer = made(**arguments, dtype=policy)
    inputs = tf.constant(tensors(case.inputs, policy))
    extra = {name: tensors(value, policy) for name, value in case.extra.items()}
    if kind == "rnn-cell" and case.inputs.ndim > 2:
        rnn = tf.keras.layers.RNN(layer, dtype=policy)
        rnn(inputs)
        put(layer, dict(case.weights))
        return Seen({"outputs": float64(rnn(inputs))})
    if kind == "rnn-cell":
        extra["states"] = [extra["states"]]
    layer(inputs, **extra)
    put(layer, dict(case.weights))
    draws = None
    if case.reveals is not None:
        # What the first call draws: the counter is set back for each.
        counter = getattr(layer, "draws", None)
        counter = layer.seed_generator.state if counter is None else counter
        start = tf.convert_to_tensor(counter)
        draws = float64(layer(tensors(case.reveals, policy), **extra))
        counter.assign(start)
    with tf.GradientTape() as tape:
        if case.upstream is not None:
            tape.watch(inputs)
        outputs = layer(inputs, **extra)
    first = outputs[0] if isinstance(outputs, tuple) else outputs
    assert tf.as_dtype(first.dtype).name == compute_dtype(policy)
    result = {"outputs": float64(first)}
    if case.upstream is not None:
        upstream = tensors(case.upstream, policy)
        result["gradient"] = float64(tape.gradient(first, inputs, upstream))
    if layer.losses:
        result["loss"] = float64(layer.losses[-1])
    if kind == "stats":
        result |= {name: float64(getattr(layer, name)) for name in sorted(STATE)}
    return Seen(result, draws)


def keras_layers(given: Mapping[str, Any]) -> dict[str, tuple[str, list[str], Any]]:
    """By kind the layer of Keras for the same job, its weights in order, its arguments."""
    affine, same = ["kernel", "bias"], {"padding": "same"}
    activation = {"activation": given.get("activation")}
    taps = {**activation, **same, "kernel_size": given.get("kernel_size", 3)}
    dilation, strides = given.get("dilation", 1), given.get("strides", 1)
    filters, units = given.get("filters"), given.get("units")
    heads = {"num_heads": given.get("heads"), "key_dim": given.get("size")}
    table = {"input_dim": given.get("vocabulary"), "output_dim": units}
    factor = {"size": given.get("factor", 2), "interpolation": "bilinear"}
    return {
        "dense": ("Dense", affine, {**activation, "units": units}),
        "activation": ("PReLU", ["slope"], {}),
        "attention": (
            "MultiHeadAttention",
            ["query", "key", "value", "output_kernel"],
            {**heads, "use_bias": False},
        ),
        "conv": (
            "Conv1D",
            affine,
            {**taps, "filters": filters, "dilation_rate": dilation},
        ),
        "conv-2d": ("Conv2D", affine, {**taps, "filters": filters, "strides": strides}),
        "conv-depthwise": ("DepthwiseConv2D", affine, taps),
        "embedding": ("Embedding", ["table"], table),
        "norm": ("LayerNormalization", ["gamma", "beta"], {"epsilon": 1e-6}),
        "pool": ("GlobalAveragePooling1D", [], {}),
        "resize": ("UpSampling2D", [], factor),
        "stats": ("BatchNormalization", ["gamma", "beta", "mean", "variance"], {}),
    }


def run_keras(kind: str, case: Case, policy: str) -> Seen | None:
    """Calls the layer of Keras on a case that is rounded already, if there is one."""
    import tensorflow as tf

    known = keras_layers(case.arguments)
    if kind not in known:
        return None
    name, weights, arguments = known[kind]
    layer = getattr(tf.keras.layers, name)(**arguments, dtype=policy)
    inputs = tf.constant(tensors(case.inputs, policy))
    call = {name: tensors(value, policy) for name, value in case.extra.items()}
    both = [inputs]
    if kind == "attention":
        both.append(inputs)
        mask = call.pop("mask", None)
        call["attention_mask"] = None if mask is None else mask[:, None]
        call["use_causal_mask"] = case.arguments.get("causal", False)
    layer(*both, **call)
    for name, variable in zip(weights, layer.weights, strict=True):
        variable.assign(tf.cast(case.weights[name], variable.dtype))
    result = {"outputs": float64(layer(*both, **call))}
    if kind == "stats":
        result |= dict(zip(sorted(STATE), map(float64, layer.weights[2:]), strict=True))
    return Seen(result)


def epsilon_of(part: str, policy: str) -> float:
    """That of the dtype in which a part is kept: float32 for state and losses at best."""
    own = EPSILON[compute_dtype(policy)]
    if part == "loss":
        return max(own, EPSILON["float32"])
    return min(own, EPSILON["float32"]) if part in STATE else own


def errors(kind: str, policy: str, runner: Callable[[Case], Seen | None]) -> Errors:
    """The error of each part of each case that the runner has an answer to."""
    found: Errors = {}
    for case in CASES[kind]():
        fed = rounded_case(case, policy)
        seen = runner(fed)
        if seen is None:
            continue
        right = answer(kind, fed, seen.draws)
        for part, value in seen.result.items():
            off = error(value, right[part], epsilon_of(part, policy))
            found[case.name, part] = off
    return found


class Meter:
    """The errors of all kinds, each measured once in a process."""

    def __init__(self, folder: Path) -> None:
        """Layers are written to the folder."""
        self.imported = functools.cache(functools.partial(imported, folder=folder))

    @functools.cached_property
    def ours(self) -> Callable[..., Errors]:
        """The errors of a generated kind under a policy, in a dialect."""

        def measured(kind: str, policy: str, dialect: str = "tf") -> Errors:
            made = self.imported(kind, dialect)
            return errors(kind, policy, lambda case: run(made, kind, case, policy))

        return functools.cache(measured)

    @functools.cached_property
    def keras(self) -> Callable[[str, str], Errors]:
        """Those of the layer of Keras for the same job: none, where there is none."""

        def measured(kind: str, policy: str) -> Errors:
            return errors(kind, policy, lambda case: run_keras(kind, case, policy))

        return functools.cache(measured)
