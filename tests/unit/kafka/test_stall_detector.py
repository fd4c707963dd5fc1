"""What a reader is behind of, twice at the same place, it is not being given any more."""

from hypothesis import given
from hypothesis import strategies as st

from lockstep_kafka.topics.topic_reader import StallDetector


def test_stall_detector_needs_two_checks_at_the_same_position() -> None:
    standstill = StallDetector()
    assert standstill.check({0: 5, 1: 7}, {0: 9, 1: 7}) == []
    assert standstill.check({0: 5, 1: 7}, {0: 12, 1: 8}) == [0]
    assert standstill.check({0: 6, 1: 7}, {0: 12, 1: 8}) == [1]
    assert standstill.check({0: 6, 1: 8}, {0: 12, 1: 8}) == [0]


def test_stall_detector_checks_less_often_until_something_moves() -> None:
    standstill = StallDetector(10.0)
    every = []
    for _ in range(8):
        standstill.check({0: 5}, {0: 9})
        every.append(standstill.every)
    assert every == [10.0, 20.0, 40.0, 80.0, 160.0, 240.0, 240.0, 240.0]
    standstill.check({0: 9}, {0: 9})
    assert standstill.every == 10.0


def test_stall_detector_asks_only_for_unmoved_partitions() -> None:
    standstill = StallDetector()
    assert list(standstill.find_stalled({0: 5, 1: 7})) == []
    assert list(standstill.find_stalled({0: 5, 1: 8})) == [0]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=20))
def test_stall_detector_ignores_a_reader_at_the_end_or_moving(steps: list[tuple[int, int]]) -> None:
    """Each step the reader gets ``got`` more records of those that are there, ``new`` come in."""
    standstill, position, end = StallDetector(), 0, 0
    for got, new in steps:
        before = position
        position = min(end, position + got)
        end += new
        stalled = standstill.check({0: position}, {0: end})
        if position == end or position != before:
            assert stalled == []
