"""Batches that cannot be read, where the row of a partition is looked for in the logs."""

from lockstep_data_plane.resume.lost_row import may_repeat, readable_records
from tests.support.batch_bytes import batch, records


def test_batch_that_cannot_be_read_proves_nothing() -> None:
    good = batch(records(5, 3))
    assert [record.offset for record in readable_records(good)] == [5, 6, 7]
    assert readable_records(good._replace(record_count=9)) == ()


def test_record_before_that_is_unknown_may_be_the_same() -> None:
    first, second = readable_records(batch(records(5, 2)))
    assert not may_repeat(first, second._replace(value=b"another"))
    assert may_repeat(first, first._replace(offset=6))
    assert may_repeat(None, second)
    assert may_repeat(first, None)
