"""A partition's phases are a table, and what it says of itself holds."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from crc32c import crc32c

from lockstep_data_plane.core.events import (
    Acked,
    AllAnswered,
    CopyTrouble,
    Failed,
    Fetched,
    Halted,
    Leave,
    NothingCopied,
    PartitionEvent,
    Quarantined,
    Refused,
    Resumed,
    RowLoaded,
    TopicChanged,
)
from lockstep_data_plane.core.machine import PartitionMachine
from lockstep_data_plane.core.phases import TRANSITIONS, Phase, PhaseEvent
from lockstep_data_plane.core.target_tail import LastAppend
from lockstep_data_plane.record_batch.classify import AbortedTransactions, TargetLimits
from lockstep_data_plane.record_batch.layout import Batch, scan
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_protocol.rows.state_rows import PartitionProgress
from tests.support.batch_bytes import CONTROL, GZIP, LOG_APPEND_TIME, batch, batch_bytes, record, records
from tests.unit.data_plane.machine_steps import ROW, admit, append, launch, resumed, waits

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "reference" / "partition-phases.md"


def drawn() -> str:
    """The table as a diagram and as a table, for `docs/reference/partition-phases.md`."""
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {Phase.RESUMING.value}"]
    for phase, moves in TRANSITIONS.items():
        goals: dict[Phase, list[str]] = {}
        for happening, goal in moves.items():
            goals.setdefault(goal, []).append(happening.value)
        lines += [f"    {phase.value} --> {goal.value}: {', '.join(names)}" for goal, names in goals.items()]
    lines += ["```", ""]
    lines += ["| | " + " | ".join(h.value for h in PhaseEvent) + " |", "|---" * (len(PhaseEvent) + 1) + "|"]
    for phase, moves in TRANSITIONS.items():
        cells = (moves[h].value if h in moves else "" for h in PhaseEvent)
        lines.append(f"| **{phase.value}** | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def partition(upstream: int = -1, limits: TargetLimits | None = None) -> PartitionMachine:
    """One that copies, with nothing of ours in the target yet."""
    return resumed(replace(ROW, upstream=upstream), LastAppend(-1, -1), limits)


REFUSED = Refused("timestamps")
ROUTES: dict[Phase, tuple[PartitionEvent, ...]] = {
    Phase.RESUMING: (Failed(), AllAnswered()),
    Phase.COPYING: (),
    Phase.SETTLING: (Failed(),),
    Phase.DRAINING: (REFUSED,),
    Phase.LOCATING: (Failed(), AllAnswered(), Leave("paused"), Resumed(ROW, LastAppend(4, 4))),
    Phase.HALTED: (REFUSED, AllAnswered()),
    Phase.RELEASED: (Leave(goes_on=True), AllAnswered()),
}
"""How a partition that copies gets into each phase."""

STEPS: dict[PhaseEvent, PartitionEvent] = {
    PhaseEvent.RESUMED: Resumed(ROW, LastAppend(-1, -1)),
    PhaseEvent.FAILED: Failed("why"),
    PhaseEvent.REFUSED: Refused("because"),
    PhaseEvent.SETTLED: AllAnswered(),
    PhaseEvent.QUARANTINED: Quarantined(None),
    PhaseEvent.LEAVE: Leave(goes_on=True),
    PhaseEvent.REST: Leave("paused"),
    PhaseEvent.FOUND: NothingCopied(),
}
"""The events that say what happens; how the others come about is in the tests behind this."""

LATE = (PhaseEvent.FAILED, PhaseEvent.REFUSED, PhaseEvent.LEAVE, PhaseEvent.REST)
"""They may come for a partition that is past them, and change nothing then."""


def in_phase(phase: Phase) -> PartitionMachine:
    p = partition()
    for event in ROUTES[phase]:
        p.step(event)
    assert p.phase is phase
    return p


class TestTheTable:
    def test_the_document_shows_it(self) -> None:
        assert drawn() in DOCUMENT.read_text(), "docs/reference/partition-phases.md is to hold drawn() as it is now"

    def test_each_phase_has_its_row(self) -> None:
        assert set(TRANSITIONS) == set(Phase)

    @pytest.mark.parametrize("event", [PhaseEvent.RESUMED, *LATE, PhaseEvent.QUARANTINED])
    @pytest.mark.parametrize("phase", Phase)
    def test_partition_event_changes_the_phase_by_the_table_or_raises(self, phase: Phase, event: PhaseEvent) -> None:
        p = in_phase(phase)
        if p.locates and event in (PhaseEvent.RESUMED, PhaseEvent.REFUSED):
            event = PhaseEvent.FOUND if event is PhaseEvent.RESUMED else PhaseEvent.REFUSED_AT_REST
        if event in TRANSITIONS[phase]:
            assert p.can(event)
            step = STEPS.get(event) or STEPS[PhaseEvent.REFUSED]
            assert p.step(step).phase is p.phase is TRANSITIONS[phase][event]
        elif event in (*LATE, PhaseEvent.REFUSED_AT_REST):
            before = p.state
            assert p.step(STEPS.get(event) or STEPS[PhaseEvent.REFUSED]).report == ()
            assert p.state == before
        else:
            with pytest.raises(KeyError):
                p.step(STEPS.get(event) or STEPS[PhaseEvent.RESUMED])
            assert p.phase is phase

    @pytest.mark.parametrize("phase", [p for p in Phase if p not in (Phase.SETTLING, Phase.DRAINING)])
    def test_only_a_partition_that_waits_for_answers_may_have_them_all(self, phase: Phase) -> None:
        with pytest.raises(KeyError):
            in_phase(phase).step(AllAnswered())

    def test_every_phase_can_be_reached_and_left_but_the_last(self) -> None:
        reached = {Phase.RESUMING} | {goal for moves in TRANSITIONS.values() for goal in moves.values()}
        assert reached == set(Phase)
        assert [phase for phase, moves in TRANSITIONS.items() if not moves] == [Phase.RELEASED]

    def test_every_event_is_in_the_table(self) -> None:
        assert {event for moves in TRANSITIONS.values() for event in moves} == set(PhaseEvent)

    def test_partition_can_leave_in_every_phase(self) -> None:
        for event in (PhaseEvent.LEAVE, PhaseEvent.REST):
            assert all(event in moves for phase, moves in TRANSITIONS.items() if phase is not Phase.RELEASED)

    def test_partition_refused_by_the_target_drains_and_halts_with_the_reason(self) -> None:
        p = partition()
        admit(p, batch(records(0, 2)))
        assert p.step(REFUSED).report == ()
        assert not p.quiet, "what was queued before the refused batch still goes"
        append(p, 0)
        assert p.quiet
        ready = p.step(AllAnswered())
        assert (ready.phase, ready.fetch_from, ready.report) == (Phase.HALTED, None, (Halted("timestamps", 1),))
        row = p.row()
        assert (row.phase, row.case, row.reason, row.upstream, row.sequence) == (
            *("halted", "refused", "timestamps"),
            *(1, 1),
        )

    def test_partition_refused_by_the_target_frees_unsent_batches(self) -> None:
        p = partition()
        admit(p, batch(records(0, 2)), batch(records(2, 2)))
        p.step(Refused("timestamps", sent=launch(p)))
        assert p.quiet
        p.step(AllAnswered())
        assert (p.phase, p.bytes_held) == (Phase.HALTED, 0)

    def test_partition_that_leaves_is_released_also_after_a_refusal(self) -> None:
        p = partition()
        p.step(Leave(goes_on=True))
        p.step(REFUSED)
        assert p.step(AllAnswered()).phase is Phase.RELEASED

    def test_partition_to_be_paused_is_paused_once_appends_are_acknowledged(self) -> None:
        p = partition()
        admit(p, batch(records(0, 2)))
        sent = launch(p)
        assert p.step(Leave("paused")).fetch_from is None
        assert p.row().phase == "copying"
        p.step(Acked(sent, 0, now_ms=0))
        p.step(AllAnswered())
        assert (p.row().phase, p.row().upstream) == ("paused", 1)

    @pytest.mark.parametrize("event", [Failed(), Leave(goes_on=True), Leave()])
    def test_partition_that_failed_or_leaves_sends_nothing_more(self, event: PartitionEvent) -> None:
        p = partition()
        admit(p, batch(records(0, 2)))
        p.step(event)
        assert not waits(p)
        assert p.quiet

    def test_failure_is_reported_once(self) -> None:
        p = partition()
        assert p.step(Failed("why")).report == (CopyTrouble("why"),)
        assert p.step(Failed("why")).report == ()

    def test_batches_are_smaller_after_one_was_too_large(self) -> None:
        p = partition()
        admit(p, batch(records(0, 2)))
        p.step(Failed("too large", launch(p), max_bytes=0))
        assert p.limits.max_bytes == 1

    @pytest.mark.parametrize(
        ("ids", "phase"),
        [(("s", "t"), Phase.COPYING), (("other", "t"), Phase.SETTLING), (("s", "other"), Phase.SETTLING)],
    )
    def test_topic_created_again_makes_a_copying_partition_settle(self, ids: tuple[str, str], phase: Phase) -> None:
        p = resumed(replace(ROW, source_topic_id="s", target_topic_id="t"))
        ready = p.step(TopicChanged(TargetLimits(500), *ids, 1))
        assert (ready.phase, len(ready.report), p.limits.max_bytes) == (phase, phase is not Phase.COPYING, 500)

    def test_fetched_batches_of_an_earlier_incarnation_are_thrown_away(self) -> None:
        p = partition()
        for event in (Failed(), AllAnswered(), Resumed(ROW, LastAppend(-1, -1))):
            p.step(event)
        late = p.step(Fetched(1, [batch(records(0, 2))], AbortedTransactions(), 2, size=0, now_ms=0))
        assert (late.appends, p.records_held, p.incarnation) == (False, 0, 2)


class TestAdmission:
    def test_damaged_batch_is_refused_with_its_offsets_and_earlier_ones_stay(self) -> None:
        p = partition()
        (damaged,) = scan(batch_bytes(records(4, 2))[:-1] + b"\x55")
        admit(p, batch(records(0, 4)), damaged)
        assert re.search(r"offsets 4 to 5: its CRC does not match", p.reason)
        assert p.position == 4
        assert launch(p).outgoing.covers == 3

    def test_a_record_too_large_is_refused_by_its_offset(self) -> None:
        p = partition(limits=TargetLimits(200))
        admit(p, batch([record(0), record(1, bytes(300))]))
        assert re.search(r"the record at offset 1 needs", p.reason)

    def test_records_that_cannot_be_read_are_refused(self) -> None:
        p = partition(limits=TargetLimits(codec=3))
        raw = bytearray(batch_bytes(records(0, 2)))
        raw[57:61] = b"\0\0\0\x09"  # nine records, it says
        raw[17:21] = batch_crc(bytes(raw))
        (wrong,) = scan(bytes(raw))
        admit(p, wrong)
        assert re.search(r"offsets from 0", p.reason)

    def test_skipped_records_are_progress_at_once_with_nothing_in_flight(self) -> None:
        p = partition()
        admit(p, batch(records(0, 1), attributes=CONTROL))
        assert p.row().upstream == 0

    def test_skipped_records_behind_a_batch_are_progress_with_it(self) -> None:
        p = partition()
        admit(p, batch(records(0, 2)), batch(records(2, 1), attributes=CONTROL))
        assert p.row().upstream == -1
        append(p, 0)
        assert (p.row().upstream, p.row().downstream, p.row().sequence) == (2, 1, 1)


class TestWhereCountingArrives:
    """Two records were appended after the row: what the source has there is held against the target's last batch."""

    def at(self, last: Batch | None) -> PartitionMachine:
        return resumed(end=LastAppend(1, 1, last))

    @pytest.mark.parametrize(
        "last",
        [
            pytest.param(batch(records(0, 2)), id="the same record"),
            pytest.param(batch(records(0, 2), codec=GZIP), id="recompressed"),
            pytest.param(
                batch(records(0, 2), attributes=LOG_APPEND_TIME, max_timestamp=5), id="a target with its own time"
            ),
            pytest.param(batch(records(0, 1), last_offset=1), id="removed by the target's cleaner"),
            pytest.param(None, id="none is left"),
        ],
    )
    def test_the_copy_goes_on_behind_it(self, last: Batch | None) -> None:
        p = self.at(last)
        admit(p, batch(records(0, 3)))
        assert p.row().upstream == 1
        assert list(launch(p).outgoing.offsets) == [2]

    def test_resume_by_an_earlier_record_finds_the_place_of_the_last_one(self) -> None:
        """Offsets 0 to 3 were appended, the target's cleaner has left 0 and 1."""
        p = resumed(end=LastAppend(3, 3, batch(records(0, 2), last_offset=2), behind=1))
        admit(p, batch(records(0, 6)))
        assert p.row().upstream == 3
        assert list(launch(p).outgoing.offsets) == [4, 5]

    @pytest.mark.parametrize(
        ("left", "end"),
        [
            pytest.param([0, 1, 3, 4, 5], LastAppend(3, 3, batch(records(0, 2)), behind=2), id="behind it"),
            pytest.param([1, 2, 3, 4, 5], LastAppend(3, 3, batch(records(0, 2)), behind=2), id="before it"),
            pytest.param([0, 1, 3, 4, 5], LastAppend(3, 3), id="none is left"),
            pytest.param([1, 2, 3, 4, 5], LastAppend(3, 3), id="none is left, the first is gone"),
        ],
    )
    def test_resume_with_records_lost_on_the_source_is_a_mismatch(self, left: list[int], end: LastAppend) -> None:
        p = resumed(end=end)
        ready = admit(p, batch([r for r in records(0, 6) if r.offset in left]))
        assert (ready.phase, p.misnumbered, p.records_held) == (Phase.SETTLING, True, 0)
        assert p.row().upstream == -1

    def test_none_left_and_none_missing_is_a_count(self) -> None:
        p = resumed(end=LastAppend(3, 9))
        admit(p, batch(records(0, 3)), batch(records(3, 3)))
        assert p.row().upstream == 3
        assert list(launch(p).outgoing.offsets) == [4, 5]

    @pytest.mark.parametrize(
        "other",
        [
            pytest.param(record(1, b"other", timestamp=1001), id="value"),
            pytest.param(record(1, b"value-1", key=None, timestamp=1001), id="key"),
            pytest.param(record(1, b"value-1", timestamp=7), id="time"),
            pytest.param(record(1, b"value-1", timestamp=1001, headers=[("h", b"")]), id="headers"),
        ],
    )
    def test_resume_with_another_record_is_a_mismatch_and_sends_nothing(self, other: PlainRecord) -> None:
        p = self.at(batch([*records(0, 1), other]))
        (found,) = admit(p, batch(records(0, 3))).report
        assert isinstance(found, CopyTrouble)
        assert "last record of ours, at its offset 1, is not the source's at 1" in str(found.why)
        assert (p.misnumbered, p.records_held) == (True, 0)
        assert (p.row().upstream, p.row().sequence) == (-1, -1)


class TestAcknowledgement:
    def test_counters_count_appended_records(self) -> None:
        p = partition()
        one, two = batch(records(0, 2)), batch(records(2, 3))
        for found in (one, two):
            admit(p, found)
            append(p, found.base_offset)
        assert (p.row().records, p.row().bytes) == (5, len(one.data) + len(two.data))
        assert not p.fruitless


class TestLag:
    def test_lag_of_a_partition_is_the_undurable_records_up_to_the_source_end(self) -> None:
        p = partition(upstream=9)
        assert p.lag == 0, "the source's end is not known yet"
        admit(p, source_end=30)
        assert p.lag == p.row().lag_records == 20
        admit(p, batch(records(10, 20)))
        assert p.lag == 20, "queued is not durable"
        append(p, 0)
        assert p.lag == 0

    def test_lag_of_a_partition_is_never_below_zero(self) -> None:
        p = partition(upstream=9)
        admit(p, source_end=5)  # read_committed: the last stable offset may lie behind
        assert p.lag == 0

    def test_lag_ms_is_the_age_of_the_oldest_record_in_flight(self) -> None:
        p = partition()
        admit(p, source_end=4)
        admit(p, batch(records(0, 2)))
        assert p.lag_ms(now_ms=1500) == 500
        sent = launch(p)
        admit(p, batch(records(2, 2)))
        p.step(Acked(sent, 0, now_ms=0))
        assert p.lag_ms(now_ms=1500) == 498

    def test_lag_ms_counts_from_the_last_record_while_the_next_is_unread(self) -> None:
        p = partition()
        admit(p, source_end=4)
        admit(p, batch(records(0, 2)))
        append(p, 0)
        assert p.lag_ms(now_ms=1501) == 500

    @pytest.mark.parametrize("now_ms", [0, 1000, 10**12])
    def test_lag_ms_is_zero_without_lag(self, now_ms: int) -> None:
        p = partition()
        admit(p, source_end=2)
        admit(p, batch(records(0, 2)))
        append(p, 0)
        assert p.lag_ms(now_ms) == 0

    def test_lag_ms_is_zero_without_records_or_a_usable_timestamp(self) -> None:
        p = partition()
        admit(p, source_end=2)
        assert p.lag_ms(5000) == 0
        admit(p, batch([record(0, timestamp=-1)]))
        assert p.lag_ms(5000) == 0
        q = partition()
        admit(q, source_end=2)
        admit(q, batch([record(0, timestamp=9000)]))
        assert q.lag_ms(5000) == 0


def batch_crc(raw: bytes) -> bytes:
    return int(crc32c(raw[21:])).to_bytes(4, "big")


def test_loaded_row_is_known_before_resuming_and_kept_after_a_refusal() -> None:
    p = PartitionMachine("t", 0, "A.t", 100)
    assert not p.is_loaded
    row = PartitionProgress(topic="t", partition=0, upstream=49, downstream=49, producer_id=7, sequence=49)
    p.step(RowLoaded(row))
    assert p.is_loaded
    p.step(Refused("a gap", case="records-gone"))
    assert (p.phase, p.row().upstream, p.row().producer_id, p.row().sequence) == (Phase.HALTED, 49, 7, 49)


def test_partition_state_differs_when_its_row_differs() -> None:
    p = partition()
    seen: dict[object, PartitionProgress] = {p.state: p.row()}

    def looked_at() -> None:
        row = p.row()
        assert seen.setdefault(p.state, row) == row

    admit(p, batch(records(0, 2)))
    looked_at()
    append(p, 0)
    looked_at()
    admit(p, source_end=9)
    looked_at()
    admit(p, batch(records(2, 1), attributes=CONTROL))
    looked_at()
    admit(p, batch(records(3, 2)))
    append(p, 2)
    looked_at()
    p.step(Failed())
    p.step(AllAnswered())
    p.step(Resumed(p.row(), LastAppend(p.row().sequence, p.row().downstream)))
    looked_at()
    p.step(Refused("why"))
    looked_at()
    p.step(AllAnswered())
    looked_at()
    assert len({row.encode() for row in seen.values()}) > 4
