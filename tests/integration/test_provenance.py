"""Two clusters that feed each other under the same topic names: each record arrives once and goes no further."""

from functools import cache
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import ConfigResource

from lockstep_state.rows.state_rows import Origin
from tests.faults.numbered import Writer, read_numbers
from tests.faults.origins import counts, first_of, same_everywhere
from tests.support.clusters import Record, admin, create_topic, produce, read_topic, set_configs
from tests.support.control import read_so_far
from tests.support.eventually import wait_until
from tests.support.mirror import MirroredFlow

PARTITIONS = 2
RATE = 300
MOVED = 250
PRODUCERS = 5

client = cache(admin)

SameNames = tuple[MirroredFlow, MirroredFlow]


def test_records_written_on_both_sides_are_on_both_sides_once(
    same_names: SameNames, topic_name: str, tmp_path: Path
) -> None:
    onward, backward = same_names
    topic = f"same-{topic_name}"
    create_topic(onward.source, topic, partitions=PARTITIONS)
    onward.wait_mirrored(topic, partitions=PARTITIONS)
    both = [onward.source, onward.target]
    writers = [
        Writer(at, topic, partitions=PARTITIONS, rate=RATE, log=tmp_path / f"{i}.log", first=first_of(i))
        for i, at in enumerate(both)
    ]
    with writers[0], writers[1]:
        wait_until(lambda: min(_written(both, topic)) > MOVED, within=90, every=0.25, what=f"{MOVED} records each")
    copies = same_everywhere(both, topic, within=60)
    # What came from the other side was looked at and passed over to the last record.
    for flow in same_names:
        flow.wait_written_down(topic)
    assert sum(len(p) for p in (read_topic(onward.source, topic), read_topic(onward.target, topic))) == 2 * sum(
        count.records for count in copies.values()
    )
    (own,) = {(o.source, o.target) for o in onward.rows(Origin)}
    assert own == (onward.flow.source, onward.flow.target)
    assert not onward.events("PartitionHalted", topic)
    assert not backward.events("PartitionHalted", topic)


def test_mm2_169_183_without_offset_syncs_there_is_no_topic_for_them(same_names: SameNames, topic_name: str) -> None:
    onward, backward = same_names
    topic = f"same-{topic_name}"
    create_topic(backward.source, topic)
    produce(backward.source, topic, [Record(value=b"%d" % n) for n in range(50)])
    wait_until(lambda: len(read_so_far(backward.target, topic)) == 50, within=90, what="the copy")
    backward.wait_written_down(topic)
    there_are = {*client(onward.source).list_topics(timeout=30).topics, *client(onward.target).list_topics().topics}
    assert f"mm2-offset-syncs.{backward.flow.target}.internal" not in there_are
    assert f"mm2-offset-syncs.{onward.flow.target}.internal" in there_are, "the other flow's, so that names are right"


def _written(both: list[str], topic: str) -> list[int]:
    """How many records each side has of its own."""
    return [count.records for count in counts([read_numbers(at, topic) for at in both]).values()]


@pytest.mark.long
def test_short_lived_producers_are_distinguished_from_the_mirror(same_names: SameNames, topic_name: str) -> None:
    """Each brings a producer id that nobody has seen before."""
    onward, _ = same_names
    topic = f"same-{topic_name}"
    create_topic(onward.source, topic)
    onward.wait_mirrored(topic)
    for number in range(PRODUCERS):
        at = onward.target if number % 2 else onward.source
        producer = Producer({"bootstrap.servers": at, "enable.idempotence": "true", "linger.ms": "0"})
        producer.produce(topic, b"%d" % number)
        assert producer.flush(30) == 0
    wanted = sorted(b"%d" % number for number in range(PRODUCERS))

    def there() -> bool:
        copies = [sorted(r.value or b"" for r in read_topic(at, topic)) for at in (onward.source, onward.target)]
        assert all(len(each) <= len(wanted) for each in copies)
        return copies == [wanted, wanted]

    wait_until(there, within=60, every=0.25, what="each record on both sides")
    for flow in same_names:
        flow.wait_written_down(topic)
    assert there()


def test_configs_follow_the_cluster_that_is_named_first(same_names: SameNames, topic_name: str) -> None:
    """Both flows look every second: each would undo what the other does."""
    onward, backward = same_names
    topic = f"same-{topic_name}"
    create_topic(onward.target, topic, configs={"delete.retention.ms": "1111111"})
    backward.wait_mirrored(topic)
    assert _retention(onward.source, topic) == "1111111", "a topic that is created takes the configs along"
    for at, value in ((onward.source, "2222222"), (onward.target, "3333333")):
        set_configs(at, topic, {"delete.retention.ms": value})
    wait_until(lambda: _retention(onward.target, topic) == "2222222", within=60, every=0.25, what="the first counts")
    onward.wait_event("ConfigAltered", topic)
    assert _retention(onward.source, topic) == "2222222"
    assert not backward.events("ConfigAltered", topic)


def _retention(bootstrap: str, topic: str) -> str:
    (described,) = client(bootstrap).describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]).values()
    return str(described.result(30)["delete.retention.ms"].value)
