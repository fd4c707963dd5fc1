"""What the data plane writes down, and how it goes on from there: MM2's progress, offset syncs, drain and restart.

A mirror of its own, for its data plane is stopped and started; what has to lie there before a first start is prepared
before it.
"""

import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import psutil
import pytest
from confluent_kafka import TopicPartition

from lockstep_rules.offsets.offset_runs import RunMap
from lockstep_state.codecs.mm2_codec import encode_source_progress
from lockstep_state.names import progress_topic
from lockstep_state.offsets import UpstreamOffset
from lockstep_state.rows.state_rows import OffsetRuns
from tests.conftest import Pair
from tests.support.clusters import Record, admin, create_topic, produce, produce_transaction, read_topic, unique_name
from tests.support.compaction import compacted_topic
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.offset_truth import exact_places
from tests.support.traffic import Traffic

MARK = uuid.uuid4().hex[:6]
LAG_MAX = 10
STARTED_WITHIN = 150.0  # seconds; usual is 12, but the cores may be shared
TAKEN_OVER_AT = 39
CONNECTOR = f"s{MARK}->t{MARK}.MirrorSourceConnector"
"""The name under which progress is kept here. Another connector's in the same topic is nothing to us."""


@dataclass(frozen=True)
class Before:
    """Topics that were there before the data plane's first start."""

    taken_over: str
    compacted: str
    left: list[Record]


def numbered(count: int, stem: bytes = b"r") -> list[Record]:
    return [Record(key=b"%d" % n, value=b"%s %d" % (stem, n), headers=(("n", b"%d" % n),)) for n in range(count)]


def prepare(flow: MirroredFlow) -> Before:
    """MM2 has copied part of one topic; the cleaner has been through another."""
    taken_over = create_topic(flow.source, unique_name(f"{MARK}-mm2"), partitions=2)
    produce(flow.source, taken_over, [*numbered(100), *(Record(value=b"%d" % n, partition=1) for n in range(50))])
    create_topic(flow.target, progress_topic(flow.flow), partitions=25, configs={"cleanup.policy": "compact"})
    first_partition = len([r for r in read_topic(flow.source, taken_over) if r.partition == 0])
    assert first_partition > TAKEN_OVER_AT + 1
    ours = encode_source_progress(flow.flow.source, taken_over, 0, TAKEN_OVER_AT, CONNECTOR)
    others = encode_source_progress(flow.flow.source, taken_over, 0, TAKEN_OVER_AT + 30)
    produce(flow.target, progress_topic(flow.flow), [Record(key, value) for key, value in (ours, others)])
    compacted = unique_name(f"{MARK}-compacted")
    create_topic(flow.target, flow.remote(compacted))  # no cleaner on this side, so that the copy can be compared
    remaining = compacted_topic(flow.source, compacted)
    return Before(taken_over, compacted, remaining)


@pytest.fixture(scope="module")
def mine(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    return Mirror.one_flow(
        tmp_path_factory.mktemp("progress"),
        MARK,
        (pair.a.bootstrap,) * 2,
        (pair.b.bootstrap,) * 2,
        f"offset.lag.max = {LAG_MAX}",
        f"lockstep.progress.connector = {CONNECTOR}",
        "sync.topic.configs.enabled = false",
    )


@pytest.fixture(scope="module")
def before(mine: Mirror) -> Before:
    return prepare(mine.flow)


@pytest.fixture(scope="module")
def running(mine: Mirror, before: Before) -> Iterator[Mirror]:
    with mine:
        yield mine


@pytest.fixture
def flow(running: Mirror) -> MirroredFlow:
    if not running.data_plane.running:
        running.data_plane.start()
    return running.flow


def test_mm2_143_data_plane_starts_after_the_copy_of_mm2(flow: MirroredFlow, before: Before) -> None:
    flow.wait_mirrored(before.taken_over, partitions=2)
    flow.wait_written_down(before.taken_over, within=STARTED_WITHIN)
    wanted = read_topic(flow.source, before.taken_over)
    copied = read_topic(flow.target, flow.remote(before.taken_over))
    for partition, begin in ((0, TAKEN_OVER_AT + 1), (1, 0)):
        ours = [r.same_as() for r in wanted if r.partition == partition and (r.offset or 0) >= begin]
        assert [r.same_as() for r in copied if r.partition == partition] == ours


def test_a_compacted_topic_with_gaps(flow: MirroredFlow, before: Before) -> None:
    offsets = [r.offset or 0 for r in before.left]
    assert offsets != list(range(offsets[0], offsets[0] + len(offsets))), "the cleaner left no gap"
    flow.wait_mirrored(before.compacted)
    flow.wait_written_down(before.compacted, within=STARTED_WITHIN)
    copied = [r.same_as() for r in read_topic(flow.target, flow.remote(before.compacted))]
    source = [r.same_as() for r in read_topic(flow.source, before.compacted)]
    # The cleaner may have taken more since (a superseded "roll" record): ours may have more than is left, never less.
    assert [one for one in copied if one in source] == source
    assert len(set(copied)) == len(copied)
    assert len(copied) <= len(before.left)


def test_mm2_145_offset_syncs_are_true_and_frequent(flow: MirroredFlow) -> None:
    few = create_topic(flow.source, unique_name(f"{MARK}-few"))
    produce(flow.source, few, numbered(LAG_MAX // 2), settings={"linger.ms": "100"})
    topic = create_topic(flow.source, unique_name(f"{MARK}-syncs"))
    for number in range(3):  # the marker of each transaction is not copied: downstream falls behind upstream
        produce_transaction(flow.source, topic, numbered(60, b"in transaction %d" % number))
        produce(flow.source, topic, numbered(60, b"plain %d" % number), settings={"batch.num.messages": "5"})
        # One acknowledged run gives two syncs at most: what is copied apart must be told apart.
        flow.wait_copied(topic, within=STARTED_WITHIN)
    upstream = {r.offset: r.same_as() for r in read_topic(flow.source, topic)}
    flow.wait_written_down(topic)
    downstream = {r.offset: r.same_as() for r in read_topic(flow.target, flow.remote(topic))}
    last = max(offset or 0 for offset in upstream)

    def told_of_the_last() -> bool:
        return flow.offset_syncs(topic)[-1].upstream == last

    wait_until(told_of_the_last, every=0.25)
    syncs = flow.offset_syncs(topic)
    for sync in syncs:
        assert upstream[sync.upstream] == downstream[sync.downstream]
    assert [s.upstream for s in syncs] == sorted(s.upstream for s in syncs)
    assert len(syncs) >= 3
    assert syncs[-1].upstream - syncs[-1].downstream == 3

    # Of few records the acknowledgement makes the first due; that the last is told of as well is the flush's doing.
    ends = [(at, at) for at in (0, LAG_MAX // 2 - 1)]
    wait_until(lambda: [(s.upstream, s.downstream) for s in flow.offset_syncs(few)] == ends, every=0.25)


def test_a_worker_that_is_killed_is_replaced_and_each_record_is_there_once(running: Mirror, flow: MirroredFlow) -> None:
    """What `tests/faults/test_kills.py` does to every part, here to one."""
    topic = create_topic(flow.source, unique_name(f"{MARK}-killed"))
    with Traffic(flow.source, topic, rate=300):
        flow.wait_for_more(topic, 100, within=STARTED_WITHIN)
        running.copying_worker().kill()
        flow.wait_for_more(topic, 100, within=STARTED_WITHIN)
    assert len(flow.wait_copied(topic)) > 200
    flow.wait_written_down(topic)
    assert flow.compared(topic).equal
    assert flow.events("SlotFailed")[0].detail["reason"]
    assert flow.events("PartitionHalted", topic) == flow.events("ForeignWrite", flow.remote(topic)) == []


def assert_translates_exactly(flow: MirroredFlow, topic: str, source: list[Record], least: int) -> None:
    """By what is written down each position of the source stands where the two logs say."""
    copied = [(r.same_as(), r.offset or 0) for r in read_topic(flow.target, flow.remote(topic))]
    upstream = {r.same_as(): r.offset or 0 for r in source}
    places = exact_places((upstream[same], downstream, 1) for same, downstream in copied)
    progress = flow.progress(topic)[0]
    run_map = RunMap.build(progress, [row for row in flow.rows(OffsetRuns) if row.topic == topic])
    assert len(run_map.runs) >= least
    translated = {at: run_map.translate(UpstreamOffset(at)) for at in places}
    assert {at: t and t.downstream for at, t in translated.items()} == places
    assert [at for at, t in translated.items() if t and t.behind] == [at for at in places if at > progress.upstream + 1]


@pytest.mark.long
def test_every_position_translates_as_the_two_logs_say(running: Mirror, flow: MirroredFlow, before: Before) -> None:
    """Where the cleaner and transactions left gaps in the source, and after a kill before all was written down."""
    flow.wait_written_down(before.compacted, within=STARTED_WITHIN)
    assert_translates_exactly(flow, before.compacted, before.left, least=2)

    topic = create_topic(flow.source, unique_name(f"{MARK}-runs"))
    for number in range(6):
        produce_transaction(flow.source, topic, numbered(7, b"in transaction %d" % number), commit=number != 3)
        produce(flow.source, topic, numbered(1 + number, b"plain %d" % number))
    flow.wait_copied(topic, within=STARTED_WITHIN)
    running.kill_data_plane()
    for number in range(6):
        produce_transaction(flow.source, topic, numbered(3, b"later %d" % number))
    running.data_plane.start()
    flow.wait_copied(topic, within=STARTED_WITHIN)
    flow.wait_written_down(topic)
    source = read_topic(flow.source, topic, isolation="read_uncommitted")
    assert_translates_exactly(flow, topic, source, least=12)
    assert flow.progress(topic)[0].upstream == (source[-1].offset or 0) + 1, "behind the last marker"


@pytest.mark.long
def test_data_plane_drains_within_ten_seconds_and_continues(running: Mirror, flow: MirroredFlow) -> None:
    topic = create_topic(flow.source, unique_name(f"{MARK}-drained"))
    overtaken = create_topic(flow.source, unique_name(f"{MARK}-overtaken"), partitions=2)
    produce(flow.source, topic, numbered(500))
    produce(flow.source, overtaken, [Record(value=b"%d" % n, partition=n % 2) for n in range(100)])
    flow.wait_copied(topic, within=STARTED_WITHIN)
    flow.wait_copied(overtaken)
    processes = running.processes()
    assert len(processes) >= 4, "driver, JVM, Spark's Python daemon, a worker"

    begun = time.monotonic()
    assert running.data_plane.stop() == 0
    assert time.monotonic() - begun < 10
    # The JVM sees our end and follows; nothing moves any more by then.
    _, left = psutil.wait_procs(processes, timeout=10)
    assert left == []

    # Right after it: progress is complete, in MM2's own bytes.
    assert flow.mm2_progress(topic) == {0: 499}
    assert flow.mm2_progress(overtaken) == {0: 49, 1: 49}
    key = b'["%s",{"cluster":"%s","partition":0,"topic":"%s"}]'
    raw = [r for r in read_topic(flow.target, progress_topic(flow.flow)) if topic.encode() in (r.key or b"")]
    assert {r.key for r in raw} == {key % (CONNECTOR.encode(), flow.flow.source.encode(), topic.encode())}
    assert json.loads(raw[-1].value or b"") == {"offset": 499}
    assert raw[-1].value == b'{"offset":499}'

    # While it is down the one topic grows and the other loses more than was copied.
    produce(flow.source, topic, numbered(500, b"after"))
    produce(flow.source, overtaken, [Record(value=b"later %d" % n, partition=n % 2) for n in range(100)])
    client = admin(flow.source)
    (deleted,) = client.delete_records([TopicPartition(overtaken, 0, 80)]).values()
    deleted.result(20)

    running.data_plane.start()
    copied = flow.wait_copied(topic, within=STARTED_WITHIN)
    assert [r.offset for r in copied] == list(range(1_000))
    halted = flow.wait_event("PartitionHalted", f"{overtaken}-0")
    assert "offsets 50 to 79" in halted.detail["reason"]
    wait_until(lambda: flow.progress(overtaken)[0].phase == "halted", every=0.25)
    assert flow.progress(overtaken)[0].upstream == 49
    wait_until(lambda: flow.progress(overtaken)[1].upstream == 99, within=60, every=0.25)
    assert len([r for r in read_topic(flow.target, flow.remote(overtaken)) if r.partition == 0]) == 50
