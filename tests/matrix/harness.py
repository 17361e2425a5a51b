"""Keras's own harness, told of a layer what its generated test file says of it."""

from __future__ import annotations

import functools
import importlib
import io
import sys
import tempfile
import zlib
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scaffold.rendering import render

if TYPE_CHECKING:
    from collections.abc import Callable

    from scaffold.spec import LayerSpec


@functools.cache
def sound_test(spec: LayerSpec) -> Any:
    """Imports the test file that is generated for a spec."""
    texts = render(spec)
    folder = tempfile.mkdtemp()
    Path(folder, f"{spec.module}.py").write_text(texts.module, "utf-8")
    Path(folder, f"test_{spec.module}.py").write_text(texts.test, "utf-8")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(f"test_{spec.module}")
    finally:
        sys.path.remove(folder)


@functools.cache
def expectations(spec: LayerSpec) -> dict[str, Any]:
    """Returns all that `run_layer_test` can be told to expect of the spec's layer."""
    from keras import tree

    test = sound_test(spec)
    layer = test.make_layer()
    outputs = tree.flatten(test.apply(layer, test.fed(test.make_inputs(32), "float32")))
    return {
        "expected_output_shape": (*outputs[0].shape,) if len(outputs) == 1 else None,
        "expected_num_trainable_weights": len(layer.trainable_weights),
        "expected_num_non_trainable_weights": len(layer.non_trainable_weights),
        "supports_masking": layer.supports_masking,
    }


def layer_test(spec: LayerSpec, expected: dict[str, Any]) -> Callable[[type], None]:
    """Returns `run_layer_test` for a layer of the spec, faulty or sound."""
    from keras.src.testing import TestCase

    class Harness(TestCase):  # type: ignore[misc]
        def runTest(self) -> None:  # noqa: N802 -- unittest's name
            pass

    test = sound_test(spec)
    return functools.partial(
        Harness().run_layer_test,
        init_kwargs=test.ARGUMENTS,
        input_data=test.fed(test.make_inputs(32), "float32"),
        **expected,
    )


def verdict(cls: type, spec: LayerSpec) -> str:
    """What `run_layer_test` says of a layer: "passes", "fails", or "-".

    The last is where it does not pass the sound layer of the spec either.
    """
    # One for all that differ by their name alone.
    number = zlib.crc32(repr(spec._replace(name="")).encode())
    sound = spec._replace(name=f"Sound{number}")
    return said_of(cls, sound) if said_of(None, sound) == "passes" else "-"


@functools.cache
def said_of(cls: type | None, sound: LayerSpec) -> str:
    import keras

    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            layer_test(sound, expectations(sound))(
                cls or getattr(sound_test(sound), sound.name)
            )
    except Exception:  # noqa: BLE001 -- a faulty layer may raise anything
        return "fails"
    finally:
        # Some set the global policy, and so would spoil the next.
        keras.config.set_dtype_policy("float32")
    return "passes"
