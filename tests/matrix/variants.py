"""Sound variants: correct layers in other styles than those that are generated.

The matrix must pass each of them. A comment says what a law could take for a fault.
Where a style needs it, the intentions on top of the test file are edited as well, as
whoever writes such a layer would.
"""

from __future__ import annotations

from twins import DENSE, SCALE, Twin, in_call
from twins import VARIANTS as EDITS_OF_A_LINE

Edits = tuple[tuple[str, str], ...]

DENSE_CALL = "def call(self, inputs: tf.Tensor)"
SCALE_RETURN = "        return inputs * gamma + beta\n"
WIDE = 'wide = "float64" if self.compute_dtype == "float64" else "float32"'
# Keras finds the outputs of several dtypes or shapes by a trace, if nothing promises
# one.
NO_DENSE_SHAPE: Edits = (
    (
        "    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:\n"
        '        """Returns the shape of the outputs for inputs of this shape."""\n'
        "        return (*input_shape[:-1], self.units)\n\n",
        "",
    ),
)
AFTER_SUPER = "        super().__init__(**kwargs)\n"
CAST = "        inputs = tf.cast(inputs, self.compute_dtype)\n"
IMPORT = "import tensorflow as tf\n"


def dense(
    name: str, *lines: str, result: str, more: Edits = (), intended: Edits = ()
) -> Twin:
    """Returns `inputs @ w + b` with other lines at the end of `call`."""
    return Twin(
        name, (*in_call(*lines, result=f"{result}\n"), *more), intended=intended
    )


def scale(
    name: str, *lines: str, result: str, more: Edits = (), intended: Edits = ()
) -> Twin:
    """Returns `inputs * gamma + beta` with other lines at the end of `call`."""
    body = "".join(f"        {line}\n" for line in (*lines, result))
    edits = ((SCALE_RETURN, body), *more)
    return Twin(name, edits, spec=SCALE, intended=intended)


def sublayer(made: str, shape: str) -> Edits:
    """Returns edits that make a layer of Keras in `__init__`, and build it in `build`."""
    line = f"        self.inner = tf.keras.layers.{made}\n"
    build = "        super().build(input_shape)\n"
    return (
        (AFTER_SUPER, AFTER_SUPER + line),
        (build, f"        self.inner.build({shape})\n{build}"),
    )


def outputs_in(dtypes: str) -> Edits:
    return (("OUTPUT_DTYPES: dict[int, str] = {}", f"OUTPUT_DTYPES = {dtypes}"),)


PRODUCTS = (
    # Not "...i": where a processor multiplies halves itself, TensorFlow 2.21 is wrong
    # about an ellipsis.
    dense(
        "Einsum",
        "rows = tf.reshape(inputs, [-1, inputs.shape[-1]])",
        "shape = tf.concat([tf.shape(inputs)[:-1], [self.units]], 0)",
        result='return tf.reshape(tf.einsum("bi,io->bo", rows, w), shape) + b',
    ),
    dense("Tensordot", result="return tf.tensordot(inputs, w, 1) + b"),
    dense(
        "TransposedMatmul",
        "transposed = tf.transpose(w)",
        result="return tf.matmul(inputs, transposed, transpose_b=True) + b",
    ),
    dense(
        "MatVec",
        "outputs = tf.linalg.matvec(w, inputs, transpose_a=True)",
        result="return tf.add(outputs, b)",
    ),
    # Each row is rounded after the float32 master was looked up, not before.
    scale(
        "GatheredWeights",
        "reverse = tf.range(tf.shape(self.gamma)[0])[::-1]",
        "rows = tf.cast(tf.gather(self.gamma, reverse), self.compute_dtype)",
        result="return inputs * rows + gamma + beta",
    ),
)

OUTPUTS = (
    dense(
        "IntegerOutput",
        "outputs = inputs @ w + b",
        result="return outputs, tf.argmax(outputs, -1, output_type=tf.int32)",
        more=NO_DENSE_SHAPE,
        intended=outputs_in('{1: "int32"}'),
    ),
    dense(
        "SeveralOutputs",
        "outputs = inputs @ w + b",
        "mean = tf.reduce_mean(inputs, -1, keepdims=True)",
        result="return [outputs, tf.nn.relu(outputs), mean]",
        more=NO_DENSE_SHAPE,
    ),
    dense(
        "DictOfOutputs",
        "outputs = inputs @ w + b",
        result='return {"scores": outputs, "shares": tf.nn.softmax(outputs)}',
        more=NO_DENSE_SHAPE,
    ),
    # The float64 layer rounds to float32 here, as it says.
    dense(
        "PinnedOutput",
        "outputs = inputs @ w + b",
        result='return outputs, tf.nn.softmax(tf.cast(outputs, "float32"))',
        more=NO_DENSE_SHAPE,
        intended=outputs_in('{1: "float32"}'),
    ),
    # What a last layer does, so that a loss is computed in float32.
    dense(
        "WideOutput",
        WIDE,
        result="return tf.nn.softmax(tf.cast(inputs @ w + b, wide))",
        more=NO_DENSE_SHAPE,
        intended=outputs_in("{0: AT_LEAST_FLOAT32}"),
    ),
)

SHAPES_OF_CODE = (
    dense(
        "KeywordsInCall",
        result="return inputs @ w + b",
        more=((f"{DENSE_CALL}", "def call(self, inputs, *args, **kwargs)"),),
    ),
    dense(
        "FunctionOutside",
        result="return affine(inputs, w, b)",
        more=(
            (
                IMPORT,
                f"{IMPORT}\n\n@tf.function\ndef affine(x, w, b):\n    return x @ w + b\n",
            ),
        ),
    ),
    dense(
        "NameScopes",
        'with tf.name_scope("affine"):',
        '    outputs = tf.add(inputs @ w, b, name="outputs")',
        result="return outputs",
    ),
    dense("ShapeUnsaid", result="return inputs @ w + b", more=NO_DENSE_SHAPE),
    dense(
        "WeightsWhereTheyAreUsed",
        result="return inputs @ tf.cast(self.w, inputs.dtype) + self.b",
        more=(
            ("        w = tf.cast(self.w, self.compute_dtype)\n", ""),
            ("        b = tf.cast(self.b, self.compute_dtype)\n", ""),
        ),
    ),
    # No `build`: the shape of the weight does not depend on that of the inputs.
    Twin(
        "WeightsInInit",
        (
            (
                "\n    def build(self, input_shape: Any) -> None:\n"
                '        """Creates the weights, in the variable dtype if nothing else '
                'is said."""\n',
                "",
            ),
            ("        super().build(input_shape)\n", ""),
        ),
        spec={"weights": "v[]=zeros", "call": "inputs + v"},
    ),
    Twin(
        "RegularizerObjects",
        (),
        spec={**DENSE, "options": ["regularizers"]},
        intended=(
            (
                '"w_regularizer": "l2"',
                '"w_regularizer": tf.keras.regularizers.L1L2(0.01, 0.01)',
            ),
        ),
    ),
    dense(
        "Checked",
        'tf.debugging.assert_rank_at_least(inputs, 2, "rows")',
        "tf.debugging.assert_equal(tf.shape(w)[0], tf.shape(inputs)[-1])",
        result="return inputs @ w + b",
    ),
)

NUMBERS = (
    dense(
        "PythonNumbers",
        result="return 0.5 * (inputs @ w) + 2 * b - 1",
    ),
    dense(
        "ConstantLikeInputs",
        "half = tf.constant(0.5, dtype=inputs.dtype)",
        result="return half * (inputs @ w) + b",
    ),
    dense(
        "NumPyConstant",
        "signs = np.array([1.0, -1.0, 1.0])",
        result="return (inputs @ w + b) * tf.cast(signs, self.compute_dtype)",
        more=((IMPORT, f"import numpy as np\n{IMPORT}"),),
    ),
    dense(
        "WhereLikeZero",
        "outputs = inputs @ w + b",
        result="return tf.where(outputs > 0, outputs, tf.zeros_like(outputs))",
    ),
    dense(
        "SoftmaxByHand",
        "scores = inputs @ w + b",
        "shares = tf.exp(scores - tf.reduce_max(scores, -1, keepdims=True))",
        result="return shares / tf.reduce_sum(shares, -1, keepdims=True)",
    ),
    dense(
        "SoftplusByLog1p",
        "outputs = inputs @ w + b",
        "tail = tf.math.log1p(tf.exp(-tf.abs(outputs)))",
        result="return tf.nn.relu(outputs) + tail",
    ),
    dense(
        "EluByExpm1",
        "outputs = inputs @ w + b",
        "below = tf.math.expm1(tf.minimum(outputs, 0))",
        result="return tf.where(outputs > 0, outputs, below)",
    ),
    # TensorFlow sums halves in float32 by itself, and casts back.
    scale(
        "Moments",
        "inputs /= 1 + tf.reduce_max(tf.abs(inputs), -1, keepdims=True)",
        "mean, variance = tf.nn.moments(inputs, -1, keepdims=True)",
        result="return tf.nn.batch_normalization(\n"
        "            inputs, mean, variance, beta, gamma, 0.01\n"
        "        )",
    ),
    # Halves hold the squares of what is at most 1.
    scale(
        "NormOfScaled",
        "inputs /= 1 + tf.reduce_max(tf.abs(inputs), -1, keepdims=True)",
        "square = tf.reduce_sum(inputs * inputs, -1, keepdims=True)",
        result="return inputs * tf.math.rsqrt(square + 0.1) * gamma + beta",
    ),
    scale(
        "RunningSum",
        WIDE,
        "total = tf.cumsum(tf.cast(inputs, wide), axis=-1)",
        result="return tf.cast(total, self.compute_dtype) * gamma + beta",
        intended=(("LARGE = 300.0", "LARGE = 100.0"),),
    ),
)

CONTROL_FLOW = (
    dense(
        "Cond",
        "outputs = inputs @ w",
        result="return tf.cond(tf.size(b) > 1, lambda: outputs + b, lambda: outputs)",
    ),
    dense(
        "WhileLoop",
        "_, outputs = tf.while_loop(",
        "    lambda i, x: i < 3,",
        "    lambda i, x: (i + 1, 0.5 * x + b),",
        "    (0, inputs @ w),",
        "    maximum_iterations=3,",
        ")",
        result="return outputs",
    ),
    scale("MapFn", result="return tf.map_fn(lambda row: row * gamma + beta, inputs)"),
    scale(
        "VectorizedMap",
        result="return tf.vectorized_map(lambda row: row * gamma + beta, inputs)",
    ),
)

GRADIENTS = (
    dense(
        "CustomGradient",
        "@tf.custom_gradient",
        "def softplus(x):",
        "    return tf.math.softplus(x), lambda dy: dy * tf.sigmoid(x)",
        "",
        result="return softplus(inputs @ w + b)",
    ),
    scale(
        "StatisticWithoutGradient",
        "peak = tf.reduce_max(tf.abs(inputs), -1, keepdims=True)",
        result="return inputs / tf.stop_gradient(peak + 1) * gamma + beta",
        intended=(("TRUE_GRADIENTS = True", "TRUE_GRADIENTS = False"),),
    ),
    dense(
        "Recomputed",
        "@tf.recompute_grad",
        "def affine(x, w, b):",
        "    return tf.nn.tanh(x @ w + b)",
        "",
        result="return affine(inputs, w, b)",
    ),
)

WORK_OF_KERAS = (
    # Sublayers that are built when they are called first.
    Twin(
        "SublayersInInit",
        (
            (
                "        # They would not inherit it.\n"
                "        policy = self.dtype_policy\n"
                "        self.hidden = tf.keras.layers.Dense(\n"
                "            self.units, activation=self.activation, dtype=policy\n"
                "        )\n",
                "",
            ),
            ("dtype=policy)", "dtype=self.dtype_policy)"),
            (
                AFTER_SUPER,
                f"{AFTER_SUPER}"
                "        self.hidden = tf.keras.layers.Dense(\n"
                "            units, activation=activation, dtype=self.dtype_policy\n"
                "        )\n",
            ),
        ),
        spec={"kind": "block"},
    ),
    dense(
        "DropoutSublayer",
        result="return self.dropout(inputs @ w + b, training=training)",
        more=(
            (DENSE_CALL, "def call(self, inputs, training=None)"),
            (
                AFTER_SUPER,
                f"{AFTER_SUPER}        self.dropout = tf.keras.layers.Dropout(\n"
                "            0.5, dtype=self.dtype_policy\n        )\n",
            ),
        ),
        intended=(("RANDOM = False", "RANDOM = True"),),
    ),
    dense(
        "MaskByHand",
        "outputs = inputs @ w + b",
        "if mask is not None:",
        "    seen = mask[..., tf.newaxis]",
        "    outputs = tf.where(seen, outputs, tf.zeros_like(outputs))",
        result="return outputs",
        more=((DENSE_CALL, "def call(self, inputs, mask=None)"),),
    ),
    # The gradient of the key's bias is zero, but for the rounding of its terms.
    Twin(
        "AttentionSublayer",
        (
            *sublayer(
                "MultiHeadAttention(2, 3, dtype=self.dtype_policy)",
                "input_shape, input_shape",
            ),
            (
                SCALE_RETURN,
                "        outputs = inputs * gamma + beta\n"
                "        return inputs + self.inner(outputs, outputs)\n",
            ),
        ),
        spec=SCALE,
        keras3_only=True,
        intended=(
            ("INPUT_SHAPE = (5,)", "INPUT_SHAPE = (4, 5)"),
            ("LARGE = 300.0", "LARGE = 8.0"),
            ('{"beta", "gamma"}', '{"beta", "gamma", "kernel", "bias"}'),
        ),
    ),
    # Its weights have the names of the layer's own. `*_rest` is no argument to keep.
    Twin(
        "SublayerOfLikeNames",
        (
            *sublayer(
                "Dense(4, dtype=self.dtype_policy)", "(*input_shape[:-1], self.units)"
            ),
            (
                "return inputs @ kernel + bias",
                "return self.inner(inputs @ kernel + bias)",
            ),
            ("        units: int,\n", "        units: int,\n        *_rest: Any,\n"),
            *NO_DENSE_SHAPE,
        ),
        spec={"weights": "kernel, bias"},
    ),
    # It is built for inputs of one rank.
    Twin(
        "BatchNormalizationSublayer",
        (
            *sublayer(
                "BatchNormalization(dtype=self.dtype_policy)",
                "(*input_shape[:-1], self.units)",
            ),
            (DENSE_CALL, "def call(self, inputs, training=None)"),
            (
                "return inputs @ w + b",
                "return self.inner(inputs @ w + b, training=training)",
            ),
        ),
        # Keras 2 has statistics in float32 under a half, which STORED would say.
        keras3_only=True,
        intended=(
            ("DIVISIBLE = True", "DIVISIBLE = False"),
            ('{"b", "w"}', '{"b", "w", "gamma", "beta"}'),
        ),
    ),
    # A loss of its own, in at least float32, since a half cannot sum squares.
    dense(
        "ActivityLoss",
        "outputs = inputs @ w + b",
        WIDE,
        "self.add_loss(tf.reduce_mean(tf.square(tf.cast(outputs, wide))))",
        result="return outputs",
    ),
    # Nothing is lost where a wider dtype, or a condition, is cast back.
    dense(
        "WidenedAndBack",
        "outputs = inputs @ w + b",
        WIDE,
        "widened = tf.cast(outputs, wide)",
        "outputs = tf.cast(widened, self.compute_dtype)",
        "mean = tf.reduce_mean(widened, -1, keepdims=True)",
        result="return outputs - tf.cast(mean, self.compute_dtype)",
    ),
    dense(
        "WhereNotZero",
        "outputs = inputs @ w + b",
        'live = tf.cast(outputs, "bool")',
        result="return outputs * tf.cast(live, self.compute_dtype)",
    ),
    # Statistics of the batch, which gradients pass.
    dense(
        "CentredInTraining",
        "outputs = inputs @ w + b",
        "if training:",
        "    outputs -= tf.reduce_mean(outputs, axis=0)",
        result="return outputs",
        more=((DENSE_CALL, "def call(self, inputs, training=None)"),),
    ),
    # A state that only training moves, in float32, by what float32 has summed.
    Twin(
        "StateInTraining",
        (
            (DENSE_CALL, "def call(self, inputs, training=None)"),
            (
                "        return inputs * gamma + total\n",
                "        outputs = inputs * gamma + total\n"
                "        if training:\n"
                "            wide = tf.cast(inputs, self.total.dtype)\n"
                "            mean = tf.reduce_mean(\n"
                "                wide, axis=tuple(range(inputs.shape.rank - 1))\n"
                "            )\n"
                "            self.total.assign_add(0.125 * mean)\n"
                "        return outputs\n",
            ),
        ),
        spec={
            "weights": "gamma[in]=ones, total[in]:state=zeros",
            "call": "inputs * gamma + total",
        },
    ),
)

VARIANTS = (
    *EDITS_OF_A_LINE,
    *PRODUCTS,
    *OUTPUTS,
    *SHAPES_OF_CODE,
    *NUMBERS,
    *CONTROL_FLOW,
    *GRADIENTS,
    *WORK_OF_KERAS,
)
