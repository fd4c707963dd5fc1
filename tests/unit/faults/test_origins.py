"""What tells a record that went round from one that is everywhere once."""

from tests.faults.origins import came_back, counts, first_of

A, B = first_of(0), first_of(1)


def test_each_record_once_everywhere_is_equal_and_none_came_back() -> None:
    logs = [{0: [A, B, A + 1]}, {0: [A, A + 1, B]}]
    assert all(each.equal for each in counts(logs).values())
    assert came_back(logs) == {}


def test_origin_of_a_record_that_went_round_is_found_in_its_own_log() -> None:
    logs = [{0: [A, B, A]}, {0: [A, A, B]}]
    assert all(each.equal for each in counts(logs).values()), "else this test shows nothing"
    assert came_back(logs) == {0: 1}


def test_origin_of_a_returned_record_is_found_in_its_own_log_only() -> None:
    assert came_back([{0: [A], 1: [A]}, {0: [A], 1: []}]) == {0: 1}
    assert came_back([{0: [A, B, B]}, {0: [A, B]}]) == {}, "that one is doubled, as the counts say"
