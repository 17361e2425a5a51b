{%- set imported = 'keras' if cookiecutter.dialect == 'keras' else 'tensorflow as tf' -%}
{%- set keras = 'keras' if cookiecutter.dialect == 'keras' else 'tf.keras' -%}
"""What the tests of all layers share."""

from __future__ import annotations

{% if cookiecutter.dialect == 'tf' -%}
import os
{% endif -%}
from collections.abc import Iterator

import pytest

{% if cookiecutter.dialect == 'tf' -%}
# TensorFlow reads both when it is imported: errors alone are printed, and several test
# processes can share one GPU.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")

{% endif -%}
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
    import {{ imported }}

    before = {{ keras }}.mixed_precision.global_policy()
    {{ keras }}.mixed_precision.set_global_policy(policy)
    yield policy
    {{ keras }}.mixed_precision.set_global_policy(before)


@pytest.fixture(autouse=True)
def seed() -> None:
    """The same random numbers for a test whichever tests run before it."""
    import {{ imported }}

    {{ keras }}.utils.set_random_seed(0)
