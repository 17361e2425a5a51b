"""What a law says when it fails: the whole message, word for word.

A message names the law and the policy, what was seen and expected, the likely cause,
and the line of the layer to look at. What depends on the machine is an N here, and the
words of an exception, which are TensorFlow's, are dots. Lines are wrapped to be read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from test_generated import module

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Outcome

pytestmark = pytest.mark.tensorflow

MESSAGE = re.compile(
    r"^Law \d+, \w+\.\n  Seen:     .*\.\n  Expected: .*\.\n  Look for: .*\.$",
    re.MULTILINE,
)
LINE = re.compile(r" <- line (\d+): (.*?)(?= <- line|\.$)", re.MULTILINE)

# The twin, and one of the messages that its tests fail with.
MESSAGES = {
    "GlobalPolicy": """
        Law 1, mixed_float16.
        Seen: outputs change with the global policy: bfloat16 where that is
        'mixed_bfloat16', float32 where it is 'float32'.
        Expected: the same outputs, since the layer has dtype='mixed_float16'.
        Look for: global_policy() or floatx() instead of self.compute_dtype
        <- line N: dtype = tf.keras.mixed_precision.global_policy().compute_dtype.
    """,
    "WeightInComputeDtype": """
        Law 2, mixed_float16.
        Seen: the weight 'w' is stored in float16.
        Expected: float32.
        Look for: dtype=self.variable_dtype in add_weight(name='w')
        <- line N: name="w",.
    """,
    "Float32Constant": """
        Law 3, mixed_float16.
        Seen: a call and its gradient raises InvalidArgumentError: ....
        Expected: no error.
        Look for: an operand in another dtype than the compute dtype: a float32
        constant, a weight or an input without its cast, or a sublayer without
        dtype=self.dtype_policy
        <- line N: return (inputs @ w + b) * tf.constant(0.5).
    """,
    "ScaledInFloat32": """
        Law 4, float64.
        Seen: N% of the outputs show the rounding of float32.
        Expected: none: float64 in, float64 throughout.
        Look for: 'float32' or floatx() where self.compute_dtype is meant
        <- line N: inputs = tf.cast(inputs, "float32")
        <- line N: gamma = tf.cast(self.gamma, "float32").
    """,
    "GradientCut": """
        Law 5, mixed_float16.
        Seen: no gradient reaches w.
        Expected: one that is not zero.
        Look for: tf.stop_gradient, .numpy(), a cast to an integer, or a weight that was
        read outside `call`
        <- line N: w = tf.stop_gradient(w).
    """,
    "HardCodedFloat16": """
        Law 6, mixed_bfloat16.
        Seen: Cast has a float16 result (node N).
        Expected: no half but the compute dtype, bfloat16.
        Look for: 'float16' or 'bfloat16' where self.compute_dtype is meant
        <- line N: inputs = tf.cast(inputs, "float16")
        <- line N: w = tf.cast(self.w, "float16").
    """,
    "VanishedEpsilon": """
        Law 7, mixed_float16.
        Seen: zero inputs: output 0 is not finite.
        Expected: finite values, as float64 has.
        Look for: a step that a narrow dtype cannot hold: an epsilon below 1e-7, a mask,
        square or sum beyond 65504, a difference of like numbers. Scale it, or compute
        it in at least float32
        <- line N: inputs = inputs / (tf.abs(inputs) + 1e-8).
    """,
    "MasterRoundedByAssign": """
        Law 8, mixed_float16.
        Seen: one loss-scaled step moves w by N.
        Expected: N, in float32.
        Look for: a weight that is stored in a half, or that `call` assigns from its
        reading in the compute dtype
        <- line N: self.w.assign(tf.cast(w, self.variable_dtype)).
    """,
    "ConfigWithoutBase": """
        Law 9, mixed_float16.
        Seen: from_config makes a layer with the policy 'float32'.
        Expected: the policy and the arguments of the first layer.
        Look for: get_config without super().get_config(), or an argument that __init__
        does not keep
        <- line N: config: dict[str, Any] = {}.
    """,
    "NoInputCast": """
        Law 10, mixed_float16.
        Seen: a call on int32 tensors raises InvalidArgumentError: ....
        Expected: no error.
        Look for: tf.cast(inputs, self.compute_dtype), first in `call`
        <- line N: return inputs @ w + b.
    """,
    "NanInTrainingOnly": """
        Law 11, mixed_float16.
        Seen: training=True gives float16 outputs, N% of them finite.
        Expected: finite float16 outputs.
        Look for: what `call` does only where training is true
        <- line N: if training:.
    """,
    "SublayerInFloat32": """
        Law 12, mixed_float16.
        Seen: dense_N has the policy 'float32'.
        Expected: mixed_float16.
        Look for: dtype=self.dtype_policy where the sublayer is made
        <- line N: self.hidden = tf.keras.layers.Dense(
        <- line N: self.projection = tf.keras.layers.Dense(input_shape[-1],
        dtype="float32").
    """,
    "StatsOfOneReplica": """
        Law 13, mixed_float16.
        Seen: replicas have mean at N and N.
        Expected: the mean of their updates, N.
        Look for: a state without aggregation= in add_weight, or a variable of its own
        <- line N: name="mean",.
    """,
    "LeaksThePolicy": """
        Law 14, float32.
        Seen: the layer has set the global policy 'mixed_float16'.
        Expected: it follows the global policy and leaves it alone.
        Look for: set_global_policy or set_dtype_policy in the layer
        <- line N: tf.keras.mixed_precision.set_global_policy("mixed_float16").
    """,
}


def normal(message: str) -> str:
    """Returns a message on one line, without what depends on the machine."""
    message = re.sub(r"(raises \w+:) .*\.$", r"\1 ....", message, flags=re.MULTILINE)
    message = re.sub(r"\(node [^)]+\)", "(node N)", message)
    message = re.sub(r" <- line \d+:", " <- line N:", message)
    message = re.sub(r"\b(dense)(_\d+)? has", r"\1_N has", message)
    number = r"\d+(\.\d+)?(e[+-]\d+)?"
    message = re.sub(rf"\b(by|at|and|updates,) {number}(?=[. ])", r"\1 N", message)
    message = re.sub(rf"(Expected:) {number}, in", r"\1 N, in", message)
    return " ".join(re.sub(r"\b\d+%", "N%", message).split())


@pytest.mark.parametrize("name", MESSAGES)
def test_message_teaches(name: str, folder: Path, outcomes: dict[str, Outcome]) -> None:
    failed = outcomes[module(name)].failed.values()
    messages = {found for text in failed for found in MESSAGE.findall(text)}
    expected = " ".join(MESSAGES[name].split())
    assert expected in {normal(message) for message in messages}
    source = (folder / f"{module(name)}.py").read_text("utf-8").splitlines()
    for message in messages:
        for number, line in LINE.findall(message):
            assert source[int(number) - 1].strip() == line
