"""Logs that are not what was copied: restored from an older backup, or cleaned before the copy was written down
(`docs/reference/no-silent-loss.md`). Each has clusters, or a mirror, of its own."""

import shutil
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer

from lockstep_state.names import state_topic
from tests.conftest import Pair
from tests.support.broker import Broker, started
from tests.support.clusters import Record, create_topic, delete_records, produce, read_topic, unique_name
from tests.support.eventually import wait_until
from tests.support.metrics import wait_for_value
from tests.support.mirror import Mirror, MirroredFlow

pytestmark = pytest.mark.long

SOON = 120.0
FORGETS = {"producer.id.expiration.ms": "1000", "producer.id.expiration.check.interval.ms": "500"}


WENT_ON = {"skip": "GapSkipped", "restart": "CopyRestarted"}


def numbered(count: int, stem: bytes = b"r", first: int = 0) -> list[Record]:
    return [Record(key=b"k", value=b"%s %d" % (stem, first + n)) for n in range(count)]


def wait_values(flow: MirroredFlow, topic: str, wanted: list[Record]) -> None:
    def there() -> bool:
        assert [r.value for r in read_topic(flow.target, flow.remote(topic))] == [r.value for r in wanted]
        return True

    wait_until(there, within=SOON, every=0.5)


def wait_upstream(flow: MirroredFlow, topic: str, upstream: int) -> None:
    wait_until(lambda: flow.progress(topic)[0].upstream == upstream, within=SOON, every=0.25)


class Backup:
    """A broker's data as it was, to be put back: its log is then truncated, and its topics have the same ids."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.broker, self.folder = broker, folder
        broker.stop()
        shutil.copytree(broker.folder / "data", folder)
        broker.start()

    def restore(self) -> None:
        self.broker.kill()
        shutil.rmtree(self.broker.folder / "data")
        shutil.copytree(self.folder, self.broker.folder / "data")
        for _ in range(2):  # one leader epoch more than the log that is gone ever had
            self.broker.start()
            self.broker.stop()
        self.broker.start()


@pytest.fixture
def own() -> Iterator[tuple[Broker, Broker]]:
    """The target remembers a producer for a second, as a day later: its log alone tells."""
    pair = Broker("A"), Broker("B", properties=FORGETS)
    with started(*pair):
        yield pair


def mirror_of(folder: Path, a: Broker, b: Broker, gap: str) -> Mirror:
    mark = uuid.uuid4().hex[:6]
    return Mirror.one_flow(
        folder,
        mark,
        (a.bootstrap,) * 2,
        (b.bootstrap,) * 2,
        f"lockstep.on.gap = halt, {mark}-decided.*={gap}",
        f"lockstep.on.doubt = halt, {mark}-decided.*=progress",
    )


def not_written_down(flow: MirroredFlow, topic: str, upstream: int) -> None:
    """As if the rows behind `upstream` had never been written: what a crash leaves, at its worst."""
    row = flow.progress(topic)[0]
    back = row.upstream - upstream
    early = replace(row, upstream=upstream, downstream=row.downstream - back, sequence=row.sequence - back, open_run=())
    key, value = early.encode()
    producer = Producer({"bootstrap.servers": flow.target})
    producer.produce(state_topic(flow.flow), value, key, 0)
    producer.flush(30)


@pytest.mark.parametrize("policy", ["skip", "restart"])
def test_a_source_restored_from_an_older_backup_and_grown_again(
    own: tuple[Broker, Broker], tmp_path: Path, policy: str
) -> None:
    a, b = own
    with mirror_of(tmp_path, a, b, policy) as mirror:
        flow = mirror.flow
        mark = flow.flow.source[1:]
        topics = [create_topic(a.bootstrap, f"{mark}-{name}") for name in ("waits", "decided")]
        for topic in topics:
            produce(a.bootstrap, topic, numbered(100))
            flow.wait_copied(topic, within=SOON)
        backup = Backup(a, tmp_path / "backup")
        for topic in topics:
            produce(a.bootstrap, topic, numbered(50, b"lost", 100))
            wait_upstream(flow, topic, 149)
        mirror.kill_data_plane()
        backup.restore()
        for topic in topics:
            produce(a.bootstrap, topic, numbered(80, b"other", 100))  # beyond where the copy stands: nothing is missing
        mirror.data_plane.start()
        halted = flow.wait_event("PartitionHalted", f"{topics[0]}-0", within=SOON)
        assert "up to offset 100 only, not up to 149" in halted.detail["reason"]
        again = numbered(100) if policy == "restart" else []
        both = [*numbered(100), *numbered(50, b"lost", 100), *again, *numbered(80, b"other", 100)]
        wait_values(flow, topics[1], both)
        went_on = flow.wait_event(WENT_ON[policy], f"{topics[1]}-0", within=SOON)
        assert went_on.detail["begin"] == (100 if policy == "skip" else 0)
        assert went_on.detail["again"] == (None if policy == "skip" else [0, 149])
        gap = flow.wait_event("GapFound", f"{topics[1]}-0", within=SOON)
        assert gap.detail["case"] == "source-truncated"
        assert len(read_topic(b.bootstrap, flow.remote(topics[0]))) == 150


@pytest.mark.parametrize("policy", ["skip", "restart"])
def test_a_target_restored_from_an_older_backup(own: tuple[Broker, Broker], tmp_path: Path, policy: str) -> None:
    a, b = own
    with mirror_of(tmp_path, a, b, policy) as mirror:
        flow = mirror.flow
        mark = flow.flow.source[1:]
        topics = [create_topic(a.bootstrap, f"{mark}-{name}") for name in ("waits", "decided", "grown")]
        for topic in topics:
            produce(a.bootstrap, topic, numbered(100))
            flow.wait_copied(topic, within=SOON)
            wait_upstream(flow, topic, 99)
        state = state_topic(flow.flow)
        backup = Backup(b, tmp_path / "backup")
        for topic in topics:
            produce(a.bootstrap, topic, numbered(50, b"later", 100))
            flow.wait_copied(topic, within=SOON)
            wait_upstream(flow, topic, 149)
        mirror.kill_data_plane()
        rows = [r for r in read_topic(b.bootstrap, state) if (r.key or b"").startswith(b"partition/")]
        backup.restore()
        # The state topic went back as well; put what it said in again, as a target of several brokers keeps one topic
        # and loses another.
        producer = Producer({"bootstrap.servers": b.bootstrap})
        for row in rows:
            producer.produce(state, row.value, row.key, 0)
        producer.flush(30)
        produce(b.bootstrap, flow.remote(topics[2]), numbered(80, b"theirs"))  # beyond where the copy stands
        mirror.data_plane.start()
        grown = flow.wait_event("PartitionHalted", f"{topics[2]}-0", within=SOON)
        assert "truncated and has grown again" in grown.detail["reason"]
        gap = flow.wait_event("GapFound", f"{topics[2]}-0", within=SOON).detail
        assert (gap["case"], gap["gone"]) == ("target-truncated", None)
        flow.wait_event("PartitionHalted", f"{topics[0]}-0", within=SOON)
        gap = flow.wait_event("GapFound", f"{topics[0]}-0", within=SOON).detail
        there = [gap[word] for word in ("case", "target_wanted", "target_end", "gone")]
        assert there == ["target-truncated", 150, 100, [100, 149]]
        went_on = flow.wait_event(WENT_ON[policy], f"{topics[1]}-0", within=SOON).detail
        produce(a.bootstrap, topics[1], numbered(20, b"new", 150))
        again = [*numbered(100), *numbered(50, b"later", 100)] if policy == "restart" else []
        wait_values(flow, topics[1], [*numbered(100), *again, *numbered(20, b"new", 150)])
        assert went_on["again"] == ([0, 149] if policy == "restart" else None)
        assert went_on["gone"] == ([100, 149] if policy == "skip" else None)
        assert flow.progress(topics[1])[0].target_lost == (50 if policy == "skip" else 0)
        if policy == "skip":
            name = "lockstep_target_lost_offsets_total"
            assert wait_for_value(mirror.data_plane, 50, name, topic=topics[1]) == 50


def test_records_deleted_on_the_source_between_copy_and_row(pair: Pair, tmp_path: Path) -> None:
    mark = uuid.uuid4().hex[:6]
    a, b = (pair.a.bootstrap,) * 2, (pair.b.bootstrap,) * 2
    with Mirror.one_flow(tmp_path, mark, a, b) as mirror:
        flow = mirror.flow
        topics = [create_topic(flow.source, unique_name(f"{mark}-{name}")) for name in ("some", "all")]
        for topic in topics:
            produce(flow.source, topic, numbered(100))
            flow.wait_copied(topic, within=SOON)
            wait_upstream(flow, topic, 99)
        mirror.kill_data_plane()
        for topic in topics:
            not_written_down(flow, topic, 39)
        delete_records(flow.source, topics[0], 70)
        produce(flow.source, topics[1], numbered(50, first=100))
        delete_records(flow.source, topics[1], 120)
        produce(flow.source, topics[0], numbered(20, first=100))
        mirror.data_plane.start()
        wait_values(flow, topics[0], numbered(120))
        assert flow.events("GapFound", f"{topics[0]}-0") == []
        gap = flow.wait_event("GapFound", f"{topics[1]}-0", within=SOON)
        assert (gap.detail["case"], gap.detail["wanted"], gap.detail["source_start"]) == ("records-gone", 100, 120)
        assert len(read_topic(flow.target, flow.remote(topics[1]))) == 100


def test_records_deleted_on_the_target_by_retention_before_their_row(
    pair: Pair, own: tuple[Broker, Broker], tmp_path: Path
) -> None:
    """A target that remembers us says how much there was; else somebody has to decide."""
    a, b = own
    folder, mark = tmp_path / "remembers", f"r{uuid.uuid4().hex[:6]}"
    folder.mkdir()
    with (
        mirror_of(tmp_path, a, b, "halt") as mirror,
        Mirror.one_flow(folder, mark, (a.bootstrap,) * 2, (pair.b.bootstrap,) * 2) as other,
    ):
        flow, remembers = mirror.flow, other.flow
        waits, decided = (create_topic(a.bootstrap, f"{flow.flow.source[1:]}-{name}") for name in ("waits", "decided"))
        counted = create_topic(a.bootstrap, f"{remembers.flow.source[1:]}-counted")
        scenes = ((flow, waits), (flow, decided), (remembers, counted))
        for flow_of_scene, topic in scenes:
            produce(a.bootstrap, topic, numbered(100))
            flow_of_scene.wait_copied(topic, within=SOON)
            wait_upstream(flow_of_scene, topic, 99)
        mirror.kill_data_plane()
        other.kill_data_plane()
        for flow_of_scene, topic in scenes:
            not_written_down(flow_of_scene, topic, 39)
            delete_records(flow_of_scene.target, flow_of_scene.remote(topic), 100)
            produce(a.bootstrap, topic, numbered(20, first=100))
        mirror.data_plane.start()
        other.data_plane.start()

        wait_values(remembers, counted, numbered(20, first=100))
        assert remembers.events("GapFound", f"{counted}-0") == []
        row = remembers.wait_written_down(counted, within=SOON)[0]
        assert (row.upstream, row.sequence, row.downstream) == (119, 119, 119)

        halted = flow.wait_event("PartitionHalted", f"{waits}-0", within=SOON)
        assert "Its leader has forgotten our producer" in halted.detail["reason"]
        wait_until(lambda: flow.progress(waits)[0].case == "in-doubt", within=SOON, every=0.25)
        assert read_topic(flow.target, flow.remote(waits)) == []

        wait_values(flow, decided, numbered(80, first=40))
        doubt = flow.wait_event("ResumedWithDoubt", f"{decided}-0", within=SOON)
        assert (doubt.detail["begin"], doubt.detail["again"]) == (40, [40, 119])
