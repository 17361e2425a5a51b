"""The Keras layer AskerDense."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


@tf.keras.utils.register_keras_serializable(package="asker_dense")
class AskerDense(tf.keras.layers.Layer):
    """Computes `activation(inputs @ kernel + bias)`.

    Dtypes: weights are stored in the layer's variable dtype; `call` computes in its
    compute dtype, which its outputs have too. Both come from the layer's policy:
    `dtype=` in the constructor, or else the global policy.

    Args:
        units: Positive integer, the size of the last output axis.
        activation: Activation function, or its name. Defaults to `None` (linear).
        kernel_initializer: Initializer of `kernel`, of shape `(in, units)`. Defaults to
            `"glorot_uniform"`.
        bias_initializer: Initializer of `bias`, of shape `(units,)`. Defaults to
            `"zeros"`.
        **kwargs: Arguments of any Keras layer, such as `name` and `dtype`.

    Input shape:
        `(batch, ..., in)`, of floats or integers.

    Output shape:
        `(batch, ..., units)`.

    Raises:
        ValueError: If `units` is not a positive integer.

    Example:

    >>> layer = AskerDense(units=3, dtype="mixed_float16")
    >>> layer(tf.ones((2, 5))).dtype
    tf.float16
    """

    def __init__(
        self,
        units: int,
        activation: Any = None,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        **kwargs: Any,
    ) -> None:
        if not isinstance(units, int) or units < 1:
            raise ValueError(
                f"`units` must be a positive integer. Received: units={units!r}"
            )
        super().__init__(**kwargs)
        self.units = units
        self.activation = tf.keras.activations.get(activation)
        self.kernel_initializer = tf.keras.initializers.get(kernel_initializer)
        self.bias_initializer = tf.keras.initializers.get(bias_initializer)
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
        )
        self.bias = self.add_weight(
            name="bias",
            shape=(self.units,),
            dtype=self.variable_dtype,
            initializer=self.bias_initializer,
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
        return self.activation(inputs @ kernel + bias)

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """Returns the shape of the outputs for inputs of this shape."""
        return (*input_shape[:-1], self.units)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments; the base config has the name and the policy."""
        config: dict[str, Any] = super().get_config()
        config.update(
            units=self.units,
            activation=tf.keras.activations.serialize(self.activation),
            kernel_initializer=tf.keras.initializers.serialize(self.kernel_initializer),
            bias_initializer=tf.keras.initializers.serialize(self.bias_initializer),
        )
        return config
