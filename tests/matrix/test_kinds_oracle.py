"""Every kind gives what NumPy's float64 gives for its formula, under every policy.

Inputs and weights are rounded first; errors are in epsilons of the compute dtype, of the
largest value in a row. `python benchmarks/accuracy.py` prints them, and those of Keras.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from scaffold.kinds import kind_names, load_kind

if TYPE_CHECKING:
    from measure import Meter

POLICIES = (
    "float32",
    "mixed_float16",
    "mixed_bfloat16",
    "float64",
    "float16",
    "bfloat16",
)
DTYPES = ("float16", "bfloat16", "float32", "float64")
# By kind, and by `kind: case` where one case is apart: below twice the largest error that
# was measured on TensorFlow 2.21. Half an epsilon is the rounding of the result, and each
# further step in the compute dtype adds as much. Nothing wider sums up what is float32 or
# float64: there the figure is that of a long sum, or of an angle of 9,000.
BOUNDS: dict[str, tuple[float, float, float, float]] = {
    "dense": (2.5, 2.9, 5.9, 4.5),
    "scale": (1.3, 1, 1.3, 0.5),
    "activation": (0.5, 0.5, 0.5, 0.5),
    "attention": (4.4, 2.2, 19, 19),
    "augment": (0.5, 0.5, 0.5, 0.5),
    "block": (1.3, 1.4, 3.8, 3.3),
    "conv": (1.3, 1.3, 5.9, 6.7),
    "conv-2d": (1.6, 1.2, 5.9, 8.5),
    "conv-depthwise": (0.5, 0.5, 2.7, 0.5),
    "embedding": (0, 0, 0, 0),
    "features": (0.5, 0.5, 37, 48),
    "film": (2, 1.8, 2.9, 3.8),
    "gradient": (0.97, 0.5, 1, 0.5),
    "graph": (1.3, 1.1, 2.6, 5.1),
    "graph: star": (0.5, 0.5, 190, 97),
    "graph: top": (0.5, 0.5, 210, 260),
    "loss": (0.0002, 4e-05, 2, 2),
    "noise": (0.5, 0.5, 0.5, 0.5),
    "norm": (0.5, 0.5, 2.5, 4.8),
    "pool": (0.5, 0.5, 1.4, 6.7),
    "position": (0.89, 0.97, 6.8, 13),
    "position: long": (0.5, 0.5, 2000, 3500),
    "quantize": (0.5, 1.6, 0.96, 0.5),
    "resize": (0.5, 0.5, 19, 15),
    "rnn-cell": (2, 2.1, 11, 13),
    "sample": (7.2, 3.4, 29, 16),
    "stats": (2.8, 2.6, 3.2, 6.1),
    "wrapper": (1.4, 1.4, 5, 2.7),
}
# What is apart on another backend, below twice what was measured there.
APART: dict[str, dict[str, dict[str, float]]] = {
    # Products of float16 are summed in float16 on a CPU.
    "tensorflow 2.15": {
        "dense": {"float16": 4.9},
        "attention": {"float16": 7.6},
        "block": {"float16": 3.5},
        "film": {"float16": 3.8},
        "graph": {"float16": 2.4},
        "graph: star": {"float16": 1},
        "rnn-cell": {"float16": 8},
        "sample": {"float16": 28},
        "wrapper": {"float16": 4.8},
    },
    # A mean over rows is summed one by one: in float32 for the loss and for statistics.
    "jax": {
        "conv-depthwise": {"float64": 3.6},
        "loss": {"float16": 0.002, "bfloat16": 38e-5, "float32": 9.6, "float64": 9.6},
        "stats": {"float16": 5.8, "bfloat16": 7.7},
    },
    # So are the 1,500 steps of attention.
    "torch": {
        "attention": {"float32": 45, "float64": 43},
        "conv-depthwise": {"float64": 3.7},
    },
}
TF = pytest.param("tf", marks=pytest.mark.tensorflow)
# The warning is PyTorch's, of how Keras makes a NumPy array of its tensors.
KERAS = pytest.param(
    "keras",
    marks=[
        pytest.mark.keras_dialect,
        pytest.mark.filterwarnings("ignore:__array__ implementation"),
    ],
)
KINDS = [
    pytest.param(*dialect.values, kind, marks=dialect.marks)
    for dialect in (TF, KERAS)
    for kind in kind_names()
    if dialect is TF or not load_kind(kind).no_keras
]
# Kinds that do a job of a layer of Keras.
KERAS_HAS = (
    "dense",
    "activation",
    "attention",
    "conv",
    "conv-2d",
    "conv-depthwise",
    "embedding",
    "norm",
    "pool",
    "resize",
    "stats",
)
# Cases in which the layer of Keras is not what its formula says, by ten bounds and more,
# on Keras 2 and 3.
FAULTS_OF_KERAS = [
    ("norm", "constant", "float32", "rounding of the mean is divided by an epsilon"),
    ("norm", "constant", "mixed_float16", "rounding of the mean is all that is left"),
    ("norm", "offset", "float32", "the mean is taken out once"),
    ("attention", "top", "mixed_float16", "scores overflow"),
    ("attention", "masked whole", "mixed_float16", "padding is attended to"),
    ("attention", "masked whole", "float32", "padding is attended to"),
    ("conv-depthwise", "top, passing", "mixed_float16", "a window's sum overflows"),
    ("pool", "masked whole", "mixed_float16", "0 / 0"),
    ("pool", "masked whole", "float32", "0 / 0"),
    ("pool", "long", "float32", "a sum of 70,000 steps"),
    ("resize", "wide", "float32", "places are float32, with few fractions"),
    ("resize", "ordinary", "float64", "interpolation is float32"),
    ("stats", "training, constant", "float32", "rounding of the mean is left"),
]  # fmt: skip


def bound(kind: str, case: str, policy: str, backend: str) -> float:
    """What a kind may be off by."""
    dtype = policy.removeprefix("mixed_")
    key = f"{kind}: {case}" if f"{kind}: {case}" in BOUNDS else kind
    usual = BOUNDS[key][DTYPES.index(dtype)]
    return APART.get(backend, {}).get(key, {}).get(dtype, usual)


@pytest.fixture(scope="module")
def meter(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Meter:
    """Of the tf dialect, if a test does not name another."""
    from measure import Keras, Meter, TensorFlow

    keras = getattr(request, "param", "tf") == "keras"
    folder = tmp_path_factory.mktemp("kinds")
    return Meter(folder, Keras() if keras else TensorFlow())


@pytest.mark.tensorflow
def test_every_kind_has_an_oracle() -> None:
    from oracles import CASES, ORACLES

    kinds = {name.split(":")[0] for name in BOUNDS}
    assert set(kind_names()) == set(ORACLES) == set(CASES) == kinds


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("meter", "kind"), KINDS, indirect=["meter"])
def test_kind_is_what_its_formula_says(kind: str, policy: str, meter: Meter) -> None:
    found = meter.ours(kind, policy)
    allowed = {key: bound(kind, key[0], policy, meter.engine.backend) for key in found}
    wrong = {
        key: (off, allowed[key]) for key, off in found.items() if off > allowed[key]
    }
    assert found
    assert not wrong, "epsilons, and how many there may be"


@pytest.mark.tensorflow
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", KERAS_HAS)
def test_kind_is_as_near_as_the_layer_of_keras(
    kind: str, policy: str, meter: Meter
) -> None:
    """Within a factor of two, and the half epsilon that rounds the result."""
    ours, theirs = meter.ours(kind, policy), meter.keras(kind, policy)
    assert theirs
    wrong = {
        key: (ours[key], error)
        for key, error in theirs.items()
        if key[1] == "outputs" and not ours[key] <= 2 * error + 0.5
    }
    assert not wrong, "ours, and that of Keras"


@pytest.mark.tensorflow
@pytest.mark.parametrize(("kind", "case", "policy", "why"), FAULTS_OF_KERAS)
def test_kind_is_right_where_keras_is_not(
    kind: str, case: str, policy: str, why: str, meter: Meter
) -> None:
    ours, theirs = meter.ours(kind, policy), meter.keras(kind, policy)
    key = (case, "outputs")
    most = bound(kind, case, policy, meter.engine.backend)
    assert ours[key] <= most
    assert theirs[key] > 10 * most, f"Keras no longer has this fault: {why}"


@pytest.mark.tensorflow
@pytest.mark.parametrize("policy", POLICIES)
def test_attention_of_nothing_is_nothing(policy: str, meter: Meter) -> None:
    """Where keras.layers.Attention gives a mean of what is masked, or in float16 none."""
    import numpy as np
    import tensorflow as tf

    float64 = meter.engine.float64
    dtype = policy.removeprefix("mixed_")
    steps, mask = tf.fill((1, 3, 4), tf.constant(4, dtype)), tf.zeros((1, 3), "bool")
    layer = meter.layer("attention")(heads=2, size=2, dtype=policy)
    assert not np.any(float64(layer(steps, mask=mask)))
    # Scores of -64, from which Keras takes the largest number of float16 to mask them.
    keras = tf.keras.layers.Attention(dtype=policy)
    theirs = float64(keras([-steps, steps], mask=[None, mask]))
    assert np.all(np.isnan(theirs) if dtype == "float16" else theirs == 4)


def off(drawn: Any, share: Any) -> float:
    """How far draws are from their distribution: Kolmogorov 1933, times the root of n.

    More than 1.95 happens once in a thousand times.
    """
    import numpy as np

    drawn = np.sort(drawn, axis=None)
    steps = np.arange(drawn.size + 1) / drawn.size
    right = np.vectorize(share)(drawn)
    far = max(np.max(steps[1:] - right), np.max(right - steps[:-1]))
    return float(far) * math.sqrt(drawn.size)


def gaussian(x: float) -> float:
    return (1 + math.erf(x / math.sqrt(2))) / 2


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("meter", [TF, KERAS], indirect=True)
def test_draws_have_their_distribution(policy: str, meter: Meter) -> None:
    """Noise and samples are Gaussian, as is that of Keras; brightness is uniform."""
    import numpy as np

    float64, dtype = meter.engine.float64, policy.removeprefix("mixed_")
    zeros = meter.engine.cast(np.zeros((4000, 5)), dtype)
    gaussian_noise = meter.engine.keras.layers.GaussianNoise
    layers = {
        "noise": meter.layer("noise")(stddev=0.5, dtype=policy),
        "sample": meter.layer("sample")(units=5, dtype=policy),
        "GaussianNoise": gaussian_noise(0.5, seed=1, dtype=policy),
    }
    for name, layer in layers.items():
        drawn = float64(layer(zeros, training=True))
        assert off(drawn / (1 if name == "sample" else 0.5), gaussian) < 1.95, name
    images = np.tile(np.array([1.0, 2.0]).reshape((1, 2, 1)), (4000, 1, 1, 1))
    augment = meter.layer("augment")(strength=0.2, dtype=policy)
    seen = float64(augment(meter.engine.cast(images, dtype), training=True))
    factors = seen.min((1, 2, 3))
    flipped = seen[:, 0, 0, 0] > seen[:, 0, 1, 0]
    assert abs(flipped.mean() - 0.5) < 0.03
    for half in (factors[flipped], factors[~flipped]):
        # A uniform factor has no half more than its own rounding beyond the bounds.
        assert off((half - 0.8) / 0.4, lambda x: min(max(x, 0.0), 1.0)) < 1.95
    assert np.ptp(factors) < 0.41
