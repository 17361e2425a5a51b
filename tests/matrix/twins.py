"""Faulty twins of generated layers, each with the law that must catch it.

A twin is what `mplayer new` writes, with one edit. Its test file is the one that goes
with the layer before the edit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

DENSE: dict[str, Any] = {"weights": "w, b"}
RELU: dict[str, Any] = {"weights": "w, b", "arguments": ["activation:activation=relu"]}
SCALE: dict[str, Any] = {"weights": "gamma, beta"}

CAST = "inputs = tf.cast(inputs, self.compute_dtype)\n"
RETURN = "return inputs @ w + b\n"
PLAIN_CALL = "def call(self, inputs: tf.Tensor)"
TRAINING_CALL = "def call(self, inputs, training=None)"


@dataclass(frozen=True)
class Twin:
    """A layer spec, edits of its module, and the laws that must fail.

    `laws` holds each law that says why; more may fail with it. `words` stand in the
    message of one of them. `intended` are edits of the test file, where a sound layer
    means something else than the generated one does.
    """

    name: str
    edits: tuple[tuple[str, str], ...]
    laws: tuple[int, ...] = ()
    words: str = ""
    spec: dict[str, Any] = field(default_factory=lambda: DENSE)
    keras3_only: bool = False
    intended: tuple[tuple[str, str], ...] = ()

    def edited(self, module: str) -> str:
        """Returns the module with every edit made, each of which must apply."""
        return self._apply(self.edits, module)

    def judged_by(self, test: str) -> str:
        """Returns the test file with the intentions of this layer."""
        return self._apply(self.intended, test)

    def _apply(self, edits: tuple[tuple[str, str], ...], text: str) -> str:
        for old, new in edits:
            if old not in text:
                message = f"{self.name}: the template no longer has {old!r}"
                raise AssertionError(message)
            text = text.replace(old, new)
        return text


def in_call(*lines: str, result: str = RETURN) -> tuple[tuple[str, str], ...]:
    """Returns edits that put lines before the return of `call`, and change that."""
    body = "".join(f"{line}\n        " for line in lines)
    return ((f"        {RETURN}", f"        {body}{result}"),)


def in_training(line: str) -> tuple[tuple[str, str], ...]:
    """Returns edits that do something to `outputs` in training alone."""
    body = f"        if training:\n            {line}\n        return outputs\n"
    return (
        (PLAIN_CALL, TRAINING_CALL),
        (f"        {RETURN}", f"        outputs = inputs @ w + b\n{body}"),
    )


def with_mask(mask: str) -> tuple[tuple[str, str], ...]:
    """Returns edits that give the outputs another mask than the inputs have."""
    method = (
        "    def compute_mask(self, inputs, mask=None):\n"
        f"        return None if mask is None else {mask}\n\n"
    )
    return (("    def compute_output_shape", f"{method}    def compute_output_shape"),)


TWINS: tuple[Twin, ...] = (
    Twin(
        "WeightInComputeDtype",
        (("dtype=self.variable_dtype", "dtype=self.compute_dtype"),),
        (2,),
        "the weight 'w' is stored in float16",
    ),
    Twin(
        "Float32Constant",
        in_call(result="return (inputs @ w + b) * tf.constant(0.5)\n"),
        (3,),
        "a float32 constant",
    ),
    Twin(
        "OutputInFloat32",
        in_call(result='return tf.cast(inputs @ w + b, "float32")\n'),
        (3,),
        "float32",
    ),
    Twin(
        "ComputedInFloat32",
        (
            ("tf.cast(inputs, self.compute_dtype)", 'tf.cast(inputs, "float32")'),
            ("tf.cast(self.w, self.compute_dtype)", 'tf.cast(self.w, "float32")'),
            ("tf.cast(self.b, self.compute_dtype)", 'tf.cast(self.b, "float32")'),
            (RETURN, "return tf.cast(inputs @ w + b, self.compute_dtype)\n"),
        ),
        (4, 6),
        "MatMul runs in float32",
    ),
    Twin(
        "ScaledInFloat32",
        (
            ("tf.cast(inputs, self.compute_dtype)", 'tf.cast(inputs, "float32")'),
            (
                "tf.cast(self.gamma, self.compute_dtype)",
                'tf.cast(self.gamma, "float32")',
            ),
            ("tf.cast(self.beta, self.compute_dtype)", 'tf.cast(self.beta, "float32")'),
            (
                "return inputs * gamma + beta",
                "return tf.cast(inputs * gamma + beta, self.compute_dtype)",
            ),
        ),
        (4, 6),
        "show the rounding of float32",
        SCALE,
    ),
    Twin(
        "GlobalPolicy",
        (
            (
                CAST,
                "dtype = tf.keras.mixed_precision.global_policy().compute_dtype\n"
                "        inputs = tf.cast(inputs, dtype)\n",
            ),
            ("tf.cast(self.w, self.compute_dtype)", "tf.cast(self.w, dtype)"),
            ("tf.cast(self.b, self.compute_dtype)", "tf.cast(self.b, dtype)"),
        ),
        (1, 3),
        "global_policy()",
    ),
    Twin(
        "VariableDtypeInCall",
        (("self.compute_dtype)", "self.dtype)"),),
        (3,),
        "self.dtype",
    ),
    Twin(
        "CastOnceInBuild",
        (
            (
                "        super().build(input_shape)",
                "        super().build(input_shape)\n"
                "        self.cached = tf.cast(self.w, self.compute_dtype)",
            ),
            ("w = tf.cast(self.w, self.compute_dtype)", "w = self.cached"),
        ),
        (5, 8),
        "no gradient reaches w",
    ),
    Twin(
        "ConfigWithoutBase",
        (
            (
                "config: dict[str, Any] = super().get_config()",
                "config: dict[str, Any] = {}",
            ),
        ),
        (9,),
        "get_config without super().get_config()",
    ),
    Twin(
        "ConfigWithoutArgument",
        (("            units=self.units,\n", ""),),
        (9,),
        "",
    ),
    Twin(
        "GradientCut",
        in_call("w = tf.stop_gradient(w)"),
        (5,),
        "no gradient reaches w",
    ),
    Twin(
        "GradientPartlyCut",
        in_call(result="return inputs @ w + tf.stop_gradient(inputs @ w) + b\n"),
        (5,),
        "the gradient says",
    ),
    Twin(
        "StaticBatch",
        in_call(
            result="return tf.ones((inputs.shape[0], 1), b.dtype) * b + inputs @ w\n"
        ),
        (3,),
        "inputs.shape",
    ),
    Twin(
        "VanishedEpsilon",
        in_call("inputs = inputs / (tf.abs(inputs) + 1e-8)"),
        (7,),
        "epsilon",
    ),
    Twin(
        "NanInTrainingOnly",
        (
            (
                "def call(self, inputs: tf.Tensor)",
                "def call(self, inputs, training=None)",
            ),
            (
                RETURN,
                "outputs = inputs @ w + b\n"
                "        if training:\n"
                "            outputs = outputs * (outputs * 0.0 + 1e5) / 1e5\n"
                "        return outputs\n",
            ),
        ),
        (11,),
        "training=True",
    ),
    Twin(
        "TrainingOverflows",
        in_training("outputs *= tf.math.rsqrt(tf.reduce_sum(tf.square(inputs)) + 1.0)"),
        (11,),
        "large inputs",
    ),
    Twin(
        "TrainingStopsGradient",
        in_training("outputs = tf.stop_gradient(outputs)"),
        (11,),
        "no gradient reaches w",
    ),
    # float32 products, summed and rounded: float64's outputs, at twice the time.
    Twin(
        "TrainedInFloat32",
        in_training(
            "outputs = tf.cast("
            'tf.cast(inputs, "float32") @ tf.cast(w, "float32"), w.dtype) + b'
        ),
        (6,),
        "training=True: MatMul runs in float32",
    ),
    Twin(
        "TrainingCutsStatistics",
        in_training("outputs -= tf.stop_gradient(tf.reduce_mean(outputs))"),
        (5,),
        "training=True: along a line in w",
    ),
    Twin(
        "AverageInHalf",
        (
            (PLAIN_CALL, TRAINING_CALL),
            (
                "        return inputs * gamma - m\n",
                "        outputs = inputs * gamma - m\n"
                "        if training:\n"
                "            mean = tf.reduce_mean(inputs, range(len(inputs.shape) - 1))\n"
                "            average = m * 0.999 + mean * 0.001\n"
                "            self.m.assign(tf.cast(average, self.m.dtype))\n"
                "        return outputs\n",
            ),
        ),
        (11,),
        "m is moved by",
        {
            "weights": "gamma[in]=ones, m[in]:state=zeros",
            "call": "inputs * gamma - m",
        },
    ),
    Twin(
        "LossOverflows",
        in_call("self.add_loss(tf.reduce_sum(tf.square(inputs)))"),
        (7,),
        "the layer's losses are [inf]",
    ),
    Twin("MaskInverted", with_mask("tf.logical_not(mask)"), (11,), "another mask"),
    Twin(
        "MaskOfNumbers",
        with_mask("tf.cast(mask, self.compute_dtype)"),
        (11,),
        "another mask",
    ),
    Twin(
        "TrainableLost",
        (
            (
                "super().get_config()\n",
                'super().get_config()\n        config.pop("trainable")\n',
            ),
        ),
        (9,),
        "from_config makes a layer with trainable=True",
    ),
    Twin(
        "KeywordArgumentLost",
        (
            (
                "        units: int,\n",
                "        units: int,\n        *,\n        rate=1.0,\n",
            ),
            (
                "        self.units = units\n",
                "        self.units = units\n        self.rate = rate\n",
            ),
            (RETURN, "return (inputs @ w + b) * self.rate\n"),
        ),
        (9,),
        "get_config() gives rate=None",
    ),
    Twin(
        "HardCodedFloat16",
        (
            ("tf.cast(inputs, self.compute_dtype)", 'tf.cast(inputs, "float16")'),
            ("tf.cast(self.w, self.compute_dtype)", 'tf.cast(self.w, "float16")'),
            ("tf.cast(self.b, self.compute_dtype)", 'tf.cast(self.b, "float16")'),
            (RETURN, "return tf.cast(inputs @ w + b, self.compute_dtype)\n"),
        ),
        (4, 6),
        "float16",
    ),
    # Keras 2 makes a weight of it, and the cast in `call` does the rest: no fault there.
    Twin(
        "BareVariable",
        (
            ("self.b = self.add_weight(", "self.b = tf.Variable("),
            (
                '            name="b",\n'
                "            shape=(self.units,),\n"
                "            dtype=self.variable_dtype,\n"
                "            initializer=self.b_initializer,\n",
                "            tf.zeros((self.units,), self.variable_dtype)\n",
            ),
        ),
        (2,),
        "tf.Variable",
        keras3_only=True,
    ),
    Twin(
        "FixedDtype",
        (
            (
                "super().__init__(**kwargs)",
                'super().__init__(**{**kwargs, "dtype": None})',
            ),
        ),
        (1,),
        "",
    ),
    Twin(
        "NoKwargs",
        (
            ("        **kwargs: Any,\n", ""),
            ("super().__init__(**kwargs)", "super().__init__()"),
        ),
        (3,),
        "unexpected keyword argument",
    ),
    Twin(
        "LeaksThePolicy",
        in_call('tf.keras.mixed_precision.set_global_policy("mixed_float16")'),
        (14,),
        "set_global_policy",
    ),
    Twin(
        "MasterRoundedByAssign",
        in_call("self.w.assign(tf.cast(w, self.variable_dtype))"),
        (8,),
        "",
    ),
    Twin(
        "NoInputCast",
        ((f"        {CAST}", ""),),
        (10,),
        "int32",
    ),
    Twin(
        "SquareOverflows",
        (
            (
                "return inputs * gamma + beta",
                "norm = tf.sqrt(tf.reduce_sum(inputs * inputs, -1, keepdims=True) + 1.0)\n"
                "        return inputs / norm * gamma + beta",
            ),
        ),
        (7,),
        "beyond 65504",
        SCALE,
    ),
    Twin(
        "OutputShapeWrong",
        (("return (*input_shape[:-1], self.units)", "return tuple(input_shape)"),),
        (3,),
        "compute_output_shape",
    ),
)

OPTIONS: dict[str, Any] = {
    "weights": "w, b, total[units]:state",
    "call": "inputs @ w + b + total",
    "options": ["regularizers", "constraints"],
}
TWINS += (
    Twin(
        "RegularizerIgnored",
        (("            regularizer=self.w_regularizer,\n", ""),),
        (9,),
        "regularizers make",
        OPTIONS,
    ),
    Twin(
        "ConstraintIgnored",
        (("            constraint=self.b_constraint,\n", ""),),
        (9,),
        "b_constraint=",
        OPTIONS,
    ),
    Twin(
        "InitializerIgnored",
        (("initializer=self.b_initializer", 'initializer="zeros"'),),
        (9,),
        "b_initializer=",
    ),
    Twin(
        "StateIsTrained",
        (("            trainable=False,\n", ""),),
        (5,),
        "are trained",
        OPTIONS,
    ),
    Twin(
        "FloatxInCall",
        (("self.compute_dtype)", "tf.keras.backend.floatx())"),),
        (3,),
        "float32",
    ),
    Twin(
        "IntegerWeightAsFloat",
        (('dtype="int32"', "dtype=self.variable_dtype"),),
        (2,),
        "is stored in",
        {"weights": "w, b, count[]:int32:frozen", "call": "inputs @ w + b + count"},
    ),
    Twin(
        "ExpByHand",
        in_call(
            "shares = tf.exp(inputs @ w + b)",
            result="return shares / tf.reduce_sum(shares, -1, keepdims=True)\n",
        ),
        (7,),
        "large inputs",
    ),
    Twin(
        "SecondOutputInFloat32",
        in_call(
            "outputs = inputs @ w + b",
            result='return outputs, tf.cast(outputs, "float32")\n',
        ),
        (3,),
        "'float32'",
    ),
    Twin(
        "GraphIsAnother",
        in_call(
            "outputs = inputs @ w + b",
            result="return outputs if tf.executing_eagerly() else outputs * 1.05\n",
        ),
        (4,),
        "times as far from float64",
    ),
    # What is declared float32 must still be that of the dtypes before it.
    Twin(
        "DeclaredOutputOfHalf",
        in_call(
            "outputs = inputs @ w + b",
            'half = tf.cast(outputs, "float16")',
            result='return outputs, tf.cast(half, "float32")\n',
        ),
        (4, 6),
        "'float16' or 'bfloat16' where self.compute_dtype is meant",
        intended=(
            (
                "OUTPUT_DTYPES: dict[int, str] = {}",
                'OUTPUT_DTYPES: dict[int, str] = {1: "float32"}',
            ),
        ),
    ),
    Twin(
        "SublayerInFloat32",
        (
            ("dtype=policy)", 'dtype="float32")'),
            (
                "return inputs + self.projection(self.hidden(inputs))",
                "outputs = self.projection(self.hidden(inputs))\n"
                "        return inputs + tf.cast(outputs, self.compute_dtype)",
            ),
        ),
        (6, 12),
        "has the policy 'float32'",
        {"kind": "block"},
    ),
    Twin(
        "MasksUnknown",
        (("        self.supports_masking = True\n", ""),),
        (11,),
        "outputs with no mask",
        keras3_only=True,
    ),
)

VARIANTS = (
    # Autocast alone is right for a first, floating input.
    Twin(
        "AutocastAlone",
        (
            ("w = tf.cast(self.w, self.compute_dtype)", "w = self.w"),
            ("b = tf.cast(self.b, self.compute_dtype)", "b = self.b"),
        ),
    ),
    # A bias that is added with an operation of its own.
    Twin("BiasAdd", in_call(result="return tf.nn.bias_add(inputs @ w, b)\n")),
    # A reduction in at least float32 is what the laws ask for.
    Twin(
        "UpcastMean",
        (
            (
                "return inputs * gamma + beta",
                'wide = "float64" if self.compute_dtype == "float64" else "float32"\n'
                "        mean = tf.reduce_mean(tf.cast(inputs, wide), -1, keepdims=True)\n"
                "        inputs = inputs - tf.cast(mean, self.compute_dtype)\n"
                "        return inputs * gamma + beta",
            ),
        ),
        spec=SCALE,
    ),
    Twin(
        "TrainingScale",
        (
            (
                "def call(self, inputs: tf.Tensor)",
                "def call(self, inputs, training=None)",
            ),
            (RETURN, "return inputs @ w + (b * 2.0 if training else b)\n"),
        ),
    ),
    Twin("Relu", in_call(result="return tf.nn.relu(inputs @ w) + b\n")),
    Twin("Softmax", in_call(result="return tf.nn.softmax(inputs @ w + b)\n")),
    Twin("Gelu", in_call(result="return tf.nn.gelu(inputs @ w + b)\n")),
)
