"""A partition that does not move although its source has more is named once, and once more when it is over."""

from lockstep_data_plane.driver.source_monitor import CopyStallDetector
from lockstep_state.rows.state_rows import PartitionProgress

TP = ("t", 0)


def row(upstream: int, phase: str = "copying") -> PartitionProgress:
    return PartitionProgress(topic="t", partition=0, upstream=upstream, phase=phase)


def test_stall_detector_names_a_partition_once_and_when_it_moves() -> None:
    dog = CopyStallDetector()
    assert dog.check([row(9)], {TP: 20}, 0) == ({}, [])
    assert dog.check([row(9)], {TP: 30}, 59) == ({}, [])
    assert dog.check([row(9)], {TP: 40}, 61) == ({TP: 61}, [])
    assert dog.check([row(9)], {TP: 50}, 70) == ({}, [])
    assert dog.check([row(10)], {TP: 50}, 80) == ({}, [TP])
    assert dog.check([row(10)], {TP: 50}, 139) == ({}, [])
    assert len(dog.check([row(10)], {TP: 50}, 140)[0]) == 1


def test_stall_detector_ignores_a_slow_partition() -> None:
    dog = CopyStallDetector()
    for second in range(0, 600, 50):
        assert dog.check([row(second)], {TP: 10_000}, second) == ({}, [])


def test_stall_detector_counts_an_idle_partition_from_its_first_lag() -> None:
    dog = CopyStallDetector()
    assert dog.check([row(9)], {TP: 10}, 0) == ({}, [])
    assert dog.check([row(9)], {TP: 10}, 500) == ({}, [])
    assert dog.check([row(9)], {TP: 11}, 510) == ({}, [])
    assert dog.check([row(9)], {TP: 11}, 559) == ({}, [])
    assert dog.check([row(9)], {TP: 11}, 561)[0]


def test_stall_detector_counts_a_paused_partition_from_its_resume() -> None:
    dog = CopyStallDetector()
    dog.check([row(9)], {TP: 20}, 0)
    assert dog.check([row(9, "paused")], {TP: 20}, 100, {TP}) == ({}, [])
    assert dog.check([row(9, "paused")], {TP: 20}, 150) == ({}, [])
    assert dog.check([row(9)], {TP: 20}, 161)[0]


def test_stall_detector_ignores_a_halted_partition_and_a_missing_answer() -> None:
    dog = CopyStallDetector()
    dog.check([row(9)], {TP: 20}, 0)
    assert dog.check([row(9)], {}, 100) == ({}, [])
    assert dog.check([row(9, "halted")], {TP: 20}, 110) == ({}, [])
    assert dog.check([row(9)], {TP: 20}, 150) == ({}, [])
