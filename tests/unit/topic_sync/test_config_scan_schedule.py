"""The schedule of config scans, simulated over minutes."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_topic_sync.config_scan_schedule import (
    AT_ONCE,
    CALM,
    CHECK_INTERVAL,
    FIRST_HOLD,
    FREE,
    LATELY,
    ConfigScanSchedule,
)

WHOLE = 600.0


def names(count: int) -> list[str]:
    return [f"t{n:05}" for n in range(count)]


def rounds(turns: ConfigScanSchedule, topics: list[str], since: float, until: float) -> dict[str, list[float]]:
    """Runs rounds in which nothing differs; when each topic was compared."""
    compared: dict[str, list[float]] = {name: [] for name in topics}
    now = since
    while now <= until:
        for name in turns.start_round(topics, now):
            if turns.record_scan(name, 1, now):
                turns.compared(name, 1, now)
                compared[name].append(now)
        now += turns.every
    return compared


def test_config_scan_of_few_topics_reads_all_in_every_round() -> None:
    turns = ConfigScanSchedule(WHOLE)
    assert turns.every == CHECK_INTERVAL
    for at in (0.0, CHECK_INTERVAL, 2 * CHECK_INTERVAL):
        assert sorted(turns.start_round(names(AT_ONCE), at)) == names(AT_ONCE)
        for name in names(AT_ONCE):
            turns.record_scan(name, 1, at)


@pytest.mark.parametrize(("count", "within"), [(1, 8.0), (1_000, 8.0), (2_000, 16.0), (10_000, 80.0)])
def test_config_scan_reaches_each_topic_in_time_proportional_to_topics(count: int, within: float) -> None:
    turns, topics = ConfigScanSchedule(WHOLE), names(count)
    looked: dict[str, float] = {}
    for n in range(60):
        now = n * turns.every
        turn = turns.start_round(topics, now)
        assert len(turn) <= AT_ONCE
        for name in turn:
            assert now - looked.get(name, 0.0) <= within
            looked[name] = now
            turns.compared(name, 1, now)
            turns.record_scan(name, 1, now)
    assert looked.keys() == set(topics)
    assert all(now - at < within for at in looked.values())


@pytest.mark.parametrize("whole", [1.0, 10.0, 600.0])
@pytest.mark.parametrize("count", [1, 700, 3_000])
def test_each_topic_is_compared_within_the_setting_and_not_much_more_often(whole: float, count: int) -> None:
    turns = ConfigScanSchedule(whole)
    until = max(4 * whole, 100.0)
    compared = rounds(turns, names(count), 0.0, until)
    for times in compared.values():
        gaps = [b - a for a, b in pairwise(times)]
        assert max(gaps) <= whole
        assert until - times[-1] <= whole
        assert len(times) <= until / (whole / 3) + 2


def test_config_scan_of_a_slow_cluster_has_larger_slices() -> None:
    turns = ConfigScanSchedule(60.0)
    topics = names(10_000)
    assert len(turns.start_round(topics, 0.0)) == 1_429  # 8 s of 60, in whole rounds
    assert len(turns.start_round(topics, 12.0)) == 2_000  # the last round took 12


def test_a_change_is_compared_at_once_and_an_unchanged_topic_is_not() -> None:
    turns = ConfigScanSchedule(WHOLE)
    turns.start_round(["a"], 0.0)
    assert turns.record_scan("a", 1, 0.0)  # never compared
    turns.compared("a", 1, 0.0)
    turns.start_round(["a"], 4.0)
    assert not turns.record_scan("a", 1, 4.0)
    turns.start_round(["a"], 8.0)
    assert turns.record_scan("a", 2, 8.0)
    turns.start_round(["a"], 12.0)
    assert turns.record_scan("a", 2, 12.0)  # the change failed, so the topic is not compared yet
    turns.compared("a", 2, 12.0)
    assert not turns.record_scan("a", 2, 16.0)


def test_config_scan_has_last_changed_topics_in_every_round() -> None:
    turns, topics = ConfigScanSchedule(WHOLE), names(5_000)
    for n in range(10):
        for name in turns.start_round(topics, n * 4.0):
            turns.record_scan(name, 1, n * 4.0)
            turns.compared(name, 1, n * 4.0)
    for at, name in ((41.0, "t00007"), (42.0, "t00003"), (43.0, "t00009")):
        turns.record_scan(name, 2, at)
    for at in (44.0, 48.0):
        turn = turns.start_round(topics, at)
        assert turn[:3] == ["t00009", "t00003", "t00007"]
        assert len(turn) <= AT_ONCE + 3
    for name in topics[:1_000]:
        turns.record_scan(name, 3, 50.0)
    assert len(turns.start_round(topics, 52.0)) <= AT_ONCE + LATELY
    assert turns.start_round(topics, 50.0 + WHOLE)[0] not in topics[:1_000]


def test_config_scan_has_retries_first_and_no_waiting_topic() -> None:
    turns = ConfigScanSchedule(WHOLE)
    assert turns.start_round(["a", "b", "c"], 0.0, first=["c", "gone"], not_now={"a"}) == ["c", "b"]


def test_a_topic_that_is_gone_is_forgotten() -> None:
    turns = ConfigScanSchedule(WHOLE)
    turns.start_round(["a"], 0.0)
    turns.compared("a", 1, 0.0)
    turns.start_round([], 4.0)
    turns.start_round(["a"], 8.0)
    assert turns.record_scan("a", 1, 8.0)


def test_a_topic_set_again_and_again_is_left_alone_for_longer_and_longer() -> None:
    """Two who set each other's values: a change every round, at both ends."""
    turns, now, mark = ConfigScanSchedule(WHOLE), 0.0, 0
    times = []
    while now < 3_600.0:
        for name in turns.start_round(["a"], now):
            mark += 1
            assert turns.record_scan(name, mark, now)
            turns.compared(name, mark, now)
            turns.altered(name, now)
            times.append(now)
        now += turns.every
    assert len(times) <= FREE + 6 + 6  # free ones, 10 s to 320 s, then every ten minutes
    assert all(b - a <= WHOLE + turns.every for a, b in pairwise(times))


def test_config_changes_in_a_row_are_held_up_until_a_calm_time() -> None:
    turns = ConfigScanSchedule(WHOLE)
    assert [turns.altered("a", n * 5.0) for n in range(FREE + 2)] == [0.0] * FREE + [FIRST_HOLD, 2 * FIRST_HOLD]
    calm = (FREE + 1) * 5.0 + 2 * FIRST_HOLD + CALM
    assert turns.altered("a", calm) == 0.0


def test_config_change_is_held_up_at_most_for_the_setting() -> None:
    turns = ConfigScanSchedule(2.0)
    assert [turns.altered("a", n * 1.0) for n in range(6)][-1] == 2.0


@given(
    counts=st.lists(st.integers(0, 1_500), min_size=1, max_size=8),
    step=st.floats(0.5, 30.0),
    whole=st.floats(1.0, 600.0),
)
def test_a_turn_names_only_topics_that_are_there_and_each_once(counts: list[int], step: float, whole: float) -> None:
    turns = ConfigScanSchedule(whole)
    for n, count in enumerate(counts):
        there = names(count)
        turn = turns.start_round(there, n * step)
        assert len(set(turn)) == len(turn)
        assert set(turn) <= set(there)
        assert len(turn) >= min(count, AT_ONCE)
        for name in turn:
            turns.record_scan(name, n, n * step)
