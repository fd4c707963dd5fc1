"""What the demo shows of the mirroring."""

import io
from dataclasses import replace

from rich.console import Console

from lockstep_state.rows.state_rows import PartitionProgress
from tools.demo.screen import FlowLine, Snapshot, TopicLine, as_table
from tools.demo.watch import partition_lag

SNAPSHOT = Snapshot(
    seconds=12.3,
    phase="traffic goes on",
    group="group billing: 120 records read on A (orders)",
    topics=(
        TopicLine("A->B", "orders", 2_000, 1_990, 10, 45, 200.4),
        TopicLine("A->B", "payments", 1_000, 1_000, 0, 0, 100.0),
        TopicLine("B->A", "stock", 500, 500, 0, 0, 50.0),
    ),
    flows=(FlowLine("A->B", 900, 44, 1_100), FlowLine("B->A", None, 0, None)),
)


def test_lag_before_any_progress_is_what_the_target_lacks() -> None:
    assert partition_lag(120, 0, None) == 120
    assert partition_lag(120, 120, None) == 0


def test_lag_counts_what_came_after_progress_was_written() -> None:
    written = PartitionProgress(topic="orders", partition=0, upstream=99, downstream=99)
    assert partition_lag(150, 100, written) == 50
    assert partition_lag(150, 140, written) == 10
    assert partition_lag(150, 150, written) == 0


def test_lag_holds_when_downstream_offsets_differ_from_upstream_ones() -> None:
    written = PartitionProgress(topic="orders", partition=0, upstream=99, downstream=39)
    assert partition_lag(150, 40, written) == 50
    assert partition_lag(150, 90, written) == 0


def test_lag_is_never_negative() -> None:
    assert partition_lag(100, 120, PartitionProgress(topic="orders", partition=0, upstream=99, downstream=99)) == 0


def test_lag_of_a_chain_that_has_begun_and_appended_nothing() -> None:
    """Before the first append `downstream` is the target's log end minus 1 at that time."""
    begun = PartitionProgress(topic="orders", partition=0, upstream=-1, downstream=9)
    assert partition_lag(5, 10, begun) == 5
    assert partition_lag(5, 13, begun) == 2


def shown(snapshot: Snapshot) -> str:
    out = io.StringIO()
    Console(file=out, width=120).print(as_table(snapshot))
    return out.getvalue()


def test_the_table_shows_each_topic_once_under_its_flow() -> None:
    text = shown(SNAPSHOT)
    orders = next(line for line in text.splitlines() if "orders " in line and "A->B" in line)
    assert [cell.strip() for cell in orders.strip("│").split("│")] == [
        *("A->B", "orders", "2,000", "1,990", "10", "45", "200"),
    ]
    assert "A->B  heartbeat 0.9 s ago, 44 checkpoints, the last 1.1 s ago" in text
    assert "B->A  heartbeat none yet, 0 checkpoints" in text
    assert "group billing: 120 records" in text


def test_a_halted_partition_is_seen() -> None:
    halted = replace(SNAPSHOT, flows=(FlowLine("A->B", 900, 0, None, ("orders-2: source truncated",)),))
    assert "HALTED orders-2: source truncated" in shown(halted)


def test_the_snapshot_sums_the_lag() -> None:
    assert SNAPSHOT.lag_records == 10
