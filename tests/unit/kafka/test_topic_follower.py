"""How long a follower is waited for that hands nothing over."""

import threading
import time
from collections.abc import Iterable, Mapping

import pytest

from lockstep_kafka.common.errors import ClusterUnreachable, TopicMissing
from lockstep_kafka.topics.topic_follower import TopicFollower
from lockstep_kafka.topics.topic_reader import Record

Read = tuple[list[Record], dict[int, int]]


class Reader:
    """Of a topic with `total` records, one each `every_s`. With `leaderless` it does not say where the topic ends. It
    stops after `stops_at` records."""

    def __init__(
        self, stopping: threading.Event, *, total: int, every_s: float, leaderless: bool = False, stops_at: int = 99
    ) -> None:
        self._stopping = stopping
        self._total, self._every_s, self._leaderless, self._stops_at = total, every_s, leaderless, stops_at
        self._next = 0
        self.trouble = ""
        self.ends_trouble = ""

    def open(self) -> None:
        pass

    def close(self) -> None:
        pass

    def begin(self, positions: Mapping[int, int], *, at_the_beginning: bool) -> None:
        pass

    def ends(self, _partitions: Iterable[int] | None) -> dict[int, tuple[int, int]] | None:
        if not self._leaderless:
            return {0: (0, self._total)}
        self.ends_trouble = "Broker: Leader not available"
        self._stopping.wait()
        return None

    def read(self) -> Read | None:
        time.sleep(self._every_s)
        if self._next >= min(self._total, self._stops_at):
            return None
        self._next += 1
        return [Record("t", 0, self._next - 1, b"k", b"v", 0)], {0: self._next}


def follower(**how: float) -> tuple[TopicFollower, list[Record]]:
    heard: list[Record] = []
    made = TopicFollower({"bootstrap.servers": "b:9092"}, "t", on_records=heard.extend, partitions=[0], alias="B")
    reader = Reader(made._stopping, **{"total": 5, "every_s": 0.0, **how})  # type: ignore[arg-type]
    made._reader = reader  # type: ignore[assignment]
    return made, heard


async def test_topic_without_a_leader_is_unreachable_after_the_time() -> None:
    silent, _ = follower(leaderless=True)
    with pytest.raises(ClusterUnreachable, match=r"cluster B at b:9092 .* topic t .*Leader not available"):
        await silent.replay(silent_s=0.1)


async def test_topic_that_stops_half_way_is_unreachable_after_the_time() -> None:
    silent, heard = follower(every_s=0.01, stops_at=3)
    with pytest.raises(ClusterUnreachable):
        await silent.replay(silent_s=0.3)
    assert len(heard) == 3


async def test_topic_that_is_read_slowly_is_waited_for() -> None:
    """What counts is the time without a record, not that of the whole topic."""
    slow, heard = follower(every_s=0.2)
    await slow.replay(silent_s=0.6)
    assert len(heard) == 5


async def test_follower_that_ends_raises_its_own_error() -> None:
    ended, _ = follower()

    def missing(_partitions: Iterable[int] | None) -> None:
        raise TopicMissing("B", "t")

    ended._reader.ends = missing  # type: ignore[method-assign, assignment]
    with pytest.raises(TopicMissing):
        await ended.replay(silent_s=5.0)


async def test_trouble_on_the_wire_is_the_reason() -> None:
    silent, _ = follower(leaderless=True)
    silent._reader.trouble = "b:9092: connection refused"
    with pytest.raises(ClusterUnreachable, match="connection refused"):
        await silent.replay(silent_s=0.1)
