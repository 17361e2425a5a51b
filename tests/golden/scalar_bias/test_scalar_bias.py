"""The mixed-precision matrix of ScalarBias.

    pytest test_scalar_bias.py
      -k law_05           one law
      -k mixed_float16    one policy

Each test is a law that the layer keeps under every dtype policy. The oracle is the
layer itself in float64, so the laws stay true whatever `call` computes. First stands
what is intended, then the laws, then how they are measured.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
import os
import random
import re
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from scalar_bias import ScalarBias

# Two devices for law 13, which must be said before TensorFlow starts.
with contextlib.suppress(RuntimeError):
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 2,
    )

# ------------------------------------------------------------------ what is intended

# The constructor's arguments in all laws but law 9, which takes OTHER_ARGUMENTS: none
# of those is a default, so that a config that loses one shows.
ARGUMENTS: dict[str, Any] = {}
OTHER_ARGUMENTS: dict[str, Any] = {"v_initializer": "ones"}
# The shape of one input, without the batch.
INPUT_SHAPE = (5,)
# Inputs of this size overflow no step of `call` in float16 (law 7).
LARGE = 300.0
# The weights that are trained, by their names (law 5).
TRAINED: set[str] = {"v"}
# Weights that are not stored in the variable dtype: {"count": "int32"} (law 2).
AT_LEAST_FLOAT32 = "the dtype of the policy, or float32 where that is a half"
STORED: dict[str, str] = {}
# Outputs, by position, that are not in the compute dtype: {1: "int32"}, or
# {0: AT_LEAST_FLOAT32} (law 3).
OUTPUT_DTYPES: dict[int, str] = {}
# How many products are summed in float32 by design (law 6).
WIDE_PRODUCTS = 0
# Weights that outputs do not depend on, but a loss of the layer does (law 5).
LOSS_ALONE: set[str] = set()
# Whether gradients are those of the outputs, and none of another function (law 5).
TRUE_GRADIENTS = True
# Whether a batch can be shared out between replicas (law 13).
DIVISIBLE = True
# Whether `training=True` draws at random (law 11).
RANDOM = False
# Whether outputs have the mask of the inputs (law 11).
CARRIES_MASK = True


def make_layer(**kwargs: Any) -> tf.keras.layers.Layer:
    """Returns a new layer; `kwargs` are arguments of any layer, such as `dtype`."""
    return ScalarBias(**{**ARGUMENTS, **kwargs})


def make_inputs(rows: int) -> Any:
    """Returns a batch in float64. What is an integer here is fed as an integer."""
    return np.random.default_rng(rows).normal(size=(rows, *INPUT_SHAPE))


def apply(layer: tf.keras.layers.Layer, inputs: Any, **kwargs: Any) -> Any:
    """Calls a layer on what `make_inputs` returns, or on the like of it."""
    return layer(inputs, **kwargs)


POLICIES = [
    "float32",
    "mixed_float16",
    "mixed_bfloat16",
    "float64",
    "float16",
    "bfloat16",
]
every_policy = pytest.mark.parametrize("policy", POLICIES)
mixed_policies = pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
mixed_float16_alone = pytest.mark.parametrize("policy", ["mixed_float16"])
float64_alone = pytest.mark.parametrize("policy", ["float64"])

# ------------------------------------------------------------------------- the laws


@every_policy
def test_law_01_follows_its_own_policy(policy: str) -> None:
    """The layer's own policy rules, and the global one where it was given none."""
    run = eager(policy)
    other = "mixed_bfloat16" if policy.endswith("_float16") else "mixed_float16"
    try:
        set_global_policy(other)
        outputs = call(make_layer(dtype=policy), run.inputs, run.weights)
        set_global_policy(policy)
        heir = make_layer()
    finally:
        set_global_policy(POLICY_AT_IMPORT)
    require(
        run.layer.dtype_policy.name == heir.dtype_policy.name == policy,
        law=1,
        policy=policy,
        seen=f"dtype={policy!r} makes the policy {run.layer.dtype_policy.name!r}, the "
        f"global policy {policy!r} makes it {heir.dtype_policy.name!r}",
        expected=f"{policy!r} both times",
        look_for="an __init__ that does not hand **kwargs, and so dtype, to super()",
        where=r"super\(\).__init__",
    )
    for seen, right in zip(outputs, run.outputs):
        require(
            seen.dtype == right.dtype and close(seen, right, policy),
            law=1,
            policy=policy,
            seen=f"outputs change with the global policy: {seen.dtype.name} where that "
            f"is {other!r}, {right.dtype.name} where it is {POLICY_AT_IMPORT!r}",
            expected=f"the same outputs, since the layer has dtype={policy!r}",
            look_for="global_policy() or floatx() instead of self.compute_dtype",
            where=r"global_policy\(|floatx\(",
        )


@every_policy
def test_law_02_stores_weights_in_the_variable_dtype(policy: str) -> None:
    """A mixed policy keeps a float32 master; weights in STORED keep their own dtype."""
    run = eager(policy)
    for weight in run.layer.weights:
        name, seen = short_name(weight), dtype_of(weight)
        expected = declared(STORED.get(name, run.layer.variable_dtype), policy)
        require(
            seen == expected,
            law=2,
            policy=policy,
            seen=f"the weight {name!r} is stored in {seen}",
            expected=expected,
            look_for=f"dtype=self.variable_dtype in add_weight(name={name!r})",
            where=f"name=.{name}.,",
        )
    known = {id(weight) for weight in run.layer.weights}
    for name, value in vars(run.layer).items():
        for item in value if isinstance(value, (list, tuple)) else [value]:
            require(
                not isinstance(item, tf.Variable) or id(item) in known,
                law=2,
                policy=policy,
                seen=f"self.{name} is a tf.Variable that is no weight of the layer",
                expected="a weight, which Keras casts, trains and saves",
                look_for="tf.Variable where self.add_weight is meant",
                where=r"tf\.Variable\(",
            )
    require(
        len(run.layer.weights) == len(run.weights),
        law=2,
        policy=policy,
        seen=f"{len(run.layer.weights)} weights after several calls",
        expected=f"the {len(run.weights)} of the first call",
        look_for="add_weight outside `build`",
    )


@every_policy
def test_law_03_outputs_have_the_compute_dtype(policy: str) -> None:
    """Eager, graph and symbolic outputs agree on dtype and shape, for any batch."""
    run, graph = eager(policy), traced(policy)
    modes = {
        "eager": (ROWS, run.outputs),
        "in a graph": (ROWS, flat(graph(run.inputs))),
        "in a graph, one row": (1, flat(graph(map_all(lambda x: x[:1], run.inputs)))),
        "symbolic": (None, flat(apply(make_layer(dtype=policy), symbolic(run.inputs)))),
    }
    for mode, (rows, outputs) in modes.items():
        seen = [(dtype_of(output), tuple(output.shape)) for output in outputs]
        expected = [
            (output_dtype(i, policy), (rows, *output.shape[1:]))
            for i, output in enumerate(run.outputs)
        ]
        require(
            seen == expected,
            law=3,
            policy=policy,
            seen=f"{mode}: {seen}",
            expected=expected,
            look_for="an output cast to float32 or self.dtype; another shape from "
            "compute_output_shape; a batch size read from inputs.shape",
            where=r"\.shape\[|self\.dtype\b|floatx\(|['\"]float\d+['\"]",
        )
    one = len(flat(run.inputs)) == len(run.outputs) == 1
    if one and "compute_output_shape" in vars(type(run.layer)):
        shapes = map_all(lambda x: (None, *x.shape[1:]), run.inputs)
        promised = tuple(run.layer.compute_output_shape(shapes))
        require(
            promised == (None, *run.outputs[0].shape[1:]),
            law=3,
            policy=policy,
            seen=f"compute_output_shape says {promised}",
            expected=(None, *run.outputs[0].shape[1:]),
            look_for="compute_output_shape",
        )


@mixed_float16_alone
def test_law_03_xla_agrees(policy: str) -> None:
    """Compiled by XLA, outputs and gradients are still those of float64."""
    run, (exact, spread) = eager(policy), oracle(compute_dtype(policy))
    set_weights(run.layer, run.weights)
    compiled = tf.function(differentiate, jit_compile=True)
    look_for = "an operation that XLA lacks, or a shape that depends on values"
    with explained("a call under XLA", 3, policy, look_for):
        seen = Tensors(*compiled(run.layer, run.inputs, factors(run.outputs)))
    require_near(3, policy, "under XLA", seen, exact, spread)


@every_policy
def test_law_04_values_are_those_of_float64(policy: str) -> None:
    """Outputs differ from float64's by no more than rounding explains."""
    run, (exact, spread) = eager(policy), oracle(compute_dtype(policy))
    set_weights(run.layer, run.weights)
    graph = flat(traced(policy)(run.inputs))
    for mode, outputs in (("eager", run.outputs), ("in a graph", graph)):
        require_near(4, policy, mode, Tensors(outputs, []), exact, spread)


@float64_alone
def test_law_04_float64_is_float64_throughout(policy: str) -> None:
    """No step of the float64 layer is done in a narrower dtype.

    Third differences along a line vanish for a smooth function; those of the rounding
    to a narrower dtype do not.
    """
    for step, threshold, dtype in ((1e-6, 1e-10, "float32"), (2e-3, 1e-5, "a half")):
        share = share_of_rounding(step, threshold)
        require(
            share <= 0.2,
            law=4,
            policy=policy,
            seen=f"{share:.0%} of the outputs show the rounding of {dtype}",
            expected="none: float64 in, float64 throughout",
            look_for="'float32' or floatx() where self.compute_dtype is meant",
            where=r"['\"]b?float(16|32)['\"]|floatx\(",
        )


@every_policy
def test_law_05_gradients_reach_every_weight(policy: str) -> None:
    """Weights and inputs get float64's gradient, weights in their own dtype."""
    run, (exact, spread) = eager(policy), oracle(compute_dtype(policy))
    variables = {short_name(weight): weight for weight in run.layer.trainable_weights}
    require(
        {*variables} == TRAINED,
        law=5,
        policy=policy,
        seen=f"{sorted(variables)} are trained",
        expected=sorted(TRAINED),
        look_for="trainable= in add_weight",
    )
    for name, gradient in zip(run.names, run.gradients):
        require(
            name in LOSS_ALONE or (gradient is not None and np.any(float64(gradient))),
            law=5,
            policy=policy,
            seen=f"no gradient reaches {name}",
            expected="one that is not zero",
            look_for="tf.stop_gradient, .numpy(), a cast to an integer, or a weight "
            "that was read outside `call`",
            where=r"stop_gradient|\.numpy\(|['\"]u?int\d+['\"]",
        )
        if gradient is None:
            continue
        seen, expected = dtype_of(gradient), dtype_of(variables.get(name, gradient))
        require(
            seen == expected,
            law=5,
            policy=policy,
            seen=f"the gradient of {name} is {seen}",
            expected=expected,
            look_for="tf.custom_gradient with a gradient in another dtype",
        )
    require_near(5, policy, "backward", Tensors([], run.gradients), exact, spread)


@float64_alone
def test_law_05_gradients_are_derivatives(policy: str) -> None:
    """In float64 each gradient is what a central difference of the outputs says."""
    if not TRUE_GRADIENTS:
        pytest.skip("another gradient is intended")
    modes: list[dict[str, Any]] = [{}]
    if takes_training(eager(policy).layer) and not RANDOM:
        modes.append({"training": True})
    for mode in modes:
        when = "training=True: " if mode else ""
        for name, promised, scale, measured in central_differences(**mode):
            require(
                abs(measured - promised) <= 0.02 * scale + 1e-6,
                law=5,
                policy=policy,
                seen=f"{when}along a line in {name} the outputs change by "
                f"{measured:.6g}; the gradient says {promised:.6g}",
                expected="the same number twice",
                look_for="tf.stop_gradient in a part of `call`, or a custom gradient",
                where="stop_gradient|custom_gradient",
            )


@every_policy
def test_law_06_computes_in_the_compute_dtype(policy: str) -> None:
    """The heavy operations run in the compute dtype, and no cast is undone."""
    require_compute_dtype_of("", traced(policy), policy)
    if takes_training(eager(policy).layer):
        look_for = "what `call` does only where training is true"
        with explained("a trace of training=True", 6, policy, look_for):
            graph = trace(policy, training=True)
        require_compute_dtype_of("training=True: ", graph, policy)


@pytest.mark.parametrize("policy", [p for p in POLICIES if p != "float64"])
@pytest.mark.parametrize("size", ["zero", "subnormal", "small", "large"])
def test_law_07_survives_extreme_inputs(policy: str, size: str) -> None:
    """Where float64 is finite and the dtype can hold the answer, so does the layer."""
    run, compute = eager(policy), compute_dtype(policy)
    exact, spread = oracle(compute, size)
    # Where a function saturates its gradient is near 0, but the error of that is not:
    # it is a few roundings of a gradient of ordinary size.
    ordinary, _ = oracle(compute)
    unit = 4 * ROUNDOFF[compute] * max(1.0, SIZES[size])
    slack = [None if g is None else unit * rms(g) for g in ordinary.gradients]
    set_weights(run.layer, run.weights)
    inputs = inputs_of(policy, size)
    seen = Tensors(*differentiate(run.layer, inputs, factors(run.outputs)))
    top = tf.as_dtype(compute).max / 4
    require_near(7, policy, f"{size} inputs", seen, exact, spread, top, slack)
    losses = [float(loss) for loss in run.layer.losses]
    if losses:
        widened = map_floats(lambda x: tf.cast(x, "float64"), inputs)
        call(eager("float64").layer, widened, run.weights)
        rights = [float(loss) for loss in eager("float64").layer.losses]
        require(
            all(np.isfinite(x) or not abs(y) < 1e38 for x, y in zip(losses, rights)),
            law=7,
            policy=policy,
            seen=f"{size} inputs: the layer's losses are {losses}",
            expected=rights,
            look_for="a loss that is computed in a half",
            where="add_loss",
        )


@mixed_policies
def test_law_08_small_steps_reach_the_master(policy: str) -> None:
    """A loss-scaled step moves the float32 master; one that overflows does not."""
    run, (exact, _) = eager(policy), oracle(compute_dtype(policy))
    layer, slopes = run.layer, exact.gradients[: len(run.layer.trainable_weights)]
    if any(slope is None or not np.any(slope) for slope in slopes) or not slopes:
        pytest.skip("no gradient to step along: see law 5")
    set_weights(layer, run.weights)
    size = sum(int(np.prod(output.shape)) for output in run.outputs)
    # Less than a half can add to a weight of ordinary size.
    rate = 2.0**-16 / max(np.max(np.abs(slope)) for slope in slopes) * size
    optimizer = tf.keras.mixed_precision.LossScaleOptimizer(
        tf.keras.optimizers.SGD(rate)
    )
    for factor in (np.inf, 1.0):
        before = [float64(weight) for weight in layer.trainable_weights]
        with tf.GradientTape() as tape:
            outputs = flat(apply(layer, run.inputs))
            loss = factor * loss_of(outputs, factors(outputs)) / size
            if hasattr(optimizer, "scale_loss"):
                loss = optimizer.scale_loss(loss)
            else:
                loss = optimizer.get_scaled_loss(loss)
        gradients = tape.gradient(loss, layer.trainable_weights)
        if hasattr(optimizer, "get_unscaled_gradients"):
            gradients = optimizer.get_unscaled_gradients(gradients)
        optimizer.apply_gradients(zip(gradients, layer.trainable_weights))
        apply(layer, run.inputs)
        after = [float64(weight) for weight in layer.trainable_weights]
        for name, old, new, slope in zip(run.names, before, after, slopes):
            step = slope * (0.0 if factor == np.inf else -rate / size)
            require(
                rms(new - old - step) <= 0.1 * rms(step) + 2.0**-23 * rms(old),
                law=8,
                policy=policy,
                seen=f"one loss-scaled step moves {name} by {rms(new - old):.3g}",
                expected=f"{rms(step):.3g}, "
                + ("since the loss overflowed" if factor == np.inf else "in float32"),
                look_for="a weight that is stored in a half, or that `call` assigns "
                "from its reading in the compute dtype",
                where=r"\.assign",
            )


@mixed_policies
def test_law_08_call_reads_the_master(policy: str) -> None:
    """New values of the weights reach the outputs at the next call."""
    run = eager(policy)
    weights = [rounded(w + 0.5, policy) if is_float(w) else w for w in run.weights]
    outputs = Tensors(call(run.layer, run.inputs, weights), [])
    exact, spread = in_float64(compute_dtype(policy), run.inputs, weights)
    require_near(8, policy, "after set_weights", outputs, exact, spread)


@every_policy
def test_law_09_config_keeps_policy_and_arguments(policy: str) -> None:
    """from_config makes the same layer again, and the same under another policy."""
    given = {**OTHER_ARGUMENTS, "trainable": False, "dtype": policy}
    layer = make_layer(**given)
    config, plain = layer.get_config(), make_layer(dtype=policy).get_config()
    _, *parameters = inspect.signature(type(layer).__init__).parameters.values()
    names = [p.name for p in parameters if not p.kind.name.startswith("VAR_")]
    for name in [*names, *OTHER_ARGUMENTS]:
        require(
            name in config
            and (name not in OTHER_ARGUMENTS or config[name] != plain[name]),
            law=9,
            policy=policy,
            seen=f"get_config() gives {name}={config.get(name)!r}",
            expected=f"what the layer was made with: {OTHER_ARGUMENTS.get(name)!r}",
            look_for=f"{name!r} in get_config, and self.{name} in __init__",
        )
    again = type(layer).from_config(dict(config))
    require(
        again.dtype_policy.name == policy and again.get_config() == config,
        law=9,
        policy=policy,
        seen=f"from_config makes a layer with {differences(again, config)}",
        expected="the policy and the arguments of the first layer",
        look_for="get_config without super().get_config(), or an argument that "
        "__init__ does not keep",
        where=r"config\b.* = ",
    )
    require(
        not again.trainable,
        law=9,
        policy=policy,
        seen=f"from_config makes a layer with trainable={again.trainable}",
        expected="False, as the first layer has it",
        look_for="trainable, which get_config or from_config drops",
        where="trainable",
    )
    other = "float32" if policy == "mixed_bfloat16" else "mixed_bfloat16"
    moved = type(layer).from_config({**config, "dtype": other})
    require(
        moved.dtype_policy.name == other,
        law=9,
        policy=policy,
        seen=f"dtype={other!r} in the config makes {moved.dtype_policy.name!r}",
        expected=other,
        look_for="an __init__ that sets a dtype of its own",
    )


def test_law_09_arguments_of_weights_take_effect() -> None:
    """Initializers, regularizers and constraints reach the weights they are for."""
    layer = make_layer(**{**OTHER_ARGUMENTS, **ARGUMENTS})
    apply(layer, fed(make_inputs(ROWS), "float32"))
    # A sublayer, whose weights come after, may have a weight of the same name.
    weights = {short_name(weight): weight for weight in reversed(layer.weights)}
    regularized = 0
    for argument, value in OTHER_ARGUMENTS.items():
        name, _, part = argument.rpartition("_")
        if name not in weights:
            continue
        weight = weights[name]
        seen = {"initializer": float64(weight), "constraint": weight.constraint}
        regularized += part == "regularizer"
        require(
            np.all(seen["initializer"] == float(value == "ones"))
            if part == "initializer"
            else seen.get(part, layer.losses) is not None,
            law=9,
            policy="float32",
            seen=f"{argument}={value!r} leaves {name} as it is",
            expected=f"that {name} has it",
            look_for=f"{part}=self.{argument} in add_weight",
        )
    require(
        len(layer.losses) >= regularized,
        law=9,
        policy="float32",
        seen=f"{regularized} regularizers make {len(layer.losses)} losses",
        expected="one each",
        look_for="regularizer= in add_weight",
    )


@mixed_float16_alone
@pytest.mark.filterwarnings("ignore")  # Those are Keras's, while it saves.
def test_law_09_saved_model_loads_equal(policy: str, tmp_path: Any) -> None:
    """A saved model loads with the same outputs; its weights load anywhere."""
    run = eager(policy)
    inputs = symbolic(run.inputs)
    model, float32_model = (
        tf.keras.Model(inputs, apply(make_layer(dtype=dtype), inputs))
        for dtype in (policy, "float32")
    )
    set_weights(model, run.weights)
    outputs = flat(model(run.inputs))
    look_for = "get_config, or register_keras_serializable at the class"
    with explained("saving and loading a model", 9, policy, look_for):
        model.save(tmp_path / "model.keras")
        loaded = tf.keras.models.load_model(tmp_path / "model.keras")
        model.save_weights(tmp_path / "model.weights.h5")
        float32_model.load_weights(tmp_path / "model.weights.h5")
    for reader in (loaded, float32_model):
        for old, new in zip(model.weights, reader.weights):
            require(
                np.array_equal(float64(old), float64(new)),
                law=9,
                policy=policy,
                seen=f"{short_name(old)} has other values after loading",
                expected="every bit of it",
                look_for="a weight that is stored in a half, or not made by add_weight",
            )
    for old, new in zip(outputs, flat(loaded(run.inputs))):
        require(
            old.dtype == new.dtype and close(old, new, policy),
            law=9,
            policy=policy,
            seen=f"the loaded model has other outputs, in {new.dtype.name}",
            expected=f"those of the saved one, in {old.dtype.name}",
            look_for="a part of the layer that is neither weight nor config",
        )


@every_policy
def test_law_10_takes_inputs_of_any_dtype(policy: str) -> None:
    """Tensors of each float dtype, NumPy arrays and integers give the same outputs."""
    run = eager(policy)
    whole = map_floats(lambda x: np.round(2 * x), make_inputs(ROWS))
    expected = call(run.layer, fed(whole, policy), run.weights)
    feeds: dict[str, Callable[[Any], Any]] = {
        f"{dtype} tensors": functools.partial(tf.cast, dtype=dtype)
        for dtype in ("float16", "bfloat16", "float32", "float64", "int32")
    }
    # NumPy's own, which nobody asks for, and what is mostly fed.
    feeds |= {
        f"{dtype} arrays": operator.methodcaller("astype", dtype)
        for dtype in ("float32", "float64", "int64")
    }
    look_for = "tf.cast(inputs, self.compute_dtype), first in `call`"
    for kind, feed in feeds.items():
        with explained(f"a call on {kind}", 10, policy, look_for):
            outputs = apply(run.layer, map_floats(feed, whole))
        for seen, right in zip(flat(outputs), expected):
            require(
                seen.dtype == right.dtype and close(seen, right, policy),
                law=10,
                policy=policy,
                seen=f"{kind} give other outputs, in {seen.dtype.name}",
                expected=f"those that float32 inputs give, in {right.dtype.name}",
                look_for=look_for,
            )


@every_policy
def test_law_11_training_and_masks(policy: str) -> None:
    """`training=True` keeps dtype, values and states; a mask is carried through."""
    run = eager(policy)
    if takes_training(run.layer):
        outputs = call(run.layer, run.inputs, run.weights, training=True)
        for seen, right in zip(outputs, run.outputs):
            require(
                seen.dtype == right.dtype and np.all(np.isfinite(float64(seen))),
                law=11,
                policy=policy,
                seen=f"training=True gives {seen.dtype.name} outputs, "
                f"{np.mean(np.isfinite(float64(seen))):.0%} of them finite",
                expected=f"finite {right.dtype.name} outputs",
                look_for="what `call` does only where training is true",
                where=r"\b(if|and|not) training\b",
            )
        for size in () if RANDOM else ("normal", "large"):
            require_like_float64_in_training(policy, size)
    alone = len(flat(run.inputs)) == 1 and is_float(flat(run.inputs)[0])
    if alone and (CARRIES_MASK or run.layer.supports_masking):
        (steps,), layer = flat(run.inputs), run.layer
        if len(INPUT_SHAPE) == 1:
            # Sublayers may have been built for one rank.
            steps, layer = tf.stack([steps] * 3, axis=1), make_layer(dtype=policy)
        ends = np.zeros((1, *steps.shape[1:-1], 1))
        ends[:, :-1] = 1
        steps *= tf.cast(ends, steps.dtype)
        with explained("a call on masked steps", 11, policy, "a rank that is fixed"):
            outputs = flat(layer(tf.keras.layers.Masking(dtype=policy)(steps)))
        # Of several outputs Keras gives the mask to the first.
        mask = getattr(outputs[0], "_keras_mask", None)
        right = np.broadcast_to(ends[..., 0] == 1, steps.shape[:-1])
        same = mask is not None and np.array_equal(mask, right) and mask.dtype == "bool"
        seen = "the" if same else "no" if mask is None else "another"
        finite = np.mean([np.mean(np.isfinite(float64(output))) for output in outputs])
        require(
            (same if CARRIES_MASK else mask is None) and finite == 1,
            law=11,
            policy=policy,
            seen=f"outputs with {seen} mask, {finite:.0%} of them finite",
            expected=f"finite ones, with {'the' if CARRIES_MASK else 'no'} mask",
            look_for="compute_mask, or supports_masking without one axis for each step",
        )


@every_policy
def test_law_12_sublayers_share_the_policy(policy: str) -> None:
    """A sublayer does not inherit the policy: it must be given it."""
    for sublayer in eager(policy).layer._flatten_layers(include_self=False):
        require(
            sublayer.dtype_policy.name == policy,
            law=12,
            policy=policy,
            seen=f"{sublayer.name} has the policy {sublayer.dtype_policy.name!r}",
            expected=policy,
            look_for="dtype=self.dtype_policy where the sublayer is made",
            where=r"= (\w+\.)*layers\.\w+\(",
        )


@every_policy
def test_law_13_replicas_agree(policy: str) -> None:
    """Two replicas that share a batch have the gradients and the states of one."""
    if not DIVISIBLE:
        pytest.skip("a batch is not the sum of its halves, by intention")
    if len(tf.config.list_logical_devices("CPU")) < 2:
        law_13_in_a_new_process(policy)
        return
    run, (exact, spread) = eager(policy), oracle(compute_dtype(policy))
    strategy, training = replicas(), {}
    if takes_training(run.layer) and not RANDOM:
        training = {"training": True}
    halves = [
        map_all(lambda x, i=i: x[i::2], (run.inputs, factors(run.outputs)))
        for i in range(2)
    ]
    states = []
    for inputs, _ in halves if run.layer.non_trainable_weights else []:
        call(run.layer, inputs, run.weights, **training)
        states.append([float64(w) for w in run.layer.non_trainable_weights])
    with strategy.scope():
        layer = make_layer(dtype=policy)
        apply(layer, run.inputs)
    set_weights(layer, run.weights)

    def step(inputs: Any, parts: list[Any]) -> list[Any]:
        _, gradients = differentiate(layer, inputs, parts)
        if states:
            apply(layer, inputs, **training)
        return gradients[: len(layer.trainable_weights)]

    shares = strategy.experimental_distribute_values_from_function(
        lambda context: halves[context.replica_id_in_sync_group]
    )
    look_for = "a state without aggregation= in add_weight, or a variable of its own"
    with explained("a step on two replicas", 13, policy, look_for):
        gradients = strategy.run(step, args=shares)
    total = [g if g is None else strategy.reduce("SUM", g, None) for g in gradients]
    # Each replica rounds its share to the dtype of the weight, which may be pinned.
    slack = [g if g is None else ROUNDOFF[dtype_of(g)] * rms(float64(g)) for g in total]
    seen = Tensors([], total)
    require_near(13, policy, "on two replicas", seen, exact, spread, slack=slack)
    for weight, *updates in zip(layer.non_trainable_weights, *states):
        values = strategy.experimental_local_results(getattr(weight, "_value", weight))
        each, right = [float64(value) for value in values], np.mean(updates, axis=0)
        require(
            not is_float(weight) or all(np.allclose(x, right, rtol=1e-5) for x in each),
            law=13,
            policy=policy,
            seen=f"replicas have {short_name(weight)} at "
            + " and ".join(f"{x.flat[0]:.4g}" for x in each),
            expected=f"the mean of their updates, {right.flat[0]:.4g}",
            look_for=look_for,
            where=f"name=.{short_name(weight)}.,",
        )


@pytest.fixture(autouse=True)
def law_14_global_policy_stays() -> Iterator[None]:
    """No test leaves another global policy than there was at import."""
    yield
    policy = tf.keras.mixed_precision.global_policy().name
    set_global_policy(POLICY_AT_IMPORT)
    require(
        policy == POLICY_AT_IMPORT,
        law=14,
        policy=POLICY_AT_IMPORT,
        seen=f"the layer has set the global policy {policy!r}",
        expected="it follows the global policy and leaves it alone",
        look_for="set_global_policy or set_dtype_policy in the layer",
        where="set_(global|dtype)_policy",
    )


# ------------------------------------------------------------------------- measuring

ROWS = 32
POLICY_AT_IMPORT = tf.keras.mixed_precision.global_policy().name
# How much further from float64 a value may be than rounding explains. Sound layers stay
# below half of these; an error of 1% in float16 is above.
LIMIT = {"float16": 4.0, "bfloat16": 8.0, "float32": 16.0, "float64": 16.0}
# The unit roundoff: half the distance from 1 to the next number.
ROUNDOFF = {
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
    "float32": 2.0**-24,
    "float64": 2.0**-53,
}
# The smallest positive number; TensorFlow rounds less than that to zero.
SMALLEST = {
    "float16": 2.0**-24,
    "bfloat16": 2.0**-126,
    "float32": 2.0**-126,
    "float64": 2.0**-1022,
}
# The extreme inputs; those of ordinary size are drawn from a normal distribution.
SIZES = {"zero": 0.0, "subnormal": 6e-8, "small": 1e-4, "large": LARGE}
HEAVY_OPERATIONS = {
    "BatchMatMul",
    "BatchMatMulV2",
    "BatchMatMulV3",
    "Conv2D",
    "Conv2DBackpropInput",
    "Conv3D",
    "Conv3DBackpropInputV2",
    "DepthwiseConv2dNative",
    "Einsum",
    "MatMul",
}

set_global_policy = tf.keras.mixed_precision.set_global_policy
flat = tf.nest.flatten
map_all = tf.nest.map_structure


class Tensors(NamedTuple):
    """What one call gives: outputs, and gradients of weights, then of float inputs."""

    outputs: list[Any]
    gradients: list[Any]


class Run(NamedTuple):
    """A layer, what it was fed, and what came out. `names` go with the gradients."""

    layer: Any
    inputs: Any
    weights: list[Any]
    names: list[str]
    outputs: list[Any]
    gradients: list[Any]


def require(holds: Any, **report: Any) -> None:
    """Fails the test, in the words of the law, unless `holds`."""
    if not holds:
        pytest.fail(words(**report), pytrace=False)


def words(
    law: int, policy: str, seen: Any, expected: Any, look_for: str, where: str = ""
) -> str:
    return (
        f"Law {law}, {policy}.\n"
        f"  Seen:     {seen}.\n"
        f"  Expected: {expected}.\n"
        f"  Look for: {' <- '.join([look_for, *lines_with(where)])}."
    )


def lines_with(pattern: str) -> list[str]:
    """Returns up to two lines of the layer in which a fault of this kind may be."""
    lines, first = inspect.getsourcelines(ScalarBias)
    return [
        f"line {number}: {line.strip()}"
        for number, line in enumerate(lines, first)
        if pattern and re.search(pattern, line)
    ][:2]


def require_near(
    law: int,
    policy: str,
    when: str,
    seen: Tensors,
    exact: Tensors,
    spread: Callable[[int], Tensors],
    top: float = np.inf,
    slack: list[Any] | None = None,
) -> None:
    """Fails unless what float64 holds finite and below `top` is near it.

    The yardstick is the root mean square of `spread`, how far rounded inputs and
    weights alone move float64, of the rounding of the result itself, and for gradients
    of `slack`.
    """
    run, compute, outputs = eager(policy), compute_dtype(policy), len(seen.outputs)

    def all_of(tensors: Tensors) -> list[Any]:
        return [*tensors.outputs[:outputs], *tensors.gradients]

    names = [f"output {i}" for i in range(outputs)]
    names += [f"the gradient of {name}" for name in run.names]
    slack = [0.0] * outputs + (slack or [0.0] * len(run.names))
    # A product may vanish below the smallest number; a gradient sums one each output.
    terms = sum(int(np.prod(output.shape)) for output in run.outputs)
    steepest = max([rms(g) for g in exact.gradients if g is not None], default=0.0)
    for i, (value, right) in enumerate(zip(all_of(seen), all_of(exact))):
        if value is None or right is None or not np.max(np.abs(right)) < top:
            continue
        error, rounding = rms(float64(value) - right), ROUNDOFF[compute] * rms(right)
        rounding += SMALLEST[compute] * (terms if i >= outputs else 1) + slack[i]
        if i >= outputs and rms(right) < 1e-12 * steepest:
            # Its terms cancel, as those of a bias before a softmax: what is left is
            # the rounding of terms of ordinary size, which all rows may share.
            rounding += ROUNDOFF[compute] * steepest * np.sqrt(ROWS)
        # The rounding of the result explains most; one draw shows what that of inputs
        # does, but may miss the kink of a relu.
        for draws in (0, 1, 20):
            moved = all_of(spread(draws))[i] if draws else 0.0
            ratio = error / (moved + rounding)
            if ratio <= LIMIT[compute]:
                break
        require(
            ratio <= LIMIT[compute],
            law=law,
            policy=policy,
            seen=f"{when}: {names[i]} is {ratio:.3g} times as far from float64 as the "
            "rounding of inputs and weights explains"
            if np.isfinite(error)
            else f"{when}: {names[i]} is not finite",
            expected=f"at most {LIMIT[compute]:g} times"
            if np.isfinite(error)
            else "finite values, as float64 has",
            look_for="a step that a narrow dtype cannot hold: an epsilon below 1e-7, a "
            "mask, square or sum beyond 65504, a difference of like numbers. Scale it, "
            "or compute it in at least float32",
            where=r"\de-?\d" if law == 7 else "",
        )


def require_compute_dtype_of(when: str, graph: Any, policy: str) -> None:
    """Fails if a heavy operation or a cast of the graph has another dtype."""
    nodes = graph_nodes(graph)
    by_name = {node.name: node for node in nodes}
    compute, wide = compute_dtype(policy), WIDE_PRODUCTS

    def producer(node: Any) -> Any:
        return by_name.get(node.input[0].split(":")[0] if node.input else "", node)

    for node in nodes:
        dtypes = {
            tf.as_dtype(node.attr[key].type).name
            for key in ("T", "DstT", "dtype")
            if node.attr[key].type
        }
        if node.op in HEAVY_OPERATIONS and dtypes == {"float32"} and wide:
            wide -= 1
            continue
        require(
            node.op not in HEAVY_OPERATIONS or dtypes == {compute},
            law=6,
            policy=policy,
            seen=f"{when}{node.op} runs in {', '.join(dtypes)} (node {node.name})",
            expected=compute,
            look_for="operands that are float32 when they are multiplied",
            where=r"['\"]float32['\"]",
        )
        require(
            node.op == "ReadVariableOp"  # that is law 2's
            or not dtypes & {"float16", "bfloat16"} - {compute},
            law=6,
            policy=policy,
            seen=f"{when}{node.op} has a {', '.join(dtypes)} result (node {node.name})",
            expected=f"no half but the compute dtype, {compute}",
            look_for="'float16' or 'bfloat16' where self.compute_dtype is meant",
            where=r"['\"]b?float16['\"]",
        )
        source = producer(node)
        # The cast of an input is Keras's own: what is summed is rightly cast back.
        if node.op == source.op == "Cast" and producer(source).op != "Placeholder":
            path = [source.attr["SrcT"], source.attr["DstT"], node.attr["DstT"]]
            first, middle, last = (tf.as_dtype(step.type) for step in path)
            narrower = middle.is_floating and middle.size < first.size
            require(
                not (first == last and first.is_floating and narrower),
                law=6,
                policy=policy,
                seen=f"{when}a value goes {first.name} -> {middle.name} -> {last.name} "
                f"(node {node.name})",
                expected="no narrow cast that is undone: the digits are lost already",
                look_for="a cast to float32 of inputs or weights that Keras has cast",
            )


def require_like_float64_in_training(policy: str, size: str) -> None:
    """Fails unless `training=True` gives float64's outputs, gradients and states."""
    run, compute = eager(policy), compute_dtype(policy)
    inputs, when = inputs_of(policy, size), f"training=True, {size} inputs"
    exact, spread = in_float64(compute, inputs, run.weights, training=True)
    states = [float64(weight) for weight in eager("float64").layer.weights]
    set_weights(run.layer, run.weights)
    slopes = factors(run.outputs)
    outputs, gradients = differentiate(run.layer, inputs, slopes, training=True)
    seen = Tensors(outputs, gradients if size == "normal" else [])
    top = tf.as_dtype(compute).max / 4
    require_near(11, policy, when, seen, exact, spread, top)
    for name, gradient, outside in zip(run.names, gradients, run.gradients):
        require(
            (gradient is None) == (outside is None),
            law=11,
            policy=policy,
            seen=f"{when}: {'no' if gradient is None else 'a'} gradient reaches {name}",
            expected=f"{'none' if outside is None else 'one'}, as outside training",
            look_for="tf.stop_gradient where training is true",
            where="stop_gradient",
        )
    for weight, old, right in zip(run.layer.weights, run.weights, states):
        error, step = rms(float64(weight) - right), rms(right - float64(old))
        # A batch's statistic may be rounded; what it is added to may not.
        slack = 0.05 * step + 4 * ROUNDOFF.get(dtype_of(weight), 0.0) * rms(right)
        require(
            error <= slack,
            law=11,
            policy=policy,
            seen=f"{when}: {short_name(weight)} is moved by "
            f"{rms(float64(weight) - float64(old)):.3g}",
            expected=f"{step:.3g}, as in float64",
            look_for="a state that is read, summed or assigned in a half",
            where=r"\.assign",
        )


@contextlib.contextmanager
def explained(doing: str, law: int, policy: str, look_for: str) -> Iterator[None]:
    """Tells of an exception in the words of a law, with the layer's own line."""
    try:
        yield
    except Exception as error:
        source = inspect.getsourcefile(ScalarBias)
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f"line {f.lineno}: {f.line}" for f in frames if f.filename == source]
        # Keras puts the message, in bold, between two paragraphs of its own.
        text = re.sub(r"\x1b\[\dm", "", str(error))
        told = re.match(r"Exception encountered.*?\n\n(.*?)\n\n", text, re.DOTALL)
        message = textwrap.shorten(told[1] if told else text, 300, placeholder=" ...")
        report = words(
            law=law,
            policy=policy,
            seen=f"{doing} raises {type(error).__name__}: {message}",
            expected="no error",
            look_for=" <- ".join([look_for, *lines[-1:]]),
        )
        raise pytest.fail.Exception(report, pytrace=False) from error


def once(
    doing: str, law: int, look_for: str
) -> Callable[[Callable[[str], Any]], Callable[[str], Any]]:
    """Runs a stage once for each policy.

    The first law to see it fail says why; the others, which cannot be measured, skip.
    """

    def decorate(stage: Callable[[str], Any]) -> Callable[[str], Any]:
        results: dict[str, Any] = {}

        @functools.wraps(stage)
        def remembered(policy: str) -> Any:
            if policy not in results:
                results[policy] = None
                with explained(doing, law, policy, look_for):
                    results[policy] = stage(policy)
            if results[policy] is None:
                pytest.skip(f"{doing} fails under {policy}, as another law has said")
            return results[policy]

        return remembered

    return decorate


@once(
    "a call and its gradient",
    law=3,
    look_for="an operand in another dtype than the compute dtype: a float32 constant, "
    "a weight or an input without its cast, or a sublayer without "
    "dtype=self.dtype_policy",
)
def eager(policy: str) -> Run:
    """Calls a layer that has the policy, on values that its compute dtype holds."""
    layer, inputs = make_layer(dtype=policy), inputs_of(policy)
    weights, shapes = weights_of(policy), flat(apply(layer, inputs))
    set_weights(layer, weights)
    outputs, gradients = differentiate(layer, inputs, factors(shapes))
    names = [short_name(weight) for weight in layer.trainable_weights]
    names += ["the inputs"] * (len(gradients) - len(names))
    return Run(layer, inputs, weights, names, outputs, gradients)


@once(
    "a trace with an unknown batch size",
    law=3,
    look_for="a size read from inputs.shape where tf.shape(inputs) is meant",
)
def traced(policy: str) -> Any:
    """Returns the call as a graph."""
    return trace(policy)


def trace(policy: str, **kwargs: Any) -> Any:
    run = eager(policy)
    signature = map_all(
        lambda x: tf.TensorSpec([None, *x.shape[1:]], x.dtype), run.inputs
    )
    graph = tf.function(functools.partial(apply, run.layer, **kwargs))
    return graph.get_concrete_function(signature)


@functools.cache
def replicas() -> Any:
    """Returns what runs a step on both devices; one serves for all."""
    return tf.distribute.MirroredStrategy(
        ["CPU:0", "CPU:1"], cross_device_ops=tf.distribute.ReductionToOneDevice()
    )


def law_13_in_a_new_process(policy: str) -> None:
    """Asks where nothing has started TensorFlow before there were two devices."""
    code, report = two_devices()
    if code not in (0, 1):
        pytest.fail(report, pytrace=False)
    # What pytest says of each test stands below a line with its name.
    _, here, rest = report.partition(f"[{policy}] _")
    if here:
        told = re.split(r"^[_=]+ ", rest.lstrip("_\n"), maxsplit=1, flags=re.MULTILINE)
        pytest.fail(told[0].strip(), pytrace=False)


@functools.cache
def two_devices() -> tuple[int, str]:
    """Returns the exit code and the report of law 13 in a process of its own."""
    if "TWO_DEVICES" in os.environ:
        return 2, "The module of the layer leaves one device, where two were asked for."
    # What starts TensorFlow may be a conftest.py, or the module of the layer.
    start = (
        "import sys, pytest, tensorflow as tf;"
        "cpu, *_ = tf.config.list_physical_devices('CPU');"
        "two = [tf.config.LogicalDeviceConfiguration()] * 2;"
        "tf.config.set_logical_device_configuration(cpu, two);"
        "sys.exit(pytest.main(sys.argv[1:]))"
    )
    environment = {"TWO_DEVICES": "", "PYTHONPATH": os.pathsep.join(sys.path)}
    # No setting and no plugin may change how it is told.
    environment |= {"PYTEST_ADDOPTS": "", "PYTEST_PLUGINS": "", "PY_COLORS": "0"}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    options = ["-q", "--noconftest", "-p", "no:cacheprovider", "-c", os.devnull]
    done = subprocess.run(
        [sys.executable, "-c", start, *options, "-k", "law_13", __file__],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@functools.cache
def oracle(
    compute: str, size: str = "normal"
) -> tuple[Tensors, Callable[[int], Tensors]]:
    """Returns what float64 makes of inputs and weights that the dtype holds."""
    return in_float64(compute, inputs_of(compute, size), weights_of(compute))


def in_float64(
    compute: str, inputs: Any, weights: list[Any], **kwargs: Any
) -> tuple[Tensors, Callable[[int], Tensors]]:
    """Returns float64's values, and how far (rms) rounding to the dtype moves them.

    The latter is a function of how many times inputs and weights are rounded at random.
    """
    run, rng = eager("float64"), np.random.default_rng(5)

    def evaluate(move: Callable[[Any], Any]) -> Tensors:
        set_weights(run.layer, [move(w) if is_float(w) else w for w in weights])
        moved = map_floats(lambda x: tf.constant(move(float64(x))), inputs)
        moved_factors = [tf.constant(move(f)) for f in factors(run.outputs)]
        outputs, gradients = float64_call()(moved, moved_factors, **kwargs)
        return Tensors(
            [float64(output) for output in outputs],
            [None if g is None else float64(g) for g in gradients],
        )

    def move(x: Any) -> Any:
        relative, absolute = rng.choice([-1.0, 1.0], (2, *np.shape(x)))
        return x + relative * ROUNDOFF[compute] * x + absolute * SMALLEST[compute] / 2

    exact, moved = evaluate(np.asarray), list[Tensors]()

    @functools.cache
    def spread(draws: int) -> Tensors:
        while len(moved) < draws:
            moved.append(evaluate(move))
        parts = [
            [
                None if y is None else rms([y - z for z in others])
                for y, *others in zip(*part)
            ]
            for part in zip(exact, *moved)
        ]
        return Tensors(*parts)

    return exact, spread


@functools.cache
def float64_call() -> Any:
    """Returns the float64 layer's outputs and gradients as one graph: it runs often."""
    return tf.function(functools.partial(differentiate, eager("float64").layer))


def inputs_of(policy: str, size: str = "normal") -> Any:
    """Returns inputs that the compute dtype holds, of ordinary or extreme size."""
    inputs = make_inputs(ROWS)
    if size in SIZES:
        inputs = map_floats(lambda x: SIZES[size] * np.sign(x), inputs)
    return fed(inputs, policy)


def weights_of(policy: str) -> list[Any]:
    """Returns weights that the compute dtype holds."""
    return [rounded(w, policy) if is_float(w) else w for w in drawn_weights()]


@functools.cache
def drawn_weights() -> list[Any]:
    """Returns one value for each weight: its initial value, and a little noise."""
    # Where Keras has its seeds from. A seed of TensorFlow's would empty its cache of
    # kernels, which takes longer to fill again than most laws take.
    random.seed(7)
    layer, rng = make_layer(dtype="float32"), np.random.default_rng(7)
    apply(layer, fed(make_inputs(ROWS), "float32"))
    values = [weight.numpy() for weight in layer.weights]
    return [v + rng.uniform(0.05, 0.25, v.shape) if is_float(v) else v for v in values]


def share_of_rounding(step: float, threshold: float) -> float:
    """Returns the share of outputs whose third difference is above the threshold."""
    run, rng = eager("float64"), np.random.default_rng(3)

    def line(x: Any) -> Callable[[int], Any]:
        direction = step * rng.choice([-1.0, 1.0], np.shape(x))
        return lambda k: x * (1 + k * direction)

    along = map_floats(line, run.inputs)
    weights = [
        line(w) if dtype_of(variable) == "float64" else (lambda k, w=w: w)
        for w, variable in zip(run.weights, run.layer.weights)
    ]

    def outputs_at(k: int) -> list[Any]:
        inputs = map_all(lambda x: x(k) if callable(x) else x, along)
        return call(run.layer, inputs, [weight(k) for weight in weights])

    points = [outputs_at(k) for k in (-1, 0, 1, 2)]
    shares = [0.0]
    for i, outputs in enumerate(zip(*points)):
        # An integer, or a dtype that was declared, rounds by intention.
        if ROUNDOFF.get(output_dtype(i, "float64"), np.inf) > threshold:
            continue
        a, b, c, d = map(float64, outputs)
        third = np.abs(a - 3 * b + 3 * c - d)
        if np.any(b):
            shares.append(np.mean(third[b != 0] > threshold * np.max(np.abs(b))))
    return float(max(shares))


def central_differences(**kwargs: Any) -> Iterator[tuple[str, float, float, float]]:
    """Yields, for each weight and input, how the loss changes along a line in it.

    That is its name, the slope that its gradient promises, the sum of the sizes of that
    slope's terms, and the slope that is measured.
    """
    run, rng, step = eager("float64"), np.random.default_rng(2), 1e-5
    inputs = flat(run.inputs)
    weights = [id(weight) for weight in run.layer.weights]
    places = [weights.index(id(weight)) for weight in run.layer.trainable_weights]
    places += [len(weights) + i for i, x in enumerate(inputs) if is_float(x)]
    set_weights(run.layer, run.weights)
    slopes = factors(run.outputs)
    _, gradients = differentiate(run.layer, run.inputs, slopes, **kwargs)
    for name, place, gradient in zip(run.names, places, gradients):
        if gradient is None:
            continue
        losses = []
        line = rng.choice([-1.0, 1.0], gradient.shape)
        for sign in (-1, 1):
            values = [*run.weights, *inputs]
            values[place] = values[place] + sign * step * line
            moved = tf.nest.pack_sequence_as(run.inputs, values[len(weights) :])
            outputs = call(run.layer, moved, values[: len(weights)], **kwargs)
            losses.append(loss_of(outputs, factors(outputs)))
        terms = float64(gradient) * line
        measured = float(losses[1] - losses[0]) / (2 * step)
        yield name, float(np.sum(terms)), float(np.sum(np.abs(terms))), measured


def call(layer: Any, inputs: Any, weights: list[Any], **kwargs: Any) -> list[Any]:
    """Returns the outputs of the layer with these weights, in a flat list."""
    if not layer.built:
        apply(layer, inputs, **kwargs)
    set_weights(layer, weights)
    return [*flat(apply(layer, inputs, **kwargs))]


def differentiate(
    layer: Any, inputs: Any, factors: list[Any], **kwargs: Any
) -> tuple[list[Any], list[Any]]:
    """Returns the outputs, and the gradients of weights and float inputs.

    They are gradients of `loss_of`, whose own operations are left out.
    """
    floats = [x for x in flat(inputs) if is_float(x)]
    with tf.GradientTape() as tape:
        tape.watch(floats)
        outputs = flat(apply(layer, inputs, **kwargs))
    pairs = [(y, tf.cast(f, y.dtype)) for y, f in zip(outputs, factors) if is_float(y)]
    gradients = tape.gradient(
        [output for output, _ in pairs],
        [*layer.trainable_weights, *floats],
        [factor for _, factor in pairs],
    )
    return outputs, [
        tf.convert_to_tensor(g) if isinstance(g, tf.IndexedSlices) else g
        for g in gradients
    ]


def factors(outputs: list[Any]) -> list[Any]:
    """Returns what the loss multiplies outputs with: every dtype holds it exactly."""
    rng = np.random.default_rng(1)
    return [rng.integers(8, 24, output.shape) / 16 for output in outputs]


def loss_of(outputs: list[Any], factors: list[Any]) -> Any:
    """Returns the sum of the products of float outputs and factors."""
    wide = "float64" if "float64" in map(dtype_of, outputs) else "float32"
    return tf.add_n(
        [
            tf.reduce_sum(tf.cast(output, wide) * tf.cast(factor, wide))
            for output, factor in zip(outputs, factors)
            if is_float(output)
        ]
    )


def graph_nodes(graph: Any) -> list[Any]:
    """Returns the operations of a graph and of the functions that it calls."""
    definition = graph.graph.as_graph_def()
    functions = [f.node_def for f in definition.library.function]
    return [node for nodes in (definition.node, *functions) for node in nodes]


def takes_training(layer: Any) -> bool:
    return "training" in inspect.signature(layer.call).parameters


def differences(layer: Any, config: dict[str, Any]) -> str:
    """Returns what the layer's policy and config have other than `config`."""
    items = [f"{k}={v!r}" for k, v in layer.get_config().items() if config.get(k) != v]
    return ", ".join([f"the policy {layer.dtype_policy.name!r}", *items])


def set_weights(layer: Any, values: list[Any]) -> None:
    for weight, value in zip(layer.weights, values):
        weight.assign(tf.cast(value, weight.dtype))


def fed(inputs: Any, policy: str) -> Any:
    """Returns inputs as people feed them, with values that the compute dtype holds."""
    dtype = "float64" if policy == "float64" else "float32"
    inputs = map_floats(lambda x: tf.cast(rounded(x, policy), dtype), inputs)
    return map_all(tf.convert_to_tensor, inputs)


def symbolic(inputs: Any) -> Any:
    return map_all(lambda x: tf.keras.Input(x.shape[1:], dtype=x.dtype), inputs)


def map_floats(function: Callable[[Any], Any], structure: Any) -> Any:
    return map_all(lambda x: function(x) if is_float(x) else x, structure)


def is_float(x: Any) -> bool:
    return bool(tf.as_dtype(x.dtype).is_floating)


def dtype_of(x: Any) -> str:
    return str(tf.as_dtype(x.dtype).name)


def compute_dtype(policy: str) -> str:
    return policy.replace("mixed_", "")


def declared(dtype: str, policy: str) -> str:
    """Returns what a dtype of STORED or OUTPUT_DTYPES is under a policy."""
    wide = "float64" if policy == "float64" else "float32"
    return wide if dtype == AT_LEAST_FLOAT32 else dtype


def output_dtype(place: int, policy: str) -> str:
    return declared(OUTPUT_DTYPES.get(place, compute_dtype(policy)), policy)


def rounded(x: Any, policy: str) -> Any:
    return float64(tf.cast(x, compute_dtype(policy)))


def float64(x: Any) -> Any:
    return np.asarray(x.numpy() if hasattr(x, "numpy") else x).astype("float64")


def rms(x: Any) -> float:
    return float(np.sqrt(np.mean(np.square(x))))


def close(seen: Any, right: Any, policy: str) -> bool:
    error, size = rms(float64(seen) - float64(right)), rms(float64(right))
    return bool(error <= 8 * ROUNDOFF[compute_dtype(policy)] * size)


def short_name(weight: Any) -> str:
    """Returns `w` for `my_layer/w:0`, as Keras 2 has it, and for `w`."""
    return str(weight.name.split("/")[-1].split(":")[0])
