"""A partition's phases are a table, and what it says of itself holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from crc32c import crc32c

from lockstep_data_plane.common.window_sizing import WINDOW
from lockstep_data_plane.core.appended_skipper import RecordMismatch
from lockstep_data_plane.core.machine import BatchRejected, PartitionMachine
from lockstep_data_plane.core.phases import TRANSITIONS, PartitionEvent, Phase
from lockstep_data_plane.core.target_tail import LastAppend
from lockstep_data_plane.record_batch.classify import AbortedTransactions, TargetLimits
from lockstep_data_plane.record_batch.layout import Batch, scan
from lockstep_data_plane.record_batch.rebuild import PlainRecord
from lockstep_protocol.rows.state_rows import PartitionProgress
from tests.support.batch_bytes import CONTROL, GZIP, LOG_APPEND_TIME, batch, batch_bytes, record, records

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "reference" / "partition-phases.md"


def drawn() -> str:
    """The table as a diagram and as a table, for `docs/reference/partition-phases.md`."""
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {Phase.RESUMING.value}"]
    for phase, moves in TRANSITIONS.items():
        goals: dict[Phase, list[str]] = {}
        for happening, goal in moves.items():
            goals.setdefault(goal, []).append(happening.value)
        lines += [f"    {phase.value} --> {goal.value}: {', '.join(names)}" for goal, names in goals.items()]
    lines += [f"    draining --> {Phase.HALTED.value}: drained, after it was refused something", "```", ""]
    lines += ["| | " + " | ".join(h.value for h in PartitionEvent) + " |", "|---" * (len(PartitionEvent) + 1) + "|"]
    for phase, moves in TRANSITIONS.items():
        cells = (moves[h].value if h in moves else "" for h in PartitionEvent)
        lines.append(f"| **{phase.value}** | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def partition(upstream: int = -1, limits: TargetLimits | None = None) -> PartitionMachine:
    """One that copies, with nothing of ours in the target yet."""
    p = PartitionMachine("t", 3, "a.t", 100)
    p.limits = limits or TargetLimits()
    row = PartitionProgress(topic="t", partition=3, upstream=upstream, producer_id=4000, producer_epoch=1)
    p.resumed(row, LastAppend(-1, -1))
    return p


def admit(p: PartitionMachine, *batches: Batch) -> None:
    p.admit(batches, AbortedTransactions())


def append(p: PartitionMachine, base_offset: int) -> None:
    """The next piece goes out and is acknowledged there."""
    p.acknowledged(p.target_partitions[0].launch(), base_offset)


class TestTheTable:
    def test_the_document_shows_it(self) -> None:
        assert drawn() in DOCUMENT.read_text(), "docs/reference/partition-phases.md is to hold drawn() as it is now"

    def test_each_phase_has_its_row(self) -> None:
        assert set(TRANSITIONS) == set(Phase)

    @pytest.mark.parametrize("happening", PartitionEvent)
    @pytest.mark.parametrize("phase", Phase)
    def test_partition_event_changes_the_phase_by_the_table_or_raises(
        self, phase: Phase, happening: PartitionEvent
    ) -> None:
        p = partition()
        admit(p, batch(records(0, 2)))
        p.phase = phase
        if happening in TRANSITIONS[phase]:
            assert p.can(happening)
            assert p.on(happening, "because") is p.phase is TRANSITIONS[phase][happening]
        else:
            assert not p.can(happening)
            with pytest.raises(KeyError):
                p.on(happening, "because")
            assert (p.phase, p.reason, p.leaving, p.append_sequence.idle) == (phase, "", False, False)

    def test_every_phase_can_be_reached_and_left_but_the_last(self) -> None:
        reached = {Phase.RESUMING, Phase.HALTED} | {goal for moves in TRANSITIONS.values() for goal in moves.values()}
        assert reached == set(Phase)
        assert [phase for phase, moves in TRANSITIONS.items() if not moves] == [Phase.RELEASED]

    def test_partition_can_leave_in_every_phase(self) -> None:
        for happening in (PartitionEvent.LEAVE, PartitionEvent.REST):
            assert all(happening in moves for phase, moves in TRANSITIONS.items() if phase is not Phase.RELEASED)

    def test_partition_refused_by_the_target_drains_and_halts_with_the_reason(self) -> None:
        p = partition()
        admit(p, batch(records(0, 2)))
        p.on(PartitionEvent.REFUSED, "timestamps")
        assert not p.quiet, "what was queued before the refused batch still goes"
        append(p, 0)
        assert p.quiet
        assert p.on(PartitionEvent.DRAINED) is Phase.HALTED
        row = p.row()
        assert (row.phase, row.reason, row.upstream, row.sequence) == ("halted", "timestamps", 1, 1)

    def test_partition_refused_by_the_target_frees_unsent_batches(self) -> None:
        p = partition()
        admit(p, batch(records(0, 2)), batch(records(2, 2)))
        p.lost(p.append_sequence.launch())
        p.on(PartitionEvent.REFUSED, "timestamps")
        assert p.quiet
        assert p.append_sequence.bytes_held > 0
        assert p.on(PartitionEvent.DRAINED) is Phase.HALTED
        assert p.append_sequence.bytes_held == 0

    def test_partition_that_leaves_is_released_also_after_a_refusal(self) -> None:
        p = partition()
        p.on(PartitionEvent.LEAVE)
        p.on(PartitionEvent.REFUSED, "timestamps")
        assert p.on(PartitionEvent.DRAINED) is Phase.RELEASED

    def test_partition_to_be_paused_is_paused_once_appends_are_acknowledged(self) -> None:
        p = partition()
        admit(p, batch(records(0, 2)))
        flight = p.target_partitions[0].launch()
        p.rests = "paused"
        p.on(PartitionEvent.LEAVE)
        assert p.row().phase == "copying"
        p.acknowledged(flight, 0)
        p.on(PartitionEvent.DRAINED)
        assert (p.row().phase, p.row().upstream) == ("paused", 1)

    @pytest.mark.parametrize("happening", [PartitionEvent.FAILED, PartitionEvent.LEAVE])
    def test_partition_that_failed_or_leaves_sends_nothing_more(self, happening: PartitionEvent) -> None:
        p = partition()
        admit(p, batch(records(0, 2)))
        p.on(happening)
        assert not p.append_sequence.may_launch(WINDOW)
        assert p.quiet


class TestAdmission:
    def test_damaged_batch_is_refused_with_its_offsets_and_earlier_ones_stay(self) -> None:
        p = partition()
        (damaged,) = scan(batch_bytes(records(4, 2))[:-1] + b"\x55")
        with pytest.raises(BatchRejected, match=r"offsets 4 to 5: its CRC does not match"):
            admit(p, batch(records(0, 4)), damaged)
        assert p.position == 4
        assert p.append_sequence.launch().piece.covers == 3

    def test_a_record_too_large_is_refused_by_its_offset(self) -> None:
        p = partition(limits=TargetLimits(200))
        with pytest.raises(BatchRejected, match=r"the record at offset 1 needs"):
            admit(p, batch([record(0), record(1, bytes(300))]))

    def test_records_that_cannot_be_read_are_refused(self) -> None:
        p = partition(limits=TargetLimits(codec=3))
        raw = bytearray(batch_bytes(records(0, 2)))
        raw[57:61] = b"\0\0\0\x09"  # nine records, it says
        raw[17:21] = batch_crc(bytes(raw))
        (wrong,) = scan(bytes(raw))
        with pytest.raises(BatchRejected, match="offsets from 0"):
            admit(p, wrong)

    def test_skipped_records_are_progress_at_once_with_nothing_in_flight(self) -> None:
        p = partition()
        admit(p, batch(records(0, 1), attributes=CONTROL))
        assert (p.acked.upstream, p.row().upstream) == (0, 0)

    def test_skipped_records_behind_a_piece_are_progress_with_it(self) -> None:
        p = partition()
        admit(p, batch(records(0, 2)), batch(records(2, 1), attributes=CONTROL))
        assert p.acked.upstream == -1
        append(p, 0)
        assert (p.acked.upstream, p.acked.downstream, p.acked.sequence) == (2, 1, 1)


class TestWhereCountingArrives:
    """Two records were appended after the row: what the source has there is held against the target's last batch."""

    def resumed(self, last: Batch | None) -> PartitionMachine:
        p = PartitionMachine("t", 3, "a.t", 100)
        p.resumed(PartitionProgress(topic="t", partition=3, producer_id=4000), LastAppend(1, 1, last))
        return p

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
        p = self.resumed(last)
        admit(p, batch(records(0, 3)))
        assert p.row().upstream == 1
        assert list(p.target_partitions[0].launch().piece.offsets) == [2]

    def resumed_at(self, end: LastAppend) -> PartitionMachine:
        p = PartitionMachine("t", 3, "a.t", 100)
        p.resumed(PartitionProgress(topic="t", partition=3, producer_id=4000), end)
        return p

    def test_resume_by_an_earlier_record_finds_the_place_of_the_last_one(self) -> None:
        """Offsets 0 to 3 were appended, the target's cleaner has left 0 and 1."""
        p = self.resumed_at(LastAppend(3, 3, batch(records(0, 2), last_offset=2), behind=1))
        admit(p, batch(records(0, 6)))
        assert p.row().upstream == 3
        assert list(p.target_partitions[0].launch().piece.offsets) == [4, 5]

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
        p = self.resumed_at(end)
        with pytest.raises(RecordMismatch):
            admit(p, batch([r for r in records(0, 6) if r.offset in left]))
        assert p.append_sequence.idle
        assert p.row().upstream == -1

    def test_none_left_and_none_missing_is_a_count(self) -> None:
        p = self.resumed_at(LastAppend(3, 9))
        admit(p, batch(records(0, 3)), batch(records(3, 3)))
        assert p.row().upstream == 3
        assert list(p.target_partitions[0].launch().piece.offsets) == [4, 5]

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
        p = self.resumed(batch([*records(0, 1), other]))
        with pytest.raises(RecordMismatch, match=r"last record of ours, at its offset 1, is not the source's at 1"):
            admit(p, batch(records(0, 3)))
        assert p.append_sequence.idle
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
        assert p.acked.lag == 0, "the source's end is not known yet"
        p.acked.source_end = 30
        assert p.acked.lag == p.row().lag_records == 20
        admit(p, batch(records(10, 20)))
        assert p.acked.lag == 20, "queued is not durable"
        append(p, 0)
        assert p.acked.lag == 0

    def test_lag_of_a_partition_is_never_below_zero(self) -> None:
        p = partition(upstream=9)
        p.acked.source_end = 5  # read_committed: the last stable offset may lie behind
        assert p.acked.lag == 0

    def test_lag_ms_is_the_age_of_the_oldest_record_in_flight(self) -> None:
        p = partition()
        p.acked.source_end = 4
        admit(p, batch(records(0, 2)), batch(records(2, 2)))
        assert p.lag_ms(now_ms=1500) == 500
        p.append_sequence.on_ack(p.append_sequence.launch(), 0)
        assert p.lag_ms(now_ms=1500) == 498

    def test_lag_ms_counts_from_the_last_record_while_the_next_is_unread(self) -> None:
        p = partition()
        p.acked.source_end = 4
        admit(p, batch(records(0, 2)))
        append(p, 0)
        assert p.lag_ms(now_ms=1501) == 500

    @pytest.mark.parametrize("now_ms", [0, 1000, 10**12])
    def test_lag_ms_is_zero_without_lag(self, now_ms: int) -> None:
        p = partition()
        p.acked.source_end = 2
        admit(p, batch(records(0, 2)))
        append(p, 0)
        assert p.lag_ms(now_ms) == 0

    def test_lag_ms_is_zero_without_records_or_a_usable_timestamp(self) -> None:
        p = partition()
        p.acked.source_end = 2
        assert p.lag_ms(5000) == 0
        admit(p, batch([record(0, timestamp=-1)]))
        assert p.lag_ms(5000) == 0
        q = partition()
        q.acked.source_end = 2
        admit(q, batch([record(0, timestamp=9000)]))
        assert q.lag_ms(5000) == 0


def batch_crc(raw: bytes) -> bytes:
    return int(crc32c(raw[21:])).to_bytes(4, "big")


def test_loaded_row_is_known_before_resuming_and_kept_after_a_refusal() -> None:
    p = PartitionMachine("t", 0, "A.t", 100)
    assert not p.acked.is_loaded
    row = PartitionProgress(topic="t", partition=0, upstream=49, downstream=49, producer_id=7, sequence=49)
    p.acked.load(row)
    assert p.acked.is_loaded
    p.on(PartitionEvent.REFUSED, "a gap")
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
    p.acked.source_end = 9
    looked_at()
    admit(p, batch(records(2, 1), attributes=CONTROL))
    looked_at()
    admit(p, batch(records(3, 2)))
    append(p, 2)
    looked_at()
    p.on(PartitionEvent.FAILED)
    p.on(PartitionEvent.SETTLED)
    p.resumed(p.row(), LastAppend(p.acked.sequence, p.acked.downstream))
    looked_at()
    p.on(PartitionEvent.REFUSED, "why")
    looked_at()
    p.on(PartitionEvent.DRAINED)
    looked_at()
    assert len({row.encode() for row in seen.values()}) > 4
