"""The records of a heartbeats topic that the monitor reads, and the new ones among them."""

from typing import Any

import pytest
from confluent_kafka import TopicPartition

from lockstep_heartbeat import upstream_monitor
from lockstep_heartbeat.upstream_clusters import UpstreamHeartbeat
from lockstep_heartbeat.upstream_monitor import BEFORE, UpstreamMonitor
from lockstep_state.codecs.mm2_codec import Heartbeat, encode_heartbeat

HOUR = 3_600_000


class Log:
    """A heartbeats topic and the only consumer of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 10 * HOUR
        self.monitor = UpstreamMonitor("B", {}, lambda: self.now)
        self.records: list[int] = []
        self.next = 0
        monkeypatch.setattr(upstream_monitor, "bounds", lambda *_: (0, len(self.records)))

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.next = partitions[0].offset

    def turn(self) -> None:
        """The consumer begins, or another one does after it had no answer."""
        self.monitor._assign(self, frozenset({"t"}))  # type: ignore[arg-type]  # what it calls

    def read(self) -> UpstreamHeartbeat:
        for offset in range(self.next, len(self.records)):
            self.monitor._on_record(Message(offset, self.records[offset]))  # type: ignore[arg-type]  # what it calls
        self.next = len(self.records)
        return self.monitor.heartbeats["t"]


class Message:
    def __init__(self, offset: int, sent_ms: int) -> None:
        self._offset = offset
        self._key, self._value = encode_heartbeat(Heartbeat("A", "B", sent_ms))

    def error(self) -> Any:
        return None

    def topic(self) -> str:
        return "t"

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes:
        return self._key

    def value(self) -> bytes:
        return self._value


def test_last_record_at_the_start_has_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(monkeypatch)
    log.records = [log.now - HOUR + 1000 * number for number in range(2 * BEFORE)]
    log.turn()
    assert log.next == BEFORE
    assert log.read() == UpstreamHeartbeat(log.records[-1], log.now)
    log.records.append(log.now - 40)
    assert log.read() == UpstreamHeartbeat(log.now - 40, log.now, 40)


def test_another_consumer_does_not_read_a_record_as_arrived_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of a clock that was ahead would be young again after each of them."""
    log = Log(monkeypatch)
    log.records = [log.now - 2000, log.now - 1000]
    log.turn()
    log.records.append(log.now + HOUR)
    earlier = log.read()
    log.now += 60_000
    log.turn()
    assert log.next == 3
    assert log.read() == earlier
    log.records.append(log.now - 500)
    log.turn()
    assert log.read() == UpstreamHeartbeat(log.now - 500, log.now), "it came in between"


def test_topic_that_was_created_again_is_read_from_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(monkeypatch)
    log.records = [log.now - 2000] * 30
    log.turn()
    log.read()
    log.records = [log.now - 100] * 5
    log.turn()
    assert log.next == 0
