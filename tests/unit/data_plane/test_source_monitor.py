"""The driver looks at the source by itself, whatever holds it up, and says which partitions stand."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from lockstep_config.flow.connector_settings import NOTHING_STATED
from lockstep_data_plane.driver import source_ends_watch, source_monitor
from lockstep_data_plane.driver.driver import Driver
from lockstep_data_plane.driver.source_ends_watch import ANSWERS_WITHIN, SourceEndsWatch
from lockstep_data_plane.driver.source_monitor import TROUBLE, WRITING, SourceMonitor
from lockstep_kafka.common.admin_types import Outcome, TopicDescription
from lockstep_kafka.common.errors import ClusterUnreachable, LeadershipLost, NotAppended
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.rows.state_rows import MirroredTopic, SeenEnds, SourceEnds, decode_row
from tests.support.metered_driver import Leads, copying
from tests.support.metered_driver import row as row_of

TP = ("t", 0)


class Logs:
    """A cluster as far as the monitor asks: each log ends at 20."""

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self.is_away = False
        self.silent: set[TopicPartition] = set()
        """Partitions whose leaders do not answer."""
        self.waited: list[timedelta | None] = []

    async def probe(self) -> None:
        if self.is_away:
            raise ClusterUnreachable(self.alias, "a:9092", "connection refused")

    async def end_offsets(self, asked: Iterable[TopicPartition], **_: Any) -> dict[TopicPartition, int]:
        return dict.fromkeys(asked, 20)

    async def reachable_end_offsets(
        self, asked: Iterable[TopicPartition], **settings: Any
    ) -> dict[TopicPartition, int]:
        self.waited.append(settings["within"])
        answered = [tp for tp in asked if tp not in self.silent]
        if not answered:
            raise ClusterUnreachable(self.alias, "a:9092", "no answer")
        return dict.fromkeys(answered, 20)

    async def begin_offsets(self, asked: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(asked, 0)

    async def close(self) -> None:
        return

    async def topics(self, asked: Iterable[str]) -> Outcome[TopicDescription]:
        return Outcome({name: TopicDescription(name, "", 2, 3, (2, 3)) for name in asked})


class Unanswered(Logs):
    """A target whose answer never comes."""

    async def end_offsets(self, asked: Iterable[TopicPartition], **_: Any) -> dict[TopicPartition, int]:
        await asyncio.Event().wait()
        return {}


class Appends:
    """The producer of the watch: it keeps the rows, or refuses them."""

    def __init__(self) -> None:
        self.rows: list[SourceEnds] = []
        self.seen: list[SeenEnds] = []
        self.refuses = False

    async def start(self) -> None:
        return

    async def stop(self, within: float) -> None:
        return

    def send(self, topic: str, key: bytes, value: bytes, *_: Any) -> asyncio.Future[tuple[int, int]]:
        future: asyncio.Future[tuple[int, int]] = asyncio.get_running_loop().create_future()
        row = decode_row(key, value)
        if self.refuses:
            future.set_exception(NotAppended("B", topic, "no leader"))
        else:
            if isinstance(row, SeenEnds):
                self.seen.append(row)
            else:
                assert isinstance(row, SourceEnds)
                self.rows.append(row)
            future.set_result((0, len(self.rows)))
        return future


class Lead(Leads):
    """Leads in term 7."""

    def leading_term(self, label: str) -> int:
        assert label == "data-plane"
        return 7


@dataclass
class Scene:
    """A driver whose clock stands, the monitor of its source, and what this writes."""

    driver: Any
    monitor: SourceMonitor
    appends: Appends
    source: Logs

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self.monitor.running():
            yield

    async def wait_rows(self, count: int) -> None:
        await self.wait(lambda: len(self.appends.rows) >= count)

    async def wait(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(20.0):
            while not condition():
                self.monitor.check()
                await asyncio.sleep(0.01)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    driver: Any = copying(upstream=9)
    driver.source, driver.target, driver.must_act, driver.leadership = Logs("A"), Logs("B"), lambda: None, Lead()
    driver.settings.data_plane.reads_committed, driver.settings.states = False, NOTHING_STATED

    async def event(*_: Any, **__: Any) -> None:
        return

    driver.event = event
    monkeypatch.setattr(type(driver.state), "topic", "state")
    monkeypatch.setattr(source_monitor, "TICK_S", 0.01)
    monkeypatch.setattr(source_ends_watch, "TICK_S", 0.01)
    scene = Scene(driver, SourceMonitor(driver, driver.collector, 1), Appends(), driver.source)
    clients: Any = lambda _: (scene.source, scene.appends)  # noqa: E731  # a function of what the scene has by then
    scene.monitor.watch = SourceEndsWatch(driver, clients)
    return scene


async def test_source_ends_that_cannot_be_written_do_not_end_the_driver(scene: Scene) -> None:
    scene.appends.refuses = True
    troubles, seen_ms = scene.driver.periodic.troubles, scene.driver.now
    async with scene.running():
        await scene.wait(lambda: list(troubles.now) == [WRITING])
        scene.appends.refuses = False
        scene.driver.now += 20_000
        await scene.wait(lambda: not troubles.now)
    ends = (("t", 1, 20), ("t", 0, 20))
    row = SourceEnds(asked_ms=scene.driver.now, ends=ends, since_ms=(seen_ms, seen_ms), at_ms=scene.driver.now, term=7)
    assert scene.appends.rows == [row]


async def test_look_comes_while_the_event_loop_is_held_up(scene: Scene) -> None:
    """Whatever holds it up, as a page of 10,000 partitions, or another flow of the process."""
    async with scene.running():
        await scene.wait_rows(1)
        for count in (2, 3, 4):
            scene.driver.now += 9_000
            given_up = time.monotonic() + 20
            while len(scene.appends.rows) < count and time.monotonic() < given_up:
                time.sleep(0.01)  # of this loop nothing runs meanwhile
            assert len(scene.appends.rows) == count
    times = [row.asked_ms for row in scene.appends.rows]
    assert max(later - earlier for earlier, later in pairwise(times)) == 9_000


async def test_look_comes_by_wall_clock_whatever_the_process_costs(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    cost_s = iter(range(0, 10_000_000, 100_000))
    monkeypatch.setattr("time.process_time", lambda: float(next(cost_s)))
    async with scene.running():
        for count in (1, 2, 3):
            await scene.wait_rows(count)
            scene.driver.now += 9_000


async def test_source_that_is_away_is_reported_and_looked_at_again(scene: Scene) -> None:
    troubles = scene.driver.periodic.troubles
    scene.source.is_away = True
    async with scene.running():
        await scene.wait(lambda: TROUBLE in troubles.now)
        assert not scene.appends.rows
        scene.source.is_away = False
        scene.driver.now += 9_000
        await scene.wait(lambda: not troubles.now and scene.appends.rows)


async def test_end_of_the_watch_is_raised_in_the_driver(scene: Scene) -> None:
    def lost() -> None:
        raise LeadershipLost("another leads")

    scene.driver.must_act = lost
    async with scene.monitor.running():
        await asyncio.sleep(0.05)
        with pytest.raises(LeadershipLost):
            scene.monitor.check()


async def test_mistake_in_the_thread_is_raised_in_the_driver(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_ends_watch, "source_ends_row", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        async with scene.running():
            await scene.wait(lambda: False)


async def test_target_without_an_answer_does_not_hold_up_the_source(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.driver.target = Unanswered("B")
    monkeypatch.setattr(source_monitor, "TARGET_WITHIN_S", 0.01)
    async with scene.running():
        await scene.wait_rows(1)
        await scene.wait(lambda: scene.monitor._applied is not None)


async def test_a_new_driver_knows_since_when_records_wait(scene: Scene) -> None:
    driver = scene.driver
    since_ms = driver.now - 86_400_000
    driver.say(SourceEnds(asked_ms=driver.now - 5_000, ends=(("t", 0, 15),), since_ms=(since_ms,)))
    async with scene.running():
        await scene.wait_rows(1)
        await scene.wait(lambda: scene.monitor._applied is not None)
        assert driver.value("lockstep_lag_seconds", partition="0") == 86_400
        assert driver.value("lockstep_lag_seconds", partition="1") == 0, "it was seen just now"
    (row,) = scene.appends.rows
    assert row.by_partition() == {("t", 0): (20, since_ms), ("t", 1): (20, driver.now)}


def test_driver_reads_the_row_of_ends_that_it_writes() -> None:
    assert SourceEnds in Driver.wants


async def test_partitions_that_stand_are_reported_at_once(scene: Scene) -> None:
    driver = scene.driver
    driver.assign(TP, ("t", 1))
    driver.say(row_of(1, upstream=9))
    driver.say(replace(driver.state.get(MirroredTopic, "t"), target_configs=(("min.insync.replicas", "3"),)))
    reported: list[tuple[str, str]] = []
    causes: dict[str, Reason] = {}
    both = asyncio.Barrier(2)

    async def event(kind: str, subject: str, _: str, cause: Reason, **__: object) -> None:
        reported.append((kind, subject))
        causes[subject] = cause
        await both.wait()  # an append that is acknowledged with the other one only

    driver.event = event
    async with scene.running():
        for count in (1, 2):
            await scene.wait_rows(count)
            await asyncio.sleep(0.1)
            driver.now += 61_000
        await scene.wait(lambda: len(reported) == 2)
    assert sorted(reported) == [("PartitionStuck", "t-0"), ("PartitionStuck", "t-1")]
    assert causes["t-0"].code == "not-enough-replicas"
    assert dict(causes["t-0"].details).items() >= {"in_sync": 2, "replicas": 3, "least": 3}.items()
    assert causes["t-1"] == NO_REASON, "it has all replicas in sync"


async def test_look_without_an_answer_about_some_keeps_what_was_known(scene: Scene) -> None:
    asked_ms = scene.driver.now
    async with scene.running():
        await scene.wait_rows(1)
        scene.source.silent = {TP}
        for count in (2, 3):
            scene.driver.now += 20_000
            await scene.wait_rows(count)
            row = scene.appends.rows[-1]
            assert row.unanswered == (("t", 0, asked_ms),)
            assert row.known_ms([TP, ("t", 1)]) == {TP: asked_ms, ("t", 1): scene.driver.now}
            assert row.by_partition()[TP] == (20, asked_ms), "what it is behind is not forgotten"
        scene.source.silent = set()
        scene.driver.now += 20_000
        await scene.wait_rows(4)
    row = scene.appends.rows[-1]
    assert (row.unanswered, row.known_ms([TP])) == ((), {TP: scene.driver.now})


async def test_look_of_a_new_driver_has_the_moments_of_the_one_before(scene: Scene) -> None:
    scene.source.silent = {TP}
    scene.driver.say(SourceEnds(asked_ms=5_000, ends=(("t", 0, 15),), since_ms=(4_000,), unanswered=(("t", 0, 3_000),)))
    async with scene.running():
        await scene.wait_rows(1)
    row = scene.appends.rows[0]
    assert row.unanswered == (("t", 0, 3_000),)
    assert row.by_partition()[TP] == (15, 4_000)


async def test_look_waits_long_only_after_one_without_any_answer(scene: Scene) -> None:
    scene.source.silent = {TP, ("t", 1)}
    async with scene.running():
        await scene.wait(lambda: len(scene.source.waited) == 1)
        scene.source.silent = set()
        for count in (2, 3):
            scene.driver.now += 20_000
            await scene.wait_rows(count - 1)
    assert scene.source.waited == [ANSWERS_WITHIN, None, ANSWERS_WITHIN]


DELAY_MS = 30_000


@pytest.fixture
def delayed(scene: Scene) -> Scene:
    """The topic of the scene has a delay. Its slot has copied up to 9, and each log ends at 20."""
    scene.driver.settings.delays_ms = {"t": DELAY_MS}
    scene.driver.settings.data_plane.least_delay = timedelta(milliseconds=DELAY_MS)
    return scene


async def test_ends_of_a_delayed_topic_are_written_when_they_are_seen_and_when_they_are_due(delayed: Scene) -> None:
    seen_ms, appends = delayed.driver.now, delayed.appends
    async with delayed.running():
        await delayed.wait(lambda: len(appends.seen) == 2)
        assert {(row.partition, row.released, row.ends) for row in appends.seen} == {
            (number, 0, ((20, seen_ms, True),)) for number in (0, 1)
        }
        for count in (2, 3):
            delayed.driver.now += 9_000
            await delayed.wait_rows(count)
        assert len(appends.seen) == 2, "nothing is new"
        delayed.driver.now += DELAY_MS - 18_000
        await delayed.wait(lambda: len(appends.seen) == 4)
        assert [row.released for row in appends.seen[2:]] == [20, 20]
    assert {row.term for row in appends.seen} == {7}


async def test_next_driver_goes_on_from_the_rows_of_the_one_before(delayed: Scene) -> None:
    seen_ms = delayed.driver.now
    delayed.driver.say(SeenEnds(topic="t", partition=0, ends=((20, seen_ms - DELAY_MS, True),)))
    async with delayed.running():
        await delayed.wait(lambda: len(delayed.appends.seen) == 2)
    released = {row.partition: row.released for row in delayed.appends.seen}
    assert released == {0: 20, 1: 0}, "of the other one nobody knows since when it is there"


async def test_row_that_was_not_written_is_written_later(delayed: Scene) -> None:
    delayed.appends.refuses = True
    seen_ms, troubles = delayed.driver.now, delayed.driver.periodic.troubles
    async with delayed.running():
        await delayed.wait(lambda: list(troubles.now) == [WRITING])
        delayed.appends.refuses = False
        delayed.driver.now += 9_000
        await delayed.wait(lambda: len(delayed.appends.seen) == 2)
    assert [row.ends for row in delayed.appends.seen] == [((20, seen_ms, True),)] * 2, "it counts from the first look"


async def test_open_transaction_is_noted_in_a_flow_of_committed_records(delayed: Scene) -> None:
    delayed.driver.settings.data_plane.reads_committed = True

    async def tops(asked: Iterable[TopicPartition], **_: Any) -> dict[TopicPartition, int]:
        return {tp: 20 + tp[1] for tp in asked}

    delayed.source.end_offsets = tops  # type: ignore[method-assign]  # the high watermarks of this cluster
    async with delayed.running():
        await delayed.wait(lambda: len(delayed.appends.seen) == 2)
    assert {row.partition: row.ends[0][2] for row in delayed.appends.seen} == {0: True, 1: False}


async def test_partition_that_is_held_back_is_not_stuck(delayed: Scene) -> None:
    delayed.driver.settings.delays_ms = {"t": 1_000_000}
    delayed.driver.say(SeenEnds(topic="t", partition=0, released=10), SeenEnds(topic="t", partition=1, released=15))
    async with delayed.running():
        for count in range(1, 12):
            await delayed.wait_rows(count)
            await delayed.monitor.apply_reading()
            delayed.driver.now += 9_000
    assert set(delayed.monitor._stall_detector.stuck) <= {("t", 1)}
    assert ("t", 0) not in delayed.monitor._stall_detector.stuck, "it has copied what is released"
