"""What is stopped or paused after a kill: the next data plane reads from the target's log where the copies end, copies
nothing, and writes that down. So whatever waits for it is certain to get it."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep_state.rows.state_rows import SlotStatus
from tests.faults.numbered import Writer
from tests.support.broker import Broker
from tests.support.clusters import create_topic, end_offsets
from tests.support.commands import lockstep
from tests.support.eventually import wait_until
from tests.support.mirror import SOURCE_CONNECTOR, Mirror, MirroredFlow

pytestmark = pytest.mark.long

PARTITIONS = 4


@pytest.fixture
def mirror(tmp_path: Path, broker_a: Broker, broker_b: Broker) -> Iterator[Mirror]:
    with Mirror.of_records(tmp_path, uuid.uuid4().hex[:6], broker_a, broker_b, slots=2) as mirror:
        yield mirror


@pytest.fixture
def topic(mirror: Mirror, tmp_path: Path) -> str:
    """Of it half is copied: the mirror was killed whole, and what it has written down is behind."""
    flow = mirror.flow
    topic = create_topic(flow.source, f"{flow.flow.source[1:]}-numbers", partitions=PARTITIONS)
    with Writer(flow.source, topic, partitions=PARTITIONS, rate=3_000, log=tmp_path / "writer.log"):
        wait_until(lambda: len(flow.progress(topic)) == PARTITIONS, within=90, every=0.1)
        flow.wait_for_more(topic, 1_000)
        mirror.kill_data_plane()
    ends, source = end_offsets(flow.target, flow.remote(topic)), end_offsets(flow.source, topic)
    assert sum(source.values()) > sum(ends.values()), "there is more to copy"
    assert flow.located(topic) is None
    return topic


def last_on_target(flow: MirroredFlow, topic: str) -> dict[int, int]:
    """Neither log has gaps, so the last record's offset there is its offset on the source."""
    return {number: end - 1 for number, end in end_offsets(flow.target, flow.remote(topic)).items()}


def handback(mirror: Mirror, *arguments: str, code: int = 0) -> str:
    return lockstep("handback", mirror.config, "--flow", str(mirror.flow), "--yes", *arguments, code=code)


def test_stopped_flow_after_a_kill_locates_its_end_and_copies_nothing(mirror: Mirror, topic: str) -> None:
    flow = mirror.flow
    last = last_on_target(flow, topic)

    said = handback(mirror, code=1)
    assert "refused" in said, "killed, and never started again"
    lockstep("stop", mirror.config, "--flow", str(flow))
    said = wait_until(lambda: _refused_for_good(mirror), within=60, every=1.0, what="its member is gone")
    assert "ended without writing down how far" in said
    assert "Start the data plane, which reads that from the target" in said

    mirror.data_plane.start()
    wait_until(lambda: flow.located(topic) == last, within=90, every=0.25, what="the ends are written down")
    assert last_on_target(flow, topic) == last, "nothing is copied while it is stopped"
    wait_until(lambda: not _started(flow), every=0.25, what="every slot has ended")
    assert flow.listed(topic) == {topic: last}

    # Killed once more, now that it is stopped: nothing is to be found out, and nothing waits.
    mirror.kill_data_plane()
    mirror.data_plane.start()
    assert "Start MirrorMaker 2 now" in handback(mirror, "--stop")
    assert flow.mm2_progress(topic) == last

    flow.ask("resume", SOURCE_CONNECTOR)
    flow.wait_copied(topic)
    assert flow.located(topic) is None, "who copies does not claim to know"


def _started(flow: MirroredFlow) -> list[int]:
    return [row.slot for row in flow.rows(SlotStatus) if row.phase != "released"]


def _refused_for_good(mirror: Mirror) -> str:
    """What it says once nobody is in the data plane's group any more; before, "" (it may only be slow)."""
    said = handback(mirror, code=1)
    return "" if "ask again" in said or "the flow runs" in said else said


def test_offset_altered_right_after_a_kill_is_altered(mirror: Mirror, topic: str) -> None:
    """It interrupts the slots that find out where they are; the others find it out behind that."""
    flow = mirror.flow
    last = last_on_target(flow, topic)
    mirror.data_plane.start()
    flow.ask("stop", SOURCE_CONNECTOR)
    answers = [flow.alter(topic, 10, partition=1)]
    while answers[-1].kind == "CommandRefused" and len(answers) < 4:
        assert "ask again" in answers[-1].detail["reason"]
        answers.append(flow.alter(topic, 10, partition=1))
    assert answers[-1].kind == "OffsetsAltered", answers
    wait_until(lambda: _ends(flow, topic) == {**last, 1: 10}, within=60, every=0.25, what="the others say their ends")
    assert flow.listed(topic) == {topic: {**last, 1: 10}}


def _ends(flow: MirroredFlow, topic: str) -> dict[int, int]:
    return {number: row.upstream for number, row in flow.progress(topic).items() if row.located or row.begins}


def test_paused_flow_after_a_kill_locates_ends_also_of_a_removed_slot(mirror: Mirror, topic: str) -> None:
    flow = mirror.flow
    last = last_on_target(flow, topic)
    file = mirror.config
    file.write_text(file.read_text().replace("tasks.max = 2", "tasks.max = 1"))
    lockstep("pause", file, "--flow", str(flow))
    mirror.data_plane.start()
    wait_until(lambda: flow.located(topic) == last, within=90, every=0.25, what="the ends are written down")
    assert last_on_target(flow, topic) == last, "nothing is copied while it is paused"
    wait_until(lambda: _started(flow) == [0], within=60, every=0.25, what="slot 1 is spoken for")
    assert flow.assigned(topic) == {0: set(range(PARTITIONS)), 1: set()}
    handback(mirror, "--stop")
    assert flow.mm2_progress(topic) == last


def test_paused_partitions_locate_their_ends_once_the_source_is_back(
    mirror: Mirror, topic: str, broker_a: Broker
) -> None:
    flow = mirror.flow
    last = last_on_target(flow, topic)
    lockstep("pause", mirror.config, "--flow", str(flow))
    broker_a.suspend()
    try:
        mirror.data_plane.start()
        wait_until(lambda: _all_paused(flow, topic), within=90, every=0.25, what="every partition rests")
        assert sum(row.beyond for row in flow.progress(topic).values()) > 0, "the source alone knows the ends"
    finally:
        broker_a.resume()
    wait_until(lambda: flow.located(topic) == last, within=90, every=0.25, what="the ends are written down")
    assert last_on_target(flow, topic) == last, "nothing is copied while it is paused"


def _all_paused(flow: MirroredFlow, topic: str) -> bool:
    rows = flow.progress(topic).values()
    return len(rows) == PARTITIONS and all(row.phase == "paused" for row in rows)
