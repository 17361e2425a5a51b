"""The Keras layer Everything."""

from __future__ import annotations

import inspect
from typing import Any

import tensorflow as tf

_ADD_WEIGHT = inspect.signature(tf.keras.layers.Layer.add_weight).parameters
# Keras 2 calls the opt-out of autocast by another name.
_AUTOCAST = "autocast" if "autocast" in _ADD_WEIGHT else "experimental_autocast"
# Of the updates by several replicas the mean counts; Keras 2 takes no name for that.
_MEAN = tf.VariableAggregation.MEAN if "synchronization" in _ADD_WEIGHT else "mean"


@tf.keras.utils.register_keras_serializable(package="everything")
class Everything(tf.keras.layers.Layer):
    """Shows every part of the grammar in one layer.

    Computes `activation(inputs @ kernel + bias) * rate + total`.

    Dtypes: weights are stored in the layer's variable dtype; `call` computes in its
    compute dtype, which its outputs have too. Both come from the layer's policy:
    `dtype=` in the constructor, or else the global policy. `bias` is float32 under
    every policy. `total` is kept in at least float32. `steps` is int32 under every
    policy.

    Args:
        units: Positive integer, the size of the last output axis. Defaults to `8`.
        activation: Activation function, or its name. Defaults to `"relu"`.
        rate: Float. Defaults to `0.5`.
        causal: Boolean. Defaults to `True`.
        mode: String. Defaults to `"mean"`.
        kernel_initializer: Initializer of `kernel`, of shape `(in, units)`. Defaults to
            `None`, which means `TruncatedNormal(stddev=0.02)`.
        bias_initializer: Initializer of `bias`, of shape `(units,)`. Defaults to
            `"zeros"`.
        kernel_regularizer: Regularizer of `kernel`. Defaults to `None`.
        bias_regularizer: Regularizer of `bias`. Defaults to `None`.
        kernel_constraint: Constraint of `kernel`. Defaults to `None`.
        bias_constraint: Constraint of `bias`. Defaults to `None`.
        **kwargs: Arguments of any Keras layer, such as `name` and `dtype`.

    Input shape:
        `(batch, ..., in)`, of floats or integers.

    Output shape:
        `(batch, ..., units)`.

    Raises:
        ValueError: If `units` is not a positive integer.
        TypeError: If `rate` is not a number.
        TypeError: If `causal` is not a boolean.
        TypeError: If `mode` is not a string.

    Example:

    >>> layer = Everything(dtype="mixed_float16")
    >>> layer(tf.ones((2, 5))).dtype
    tf.float16
    """

    def __init__(
        self,
        units: int = 8,
        activation: Any = "relu",
        rate: float = 0.5,
        causal: bool = True,
        mode: str = "mean",
        kernel_initializer: Any = None,
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(units, int) or units < 1:
            raise ValueError(
                f"`units` must be a positive integer. Received: units={units!r}"
            )
        if not isinstance(rate, (int, float)):
            raise TypeError(f"`rate` must be a number. Received: rate={rate!r}")
        if not isinstance(causal, bool):
            raise TypeError(f"`causal` must be a boolean. Received: causal={causal!r}")
        if not isinstance(mode, str):
            raise TypeError(f"`mode` must be a string. Received: mode={mode!r}")
        super().__init__(**kwargs)
        if kernel_initializer is None:
            # Each layer makes its own: one that all share would draw alike for all.
            kernel_initializer = tf.keras.initializers.TruncatedNormal(stddev=0.02)
        self.units = units
        self.activation = tf.keras.activations.get(activation)
        self.rate = rate
        self.causal = causal
        self.mode = mode
        self.kernel_initializer = tf.keras.initializers.get(kernel_initializer)
        self.bias_initializer = tf.keras.initializers.get(bias_initializer)
        self.kernel_regularizer = tf.keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer = tf.keras.regularizers.get(bias_regularizer)
        self.kernel_constraint = tf.keras.constraints.get(kernel_constraint)
        self.bias_constraint = tf.keras.constraints.get(bias_constraint)
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        """Creates the weights, in the variable dtype if nothing else is said."""
        input_dim = input_shape[-1]
        if input_dim is None:
            raise ValueError(
                "The size of the last input axis must be known. "
                f"Received: input_shape={input_shape}"
            )
        self.kernel = self.add_weight(
            name="kernel",
            shape=(input_dim, self.units),
            dtype=self.variable_dtype,
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        # Its own dtype under every policy, in storage and when it is read.
        self.bias = self.add_weight(
            name="bias",
            shape=(self.units,),
            dtype="float32",
            initializer=self.bias_initializer,
            regularizer=self.bias_regularizer,
            constraint=self.bias_constraint,
            **{_AUTOCAST: False},
        )
        # A half would lose small updates: at least float32, and not under autocast.
        self.total = self.add_weight(
            name="total",
            shape=(self.units,),
            dtype="float64" if self.variable_dtype == "float64" else "float32",
            initializer="zeros",
            trainable=False,
            aggregation=_MEAN,
            **{_AUTOCAST: False},
        )
        self.steps = self.add_weight(
            name="steps",
            shape=(),
            dtype="int32",
            initializer="zeros",
            trainable=False,
        )
        self.input_spec = tf.keras.layers.InputSpec(min_ndim=2, axes={-1: input_dim})
        super().build(input_shape)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Computes the outputs in the compute dtype."""
        # Keras casts float inputs and weights by itself, but no integers. A cast to the
        # dtype that is there already adds nothing to the graph.
        inputs = tf.cast(inputs, self.compute_dtype)
        kernel = tf.cast(self.kernel, self.compute_dtype)
        bias = tf.cast(self.bias, self.compute_dtype)
        total = tf.cast(self.total, self.compute_dtype)
        # A state changes where you say so, uncast: self.total.assign(...)
        return self.activation(inputs @ kernel + bias) * self.rate + total

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """Returns the shape of the outputs for inputs of this shape."""
        return (*input_shape[:-1], self.units)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments; the base config has the name and the policy."""
        config: dict[str, Any] = super().get_config()
        config.update(
            units=self.units,
            activation=tf.keras.activations.serialize(self.activation),
            rate=self.rate,
            causal=self.causal,
            mode=self.mode,
            kernel_initializer=tf.keras.initializers.serialize(self.kernel_initializer),
            bias_initializer=tf.keras.initializers.serialize(self.bias_initializer),
            kernel_regularizer=tf.keras.regularizers.serialize(self.kernel_regularizer),
            bias_regularizer=tf.keras.regularizers.serialize(self.bias_regularizer),
            kernel_constraint=tf.keras.constraints.serialize(self.kernel_constraint),
            bias_constraint=tf.keras.constraints.serialize(self.bias_constraint),
        )
        return config
