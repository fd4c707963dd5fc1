"""Where our chain ends is read from the target's log by producer id, epoch and sequence (`kafka-wire.md` §2)."""

import pytest

from lockstep_data_plane.core.target_log.target_tail import LastAppend, LogContradiction, last_append_in
from lockstep_data_plane.record_batch.layout import Batch
from tests.support.batch_bytes import batch, records

OURS = 4000
ROW = LastAppend(sequence=9, downstream=99)


def theirs(first: int, sequence: int, *, count: int = 2, producer_id: int = OURS, epoch: int = 1) -> Batch:
    return batch(records(first, count), producer=(producer_id, epoch, sequence))


@pytest.mark.parametrize(
    ("log", "end"),
    [
        pytest.param([], ROW, id="nothing more: where the row says"),
        pytest.param([theirs(100, 10)], LastAppend(11, 101), id="one batch of ours"),
        pytest.param([theirs(100, 10), theirs(102, 12, count=3)], LastAppend(14, 104), id="the last one counts"),
        pytest.param(
            [theirs(100, 10), theirs(102, 500, producer_id=7), theirs(104, -1, producer_id=-1)],
            LastAppend(11, 101),
            id="somebody else's do not matter",
        ),
        pytest.param(
            [theirs(100, 3, producer_id=7), theirs(102, 10)], LastAppend(11, 103), id="nor do theirs in front of ours"
        ),
        pytest.param([theirs(100, 700, epoch=0)], ROW, id="an earlier epoch of ours does not count"),
        pytest.param([theirs(100, 7, producer_id=7, epoch=5)], ROW, id="a later epoch of somebody else is no matter"),
        pytest.param(
            [batch([], base_offset=100, last_offset=104, producer=(OURS, 1, 10))],
            LastAppend(14, 104),
            id="an emptied batch still bears its sequences",
        ),
        pytest.param(
            [batch([*records(100, 1), *records(104, 1)], producer=(OURS, 1, 10))],
            LastAppend(14, 104),
            id="compacted: by the last offset, not by the records left",
        ),
        pytest.param([theirs(100, 2**31 - 2, count=5)], LastAppend(2, 104), id="sequences begin again within a batch"),
    ],
)
def test_chain_end_is_the_last_batch_of_our_chain(log: list[Batch], end: LastAppend) -> None:
    assert last_append_in(ROW, log, OURS, 1) == end


def test_chain_end_with_a_later_epoch_of_ours_is_in_doubt() -> None:
    with pytest.raises(
        LogContradiction, match=r"epoch 2 of our producer 4000 at offset 102, our row knows epoch 1 only"
    ):
        last_append_in(ROW, [theirs(100, 10), theirs(102, 0, epoch=2)], OURS, 1)


@pytest.mark.parametrize(
    ("log", "stretches"),
    [
        pytest.param([theirs(100, 10), theirs(102, 12)], ((100, 4),), id="batches that follow each other are one"),
        pytest.param([theirs(100, 10), theirs(102, 3, producer_id=7), theirs(104, 12)], ((100, 2), (104, 2)), id="two"),
        pytest.param([theirs(98, 8, count=4)], ((100, 2),), id="the row ends within a batch"),
        pytest.param([theirs(100, 10), theirs(104, 14)], None, id="what was between is gone"),
        pytest.param([theirs(101, 11), theirs(103, 13)], None, id="the first is gone"),
        pytest.param([theirs(100, 2**31 - 2, count=5)], None, id="sequences that are far away"),
    ],
)
def test_chain_end_names_the_stretches_behind_the_row(
    log: list[Batch], stretches: tuple[tuple[int, int], ...] | None
) -> None:
    assert last_append_in(ROW, log, OURS, 1).stretches == stretches
