"""What a partition admits, counts, acknowledges and says of itself."""

import re
from dataclasses import replace

import pytest
from google_crc32c import value as crc32c

from lockstep_data_plane.core.effects import CopyTrouble, Persist
from lockstep_data_plane.core.events import (
    Acked,
    AcksDue,
    AllAnswered,
    Failed,
    Fetched,
    Leave,
    PartitionEvent,
    Received,
    Refused,
    Resumed,
    RowLoaded,
)
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.phases import Phase
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.record_batch.classify import AbortedTransactions, TargetLimits
from lockstep_data_plane.record_batch.layout import Batch, scan
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.batch_bytes import CONTROL, GZIP, LOG_APPEND_TIME, batch, batch_bytes, record, records
from tests.support.reasons import reported
from tests.unit.data_plane.partition_steps import ROW, admit, append, launch, partition, reports, resumed

NOW_MS, DAY_MS = 1_800_000_000_000, 86_400_000
YEAR_2262_MS = 9_223_372_036_854


class TestAdmission:
    def test_damaged_batch_is_refused_with_its_offsets_and_earlier_ones_stay(self) -> None:
        p = partition()
        (damaged,) = scan(batch_bytes(records(4, 2))[:-1] + b"\x55")
        admit(p, batch(records(0, 4)), damaged, source_end=6)
        assert re.search(r"offsets 4 to 5: its CRC does not match", p.row().reason)
        assert p.position == 4
        assert launch(p).outgoing.covers == 3

    def test_a_record_too_large_is_refused_by_its_offset(self) -> None:
        p = partition(limits=TargetLimits(200))
        admit(p, batch([record(0), record(1, bytes(300))]))
        assert re.search(r"the record at offset 1 needs", p.row().reason)

    def test_a_record_larger_than_half_a_refused_batch_is_sent_alone(self) -> None:
        """Half of what was too large is a guess: the target's limit may be anywhere between."""
        p, whole = partition(limits=TargetLimits(1100)), batch([record(0, bytes(50)), record(1, bytes(850))])
        admit(p, whole)
        sent = launch(p)
        p.step(Failed("too large", sent, split_above=sent.outgoing.size // 2))
        p.step(AllAnswered())
        p.step(Resumed(p.row(), LastAppend(-1, -1)))
        admit(p, whole)
        assert (p.row().reason, p.phase, p.position, p.routing.records_held) == ("", Phase.COPYING, 2, 2)
        for offset in (0, 1):
            append(p, offset)
            assert p.row().upstream == offset

    def test_records_that_cannot_be_read_are_refused(self) -> None:
        p = partition(limits=TargetLimits(codec=3))
        raw = bytearray(batch_bytes(records(0, 2)))
        raw[57:61] = b"\0\0\0\x09"  # nine records, it says
        raw[17:21] = batch_crc(bytes(raw))
        (wrong,) = scan(bytes(raw))
        admit(p, wrong)
        assert re.search(r"offsets 0 to 1", p.row().reason)

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

    def at(self, last: Batch | None) -> PartitionState:
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
        ("remaining", "end"),
        [
            pytest.param([0, 1, 3, 4, 5], LastAppend(3, 3, batch(records(0, 2)), behind=2), id="behind it"),
            pytest.param([1, 2, 3, 4, 5], LastAppend(3, 3, batch(records(0, 2)), behind=2), id="before it"),
            pytest.param([0, 1, 3, 4, 5], LastAppend(3, 3), id="none is left"),
            pytest.param([1, 2, 3, 4, 5], LastAppend(3, 3), id="none is left, the first is gone"),
        ],
    )
    def test_resume_with_records_lost_on_the_source_is_a_mismatch(self, remaining: list[int], end: LastAppend) -> None:
        p = resumed(end=end)
        admit(p, batch([r for r in records(0, 6) if r.offset in remaining]))
        assert (p.phase, p.counting_failed, p.routing.records_held) == (Phase.SETTLING, True, 0)
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
        (report,) = reports(admit(p, batch(records(0, 3))))
        assert isinstance(report, CopyTrouble)
        assert "last record of ours, at its offset 1, is not the source's at 1" in str(report.error)
        assert (p.counting_failed, p.routing.records_held) == (True, 0)
        assert (p.row().upstream, p.row().sequence) == (-1, -1)


class TestAcknowledgement:
    def test_counters_count_appended_records(self) -> None:
        p = partition()
        one, two = batch(records(0, 2)), batch(records(2, 3))
        for source in (one, two):
            admit(p, source)
            append(p, source.base_offset)
        assert (p.row().records, p.row().bytes) == (5, len(one.data) + len(two.data))
        assert not p.no_progress_since_resume


class TestLag:
    def test_lag_of_a_partition_is_the_undurable_records_up_to_the_source_end(self) -> None:
        p = partition(upstream=9)
        assert p.acked.lag == 0, "the source's end is not known yet"
        admit(p, source_end=30)
        assert p.acked.lag == p.row().lag_records == 20
        admit(p, batch(records(10, 20)))
        assert p.acked.lag == 20, "queued is not durable"
        append(p, 0)
        assert p.acked.lag == 0

    def test_lag_of_a_partition_is_never_below_zero(self) -> None:
        p = partition(upstream=9)
        admit(p, source_end=5)  # read_committed: the last stable offset may lie behind
        assert p.acked.lag == 0

    @pytest.mark.parametrize("attributes", [0, LOG_APPEND_TIME], ids=["CreateTime", "LogAppendTime"])
    @pytest.mark.parametrize("day", [-1, 0, NOW_MS - DAY_MS, NOW_MS + DAY_MS, YEAR_2262_MS, 2**63 - 1])
    def test_lag_ms_has_no_part_of_record_timestamps(self, day: int, attributes: int) -> None:
        p = partition()
        admit(p, batch([record(0, timestamp=day)], attributes=attributes), source_end=2, now_ms=NOW_MS)
        sent = launch(p)
        admit(p, batch([record(1, timestamp=day)], attributes=attributes), source_end=2, now_ms=NOW_MS + 300)
        assert p.acked.lag_ms(NOW_MS + 500) == 500
        p.step(Acked(sent, 0, now_ms=NOW_MS + 600))
        assert (p.acked.lag, p.acked.lag_ms(NOW_MS + 700)) == (1, 700), "its end was seen with the first one"
        append(p, 1)
        assert (p.acked.lag, p.acked.lag_ms(NOW_MS + 900)) == (0, 0)

    def test_lag_ms_counts_from_when_the_end_behind_the_record_was_seen(self) -> None:
        p = partition()
        admit(p, batch(records(0, 2)), source_end=2, now_ms=NOW_MS)
        sent = launch(p)
        admit(p, batch(records(2, 2)), source_end=4, now_ms=NOW_MS + 1_000)
        assert p.acked.lag_ms(NOW_MS + 1_500) == 1_500
        p.step(Acked(sent, 0, now_ms=NOW_MS + 1_500))
        assert p.acked.lag_ms(NOW_MS + 1_500) == 500

    def test_lag_ms_is_zero_without_lag_and_under_a_clock_that_went_back(self) -> None:
        p = partition(upstream=9)
        assert p.acked.lag_ms(NOW_MS) == 0, "the source's end is not known yet"
        admit(p, source_end=11, now_ms=NOW_MS)
        assert p.acked.lag_ms(NOW_MS - 5_000) == 0

    def test_lag_of_a_new_run_begins_with_that_of_its_row(self) -> None:
        row = replace(ROW, upstream=9, source_end=30, lag_records=20, lag_ms=4_000, at_ms=NOW_MS)
        p = PartitionState(row.topic, row.partition, "a.t", 100)
        p.step(RowLoaded(row))
        assert (p.acked.lag, p.row().source_end, p.acked.lag_ms(NOW_MS + 2_000)) == (20, 30, 6_000)
        p.step(Resumed(row, LastAppend(row.sequence, row.downstream)))
        admit(p, source_end=40, now_ms=NOW_MS + 3_000)
        assert p.acked.lag_ms(NOW_MS + 3_000) == 7_000
        admit(p, batch(records(10, 20)), source_end=40, now_ms=NOW_MS + 3_000)
        append(p, 0)
        assert (p.acked.lag, p.acked.lag_ms(NOW_MS + 3_500)) == (10, 500), "a lower bound for what came meanwhile"

    def test_lag_of_a_re_created_source_forgets_the_former_log(self) -> None:
        row = replace(ROW, upstream=9, source_end=30, lag_records=20, lag_ms=4_000, at_ms=NOW_MS, source_topic_id="s")
        p = PartitionState(row.topic, row.partition, "a.t", 100)
        p.step(RowLoaded(row))
        p.step(RowLoaded(replace(row, source_topic_id="new", upstream=-1)))
        assert (p.acked.lag, p.row().source_end, p.acked.lag_ms(NOW_MS + 2_000)) == (0, -1, 0)


def batch_crc(raw: bytes) -> bytes:
    return int(crc32c(raw[21:])).to_bytes(4, "big")


def test_loaded_row_is_known_before_resuming_and_kept_after_a_refusal() -> None:
    p = PartitionState("t", 0, "A.t", 100)
    assert not p.acked.is_loaded
    row = PartitionProgress(topic="t", partition=0, upstream=49, downstream=49, producer_id=7, sequence=49)
    p.step(RowLoaded(row))
    assert p.acked.is_loaded
    p.step(Refused(reported("a gap"), case="records-gone"))
    assert (p.phase, p.row().upstream, p.row().producer_id, p.row().sequence) == (Phase.HALTED, 49, 7, 49)


def test_each_change_of_the_row_is_an_effect() -> None:
    p = partition()
    row = p.row()

    def step(event: PartitionEvent) -> None:
        nonlocal row
        effects, before, row = p.step(event), row, p.row()
        assert row == before or any(isinstance(effect, Persist) for effect in effects), event

    def fetched(*batches: Batch, end: int) -> Fetched:
        return Fetched(p.incarnation, batches, AbortedTransactions(), end, size=0, now_ms=1)

    step(Received(2, 0))
    step(fetched(batch(records(0, 2)), batch(records(2, 2)), end=4))
    step(Acked(launch(p), 0, now_ms=2))
    step(AcksDue(now_ms=3))
    step(fetched(end=9))
    step(fetched(batch(records(4, 1), attributes=CONTROL), end=9))
    for event in (Failed(), AllAnswered(), RowLoaded(replace(row, upstream=1))):
        step(event)
    step(Resumed(row, LastAppend(row.sequence, row.downstream)))
    step(Refused(reported("no")))
    step(AllAnswered())
    step(Leave("paused"))
