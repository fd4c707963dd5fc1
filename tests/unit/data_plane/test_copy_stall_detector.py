"""A partition that does not move although its source has more is named once, and once more when it is over."""

import pytest

from lockstep_data_plane.driver.source_monitor import CopyStallDetector
from lockstep_state.rows.state_rows import PartitionProgress

TP = ("t", 0)


@pytest.fixture
def detector() -> CopyStallDetector:
    return CopyStallDetector()


def row(upstream: int, phase: str = "copying") -> PartitionProgress:
    return PartitionProgress(topic="t", partition=0, upstream=upstream, phase=phase)


def test_stall_detector_names_a_partition_once_and_when_it_moves(detector: CopyStallDetector) -> None:
    assert detector.check([row(9)], {TP: 20}, 0) == ({}, [])
    assert detector.check([row(9)], {TP: 30}, 59) == ({}, [])
    assert detector.check([row(9)], {TP: 40}, 61) == ({TP: 61}, [])
    assert detector.check([row(9)], {TP: 50}, 70) == ({}, [])
    assert detector.check([row(10)], {TP: 50}, 80) == ({}, [TP])
    assert detector.check([row(10)], {TP: 50}, 139) == ({}, [])
    assert len(detector.check([row(10)], {TP: 50}, 140)[0]) == 1


def test_stall_detector_ignores_a_slow_partition(detector: CopyStallDetector) -> None:
    for second in range(0, 600, 50):
        assert detector.check([row(second)], {TP: 10_000}, second) == ({}, [])


def test_stall_detector_counts_an_idle_partition_from_its_first_lag(detector: CopyStallDetector) -> None:
    assert detector.check([row(9)], {TP: 10}, 0) == ({}, [])
    assert detector.check([row(9)], {TP: 10}, 500) == ({}, [])
    assert detector.check([row(9)], {TP: 11}, 510) == ({}, [])
    assert detector.check([row(9)], {TP: 11}, 559) == ({}, [])
    assert detector.check([row(9)], {TP: 11}, 561)[0]


def test_stall_detector_counts_a_paused_partition_from_its_resume(detector: CopyStallDetector) -> None:
    detector.check([row(9)], {TP: 20}, 0)
    assert detector.check([row(9, "paused")], {TP: 20}, 100, {TP}) == ({}, [])
    assert detector.check([row(9, "paused")], {TP: 20}, 150) == ({}, [])
    assert detector.check([row(9)], {TP: 20}, 161)[0]


def test_stall_detector_ignores_a_halted_partition_and_a_missing_answer(detector: CopyStallDetector) -> None:
    detector.check([row(9)], {TP: 20}, 0)
    assert detector.check([row(9)], {}, 100) == ({}, [])
    assert detector.check([row(9, "halted")], {TP: 20}, 110) == ({}, [])
    assert detector.check([row(9)], {TP: 20}, 150) == ({}, [])
