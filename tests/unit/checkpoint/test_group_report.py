"""Rows and events of groups, while rounds of the source and of the target report at the same time."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lockstep_checkpoint.group_report import GroupReport
from lockstep_checkpoint.group_view import ReadingTime, TranslationState
from lockstep_kafka.librdkafka.control_producer import ControlProducer, ControlTopicLog
from lockstep_kafka.topics.topic_reader import Record
from lockstep_rules.groups.group_sync import IN_USE, REFUSED, Ahead
from lockstep_rules.offsets.run_translator import TranslatedOffset
from lockstep_rules.selection_count import SelectionCount
from lockstep_runtime.flow.context import FlowContext
from lockstep_state.codecs.mm2_codec import Checkpoint
from lockstep_state.events import Event, decode_event
from lockstep_state.offsets import DownstreamOffset, TopicPartition, UpstreamOffset
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.group_rows import REWOUND_ON_SOURCE
from lockstep_state.rows.state_rows import GroupStatus, decode_row
from tests.support.flow_context import leading
from tests.support.reasons import reported

GROUP = "orders"  # falls to partition 0
TERM = 7
BEGAN = ReadingTime(0.0, 0)
WRITTEN = {("A.t", 0): Checkpoint(GROUP, "A.t", 0, UpstreamOffset(100), DownstreamOffset(100), "")}


def every(_: str) -> bool:
    return True


class Late(ControlProducer):
    """Appends to a log that is read back, each a little later than it was asked for."""

    def __init__(self, ctx: FlowContext) -> None:
        self._ctx = ctx
        self.appended: list[tuple[str, bytes | None, bytes | None]] = []

    async def start(self) -> None:
        await asyncio.sleep(0)

    def send(
        self, topic: str, key: bytes | None, value: bytes | None, *_: Any, **__: Any
    ) -> asyncio.Future[tuple[int, int]]:
        return asyncio.ensure_future(self._append(topic, key, value))

    async def _append(self, topic: str, key: bytes | None, value: bytes | None) -> tuple[int, int]:
        await asyncio.sleep(0)
        at = len(self.appended)
        self.appended.append((topic, key, value))
        if topic == "state":
            self._ctx.state.receive([Record(topic, 0, at, key, value, 0)])
        return 0, at

    def rows(self) -> Sequence[GroupStatus]:
        rows = [decode_row(key or b"", value) for topic, key, value in self.appended if topic == "state"]
        return [row for row in rows if isinstance(row, GroupStatus)]

    def events(self) -> Sequence[Event]:
        return [decode_event(value or b"") for topic, _, value in self.appended if topic == "events"]


def opened(ctx: FlowContext) -> Late:
    """Open the logs of a context; what is appended to them is read back."""
    log = Late(ctx)
    ctx.open(log, ControlTopicLog(log, "events"))
    ctx.state.open(ControlTopicLog(log, "state"), ctx.leadership.read_claim)
    return log


def reporting(
    folder: Path, written: Mapping[TopicPartition, Checkpoint] = WRITTEN, lines: str = ""
) -> tuple[GroupReport, Late]:
    ctx = leading(folder, "checkpoint", (0, TERM), divided=True, lines=lines)
    log = opened(ctx)
    return GroupReport(ctx, lambda _: written), log


def reporting_of(folder: Path, written: Mapping[TopicPartition, Checkpoint]) -> tuple[GroupReport, Late]:
    """With group sync."""
    return reporting(folder, written, "sync.group.offsets.enabled = true\n")


async def source_read(report: GroupReport, *groups: str, **states: TranslationState) -> tuple[str, ...]:
    """These groups exist on the source, in these states, and no others."""
    return await report.on_source_read(dict.fromkeys(groups, TranslationState()) | states, {}, every, BEGAN)


async def read_source_once(report: GroupReport, trouble: str = "") -> None:
    if trouble:
        await report.on_source_read({}, {GROUP: reported(trouble)}, every, BEGAN)
    else:
        await source_read(report, GROUP)


async def test_group_report_from_two_concurrent_reads_is_written_once(tmp_path: Path) -> None:
    report, log = reporting(tmp_path)
    await read_source_once(report)

    async def read_on() -> None:
        for _ in range(8):
            await read_source_once(report)
            await asyncio.sleep(0)

    await asyncio.gather(report.record_synced(GROUP, {("A.t", 0): 100}), read_on())
    assert [row.synced for row in log.rows()] == [False, True]


async def test_group_report_of_the_source_keeps_the_result_of_the_target(tmp_path: Path) -> None:
    report, log = reporting(tmp_path)
    await read_source_once(report)
    await read_source_once(report, "no answer")
    await asyncio.gather(read_source_once(report), report.record_synced(GROUP, {}))
    last = log.rows()[-1]
    assert last.synced
    assert last.phase == "translated"
    assert [event.kind for event in log.events()].count("GroupSynced") == 1


async def test_group_report_of_a_group_deleted_during_a_read_stays_deleted(tmp_path: Path) -> None:
    report, log = reporting(tmp_path)
    await read_source_once(report)
    gone = source_read(report)
    await asyncio.gather(gone, report.record_synced(GROUP, {}))
    await report.record_synced(GROUP, {})
    await report.record_held(GROUP, IN_USE, ReasonCode.REPORTED.to_reason(text="it is active"))
    assert log.rows()[-1].is_gone
    assert report.left_alone() == {}
    assert [event.kind for event in log.events()].count("GroupGone") == 1
    assert report.phases() == {"translated": 0, "waiting": 0, "failing": 0}


async def test_group_that_goes_while_its_event_is_appended_stays_gone(tmp_path: Path) -> None:
    report, log = reporting(tmp_path)
    await read_source_once(report)
    event = report._ctx.event

    async def appended(kind: str, *what: Any, **detail: Any) -> Any:
        if kind == "GroupSynced":
            await source_read(report)
        return await event(kind, *what, **detail)

    report._ctx.event = appended  # type: ignore[method-assign]  # another round ends while this one waits
    await report.record_synced(GROUP, {("A.t", 0): 100})
    assert log.rows()[-1].is_gone
    assert report.groups() == ()


def checkpoint(offset: int) -> Checkpoint:
    return Checkpoint(GROUP, "A.t", 0, UpstreamOffset(offset), DownstreamOffset(offset), "")


EXACT = TranslationState(((("A.t", 0), TranslatedOffset(DownstreamOffset(100))),))


async def test_group_report_keeps_a_refusal_of_the_target_until_it_is_over(tmp_path: Path) -> None:
    report, log = reporting_of(tmp_path, WRITTEN)
    await read_source_once(report)
    await report.record_synced(GROUP, {})
    await report.record_held(GROUP, REFUSED, ReasonCode.REPORTED.to_reason(text="no right to write"))
    last = log.rows()[-1]
    assert (last.held, last.held_reason) == (REFUSED, "no right to write")
    assert report.count_held()[REFUSED] == 1
    assert report.left_alone() == {GROUP: "no right to write"}
    assert report.synced_groups() == 0
    await report.record_synced(GROUP, {})
    last = log.rows()[-1]
    assert (last.held, last.held_reason, report.left_alone(), report.synced_groups()) == ("", "", {}, 1)


async def test_group_report_names_a_rewound_group_until_it_catches_up(tmp_path: Path) -> None:
    written = {("A.t", 0): checkpoint(900)}
    report, log = reporting_of(tmp_path, written)
    await source_read(report, orders=EXACT)
    await report.record_synced(GROUP, {("A.t", 0): 900})
    assert (log.rows()[-1].ahead, log.rows()[-1].exact) == ((), 1)
    written["A.t", 0] = checkpoint(100)
    await source_read(report, orders=EXACT)
    last = log.rows()[-1]
    assert last.ahead == (("A.t", 0, 900, 100, REWOUND_ON_SOURCE),)
    assert (last.rewound, last.exact) == ((("A.t", 0, 900),), 0)
    await report.record_synced(GROUP, {}, (Ahead(("A.t", 0), 900, 100, REWOUND_ON_SOURCE),))
    assert [event.kind for event in log.events()].count("GroupAhead") == 1
    assert {word: count for word, count in report.count_partitions().items() if count} == {"rewound-on-source": 1}
    assert {word: count for word, count in report.count_held().items() if count} == {"rewound-on-source": 1}
    assert "rewound on source" in report.left_alone()[GROUP]

    later = GroupReport(report._ctx, lambda _: written)  # another process goes on from the rows
    await source_read(later, orders=EXACT)
    assert later.rewound(GROUP) == {("A.t", 0): 900}
    assert later.count_held()[REWOUND_ON_SOURCE] == 1
    written["A.t", 0] = checkpoint(900)
    await later.record_synced(GROUP, {})
    assert (log.rows()[-1].ahead, log.rows()[-1].rewound, later.left_alone()) == ((), (), {})


async def test_group_report_of_a_rewound_group_used_on_the_target_is_kept(tmp_path: Path) -> None:
    """`follow` must not set back what somebody read there after the rewind."""
    written = {("A.t", 0): checkpoint(900)}
    report, _ = reporting_of(tmp_path, written)
    await source_read(report, orders=EXACT)
    await report.record_synced(GROUP, {})
    written["A.t", 0] = checkpoint(100)
    await source_read(report, orders=EXACT)
    await report.record_held(GROUP, IN_USE, ReasonCode.REPORTED.to_reason(text="it has members on the target"))
    assert report.rewound(GROUP) == {}
    assert {word: count for word, count in report.count_held().items() if count} == {"in-use": 1}


async def test_selection_of_no_group_is_reported_once(tmp_path: Path) -> None:
    report, log = reporting(tmp_path)

    def details() -> list[Mapping[str, object]]:
        return [event.detail for event in log.events() if event.kind == "NoGroupSelected"]

    for count in (SelectionCount(8, 2, 0), SelectionCount(9, 2, 0), SelectionCount(9, 9, 9), SelectionCount(3, 0, 0)):
        await report.record_reading((0,), 1, count)
        await report.record_failure((0,), reported("no rights"))
        await asyncio.sleep(0)  # the event is on its way
    assert details() == [{"total": 8, "included": 2}, {"total": 3, "included": 0}]
    await report.record_reading((1,), 1, SelectionCount(3, 0, 0))
    assert len(details()) == 2, "the replica with the first share reports it for all"
