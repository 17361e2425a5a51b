"""Varied specs; the matrix of each must pass as generated."""

from __future__ import annotations

from typing import Any

from scaffold.grammar import parse

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

SPECS = {name: parse(name, **arguments) for name, arguments in DESCRIBED.items()}
