"""Varied specs; the matrix of each must pass as generated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scaffold.grammar import parse
from scaffold.kinds import BY_WEIGHTS, kind_names
from scaffold.names import camel_case

if TYPE_CHECKING:
    from scaffold.spec import LayerSpec

DESCRIBED: dict[str, dict[str, Any]] = {
    "MyLayer": {"weights": "w,b"},
    "AskerDense": {
        "weights": "kernel[in,units]=glorot_uniform, bias[units]=zeros",
        "arguments": ["units:int", "activation:activation"],
    },
    "ScalarBias": {"weights": "v[]=zeros", "call": "inputs + v"},
    "KernelOnly": {"weights": "kernel"},
    "ReluDense": {"weights": "w,b", "arguments": ["activation:activation=relu"]},
    "SoftmaxDense": {"weights": "w,b", "arguments": ["activation:activation=softmax"]},
    "SizedDense": {"weights": "w,b", "arguments": ["units:int=32"]},
    "FeatureScale": {"kind": "scale"},
    "GammaBeta": {"weights": "gamma,beta"},
    "ScalarGain": {"weights": "gain[]=ones", "call": "inputs * gain"},
    "DesignExample": {
        "weights": "kernel[in,units]=he_normal, bias[units]=zeros, "
        "count[]:int32:frozen=zeros",
    },
    "StateShift": {
        "weights": "gamma[in]=ones, total[in]:state=zeros",
        "call": "inputs * gamma + total",
    },
    "PinnedScale": {
        "weights": "scale[in]:float32=ones, shift[in]:float64=zeros",
        "call": "inputs * scale + shift",
    },
    "FrozenTable": {
        "weights": "kernel[in,units]=glorot_normal, table[in]:frozen=ones",
        "call": "(inputs * table) @ kernel",
    },
    "FrozenHalf": {
        "weights": "gamma[in]=ones, table[in]:float16:frozen=ones",
        "call": "inputs * gamma * table",
    },
    "Counted": {
        "weights": "gamma[in]=ones, steps[]:int64:state=zeros, on[]:bool:frozen=ones",
        "call": "inputs * gamma * on + steps",
    },
    "Truncated": {
        "weights": "kernel[in,units]=truncated_normal(stddev=0.02), "
        "bias[units]=constant(0.1)",
    },
    "LowRank": {
        "weights": "down[in,rank]=he_uniform, up[rank,units]=lecun_normal, bias[units]",
        "arguments": ["rank:int=4", "units:int"],
        "call": "inputs @ down @ up + bias",
    },
    "ThreeDims": {
        "weights": "kernel[heads,in,size]=variance_scaling(scale=2.0)",
        "arguments": ["heads:int", "size:int=8"],
        "call": 'tf.einsum("bi,hio->bho", inputs, kernel)',
    },
    "SequenceKernel": {
        "weights": "kernel[3,in,units]=glorot_uniform, bias[units]",
        "call": 'tf.nn.conv1d(inputs, kernel, stride=1, padding="SAME") + bias',
    },
    "Arguments": {
        "weights": "w,b",
        "arguments": [
            "units:int=16",
            "activation:activation=tanh",
            "rate:float=0.1",
            "steps:int=3",
            "causal:bool=true",
            "mode:str=mean",
        ],
        "options": ["regularizers", "constraints"],
        "doc": "A dense layer with one argument of each type.",
    },
    "ScaledResidual": {
        "weights": "kernel[in,in]=glorot_uniform, alpha[]=constant(0.1)",
        "arguments": ["activation:activation=gelu"],
        "call": "inputs + alpha * activation(inputs @ kernel)",
    },
    "FixedSize": {"weights": "kernel[4,2]=he_normal", "call": "inputs @ kernel"},
    "RandomUniform": {
        "weights": "kernel[in,units]=random_uniform(-0.1, 0.1)",
        "call": "tf.nn.softplus(inputs @ kernel)",
    },
}

# Each kind as it comes, and with other names, arguments and options where it has some.
OTHERWISE: dict[str, dict[str, Any]] = {
    "attention": {"weights": "q, k, v, o", "arguments": ["heads:int=2", "size:int=3"]},
    "conv": {"weights": "w, b", "arguments": ["activation:activation=relu"]},
    "conv-2d": {"weights": "w", "arguments": ["strides:int=2", "filters:int=8"]},
    "conv-depthwise": {"weights": "w", "options": ["regularizers"]},
    "embedding": {"weights": "embeddings", "arguments": ["mask_zero:bool=true"]},
    "film": {"weights": "w_scale, w_shift", "options": ["constraints"]},
    "graph": {"weights": "w", "arguments": ["activation:activation=relu"]},
    "noise": {"arguments": ["stddev:float=0.5", "seed:int=7"]},
    "norm": {"weights": "gain", "arguments": ["epsilon:float=0.001"]},
    "norm-plain": {"kind": "norm", "weights": ""},
    "stats": {"weights": "mu, var", "arguments": ["momentum:float=0.9"]},
    "wrapper": {"weights": "gain=constant(0.5)", "options": ["regularizers"]},
}
# The ends of what each bound of a number allows.
ENDS = {
    "": ("-1e30", "0.0"),
    "positive": ("1e-30", "1e30"),
    "small": ("1e-30", "1.0"),
    "not negative": ("0.0", "1e30"),
    "share": ("0.0", "1.0"),
}


def at_an_end(kind: str, end: int) -> list[str]:
    """The arguments of a kind with each number that is no size at one of its ends."""
    ends = []
    for argument in parse("MyLayer", kind=kind).arguments:
        if argument.type == "float":
            ends.append(f"{argument.name}:float={ENDS[argument.bound][end]}")
        elif argument.bound:
            ends.append(f"{argument.name}:int={(1, 999_999_999)[end]}")
    return ends


for name in (name for name in kind_names() if name not in BY_WEIGHTS):
    for end, word in enumerate(("Low", "High")):
        if at_an_end(name, end):
            DESCRIBED[f"{word}{camel_case(name)}"] = {
                "kind": name,
                "arguments": at_an_end(name, end),
            }
    DESCRIBED[f"Kind{camel_case(name)}"] = {"kind": name}
for name, arguments in OTHERWISE.items():
    DESCRIBED[f"Other{camel_case(name)}"] = {"kind": name, **arguments}

SPECS = {name: parse(name, **arguments) for name, arguments in DESCRIBED.items()}


def skipped_by_intention(spec: LayerSpec) -> set[str]:
    """The tests that a kind skips, since it has no gradient to go by, or another."""
    skipped = set()
    sublayers = spec.kind in ("block", "wrapper")
    if not (sublayers or any(weight.trainable for weight in spec.weights)):
        skipped |= {"test_law_08_small_steps_reach_the_master"}
    if spec.kind == "sample":
        skipped |= {"test_law_08_small_steps_reach_the_master"}
    if spec.kind == "graph":  # its edges join any two rows of a batch
        skipped |= {"test_law_13_replicas_agree"}
    if spec.kind in ("gradient", "quantize"):
        skipped |= {"test_law_05_gradients_are_derivatives"}
    return skipped
