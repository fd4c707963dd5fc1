"""Records and their progress in one transaction (`exactly.once.source.support=enabled`, `mm2-behaviour.md` §4.8)."""

import json
import random
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep_data_plane.record_batch.layout import CONTROL, TRANSACTIONAL, Batch
from lockstep_state.codecs.mm2_codec import encode_source_progress_reset
from lockstep_state.codecs.murmur2 import partition_for
from lockstep_state.names import progress_topic
from tests.conftest import Pair
from tests.integration.transactional import (
    LATE,
    SOON,
    numbered,
    quarantined,
    rest,
    topic_of,
    topic_that_refuses,
    transactional,
    wait_committed,
)
from tests.support.batch_bytes import decoded
from tests.support.batches import read_batches
from tests.support.clusters import (
    Record,
    create_topic,
    delete_records,
    delete_topic,
    end_offsets,
    produce,
    produce_transaction,
    read_topic,
    unique_name,
)
from tests.support.eventually import wait_until
from tests.support.mirror import SOURCE_CONNECTOR, Mirror, MirroredFlow

COMMIT = 1
"""Which end a marker stands for: the last byte of its key."""


@pytest.fixture(scope="module")
def exactly(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    policies = ("lockstep.on.gap = .*-skip-.*=skip", "lockstep.on.refused = .*-quarantine-.*=quarantine")
    with transactional(tmp_path_factory.mktemp("exactly"), pair, *policies) as mirror:
        yield mirror


def test_records_and_progress_are_committed_together(exactly: Mirror) -> None:
    flow = exactly.flow
    topic = topic_of(flow, "plain", partitions=3)
    produce(flow.source, topic, numbered(3_000, partitions=3))
    produce_transaction(flow.source, topic, numbered(50, first=10_000), commit=False)
    produce(flow.source, topic, numbered(30, first=20_000, partitions=3))
    committed = wait_committed(flow, topic)
    assert len(committed) == 3_030
    wait_until(lambda: set(flow.mm2_progress(topic)) == {0, 1, 2}, within=SOON)
    last = {r.partition: r.offset or 0 for r in read_topic(flow.source, topic, isolation="read_committed")}
    ends = end_offsets(flow.source, topic)
    for partition, progress in flow.mm2_progress(topic).items():
        assert progress is not None
        assert last[partition] <= progress < ends[partition], "what is committed, and perhaps a marker behind it"
    rows = flow.wait_written_down(topic)
    assert all(row.transactional for row in rows.values())
    for partition in rows:
        there = [r.offset or 0 for r in read_topic(flow.source, topic) if r.partition == partition]
        data = commits(read_batches(flow.target, flow.remote(topic), partition))
        committed_rows = commits(progress_batches(flow, topic, partition))
        assert [producer for producer, _ in data] == [producer for producer, _ in committed_rows], (
            "appended by one producer, committed as one"
        )
        visible = 0
        for (_, batches), (_, (named,)) in zip(data, committed_rows, strict=True):
            visible += sum(batch.record_count for batch in batches)
            (record,) = decoded(named.data)
            upstream = json.loads(record.value or b"")["offset"]
            assert visible == len([offset for offset in there if offset <= upstream]), "of these records, no others"
    assert flow.events("PartitionHalted", topic) == []


def progress_batches(flow: MirroredFlow, topic: str, partition: int) -> list[Batch]:
    """Where progress of a partition lies, in order, and every marker around it."""
    (key, _) = encode_source_progress_reset(flow.flow.source, topic, partition)
    control = progress_topic(flow.flow)
    number = partition_for(key, len(end_offsets(flow.target, control)))
    return [
        batch
        for batch in read_batches(flow.target, control, number)
        if batch.attributes & CONTROL or any(r.key == key and r.value for r in decoded(batch.data))
    ]


def commits(batches: list[Batch]) -> list[tuple[tuple[int, int], list[Batch]]]:
    """Producer id, epoch and batches of each committed transaction, in the order in which they ended. Raises
    AssertionError for a batch that is part of none."""
    under_way: defaultdict[tuple[int, int], list[Batch]] = defaultdict(list)
    found: list[tuple[tuple[int, int], list[Batch]]] = []
    for batch in batches:
        producer = (batch.producer_id, batch.producer_epoch)
        if not batch.attributes & CONTROL:
            assert batch.attributes & TRANSACTIONAL, f"{batch} is outside of any transaction"
            under_way[producer].append(batch)
            continue
        (marker,) = decoded(batch.data)
        ended = under_way.pop(producer, [])
        if ended and marker.key is not None and marker.key[-1] == COMMIT:
            found.append((producer, ended))
    assert not any(under_way.values()), "each has ended"
    return found


@pytest.mark.long
def test_mm2_165_altered_and_reset_offsets_copy_records_again(exactly: Mirror) -> None:
    flow = exactly.flow
    topic = topic_of(flow, "altered", partitions=1)
    produce(flow.source, topic, numbered(100))
    wanted = wait_committed(flow, topic)

    flow.ask("stop", SOURCE_CONNECTOR)
    assert flow.alter(topic, 0).kind == "OffsetsAltered"
    flow.ask("resume", SOURCE_CONNECTOR)
    flow.wait_holds(topic, [*wanted, *wanted[1:]])
    flow.ask("stop", SOURCE_CONNECTOR)
    assert flow.ask("offsets-reset", SOURCE_CONNECTOR).detail["entries"] >= 1
    assert flow.listed(topic) == {topic: {}}
    flow.ask("resume", SOURCE_CONNECTOR)
    flow.wait_holds(topic, [*wanted, *wanted[1:], *wanted])
    wait_until(lambda: flow.mm2_progress(topic)[0] == 99, within=SOON, every=0.25)
    assert flow.events("PartitionHalted", topic) == []


def test_good_records_are_committed_before_the_partition_halts(exactly: Mirror) -> None:
    flow = exactly.flow
    topic = topic_that_refuses(flow, "refused")
    produce(flow.source, topic, numbered(20))
    wait_committed(flow, topic)
    produce(flow.source, topic, [*numbered(5, first=20), LATE])
    flow.wait_event("PartitionHalted", f"{topic}-0", within=SOON)
    records = read_topic(flow.target, flow.remote(topic), isolation="read_committed")
    assert [r.value for r in records] == [r.value for r in numbered(len(records))]
    assert len(records) >= 20
    wait_until(lambda: flow.mm2_progress(topic)[0] == len(records) - 1, within=SOON)


@pytest.mark.parametrize("policy", ["halt", "skip"])
def test_records_deleted_before_their_copy_are_a_gap_in_progress(exactly: Mirror, policy: str) -> None:
    flow = exactly.flow
    topic = topic_of(flow, f"{policy}-gone")
    produce(flow.source, topic, numbered(50))
    wait_committed(flow, topic)
    copied = read_topic(flow.source, topic)
    rest(flow, topic)
    produce(flow.source, topic, numbered(100, first=50))
    begin = 90 if policy == "halt" else 150
    delete_records(flow.source, topic, begin)
    flow.ask("resume", f"topic:{topic}")
    gap = flow.wait_event("GapFound", f"{topic}-0", within=SOON)
    details = {key: gap.detail[key] for key in ("case", "wanted", "source_start", "source_end")}
    assert details == {"case": "records-gone", "wanted": 50, "source_start": begin, "source_end": 150}
    if policy == "halt":
        flow.wait_event("PartitionHalted", f"{topic}-0", within=SOON)
        row = wait_until(lambda: (r := flow.progress(topic)[0]).phase == "halted" and r, within=SOON, every=0.25)
        assert (row.case, row.upstream, row.given_up, row.transactional) == ("records-gone", 49, 0, True)
        assert flow.mm2_progress(topic) == {0: 49}
        flow.wait_holds(topic, copied)
        return
    skipped = flow.wait_event("GapSkipped", f"{topic}-0", within=SOON)
    assert (skipped.detail["lost"], skipped.detail["begin"]) == ([50, 149], 150)
    flow.wait_written_down(topic)
    row = wait_until(lambda: (r := flow.progress(topic)[0]).phase == "copying" and r, within=SOON, every=0.25)
    assert (row.upstream, row.given_up, row.gaps) == (149, 100, (("records-gone", 1),))
    # Nothing is to be committed that would say it.
    wait_until(lambda: flow.mm2_progress(topic) == {0: 149}, within=SOON, every=0.25)
    produce(flow.source, topic, numbered(60, first=150))
    flow.wait_holds(topic, [*copied, *read_topic(flow.source, topic)])
    assert flow.wait_written_down(topic)[0].upstream == 209
    assert flow.mm2_progress(topic) == {0: 209}


def test_refused_records_are_quarantined_once_and_others_committed_once(exactly: Mirror) -> None:
    flow = exactly.flow
    topic = topic_that_refuses(flow, "quarantine", **{"max.message.bytes": "20000"})
    large = Record(key=b"big", value=b"x" * 30_000)
    one_batch = {"linger.ms": "200", "batch.num.messages": "1000"}
    for some in ([*numbered(5), LATE, *numbered(5, first=5)], [large], numbered(5, first=10), [LATE]):
        produce(flow.source, topic, some, settings=one_batch)
    wanted = [r for r in read_topic(flow.source, topic) if r.value not in (LATE.value, large.value)]
    flow.wait_holds(topic, wanted)
    row = wait_until(lambda: (r := flow.progress(topic)[0]).upstream == 17 and r, within=SOON, every=0.25)
    assert (row.quarantined, row.phase, row.skips, row.transactional) == (3, "copying", (), True)
    kept = quarantined(flow, topic)
    assert [(r.key, r.value) for r in kept] == [(r.key, r.value) for r in (LATE, large, LATE)]
    assert [dict(r.headers)["lockstep.offset"] for r in kept] == [b"5", b"11", b"17"]
    headers_kept = {"lockstep.timestamp": b"4000000000000", "lockstep.content": b"record", "own": b"1"}
    assert headers_kept.items() <= dict(kept[0].headers).items()
    ranges = [event.detail["ranges"] for event in flow.events("BatchQuarantined", f"{topic}-0")]
    assert ranges == [[[5, 5]], [[11, 11]], [[17, 17]]]
    produce(flow.source, topic, numbered(3, first=15))
    flow.wait_holds(topic, [*wanted, *read_topic(flow.source, topic)[18:]])
    wait_until(lambda: flow.mm2_progress(topic) == {0: 20}, within=SOON, every=0.25)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_way_of_copying_is_changed_between_kills(pair: Pair, tmp_path: Path) -> None:
    """From each way to each other one, each time after a kill -9 under traffic, and with one after it."""
    mark, topic = unique_name("w"), ""
    stopping = threading.Event()
    writer: threading.Thread | None = None
    ways = ("chain", "transactions", "chain", "transactions")
    try:
        for turn, way in enumerate(ways):
            folder = tmp_path / str(turn)
            folder.mkdir()
            enabled = "enabled" if way == "transactions" else "disabled"
            with transactional(folder, pair, mark=mark, enabled=enabled) as mirror:
                if not topic:
                    topic = topic_of(mirror.flow, "switched", partitions=2)
                    writer = threading.Thread(target=_write_on, args=(mirror.flow, topic, stopping), daemon=True)
                    writer.start()
                mirror.flow.wait_mirrored(topic)
                for _ in range(2):
                    mirror.flow.wait_for_more(topic, 500, within=SOON)
                    mirror.copying_worker().kill()
                mirror.flow.wait_for_more(topic, 500, within=SOON)
                rows = mirror.flow.progress(topic).values()
                assert {row.transactional for row in rows} == {way == "transactions"}
                if turn + 1 == len(ways):
                    stopping.set()
                    assert writer is not None
                    writer.join(30)
                    assert len(wait_committed(mirror.flow, topic)) > 4_000
                mirror.kill_data_plane()
    finally:
        stopping.set()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_an_altered_offset_holds_whatever_way_the_copy_goes_on(pair: Pair, tmp_path: Path) -> None:
    """Altered while it was copied in one way, which is killed, and copied from there in another."""
    mark, topic = unique_name("x"), ""
    copies: list[Record] = []
    begin: int | None = None
    for turn, way in enumerate(("chain", "transactions", "transactions", "chain", "chain")):
        folder = tmp_path / str(turn)
        folder.mkdir()
        enabled = "enabled" if way == "transactions" else "disabled"
        with transactional(folder, pair, mark=mark, enabled=enabled) as mirror:
            flow = mirror.flow
            topic = topic or topic_of(flow, "altered")
            flow.ask("resume", SOURCE_CONNECTOR)
            produce(flow.source, topic, numbered(30, first=turn * 30))
            copies += read_topic(flow.source, topic)[0 if begin is None else begin + 1 :]
            flow.wait_holds(topic, copies)
            flow.wait_written_down(topic)
            flow.ask("stop", SOURCE_CONNECTOR)
            if turn % 2:  # slots that cannot say that they have ended
                mirror.kill_data_plane()
                mirror.data_plane.start()
            begin = None if turn == 3 else turn * 7
            assert flow.alter(topic, begin).kind == "OffsetsAltered"
            mirror.kill_data_plane()
            assert flow.events("PartitionHalted", topic) == flow.events("GapFound", topic) == []


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("ways", [("enabled", "disabled"), ("disabled", "enabled")])
def test_topics_created_again_are_seen_whatever_way_the_copy_goes_on(
    pair: Pair, tmp_path: Path, ways: tuple[str, str]
) -> None:
    """The next data plane copies in another way, and finds one topic of the source and one of the target anew."""
    mark = unique_name("y")
    folders = tmp_path / "before", tmp_path / "after"
    for folder in folders:
        folder.mkdir()
    with transactional(folders[0], pair, mark=mark, enabled=ways[0]) as mirror:
        flow = mirror.flow
        again_on_source, again_on_target = (topic_of(flow, stem) for stem in ("source", "target"))
        for topic in (again_on_source, again_on_target):
            produce(flow.source, topic, numbered(30))
            flow.wait_holds(topic, read_topic(flow.source, topic))
            flow.wait_written_down(topic)
        mirror.kill_data_plane()
    former = read_topic(flow.source, again_on_source)
    delete_topic(flow.source, again_on_source)
    create_topic(flow.source, again_on_source)
    produce(flow.source, again_on_source, numbered(50, first=100))
    delete_topic(flow.target, flow.remote(again_on_target))
    create_topic(flow.target, flow.remote(again_on_target))
    with transactional(folders[1], pair, "lockstep.on.recreate = restart", mark=mark, enabled=ways[1]) as mirror:
        flow = mirror.flow
        for topic, case in ((again_on_source, "source-recreated"), (again_on_target, "target-recreated")):
            assert flow.wait_event("GapFound", f"{topic}-0", within=SOON).detail["case"] == case
        flow.wait_holds(again_on_source, [*former, *read_topic(flow.source, again_on_source)])
        flow.wait_holds(again_on_target, read_topic(flow.source, again_on_target))


def _write_on(flow: MirroredFlow, topic: str, stopping: threading.Event) -> None:
    dice, sent = random.Random(7), 0
    while not stopping.is_set():
        count = dice.randint(1, 60)
        produce(flow.source, topic, numbered(count, first=sent, partitions=2))
        sent += count
        stopping.wait(0.05)
