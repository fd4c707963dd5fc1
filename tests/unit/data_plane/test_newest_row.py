"""Of a slot's own row and one that another slot has written, which a partition goes on from."""

import pytest

from lockstep_data_plane.resume.resumed_rows import newest_row
from lockstep_state.rows.state_rows import PartitionProgress

OURS = 4000


def row(epoch: int, sequence: int = -1, *, producer_id: int = OURS, others: bool = False) -> PartitionProgress:
    return PartitionProgress(
        topic="t",
        partition=0,
        producer_id=producer_id,
        producer_epoch=epoch,
        sequence=sequence,
        others=((4001, 3),) if others else (),
    )


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        pytest.param(row(1, 9), row(2), id="a decision that we have not seen"),
        pytest.param(row(1), row(1, 9), id="they have begun the chain, we have not"),
        pytest.param(row(1), row(1, others=True), id="also under another id"),
    ],
)
def test_theirs_where_they_know_what_we_do_not(ours: PartitionProgress, theirs: PartitionProgress) -> None:
    assert newest_row(ours, theirs) is theirs


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        pytest.param(row(1, 9), None, id="nothing else is written down"),
        pytest.param(row(1, 9), row(1, 12), id="the log tells what they appended"),
        pytest.param(row(1, 9), row(1), id="they have not begun it"),
        pytest.param(row(2), row(1, 9), id="of a former epoch"),
        pytest.param(row(1), row(3, 9, producer_id=7), id="of another chain"),
    ],
)
def test_newest_row_is_ours_otherwise(ours: PartitionProgress, theirs: PartitionProgress | None) -> None:
    assert newest_row(ours, theirs) is ours
