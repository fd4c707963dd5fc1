"""Whatever a record or a batch looks like, its copy is the same record at the same place (`architecture.md` §5, "Batch
facts").

One mirror runs for the whole file; each test writes to topics of its own and compares them with their copies in key,
value, headers, timestamp and order.
"""

import time

import pytest

from tests.support.batches import read_batches
from tests.support.clusters import Record, create_topic, produce, produce_transaction, read_topic, unique_name
from tests.support.eventually import wait_until
from tests.support.mirror import MirroredFlow

DAY_MS = 86_400_000
SWARM = 5_000


def orders(count: int, *, partitions: int = 1, size: int = 200) -> list[Record]:
    """Order-like records, no two equal, in steps of 10 ms up to now."""
    begun = time.time_ns() // 1_000_000 - 10 * count
    return [
        Record(
            key=b"customer-%d" % (number % 50),
            value=b'{"order": %d, "note": "%s"}' % (number, b"n" * size),
            headers=(("trace", b"%d" % number),),
            timestamp_ms=begun + 10 * number,
            partition=number % partitions,
        )
        for number in range(count)
    ]


def test_mm2_139_142_topics_both_ways_arrive_as_they_were_sent(there: MirroredFlow, back: MirroredFlow) -> None:
    sent = {}
    for flow, stem in ((there, "there-orders"), (there, "there-payments"), (back, "back-orders")):
        topic = create_topic(flow.source, unique_name(stem), partitions=3)
        produce(flow.source, topic, orders(2_000, partitions=3), codec="lz4", settings={"linger.ms": "20"})
        sent[topic] = flow
    for topic, flow in sent.items():
        copied = flow.wait_copied(topic)
        assert len(copied) == 2_000
        # Where the source has no gaps the offsets stay, too.
        assert {(r.partition, r.offset) for r in copied} == {
            (r.partition, r.offset) for r in read_topic(flow.source, topic)
        }


def test_mm2_139_142_nulls_empties_and_headers(there: MirroredFlow) -> None:
    topic = create_topic(there.source, unique_name("there-nulls"))
    odd = [
        Record(key=None, value=None),
        Record(key=None, value=b"value without key"),
        Record(key=b"tombstone", value=None),
        Record(key=b"", value=b""),
        Record(key=b"k", value=b"", headers=(("", b""),)),
        Record(key=b"k", value=b"duplicates", headers=(("a", b"1"), ("b", b"2"), ("a", b"3"), ("a", b"1"))),
        Record(key=b"k", value=b"null header", headers=(("n", None), ("n", b""), ("n", None))),
        Record(key=b"\x00\xff", value=bytes(range(256)), headers=(("schlüssel", b"\xff\x00"),)),
    ]
    produce(there.source, topic, odd)
    assert [r.same_as()[:3] for r in there.wait_copied(topic)] == [r.same_as()[:3] for r in odd]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_in_big_batches_and_alone(there: MirroredFlow, codec: str) -> None:
    big = create_topic(there.source, unique_name(f"there-big-{codec}"))
    alone = create_topic(there.source, unique_name(f"there-alone-{codec}"))
    produce(there.source, big, orders(1_500), codec=codec, settings={"linger.ms": "100", "batch.size": "500000"})
    produce(there.source, alone, orders(60), codec=codec, settings={"linger.ms": "0", "batch.num.messages": "1"})
    assert len(there.wait_copied(big)) == 1_500
    assert len(there.wait_copied(alone)) == 60


def test_waiting_single_records_are_merged_in_order(there: MirroredFlow) -> None:
    topic = create_topic(there.source, unique_name("there-swarm"))
    # Before the topic is seen, so that all of it waits.
    produce(
        there.source, topic, orders(SWARM, size=20), codec="lz4", settings={"linger.ms": "0", "batch.num.messages": "1"}
    )
    assert len(there.wait_copied(topic)) == SWARM
    sent, copied = read_batches(there.source, topic), read_batches(there.target, there.remote(topic))
    assert [batch.record_count for batch in sent] == [1] * SWARM
    assert sum(batch.record_count for batch in copied) == SWARM
    assert len(copied) < SWARM  # how many wait together depends on the machine


def test_transactions_under_read_uncommitted_are_copied_without_markers(there: MirroredFlow) -> None:
    topic = create_topic(there.source, unique_name("there-transactions"))
    for number in range(6):
        chunk = [Record(key=b"k", value=b"t%d-%d" % (number, i)) for i in range(20)]
        produce_transaction(there.source, topic, chunk, commit=number % 3 != 1)
        produce(there.source, topic, [Record(value=b"plain %d" % number)])
    copied = there.wait_copied(topic, isolation="read_uncommitted")
    assert len(copied) == 6 * 21
    assert [r.offset for r in copied] == list(range(6 * 21)), "markers leave no gap on the target"
    assert there.wait_written_down(topic)[0].upstream == 6 * 22 - 1


def test_transactions_under_read_committed_lose_what_was_aborted(committed: MirroredFlow) -> None:
    topic = create_topic(committed.source, unique_name("committed-transactions"))
    for number in range(6):
        chunk = [Record(key=b"k", value=b"t%d-%d" % (number, i)) for i in range(20)]
        produce_transaction(committed.source, topic, chunk, commit=number % 3 != 1, codec="lz4")
        produce(committed.source, topic, [Record(value=b"plain %d" % number)])
    copied = committed.wait_copied(topic, isolation="read_committed")
    assert len(copied) == 4 * 20 + 6
    assert not [r for r in copied if (r.value or b"").startswith((b"t1-", b"t4-"))]


def test_mm2_170_offset_syncs_lie_on_the_target_where_that_is_wanted(committed: MirroredFlow) -> None:
    topic = create_topic(committed.source, unique_name("committed-syncs"))
    produce(committed.source, topic, orders(10))
    committed.wait_copied(topic)
    wait_until(lambda: committed.offset_syncs(topic, on_target=True), every=0.1, what="a sync on the target")
    assert committed.offset_syncs(topic) == []


def test_log_append_time_is_preserved(there: MirroredFlow) -> None:
    configs = {"message.timestamp.type": "LogAppendTime"}
    topic = create_topic(there.source, unique_name("there-append-time"), configs=configs)
    old = [Record(key=b"k", value=b"%d" % n, timestamp_ms=time.time_ns() // 1_000_000 - 9 * DAY_MS) for n in range(50)]
    produce(there.source, topic, old, codec="zstd", settings={"linger.ms": "50"})
    produce(there.source, topic, old[:5])
    copied = there.wait_copied(topic)
    assert min(r.timestamp_ms or 0 for r in copied) > time.time_ns() // 1_000_000 - DAY_MS, "the source's append time"


def test_old_timestamps_are_preserved(there: MirroredFlow) -> None:
    topic = create_topic(there.source, unique_name("there-old"))
    now = time.time_ns() // 1_000_000
    produce(there.source, topic, [Record(value=b"%d" % n, timestamp_ms=now - (400 - n) * DAY_MS) for n in range(300)])
    assert len(there.wait_copied(topic)) == 300
