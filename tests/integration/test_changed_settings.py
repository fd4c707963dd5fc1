"""What becomes of what is mirrored when the file is changed and its services are started again
(docs/guides/change-settings.md)."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from lockstep_state.rows.state_rows import Assignment
from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, delete_records, produce, read_topic
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror

pytestmark = pytest.mark.long
PARTITIONS = 3


def numbered(first: int, count: int) -> list[Record]:
    return [Record(value=b"%d" % n, partition=n % PARTITIONS) for n in range(first, first + count)]


class Changing(Mirror):
    """A mirror whose file can be changed."""

    def change(self, key: str, value: str) -> None:
        """Set a key of the flow."""
        name = f"{self.flow} .{key}".replace(" ", "")
        lines = [line for line in self.config.read_text().splitlines() if not line.startswith(f"{name} =")]
        self.config.write_text("\n".join([*lines, f"{name} = {value}"]) + "\n")

    def again(self) -> None:
        """Stop both services cleanly and start them with the file as it is now."""
        for process in (self.data_plane, self.topic_sync):
            process.stop()
            process.start()
        self.topic_sync.wait_ready()

    def topic(self, name: str) -> str:
        topic = f"{self.flow.flow.source[1:]}-{name}"
        create_topic(self.flow.source, topic, partitions=PARTITIONS)
        produce(self.flow.source, topic, numbered(0, 300))
        return topic


@pytest.fixture
def mirror(tmp_path: Path, broker_a: Broker, broker_b: Broker, request: pytest.FixtureRequest) -> Iterator[Changing]:
    mark = f"m{abs(hash(request.node.name)) % 10**8}"
    addresses = (broker_a.bootstrap, broker_a.bootstrap), (broker_b.bootstrap, broker_b.bootstrap)
    with Changing.one_flow(tmp_path, mark, *addresses) as running:
        yield running


def test_deselected_topic_is_kept_and_continues_when_selected_again(mirror: Changing) -> None:
    there = mirror.flow
    kept, dropped = mirror.topic("kept"), mirror.topic("dropped")
    for topic in (kept, dropped):
        there.wait_copied(topic)
    mirror.change("topics", kept)
    mirror.again()
    there.wait_event("TopicExcluded", dropped)
    for topic in (kept, dropped):
        produce(there.source, topic, numbered(300, 300))
    there.wait_copied(kept)
    assert len(read_topic(there.target, there.remote(dropped))) == 300, "kept, and no longer mirrored"
    row = there.mirrored(dropped)
    assert row is not None
    assert row.phase == "excluded"
    mirror.change("topics", f"{kept}, {dropped}")
    mirror.again()
    there.wait_event("TopicIncluded", dropped)
    assert len(there.wait_copied(dropped)) == 600, "each record once"
    assert there.events("GapFound") == []


def test_records_deleted_while_a_topic_was_deselected_are_a_gap(mirror: Changing) -> None:
    there = mirror.flow
    kept, dropped = mirror.topic("kept"), mirror.topic("dropped")
    there.wait_copied(dropped)
    mirror.change("topics", kept)
    mirror.again()
    there.wait_event("TopicExcluded", dropped)
    produce(there.source, dropped, numbered(300, 300))
    delete_records(there.source, dropped, before=150)
    mirror.change("topics", f"{kept}, {dropped}")
    mirror.again()
    gap = there.wait_event("GapFound", f"{dropped}-0")
    assert (gap.detail["wanted"], gap.detail["source_start"]) == (100, 150)
    produce(there.source, kept, numbered(300, 300))
    there.wait_copied(kept)
    mirror.change("lockstep.on.gap", "skip")
    mirror.again()
    wait_until(lambda: len(read_topic(there.target, there.remote(dropped))) == 550, within=90, what="the rest")


def test_renamed_copy_is_another_copy(mirror: Changing) -> None:
    there = mirror.flow
    topic = mirror.topic("renamed")
    there.wait_copied(topic)
    mirror.change("replication.policy.separator", "-to-")
    mirror.again()
    cases = partial(_cases, mirror, topic)
    wait_until(lambda: cases() == {"target-recreated"}, within=90, what="each partition halts")
    mirror.change("lockstep.on.recreate", "restart")
    mirror.again()
    renamed = f"{there.flow.source}-to-{topic}"
    wait_until(lambda: len(read_topic(there.target, renamed)) == 300, within=90, what="a whole copy")
    assert len(there.copy_of(topic)) == 300, "the former one stays"


def test_mm2_177_latest_copies_only_new_records(mirror: Changing) -> None:
    there = mirror.flow
    for process in (mirror.data_plane, mirror.topic_sync):
        process.stop()
    topic = mirror.topic("latest")
    mirror.change("consumer.auto.offset.reset", "latest")
    mirror.again()
    wait_until(lambda: len(there.progress(topic)) == PARTITIONS, within=90, what="each partition is taken up")
    produce(there.source, topic, numbered(300, 300))
    new = [record for record in read_topic(there.source, topic) if int(record.value or b"0") >= 300]
    there.wait_holds(topic, new)
    assert {number: row.upstream for number, row in there.wait_written_down(topic).items()} == dict.fromkeys(
        range(3), 199
    )


def test_slots_more_and_fewer_lose_nothing(mirror: Changing) -> None:
    there = mirror.flow
    topic = mirror.topic("spread")
    there.wait_copied(topic)
    for turn, (slots, busy) in enumerate(((3, 3), (2, 2), (1, 1)), start=1):
        mirror.change("tasks.max", str(slots))
        mirror.again()
        produce(there.source, topic, numbered(300 * turn, 300))
        assert len(there.wait_copied(topic)) == 300 * (turn + 1), "each record once"
        wait_until(partial(_has, mirror, busy), what=f"{busy} slots have work")
    assert there.events("GapFound") == []
    assert there.events("SlotFailed") == []


def _cases(mirror: Mirror, topic: str) -> set[str]:
    return {row.case for row in mirror.flow.progress(topic).values()}


def _has(mirror: Mirror, busy: int) -> bool:
    return sum(bool(row.partitions) for row in mirror.flow.rows(Assignment)) == busy
