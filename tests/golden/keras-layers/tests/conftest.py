"""What the tests of all layers share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

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
    import keras

    before = keras.mixed_precision.global_policy()
    keras.mixed_precision.set_global_policy(policy)
    yield policy
    keras.mixed_precision.set_global_policy(before)


@pytest.fixture(autouse=True)
def seed() -> None:
    """The same random numbers for a test whichever tests run before it."""
    import keras

    keras.utils.set_random_seed(0)
