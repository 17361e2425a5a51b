"""The Keras layer MyLayer."""

from __future__ import annotations

from typing import Any

import keras


@keras.saving.register_keras_serializable(package="my_layer")
class MyLayer(keras.layers.Layer):
    """Computes `inputs @ w + b`.

    Dtypes: weights are stored in the layer's variable dtype; `call` computes in its
    compute dtype, which its outputs have too. Both come from the layer's policy:
    `dtype=` in the constructor, or else the global policy.

    Args:
        units: Positive integer, the size of the last output axis.
        w_initializer: Initializer of `w`, of shape `(in, units)`. Defaults to
            `"glorot_uniform"`.
        b_initializer: Initializer of `b`, of shape `(units,)`. Defaults to `"zeros"`.
        **kwargs: Arguments of any Keras layer, such as `name` and `dtype`.

    Input shape:
        `(batch, ..., in)`, of floats or integers.

    Output shape:
        `(batch, ..., units)`.

    Raises:
        ValueError: If `units` is not a positive integer.

    Example:

    >>> layer = MyLayer(units=3, dtype="mixed_float16")
    >>> outputs = layer(keras.ops.ones((2, 5)))
    >>> keras.backend.standardize_dtype(outputs.dtype)
    'float16'
    """

    def __init__(
        self,
        units: int,
        w_initializer: Any = "glorot_uniform",
        b_initializer: Any = "zeros",
        **kwargs: Any,
    ) -> None:
        if not isinstance(units, int) or units < 1:
            raise ValueError(
                f"`units` must be a positive integer. Received: units={units!r}"
            )
        super().__init__(**kwargs)
        self.units = units
        self.w_initializer = keras.initializers.get(w_initializer)
        self.b_initializer = keras.initializers.get(b_initializer)
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        """Creates the weights, in the variable dtype if nothing else is said."""
        input_dim = input_shape[-1]
        if input_dim is None:
            raise ValueError(
                "The size of the last input axis must be known. "
                f"Received: input_shape={input_shape}"
            )
        self.w = self.add_weight(
            name="w",
            shape=(input_dim, self.units),
            dtype=self.variable_dtype,
            initializer=self.w_initializer,
        )
        self.b = self.add_weight(
            name="b",
            shape=(self.units,),
            dtype=self.variable_dtype,
            initializer=self.b_initializer,
        )
        self.input_spec = keras.layers.InputSpec(min_ndim=2, axes={-1: input_dim})
        super().build(input_shape)

    def call(self, inputs: Any) -> Any:
        """Computes the outputs in the compute dtype."""
        # Keras casts float inputs and weights by itself, but no integers, and nothing
        # in `stateless_call`. A cast to the dtype that is there already does nothing.
        inputs = keras.ops.cast(inputs, self.compute_dtype)
        w = keras.ops.cast(self.w, self.compute_dtype)
        b = keras.ops.cast(self.b, self.compute_dtype)
        return inputs @ w + b

    def compute_output_shape(self, input_shape: Any) -> tuple[int | None, ...]:
        """Returns the shape of the outputs for inputs of this shape."""
        return (*input_shape[:-1], self.units)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments; the base config has the name and the policy."""
        config: dict[str, Any] = super().get_config()
        config.update(
            units=self.units,
            w_initializer=keras.initializers.serialize(self.w_initializer),
            b_initializer=keras.initializers.serialize(self.b_initializer),
        )
        return config
