"""What every kind computes, from its formula, in NumPy's float64, and inputs that try it.

Nothing here is taken from the templates, and no oracle from how a layer does it: sums over
windows are loops, a spectrum is a product with sines. Inputs and weights come rounded to
the dtype that is tried, so that an error is the layer's own.
"""

from __future__ import annotations

import functools
import inspect
import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Array: TypeAlias = "np.ndarray[Any, Any]"
Result = dict[str, Array]
TOP = 6e4
"""Near the largest float16, 65504."""


class Case(NamedTuple):
    """One call of a layer."""

    name: str
    inputs: Array
    weights: Mapping[str, Array] = {}
    """By attribute, `hidden.kernel` for one of a sublayer."""
    arguments: Mapping[str, Any] = {}
    """Of the constructor."""
    extra: Mapping[str, Any] = {}
    """Further arguments of the call."""
    upstream: Array | None = None
    """The gradient of the outputs, where that of the inputs is judged too."""
    reveals: Array | None = None
    """Inputs whose outputs show what is drawn at random."""


def answer(kind: str, case: Case, draws: Array | None = None) -> Result:
    """What is right for a case: the outputs, and what else the kind promises."""
    known: dict[str, Any] = {
        "upstream": case.upstream,
        "draws": draws,
        **case.arguments,
        **case.extra,
        **{name.replace(".", "_"): value for name, value in case.weights.items()},
    }
    oracle = ORACLES[kind]
    names = list(inspect.signature(oracle).parameters)[1:]
    return oracle(case.inputs, **{name: known[name] for name in names if name in known})


def error(seen: Array, right: Array, epsilon: float) -> float:
    """The largest error in epsilons of the largest value in its row, the last axis.

    A row of zeros must be zeros, and what is not finite is infinitely wrong.
    """
    if seen.shape != right.shape or not np.all(np.isfinite(seen)):
        return math.inf
    off, size = np.abs(seen - right), np.abs(right)
    size = np.broadcast_to(
        size.max(-1, keepdims=True) if size.ndim else size, off.shape
    )
    if np.any(off[size == 0]):
        return math.inf
    share = np.divide(off, size, out=np.zeros_like(off), where=size > 0)
    return float(share.max() / epsilon)


# --------------------------------------------------------------------- the formulas


def linear(x: Array) -> Array:
    return x


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), by tanh, which does not overflow."""
    return (1 + np.tanh(x / 2)) / 2


def softmax(x: Array) -> Array:
    powers: Array = np.exp(x - x.max(-1, keepdims=True))
    shares: Array = powers / powers.sum(-1, keepdims=True)
    return shares


ACTIVATIONS: dict[str | None, Callable[[Array], Array]] = {
    None: linear,
    "linear": linear,
    "relu": relu,
    "softmax": softmax,
    "tanh": np.tanh,
}


def centred(x: Array, axis: int) -> Array:
    """Distances from the mean, which are exactly 0 where all values are equal."""
    from_first = x - np.take(x, [0], axis)
    away: Array = from_first - from_first.mean(axis, keepdims=True)
    return away


def dense(
    inputs: Array, kernel: Array, bias: Array, activation: str | None = None
) -> Result:
    """g(W x + b): Goodfellow, Bengio, Courville 2016, section 6.1."""
    return {"outputs": ACTIVATIONS[activation](inputs @ kernel + bias)}


def scale(inputs: Array, scale: Array, bias: Array) -> Result:
    """The last line of algorithm 1 of Ioffe and Szegedy 2015: gamma x + beta."""
    return {"outputs": scale * inputs + bias}


def activation(inputs: Array, slope: Array) -> Result:
    """He, Zhang, Ren, Sun 2015 (rectifiers), eq. 1."""
    return {"outputs": np.maximum(inputs, 0) + slope * np.minimum(inputs, 0)}


def attention(
    inputs: Array,
    query: Array,
    key: Array,
    value: Array,
    output_kernel: Array,
    causal: bool = False,
    mask: Array | None = None,
) -> Result:
    """Vaswani et al. 2017, eq. 1 and section 3.2.2, a head and a row at a time."""
    rows, steps, _ = inputs.shape
    outputs = np.zeros_like(inputs)
    for row in range(rows):
        x = inputs[row]
        keep = np.ones(steps, bool) if mask is None else mask[row]
        for head in range(query.shape[1]):
            q, k, v = (x @ w[:, head] for w in (query, key, value))
            scores = q @ k.T / math.sqrt(query.shape[2])
            for step in range(steps):
                seen = keep & (np.arange(steps) <= step) if causal else keep
                if seen.any():
                    shares = softmax(scores[step, seen])
                    outputs[row, step] += shares @ v[seen] @ output_kernel[head]
    return {"outputs": outputs}


def augment(
    inputs: Array, draws: Array | None = None, training: bool = False
) -> Result:
    """Reflections: Krizhevsky, Sutskever, Hinton 2012, section 4.1; and one factor each.

    The images that show the draws hold 1 on the left and 2 on the right.
    """
    if not training or draws is None:
        return {"outputs": inputs}
    outputs = np.empty(inputs.shape)
    for image, (x, seen) in enumerate(zip(inputs, draws, strict=True)):
        flipped = seen[0, 0, 0] > seen[0, -1, 0]
        outputs[image] = seen.min() * (np.flip(x, 1) if flipped else x)
    return {"outputs": outputs}


def block(
    inputs: Array,
    hidden_kernel: Array,
    hidden_bias: Array,
    projection_kernel: Array,
    projection_bias: Array,
    activation: str = "relu",
) -> Result:
    """He, Zhang, Ren, Sun 2016 (residual learning), eq. 1: y = F(x) + x."""
    inner = ACTIVATIONS[activation](inputs @ hidden_kernel + hidden_bias)
    return {"outputs": inner @ projection_kernel + projection_bias + inputs}


def padded(x: Array, axis: int, span: int, stride: int) -> Array:
    """As TensorFlow documents SAME: as many zeros on both sides, the odd one at the end."""
    size = x.shape[axis]
    missing = max((math.ceil(size / stride) - 1) * stride + span - size, 0)
    pads = [(0, 0)] * x.ndim
    pads[axis] = (missing // 2, missing - missing // 2)
    return np.pad(x, pads)


def conv(
    inputs: Array,
    kernel: Array,
    bias: Array,
    dilation: int = 1,
    activation: str | None = None,
) -> Result:
    """Goodfellow, Bengio, Courville 2016, eq. 9.6; dilated: Yu and Koltun 2016, eq. 2."""
    taps, steps = len(kernel), inputs.shape[1]
    x = padded(inputs, 1, (taps - 1) * dilation + 1, 1)
    total = np.zeros((*inputs.shape[:2], kernel.shape[-1]))
    for tap in range(taps):
        total += x[:, tap * dilation :][:, :steps] @ kernel[tap]
    return {"outputs": ACTIVATIONS[activation](total + bias)}


def conv_2d(
    inputs: Array,
    kernel: Array,
    bias: Array,
    strides: int = 1,
    activation: str | None = None,
) -> Result:
    """Goodfellow, Bengio, Courville 2016, eq. 9.6, over two axes."""
    taps = len(kernel)
    x = padded(padded(inputs, 1, taps, strides), 2, taps, strides)
    height, width = (math.ceil(side / strides) for side in inputs.shape[1:3])
    total = np.zeros((len(inputs), height, width, kernel.shape[-1]))
    for row in range(taps):
        for column in range(taps):
            window = x[:, row::strides, column::strides][:, :height, :width]
            total += window @ kernel[row, column]
    return {"outputs": ACTIVATIONS[activation](total + bias)}


def conv_depthwise(
    inputs: Array, kernel: Array, bias: Array, activation: str | None = None
) -> Result:
    """Howard et al. 2017 (MobileNets), eq. 3."""
    _, height, width, _ = inputs.shape
    taps = len(kernel)
    x = padded(padded(inputs, 1, taps, 1), 2, taps, 1)
    total = np.zeros_like(inputs)
    for row in range(taps):
        for column in range(taps):
            window = x[:, row:, column:][:, :height, :width]
            total += window * kernel[row, column, :, 0]
    return {"outputs": ACTIVATIONS[activation](total + bias)}


def embedding(inputs: Array, table: Array) -> Result:
    """Bengio, Ducharme, Vincent, Jauvin 2003, section 2: row C(i) of word i."""
    rows = [table[int(word)] for word in inputs.ravel()]
    return {"outputs": np.reshape(rows, (*inputs.shape, -1))}


def features(inputs: Array, floor: float = 1e-6) -> Result:
    """The logarithm of |A_k| squared, with A_k as NumPy's page on its `fft` defines it."""
    samples = inputs.shape[-1]
    # The angle is that of the product modulo the period, which is exact.
    turns = np.outer(np.arange(samples), np.arange(samples // 2 + 1)) % samples
    angles = 2 * np.pi * turns / samples
    power = (inputs @ np.cos(angles)) ** 2 + (inputs @ np.sin(angles)) ** 2
    return {"outputs": np.log(power + floor)}


def film(
    inputs: Array, condition: Array, scale_kernel: Array, shift_kernel: Array
) -> Result:
    """Perez et al. 2018, eq. 2, with 1 + gamma in place of gamma."""
    outputs = np.empty_like(inputs)
    for row, (x, c) in enumerate(zip(inputs, condition, strict=True)):
        outputs[row] = x * (1 + c @ scale_kernel) + c @ shift_kernel
    return {"outputs": outputs}


def gradient(inputs: Array, upstream: Array, rate: float = 1.0) -> Result:
    """Ganin and Lempitsky 2015, section 3: R(x) = x, dR/dx = -lambda I."""
    return {"outputs": inputs, "gradient": -rate * upstream}


def graph(
    inputs: Array,
    edges: Array,
    kernel: Array,
    bias: Array,
    activation: str | None = None,
) -> Result:
    """Hamilton, Ying, Leskovec 2017, algorithm 1, line 4, by a mean; then a projection.

    That is line 5 without the node's own row. The layer projects first: it is linear.
    """
    outputs = np.empty((len(inputs), kernel.shape[-1]))
    for node in range(len(inputs)):
        senders = edges[edges[:, 1] == node, 0]
        near = inputs[senders].mean(0) if senders.size else np.zeros(inputs.shape[-1])
        outputs[node] = near @ kernel + bias
    return {"outputs": ACTIVATIONS[activation](outputs)}


def loss(inputs: Array, rate: float = 0.01) -> Result:
    """A penalty of activities: the mean of their squares.

    Goodfellow, Bengio, Courville 2016, section 7.10, with that for Omega.
    """
    return {"outputs": inputs, "loss": np.asarray(rate * (inputs**2).mean())}


def noise(inputs: Array, draws: Array | None = None, training: bool = False) -> Result:
    """x + xi, as in Bishop 1995 (training with noise); xi is seen where x is 0."""
    return {"outputs": inputs if draws is None or not training else inputs + draws}


def norm(inputs: Array, gamma: Array, beta: Array, epsilon: float = 1e-6) -> Result:
    """Ba, Kiros, Hinton 2016, eq. 3 and 4, with an epsilon below the root."""
    distance = centred(inputs, -1)
    deviation = np.sqrt((distance**2).mean(-1, keepdims=True) + epsilon)
    return {"outputs": gamma / deviation * distance + beta}


def pool(inputs: Array, mask: Array | None = None) -> Result:
    """Lin, Chen, Yan 2014, section 3.2, of the steps that count; 0 without any."""
    outputs = np.zeros((len(inputs), inputs.shape[-1]))
    for row, x in enumerate(inputs):
        kept = x if mask is None else x[mask[row]]
        if len(kept):
            outputs[row] = kept[0] - centred(kept, 0)[0]
    return {"outputs": outputs}


def position(inputs: Array, longest_wave: float = 10000.0) -> Result:
    """Vaswani et al. 2017, section 3.5."""
    _, steps, size = inputs.shape
    waves = np.empty((steps, size))
    for feature in range(size):
        angles = np.arange(steps) / longest_wave ** (feature // 2 * 2 / size)
        waves[:, feature] = np.cos(angles) if feature % 2 else np.sin(angles)
    return {"outputs": inputs + waves}


def quantize(inputs: Array, upstream: Array, step: float = 0.25) -> Result:
    """Bengio, Leonard, Courville 2013: its gradient is passed straight through."""
    return {"outputs": np.rint(inputs / step) * step, "gradient": upstream}


def resize(inputs: Array, factor: int = 2) -> Result:
    """Linear interpolation along both axes: Press et al. 2007, section 3.6.

    A value stands for the middle of its pixel; beyond the outermost middles it stays.
    """
    outputs = inputs
    for axis in (1, 2):
        size = outputs.shape[axis]
        # In parts of a pixel, so that places are exact.
        middles, places = 2 * factor * np.arange(size), 2 * np.arange(size * factor)
        outputs = np.apply_along_axis(
            functools.partial(np.interp, places + 1 - factor, middles), axis, outputs
        )
    return {"outputs": outputs}


def rnn_cell(
    inputs: Array,
    states: Array,
    kernel: Array,
    recurrent_kernel: Array,
    bias: Array,
    activation: str = "tanh",
) -> Result:
    """Cho et al. 2014, eq. 6 and 7, and 8 without a reset gate; over steps if there are.

    `inputs` of three axes are steps, one after the other.
    """
    state = states
    for x in np.moveaxis(inputs, 1, 0) if inputs.ndim > 2 else [inputs]:
        gate, candidate = (
            x @ kernel[i] + state @ recurrent_kernel[i] + bias[i] for i in range(2)
        )
        z = sigmoid(gate)
        state = z * state + (1 - z) * ACTIVATIONS[activation](candidate)
    return {"outputs": state}


def sample(
    inputs: Array,
    mean_kernel: Array,
    variance_kernel: Array,
    rate: float = 1.0,
    draws: Array | None = None,
    training: bool = False,
) -> Result:
    """Kingma and Welling 2014, eq. 10: mu + sigma epsilon, and -D_KL as in appendix B.

    Inputs of 0 have the mean 0 and the deviation 1: they show epsilon.
    """
    mean, log_variance = inputs @ mean_kernel, inputs @ variance_kernel
    inner = 1 + log_variance - mean**2 - np.exp(log_variance)
    outputs = mean
    if training and draws is not None:
        outputs = mean + np.sqrt(np.exp(log_variance)) * draws
    divergence = -inner.sum(-1).mean() / 2
    return {"outputs": outputs, "loss": np.asarray(rate * divergence)}


def stats(
    inputs: Array,
    mean: Array,
    variance: Array,
    gamma: Array,
    beta: Array,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    training: bool = False,
) -> Result:
    """Ioffe and Szegedy 2015, algorithm 1, with moving averages for inference."""
    new_mean, new_variance = mean, variance
    distance = inputs - mean
    if training:
        x = inputs.reshape(-1, inputs.shape[-1])
        distance = centred(x, 0)
        batch_mean, batch_variance = x[0] - distance[0], (distance**2).mean(0)
        new_mean = momentum * mean + (1 - momentum) * batch_mean
        new_variance = momentum * variance + (1 - momentum) * batch_variance
        distance, variance = distance.reshape(inputs.shape), batch_variance
    outputs = gamma * distance / np.sqrt(variance + epsilon) + beta
    return {"outputs": outputs, "mean": new_mean, "variance": new_variance}


def wrapper(
    inputs: Array, gate: Array, layer_kernel: Array, layer_bias: Array
) -> Result:
    """The gated branch of Bachlechner et al. 2021, eq. 1, alpha F(x): F is dense."""
    return {"outputs": gate * (inputs @ layer_kernel + layer_bias)}


ORACLES: dict[str, Callable[..., Result]] = {
    "dense": dense,
    "scale": scale,
    "activation": activation,
    "attention": attention,
    "augment": augment,
    "block": block,
    "conv": conv,
    "conv-2d": conv_2d,
    "conv-depthwise": conv_depthwise,
    "embedding": embedding,
    "features": features,
    "film": film,
    "gradient": gradient,
    "graph": graph,
    "loss": loss,
    "noise": noise,
    "norm": norm,
    "pool": pool,
    "position": position,
    "quantize": quantize,
    "resize": resize,
    "rnn-cell": rnn_cell,
    "sample": sample,
    "stats": stats,
    "wrapper": wrapper,
}


# ----------------------------------------------------------------------- the inputs


def normal(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def fan(seed: int, *shape: int) -> Array:
    """A kernel that leaves the size of its inputs: `in` is all axes but the last."""
    return normal(seed, *shape) / math.sqrt(math.prod(shape[:-1]))


def mixing(seed: int, *shape: int) -> Array:
    """A kernel of shares of almost 1: what it makes of TOP is no larger."""
    shares = np.random.default_rng(seed).uniform(0.1, 1, shape)
    kernel: Array = 0.98 * shares / shares.sum(tuple(range(len(shape) - 1)))
    return kernel


def near_top(seed: int, *shape: int) -> Array:
    return TOP * np.random.default_rng(seed).uniform(0.9, 1, shape)


def sized(shape: tuple[int, ...], *sizes: float) -> dict[str, Array]:
    """Ordinary inputs, larger ones and zeros, by what they are called."""
    inputs = normal(1, *shape)
    named = {f"x{size:g}": inputs * size for size in sizes}
    return {"ordinary": inputs, **named, "zeros": 0 * inputs}


def signs(*shape: int) -> Array:
    return np.sign(normal(4, *shape))


def dense_cases() -> list[Case]:
    bias = normal(3, 24)
    weights = {"kernel": fan(2, 48, 24), "bias": bias}
    cases = [
        Case(name, inputs, weights, {"units": 24})
        for name, inputs in sized((32, 48), 300).items()
    ]
    mixed = {"kernel": mixing(2, 48, 24), "bias": bias}
    arguments = {"units": 24, "activation": "softmax"}
    return [
        *cases,
        Case("softmax", normal(1, 32, 48), weights, arguments),
        Case("top", near_top(1, 32, 48), mixed, {"units": 24, "activation": "relu"}),
    ]


def scale_cases() -> list[Case]:
    weights = {"scale": normal(2, 48), "bias": normal(3, 48)}
    near = {"scale": 1 + 2.0**-7 * signs(48), "bias": np.zeros(48)}
    return [
        *(Case(n, x, weights) for n, x in sized((32, 48), 300).items()),
        Case("top", near_top(1, 32, 48), near),
    ]


def activation_cases() -> list[Case]:
    weights = {"slope": normal(2, 48) / 4}
    return [Case(n, x, weights) for n, x in sized((32, 48), 300, 1.2e4).items()]


def attention_cases() -> list[Case]:
    size, heads, head = 16, 2, 8
    names = ("query", "key", "value")
    weights = {n: normal(i, size, heads, head) / 4 for i, n in enumerate(names, 2)}
    weights = {**weights, "output_kernel": fan(5, heads, head, size)}
    shape = {"heads": heads, "size": head}
    x, keep = normal(1, 4, 12, size), normal(6, 4, 12) > 0
    keep[:, 0], keep[1] = True, True
    keep[2] = np.arange(12) == 0
    whole = keep & [[False], [True], [True], [True]]
    # Each step is another unit, so that it attends to its equals alone: the scores of
    # these are far above the largest float16, and exact, as the kernels are.
    units = np.eye(size)[np.arange(12) % 8]
    exact = {n: np.eye(size).reshape(size, heads, head) for n in names}
    exact = {**exact, "output_kernel": np.eye(size).reshape(heads, head, size)}
    return [
        Case("ordinary", x, weights, shape),
        Case("causal", x, weights, {**shape, "causal": True}),
        Case("masked", x, weights, shape, {"mask": keep}),
        Case("causal, masked", x, weights, {**shape, "causal": True}, {"mask": keep}),
        Case("x300", 300 * units[None], exact, shape),
        Case("x300, masked", np.stack([300 * units] * 4), exact, shape, {"mask": keep}),
        Case("masked whole", x, weights, shape, {"mask": whole}),
        Case("top", TOP * units[None], exact, shape),
        Case("zeros", 0 * x, weights, shape),
        Case("long", normal(7, 1, 1500, size), weights, shape),
        Case("one step", x[:, :1], weights, {**shape, "causal": True}),
    ]


def augment_cases() -> list[Case]:
    shape = (16, 3, 4, 2)
    shown = np.broadcast_to(np.array([1.0, 1, 2, 2])[:, None], shape)
    on: dict[str, Any] = {"training": True}
    images = np.random.default_rng(1).integers(0, 256, shape)
    return [
        Case("inference", normal(1, *shape)),
        *(
            Case(name, x, {}, {}, on, None, shown)
            for name, x in sized(shape, 300).items()
        ),
        Case("bytes", images.astype("uint8"), {}, {}, on, None, shown),
        Case("top", near_top(1, *shape), {}, {"strength": 0.05}, on, None, shown),
    ]


def block_cases() -> list[Case]:
    weights = {
        "hidden.kernel": fan(2, 48, 64),
        "hidden.bias": normal(3, 64),
        "projection.kernel": fan(4, 64, 48),
        "projection.bias": normal(5, 48),
    }
    arguments = {"units": 64}
    cases = sized((32, 48), 300, 8e3).items()
    return [Case(name, x, weights, arguments) for name, x in cases]


def conv_cases() -> list[Case]:
    weights = {"kernel": fan(2, 3, 16, 24), "bias": normal(3, 24)}
    x, shape = normal(1, 4, 31, 16), {"filters": 24}
    wide = {"kernel": fan(2, 5, 16, 24), "bias": normal(3, 24)}
    even = {"kernel": fan(2, 4, 16, 24), "bias": normal(3, 24)}
    mixed = {"kernel": mixing(2, 3, 16, 24), "bias": normal(3, 24)}
    return [
        *(Case(n, s, weights, shape) for n, s in sized(x.shape, 300).items()),
        Case("dilated", x, wide, {**shape, "kernel_size": 5, "dilation": 3}),
        Case("even kernel", x, even, {**shape, "kernel_size": 4}),
        Case("top", near_top(1, *x.shape), mixed, shape),
    ]


def conv_2d_cases() -> list[Case]:
    weights = {"kernel": fan(2, 3, 3, 8, 24), "bias": normal(3, 24)}
    x, shape = normal(1, 2, 9, 12, 8), {"filters": 24}
    mixed = {"kernel": mixing(2, 3, 3, 8, 24), "bias": normal(3, 24)}
    return [
        *(Case(n, s, weights, shape) for n, s in sized(x.shape, 300).items()),
        Case("strides", x, weights, {**shape, "strides": 2}),
        Case("large strides", x, weights, {**shape, "strides": 4}),
        Case("top", near_top(1, *x.shape), mixed, shape),
    ]


def conv_depthwise_cases() -> list[Case]:
    weights = {"kernel": normal(2, 3, 3, 16, 1) / 3, "bias": normal(3, 16)}
    x = normal(1, 2, 9, 12, 16)
    shares = np.moveaxis(mixing(2, 3, 3, 1, 16), 3, 2)
    # Two rows of a window may sum to more than the largest float16, all three to less.
    rows = TOP * np.array([1, -1, 1, 1, -1, 1, 1, -1, 1.0])
    column = np.zeros((3, 3, 16, 1))
    column[:, 1] = 1
    return [
        *(Case(n, s, weights) for n, s in sized(x.shape, 300).items()),
        Case("top", near_top(1, *x.shape), {"kernel": shares, "bias": np.zeros(16)}),
        Case(
            "top, passing",
            np.broadcast_to(rows[:, None, None], (2, 9, 4, 16)),
            {"kernel": column, "bias": np.zeros(16)},
        ),
    ]


def embedding_cases() -> list[Case]:
    arguments = {"vocabulary": 70_001, "units": 8}
    weights = {"table": normal(2, 70_001, 8)}
    ids = np.array(
        [[0, 1, 255, 257], [2047, 2049, 4099, 65_537], [70_000, 3, 3, 69_999]]
    )
    return [
        Case("ids", ids, weights, arguments),
        Case("masked", ids, weights, {**arguments, "mask_zero": True}),
        Case("top", ids, {"table": near_top(2, 70_001, 8)}, arguments),
    ]


def features_cases() -> list[Case]:
    shape = (16, 3, 64)
    return [
        *(Case(name, x) for name, x in sized(shape, 300, 8e3).items()),
        Case("odd length", normal(1, 16, 63)),
        Case("constant", np.full(shape, 300.0)),
        Case("floor", normal(1, *shape) / 300, {}, {"floor": 0.01}),
    ]


def film_cases() -> list[Case]:
    weights = {"scale_kernel": fan(2, 12, 48), "shift_kernel": fan(3, 12, 48)}
    arguments, condition = {"condition_size": 12}, {"condition": normal(4, 8, 12)}
    sizes = sized((8, 5, 48), 300, 3e3).items()
    large = {"condition": 60 * condition["condition"]}
    return [
        *(Case(name, x, weights, arguments, condition) for name, x in sizes),
        Case("large condition", normal(1, 8, 5, 48), weights, arguments, large),
    ]


def gradient_cases() -> list[Case]:
    sizes = sized((32, 48), 300, 1.2e4).items()
    return [
        Case(name, x, {}, {"rate": 0.7}, {}, normal(2, *x.shape)) for name, x in sizes
    ]


def graph_cases() -> list[Case]:
    nodes = 40
    random = np.random.default_rng(5)
    weights = {"kernel": fan(2, 16, 24), "bias": normal(3, 24)}
    some = random.integers(0, nodes - 5, (200, 2))
    star = np.stack([random.integers(0, nodes, 5000), np.zeros(5000, int)], -1)
    shape = {"units": 24}
    return [
        *(
            Case(name, x, weights, shape, {"edges": some})
            for name, x in sized((nodes, 16), 300).items()
        ),
        Case("star", 300 * normal(1, nodes, 16), weights, shape, {"edges": star}),
        Case(
            "top",
            near_top(1, nodes, 16),
            {"kernel": mixing(2, 16, 24), "bias": normal(3, 24)},
            shape,
            {"edges": star},
        ),
        Case("no edges", normal(1, nodes, 16), weights, shape, {"edges": some[:0]}),
        Case(
            "node numbers",
            normal(1, 4100, 16),
            weights,
            shape,
            {"edges": np.array([[4099, 2049], [2049, 4097], [4097, 257]])},
        ),
    ]


def loss_cases() -> list[Case]:
    return [
        *(Case(n, x) for n, x in sized((32, 48), 300, 1.2e4).items()),
        Case("long", 300 * normal(1, 4, 20_000)),
    ]


def noise_cases() -> list[Case]:
    on: dict[str, Any] = {"training": True}
    zeros = np.zeros((32, 48))
    return [
        Case("inference", normal(1, 32, 48)),
        *(
            Case(name, x, {}, {"stddev": 0.5}, on, None, zeros)
            for name, x in sized((32, 48), 300, 1.2e4).items()
        ),
    ]


def norm_cases() -> list[Case]:
    weights = {"gamma": normal(2, 48), "beta": normal(3, 48)}
    plain = {"gamma": np.ones(48), "beta": np.zeros(48)}
    level = np.array([0.1, 1.7, 300.3, 1e4, TOP])[:, None]
    spread = normal(1, 32, 48)
    return [
        *(Case(n, x, weights) for n, x in sized((32, 48), 300, 1e-3).items()),
        Case("top", np.clip(TOP * signs(32, 48), -TOP, TOP), weights),
        Case("constant", np.broadcast_to(level, (5, 48)), weights),
        Case("constant, plain", np.broadcast_to(level, (5, 48)), plain),
        Case("offset", 100 + spread, weights),
        Case("many features", 300 * normal(1, 2, 5000), {
            "gamma": np.ones(5000), "beta": np.zeros(5000)
        }),
    ]  # fmt: skip


def pool_cases() -> list[Case]:
    x, keep = normal(1, 4, 12, 16), normal(6, 4, 12) > 0
    keep[:, 0], keep[1] = True, True
    whole = keep & [[False], [True], [True], [True]]
    padding = np.where(keep[..., None], x, np.inf)
    long = np.full((1, 70_000, 4), 300.3)
    some = {"mask": np.arange(70_000)[None] % 3 > 0}
    return [
        *(Case(n, s) for n, s in sized(x.shape, 300).items()),
        Case("top", near_top(1, *x.shape)),
        Case("masked", x, {}, {}, {"mask": keep}),
        Case("masked whole", x, {}, {}, {"mask": whole}),
        Case("infinite padding", padding, {}, {}, {"mask": keep}),
        Case("long", long),
        Case("long, varied", 100 + normal(1, 1, 70_000, 4)),
        Case("long, masked", long, {}, {}, some),
    ]


def position_cases() -> list[Case]:
    sizes = sized((2, 40, 16), 300).items()
    return [
        *(Case(name, x) for name, x in sizes),
        Case("odd size", normal(1, 2, 40, 15)),
        Case("top", near_top(1, 2, 40, 16)),
        Case("another wave", normal(1, 2, 40, 16), {}, {"longest_wave": 333.3}),
        Case("long", np.zeros((1, 9000, 16))),
    ]


def quantize_cases() -> list[Case]:
    sizes = sized((32, 48), 300, 1.2e4)
    middles = np.arange(-24, 24) * 0.125
    far = np.random.default_rng(3).integers(-200, 200, (32, 48)) + 0.2
    return [
        *(
            Case(name, x, {}, {}, {}, normal(2, *x.shape))
            for name, x in {**sizes, "middles": middles[None]}.items()
        ),
        # Between two steps, where no rounding of the quotient makes it another one.
        Case("of 0.3", 0.3 * far, {}, {"step": 0.3}, {}, normal(2, 32, 48)),
        Case("fine", normal(1, 32, 48), {}, {"step": 2.0**-6}, {}, normal(2, 32, 48)),
    ]


def resize_cases() -> list[Case]:
    shape = (2, 5, 7, 8)
    return [
        *(Case(name, x) for name, x in sized(shape, 300).items()),
        Case("thrice", normal(1, *shape), {}, {"factor": 3}),
        Case("once", normal(1, *shape), {}, {"factor": 1}),
        Case("one pixel", normal(1, 2, 1, 1, 8)),
        Case("top", TOP * signs(*shape), {}, {"factor": 3}),
        Case("wide", normal(1, 1, 1, 9001, 4), {}, {"factor": 3}),
    ]


def rnn_cell_cases() -> list[Case]:
    weights = {
        "kernel": normal(2, 2, 16, 24) / 4,
        "recurrent_kernel": normal(3, 2, 24, 24) / 5,
        "bias": normal(4, 2, 24),
    }
    shape, states = {"units": 24}, np.tanh(normal(5, 32, 24))
    sizes = sized((32, 16), 10).items()
    # Far beyond where both functions are flat, and not by a difference of large terms.
    flat = {**weights, "kernel": 2 * mixing(2, 2, 16, 24)}
    sides = 300 * np.abs(normal(1, 32, 16)) * signs(32, 1)
    return [
        *(Case(name, x, weights, shape, {"states": states}) for name, x in sizes),
        Case("x300", sides, flat, shape, {"states": states}),
        Case(
            "200 steps",
            normal(1, 4, 200, 16),
            weights,
            shape,
            {"states": np.zeros((4, 24))},
        ),
    ]


def sample_cases() -> list[Case]:
    weights = {
        "mean_kernel": fan(2, 48, 24),
        "variance_kernel": fan(3, 48, 24),
    }
    on, shape, zeros = {"training": True}, {"units": 24}, np.zeros((32, 48))
    return [
        Case("inference", normal(1, 32, 48), weights, shape),
        *(
            Case(name, x, weights, {**shape, "rate": 0.5}, on, None, zeros)
            for name, x in sized((32, 48), 6).items()
        ),
    ]


def stats_cases() -> list[Case]:
    state = {"mean": normal(2, 48), "variance": np.exp(normal(3, 48))}
    weights = {**state, "gamma": normal(4, 48), "beta": normal(5, 48)}
    large = {
        **weights,
        "mean": 300 * state["mean"],
        "variance": 9e4 * state["variance"],
    }
    on = {"training": True}
    constant = np.broadcast_to(300.3 + np.arange(48.0) / 3, (33, 48))
    return [
        *(Case(n, x, weights) for n, x in sized((32, 48)).items()),
        Case("x300", 300 * normal(1, 32, 48), large),
        *(
            Case(f"training, {name}", x, weights, {}, on)
            for name, x in sized((8, 4, 48), 300, 1e-3).items()
        ),
        Case("training, top", TOP * signs(32, 48), weights, {}, on),
        Case("training, constant", constant, weights, {}, on),
        Case("training, offset", 100 + normal(1, 32, 48), weights, {}, on),
    ]


def wrapper_cases() -> list[Case]:
    weights = {
        "gate": np.asarray(0.7),
        "layer.kernel": fan(2, 48, 24),
        "layer.bias": normal(3, 24),
    }
    return [Case(name, x, weights) for name, x in sized((32, 48), 300).items()]


CASES: dict[str, Callable[[], list[Case]]] = {
    "dense": dense_cases,
    "scale": scale_cases,
    "activation": activation_cases,
    "attention": attention_cases,
    "augment": augment_cases,
    "block": block_cases,
    "conv": conv_cases,
    "conv-2d": conv_2d_cases,
    "conv-depthwise": conv_depthwise_cases,
    "embedding": embedding_cases,
    "features": features_cases,
    "film": film_cases,
    "gradient": gradient_cases,
    "graph": graph_cases,
    "loss": loss_cases,
    "noise": noise_cases,
    "norm": norm_cases,
    "pool": pool_cases,
    "position": position_cases,
    "quantize": quantize_cases,
    "resize": resize_cases,
    "rnn-cell": rnn_cell_cases,
    "sample": sample_cases,
    "stats": stats_cases,
    "wrapper": wrapper_cases,
}
