"""What the tests of all layers share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

# TensorFlow reads both when it is imported: errors alone are printed, and several test
# processes can share one GPU.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")

POLICIES = (
    "float32",
    "mixed_float16",
    "mixed_bfloat16",
    "float64",
    "float16",
    "bfloat16",
)


@pytest.fixture(params=POLICIES)
def policy(request: pytest.FixtureRequest) -> str:
    """Each dtype policy in turn, for a layer's `dtype=`."""
    return str(request.param)


@pytest.fixture
def global_policy(policy: str) -> Iterator[str]:
    """Each dtype policy in turn as the global one, which is put back afterwards."""
    import tensorflow as tf

    before = tf.keras.mixed_precision.global_policy()
    tf.keras.mixed_precision.set_global_policy(policy)
    yield policy
    tf.keras.mixed_precision.set_global_policy(before)


@pytest.fixture(autouse=True)
def seed() -> None:
    """The same random numbers for a test whichever tests run before it."""
    import tensorflow as tf

    tf.keras.utils.set_random_seed(0)
