"""Which clusters a slot leaves to its driver, to say that they are away, and when it is another driver's turn."""

from pathlib import Path

import pytest

from lockstep_data_plane.slot.slot_spec import SlotSpec
from lockstep_state.rows.state_rows import Leader
from tests.support.flow_context import flow_settings

OTHER_LOGIN = "B.producer.security.protocol = SSL\n"


@pytest.mark.parametrize(
    ("lines", "beside", "clusters"), [("", True, {"A", "B"}), ("", False, set()), (OTHER_LOGIN, True, {"A"})]
)
def test_slot_spec_leaves_to_the_driver_clusters_that_both_reach(
    tmp_path: Path, lines: str, beside: bool, clusters: set[str]
) -> None:
    settings = flow_settings(tmp_path, lines)
    assert SlotSpec(settings=settings, slot=0, run="r", producer_id=1, beside_driver=beside).driver_clusters == clusters


@pytest.mark.parametrize(
    ("service", "instance", "term", "succeeded"),
    [
        ("data-plane", "two", 8, True),
        ("data-plane", "two", 7, False),
        ("data-plane", "two", 6, False),
        ("data-plane", "one", 8, False),
        ("topic-sync", "two", 8, False),
    ],
    ids=["a later claim", "its own claim's place", "an earlier claim", "its own driver once more", "another service"],
)
def test_a_later_claim_of_another_driver_ends_a_slot(
    tmp_path: Path, service: str, instance: str, term: int, succeeded: bool
) -> None:
    settings = flow_settings(tmp_path)
    spec = SlotSpec(settings=settings, slot=0, run="r", producer_id=1, instance="one", term=7)
    assert spec.is_succeeded_by(Leader(service=service, instance=instance), term) is succeeded


@pytest.mark.parametrize(("cut_off_ms", "left_s"), [(0, 5.0), (10_000, 5.0), (8_000, 3.0), (1_000, 0.0), (11_000, 5.0)])
def test_slot_spec_counts_the_appends_of_others_from_their_end(tmp_path: Path, cut_off_ms: int, left_s: float) -> None:
    settings = flow_settings(tmp_path)
    spec = SlotSpec(settings=settings, slot=0, run="r", producer_id=1, cut_off_ms=cut_off_ms)
    assert spec.appends_of_others_s(10_000) == left_s
