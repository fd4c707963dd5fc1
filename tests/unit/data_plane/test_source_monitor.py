"""A partition that does not move although its source has more is named once, and once more when it is over."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from lockstep_config.flow.connector_settings import NOTHING_STATED
from lockstep_data_plane.driver import source_monitor
from lockstep_data_plane.driver.source_monitor import (
    ANSWERS_WITHIN,
    MOST_ENDS,
    TICK_S,
    WRITING,
    CopyStallDetector,
    SourceMonitor,
    look_interval_s,
    source_ends_row,
    with_unanswered,
)
from lockstep_protocol.offsets import TopicPartition
from lockstep_protocol.reason import NO_REASON, Reason
from lockstep_protocol.rows.state_rows import MirroredTopic, PartitionProgress, Row, SourceEnds
from lockstep_runtime.kafka.admin_types import Outcome, TopicDescription
from lockstep_runtime.util.errors import ClusterUnreachable, LeadershipLost, NotAppended
from tests.support.metered_driver import copying
from tests.support.metered_driver import row as row_of

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


def test_source_ends_row_names_what_the_progress_does_not() -> None:
    known = {
        TP: PartitionProgress(topic="t", partition=0, upstream=9, source_end=12),
        ("t", 1): PartitionProgress(topic="t", partition=1, upstream=9, source_end=-1),
        ("t", 2): PartitionProgress(topic="t", partition=2, upstream=9, source_end=30),
    }
    ends = {TP: 20, ("t", 1): 11, ("t", 2): 30, ("u", 0): 0, ("v", 0): 3}
    since = {TP: 4, ("t", 1): 2, ("v", 0): 3}
    row = source_ends_row(ends, known, 5, lambda tp, _: since[tp])
    assert row == SourceEnds(asked_ms=5, ends=(("t", 0, 20), ("v", 0, 3), ("t", 1, 11)), since_ms=(4, 3, 2))
    assert row.by_partition() == {TP: (20, 4), ("v", 0): (3, 3), ("t", 1): (11, 2)}
    assert replace(row, since_ms=()).by_partition()[TP] == (20, None), "of a release that does not say it"


def test_source_ends_row_of_too_many_counts_those_left_out() -> None:
    row = source_ends_row(
        {("t", number): number + 1 for number in range(MOST_ENDS + 3)}, {}, 5, lambda *_: 1_800_000_000_000
    )
    assert (len(row.ends), row.more) == (MOST_ENDS, 3)
    assert row.ends[0] == ("t", MOST_ENDS + 2, MOST_ENDS + 3)
    _, value = row.encode()
    assert len(value) < 900_000


class Logs:
    """A cluster as far as the monitor asks: each log ends at 20."""

    def __init__(self, alias: str) -> None:
        self.alias = alias

    async def probe(self) -> None:
        return

    async def end_offsets(self, asked: Iterable[TopicPartition], **_: Any) -> dict[TopicPartition, int]:
        return dict.fromkeys(asked, 20)

    async def reachable_end_offsets(self, asked: Iterable[TopicPartition], **_: Any) -> dict[TopicPartition, int]:
        return dict.fromkeys(asked, 20)

    async def begin_offsets(self, asked: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(asked, 0)

    async def topics(self, asked: Iterable[str]) -> Outcome[TopicDescription]:
        return Outcome({name: TopicDescription(name, "", 2, 3, (2, 3)) for name in asked})


async def test_source_ends_that_cannot_be_written_do_not_end_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    driver: Any = copying(upstream=9)
    driver.source, driver.target, driver.must_act = Logs("A"), Logs("B"), lambda: None
    driver.settings.data_plane.isolation_level, driver.settings.states = "read_uncommitted", NOTHING_STATED
    written: list[Row] = []

    async def refuse(row: Row) -> None:
        raise NotAppended("B", "state", "no leader")

    async def write(row: Row) -> None:
        written.append(row)

    monitor = SourceMonitor(driver, driver.collector, 1)
    monkeypatch.setattr(driver.state, "write", refuse)
    await monitor.observe_if_due()
    assert list(driver.rounds.troubles.now) == [WRITING]
    driver.now += 20_000
    monkeypatch.setattr(driver.state, "write", write)
    await monitor.observe_if_due()
    assert not driver.rounds.troubles.now
    seen_ms = driver.now - 20_000
    ends = (("t", 1, 20), ("t", 0, 20))
    assert written == [SourceEnds(asked_ms=driver.now, ends=ends, since_ms=(seen_ms, seen_ms))]


class Unanswered(Logs):
    """A target whose answer never comes."""

    async def end_offsets(self, asked: Iterable[TopicPartition], **_: Any) -> dict[TopicPartition, int]:
        await asyncio.Event().wait()
        return {}


def looking(monkeypatch: pytest.MonkeyPatch, target: Logs) -> tuple[Any, SourceMonitor, list[Row]]:
    """A driver whose clock stands, its monitor, and the rows that this writes."""
    driver: Any = copying(upstream=9)
    driver.source, driver.target, driver.must_act = Logs("A"), target, lambda: None
    driver.settings.data_plane.isolation_level, driver.settings.states = "read_uncommitted", NOTHING_STATED
    written: list[Row] = []

    async def write(row: Row) -> None:
        written.append(row)

    async def event(*_: Any, **__: Any) -> None:
        return

    driver.event = event
    monkeypatch.setattr(driver.state, "write", write)
    return driver, SourceMonitor(driver, driver.collector, 1), written


@pytest.mark.parametrize("partitions", [0, 1, 50, 9_999, 10_000])
def test_look_at_up_to_10000_logs_comes_within_ten_seconds(partitions: int) -> None:
    assert look_interval_s(partitions) + TICK_S < 10.0
    assert look_interval_s(3 * 10_000) == 3 * look_interval_s(partitions)


async def test_look_comes_by_wall_clock_whatever_the_process_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    driver, monitor, written = looking(monkeypatch, Logs("B"))
    cost_s = iter(range(0, 10_000_000, 100_000))
    monkeypatch.setattr("time.process_time", lambda: float(next(cost_s)))
    began_ms = driver.now
    for _ in range(100):
        await monitor.observe_if_due()
        driver.now += 1_000
    times = [row.asked_ms for row in written if isinstance(row, SourceEnds)]
    assert times[0] == began_ms
    assert max(later - earlier for earlier, later in pairwise(times)) <= 10_000
    assert times[-1] >= began_ms + 90_000


async def test_look_comes_while_the_driver_waits_for_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    driver, monitor, written = looking(monkeypatch, Logs("B"))
    monkeypatch.setattr(source_monitor, "TICK_S", 0.01)
    async with monitor.running():
        for count in (1, 2, 3):
            async with asyncio.timeout(10.0):
                while len(written) < count:
                    await asyncio.sleep(0.01)
            driver.now += 9_000
        monitor.check()


async def test_end_of_the_watch_is_raised_in_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    driver, monitor, _ = looking(monkeypatch, Logs("B"))

    def lost() -> None:
        raise LeadershipLost("another leads")

    driver.must_act = lost
    async with monitor.running():
        await asyncio.sleep(0.05)
        with pytest.raises(LeadershipLost):
            monitor.check()


async def test_target_without_an_answer_does_not_hold_up_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    _, monitor, written = looking(monkeypatch, Unanswered("B"))
    monkeypatch.setattr(source_monitor, "TARGET_WITHIN_S", 0.01)
    async with asyncio.timeout(10.0):
        await monitor.observe_if_due()
    assert len(written) == 1


async def test_a_new_driver_knows_since_when_records_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    driver: Any = copying(upstream=9)
    driver.source, driver.target, driver.must_act = Logs("A"), Logs("B"), lambda: None
    driver.settings.data_plane.isolation_level, driver.settings.states = "read_uncommitted", NOTHING_STATED
    since_ms = driver.now - 86_400_000
    driver.say(SourceEnds(asked_ms=driver.now - 5_000, ends=(("t", 0, 15),), since_ms=(since_ms,)))
    written: list[Row] = []

    async def write(row: Row) -> None:
        written.append(row)

    monkeypatch.setattr(driver.state, "write", write)
    await SourceMonitor(driver, driver.collector, 1).observe_if_due()
    assert driver.value("lockstep_lag_seconds", partition="0") == 86_400
    assert driver.value("lockstep_lag_seconds", partition="1") == 0, "it was seen just now"
    (row,) = written
    assert isinstance(row, SourceEnds)
    assert row.by_partition() == {("t", 0): (20, since_ms), ("t", 1): (20, driver.now)}


async def test_partitions_that_stand_are_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    driver: Any = copying(upstream=9)
    driver.assign(TP, ("t", 1))
    driver.say(row_of(1, upstream=9))
    driver.source, driver.target, driver.must_act = Logs("A"), Logs("B"), lambda: None
    driver.settings.data_plane.isolation_level, driver.settings.states = "read_uncommitted", NOTHING_STATED
    driver.say(replace(driver.state.get(MirroredTopic, "t"), target_configs=(("min.insync.replicas", "3"),)))
    reported: list[tuple[str, str]] = []
    causes: dict[str, Reason] = {}
    both = asyncio.Barrier(2)

    async def event(kind: str, subject: str, _: str, cause: Reason, **__: object) -> None:
        reported.append((kind, subject))
        causes[subject] = cause
        await both.wait()  # an append that is acknowledged with the other one only

    async def write(_: Row) -> None:
        return

    driver.event = event
    monkeypatch.setattr(driver.state, "write", write)
    monitor = SourceMonitor(driver, driver.collector, 1)
    for _ in range(2):
        async with asyncio.timeout(10.0):
            await monitor.observe_if_due()
        driver.now += 61_000
    assert sorted(reported) == [("PartitionStuck", "t-0"), ("PartitionStuck", "t-1")]
    assert causes["t-0"].code == "not-enough-replicas"
    assert dict(causes["t-0"].details).items() >= {"in_sync": 2, "replicas": 3, "least": 3}.items()
    assert causes["t-1"] == NO_REASON, "it has all replicas in sync"


class HalfAlive(Logs):
    """A source with brokers that do not answer. `silent`: the partitions that they lead."""

    def __init__(self, alias: str) -> None:
        super().__init__(alias)
        self.silent: set[TopicPartition] = set()
        self.waited: list[timedelta | None] = []

    async def reachable_end_offsets(
        self, asked: Iterable[TopicPartition], **settings: Any
    ) -> dict[TopicPartition, int]:
        self.waited.append(settings["within"])
        answered = [tp for tp in asked if tp not in self.silent]
        if not answered:
            raise ClusterUnreachable(self.alias, "a:9092", "no answer")
        return dict.fromkeys(answered, 20)


async def test_look_without_an_answer_about_some_keeps_what_was_known(monkeypatch: pytest.MonkeyPatch) -> None:
    driver, monitor, written = looking(monkeypatch, Logs("B"))
    driver.source = source = HalfAlive("A")
    asked_ms = driver.now
    await monitor.observe_if_due()
    source.silent = {TP}
    for _ in range(2):  # the row before names it as unanswered in the second one
        driver.say(written[-1])
        driver.now += 20_000
        await monitor.observe_if_due()
        row = written[-1]
        assert isinstance(row, SourceEnds)
        assert row.unanswered == (("t", 0, asked_ms),)
        assert row.known_ms([TP, ("t", 1)]) == {TP: asked_ms, ("t", 1): driver.now}
        assert row.by_partition()[TP] == (20, asked_ms), "what it is behind is not forgotten"
    driver.say(written[-1])
    source.silent = set()
    driver.now += 20_000
    await monitor.observe_if_due()
    (row,) = written[-1:]
    assert isinstance(row, SourceEnds)
    assert (row.unanswered, row.known_ms([TP])) == ((), {TP: driver.now})


async def test_look_of_a_new_driver_has_the_moments_of_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    driver, monitor, written = looking(monkeypatch, Logs("B"))
    driver.source = source = HalfAlive("A")
    source.silent = {TP}
    driver.say(SourceEnds(asked_ms=5_000, ends=(("t", 0, 15),), since_ms=(4_000,), unanswered=(("t", 0, 3_000),)))
    await monitor.observe_if_due()
    (row,) = written
    assert isinstance(row, SourceEnds)
    assert row.unanswered == (("t", 0, 3_000),)
    assert row.by_partition()[TP] == (15, 4_000)


async def test_look_waits_long_only_after_one_without_any_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    driver, monitor, written = looking(monkeypatch, Logs("B"))
    driver.source = source = HalfAlive("A")
    for silent in ({TP, ("t", 1)}, set[TopicPartition](), set[TopicPartition]()):
        source.silent = silent
        await monitor.observe_if_due()
        driver.now += 20_000
    assert source.waited == [ANSWERS_WITHIN, None, ANSWERS_WITHIN]
    assert len(written) == 2, "a look without any answer says nothing"


def test_source_ends_row_with_too_many_without_an_answer_is_sure_of_none() -> None:
    silent = {("t", number): 5 for number in range(MOST_ENDS + 1)}
    row = with_unanswered(SourceEnds(asked_ms=9), silent)
    assert (len(row.unanswered), row.more) == (MOST_ENDS, 1)
    assert row.known_ms([("u", 0)]) == {("u", 0): 0}
