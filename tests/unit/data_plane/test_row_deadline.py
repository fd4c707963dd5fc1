"""How long a slot copies on while nothing takes its rows."""

from lockstep_data_plane.slot.row_deadline import ROWS_WITHIN_S, RowDeadline


def test_nothing_is_copied_before_the_first_row_is_taken() -> None:
    deadline = RowDeadline()
    deadline.on_write(0.0)
    assert deadline.has_expired(0.0)
    assert deadline.take_change(0.0) is True
    deadline.on_acknowledged()
    assert not deadline.has_expired(0.0)
    assert deadline.take_change(0.0) is False
    assert deadline.take_change(0.0) is None


def test_oldest_row_that_is_not_taken_decides() -> None:
    deadline = RowDeadline()
    deadline.on_acknowledged()
    for second in range(0, 100, 5):
        deadline.on_write(float(second))
        assert deadline.has_expired(float(second)) is (second > ROWS_WITHIN_S)
    deadline.on_acknowledged()
    deadline.on_write(100.0)
    assert not deadline.has_expired(100.0 + ROWS_WITHIN_S)


def test_slot_at_rest_has_no_deadline() -> None:
    deadline = RowDeadline()
    deadline.on_acknowledged()
    assert not deadline.has_expired(1e9)
