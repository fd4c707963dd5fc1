"""What `lockstep status` says of a copy that is late on purpose, or that ends at an offset."""

from dataclasses import replace
from typing import Any

import pytest

from lockstep_ops.status.partition_status import LogOffsets, find_holds, is_conclusive
from lockstep_ops.status.report import PartitionLine
from lockstep_ops.status.report_builder import build_report
from lockstep_rules.offsets.lag import LogRange
from lockstep_state.rows.state_rows import DesiredState, PartitionProgress, Row, SeenEnds, SourceEnds
from tests.support.reports import FLOW, LIMITS, NOW, at_work, progress, topic

DELAY = 1_800_000
OLD = 60_000
TP = ("t", 0)


def line(*rows: Row, released: int = 10, lag_ms: int = DELAY, delay_ms: int = DELAY, **logs: Any) -> PartitionLine:
    """A copy up to offset 9 of a log that ends at 20, whose row was written long ago."""
    seen = SeenEnds(topic="t", partition=0, released=released)
    ends = SourceEnds(asked_ms=NOW, ends=(("t", 0, 20),), since_ms=(NOW - lag_ms,))
    copied = replace(progress(downstream=9), at_ms=NOW - OLD, lag_records=0, source_end=10)
    usual = (topic(), *at_work(TP), copied, seen, ends)
    log_offsets = LogOffsets(
        **{"source": {TP: LogRange(0, 20)}, "target": {("A.t", 0): 10}, "earlier": {TP: 20}, **logs}
    )
    by_key = {row.key(): row for row in (*usual, *rows)}
    report = build_report(
        FLOW, by_key, at_ms=NOW, logs=log_offsets, limits=LIMITS, delay_ms=lambda name: delay_ms if name == "t" else 0
    )
    return report.partitions[0]


def test_copy_that_is_as_late_as_wanted_is_on_time() -> None:
    found = line()
    assert (found.state, found.why, found.delay_ms, found.lag_records) == (
        "copying",
        "delayed 30 min, on time",
        DELAY,
        10,
    )


def test_copy_that_is_later_than_wanted_says_by_how_much() -> None:
    assert line(lag_ms=DELAY + 600_000).why == "delayed 30 min, 10 min late"


def test_delayed_copy_that_does_not_take_what_is_released_is_stalled() -> None:
    assert line(released=15).state == "stalled"
    assert line(released=15, earlier={}).state == "copying"


def test_copy_without_a_delay_says_nothing_of_one() -> None:
    found = line(delay_ms=0)
    assert (found.state, found.delay_ms, found.end) == ("stalled", 0, None)


@pytest.mark.parametrize(
    ("end", "phase", "state", "why"),
    [
        (15, "copying", "stalled", "the source has more, and the copy does not move"),
        (10, "copying", "copying", "it ends at 10"),
        (10, "stopped", "stopped", "it ends at 10"),
        (7, "stopped", "stopped", "its end is 7, and 3 offsets beyond it were copied before it was set"),
    ],
)
def test_copy_that_ends_says_where(end: int, phase: str, state: str, why: str) -> None:
    ending = DesiredState(scope="topic:t", phase="stopped", before_ms=5, ends=(("t", 0, end),))
    copied = replace(progress(downstream=9), at_ms=NOW - OLD, phase=phase, lag_records=0, source_end=10)
    found = line(ending, copied)
    assert (found.state, found.why, found.end) == (state, why, end)


def test_flow_that_waits_for_its_delay_is_looked_at_once() -> None:
    rows: list[Row] = [
        topic(),
        replace(progress(), at_ms=NOW - OLD),
        SeenEnds(topic="t", partition=0, released=10),
    ]
    logs = LogOffsets(source={TP: LogRange(0, 20)})
    assert is_conclusive(rows, NOW, logs, lambda name: DELAY)
    assert not is_conclusive(rows, NOW, logs)


def test_delayed_partition_of_which_nothing_was_seen_is_held_from_its_first_record_on() -> None:
    row = PartitionProgress(topic="t", partition=0)
    assert find_holds([row], lambda name: DELAY)[TP].limit == 0
    assert find_holds([row]) == {}
