"""Compaction removes records on both clusters while whoever copies them is killed.

No partition ends in doubt. Nothing is doubled, and of what compaction leaves nothing is lost."""

import os
import random
import threading
import time
from collections.abc import Iterator
from typing import Self

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.broker import two_brokers
from tests.support.clusters import create_topic, read_topic
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow

PARTITIONS, KEYS = 4, 40
RATE = 800.0
TOMBSTONE_EACH = 37
KILLS = 9
AWAY_S = 12.0
"""How long nobody copies at most: the source rolls its segments meanwhile, and cleans what the target has already."""
BACK_WITHIN = 150.0
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "8000",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "8000",
}


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    folder = tmp_path_factory.mktemp("compacted")
    # Brokers of their own, for their cleaners look twice a second.
    with (
        two_brokers() as (a, b),
        Mirror.one_flow(folder, "cmp", (a.bootstrap,) * 2, (b.bootstrap,) * 2, slots=1) as mirror,
    ):
        yield mirror


class Rewriting:
    """Writes all keys of each partition again and again; a value is a number, and no two are the same."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": "true", "linger.ms": "10"})
        self._topic = topic
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        assert self._producer.flush(60) == 0

    def _run(self) -> None:
        number = 0
        while not self._stopping.is_set():
            for _ in range(int(RATE / 20)):
                number += 1
                key = b"%d" % random.randrange(KEYS)
                value = None if number % TOMBSTONE_EACH == 0 else b"%d" % number
                headers_sent: dict[str, str | bytes | None] = {"n": b"%d" % number}
                self._producer.produce(self._topic, value, key, number % PARTITIONS, headers=headers_sent)
            self._producer.poll(0)
            time.sleep(0.05)


class Watching:
    """Reads a topic as it grows, so that it has seen each record before compaction takes it."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "watching", "enable.auto.commit": False})
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.seen: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            message = self._consumer.poll(0.2)
            if message is not None and message.error() is None:
                self.seen[message.partition() or 0].append(int(dict(message.headers() or ())["n"] or b"-1"))


def kill(mirror: Mirror, kind: str, dice: random.Random) -> None:
    if kind == "slot":
        mirror.copying_worker(within=BACK_WITHIN).kill()
        return
    if kind == "JVM":
        mirror.jvm().kill()
        mirror.data_plane.wait(60)
    else:
        mirror.kill_data_plane()
    time.sleep(dice.uniform(0.0, AWAY_S))
    mirror.data_plane.start()


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_compaction_leaves_no_partition_in_doubt(mirror: Mirror) -> None:
    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(1_000_000))
    dice, flow = random.Random(seed), mirror.flow
    topic = create_topic(flow.source, "cmp-table", partitions=PARTITIONS, configs=COMPACTED)
    flow.wait_mirrored(topic, partitions=PARTITIONS)
    order = [("slot", "driver", "JVM")[number % 3] for number in range(int(os.environ.get("KILLS") or KILLS))]
    with Watching(flow.target, flow.remote(topic)) as watching:
        with Rewriting(flow.source, topic):
            for kind in order:
                flow.wait_for_more(topic, 1000, within=BACK_WITHIN)
                time.sleep(dice.uniform(0.0, 3.0))
                kill(mirror, kind, dice)
                goes_on(flow, topic)
        wait_until(lambda: latest(flow.source, topic) == latest(flow.target, flow.remote(topic)), within=BACK_WITHIN)
        wait_until(lambda: all(watching.seen.values()))
    for partition, numbers in watching.seen.items():
        assert numbers == sorted(set(numbers)), f"SEED={seed}: partition {partition} has a record twice or out of order"
    assert flow.events("PartitionHalted", topic) == [], f"SEED={seed}"


def goes_on(flow: MirroredFlow, topic: str) -> None:
    """Returns once every partition copies on. Fails at once where one has halted."""
    before = {row.partition: row.upstream for row in flow.progress(topic).values()}

    def grown() -> bool:
        rows: dict[int, PartitionProgress] = flow.progress(topic)
        halted = {number: row.reason for number, row in rows.items() if row.phase == "halted"}
        assert not halted, halted
        return all(row.upstream > before[number] for number, row in rows.items())

    wait_until(grown, within=BACK_WITHIN, every=0.5, what=f"{topic} goes on")


def latest(bootstrap: str, topic: str) -> dict[tuple[int | None, bytes | None], bytes]:
    """What a table of it would hold: the last value of each key, deleted ones left out."""
    table = {(record.partition, record.key): record.value for record in read_topic(bootstrap, topic)}
    return {key: value for key, value in table.items() if value is not None}
