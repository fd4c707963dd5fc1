"""What becomes of topics while they are copied: new ones, grown ones, re-created ones, and targets that take less."""

import os

import psutil
import pytest

from lockstep_state.rows.state_rows import SlotStatus
from tests.support.clusters import Record, add_partitions, create_topic, delete_topic, produce, read_topic, unique_name
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.traffic import Traffic

MAX_MESSAGE_BYTES = 20_000  # bytes: max.message.bytes of the small targets


def numbered(count: int, *, partition: int = 0, size: int = 20, stem: bytes = b"r") -> list[Record]:
    """Records that no codec makes smaller, no two equal."""
    return [
        Record(key=b"%d" % n, value=b"%s %d " % (stem, n) + os.urandom(size), partition=partition) for n in range(count)
    ]


def small_target(there: MirroredFlow, stem: str, partitions: int = 1) -> str:
    """A source topic whose remote topic takes batches of `TAKES` bytes only."""
    topic = unique_name(f"there-{stem}")
    create_topic(
        there.target, there.remote(topic), partitions=partitions, configs={"max.message.bytes": str(MAX_MESSAGE_BYTES)}
    )
    create_topic(there.source, topic, partitions=partitions)
    return topic


def holders(there: MirroredFlow, topic: str) -> dict[int, tuple[int, str]]:
    """The slot, and its run, that each partition of the topic is with."""
    runs = {row.slot: row.run for row in there.rows(SlotStatus)}
    return {number: (slot, runs[slot]) for slot, held in there.assigned(topic).items() for number in held}


def test_mm2_182_new_topic_does_not_pause_a_copy(there: MirroredFlow) -> None:
    busy = create_topic(there.source, unique_name("there-busy"), partitions=2)
    with Traffic(there.source, busy, partitions=2, rate=300):
        wait_until(lambda: sum(row.upstream + 1 for row in there.progress(busy).values()) > 300, within=90, every=0.25)
        before = holders(there, busy)
        assert len(before) == 2
        new = create_topic(there.source, unique_name("there-new"), partitions=2)
        produce(there.source, new, [*numbered(200), *numbered(200, partition=1)])
        assert len(there.wait_copied(new)) == 400
        at = sum(row.upstream for row in there.progress(busy).values())
        wait_until(lambda: sum(row.upstream for row in there.progress(busy).values()) > at, every=0.25)
        add_partitions(there.source, new, 3)
        there.wait_mirrored(new, partitions=3)
        wait_until(lambda: len(holders(there, new)) == 3, within=90, every=0.25, what="the new partition has a slot")
    assert holders(there, busy) == before, "nothing that was there moved, and no slot was started anew"
    there.wait_copied(busy)
    assert there.events("SlotFailed") == []


def test_partitions_added_while_it_is_copied(there: MirroredFlow) -> None:
    topic = create_topic(there.source, unique_name("there-grown"), partitions=1)
    with Traffic(there.source, topic, rate=200):
        wait_until(lambda: there.progress(topic), within=90, every=0.25)
        add_partitions(there.source, topic, 3)
        produce(there.source, topic, [*numbered(100, partition=1), *numbered(100, partition=2)])
        there.wait_mirrored(topic, partitions=3)
    copied = there.wait_copied(topic)
    assert {r.partition for r in copied} == {0, 1, 2}


def test_mm2_177_a_topic_is_copied_from_the_time_that_its_setting_names(there: MirroredFlow) -> None:
    begins = 1_700_000_000_000  # as the flow's file says
    topic = create_topic(there.source, unique_name("there-dated"))
    days = [Record(value=b"%d" % n, timestamp_ms=begins + (n - 50) * 86_400_000) for n in range(100)]
    produce(there.source, topic, days, settings={"batch.num.messages": "7"})
    there.wait_mirrored(topic)
    there.wait_written_down(topic)
    source = read_topic(there.source, topic)
    copied = read_topic(there.target, there.remote(topic))
    assert [r.same_as() for r in copied] == [r.same_as() for r in source[50:]]


def test_batches_larger_than_the_target_limit_are_split(there: MirroredFlow) -> None:
    topic = small_target(there, "split")
    for codec in ("none", "lz4", "zstd"):
        big = {"linger.ms": "100", "batch.size": "400000"}
        produce(there.source, topic, numbered(200, size=1_000), codec=codec, settings=big)
    assert len(there.wait_copied(topic)) == 600


def test_record_larger_than_the_target_limit_halts_its_partition_only(there: MirroredFlow) -> None:
    topic = small_target(there, "too-large", partitions=2)
    alone = {"linger.ms": "0", "batch.num.messages": "1"}
    records = [*numbered(7), *numbered(1, size=2 * MAX_MESSAGE_BYTES), *numbered(7, stem=b"after")]
    produce(there.source, topic, records, settings=alone)
    produce(there.source, topic, numbered(300, partition=1))
    event = there.wait_event("PartitionHalted", f"{topic}-0")
    assert "offset 7 " in event.detail["reason"]
    assert str(MAX_MESSAGE_BYTES) in event.detail["reason"]
    assert event.detail["upstream"] == 6

    def others_went_on() -> bool:
        return len(read_topic(there.target, there.remote(topic))) == 7 + 300

    wait_until(others_went_on, within=60, every=0.25)
    wait_until(lambda: there.progress(topic)[0].phase == "halted", every=0.25)
    assert there.progress(topic)[0].upstream == 6
    # Also what is written later, to the partition that goes on and to the one that does not.
    produce(there.source, topic, [*numbered(50, partition=1, stem=b"later"), *numbered(5, stem=b"later")])
    wait_until(lambda: there.progress(topic)[1].upstream == 349, within=60, every=0.25)
    assert len([r for r in read_topic(there.target, there.remote(topic)) if r.partition == 0]) == 7


def test_a_source_topic_created_again_halts_with_a_sentence(mirror: Mirror, there: MirroredFlow) -> None:
    topic = create_topic(there.source, unique_name("there-recreated"))
    produce(there.source, topic, numbered(50, stem=b"first life"))
    before = there.wait_copied(topic)
    there.wait_written_down(topic)
    topic_sync = psutil.Process(mirror.topic_sync.pid)
    topic_sync.suspend()  # the data plane must not depend on being told: it meets the new log first
    try:
        delete_topic(there.source, topic)
        create_topic(there.source, topic)
        # Longer than what was copied, so that our position lies inside the new log: it must not be taken for the old.
        produce(there.source, topic, numbered(200, stem=b"second life"))
        event = there.wait_event("PartitionHalted", f"{topic}-0")
    finally:
        topic_sync.resume()
    assert "source topic was deleted and created again" in event.detail["reason"]
    assert event.detail["upstream"] == 49
    wait_until(lambda: there.progress(topic)[0].phase == "halted", every=0.25)
    there.wait_event("TopicRecreated", topic)
    assert read_topic(there.target, there.remote(topic)) == before


@pytest.mark.long
def test_a_target_topic_created_again_halts_with_a_sentence(there: MirroredFlow) -> None:
    topic = create_topic(there.source, unique_name("there-lost"))
    produce(there.source, topic, numbered(50))
    there.wait_copied(topic)
    there.wait_written_down(topic)
    delete_topic(there.target, there.remote(topic))
    event = there.wait_event("PartitionHalted", f"{topic}-0")  # topic-sync creates it again
    assert "target topic was deleted and created again" in event.detail["reason"]
    assert read_topic(there.target, there.remote(topic)) == []
