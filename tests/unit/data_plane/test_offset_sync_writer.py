"""Offset syncs are due by MM2's rule, gather, go together, and are not lost by a failure."""

import asyncio
from collections.abc import Iterable

import pytest

from lockstep_data_plane.core.append_sequence import Ack
from lockstep_data_plane.progress import offset_sync_writer
from lockstep_data_plane.progress.offset_sync_writer import OffsetSyncWriter
from lockstep_data_plane.record_batch.layout import as_outgoing
from lockstep_kafka.common.errors import NotAppended
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_state.codecs.mm2_codec import decode_offset_sync
from tests.support.batch_bytes import batch, records
from tests.support.eventually import eventually


class Topic:
    """Stands where the offset syncs topic is: keeps each append, or refuses it."""

    def __init__(self) -> None:
        self.appends: list[list[tuple[str, int, int, int]]] = []
        self.refuses = False

    async def append_all(self, records: Iterable[tuple[bytes, bytes]], *, partition: int | None = None) -> list[int]:
        syncs = [decode_offset_sync(key, value) for key, value in records]
        self.appends.append([(s.topic, s.partition, s.upstream, s.downstream) for s in syncs])
        if self.refuses:
            raise NotAppended("a", "syncs", "no broker")
        return list(range(len(syncs)))


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_sync_writer, "GATHER_S", 0.01)
    monkeypatch.setattr(offset_sync_writer, "PAUSE_S", 0.01)


def sync_log(topic: Topic, lag_max: int = 0) -> OffsetSyncWriter:
    """With a lag of 0, each record has a sync."""
    return OffsetSyncWriter(topic, lag_max, FlowLog("data-plane", "A->B"))  # type: ignore[arg-type]  # a stand-in


def ack(upstream: int, downstream: int) -> Ack:
    """Of one record."""
    return Ack(as_outgoing(batch(records(upstream, 1))), downstream, 1)


async def test_a_gap_upstream_makes_a_sync_at_the_record_behind_it() -> None:
    topic = Topic()
    log = sync_log(topic, 100)
    log.send_due(("t", 0), [Ack(as_outgoing(batch(records(0, 2))), 50, 1)])
    log.send_due(("t", 0), [ack(2, 52), ack(7, 53), ack(8, 54)])
    await log.settle(5.0)
    assert topic.appends == [[("t", 0, 0, 50), ("t", 0, 7, 53)]]


async def test_a_flush_sends_the_delayed_sync_once() -> None:
    topic = Topic()
    log = sync_log(topic, 100)
    log.send_due(("t", 0), [Ack(as_outgoing(batch(records(0, 3))), 50, 1)])
    for _ in range(2):
        log.flush(("t", 0))
        await log.settle(5.0)
    assert topic.appends == [[("t", 0, 0, 50), ("t", 0, 2, 52)]]


async def test_a_partition_that_comes_back_has_a_sync_at_its_first_record() -> None:
    topic = Topic()
    log = sync_log(topic, 100)
    for upstream in (0, 1):
        log.send_due(("t", 0), [ack(upstream, upstream)])
        log.remove(("t", 0))
        await log.settle(5.0)
    assert topic.appends == [[("t", 0, 0, 0)], [("t", 0, 1, 1)]]


async def test_mm2_162_waiting_syncs_go_in_one_append_oldest_and_newest() -> None:
    topic = Topic()
    log = sync_log(topic)
    for upstream in (1, 2, 3):
        log.send_due(("t", 0), [ack(upstream, 10 + upstream)])
    log.send_due(("t", 1), [ack(7, 7)])
    log.send_due(("t", 1), [])
    await log.settle(5.0)
    assert topic.appends == [[("t", 0, 1, 11), ("t", 0, 3, 13), ("t", 1, 7, 7)]]
    assert log.sent == 3


async def test_failed_offset_sync_is_sent_again_never_behind_a_newer_one() -> None:
    topic = Topic()
    log = sync_log(topic)
    topic.refuses = True
    log.send_due(("t", 0), [ack(1, 11), ack(2, 12)])
    log.send_due(("t", 1), [ack(5, 5)])
    await eventually(lambda: len(topic.appends) >= 2, every=0.001)
    assert topic.appends[1] == [("t", 0, 2, 12), ("t", 1, 5, 5)]
    log.send_due(("t", 0), [ack(9, 19)])
    topic.refuses = False
    await log.settle(5.0)
    assert sorted(topic.appends[-1])[0][2] in (2, 9)
    sent = [sync for append in topic.appends for sync in append if sync[:2] == ("t", 0)]
    assert sent[-1][2] == 9
    assert [upstream for _, _, upstream, _ in sent[1:]] == sorted(upstream for _, _, upstream, _ in sent[1:])


async def test_offset_sync_writer_ends_while_the_cluster_refuses() -> None:
    topic = Topic()
    log = sync_log(topic)
    topic.refuses = True
    log.send_due(("t", 0), [ack(1, 11)])
    await log.settle(0.05)
    count = len(topic.appends)
    assert count >= 1
    await asyncio.sleep(0.05)
    assert len(topic.appends) == count


async def test_failed_sync_of_a_partition_that_has_left_is_not_sent_again() -> None:
    """The next slot may have written a newer one, and readers would forget it."""
    topic = Topic()
    log = sync_log(topic)
    topic.refuses = True
    for name in ("t", "u"):
        log.send_due((name, 0), [ack(100, 100)])
    await eventually(lambda: bool(topic.appends))
    log.remove(("t", 0))
    topic.refuses = False
    await log.settle(5.0)
    assert topic.appends[-1] == [("u", 0, 100, 100)]
