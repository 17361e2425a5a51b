"""Runs a generated layer, or the one of Keras, on the cases of its oracle.

Used by the tests here and by `benchmarks/accuracy.py`.
"""

from __future__ import annotations

import functools
import importlib
import operator
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from oracles import CASES, Array, Case, Result, answer, error

from scaffold.grammar import parse
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


class TensorFlow:
    """What the tf dialect is run with."""

    dialect = "tf"

    def __init__(self) -> None:
        import tensorflow as tf

        self.tf, self.keras = tf, tf.keras
        old = tuple(map(int, tf.__version__.split(".")[:2])) < (2, 16)
        self.backend = "tensorflow 2.15" if old else "tensorflow"

    def cast(self, value: Any, dtype: str) -> Any:
        return self.tf.cast(value, dtype)

    def float64(self, tensor: Any) -> Array:
        return np.asarray(self.tf.cast(tensor, "float64"))

    def counter(self, layer: Any) -> Any:
        """The weight that numbers what a layer draws."""
        return layer.draws

    def pulled_back(self, layer: Any, inputs: Any, upstream: Any) -> tuple[Any, Any]:
        """The outputs, and the gradient of inputs for one of outputs."""
        with self.tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = layer(inputs)
        return outputs, tape.gradient(outputs, inputs, upstream)


class Keras:
    """What the keras dialect is run with, on the backend that KERAS_BACKEND names."""

    dialect = "keras"

    def __init__(self) -> None:
        import keras

        self.keras, self.backend = keras, keras.backend.backend()
        # Off TensorFlow, Keras makes float32 of float64 by a private table; JAX does, too.
        dtypes = importlib.import_module("keras.src.backend.common.dtypes")
        dtypes.BIT64_TO_BIT32_DTYPE["float64"] = "float64"
        if self.backend == "jax":
            import jax

            jax.config.update("jax_enable_x64", True)

    def cast(self, value: Any, dtype: str) -> Any:
        return self.keras.ops.cast(self.keras.ops.convert_to_tensor(value), dtype)

    def float64(self, tensor: Any) -> Array:
        return np.asarray(self.keras.ops.convert_to_numpy(self.cast(tensor, "float64")))

    def counter(self, layer: Any) -> Any:
        """The state that numbers what a layer draws."""
        return layer.seed_generator.state

    def pulled_back(self, layer: Any, inputs: Any, upstream: Any) -> tuple[Any, Any]:
        """The outputs, and the gradient of inputs for one of outputs."""
        if self.backend == "tensorflow":
            return TensorFlow().pulled_back(layer, inputs, upstream)
        if self.backend == "jax":
            import jax

            outputs, pull_back = jax.vjp(layer, inputs)
            return outputs, pull_back(upstream)[0]
        import torch

        inputs = inputs.requires_grad_()
        outputs = layer(inputs)
        return outputs, torch.autograd.grad(outputs, inputs, upstream)[0]


Engine: TypeAlias = "TensorFlow | Keras"


def imported(kind: str, dialect: str, folder: Path) -> type[Any]:
    """The layer class of a kind as it comes, written to a folder and imported."""
    spec = parse(f"Oracle{camel_case(kind)}", kind=kind, dialect=dialect)
    (folder / f"{spec.module}.py").write_text(render(spec).module, "utf-8")
    sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module(spec.module)
    finally:
        sys.path.remove(str(folder))
    layer: type[Any] = getattr(module, spec.name)
    return layer


def is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def rounded(value: Any, dtype: str, engine: Engine) -> Any:
    """A float array as the dtype has it, and all else as it is."""
    return engine.float64(engine.cast(value, dtype)) if is_float(value) else value


def rounded_case(case: Case, policy: str, engine: Engine) -> Case:
    """The case with inputs and weights that the compute dtype holds."""
    dtype = compute_dtype(policy)
    wide = "float64" if dtype == "float64" else "float32"
    weights = {
        name: rounded(value, wide if name in STATE else dtype, engine)
        for name, value in case.weights.items()
    }
    return case._replace(
        inputs=rounded(case.inputs, dtype, engine),
        weights=weights,
        extra={n: rounded(value, dtype, engine) for n, value in case.extra.items()},
        upstream=rounded(case.upstream, dtype, engine),
    )


def tensor(value: Any, policy: str, engine: Engine) -> Any:
    """An array in the compute dtype, or in its own if that is no float."""
    if not isinstance(value, np.ndarray):
        return value
    return engine.cast(
        value, compute_dtype(policy) if is_float(value) else value.dtype.name
    )


def put(layer: Any, weights: Mapping[str, Any]) -> None:
    """Assigns weights by the path of their attribute."""
    for path, value in weights.items():
        operator.attrgetter(path)(layer).assign(value)


class Seen(NamedTuple):
    """What a layer returned, and what it drew."""

    result: Result
    draws: Array | None = None


def run(made: type[Any], kind: str, case: Case, policy: str, engine: Engine) -> Seen:
    """Calls a new generated layer on a case that is rounded already."""
    float64, arguments = engine.float64, dict(case.arguments)
    if kind == "wrapper":
        units = case.weights["layer.bias"].shape[-1]
        arguments["layer"] = engine.keras.layers.Dense(units, dtype=policy)
    layer = made(**arguments, dtype=policy)
    inputs = tensor(case.inputs, policy, engine)
    extra = {name: tensor(value, policy, engine) for name, value in case.extra.items()}
    if kind == "rnn-cell" and case.inputs.ndim > 2:
        rnn = engine.keras.layers.RNN(layer, dtype=policy)
        rnn(inputs)
        put(layer, case.weights)
        return Seen({"outputs": float64(rnn(inputs))})
    if kind == "rnn-cell":
        extra["states"] = [extra["states"]]
    layer(inputs, **extra)
    put(layer, case.weights)
    draws = None
    if case.reveals is not None:
        # What the next call draws: the counter is set back between.
        counter = engine.counter(layer)
        before = np.asarray(counter)
        draws = float64(layer(tensor(case.reveals, policy, engine), **extra))
        counter.assign(before)
    result: Result = {}
    if case.upstream is None:
        outputs = layer(inputs, **extra)
    else:
        upstream = tensor(case.upstream, policy, engine)
        outputs, gradient = engine.pulled_back(layer, inputs, upstream)
        result["gradient"] = float64(gradient)
    first = outputs[0] if isinstance(outputs, tuple) else outputs
    assert compute_dtype(policy) in str(first.dtype)
    result["outputs"] = float64(first)
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


def run_keras(kind: str, case: Case, policy: str, engine: Engine) -> Seen | None:
    """Calls the layer of Keras on a case that is rounded already, if there is one."""
    known = keras_layers(case.arguments)
    if kind not in known:
        return None
    name, weights, arguments = known[kind]
    layer = getattr(engine.keras.layers, name)(**arguments, dtype=policy)
    inputs = tensor(case.inputs, policy, engine)
    call = {name: tensor(value, policy, engine) for name, value in case.extra.items()}
    both = [inputs]
    if kind == "attention":
        both.append(inputs)
        mask = call.pop("mask", None)
        call["attention_mask"] = None if mask is None else mask[:, None]
        call["use_causal_mask"] = case.arguments.get("causal", False)
    layer(*both, **call)
    for name, variable in zip(weights, layer.weights, strict=True):
        variable.assign(engine.cast(case.weights[name], variable.dtype))
    result = {"outputs": engine.float64(layer(*both, **call))}
    if kind == "stats":
        state = map(engine.float64, layer.weights[2:])
        result |= dict(zip(sorted(STATE), state, strict=True))
    return Seen(result)


def epsilon_of(part: str, policy: str) -> float:
    """That of the dtype in which a part is kept: float32 for state and losses at best."""
    own = EPSILON[compute_dtype(policy)]
    if part == "loss":
        return max(own, EPSILON["float32"])
    return min(own, EPSILON["float32"]) if part in STATE else own


def errors(
    kind: str, policy: str, engine: Engine, runner: Callable[[Case], Seen | None]
) -> Errors:
    """The error of each part of each case that the runner has an answer to."""
    found: Errors = {}
    for case in CASES[kind]():
        fed = rounded_case(case, policy, engine)
        seen = runner(fed)
        if seen is None:
            continue
        right = answer(kind, fed, seen.draws)
        for part, value in seen.result.items():
            off = error(value, right[part], epsilon_of(part, policy))
            found[case.name, part] = off
    return found


class Meter:
    """The errors of all kinds in a dialect, each measured once in a process."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        """Layers are written to the folder."""
        self.engine = engine

        @functools.cache
        def layer(kind: str) -> type[Any]:
            return imported(kind, engine.dialect, folder)

        @functools.cache
        def ours(kind: str, policy: str) -> Errors:
            made = layer(kind)
            return errors(
                kind, policy, engine, lambda case: run(made, kind, case, policy, engine)
            )

        @functools.cache
        def keras(kind: str, policy: str) -> Errors:
            return errors(
                kind, policy, engine, lambda case: run_keras(kind, case, policy, engine)
            )

        self.layer = layer
        """The class of a generated kind."""
        self.ours = ours
        """The errors of a generated kind under a policy."""
        self.keras = keras
        """Those of the layer of Keras for the same job: none, where there is none."""
