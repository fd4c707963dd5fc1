"""A producer id belongs to one flow, one origin and one target cluster, known by their ids (`kafka-wire.md` §0, §4)."""

from dataclasses import replace

import pytest

from lockstep_data_plane.provenance.producer_ids import (
    CHOSEN_IDS,
    chosen_producer_id,
    find_origin,
    last_origin,
    origin_row,
)
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import Origin, PartitionProgress, decode_row

FLOW = Flow("A", "B")
OURS = Origin(producer_id=4000, source="A", target="B", origin_cluster_id="id-a", target_cluster_id="id-b")


def test_the_first_row_in_the_log_holds() -> None:
    rows = [PartitionProgress(topic="t", partition=0), OURS, replace(OURS, producer_id=4001)]
    assert find_origin(rows, FLOW, "id-a", "id-b") == OURS
    assert find_origin([], FLOW, "id-a", "id-b") is None


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


def test_last_origin_is_the_one_that_partitions_were_copied_under() -> None:
    first, rebuilt = replace(OURS, term=3), replace(OURS, producer_id=4001, origin_cluster_id="id-new", term=9)
    passed_on = replace(OURS, producer_id=4002, origin_cluster_id="id-c")
    partition = PartitionProgress(topic="t", partition=0, producer_id=4000, at_ms=5)
    assert last_origin([first, rebuilt, passed_on, partition], FLOW, "id-b") == first
    later = replace(partition, partition=1, producer_id=4001, at_ms=6)
    assert last_origin([first, rebuilt, passed_on, partition, later], FLOW, "id-b") == rebuilt


def test_last_origin_without_a_copy_is_the_last_of_a_driver() -> None:
    first, rebuilt = replace(OURS, term=3, at_ms=1), replace(OURS, producer_id=4001, term=9, at_ms=2)
    passed_on = replace(OURS, producer_id=4002, origin_cluster_id="id-c", at_ms=3)
    assert last_origin([first, passed_on, rebuilt], FLOW, "id-b") == rebuilt
    assert last_origin([first], FLOW, "another target") is None


def test_chosen_id_is_the_same_for_the_same_clusters_only() -> None:
    chosen = chosen_producer_id("id-a", "id-b")
    assert chosen == chosen_producer_id("id-a", "id-b")
    assert len({chosen, chosen_producer_id("id-c", "id-b"), chosen_producer_id("id-a", "id-c")}) == 3
    assert CHOSEN_IDS <= chosen < 2**53, "every reader of JSON keeps it exact"


def test_row_of_a_chosen_id_is_read_as_it_was_written() -> None:
    row = origin_row(chosen_producer_id("id-a", "id-b"), FLOW, "id-a", "id-b", "read-back")
    assert decode_row(*row.encode()) == row
