"""`lockstep.legacy.partitioning=key`: each record goes where Kafka's own producer would put it, once for readers of
committed records, whatever is killed. With MirrorMaker 1 itself: `tests/contract/test_live_mm1.py`."""

import uuid
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import pytest

from lockstep_state.codecs.murmur2 import partition_for
from lockstep_state.names import Flow, quarantine_topic
from tests.conftest import Pair
from tests.support.clusters import (
    Record,
    add_partitions,
    committed_offset,
    create_topic,
    end_offsets,
    produce,
    produce_transaction,
    read_topic,
    set_configs,
)
from tests.support.eventually import wait_until
from tests.support.mirror import MirroredFlow, ports_of
from tests.support.mm1 import Legacy, LegacyFolder

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

FLOW = Flow("source", "target")
COMMITTED = {"isolation.level": "read_committed"}
KEYS = 40
until = partial(wait_until, within=180.0, every=0.5)


class Place:
    """A topic under one name on both clusters, with so many partitions on each, and the group."""

    def __init__(self, folder: Path, pair: Pair, source: int, target: int) -> None:
        self._folder = folder
        self.a, self.b = pair.a.bootstrap, pair.b.bootstrap
        self.topic = f"keyed-{uuid.uuid4().hex[:6]}"
        self.group = f"g-{self.topic}"
        self.partitions, self.places = source, target
        create_topic(self.a, self.topic, partitions=source)
        create_topic(self.b, self.topic, partitions=target)
        self.flow = MirroredFlow(FLOW, self.a, self.b, self.group)
        self._written = 0

    def lockstep(self, partitioning: str, *options: str, **consumer: str) -> Legacy:
        once = ("--include", self.topic, "--num.streams=2", "--offset.commit.interval.ms=500", *options)
        chosen = {"lockstep.legacy.partitioning": partitioning}
        reader = COMMITTED | {key.replace("_", "."): value for key, value in consumer.items()}
        files = LegacyFolder.write(self._folder, self.a, self.b, self.group, *once, consumer=reader, producer=chosen)
        return Legacy(files)

    def records(self, count: int) -> list[Record]:
        """One in five has no key; each has its number as its value, and a header."""
        numbers = range(self._written, self._written + count)
        self._written += count
        return [
            Record(
                key=None if n % 5 == 4 else b"key-%d" % (n * 7 % KEYS),
                value=None if n % 97 == 96 else b"%d" % n,
                headers=(("number", b"%d" % n), ("none", None)),
                timestamp_ms=1_700_000_000_000 + n * 10,
                partition=n // 10 % self.partitions,
            )
            for n in numbers
        ]

    def write(self, count: int, codec: str = "none") -> None:
        produce(self.a, self.topic, self.records(count), codec=codec, settings={"batch.num.messages": "100"})

    def there(self) -> list[Record]:
        return read_topic(self.b, self.topic)

    def wait_copied(self) -> None:
        wanted = len(read_topic(self.a, self.topic))
        until(lambda: len(self.there()) >= wanted, what="everything is copied")

    def wait_committed(self) -> None:
        """The group stands behind all that there is."""
        wanted = {r.partition: r.offset or 0 for r in read_topic(self.a, self.topic)}
        ends = end_offsets(self.a, self.topic)

        def is_at_the_end() -> bool:
            committed = {p: committed_offset(self.a, self.group, self.topic, p or 0) or 0 for p in wanted}
            return all(last < committed[p] <= ends[p or 0] for p, last in wanted.items())

        until(is_at_the_end, what="the group stands at the end")

    def check_each_once_and_in_order(self) -> list[Record]:
        """Of each partition of the source, what lies in one partition of the target keeps its order."""
        source, there = read_topic(self.a, self.topic), self.there()
        times = Counter(r.same_as() for r in there)
        assert times == Counter(r.same_as() for r in source)
        at = {number(r): (r.partition, r.offset or 0) for r in source}
        for place in range(self.places):
            for origin in range(self.partitions):
                held = [at[number(r)] for r in there if r.partition == place and at[number(r)][0] == origin]
                assert [offset for _, offset in held] == sorted(offset for _, offset in held)
        return there

    def check_places(self, there: list[Record]) -> None:
        for record in there:
            if record.key is not None:
                assert record.partition == partition_for(record.key, self.places)


def number(record: Record) -> int:
    return int(record.headers[0][1] or b"")


def slots(lockstep: Legacy) -> list[psutil.Process]:
    """The workers that copy: Python processes below the JVM that hold connections."""
    below = psutil.Process(lockstep.pid).children(recursive=True)
    jvms = [process for process in below if process.name() == "java"]
    ours = [worker for jvm in jvms for worker in jvm.children(recursive=True)]
    return [worker for worker in ours if len(ports_of(worker)) > 1]


def test_six_partitions_go_by_key_into_four_whatever_is_killed(tmp_path: Path, pair: Pair) -> None:
    place = Place(tmp_path, pair, 6, 4)
    place.write(3_000)
    produce_transaction(place.a, place.topic, place.records(200), commit=False)
    produce_transaction(place.a, place.topic, place.records(300), codec="lz4")
    with place.lockstep("key") as lockstep:
        place.wait_copied()
        place.write(4_000, codec="zstd")
        until(lambda: len(place.there()) > 4_000, what="it goes on")
        for worker in until(lambda: slots(lockstep), what="somebody copies"):
            worker.kill()
        place.write(2_000)
        place.wait_copied()
        place.write(5_000)
        until(lambda: len(place.there()) > 9_500, what="it goes on after the slots were killed")
        lockstep.kill()
    with place.lockstep("key") as lockstep:
        place.write(500, codec="gzip")
        place.wait_copied()
        place.wait_committed()
        lockstep.stop()
    there = place.check_each_once_and_in_order()
    place.check_places(there)
    without = Counter(record.partition for record in there if record.key is None)
    assert set(without) == {0, 1, 2, 3}
    assert len(end_offsets(place.b, place.topic)) == 4
    rows = place.flow.progress(place.topic)
    assert sorted(rows) == [0, 1, 2, 3, 4, 5]
    assert all(row.transactional for row in rows.values())
    assert not place.flow.events("PartitionHalted")


def test_preserve_and_key_go_on_from_each_other(tmp_path: Path, pair: Pair) -> None:
    place = Place(tmp_path, pair, 3, 3)
    for turn, partitioning in enumerate(("preserve", "key", "preserve", "key")):
        with place.lockstep(partitioning) as lockstep:
            place.write(700)
            place.wait_copied()
            if turn == 3:
                place.wait_committed()
            if turn % 2:
                lockstep.stop()
            else:
                lockstep.kill()
        place.check_each_once_and_in_order()


def test_added_partitions_count_from_then_on_and_a_pause_keeps_its_place(tmp_path: Path, pair: Pair) -> None:
    place = Place(tmp_path, pair, 3, 2)
    place.write(500)
    with place.lockstep("key") as lockstep:
        place.wait_copied()
        place.check_places(place.there())
        place.flow.ask("pause", f"topic:{place.topic}")
        before = place.there()
        add_partitions(place.b, place.topic, 5)
        place.places = 5
        place.write(500)
        until(lambda: (row := place.flow.mirrored(place.topic)) and row.target_partitions == 5, what="it is seen")
        assert place.there() == before
        place.flow.ask("resume", f"topic:{place.topic}")
        place.wait_copied()
        there = place.check_each_once_and_in_order()
        place.check_places([record for record in there if number(record) >= 500])
        add_partitions(place.b, place.topic, 6)
        place.places = 6

        def sixth() -> bool:
            place.write(50)
            return any(record.partition == 5 for record in place.there())

        until(sixth, what="the partition that was added while it copies gets records")
        place.wait_copied()
        lockstep.stop()
    place.check_each_once_and_in_order()


def test_refused_record_is_quarantined_without_doubles_or_ends_the_run(tmp_path: Path, pair: Pair) -> None:
    place = Place(tmp_path, pair, 2, 3)
    set_configs(place.a, place.topic, {"message.timestamp.after.max.ms": str(2**63 - 1)})
    set_configs(place.b, place.topic, {"message.timestamp.after.max.ms": "3600000"})
    late = Record(key=b"key-1", value=b"late", timestamp_ms=4_000_000_000_000, partition=0)
    place.write(300)
    produce(place.a, place.topic, [late])
    good = place.records(200)
    produce(place.a, place.topic, good)
    with place.lockstep("key") as lockstep:
        assert lockstep.wait(within=120) == 3
    said = lockstep.log.read_text()
    assert f"{place.topic}-0" in said
    with place.lockstep("key", "--abort.on.send.failure", "false") as lockstep:
        until(lambda: len(place.there()) >= 500, what="all but one are copied")
        place.wait_committed()
        lockstep.stop()
    assert set(Counter(number(r) for r in place.there()).values()) == {1}
    place.check_places(place.there())
    [kept] = read_topic(place.b, quarantine_topic(FLOW, place.group))
    assert kept.value == b"late"


def test_what_a_statement_makes_goes_by_its_new_key_after_kills(tmp_path: Path, pair: Pair) -> None:
    place = Place(tmp_path, pair, 3, 2)
    kept = "CAST(CAST(value AS STRING) AS BIGINT) % 2 = 0"  # tombstones pass
    statement = f"SELECT concat('new-', CAST(key AS STRING)) AS key FROM records WHERE {kept}"  # noqa: S608  # Spark's
    lines = {"lockstep_transform_t_topics": place.topic, "lockstep_transform_t_sql": statement}
    place.write(1_000)
    with place.lockstep("key", **lines) as lockstep:
        for _ in range(2):
            until(lambda: place.there(), what="records are copied")
            place.write(500)
            until(lambda: slots(lockstep), what="a slot copies")[0].kill()

        def is_whole() -> bool:
            left = [r for r in read_topic(place.a, place.topic) if r.value is None or int(r.value) % 2 == 0]
            made = [replace(r, key=None if r.key is None else b"new-" + r.key) for r in left]
            return Counter(r.same_as() for r in made) == Counter(r.same_as() for r in place.there())

        until(is_whole, what="each record is there once")
        place.check_places(place.there())
