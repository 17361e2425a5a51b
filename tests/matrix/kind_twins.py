"""Faulty twins of the kinds: each hazard that a kind meets, no longer met."""

from __future__ import annotations

from twins import Twin

WIDE = 'wide = "float64" if self.compute_dtype == "float64" else "float32"'
NARROW = ((WIDE, "wide = self.compute_dtype"),)
UNCAST = (("inputs = tf.cast(inputs, self.compute_dtype)", "pass"),)


def twin(
    kind: str, name: str, edits: tuple[tuple[str, str], ...], words: str, *laws: int
) -> Twin:
    return Twin(name, edits, laws, words, {"kind": kind})


KIND_TWINS = (
    twin("norm", "NormInHalf", NARROW, "times the inputs are normalised otherwise", 7),
    twin(
        "norm",
        "NormBySquares",
        (
            (
                "variance = tf.reduce_mean(tf.square(centred), axis=-1, keepdims=True)",
                "mean = tf.reduce_mean(inputs, axis=-1, keepdims=True)\n"
                "        squares = tf.reduce_mean(inputs**2, axis=-1, keepdims=True)\n"
                "        variance = squares - mean**2",
            ),
        ),
        "float64",
    ),
    twin(
        "norm",
        "NormUncentred",
        (("centred -= tf.reduce_mean(centred, axis=-1, keepdims=True)", "pass"),),
        "there is no variance",
    ),
    twin(
        "norm",
        "NormScaleUnderAutocast",
        (("            **{_AUTOCAST: False},\n", ""),),
        "a value goes float32 -> float16 -> float32",
        6,
    ),
    twin(
        "attention",
        "AttentionInHalf",
        (
            (
                'wide = "float64" if dtype == "float64" else "float32"',
                "wide = dtype",
            ),
        ),
        "other rows change or are not finite",
    ),
    twin(
        "attention",
        "AttentionToInfinity",
        (
            ("scores.dtype.min)", 'float("-inf"))'),
            (
                "shares = tf.where(counts, tf.nn.softmax(scores), 0.0)",
                "shares = tf.nn.softmax(scores)",
            ),
        ),
        "nan",
    ),
    twin(
        "attention",
        "AttentionOfNothing",
        (("tf.where(counts, tf.nn.softmax(scores), 0.0)", "tf.nn.softmax(scores)"),),
        "where all is masked",
    ),
    twin(
        "attention",
        "AttentionUnmasked",
        (('tf.cast(mask, "bool")[:, None, None]', "True"),),
        "outputs change with a step that is masked",
    ),
    twin(
        "attention",
        "CausalUnmasked",
        (
            (
                "        if mask is not None:\n",
                "        if mask is not None and not self.causal:\n",
            ),
        ),
        "causal=True",
    ),
    twin(
        "attention",
        "CausalOfOneLength",
        (("tf.range(tf.shape(inputs)[1])", "tf.range(inputs.shape[1])"),),
        "",
    ),
    twin(
        "embedding",
        "IdsInHalf",
        (
            (
                "super().__init__(autocast=False, **kwargs)",
                "super().__init__(**kwargs)",
            ),
            (
                'ids = tf.cast(inputs, "int32")',
                'ids = tf.cast(tf.cast(inputs, self.compute_dtype), "int32")',
            ),
        ),
        "ids above 256 find another row",
    ),
    twin(
        "conv",
        "ConvInFloat32",
        (
            ("tf.cast(inputs, self.compute_dtype)", "tf.cast(inputs, wide)"),
            ("tf.cast(self.kernel, self.compute_dtype)", "tf.cast(self.kernel, wide)"),
            (f"        {WIDE}\n", ""),
            (
                '"""Convolves in the compute dtype."""',
                f'"""Convolves in the compute dtype."""\n        {WIDE}',
            ),
        ),
        "runs in float32",
        6,
    ),
    twin(
        "stats",
        "StatsInHalf",
        (
            (
                'dtype="float64" if self.variable_dtype == "float64" else "float32"',
                "dtype=self.variable_dtype",
            ),
        ),
        "",
        3,
    ),
    twin(
        "stats",
        "StatsUnderAutocast",
        (("            **{_AUTOCAST: False},\n", ""),),
        "",
    ),
    twin("stats", "StatsOfHalves", NARROW, ""),
    twin(
        "stats",
        "StatsOfOneReplica",
        (("            aggregation=_MEAN,\n", ""),),
        "replicas have",
        13,
    ),
    twin("stats", "StatsWhileFrozen", ((" and self.trainable", ""),), "frozen"),
    twin(
        "film",
        "FilmUnmasked",
        (("        self.supports_masking = True\n", ""),),
        "without the mask",
    ),
    twin(
        "noise",
        "NoiseInFloatx",
        (
            (
                "dtype=self.compute_dtype,\n            alg",
                'dtype="float32",\n            alg',
            ),
        ),
        "half",
    ),
    twin("noise", "NoiseAlways", (("if not training:", "if False:"),), "at inference"),
    twin(
        "noise",
        "NoiseUncounted",
        (("self.draws.assign_add(1)", "self.draws"),),
        "second call, same seed, same state",
    ),
    twin(
        "block",
        "BlockWithoutPolicy",
        ((", dtype=policy", ""),),
        "",
        3,
    ),
    twin(
        "loss",
        "LossInHalf",
        (('tf.cast(inputs, "float32")', "inputs"),),
        "add a loss of",
    ),
    twin(
        "gradient",
        "GradientInFloat32",
        (
            (
                "-self.rate * dy",
                '-self.rate * tf.cast(dy, "float32")',
            ),
        ),
        "",
    ),
    twin(
        "features",
        "PowerInHalf",
        (
            (
                "tf.cast(inputs, self.compute_dtype), wide)",
                "tf.cast(inputs, self.compute_dtype), wide) / 300",
            ),
            (
                "tf.math.log(power + self.floor)",
                "tf.math.log(tf.cast(power * 9e4, self.compute_dtype) + self.floor)",
            ),
        ),
        "frames give",
    ),
    twin("pool", "PoolInHalf", NARROW, "a mean of"),
    twin(
        "pool",
        "PoolByProduct",
        (
            (
                "tf.where(counts, inputs - mean, 0.0)",
                "(inputs - mean) * tf.cast(counts, wide)",
            ),
        ),
        "a product with the mask",
    ),
    twin(
        "pool",
        "PoolOfNothing",
        (("tf.maximum(steps, 1.0)", "steps"),),
        "a count that can be 0",
    ),
    twin("graph", "GraphInHalf", NARROW, "5,000 like edges"),
    twin(
        "graph",
        "GraphOfNothing",
        (("tf.maximum(degree, 1.0)", "degree"),),
        "none gives",
    ),
    twin("position", "PositionInHalf", NARROW, "waves that are wrong"),
    twin(
        "quantize",
        "QuantizeTwice",
        (
            (
                "return tf.stop_gradient(rounded) + (inputs - tf.stop_gradient(inputs))",
                "return inputs + tf.stop_gradient(rounded - inputs) * 1.01",
            ),
        ),
        "which rounds twice",
    ),
    twin(
        "quantize",
        "QuantizeFlat",
        (
            (
                "return tf.stop_gradient(rounded) + (inputs - tf.stop_gradient(inputs))",
                "return rounded",
            ),
        ),
        "no gradient reaches the inputs",
        5,
    ),
    twin(
        "sample",
        "DivergenceInHalf",
        (
            (
                'tf.cast(mean, "float32"), tf.cast(log_variance, "float32")',
                "mean, log_variance",
            ),
        ),
        "a loss of",
    ),
    twin("augment", "AugmentUncast", UNCAST, ""),
    twin(
        "film",
        "FilmUncast",
        (("condition = tf.cast(condition, self.compute_dtype)", "pass"),),
        "",
    ),
    twin(
        "rnn-cell",
        "CellStateInFloat32",
        (
            (
                "state = tf.cast(tf.nest.flatten(states)[0], self.compute_dtype)",
                "state = tf.nest.flatten(states)[0]",
            ),
            (
                "return [tf.zeros([batch_size, self.units], self.compute_dtype)]",
                'return [tf.zeros([batch_size, self.units], "int32")]',
            ),
        ),
        "",
    ),
    twin(
        "wrapper",
        "WrapperKeepsPolicy",
        ((', "dtype": config["dtype"]}', "}"),),
        "must have the policy of its wrapper",
    ),
    twin(
        "wrapper",
        "WrapperCastsIds",
        (("self.layer(inputs)", "self.layer(tf.cast(inputs, self.compute_dtype))"),),
        "those of the table, and its mask",
    ),
    twin(
        "resize",
        "ResizeInFloat32",
        (("return tf.cast(outputs, self.compute_dtype)", "return outputs"),),
        "float32",
        3,
    ),
)
