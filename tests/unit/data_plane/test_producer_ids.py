"""A producer id belongs to one flow, one origin and one target cluster, known by their ids (`kafka-wire.md` §0, §4)."""

from dataclasses import replace

import pytest

from lockstep_data_plane.provenance.producer_ids import find_origin
from lockstep_protocol.names import Flow
from lockstep_protocol.rows.state_rows import Origin, PartitionProgress

FLOW = Flow("A", "B")
OURS = Origin(producer_id=4000, source="A", target="B", origin_cluster_id="id-a", target_cluster_id="id-b")


def test_the_first_row_in_the_log_holds() -> None:
    rows = [PartitionProgress(topic="t", partition=0), OURS, replace(OURS, producer_id=4001)]
    assert find_origin(rows, FLOW, "id-a", "id-b") == OURS


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(replace(OURS, target_cluster_id="id-new"), id="the target was built anew under its old name"),
        pytest.param(replace(OURS, origin_cluster_id="id-c"), id="another origin"),
        pytest.param(replace(OURS, source="B", target="A"), id="the flow the other way"),
        pytest.param(replace(OURS, source="C"), id="another source"),
    ],
)
def test_a_row_about_something_else_does_not_count(other: Origin) -> None:
    assert find_origin([other], FLOW, "id-a", "id-b") is None
    assert find_origin([other, OURS], FLOW, "id-a", "id-b") == OURS


def test_origin_without_rows_is_none() -> None:
    assert find_origin([], FLOW, "id-a", "id-b") is None
