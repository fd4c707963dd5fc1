"""The count in the status of a slot belongs to the rows before it, and is unknown without such rows."""

from lockstep_data_plane.slot.resuming_count import ResumingCount


def test_count_before_the_first_rows_is_unknown() -> None:
    assert ResumingCount().take_count(0) == -1


def test_count_is_that_of_the_rows_written_last() -> None:
    count = ResumingCount()
    count.on_rows_written(3, 2)
    count.on_rows_written(3, 0)
    assert count.take_count(3) == 0


def test_count_without_rows_since_the_last_status_is_unknown() -> None:
    """The event loop stood still, or the state topic took no rows: what was appended meanwhile is in none."""
    count = ResumingCount()
    count.on_rows_written(3, 0)
    assert (count.take_count(3), count.take_count(3)) == (0, -1)
    count.on_rows_written(3, 0)
    assert count.take_count(3) == 0


def test_count_of_an_earlier_assignment_is_unknown() -> None:
    count = ResumingCount()
    count.on_rows_written(3, 0)
    assert count.take_count(4) == -1
