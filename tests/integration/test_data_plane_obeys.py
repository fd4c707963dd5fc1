"""Paused, stopped and begun anew: what each verb does to the records of a flow (`partition-phases.md`)."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep_state.rows.state_rows import PartitionProgress, Restarts, SlotStatus
from tests.conftest import Pair
from tests.integration.test_data_plane_topics import MAX_MESSAGE_BYTES, holders, numbered, small_target
from tests.support.clusters import create_topic, produce, read_topic, set_configs, unique_name
from tests.support.eventually import wait_until
from tests.support.mirror import SOURCE_CONNECTOR, Mirror, MirroredFlow
from tests.support.traffic import Traffic

SOURCE = SOURCE_CONNECTOR


@pytest.fixture
def flow(there: MirroredFlow) -> Iterator[MirroredFlow]:
    yield there
    for subject in (SOURCE, "slot:0", "slot:1"):
        there.ask("resume", subject)


def wait_phase(flow: MirroredFlow, topic: str, phase: str, partitions: int) -> dict[int, PartitionProgress]:
    def all_are() -> dict[int, PartitionProgress] | None:
        progress = flow.progress(topic)
        return progress if len(progress) == partitions and {row.phase for row in progress.values()} == {phase} else None

    return wait_until(all_are, within=60, every=0.1, what=f"{topic} is {phase}")


def stands_still(flow: MirroredFlow, topic: str) -> bool:
    """Whether no progress is written down for longer than a slot takes to start again."""
    before = flow.progress(topic)
    time.sleep(4)
    return [row.upstream for row in before.values()] == [row.upstream for row in flow.progress(topic).values()]


def runs(flow: MirroredFlow) -> dict[int, str]:
    return {row.slot: row.run for row in flow.rows(SlotStatus) if row.phase == "started"}


@pytest.mark.long
def test_paused_topic_drains_and_resumes_at_the_next_record(there: MirroredFlow) -> None:
    topic = create_topic(there.source, unique_name("there-paused"), partitions=2)
    with Traffic(there.source, topic, partitions=2, rate=300):
        wait_until(lambda: len(there.progress(topic)) == 2, within=90, every=0.25)
        assert there.ask("pause", f"topic:{topic}").detail["wanted"] == "paused"
        paused_at = wait_phase(there, topic, "paused", 2)
        there.ask("resume", f"topic:{topic}")
        there.ask("pause", f"partition:{topic}-1")
        wait_until(lambda: there.progress(topic)[0].upstream > paused_at[0].upstream + 100, within=60, every=0.1)
        assert there.progress(topic)[1].phase == "paused"
        assert there.compared(topic).missing, "what was produced meanwhile waits"
        there.ask("resume", f"partition:{topic}-1")
    there.wait_copied(topic)
    wait_phase(there, topic, "copying", 2)


def test_restart_resumes_a_halted_partition_after_its_cause_is_removed(there: MirroredFlow) -> None:
    topic = small_target(there, "restarted")
    produce(there.source, topic, [*numbered(5), *numbered(1, size=2 * MAX_MESSAGE_BYTES), *numbered(5, stem=b"after")])
    there.wait_event("PartitionHalted", f"{topic}-0")
    set_configs(there.target, there.remote(topic), {"max.message.bytes": str(10 * MAX_MESSAGE_BYTES)})
    there.ask("refresh", SOURCE)
    wait_until(
        lambda: ("max.message.bytes", str(10 * MAX_MESSAGE_BYTES)) in there.wait_mirrored(topic).target_configs,
        within=60,
    )
    there.ask("restart", f"partition:{topic}-0")
    there.wait_copied(topic)
    assert there.progress(topic)[0].phase == "copying"


@pytest.mark.long
def test_slot_pause_stop_and_restart_leave_other_partitions_running(flow: MirroredFlow) -> None:
    topic = create_topic(flow.source, unique_name("there-slots"), partitions=4)
    with Traffic(flow.source, topic, partitions=4, rate=200):
        wait_until(lambda: len(flow.progress(topic)) == 4, within=90, every=0.25)
        had = holders(flow, topic)
        assert {slot for slot, _ in had.values()} == {0, 1}
        mine, other = (next(n for n, (slot, _) in had.items() if slot == wanted) for wanted in (0, 1))

        flow.ask("pause", "slot:0")
        wait_until(lambda: flow.progress(topic)[mine].phase == "paused", within=60, every=0.1)
        flow.ask("stop", "slot:0")
        wait_until(lambda: 0 not in runs(flow), within=60, every=0.1, what="slot 0 has ended")
        flow.ask("restart", "slot:1")
        before = flow.progress(topic)[other].upstream
        wait_until(lambda: runs(flow).get(1, had[other][1]) != had[other][1], within=60, every=0.1)
        wait_until(lambda: flow.progress(topic)[other].upstream > before, within=60, every=0.1)
        assert 0 not in runs(flow)
        new = create_topic(flow.source, unique_name("there-slots-new"), partitions=2)
        produce(flow.source, new, [*numbered(10), *numbered(10, partition=1)])
        flow.wait_copied(new)
        assert {slot for slot, _ in holders(flow, new).values()} == {1}, "who rests is given nothing to wait with it"
        flow.ask("resume", "slot:0")
        wait_until(lambda: 0 in runs(flow), within=60, every=0.1, what="slot 0 is there again")
    flow.wait_copied(topic)
    assert holders(flow, topic).keys() == had.keys()
    assert flow.events("SlotFailed") == []


def test_mm2_137_138_copy_continues_after_alter_and_restarts_after_reset(flow: MirroredFlow) -> None:
    back, forward, reset = (create_topic(flow.source, unique_name(f"there-{stem}")) for stem in ("to", "fro", "reset"))
    for topic in (back, forward, reset):
        produce(flow.source, topic, numbered(100))
    wanted = {topic: flow.wait_copied(topic) for topic in (back, forward, reset)}
    flow.wait_written_down(back)
    refused = flow.alter(back, 49)
    assert (refused.kind, "stop it first" in refused.detail["reason"]) == ("CommandRefused", True)

    slots = runs(flow)
    flow.ask("pause", SOURCE)
    wait_phase(flow, reset, "paused", 1)
    assert runs(flow) == slots, "a paused connector keeps its slots, and a stopped one does not"
    flow.ask("stop", SOURCE)
    produce(flow.source, forward, numbered(20, stem=b"later"))
    assert flow.alter(back, 49).kind == "OffsetsAltered", "once every slot has ended"
    assert runs(flow) == {}
    beyond = flow.alter(forward, 120)
    assert (beyond.kind, "its last offset is 119" in beyond.detail["reason"]) == ("CommandRefused", True)
    assert flow.alter(forward, 109).kind == "OffsetsAltered"
    assert flow.alter(reset, None).kind == "OffsetsAltered"
    assert flow.listed(back, forward, reset) == {back: {0: 49}, forward: {0: 109}, reset: {}}
    assert flow.mm2_progress(forward)[0] == 109
    flow.ask("resume", SOURCE)

    copies = {
        back: [*wanted[back], *wanted[back][50:]],
        forward: [*wanted[forward], *read_topic(flow.source, forward)[110:]],
        reset: [*wanted[reset], *wanted[reset]],
    }
    for topic, expected in copies.items():
        flow.wait_holds(topic, expected)
        wait_phase(flow, topic, "copying", 1)
        assert flow.events("PartitionHalted", topic) == flow.events("GapFound", topic) == []


@pytest.mark.long
def test_a_slot_that_fails_too_often_waits_for_a_restart(pair: Pair, tmp_path: Path) -> None:
    mark = unique_name("spent").replace("-", "")
    a, b = (pair.a.bootstrap,) * 2, (pair.b.bootstrap,) * 2
    with Mirror.one_flow(tmp_path, mark, a, b, "lockstep.auto.restart.max = 1") as mirror:
        flow = mirror.flow
        topic = create_topic(flow.source, f"{mark}-topic")
        with Traffic(flow.source, topic, rate=100):
            flow.wait_for_more(topic)
            mirror.copying_worker().kill()
            flow.wait_event("SlotFailed")
            flow.wait_for_more(topic, 50)
            mirror.copying_worker().kill()
            wait_until(lambda: [row.phase for row in flow.rows(Restarts)] == ["failed"], within=60, every=0.25)
            assert "waits for the command restart slot:0" in mirror.data_plane.said("slot failed")[-1]["text"]
            mirror.kill_data_plane()
            mirror.data_plane.start()
            mirror.data_plane.hear("spark ready")
            paused_at = flow.progress(topic)[0].upstream
            assert flow.ask("restart", "slot:0").kind == "Restarted"
            wait_until(lambda: flow.progress(topic)[0].upstream > paused_at, within=60, every=0.25)
            assert [row.phase for row in flow.rows(Restarts)] == ["running"]
        flow.wait_copied(topic)


@pytest.mark.long
def test_kills_during_pause_and_resume_lose_and_double_nothing(pair: Pair, tmp_path: Path) -> None:
    mark = unique_name("resting").replace("-", "")
    a, b = (pair.a.bootstrap,) * 2, (pair.b.bootstrap,) * 2
    with Mirror.one_flow(tmp_path, mark, a, b) as mirror:
        flow = mirror.flow
        topic = create_topic(flow.source, f"{mark}-topic", partitions=2)
        with Traffic(flow.source, topic, partitions=2, rate=400):
            for subject in (f"topic:{topic}", SOURCE):
                flow.wait_for_more(topic, 200)
                flow.ask("pause", subject)
                mirror.copying_worker().kill()
                wait_until(lambda: stands_still(flow, topic), within=60, what="nothing moves any more")
                mirror.kill_data_plane()
                flow.ask("resume", subject)
                mirror.data_plane.start()
                flow.wait_for_more(topic, 200)
                flow.ask("restart", subject)
                mirror.copying_worker().kill()
        flow.wait_copied(topic)
        assert flow.events("PartitionHalted") == []


@pytest.mark.long
def test_restart_of_a_hanging_slot_starts_it_anew(pair: Pair, tmp_path: Path) -> None:
    mark = unique_name("hangs").replace("-", "")
    a, b = (pair.a.bootstrap,) * 2, (pair.b.bootstrap,) * 2
    with Mirror.one_flow(tmp_path, mark, a, b) as mirror:
        flow = mirror.flow
        topic = create_topic(flow.source, f"{mark}-topic")
        with Traffic(flow.source, topic, rate=100):
            flow.wait_for_more(topic)
            hanging = mirror.copying_worker()
            hanging.suspend()
            flow.ask("restart", "slot:0")
            mirror.data_plane.hear("slot cancelled")
            flow.wait_for_more(topic, 100)
            wait_until(lambda: not hanging.is_running(), what="what hung is killed")
        flow.wait_copied(topic)
        assert flow.events("SlotFrozen") == flow.events("SlotFailed") == []
