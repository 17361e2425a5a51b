"""Generated pairs pass as they are written; one edit makes the right law fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from faults import SAMPLE, KindTwin
from kind_twins import KIND_TWINS
from pairs import SPECS, skipped_by_intention
from twins import TWINS, Twin
from variants import VARIANTS

from scaffold.spec import LayerSpec

if TYPE_CHECKING:
    from conftest import Outcome

pytestmark = pytest.mark.tensorflow


def module(name: str) -> str:
    return LayerSpec(name, "", (), (), "", None, frozenset(), (), (), False, 0).module


@pytest.mark.parametrize("name", SPECS)
def test_matrix_passes(name: str, outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes[SPECS[name].module]
    assert not outcome.failed
    skipped = {test.split("[")[0] for test in outcome.skipped}
    assert skipped == skipped_by_intention(SPECS[name])
    assert len(outcome.passed) > 80


@pytest.mark.parametrize("twin", [*TWINS, *KIND_TWINS], ids=lambda twin: twin.name)
def test_faulty_twin_is_caught(twin: Twin, outcomes: dict[str, Outcome]) -> None:
    import tensorflow as tf

    if twin.keras3_only and not hasattr(tf.keras, "ops"):
        pytest.skip("no fault in Keras 2")
    outcome = outcomes[module(twin.name)]
    assert set(twin.laws) <= outcome.laws()
    assert outcome.failed
    assert any(twin.words in message for message in outcome.failed.values())


@pytest.mark.parametrize("twin", SAMPLE, ids=lambda twin: twin.spec.name)
def test_fault_is_caught_on_any_kind(
    twin: KindTwin, fault_outcomes: dict[str, Outcome]
) -> None:
    """The tests that ran are those of the laws that must catch it."""
    assert fault_outcomes[twin.spec.module].failed


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda twin: twin.name)
def test_sound_variant_passes(variant: Twin, outcomes: dict[str, Outcome]) -> None:
    import tensorflow as tf

    if variant.keras3_only and not hasattr(tf.keras, "ops"):
        pytest.skip("Keras 2 builds such a layer otherwise")
    outcome = outcomes[module(variant.name)]
    assert not outcome.failed
    assert len(outcome.passed) > 80
