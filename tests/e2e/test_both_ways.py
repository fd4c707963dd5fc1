"""Everything at once in both directions: records, configs, heartbeats, groups that move to the other side and come back
(`mm2-behaviour.md` §7 no. 164)."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import ConfigResource

from lockstep_state.names import Flow
from tests.conftest import Pair
from tests.support.clusters import (
    Record,
    admin,
    commit_offset,
    committed_offset,
    create_topic,
    produce,
    read_topic,
    unique_name,
)
from tests.support.control import read_so_far
from tests.support.eventually import wait_until
from tests.support.processes import end, kill, show, spawn
from tests.support.services import two_cluster_file
from tests.support.topic_comparison import compare

pytestmark = pytest.mark.long
PARTITIONS = 2
WITHIN = 120.0
ROUNDS_S = 6.0
"""Several rounds of checkpoints and of group sync."""
IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


class Sides:
    """Two clusters that mirror each other, under aliases and names of one test."""

    def __init__(self, folder: Path, pair: Pair, *lines: str, renames: bool = False) -> None:
        """With `renames`, a topic of A gets `eu.` before its name on B, and loses it on the way back."""
        self.mark = unique_name("w").replace("-", "")
        self.a, self.b = pair.a.bootstrap, pair.b.bootstrap
        self.there, self.back = Flow(f"a{self.mark}", f"b{self.mark}"), Flow(f"b{self.mark}", f"a{self.mark}")
        self.group = f"{self.mark}-billing"
        renaming = (
            f"{self.there}.lockstep.rename = ({self.mark}-.*) -> eu.$1",
            f"{self.back}.lockstep.rename = eu\\\\.({self.mark}-.*) -> $1",
        )
        self.file = two_cluster_file(
            folder,
            (self.there.source, self.a),
            (self.there.target, self.b),
            f"{self.there}.enabled = true",
            f"{self.back}.enabled = true",
            f"topics = (eu\\\\.)?{self.mark}-.*",
            f"groups = {self.mark}-.*",
            "tasks.max = 1",
            "checkpoints.topic.replication.factor = 1",
            "offset-syncs.topic.replication.factor = 1",
            "emit.checkpoints.interval.seconds = 1",
            "sync.group.offsets.enabled = true",
            "sync.group.offsets.interval.seconds = 1",
            *lines,
            *(renaming if renames else ()),
        )

    @contextmanager
    def running(self) -> Iterator[None]:
        log = self.file.with_suffix(".log")
        process = spawn([sys.executable, "-m", "lockstep_cli", "run", str(self.file)], output=log)
        try:
            yield
        except BaseException:
            show(log, lines=60)
            raise
        else:
            assert end(process) == 0, log.read_text()
        finally:
            kill(process)

    def committed(self, bootstrap: str, topic: str) -> list[int | None]:
        return [committed_offset(bootstrap, self.group, topic, partition) for partition in range(PARTITIONS)]


def numbered(stem: str, first: int, count: int) -> list[Record]:
    return [Record(value=f"{stem}{n}".encode(), partition=n % PARTITIONS) for n in range(first, first + count)]


def consume(bootstrap: str, group: str, topic: str, count: int) -> list[str]:
    """Read so many records as a member of the group, from where it stands, commit and leave."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": "false", "auto.offset.reset": "error"}
    )
    consumer.subscribe([topic])
    found: list[str] = []

    def enough() -> bool:
        message = consumer.poll(0.5)
        if message is not None:
            assert message.error() is None, message.error()
            found.append((message.value() or b"").decode())
            consumer.commit(message=message, asynchronous=False)
        return len(found) == count

    try:
        wait_until(enough, within=WITHIN, every=0.0, what=f"{count} records of {topic}")
    finally:
        consumer.close()
    return found


def values(records: Sequence[Record]) -> list[str]:
    return [(record.value or b"").decode() for record in records]


def config_of(bootstrap: str, topic: str, key: str) -> str | None:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    client = admin(bootstrap)  # kept until it has answered
    configs = client.describe_configs([resource])[resource].result(10)
    return configs[key].value if key in configs else None


def test_mm2_164_a_group_moves_to_the_other_side_and_comes_back(tmp_path: Path, pair: Pair) -> None:
    """50,000 records behind, it reads none of them twice on the way there or back, and none is left out."""
    sides = Sides(tmp_path, pair)
    orders, pay, late = (f"{sides.mark}-{name}" for name in ("orders", "pay", "late"))
    copy = f"{sides.there.source}.{orders}"
    create_topic(sides.a, orders, partitions=PARTITIONS, configs={"retention.ms": "777000000"})
    create_topic(sides.b, pay, partitions=PARTITIONS)
    produce(sides.a, orders, numbered("a", 0, 60_000))
    produce(sides.b, pay, numbered("b", 0, 1_000))
    for partition in range(PARTITIONS):
        commit_offset(sides.a, sides.group, orders, partition, 5_000)
    with sides.running():
        wait_until(lambda: sides.committed(sides.b, copy) == [5_000, 5_000], within=WITHIN, what="the group is moved")
        wait_until(lambda: _count(sides.b, copy) == 60_000, within=WITHIN, what="all is copied")
        assert compare(read_topic(sides.a, orders), read_topic(sides.b, copy)).equal
        assert config_of(sides.b, copy, "retention.ms") == "777000000"
        read = consume(sides.b, sides.group, copy, 400)
        at = [int(place or 0) for place in sides.committed(sides.b, copy)]
        wait_until(lambda: sides.committed(sides.a, orders) == at, within=WITHIN, what="the group comes back")
        read += consume(sides.a, sides.group, orders, 400)
        at = [int(place or 0) for place in sides.committed(sides.a, orders)]
        for partition in range(PARTITIONS):
            wanted = [f"a{n}" for n in range(partition, 60_000, PARTITIONS)][5_000 : at[partition]]
            assert [one for one in read if int(one[1:]) % PARTITIONS == partition] == wanted, "each once, in order"
        create_topic(sides.b, late, partitions=PARTITIONS)
        produce(sides.b, late, numbered("l", 0, 10))
        remote = f"{sides.back.source}.{late}"
        wait_until(lambda: _count(sides.a, remote) == 10, within=WITHIN, what="a new topic follows")
        assert len(read_topic(sides.a, f"{sides.back.source}.{pay}")) == 1_000
        for bootstrap, name in ((sides.a, sides.back.source), (sides.b, sides.there.source)):
            assert read_topic(bootstrap, f"{name}.checkpoints.internal")
            assert read_topic(bootstrap, f"{name}.heartbeats")


@pytest.mark.parametrize("renames", [False, True], ids=["same names", "renamed"])
def test_a_group_moves_there_and_back_where_both_sides_write_one_topic(
    tmp_path: Path, pair: Pair, renames: bool
) -> None:
    """It misses nothing, and reads again no more than its row says."""
    sides = Sides(tmp_path, pair, IDENTITY, renames=renames)
    orders = f"{sides.mark}-orders"
    names = {sides.a: orders, sides.b: f"eu.{orders}" if renames else orders}
    for bootstrap, topic in names.items():
        create_topic(bootstrap, topic, partitions=PARTITIONS)
    produce(sides.a, orders, numbered("a", 0, 300))
    for partition in range(PARTITIONS):
        commit_offset(sides.a, sides.group, orders, partition, 0)
    read: list[str] = []
    total = 300
    with sides.running():
        for turn, (here, there) in enumerate(((sides.a, sides.b), (sides.b, sides.a)) * 2, start=1):
            read += consume(here, sides.group, names[here], 100)
            produce(here, names[here], numbered(f"h{turn}-", 0, 60))
            produce(there, names[there], numbered(f"t{turn}-", 0, 60))
            total += 120
            wait_until(partial(_both_have, names, total), within=WITHIN, what="both have everything")
            wait_until(
                partial(_is_placed, sides, there, names[there]), within=WITHIN, what="the group has a place there"
            )
            time.sleep(ROUNDS_S)
        unread = total - sum(place or 0 for place in sides.committed(sides.a, orders))
        read += consume(sides.a, sides.group, orders, unread)
        everything = set(values(read_topic(sides.a, orders)))
    assert set(read) == everything, "nothing is missed"
    assert len(read) - len(everything) < total / 2, "most of it is read once"


def _both_have(topics: Mapping[str, str], records: int) -> bool:
    return all(_count(bootstrap, topic) == records for bootstrap, topic in topics.items())


def _is_placed(sides: Sides, bootstrap: str, topic: str) -> bool:
    return None not in sides.committed(bootstrap, topic)


def _count(bootstrap: str, topic: str) -> int:
    return len(read_so_far(bootstrap, topic))
