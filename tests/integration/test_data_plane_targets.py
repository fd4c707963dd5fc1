"""Targets that take less than the source gave, or make something else of it (`batches.md`): the copy is the same,
or the partition halts and says which offsets are refused and why."""

import os
import time
from datetime import timedelta

from lockstep_data_plane.record_batch.layout import as_outgoing, scan, stamp
from lockstep_kafka.messages.produce_codec import ProduceAnswer, produce_answer, produce_request
from lockstep_kafka.wire.cluster import connect_cluster
from tests.support.batch_bytes import batch_bytes, records
from tests.support.clusters import Record, create_topic, produce, read_topic, unique_name
from tests.support.eventually import wait_until
from tests.support.mirror import MirroredFlow

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
ANY_TIME = str(2**63 - 1)
ONE_BATCH = {"linger.ms": "200", "batch.size": "4000000", "message.max.bytes": "4000000"}


def pair_of_topics(there: MirroredFlow, stem: str, *, source: dict[str, str], target: dict[str, str]) -> str:
    """A topic and its remote topic, each with its own configs."""
    topic = unique_name(f"there-{stem}")
    create_topic(there.target, there.remote(topic), configs=target)
    create_topic(there.source, topic, configs=source)
    return topic


def good(count: int) -> list[Record]:
    return [Record(key=b"k%d" % n, value=b"good %d" % n) for n in range(count)]


def test_timestamps_the_target_refuses_halt_the_partition_by_their_offsets(there: MirroredFlow) -> None:
    limits = {"message.timestamp.after.max.ms": str(HOUR_MS)}
    topic = pair_of_topics(there, "future", source={"message.timestamp.after.max.ms": ANY_TIME}, target=limits)
    produce(there.source, topic, good(5))
    there.wait_copied(topic)
    ahead = time.time_ns() // 1_000_000 + 2 * DAY_MS
    late = [Record(key=b"k", value=b"%d" % n, timestamp_ms=ahead if n in (1, 3) else None) for n in range(5)]
    produce(there.source, topic, late, settings=ONE_BATCH)
    event = there.wait_event("PartitionHalted", f"{topic}-0")
    reason = event.detail["reason"]
    assert "INVALID_TIMESTAMP" in reason
    assert "offset 6: " in reason
    assert "offset 8: " in reason
    assert "offset 7: " not in reason
    assert event.detail["upstream"] == 4
    assert len(read_topic(there.target, there.remote(topic))) == 5


def test_null_keys_for_a_compacted_target_halt_the_partition_by_offsets(there: MirroredFlow) -> None:
    topic = pair_of_topics(there, "keyless", source={}, target={"cleanup.policy": "compact"})
    produce(there.source, topic, good(3))
    there.wait_copied(topic)
    produce(there.source, topic, [*good(2), Record(value=b"no key"), *good(2)], settings=ONE_BATCH)
    reason = there.wait_event("PartitionHalted", f"{topic}-0").detail["reason"]
    assert "INVALID_RECORD" in reason
    assert "offset 5: " in reason
    assert "offset 4: " not in reason


def test_target_with_log_append_time_is_named_once(there: MirroredFlow) -> None:
    topic = pair_of_topics(there, "stamped", source={}, target={"message.timestamp.type": "LogAppendTime"})
    plain = create_topic(there.source, unique_name("there-not-stamped"))
    old = [Record(key=b"k", value=b"%d" % n, timestamp_ms=1_000_000 + n) for n in range(20)]
    for one in (topic, plain):
        produce(there.source, one, old)
        produce(there.source, one, old)
    there.wait_copied(plain)
    event = there.wait_event("TimestampsRewritten", f"{there.remote(topic)}-0")
    assert "downstream" in event.detail
    wait_until(lambda: len(read_topic(there.target, there.remote(topic))) == 40, within=60, every=0.25)
    assert there.events("TimestampsRewritten", there.remote(plain)) == []
    assert len(there.events("TimestampsRewritten", there.remote(topic))) == 1
    assert there.events("PartitionHalted", topic) == []


async def test_the_answer_to_a_duplicate_is_no_time_of_the_targets_own(there: MirroredFlow) -> None:
    """A first try whose answer was lost, appended after the log was read: the second one is answered with the very
    offset that it was to have, and with a time (`kafka-wire.md` §0)."""
    cluster = connect_cluster("written", {"bootstrap.servers": there.target}, "duplicates")
    batch = batch_bytes(records(0, 3))
    piece = as_outgoing(next(scan(batch)))

    async def append_twice(topic: str) -> list[ProduceAnswer]:
        await cluster.refresh([topic])
        leader = cluster.require_leader((topic, 0))
        connection = await cluster.connection(leader.broker, "raw")
        stamped = stamp(piece.data, 4_000_000, 0, 0)
        request = produce_request(13, [((topic, 0), leader, stamped)], timedelta(seconds=30))
        asked = [connection.send(request) for _ in range(2)]
        return [produce_answer((await one).responses[0].partition_responses[0]) for one in asked]

    try:
        plain = await append_twice(create_topic(there.target, unique_name("here-plain")))
        stamping = create_topic(
            there.target, unique_name("here-stamping"), configs={"message.timestamp.type": "LogAppendTime"}
        )
        stamped = await append_twice(stamping)
    finally:
        await cluster.close()
    for answers in (plain, stamped):
        assert [(answer.code, answer.base_offset) for answer in answers] == [(0, 0), (0, 0)]
    assert plain[1].append_time_ms == piece.max_timestamp
    assert [answer.rewrote_times(piece.max_timestamp) for answer in (*plain, *stamped)] == [False, False, True, True]


def test_a_target_that_compresses_by_itself_holds_the_same_records(there: MirroredFlow) -> None:
    topic = pair_of_topics(there, "gzipped", source={}, target={"compression.type": "gzip"})
    for codec in ("none", "lz4", "zstd"):
        produce(there.source, topic, good(200), codec=codec, settings=ONE_BATCH)
    assert len(there.wait_copied(topic)) == 600


def test_a_batch_that_only_the_target_makes_too_large_is_split(there: MirroredFlow) -> None:
    """The size that counts is the one after the target's own compression, which nobody knows before."""
    configs = {"compression.type": "uncompressed", "max.message.bytes": "20000"}
    topic = pair_of_topics(there, "unpacked", source={}, target=configs)
    alike = [Record(key=b"k%d" % n, value=b"the same again " * 40) for n in range(300)]
    produce(there.source, topic, alike, codec="zstd", settings=ONE_BATCH)
    assert len(there.wait_copied(topic)) == 300
    assert there.events("PartitionHalted", topic) == []


def test_a_batch_larger_than_a_segment_of_the_target_is_split(there: MirroredFlow) -> None:
    large = {"max.message.bytes": "4000000"}
    topic = pair_of_topics(there, "segments", source=large, target=large | {"segment.bytes": str(1 << 20)})
    random = [Record(key=b"k%d" % n, value=os.urandom(10_000)) for n in range(200)]
    produce(there.source, topic, random, settings=ONE_BATCH)
    assert len(there.wait_copied(topic)) == 200
    assert there.events("PartitionHalted", topic) == []
