"""A running MirrorMaker 2 and a running Lockstep on what the other writes (`mm2-behaviour.md` §1, §3, §3.8).

MM2 mirrors A to B and our checkpoint service translates groups by the offset syncs that it writes; our client reads
what it wrote. And the reverse: our data plane mirrors, and MM2's checkpoint connector works on our offset syncs. Each
time the records are looked at: what the group reads next on the target is what it would have read next on the source,
or a record before that, never one behind it.
"""

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from lockstep_client import (
    MirrorClient,
    checkpoint_topics,
    heartbeat_topics,
    remote_topics,
    replication_hops,
    translate_offsets,
    upstream_clusters,
)
from lockstep_state.codecs.mm2_codec import Checkpoint, decode_checkpoint, decode_heartbeat, decode_offset_sync
from tests.support.broker import Broker
from tests.support.clusters import (
    Record,
    commit_offset,
    committed_offset,
    create_topic,
    end_offsets,
    produce,
    produce_transaction,
    read_topic,
)
from tests.support.control import read_so_far
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror
from tests.support.mm2 import ConnectWorker, MirrorMaker
from tests.support.services import ServiceProcess, two_cluster_file
from tests.support.traffic import Traffic

pytestmark = pytest.mark.long

PARTITIONS = 2
OFFSET_LAG_MAX = 20
WITHIN = 120.0  # seconds; usual is 15 for MM2's start and 2 afterwards, but the cores may be shared

until = partial(wait_until, within=WITHIN, every=0.25)


@dataclass(frozen=True, slots=True)
class Copy:
    """A topic of the source and its copy, of records that are all different, as both stand now."""

    source: Sequence[Record]
    target: Sequence[Record]

    @classmethod
    def read(cls, source: tuple[str, str], target: tuple[str, str]) -> "Copy":
        """Each as (bootstrap, topic)."""
        return cls(read_topic(*source, isolation="read_uncommitted"), read_topic(*target))

    def behind(self, partition: int, upstream: int, downstream: int) -> int:
        """How many records a group reads again that stood at `upstream` and goes on at `downstream`; less than 0 is how
        many it misses."""
        read = sum(r.partition == partition and (r.offset or 0) < upstream for r in self.source)
        passed = sum(r.partition == partition and (r.offset or 0) < downstream for r in self.target)
        copied = [r.value for r in self.target if r.partition == partition]
        written = [r.value for r in self.source if r.partition == partition]
        assert copied == written[: len(copied)], "the copy itself is right"
        return read - passed


def checkpoints(bootstrap: str, topic: str) -> list[Checkpoint]:
    """Every checkpoint that was ever written there, oldest first."""
    return [decode_checkpoint(r.key, r.value) for r in read_so_far(bootstrap, topic)]


def newest(written: Sequence[Checkpoint]) -> Mapping[tuple[str, int], Checkpoint]:
    """The last of each group and partition."""
    return {(one.group, one.partition): one for one in written}


def fill(bootstrap: str, topic: str) -> None:
    """400 records in each partition, with the markers of transactions in between: places differ on both sides. Piece by
    piece: of what MM2 finds all at once it writes few syncs, and perhaps none for the beginning."""
    for first in range(0, 200, 10):
        produce(bootstrap, topic, _records(first, first + 10))
    produce_transaction(bootstrap, topic, _records(200, 300))
    produce_transaction(bootstrap, topic, _records(300, 310))
    for first in range(310, 400, 10):
        produce(bootstrap, topic, _records(first, first + 10))


def _records(first: int, last: int) -> list[Record]:
    return [Record(value=b"%d-%d" % (p, n), partition=p) for n in range(first, last) for p in range(PARTITIONS)]


def _has_records(bootstrap: str, topic: str) -> bool:
    return len(read_so_far(bootstrap, topic)) >= PARTITIONS


# -- MM2 mirrors -------------------------------------------------------------------------------------------------------

GROUPS = {"near": (401, 389), "half": (215, 207), "new": (0, 0)}
"""By group: where it stands in each partition of `orders`."""


@dataclass(frozen=True, slots=True)
class MirroredByMM2:
    """A->B by MM2 without its checkpoints, for which our service writes them; B->A by MM2 alone."""

    a: str
    b: str
    checkpoint: ServiceProcess
    file: Path

    @property
    def orders(self) -> Copy:
        return Copy.read((self.a, "orders"), (self.b, "A.orders"))

    @property
    def written(self) -> list[Checkpoint]:
        return checkpoints(self.b, "A.checkpoints.internal")


LINES = (
    "A->B.enabled = true",
    "A->B.topics = orders",
    "groups = near|half|new|reader|returning",
    "checkpoints.topic.replication.factor = 1",
    "offset-syncs.topic.replication.factor = 1",
    f"offset.lag.max = {OFFSET_LAG_MAX}",
    *(f"{what}.interval.seconds = 1" for what in ("emit.checkpoints", "refresh.groups", "refresh.topics")),
    "sync.group.offsets.enabled = true",
    "sync.group.offsets.interval.seconds = 1",
)
MM2_ALONE = (
    "A->B.emit.checkpoints.enabled = false",
    "B->A.enabled = true",
    "B->A.topics = returns",
    "status.storage.replication.factor = 1",
    "config.storage.replication.factor = 1",
)


@pytest.fixture(scope="module")
def by_mm2(tmp_path_factory: pytest.TempPathFactory, brokers: tuple[Broker, Broker]) -> Iterator[MirroredByMM2]:
    a, b = (broker.bootstrap for broker in brokers)
    create_topic(a, "orders", partitions=PARTITIONS)
    create_topic(b, "returns", partitions=PARTITIONS)
    mm2s, ours = tmp_path_factory.mktemp("mm2"), tmp_path_factory.mktemp("ours")
    theirs = two_cluster_file(mm2s, ("A", a), ("B", b), *LINES, *MM2_ALONE)
    file = two_cluster_file(ours, ("A", a), ("B", b), *LINES)
    with ExitStack() as stack:
        stack.enter_context(MirrorMaker(theirs))
        for bootstrap, topic, remote in ((a, "orders", (b, "A.orders")), (b, "returns", (a, "B.returns"))):
            produce(bootstrap, topic, [Record(value=b"first", partition=number) for number in range(PARTITIONS)])
            until(partial(_has_records, *remote), what=f"MM2 copies {topic}")
            fill(bootstrap, topic)
        for number in range(PARTITIONS):
            commit_offset(b, "returning", "returns", number, 380)
            for group, places in GROUPS.items():
                commit_offset(a, group, "orders", number, places[number])
        service = stack.enter_context(ServiceProcess("lockstep_checkpoint", file, "A->B"))
        mirrored = MirroredByMM2(a, b, service, file)
        everywhere = {(group, number) for group in GROUPS for number in range(PARTITIONS)}
        until(lambda: newest(mirrored.written).keys() >= everywhere, what="our checkpoints")
        yield mirrored


def test_checkpoints_of_ours_on_syncs_of_a_running_mm2_are_never_too_far(by_mm2: MirroredByMM2) -> None:
    written, copy = by_mm2.written, by_mm2.orders
    syncs = [decode_offset_sync(r.key, r.value) for r in read_topic(by_mm2.a, "mm2-offset-syncs.B.internal")]
    known = {(one.topic, one.partition, one.upstream, one.downstream) for one in syncs}
    for one in written:
        assert copy.behind(one.partition, one.upstream, one.downstream) >= 0, one
        at_a_sync = ("orders", one.partition, one.upstream, one.downstream) in known
        behind_one = [up for (topic, p, up, down) in known if (topic, p, down + 1) == ("orders", *_place(one))]
        assert at_a_sync or any(up < one.upstream for up in behind_one), f"no sync of MM2's leads to {one}"
    at = newest(written)
    for number in range(PARTITIONS):
        assert at["new", number].downstream == 0
    assert {group for group, _ in at} == GROUPS.keys()
    assert by_mm2.checkpoint.status("A->B")["offset_syncs"]["malformed"] == 0


def _place(one: Checkpoint) -> tuple[int, int]:
    return one.partition, one.downstream


def test_mm2_167_a_group_that_moves_while_mm2_copies_is_never_led_too_far(by_mm2: MirroredByMM2) -> None:
    """And ends within `offset.lag.max` of where it stands, on the target's own group as well."""
    with Traffic(by_mm2.a, "orders", partitions=PARTITIONS, rate=1000) as traffic:
        for _ in range(5):
            traffic.wait_for_more(1000)
            for number, end in end_offsets(by_mm2.a, "orders").items():
                commit_offset(by_mm2.a, "reader", "orders", number, end - 100)
    ends = end_offsets(by_mm2.a, "orders")
    for number, end in ends.items():
        commit_offset(by_mm2.a, "reader", "orders", number, end)

    def there() -> bool:
        at, copy = newest(by_mm2.written), by_mm2.orders
        for number, end in ends.items():
            found = at["reader", number]
            assert found.upstream == end
            assert 0 <= copy.behind(number, end, found.downstream) <= OFFSET_LAG_MAX
            assert committed_offset(by_mm2.b, "reader", "A.orders", number) == found.downstream
        return True

    until(there)
    copy = by_mm2.orders
    moved = [one for one in by_mm2.written if one.group == "reader"]
    assert len({one.upstream for one in moved}) >= 3, "it was seen under way"
    for one in moved:
        assert copy.behind(one.partition, one.upstream, one.downstream) >= 0, one


def test_client_reads_what_mm2_wrote(by_mm2: MirroredByMM2) -> None:
    to_a, to_b = {"bootstrap.servers": by_mm2.a}, {"bootstrap.servers": by_mm2.b}
    until(lambda: {"heartbeats", "B.heartbeats"} <= heartbeat_topics(to_a))
    until(lambda: {"heartbeats", "A.heartbeats"} <= heartbeat_topics(to_b))
    assert (upstream_clusters(to_a), upstream_clusters(to_b)) == (frozenset("B"), frozenset("A"))
    assert (replication_hops(to_a, "B"), replication_hops(to_b, "A"), replication_hops(to_b, "C")) == (1, 1, None)
    assert remote_topics(to_b) == {"A.orders", "A.heartbeats"}
    assert checkpoint_topics(to_a) == {"B.checkpoints.internal"}
    beats = [decode_heartbeat(r.key, r.value) for r in read_topic(by_mm2.b, "A.heartbeats")]
    assert {(beat.source, beat.target) for beat in beats} == {("B", "A")}

    def translated() -> bool:
        at = {(one.topic, one.partition): one.offset for one in translate_offsets(to_a, "B", "returning")}
        copy = Copy.read((by_mm2.b, "returns"), (by_mm2.a, "B.returns"))
        theirs = newest(checkpoints(by_mm2.a, "B.checkpoints.internal"))
        assert at == {("B.returns", number): theirs["returning", number].downstream for number in range(PARTITIONS)}
        return all(copy.behind(number, 380, at["B.returns", number]) >= 0 for number in range(PARTITIONS))

    until(translated)
    all_of_them = MirrorClient(to_a).remote_consumer_offsets("B", re.compile(".*"))
    assert all_of_them.groups == {"returning"}


# -- we mirror ---------------------------------------------------------------------------------------------------------


def test_mm2s_checkpoint_connector_works_on_our_offset_syncs(
    tmp_path: Path, brokers: tuple[Broker, Broker], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The connector alone, in a Connect cluster, beside our topic-sync and data plane."""
    a, b = (broker.bootstrap for broker in brokers)
    mark = uuid.uuid4().hex[:6]
    topic = f"{mark}-orders"
    group = f"group-{mark}"
    create_topic(a, topic, partitions=PARTITIONS)
    fill(a, topic)
    for number, offset in enumerate((401, 215)):
        commit_offset(a, group, topic, number, offset)
    lag = f"offset.lag.max = {OFFSET_LAG_MAX}"
    quiet = "heartbeats.replication.enabled = false"
    with (
        Mirror.one_flow(tmp_path, mark, (a, a), (b, b), lag, quiet) as mirror,
        ConnectWorker(tmp_path_factory.mktemp("connect"), b, f"connect-{mark}") as connect,
    ):
        flow = mirror.flow
        flow.wait_copied(topic)
        connect.run(
            "checkpoints",
            "MirrorCheckpointConnector",
            {
                "source.cluster.alias": flow.flow.source,
                "target.cluster.alias": flow.flow.target,
                "source.cluster.bootstrap.servers": a,
                "target.cluster.bootstrap.servers": b,
                "topics": f"{mark}-.*",
                "groups": group,
                "tasks.max": "1",
                "checkpoints.topic.replication.factor": "1",
                "offset-syncs.topic.replication.factor": "1",
                "emit.checkpoints.interval.seconds": "1",
                "refresh.groups.interval.seconds": "1",
                "sync.group.offsets.enabled": "true",
                "sync.group.offsets.interval.seconds": "1",
            },
        )
        written = f"{flow.flow.source}.checkpoints.internal"
        until(lambda: len(newest(checkpoints(b, written))) == PARTITIONS, what="MM2's checkpoints on our syncs")
        with Traffic(a, topic, partitions=PARTITIONS, rate=1000) as traffic:
            for _ in range(3):
                traffic.wait_for_more(1000)
                commit_offset(a, group, topic, 0, end_offsets(a, topic)[0] - 100)
        ends = end_offsets(a, topic)
        commit_offset(a, group, topic, 0, ends[0])
        flow.wait_copied(topic)

        def there() -> bool:
            at = newest(checkpoints(b, written))[group, 0]
            copy = Copy.read((a, topic), (b, flow.remote(topic)))
            assert at.upstream == ends[0]
            assert 0 <= copy.behind(0, at.upstream, at.downstream) <= OFFSET_LAG_MAX
            assert committed_offset(b, group, flow.remote(topic), 0) == at.downstream
            return True

        until(there)
        copy = Copy.read((a, topic), (b, flow.remote(topic)))
        for one in checkpoints(b, written):
            assert copy.behind(one.partition, one.upstream, one.downstream) >= 0, one
        connect.stop()
