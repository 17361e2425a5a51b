"""The Keras layer ScalarBias."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


@tf.keras.utils.register_keras_serializable(package="scalar_bias")
class ScalarBias(tf.keras.layers.Layer):
    """Computes `inputs + v`.

    Dtypes: weights are stored in the layer's variable dtype; `call` computes in its
    compute dtype, which its outputs have too. Both come from the layer's policy:
    `dtype=` in the constructor, or else the global policy.

    Args:
        v_initializer: Initializer of `v`, of shape `()`. Defaults to `"zeros"`.
        **kwargs: Arguments of any Keras layer, such as `name` and `dtype`.

    Input shape:
        `(batch, ..., in)`, of floats or integers.

    Output shape:
        `(batch, ..., in)`.

    Example:

    >>> layer = ScalarBias(dtype="mixed_float16")
    >>> layer(tf.ones((2, 5))).dtype
    tf.float16
    """

    def __init__(
        self,
        v_initializer: Any = "zeros",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.v_initializer = tf.keras.initializers.get(v_initializer)
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        """Creates the weights, in the variable dtype if nothing else is said."""
        self.v = self.add_weight(
            name="v",
            shape=(),
            dtype=self.variable_dtype,
            initializer=self.v_initializer,
        )
        super().build(input_shape)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Computes the outputs in the compute dtype."""
        # Keras casts float inputs and weights by itself, but no integers. A cast to the
        # dtype that is there already adds nothing to the graph.
        inputs = tf.cast(inputs, self.compute_dtype)
        v = tf.cast(self.v, self.compute_dtype)
        return inputs + v

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """Returns the shape of the outputs for inputs of this shape."""
        return tuple(input_shape)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments; the base config has the name and the policy."""
        config: dict[str, Any] = super().get_config()
        config.update(
            v_initializer=tf.keras.initializers.serialize(self.v_initializer),
        )
        return config
