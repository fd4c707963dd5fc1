"""Batches that cannot be read, where the row of a partition is looked for in the logs."""

from lockstep_data_plane.resume.lost_row import readable_records
from tests.support.batch_bytes import batch, records


def test_batch_that_cannot_be_read_proves_nothing() -> None:
    good = batch(records(5, 3))
    assert [one.offset for one in readable_records(good)] == [5, 6, 7]
    assert readable_records(good._replace(record_count=9)) == ()
