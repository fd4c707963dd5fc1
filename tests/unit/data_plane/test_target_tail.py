"""What the target's log still says of our chain, where retention, a cleaner or a truncation has touched its tail."""

from dataclasses import replace

import pytest

from lockstep_data_plane.core.target_log.surviving_appends import SurvivingAppends
from lockstep_data_plane.core.target_log.target_tail import LastAppend, LogContradiction, NotReplicated, TargetTail
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.batch_bytes import CONTROL, batch, record, records

OURS, OTHER, EPOCH = 4000, 4001, 1
ROW = PartitionProgress(topic="t", partition=0, producer_id=OURS, producer_epoch=EPOCH, sequence=9, downstream=99)

BEGINS = PartitionProgress(topic="t", partition=0, producer_id=OURS, producer_epoch=EPOCH, sequence=-1, downstream=99)


def ours(
    first: int, sequence: int, count: int = 2, *, producer_id: int = OURS, epoch: int = EPOCH, attributes: int = 0
) -> Batch:
    return batch(records(first, count), producer=(producer_id, epoch, sequence), attributes=attributes)


def read(*log: Batch, end: int, row: PartitionProgress = ROW) -> TargetTail:
    tail = TargetTail(row, {OTHER}, log_end=end)
    tail.add_batches(log)
    tail.ends({OURS: (0, 0)}, end)
    return tail


class TestWhatWasRemoved:
    @pytest.mark.parametrize(
        ("log", "end", "removed"),
        [
            pytest.param([], 100, -1, id="nothing was appended"),
            pytest.param([ours(100, 10)], 102, -1, id="all is there"),
            pytest.param([], 140, 139, id="all that was appended is gone"),
            pytest.param([ours(120, 1, producer_id=7)], 122, 119, id="gone before somebody else's"),
            pytest.param([ours(120, 30)], 122, -1, id="gone before one of ours, whose sequence tells of it"),
            pytest.param([ours(100, 10)], 130, 129, id="gone behind the last of ours"),
            pytest.param([ours(98, 8), ours(100, 10)], 102, -1, id="read from our last record on"),
        ],
    )
    def test_target_tail_end_is_the_last_offset_after_all_known_appends(
        self, log: list[Batch], end: int, removed: int
    ) -> None:
        tail = read(*log, end=end)
        assert (tail.removed, tail.end.read_to) == (removed, end - 1)

    def test_target_tail_has_appends_remembered_by_the_leader_only(self) -> None:
        end = read(ours(100, 10), end=130).end_from_leader({OURS: 20, OTHER: 3})
        assert end == LastAppend(20, 129, others=((OTHER, 3),))
        assert (end.last, end.behind) == (ours(100, 10), 9 + 4)

    def test_target_tail_is_empty_where_the_leader_forgot_the_producer(self) -> None:
        assert read(ours(100, 10), end=130).end_from_leader({OURS: 11}) == LastAppend(11, 101)

    def test_an_emptied_batch_counts_behind_the_last_record_that_is_left(self) -> None:
        empty = batch([], base_offset=102, last_offset=104, producer=(OURS, EPOCH, 12))
        end = read(ours(100, 10), empty, end=105).end
        assert end == LastAppend(14, 104)
        assert (end.last, end.behind) == (ours(100, 10), 3)


class TestWhatTheLeaderRemembers:
    """It is asked before the log is read, and another slot may append between the two."""

    @staticmethod
    def tail(sequence: int, *log: Batch, row: PartitionProgress = ROW) -> TargetTail:
        tail = TargetTail(row, {OTHER}, log_end=100 + 2 * len(log))
        tail.add_batches(log)
        tail.ends({OURS: (EPOCH, sequence)}, tail.log_end)
        return tail

    @pytest.mark.parametrize("sequence", [9, 11, 13])
    def test_target_tail_that_grew_meanwhile_is_settled(self, sequence: int) -> None:
        last = self.tail(sequence, ours(100, 10), ours(102, 12))
        assert last.is_settled
        assert last.last_append() == LastAppend(13, 103)

    def test_target_tail_that_grew_over_the_largest_sequence_is_settled(self) -> None:
        last = replace(ROW, sequence=2**31 - 3)
        result = self.tail(2**31 - 1, ours(100, 2**31 - 2), ours(102, 0), row=last)
        assert result.is_settled
        assert result.last_append() == LastAppend(1, 103)

    def test_target_tail_with_more_remembered_is_not_replicated(self) -> None:
        result = self.tail(13, ours(100, 10))
        assert not result.is_settled
        with pytest.raises(NotReplicated, match="holds our sequence 13, what is replicated ends at 11"):
            result.last_append()

    def test_target_tail_with_less_remembered_than_the_row_was_truncated(self) -> None:
        result = self.tail(8)
        assert not result.is_settled
        with pytest.raises(LogContradiction, match="ends at our sequence 8, but up to 9 was appended"):
            result.last_append()


class TestWhereOurLastRecordLay:
    @pytest.mark.parametrize(
        "last",
        [
            pytest.param(ours(98, 8), id="it lies there"),
            pytest.param(ours(98, 8, count=5), id="inside of a batch"),
            pytest.param(batch([record(98)], last_offset=99, producer=(OURS, EPOCH, 8)), id="its batch does, cleaned"),
            pytest.param(ours(99, 0, count=1, producer_id=7, attributes=CONTROL), id="the marker of a transaction"),
            pytest.param(ours(120, 30), id="nothing does any more"),
        ],
    )
    def test_target_tail_that_is_complete_is_accounted(self, last: Batch) -> None:
        assert read(last, end=last.last_offset + 1).end.sequence >= 9

    @pytest.mark.parametrize(
        "last",
        [
            pytest.param(ours(98, 8, producer_id=7), id="somebody else's"),
            pytest.param(ours(98, 6), id="an earlier one of ours"),
            pytest.param(ours(98, 8, epoch=0), id="of another epoch"),
        ],
    )
    def test_target_tail_with_foreign_records_was_truncated_and_grew_again(self, last: Batch) -> None:
        with pytest.raises(
            LogContradiction, match=r"at offset 99 what producer .* It was truncated and has grown again"
        ):
            read(last, end=200)

    def test_target_tail_without_a_producer_id_names_both_causes(self) -> None:
        batch_without_id = ours(99, -1, producer_id=-1)
        with pytest.raises(LogContradiction, match=r"Either the target does not keep these, or it was truncated"):
            read(batch_without_id, end=200)

    def test_target_tail_of_a_new_chain_ignores_what_is_before_it(self) -> None:
        assert read(ours(98, 8, producer_id=7), end=100, row=BEGINS).end == LastAppend(-1, 99)


class TestBeforeAChainThatBegins:
    @pytest.mark.parametrize(
        "there",
        [
            pytest.param(ours(98, 8, epoch=0), id="a former epoch of ours"),
            pytest.param(ours(98, 8, producer_id=7, epoch=5), id="somebody else's"),
            pytest.param(ours(99, 0, count=1, epoch=2, attributes=CONTROL), id="a marker"),
        ],
    )
    def test_target_tail_of_a_new_chain_may_have_appends(self, there: Batch) -> None:
        assert read(there, ours(100, 0), end=102, row=BEGINS).end == LastAppend(1, 101)

    @pytest.mark.parametrize(
        ("there", "epoch"),
        [
            pytest.param(ours(98, 0), EPOCH, id="of its epoch"),
            pytest.param(ours(50, 0), EPOCH, id="with others' behind"),
            pytest.param(ours(98, 0, producer_id=OTHER), EPOCH, id="under another id of ours"),
            pytest.param(ours(98, 0, epoch=4), 4, id="of a later epoch"),
        ],
    )
    def test_target_tail_with_appends_missing_from_the_row_is_unaccounted(self, there: Batch, epoch: int) -> None:
        with pytest.raises(LogContradiction, match="which our row does not include") as result:
            read(there, ours(90, 0, producer_id=7), end=100, row=BEGINS)
        assert result.value.epoch == epoch

    def test_target_tail_with_appends_in_the_row_is_accounted(self) -> None:
        assert read(ours(90, 0), ours(98, 8), end=100).end == LastAppend(9, 99)


class TestRemains:
    """Which records of ours the target still has behind a row, and before which of them some are gone."""

    @pytest.mark.parametrize(
        ("log", "remaining", "gone_before"),
        [
            pytest.param([ours(100, 10), ours(102, 12)], [100, 101, 102, 103], -1, id="all"),
            pytest.param([ours(102, 12)], [102, 103], 0, id="the first are gone, by retention"),
            pytest.param([ours(100, 10)], [100, 101], 2, id="the last are gone"),
            pytest.param([], [], 0, id="none"),
            pytest.param(
                [batch([record(101)], base_offset=100, last_offset=101, producer=(OURS, EPOCH, 10)), ours(102, 12)],
                [101, 102, 103],
                0,
                id="the first of a batch",
            ),
            pytest.param(
                [ours(100, 10), batch([record(102)], last_offset=103, producer=(OURS, EPOCH, 12))],
                [100, 101, 102],
                3,
                id="the last of a batch",
            ),
            pytest.param(
                [ours(100, 10), batch([record(103)], base_offset=102, last_offset=103, producer=(OURS, EPOCH, 12))],
                [100, 101, 103],
                2,
                id="one in the middle",
            ),
            pytest.param(
                [ours(98, 8, count=4), ours(102, 12)], [100, 101, 102, 103], -1, id="a batch that begins before"
            ),
            pytest.param(
                [ours(100, 10), ours(102, 0, producer_id=7), ours(104, 12)],
                [100, 101, 104, 105],
                -1,
                id="with somebody else's between",
            ),
        ],
    )
    def test_surviving_appends_has_remaining_records_and_where_others_are_gone(
        self, log: list[Batch], remaining: list[int], gone_before: int
    ) -> None:
        remains = SurvivingAppends(ROW, LastAppend(13, max([103, *(each.last_offset for each in log)])))
        for each in log:
            remains.add_batch(each)
        remains.ends()
        assert [r.offset for r in remains.records] == remaining
        assert remains.gone_before == gone_before

    def test_surviving_appends_ends_where_the_chain_ended_when_it_was_found(self) -> None:
        remains = SurvivingAppends(ROW, LastAppend(13, 103))
        for each in (ours(100, 10), ours(102, 12), ours(104, 14)):
            remains.add_batch(each)
        remains.ends()
        assert [r.offset for r in remains.records] == [100, 101, 102, 103]
        assert remains.gone_before == -1
