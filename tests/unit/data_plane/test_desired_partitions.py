"""What is wanted of a slot's partitions: of all that a partition lies in, the most restrained word counts."""

import time

import pytest

from lockstep_config.flow.connector_settings import StatedPhase, StatedPhases
from lockstep_data_plane.slot.desired_partitions import (
    DesiredPartition,
    closed_slots,
    desired_partitions,
    has_failed,
    resting_partitions,
    slot_restarts,
)
from lockstep_runtime.state.desired_state import DesiredPhase
from lockstep_state.rows.state_rows import DesiredState, PartitionProgress, Restarts, Row
from tests.support.reasons import reported

MINE = [("orders", 0), ("orders", 1), ("a-1", 0)]
SOURCE = "connector:MirrorSourceConnector"


def rows(*wanted: DesiredState) -> dict[str, Row]:
    return {row.key(): row for row in wanted}


def rests(*wanted: DesiredState, slot: int = 0) -> dict[tuple[str, int], str]:
    return {
        tp: order.resting_reason
        for tp, order in desired_partitions(rows(*wanted), slot, MINE).items()
        if order.resting_reason
    }


@pytest.mark.parametrize(
    ("scope", "partitions"),
    [
        ("partition:orders-1", {("orders", 1)}),
        ("partition:a-1-0", {("a-1", 0)}),
        ("topic:orders", {("orders", 0), ("orders", 1)}),
        ("slot:0", set(MINE)),
        ("slot:1", set()),
        (SOURCE, set(MINE)),
        ("connector:MirrorHeartbeatConnector", set()),
    ],
)
def test_desired_phase_applies_to_all_partitions_of_its_scope(scope: str, partitions: set[tuple[str, int]]) -> None:
    assert set(rests(DesiredState(scope=scope, phase="paused"))) == partitions
    assert rests(DesiredState(scope=scope, phase="running")) == {}


def test_desired_partition_has_the_most_restrictive_phase() -> None:
    phases = rests(
        DesiredState(scope="topic:orders", phase="paused"),
        DesiredState(scope="partition:orders-1", phase="running"),
        DesiredState(scope="slot:0", phase="stopped"),
    )
    assert phases == dict.fromkeys(MINE, "stopped")


def test_desired_partitions_rest_where_the_file_pauses_the_source() -> None:
    paused = StatedPhases(source=StatedPhase(phase="paused", key="k"))
    assert {order.resting_reason for order in desired_partitions({}, 0, MINE, paused).values()} == {"paused"}
    running = rows(DesiredState(scope=SOURCE, phase="running"))
    assert {order.resting_reason for order in desired_partitions(running, 0, MINE, paused).values()} == {"paused"}
    others = StatedPhases(
        checkpoint=StatedPhase(phase="stopped", key="k"), heartbeat=StatedPhase(phase="stopped", key="k")
    )
    assert desired_partitions({}, 0, MINE, others) == desired_partitions({}, 0, MINE)
    progress = [PartitionProgress(topic="orders", partition=0, slot=0, phase="copying")]
    assert resting_partitions({}, progress, paused) == progress


def test_desired_partitions_restart_only_in_the_scope_of_the_request() -> None:
    before = desired_partitions(rows(), 0, MINE)
    assert before == dict.fromkeys(MINE, DesiredPartition())
    asked = desired_partitions(rows(DesiredState(scope="topic:orders", restart="c1")), 0, MINE)
    again = desired_partitions(
        rows(DesiredState(scope="topic:orders", restart="c2"), DesiredState(scope="slot:0", restart="c3")), 0, MINE
    )
    assert len({asked[MINE[0]], again[MINE[0]], before[MINE[0]]}) == 3
    assert asked[MINE[2]] == again[MINE[2]], "the driver begins a slot anew, not the slot its partitions"
    assert all(order.phase is DesiredPhase.RUNNING for order in again.values())


def test_desired_partitions_without_a_restart_are_equal() -> None:
    """Else one pause of anything would begin all partitions of all slots anew."""
    before, after = (
        desired_partitions(rows(), 0, MINE),
        desired_partitions(rows(DesiredState(scope="topic:payments", phase="paused")), 0, MINE),
    )
    assert before == after


def test_desired_resting_counts_where_a_slot_was_killed_before_its_row() -> None:
    progress = [
        PartitionProgress(topic="orders", partition=0, slot=0),
        PartitionProgress(topic="orders", partition=1, slot=1, phase="halted"),
        PartitionProgress(topic="payments", partition=0, slot=1),
        PartitionProgress(topic="payments", partition=1, slot=2, phase="paused"),
    ]
    assert resting_partitions(rows(), progress) == progress[3:], "it has not gone on yet"
    assert resting_partitions(rows(DesiredState(scope="topic:orders", phase="paused")), progress) == [
        progress[0],
        progress[3],
    ]
    assert resting_partitions(rows(DesiredState(scope="slot:1", phase="stopped")), progress) == progress[2:]


def test_slots_that_rest_are_closed_but_a_connector_s_pause_closes_none() -> None:
    wanted = rows(
        DesiredState(scope="slot:0", phase="paused"),
        DesiredState(scope="slot:2", phase="stopped"),
        DesiredState(scope="slot:7", phase="stopped"),
        DesiredState(scope=SOURCE, phase="paused"),
    )
    assert closed_slots(wanted, 4) == {0, 2}


def test_ten_thousand_partitions_take_no_time() -> None:
    many = [(f"topic-{n // 10}", n % 10) for n in range(10_000)]
    began = time.process_time()
    assert len(desired_partitions(rows(DesiredState(scope="topic:topic-1", phase="paused")), 0, many)) == 10_000
    assert time.process_time() - began < 0.5, "usual is 0.03"


def test_failed_slot_waits_for_a_restart_of_it_or_of_its_connector() -> None:
    failed = Restarts(
        owner="data-plane", subject="slot:0", count=3, phase="failed", cause=reported("x"), asked=("c1", "")
    )
    asked = DesiredState(scope=SOURCE, restart="c1")
    rows = {failed.key(): failed, asked.key(): asked}
    assert slot_restarts(rows, 0) == failed
    assert has_failed(rows, 0)
    assert not has_failed(rows, 1)
    assert closed_slots(rows, 2) == {0}
    for scope in ("slot:0", SOURCE):
        again = DesiredState(scope=scope, restart="c2")
        assert not has_failed({**rows, again.key(): again}, 0)
    other = DesiredState(scope="slot:1", restart="c2")
    assert has_failed({**rows, other.key(): other}, 0)
    assert slot_restarts({}, 4) == Restarts(owner="data-plane", subject="slot:4")


def test_partition_with_an_end_runs_until_it_has_reached_it() -> None:
    row = DesiredState(scope="topic:orders", phase="stopped", before_ms=5, ends=(("orders", 0, 7),))
    desired = desired_partitions(rows(row), 0, MINE)
    assert {tp: (order.end, order.resting_reason) for tp, order in desired.items()} == {
        ("orders", 0): (7, ""),
        ("orders", 1): (0, ""),
        ("a-1", 0): (None, ""),
    }
    assert desired["orders", 0].ended() == DesiredPartition(DesiredPhase.STOPPED, end=7)
    paused = DesiredState(scope="partition:orders-0", phase="paused")
    both = desired_partitions(rows(row, paused), 0, MINE)["orders", 0]
    assert both == DesiredPartition(DesiredPhase.PAUSED, end=7), "an end does not make it run"
