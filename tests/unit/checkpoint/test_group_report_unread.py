"""The row of a group keeps its facts of the source until this process has read the source."""

from dataclasses import replace
from pathlib import Path

import pytest

from lockstep_checkpoint.group_report import GroupReport
from lockstep_rules.groups.group_sync import IN_USE, REFUSED, Ahead
from lockstep_state.codecs.mm2_codec import Checkpoint
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.group_rows import AHEAD_ON_TARGET, REWOUND_ON_SOURCE
from lockstep_state.rows.state_rows import GroupStatus
from tests.support.reasons import reported
from tests.unit.checkpoint.test_group_report import (
    EXACT,
    GROUP,
    WRITTEN,
    Late,
    checkpoint,
    read_source_once,
    reporting_of,
    source_read,
)
from tests.unit.checkpoint.test_target_group_sync import TP, Stage

KEPT = ("phase", "reason", "exact", "behind", "waiting", "more_behind", "more_waiting", "positions")
WAITS = GroupStatus(
    group=GROUP,
    phase="translated",
    reason="A.t-1: no offset sync yet",
    positions=(("A.t", 0, 100, 100),),
    behind=(("A.t", 0, 7),),
    waiting=(("A.t", 1, "no offset sync yet"),),
    more_behind=3,
    more_waiting=2,
    rewound=(("A.u", 4, 900),),
)
FAILS = replace(WAITS, phase="failing", reason="not permitted")


async def restarted(
    folder: Path, row: GroupStatus, written: dict[TopicPartition, Checkpoint] | None = None
) -> tuple[GroupReport, Late]:
    """An earlier process has written the row."""
    report, log = reporting_of(folder, WRITTEN if written is None else written)
    await report._ctx.state.write(row)
    return report, log


def of_source(row: GroupStatus) -> dict[str, object]:
    return {name: getattr(row, name) for name in KEPT}


@pytest.mark.parametrize("row", [WAITS, FAILS])
async def test_group_synced_before_the_source_was_read_keeps_its_row(tmp_path: Path, row: GroupStatus) -> None:
    report, log = await restarted(tmp_path, row)
    await report.record_synced(GROUP, {("A.t", 0): 100}, (Ahead(("A.u", 4), 900, 800, REWOUND_ON_SOURCE),))
    last = log.rows()[-1]
    assert of_source(last) == of_source(row)
    assert (last.synced, last.rewound) == (True, row.rewound)
    assert report.phases()[row.phase] == 1


@pytest.mark.parametrize("row", [WAITS, FAILS])
@pytest.mark.parametrize("written", [WRITTEN, {}])
async def test_group_held_before_the_source_was_read_keeps_its_row(
    tmp_path: Path, row: GroupStatus, written: dict[TopicPartition, Checkpoint]
) -> None:
    """Also while the checkpoints topic cannot be read."""
    report, log = await restarted(tmp_path, replace(row, synced=True), written)
    await report.record_held(GROUP, REFUSED, ReasonCode.REPORTED.to_reason(text="no right to write"))
    last = log.rows()[-1]
    assert of_source(last) == of_source(row)
    assert (last.held, last.synced, last.rewound) == (REFUSED, True, row.rewound)


async def test_group_unchanged_since_its_row_is_counted_and_not_written(tmp_path: Path) -> None:
    cause = ReasonCode.REPORTED.to_reason(text="it has members")
    row = replace(WAITS, synced=True, held=IN_USE, held_reason="it has members", held_cause=cause, rewound=())
    report, log = await restarted(tmp_path, row)
    await report.record_held(GROUP, IN_USE, cause)
    assert len(log.rows()) == 1
    assert report.count_held()[IN_USE] == 1
    assert report.phases()["translated"] == 1


async def test_group_found_ahead_before_the_source_was_read_is_not_exact(tmp_path: Path) -> None:
    report, log = await restarted(tmp_path, replace(WAITS, exact=2))
    await report.record_synced(GROUP, {}, (Ahead(("A.t", 0), 120, 100, AHEAD_ON_TARGET),))
    assert (log.rows()[-1].exact, log.rows()[-1].behind) == (2, ())
    await report.record_synced(GROUP, {}, (Ahead(("A.t", 9), 120, 100, AHEAD_ON_TARGET),))
    assert (log.rows()[-1].exact, log.rows()[-1].behind) == (1, WAITS.behind)


async def test_group_failing_before_it_was_read_keeps_its_target(tmp_path: Path) -> None:
    ahead = (("A.t", 0, 900, 100, REWOUND_ON_SOURCE),)
    row = replace(WAITS, synced=True, ahead=ahead, more_behind=0, more_waiting=0)
    report, log = await restarted(tmp_path, row)
    await read_source_once(report, "no answer")
    assert replace(log.rows()[-1], at_ms=0, term=0) == replace(
        row, phase="failing", reason="no answer", behind=(), cause=ReasonCode.REPORTED.because(reported("no answer"))
    )


async def test_group_rewound_is_known_before_the_source_was_read(tmp_path: Path) -> None:
    report, _ = await restarted(tmp_path, replace(WAITS, positions=(("A.t", 0, 900, 850),)))
    assert report.rewound(GROUP) == {("A.t", 0): 850, ("A.u", 4): 900}


async def test_group_synced_before_it_was_read_is_found_later(tmp_path: Path) -> None:
    report, log = await restarted(tmp_path, WAITS)
    await report.record_synced(GROUP, {})
    assert await source_read(report, orders=EXACT) == (GROUP,)
    last = log.rows()[-1]
    assert (last.synced, last.exact, last.behind, last.waiting, last.reason) == (True, 1, (), (), "")
    assert await source_read(report, orders=EXACT) == ()
    assert "GroupFound" not in [event.kind for event in log.events()]


async def test_group_that_is_new_is_reported_as_found(tmp_path: Path) -> None:
    report, log = await restarted(tmp_path, replace(WAITS, phase="waiting", cause=ReasonCode.GROUP_GONE.to_reason()))
    await read_source_once(report)
    assert [event.kind for event in log.events()] == ["GroupFound"]


async def test_group_after_a_rebalance_keeps_its_row(tmp_path: Path) -> None:
    report, log = await restarted(tmp_path, WAITS)
    report.reset()
    await report.record_synced(GROUP, {})
    report.reset()
    await report.record_held(GROUP, REFUSED, ReasonCode.REPORTED.to_reason(text="no right to write"))
    assert of_source(log.rows()[-1]) == of_source(WAITS)


async def test_sync_now_without_the_source_keeps_what_waits(tmp_path: Path) -> None:
    """`lockstep failover` asks for it; the switch then reads the row."""
    stage = Stage(tmp_path, lines="sync.group.offsets.enabled = true\n")
    stage.memory.written.record(1, checkpoint(100))
    await stage.ctx.state.write(WAITS)
    await stage.sync_now()
    assert stage.target.writes == [(GROUP, TP, 100)]
    assert stage.row().synced
    assert of_source(stage.row()) == of_source(WAITS)
