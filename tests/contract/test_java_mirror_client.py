"""MM2's own `MirrorClient` and `RemoteClusterUtils` read clusters on which Lockstep runs, and so does our client: both
say the same, and it is true (`mm2-behaviour.md` §3.8).

One scenario, one start of everything: A is mirrored to B by topic-sync, data plane, checkpoint and heartbeat. A has
been the target of a third cluster before, whose heartbeats lie there.
"""

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from lockstep_client import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    MirrorClient,
    MirrorClientError,
    ReplicationPolicy,
    checkpoint_topics,
    heartbeat_topics,
    replication_hops,
    translate_offsets,
    upstream_clusters,
)
from tests.support.broker import Broker
from tests.support.clusters import (
    Record,
    commit_offset,
    create_topic,
    end_offsets,
    produce,
    produce_transaction,
    read_topic,
)
from tests.support.eventually import wait_until
from tests.support.jvm import jvm
from tests.support.mirror import Mirror
from tests.support.services import ServiceProcess

T = TypeVar("T")

PARTITIONS = 2
OFFSET_LAG_MAX = 20
WITHIN = 120.0  # seconds; usual is 5, but several test runs may share the cores
WAIT = 30.0  # seconds for one question

Positions = dict[tuple[str, int], int]


@dataclass(frozen=True, slots=True)
class Mirrored:
    """What was set up, under names that no other test uses."""

    source: str
    target: str
    before: str
    """A cluster that was mirrored to A by somebody, one hop further away from B."""
    topic: str
    remote: str
    committed: dict[str, dict[int, int]]
    """Group to partition to its position on A."""
    a: str
    b: str

    @property
    def conf(self) -> dict[str, str]:
        return {"bootstrap.servers": self.b}

    @property
    def groups(self) -> re.Pattern[str]:
        return re.compile(f"(billing|audit)-{self.source}")

    def truth(self, group: str) -> Positions:
        """Where the group stands on B: after as many records of A as it had read there, and its markers are none."""
        records = read_topic(self.a, self.topic)
        return {
            (self.remote, partition): sum(r.partition == partition and (r.offset or 0) < at for r in records)
            for partition, at in self.committed[group].items()
        }


@pytest.fixture(scope="module")
def java() -> Iterator[Any]:
    with jvm() as gateway:
        yield gateway.jvm


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory: pytest.TempPathFactory, broker_a: Broker, broker_b: Broker) -> Iterator[Mirrored]:
    mark = uuid.uuid4().hex[:6]
    source, target, before = f"s{mark}", f"t{mark}", f"u{mark}"
    topic = f"{mark}-orders"
    mirrored = Mirrored(
        source,
        target,
        before,
        topic,
        f"{source}.{topic}",
        {f"billing-{source}": {0: 402, 1: 390}, f"audit-{source}": {0: 387, 1: 395}},
        broker_a.bootstrap,
        broker_b.bootstrap,
    )
    _fill(mirrored)
    with ExitStack() as stack:
        mirror = stack.enter_context(_mirror(tmp_path_factory.mktemp("java"), mark, broker_a, broker_b))
        stack.enter_context(ServiceProcess("lockstep_heartbeat", mirror.config))
        stack.enter_context(ServiceProcess("lockstep_checkpoint", mirror.config, str(mirror.flow)))
        mirror.flow.wait_copied(topic)
        wait_until(lambda: _all_there(mirrored), within=WITHIN, every=0.25, what="checkpoints and heartbeats are there")
        yield mirrored


def _fill(there: Mirrored) -> None:
    """400 records in each partition of A, with the markers of two transactions in between, and groups that have read
    nearly all: of those far behind MM2's readers know less and less."""
    create_topic(there.a, there.topic, partitions=PARTITIONS)
    create_topic(there.a, f"{there.before}.heartbeats")
    produce_transaction(there.a, there.topic, _records(0, 200))
    produce_transaction(there.a, there.topic, _records(200, 300))
    produce(there.a, there.topic, _records(300, 400))
    for group, positions in there.committed.items():
        for partition, offset in positions.items():
            commit_offset(there.a, group, there.topic, partition, offset)


def _records(first: int, last: int) -> list[Record]:
    return [Record(value=b"%d" % n, partition=p) for n in range(first, last) for p in range(PARTITIONS)]


def _mirror(folder: Path, mark: str, a: Broker, b: Broker) -> Mirror:
    return Mirror.one_flow(
        folder,
        mark,
        (a.bootstrap, a.bootstrap),
        (b.bootstrap, b.bootstrap),
        f"groups = .*-s{mark}",
        "checkpoints.topic.replication.factor = 1",
        "emit.checkpoints.interval.seconds = 1",
        "refresh.groups.interval.seconds = 1",
        f"offset.lag.max = {OFFSET_LAG_MAX}",
    )


def _all_there(expected: Mirrored) -> bool:
    client = MirrorClient(expected.conf, timeout=WAIT)
    assert client.replication_hops(expected.source) == 1
    assert client.replication_hops(expected.before) == 2
    offsets = client.remote_consumer_offsets(expected.source, expected.groups)
    for group in expected.committed:
        at = {where: int(one.downstream) for where, one in offsets.for_group(group).items()}
        assert_near(at, expected.truth(group))
    return True


def assert_near(positions: Positions, truth: Positions) -> None:
    """Never too far, and at most `offset.lag.max` records behind."""
    assert positions.keys() == truth.keys()
    for where, true in truth.items():
        assert true - OFFSET_LAG_MAX <= positions[where] <= true, (where, positions[where], true)


def the_same(ours: Callable[[], T], theirs: Callable[[], T]) -> T:
    """Both answers once they agree: the clusters are shared with other tests, so topics may come in between."""

    def equal() -> tuple[T]:
        mine, java = ours(), theirs()
        assert mine == java
        return (mine,)

    return wait_until(equal, within=WAIT)[0]


POLICIES: dict[str, tuple[Callable[[str], ReplicationPolicy], dict[str, str]]] = {
    "default": (lambda source: DefaultReplicationPolicy(), {}),
    "separator": (lambda source: DefaultReplicationPolicy("-"), {"replication.policy.separator": "-"}),
    "internal dots": (
        lambda source: DefaultReplicationPolicy("-", internal_separator=False),
        {"replication.policy.separator": "-", "replication.policy.internal.topic.separator.enabled": "false"},
    ),
    "identity": (
        IdentityReplicationPolicy,
        {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"},
    ),
}


def _agree_on(ours: MirrorClient, theirs: Any, alias: str) -> None:
    the_same(lambda: ours.remote_topics(alias), lambda: frozenset(theirs.remoteTopics(alias)))
    the_same(lambda: ours.replication_hops(alias) or -1, lambda: theirs.replicationHops(alias))


@pytest.mark.parametrize("name", POLICIES)
def test_java_and_our_client_have_the_same_topics_and_clusters(java: Any, mirrored: Mirrored, name: str) -> None:
    policy, properties = POLICIES[name]
    ours = MirrorClient(mirrored.conf, policy(mirrored.source))
    theirs = java.org.apache.kafka.connect.mirror.MirrorClient(
        {**mirrored.conf, **properties, "source.cluster.alias": mirrored.source}
    )
    try:
        the_same(ours.heartbeat_topics, lambda: frozenset(theirs.heartbeatTopics()))
        the_same(ours.checkpoint_topics, lambda: frozenset(theirs.checkpointTopics()))
        the_same(ours.upstream_clusters, lambda: frozenset(theirs.upstreamClusters()))
        the_same(ours.remote_topics, lambda: frozenset(theirs.remoteTopics()))
        for alias in (mirrored.source, mirrored.target, mirrored.before, "nobody"):
            _agree_on(ours, theirs, alias)
    finally:
        theirs.close()


def test_clusters_and_topics_by_java_match_ours(java: Any, mirrored: Mirrored) -> None:
    utils, conf = java.org.apache.kafka.connect.mirror.RemoteClusterUtils, mirrored.conf
    assert replication_hops(conf, mirrored.source) == utils.replicationHops(conf, mirrored.source) == 1
    assert replication_hops(conf, mirrored.before) == utils.replicationHops(conf, mirrored.before) == 2
    assert (replication_hops(conf, "nobody"), utils.replicationHops(conf, "nobody")) == (None, -1)
    upstream = the_same(lambda: upstream_clusters(conf), lambda: frozenset(utils.upstreamClusters(conf)))
    assert {mirrored.source, mirrored.before} <= upstream
    assert mirrored.target not in upstream
    beats = the_same(lambda: heartbeat_topics(conf), lambda: frozenset(utils.heartbeatTopics(conf)))
    ours = {f"{mirrored.source}.heartbeats", f"{mirrored.source}.{mirrored.before}.heartbeats"}
    assert {"heartbeats", *ours} <= beats
    checkpoints = the_same(lambda: checkpoint_topics(conf), lambda: frozenset(utils.checkpointTopics(conf)))
    assert f"{mirrored.source}.checkpoints.internal" in checkpoints
    remote = MirrorClient(conf).remote_topics(mirrored.source)
    assert {mirrored.remote, *ours} <= remote
    assert all(one == mirrored.remote or one.endswith(".heartbeats") for one in remote)


def positions(java_map: Any) -> Positions:
    return {(at.topic(), at.partition()): offset.offset() for at, offset in java_map.items()}


def test_java_and_our_client_translate_a_group_to_the_true_position(java: Any, mirrored: Mirrored) -> None:
    utils = java.org.apache.kafka.connect.mirror.RemoteClusterUtils
    wait = java.java.time.Duration.ofMillis(int(WAIT * 1000))
    ends = end_offsets(mirrored.b, mirrored.remote)
    for group in mirrored.committed:

        def ours(group: str = group) -> Positions:
            at = translate_offsets(mirrored.conf, mirrored.source, group)
            return {(one.topic, one.partition): one.offset for one in at}

        def theirs(group: str = group) -> Positions:
            return positions(utils.translateOffsets(mirrored.conf, mirrored.source, group, wait))

        translated = the_same(ours, theirs)
        assert_near(translated, mirrored.truth(group))
        assert all(at <= ends[partition] for (_, partition), at in translated.items())


def test_without_time_java_answers_that_there_is_nothing_and_ours_raises(java: Any, mirrored: Mirrored) -> None:
    """§8 no. 36. The one deliberate difference; `tests/integration/test_client.py` has ours in the middle of a read."""
    [group, *_] = mirrored.committed
    utils, no_time = java.org.apache.kafka.connect.mirror.RemoteClusterUtils, java.java.time.Duration.ofMillis(0)
    assert dict(utils.translateOffsets(mirrored.conf, mirrored.source, group, no_time)) == {}
    with pytest.raises(MirrorClientError):
        translate_offsets(mirrored.conf, mirrored.source, group, timeout=1e-6)


def test_java_and_our_client_keep_groups_of_a_pattern_apart(java: Any, mirrored: Mirrored) -> None:
    pattern = java.java.util.regex.Pattern.compile(mirrored.groups.pattern)
    wait = java.java.time.Duration.ofMillis(int(WAIT * 1000))
    client = java.org.apache.kafka.connect.mirror.MirrorClient(mirrored.conf)

    def ours() -> dict[str, Positions]:
        offsets = MirrorClient(mirrored.conf).remote_consumer_offsets(mirrored.source, mirrored.groups)
        return {g: {where: int(one.downstream) for where, one in offsets.for_group(g).items()} for g in offsets.groups}

    def theirs() -> dict[str, Positions]:
        offsets = client.remoteConsumerOffsets(pattern, mirrored.source, wait)
        return {group: positions(at) for group, at in offsets.items()}

    try:
        assert the_same(ours, theirs).keys() == mirrored.committed.keys()
        assert dict(client.remoteConsumerOffsets("nobody", mirrored.source, wait)) == {}
    finally:
        client.close()
    assert translate_offsets(mirrored.conf, mirrored.source, "nobody") == []
