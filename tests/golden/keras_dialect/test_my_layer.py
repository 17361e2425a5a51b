"""The mixed-precision matrix of MyLayer.

    KERAS_BACKEND=jax pytest test_my_layer.py
      -k law_05           one law
      -k mixed_float16    one policy

Each test is a law that the layer keeps under every dtype policy. The oracle is the
layer itself in float64, so the laws stay true whatever `call` computes. It runs on each
backend of Keras: TensorFlow, JAX or PyTorch. First stands what is intended, then the
laws, then how they are measured.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import operator
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest

from my_layer import MyLayer

# ------------------------------------------------------------------ what is intended

# The constructor's arguments in all laws but law 9, which takes OTHER_ARGUMENTS: none
# of those is a default, so that a config that loses one shows.
ARGUMENTS: dict[str, Any] = {"units": 3}
OTHER_ARGUMENTS: dict[str, Any] = {
    "units": 2,
    "w_initializer": "ones",
    "b_initializer": "ones",
}
# The shape of one input, without the batch.
INPUT_SHAPE = (5,)
# Inputs of this size overflow no step of `call` in float16 (law 7).
LARGE = 300.0
# Weights that are not stored in the variable dtype: {"count": "int32"} (law 2).
AT_LEAST_FLOAT32 = "the dtype of the policy, or float32 where that is a half"
STORED: dict[str, str] = {}
# Outputs, by position, that are not in the compute dtype: {1: "int32"}, or
# {0: AT_LEAST_FLOAT32} (law 3).
OUTPUT_DTYPES: dict[int, str] = {}
# Weights that outputs do not depend on, but a loss of the layer does (law 5).
LOSS_ALONE: set[str] = set()
# Whether gradients are those of the outputs, and none of another function (law 5).
TRUE_GRADIENTS = True
# Whether `training=True` draws at random (law 11).
RANDOM = False
# Whether outputs have the mask of the inputs, if the layer knows masks (law 11).
CARRIES_MASK = True


def make_layer(**kwargs: Any) -> keras.layers.Layer:
    """Returns a new layer; `kwargs` are arguments of any layer, such as `dtype`."""
    return MyLayer(**{**ARGUMENTS, **kwargs})


def make_inputs(rows: int) -> Any:
    """Returns a batch in float64. What is an integer here is fed as an integer."""
    return np.random.default_rng(rows).normal(size=(rows, *INPUT_SHAPE))


def apply(layer: keras.layers.Layer, inputs: Any, **kwargs: Any) -> Any:
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
    )
    for seen, right in zip(outputs, run.outputs):
        require(
            dtype_of(seen) == dtype_of(right) and close(seen, right, policy),
            law=1,
            policy=policy,
            seen=f"under the global policy {other!r} the outputs are other ones, in "
            f"{dtype_of(seen)}",
            expected=f"those of the layer's own policy, in {dtype_of(right)}",
            look_for="global_policy() or floatx() instead of self.compute_dtype",
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
    """Eager and symbolic outputs agree on dtype and shape, for any batch."""
    run = eager(policy)
    one_row = map_all(lambda x: x[:1], run.inputs)
    modes = {
        "eager": (ROWS, run.outputs),
        "one row": (1, flat(apply(run.layer, one_row))),
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


@pytest.mark.filterwarnings("ignore")  # Those are Keras's, while it compiles.
def test_law_03_compiled_agrees() -> None:
    """As a model runs it, compiled where the backend compiles, values are the same."""
    policy = "mixed_float16"
    run, inputs = eager(policy), symbolic(eager(policy).inputs)
    model = keras.Model(inputs, apply(make_layer(dtype=policy), inputs))
    set_weights(model, run.weights)
    look_for = "a Python `if` or a size that depends on values, or NumPy in `call`"
    with explained("a call in a model", 3, policy, look_for):
        outputs = flat(model.predict_on_batch(run.inputs))
    for seen, right in zip(outputs, run.outputs):
        require(
            dtype_of(seen) == dtype_of(right) and close(seen, right, policy),
            law=3,
            policy=policy,
            seen=f"a model gives other outputs, in {dtype_of(seen)}",
            expected=f"those of an eager call, in {dtype_of(right)}",
            look_for=look_for,
        )


@every_policy
def test_law_04_values_are_those_of_float64(policy: str) -> None:
    """Outputs differ from float64's by no more than rounding explains."""
    run, (exact, spread) = eager(policy), oracle(compute_dtype(policy))
    require_near(4, policy, "eager", Tensors(run.outputs, []), exact, spread)


@float64_alone
def test_law_04_float64_is_float64_throughout(policy: str) -> None:
    """No step of the float64 layer is done in a narrower dtype.

    Third differences along a line vanish for a smooth function; those of the rounding
    to a narrower dtype do not.
    """
    exact_policy(policy)
    for step, threshold, dtype in ((1e-6, 1e-10, "float32"), (2e-3, 1e-5, "a half")):
        share = share_of_rounding(step, threshold)
        require(
            share <= 0.2,
            law=4,
            policy=policy,
            seen=f"{share:.0%} of the outputs show the rounding of {dtype}",
            expected="none: float64 in, float64 throughout",
            look_for="'float32', floatx() or keras.backend.result_type where "
            "self.compute_dtype is meant",
        )


@every_policy
def test_law_05_gradients_reach_every_weight(policy: str) -> None:
    """Weights and inputs get float64's gradient, weights in their own dtype."""
    run, (exact, spread) = eager(policy), oracle(compute_dtype(policy))
    variables = {short_name(weight): weight for weight in run.layer.trainable_weights}
    for name, gradient in zip(run.names, run.gradients):
        require(
            name in LOSS_ALONE or (gradient is not None and np.any(float64(gradient))),
            law=5,
            policy=policy,
            seen=f"no gradient reaches {name}",
            expected="one that is not zero",
            look_for="keras.ops.stop_gradient, NumPy, a cast to an integer, or a "
            "weight that was read outside `call`",
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
            look_for="keras.ops.custom_gradient with a gradient in another dtype",
        )
    require_near(5, policy, "backward", Tensors([], run.gradients), exact, spread)


@float64_alone
def test_law_05_gradients_are_derivatives(policy: str) -> None:
    """In float64 each gradient is what a central difference of the outputs says."""
    exact_policy(policy)
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
                look_for="stop_gradient in a part of `call`, or a custom gradient",
            )


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
    gradients = [
        None if g is None else sway + unit * rms(g)
        for g, sway in zip(ordinary.gradients, spread.gradients)
    ]
    set_weights(run.layer, run.weights)
    inputs = inputs_of(policy, size)
    seen = Tensors(*differentiate(run.layer, inputs, factors(run.outputs)))
    spread, top = Tensors(spread.outputs, gradients), LARGEST[compute] / 4
    require_near(7, policy, f"{size} inputs", seen, exact, spread, top)
    losses, rights = (
        [float(float64(loss)) for loss in losses_of(dtype, inputs, run.weights)]
        for dtype in (policy, exact_policy(compute))
    )
    require(
        all(np.isfinite(x) or not abs(y) < 1e38 for x, y in zip(losses, rights)),
        law=7,
        policy=policy,
        seen=f"{size} inputs: the layer's losses are {losses}",
        expected=rights,
        look_for="a loss that is computed in a half, in add_loss",
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
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(rate))
    optimizer.build(layer.trainable_weights)
    for factor in (np.inf, 1.0):
        before = [float64(weight) for weight in layer.trainable_weights]

        def scaled_loss(_: list[Any], factor: float = factor) -> tuple[Any, list[Any]]:
            outputs = flat(apply(layer, run.inputs))
            loss = factor * loss_of(outputs, factors(outputs)) / size
            return optimizer.scale_loss(loss), outputs

        _, gradients = differentiated(scaled_loss, layer.trainable_weights, [])
        take_step(optimizer, gradients, layer.trainable_weights)
        apply(layer, run.inputs)
        after = [float64(weight) for weight in layer.trainable_weights]
        for name, old, new, slope in zip(run.names, before, after, slopes):
            step = slope * (0.0 if factor == np.inf else -rate / size)
            require(
                rms(new - old - step) <= 0.1 * rms(step) + 2.0**-23 * rms(old),
                law=8,
                policy=policy,
                seen=f"{name} moved by {rms(new - old):.3g}",
                expected=f"{rms(step):.3g}"
                + (", since the loss overflowed" if factor == np.inf else ""),
                look_for="a weight that is stored in a half, or that `call` assigns "
                "from its reading in the compute dtype",
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


@mixed_float16_alone
@pytest.mark.filterwarnings("ignore")  # Those are Keras's, while it saves.
def test_law_09_saved_model_loads_equal(policy: str, tmp_path: Any) -> None:
    """A saved model loads with the same outputs; its weights load anywhere."""
    run = eager(policy)
    inputs = symbolic(run.inputs)
    model, float32_model = (
        keras.Model(inputs, apply(make_layer(dtype=dtype), inputs))
        for dtype in (policy, "float32")
    )
    set_weights(model, run.weights)
    outputs = flat(model(run.inputs))
    look_for = "get_config, or register_keras_serializable at the class"
    with explained("saving and loading a model", 9, policy, look_for):
        model.save(tmp_path / "model.keras")
        loaded = keras.models.load_model(tmp_path / "model.keras")
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
            dtype_of(old) == dtype_of(new) and close(old, new, policy),
            law=9,
            policy=policy,
            seen=f"the loaded model has other outputs, in {dtype_of(new)}",
            expected=f"those of the saved one, in {dtype_of(old)}",
            look_for="a part of the layer that is neither weight nor config",
        )


@every_policy
def test_law_10_takes_inputs_of_any_dtype(policy: str) -> None:
    """Tensors of each float dtype, NumPy arrays and integers give the same outputs."""
    run = eager(policy)
    whole = map_floats(lambda x: np.round(2 * x), make_inputs(ROWS))
    expected = call(run.layer, fed(whole, policy), run.weights)
    dtypes = ["float16", "float32", "float64", "int32"]
    feeds: dict[str, Callable[[Any], Any]] = {
        f"{d} tensors": functools.partial(keras.ops.cast, dtype=d) for d in dtypes
    }
    feeds |= {f"{d} arrays": operator.methodcaller("astype", d) for d in dtypes}
    feeds["bfloat16 tensors"] = functools.partial(keras.ops.cast, dtype="bfloat16")
    look_for = "keras.ops.cast(inputs, self.compute_dtype), first in `call`"
    for kind, feed in feeds.items():
        with explained(f"a call on {kind}", 10, policy, look_for):
            outputs = apply(run.layer, map_floats(feed, whole))
        for seen, right in zip(flat(outputs), expected):
            require(
                dtype_of(seen) == dtype_of(right) and close(seen, right, policy),
                law=10,
                policy=policy,
                seen=f"{kind} give other outputs, in {dtype_of(seen)}",
                expected=f"those that float32 inputs give, in {dtype_of(right)}",
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
                dtype_of(seen) == dtype_of(right)
                and np.all(np.isfinite(float64(seen))),
                law=11,
                policy=policy,
                seen=f"training=True gives {dtype_of(seen)} outputs, "
                f"{np.mean(np.isfinite(float64(seen))):.0%} of them finite",
                expected=f"finite {dtype_of(right)} outputs",
                look_for="what `call` does only where training is true",
            )
        for size in () if RANDOM else ("normal", "large"):
            require_like_float64_in_training(policy, size)
    masks = run.layer.supports_masking and len(flat(run.inputs)) == 1
    if masks and is_float(flat(run.inputs)[0]):
        # Sublayers may have been built for one rank.
        same_rank = len(INPUT_SHAPE) > 1
        shape = INPUT_SHAPE if same_rank else (3, *INPUT_SHAPE)
        layer = run.layer if same_rank else make_layer(dtype=policy)
        # Of several outputs Keras gives the mask to the first.
        first = flat(layer(masked(keras.Input(shape), policy)))[0]
        steps, which = np.ones((ROWS, *shape)), "no"
        steps[:, -1] = 0
        outputs = flat(layer(masked(fed(steps, policy), policy)))
        finite = np.mean([np.mean(np.isfinite(float64(output))) for output in outputs])
        if getattr(first, "_keras_mask", None) is not None:
            right = np.any(steps, axis=-1)
            mask = layer.compute_mask(fed(steps, policy), as_tensor(right, "bool"))
            mask = keras.ops.convert_to_numpy(flat(mask)[0])
            same = mask.dtype == "bool" and np.array_equal(mask, right)
            which = "the" if same else "another"
        intended = "the" if CARRIES_MASK else "no"
        require(
            which == intended and finite == 1,
            law=11,
            policy=policy,
            seen=f"outputs with {which} mask, {finite:.0%} of them finite",
            expected=f"finite ones, with {intended} mask",
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
        )


@pytest.fixture(autouse=True)
def float64_is_float64(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Off TensorFlow, Keras makes float32 of float64, and JAX does: not in these tests.

    The table is private. Where it is gone, `exact_policy` knows what to do.
    """
    with contextlib.suppress(ImportError, AttributeError):
        dtypes = importlib.import_module("keras.src.backend.common.dtypes")
        monkeypatch.setitem(dtypes.BIT64_TO_BIT32_DTYPE, "float64", "float64")
    if keras.backend.backend() != "jax":
        yield
        return
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture(autouse=True)
def law_14_global_policy_stays() -> Iterator[None]:
    """No test leaves another global policy than there was at import."""
    yield
    policy = keras.mixed_precision.global_policy().name
    set_global_policy(POLICY_AT_IMPORT)
    require(
        policy == POLICY_AT_IMPORT,
        law=14,
        policy=POLICY_AT_IMPORT,
        seen=f"the layer has set the global policy {policy!r}",
        expected="it follows the global policy and leaves it alone",
        look_for="set_global_policy or set_dtype_policy in the layer",
    )


# ------------------------------------------------------------------------- measuring

ROWS = 32
POLICY_AT_IMPORT = keras.mixed_precision.global_policy().name
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
LARGEST = {
    "float16": 65504.0,
    "bfloat16": 3.39e38,
    "float32": 3.4e38,
    "float64": 1.79e308,
}
# The smallest positive number; a backend may round less than that to zero.
SMALLEST = {
    "float16": 2.0**-24,
    "bfloat16": 2.0**-126,
    "float32": 2.0**-126,
    "float64": 2.0**-1022,
}
# The extreme inputs; those of ordinary size are drawn from a normal distribution.
SIZES = {"zero": 0.0, "subnormal": 6e-8, "small": 1e-4, "large": LARGE}

set_global_policy = keras.mixed_precision.set_global_policy


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


def words(law: int, policy: str, seen: Any, expected: Any, look_for: str) -> str:
    return (
        f"Law {law}, {policy}.\n"
        f"  Seen:     {seen}.\n"
        f"  Expected: {expected}.\n"
        f"  Look for: {look_for}."
    )


def require_near(
    law: int,
    policy: str,
    when: str,
    seen: Tensors,
    exact: Tensors,
    spread: Tensors,
    top: float = np.inf,
) -> None:
    """Fails unless what float64 holds finite and below `top` is near it.

    The yardstick is the root mean square of `spread`, how far rounded inputs and
    weights alone move float64, and of the rounding of the result itself.
    """
    run, compute = eager(policy), compute_dtype(policy)
    # A product may vanish below the smallest number; a gradient sums one each output.
    terms = sum(int(np.prod(output.shape)) for output in run.outputs)
    steepest = max([rms(g) for g in exact.gradients if g is not None], default=0.0)
    outputs = zip(seen.outputs, exact.outputs, spread.outputs)
    gradients = zip(run.names, seen.gradients, exact.gradients, spread.gradients)
    for name, value, right, sway, products in [
        *((f"output {i}", *output, 1) for i, output in enumerate(outputs)),
        *((f"the gradient of {name}", *rest, terms) for name, *rest in gradients),
    ]:
        if value is None or right is None or not np.max(np.abs(right)) < top:
            continue
        rounding = ROUNDOFF[compute] * rms(right) + SMALLEST[compute] * products
        if products > 1 and rms(right) < 1e-12 * steepest:
            # Its terms cancel, as those of a bias before a softmax: what is left is
            # the rounding of terms of ordinary size, which all rows may share.
            rounding += ROUNDOFF[compute] * steepest * np.sqrt(ROWS)
        ratio = rms(float64(value) - right) / (sway + rounding)
        require(
            ratio <= LIMIT[compute],
            law=law,
            policy=policy,
            seen=f"{when}: {name} is {ratio:.3g} times as far from float64 as the "
            "rounding of inputs and weights explains",
            expected=f"at most {LIMIT[compute]:g} times",
            look_for="a step that a narrow dtype cannot hold: an epsilon below 1e-7, a "
            "mask, square or sum beyond 65504, a difference of like numbers. Scale it, "
            "or compute it in at least float32",
        )


def require_like_float64_in_training(policy: str, size: str) -> None:
    """Fails unless `training=True` gives float64's outputs, gradients and states."""
    run, compute = eager(policy), compute_dtype(policy)
    inputs, when = inputs_of(policy, size), f"training=True, {size} inputs"
    exact, spread = in_float64(compute, inputs, run.weights, training=True)
    set_weights(run.layer, run.weights)
    slopes = factors(run.outputs)
    outputs, gradients = differentiate(run.layer, inputs, slopes, training=True)
    seen = Tensors(outputs, gradients if size == "normal" else [])
    require_near(11, policy, when, seen, exact, spread, LARGEST[compute] / 4)
    for name, gradient, outside in zip(run.names, gradients, run.gradients):
        require(
            (gradient is None) == (outside is None),
            law=11,
            policy=policy,
            seen=f"{when}: {'no' if gradient is None else 'a'} gradient reaches {name}",
            expected=f"{'none' if outside is None else 'one'}, as outside training",
            look_for="keras.ops.stop_gradient where training is true",
        )
    # JAX's gradients leave states as they were.
    wide = eager(exact_policy(compute)).layer
    call(wide, fed(inputs, wide.dtype_policy.name), run.weights, training=True)
    call(run.layer, inputs, run.weights, training=True)
    for weight, old, other in zip(run.layer.weights, run.weights, wide.weights):
        right, before = float64(other), float64(old)
        error, step = rms(float64(weight) - right), rms(right - before)
        # A batch's statistic may be rounded; what it is added to may not.
        slack = 0.05 * step + 4 * ROUNDOFF.get(dtype_of(weight), 0.0) * rms(right)
        require(
            error <= slack,
            law=11,
            policy=policy,
            seen=f"{when}: {short_name(weight)} is moved by "
            f"{rms(float64(weight) - before):.3g}",
            expected=f"{step:.3g}, as in float64",
            look_for="a state that is read, summed or assigned in a half",
        )


@contextlib.contextmanager
def explained(doing: str, law: int, policy: str, look_for: str) -> Iterator[None]:
    """Tells of an exception in the words of a law, with the layer's own line."""
    try:
        yield
    except Exception as error:
        source = inspect.getsourcefile(MyLayer)
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f"line {f.lineno}: {f.line}" for f in frames if f.filename == source]
        message = " ".join(str(error).split())
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
    "or a weight or an input without its cast",
)
def eager(policy: str) -> Run:
    """Calls a layer that has the policy, on values that its compute dtype holds."""
    layer, inputs = make_layer(dtype=policy), inputs_of(policy)
    weights = weights_of(policy)
    outputs = call(layer, inputs, weights)
    outputs, gradients = differentiate(layer, inputs, factors(outputs))
    names = [short_name(weight) for weight in layer.trainable_weights]
    names += ["the inputs"] * (len(gradients) - len(names))
    return Run(layer, inputs, weights, names, outputs, gradients)


def exact_policy(compute: str) -> str:
    """Returns the policy of the oracle: float64, where Keras computes in that."""
    if keras.backend.result_type("float64", "float32") == "float64":
        return "float64"
    if compute in ("float32", "float64"):
        pytest.skip("this Keras computes float64 in float32")
    return "float32"


@functools.cache
def oracle(compute: str, size: str = "normal") -> tuple[Tensors, Tensors]:
    """Returns what float64 makes of inputs and weights that the dtype holds."""
    # Before float64 is run, which may fail.
    exact_policy(compute)
    return in_float64(compute, inputs_of(compute, size), weights_of(compute))


def in_float64(
    compute: str, inputs: Any, weights: list[Any], **kwargs: Any
) -> tuple[Tensors, Tensors]:
    """Returns float64's values, and how far (rms) rounding to the dtype moves them."""
    exact = exact_policy(compute)
    run, random = eager(exact), np.random.default_rng(5)

    def evaluate(move: Callable[[Any], Any]) -> Tensors:
        set_weights(run.layer, [move(w) if is_float(w) else w for w in weights])
        moved = map_floats(lambda x: as_tensor(move(float64(x)), exact), inputs)
        moved_factors = [move(factor) for factor in factors(run.outputs)]
        outputs, gradients = differentiate(run.layer, moved, moved_factors, **kwargs)
        return Tensors(
            [float64(output) for output in outputs],
            [None if g is None else float64(g) for g in gradients],
        )

    def move(x: Any) -> Any:
        relative, absolute = random.choice([-1.0, 1.0], (2, *np.shape(x)))
        return x + relative * ROUNDOFF[compute] * x + absolute * SMALLEST[compute] / 2

    # Several draws, since one may miss the kink of a relu that another crosses.
    still, moved = evaluate(np.asarray), [evaluate(move) for _ in range(5)]
    spread = [
        [
            None if y is None else rms([y - z for z in others])
            for y, *others in zip(*part)
        ]
        for part in zip(still, *moved)
    ]
    return still, Tensors(*spread)


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
    keras.utils.set_random_seed(7)
    layer, random = make_layer(dtype="float32"), np.random.default_rng(7)
    apply(layer, fed(make_inputs(ROWS), "float32"))
    return [
        float64(w) + random.uniform(0.05, 0.25, w.shape)
        if is_float(w)
        else keras.ops.convert_to_tensor(w)
        for w in layer.weights
    ]


def share_of_rounding(step: float, threshold: float) -> float:
    """Returns the share of outputs whose third difference is above the threshold."""
    run, random = eager("float64"), np.random.default_rng(3)

    def line(x: Any) -> Callable[[int], Any]:
        direction = step * random.choice([-1.0, 1.0], np.shape(x))
        return lambda k: as_tensor(float64(x) * (1 + k * direction), "float64")

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
    run, random, step = eager("float64"), np.random.default_rng(2), 1e-5
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
        line = random.choice([-1.0, 1.0], gradient.shape)
        for sign in (-1, 1):
            values = [*run.weights, *inputs]
            values[place] = float64(values[place]) + sign * step * line
            moved = packed(run.inputs, values[len(weights) :])
            outputs = call(run.layer, moved, values[: len(weights)], **kwargs)
            losses.append(float64(loss_of(outputs, factors(outputs))))
        terms = float64(gradient) * line
        measured = float(losses[1] - losses[0]) / (2 * step)
        yield name, float(np.sum(terms)), float(np.sum(np.abs(terms))), measured


def call(layer: Any, inputs: Any, weights: list[Any], **kwargs: Any) -> list[Any]:
    """Returns the outputs of the layer with these weights, in a flat list."""
    if not layer.built:
        apply(layer, inputs, **kwargs)
    set_weights(layer, weights)
    return [*flat(apply(layer, inputs, **kwargs))]


def losses_of(policy: str, inputs: Any, weights: list[Any]) -> list[Any]:
    """Returns the layer's own losses, which a call has added."""
    layer = eager(policy).layer
    call(layer, fed(inputs, policy), weights)
    return [*layer.losses]


def differentiate(
    layer: Any, inputs: Any, factors: list[Any], **kwargs: Any
) -> tuple[list[Any], list[Any]]:
    """Returns the outputs, and the gradients of weights and float inputs."""
    leaves = flat(inputs)
    places = [i for i, leaf in enumerate(leaves) if is_float(leaf)]

    def loss(floats: list[Any]) -> tuple[Any, list[Any]]:
        values = {**dict(enumerate(leaves)), **dict(zip(places, floats))}
        outputs = flat(apply(layer, packed(inputs, [*values.values()]), **kwargs))
        return loss_of(outputs, factors), outputs

    floats = [leaves[place] for place in places]
    return differentiated(loss, layer.trainable_weights, floats)


def differentiated(
    function: Callable[[list[Any]], tuple[Any, list[Any]]],
    weights: list[Any],
    tensors: list[Any],
) -> tuple[list[Any], list[Any]]:
    """Returns a function's outputs, and its loss's gradients of weights and tensors.

    The function takes the tensors, and returns the loss and the outputs. A gradient is
    None where there is none, for which JAX says 0.
    """
    values = [weight.value for weight in weights]
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(tensors)
            loss, outputs = function(tensors)
        gradients = tape.gradient(loss, [*values, *tensors])
        sparse = tf.IndexedSlices
        gradients = [
            tf.convert_to_tensor(g) if isinstance(g, sparse) else g for g in gradients
        ]
    elif keras.backend.backend() == "jax":
        import jax

        def stateless(values: list[Any], tensors: list[Any]) -> Any:
            # As `stateless_call` does it, but by `__call__`, which casts the inputs.
            state = [*zip(weights, values)]
            with keras.StatelessScope(state_mapping=state, collect_losses=True):
                return function(tensors)

        slopes = jax.value_and_grad(stateless, argnums=(0, 1), has_aux=True)
        (_, outputs), (first, second) = slopes(values, tensors)
        gradients = [*first, *second]
    else:
        import torch

        tensors = [tensor.detach().clone().requires_grad_() for tensor in tensors]
        loss, outputs = function(tensors)
        sources = [*values, *tensors]
        gradients = [None] * len(sources)
        if loss.requires_grad:
            gradients = torch.autograd.grad(loss, sources, allow_unused=True)
        outputs = [output.detach() for output in outputs]
    return outputs, [*gradients]


def take_step(optimizer: Any, gradients: list[Any], weights: list[Any]) -> None:
    """Applies gradients; on JAX without state on the way, as it must be there."""
    if keras.backend.backend() != "jax":
        optimizer.apply(gradients, weights)
        return
    variables = [*weights, *optimizer.variables]
    values = [variable.value for variable in variables]
    count = len(weights)
    trained, kept = optimizer.stateless_apply(values[count:], gradients, values[:count])
    for variable, value in zip(variables, [*trained, *kept]):
        variable.assign(value)


def factors(outputs: list[Any]) -> list[Any]:
    """Returns what the loss multiplies outputs with: every dtype holds it exactly."""
    random = np.random.default_rng(1)
    return [random.integers(8, 24, output.shape) / 16 for output in outputs]


def loss_of(outputs: list[Any], factors: list[Any]) -> Any:
    """Returns the sum of the products of float outputs and factors."""
    wide = "float64" if "float64" in map(dtype_of, outputs) else "float32"
    return sum(
        keras.ops.sum(keras.ops.cast(output, wide) * as_tensor(factor, wide))
        for output, factor in zip(outputs, factors)
        if is_float(output)
    )


def takes_training(layer: Any) -> bool:
    return "training" in inspect.signature(layer.call).parameters


def differences(layer: Any, config: dict[str, Any]) -> str:
    """Returns what the layer's policy and config have other than `config`."""
    items = [f"{k}={v!r}" for k, v in layer.get_config().items() if config.get(k) != v]
    return ", ".join([f"the policy {layer.dtype_policy.name!r}", *items])


def set_weights(layer: Any, values: list[Any]) -> None:
    for weight, value in zip(layer.weights, values):
        weight.assign(as_tensor(value, weight.dtype))


def fed(inputs: Any, policy: str) -> Any:
    """Returns inputs as people feed them, with values that the compute dtype holds."""
    dtype = "float64" if policy == "float64" else "float32"
    inputs = map_floats(lambda x: as_tensor(rounded(x, policy), dtype), inputs)
    return map_all(keras.ops.convert_to_tensor, inputs)


def symbolic(inputs: Any) -> Any:
    return map_all(lambda x: keras.Input(tuple(x.shape[1:]), dtype=dtype_of(x)), inputs)


def masked(inputs: Any, policy: str) -> Any:
    return keras.layers.Masking(dtype=policy)(inputs)


def flat(structure: Any) -> list[Any]:
    """Returns the tensors in lists, tuples and dicts, in their order."""
    if isinstance(structure, dict):
        structure = [*structure.values()]
    if isinstance(structure, (list, tuple)):
        return [leaf for part in structure for leaf in flat(part)]
    return [structure]


def map_all(function: Callable[[Any], Any], structure: Any) -> Any:
    if isinstance(structure, dict):
        return {key: map_all(function, part) for key, part in structure.items()}
    if isinstance(structure, (list, tuple)):
        return [map_all(function, part) for part in structure]
    return function(structure)


def packed(structure: Any, leaves: list[Any]) -> Any:
    """Returns the like of a structure, with other tensors in it."""
    following = iter(leaves)
    return map_all(lambda _: next(following), structure)


def map_floats(function: Callable[[Any], Any], structure: Any) -> Any:
    return map_all(lambda x: function(x) if is_float(x) else x, structure)


def is_float(x: Any) -> bool:
    return dtype_of(x) in ROUNDOFF


def dtype_of(x: Any) -> str:
    return str(keras.backend.standardize_dtype(x.dtype))


def compute_dtype(policy: str) -> str:
    return policy.replace("mixed_", "")


def declared(dtype: str, policy: str) -> str:
    """Returns what a dtype of STORED or OUTPUT_DTYPES is under a policy."""
    wide = "float64" if policy == "float64" else "float32"
    return wide if dtype == AT_LEAST_FLOAT32 else dtype


def output_dtype(place: int, policy: str) -> str:
    return declared(OUTPUT_DTYPES.get(place, compute_dtype(policy)), policy)


def rounded(x: Any, policy: str) -> Any:
    return float64(as_tensor(x, compute_dtype(policy)))


def as_tensor(x: Any, dtype: str) -> Any:
    return keras.ops.cast(keras.ops.convert_to_tensor(x), dtype)


def float64(x: Any) -> Any:
    return keras.ops.convert_to_numpy(as_tensor(x, "float64")).astype("float64")


def rms(x: Any) -> float:
    return float(np.sqrt(np.mean(np.square(x))))


def close(seen: Any, right: Any, policy: str) -> bool:
    error, size = rms(float64(seen) - float64(right)), rms(float64(right))
    return bool(error <= 8 * ROUNDOFF[compute_dtype(policy)] * size)


def short_name(weight: Any) -> str:
    return str(weight.name)
