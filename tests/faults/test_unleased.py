"""Slots and drivers that are not alone: several at once on the same partitions, with no lease between them: each record
once, in order (`architecture.md` §5, "An append is a compare-and-swap").

They are frozen, woken with old batches in hand, killed and replaced at random moments; the same ones for the same SEED.
"""

import os
import random
import time
import uuid
from pathlib import Path

import psutil
import pytest

from lockstep_state.names import Flow
from tests.conftest import Pair
from tests.faults.counting import Count, count
from tests.faults.numbered import Writer, read_numbers
from tests.faults.unleased import Unleased
from tests.support.clusters import create_topic, end_offsets
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.services import ServiceProcess, two_cluster_file

SLOTS = 4
PARTITIONS = 3
WITHIN = 300.0
LONG = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    ("rate", "strikes", "records"),
    [pytest.param(3_000, 6, 5_000, id="short"), pytest.param(25_000, 60, 1_000_000, id="a million", marks=LONG)],
)
def test_four_slots_without_a_lease(pair: Pair, tmp_path: Path, rate: int, strikes: int, records: int) -> None:
    dice = thrown()
    mark = f"u{uuid.uuid4().hex[:6]}"
    flow = MirroredFlow(Flow(f"s{mark}", f"t{mark}"), pair.a.bootstrap, pair.b.bootstrap)
    file = two_cluster_file(
        tmp_path,
        (flow.flow.source, pair.a.bootstrap),
        (flow.flow.target, pair.b.bootstrap),
        f"{flow}.enabled = true",
        f"{flow}.topics = {mark}-.*",
    )
    topic = create_topic(flow.source, f"{mark}-t", partitions=PARTITIONS)
    with ServiceProcess("lockstep_topic_sync", file, str(flow)) as topic_sync:
        topic_sync.wait_ready()  # then the control topics are there
        flow.wait_mirrored(topic, partitions=PARTITIONS)
    with Unleased(file, flow, topic, PARTITIONS, SLOTS) as slots:
        with Writer(flow.source, topic, partitions=PARTITIONS, rate=rate, log=tmp_path / "writer.log"):
            two_append(slots)
            done = [struck(slots, dice) for _ in range(strikes)]
            wait_until(lambda: written(flow, topic) >= records, within=WITHIN, every=0.2, what="enough is written")
        slots.wake_all()
        counted = wait_copied(slots, flow, topic)
        assert counted.equal, counted
        assert counted.records >= records
        assert {"frozen", "woken", "killed"} <= set(done), "other dice are needed"
        slots.check()
    for kind in ("PartitionHalted", "ForeignWrite"):
        assert flow.events(kind) == []


@pytest.mark.long
@pytest.mark.timeout(900)
def test_two_drivers_at_once(pair: Pair, tmp_path: Path) -> None:
    """Two data planes, and by turns one driver is frozen for so long that the other takes over: when it wakes it still
    believes that it leads, and its slots have copied on all the time."""
    dice = thrown()
    mark = f"d{uuid.uuid4().hex[:6]}"
    a, b = (pair.a.bootstrap,) * 2, (pair.b.bootstrap,) * 2
    with Mirror.one_flow(tmp_path, mark, a, b, slots=2) as first:
        flow = first.flow
        topic = create_topic(flow.source, f"{mark}-t", partitions=PARTITIONS)
        second = ServiceProcess("lockstep_data_plane", first.config, str(flow), instance="second")
        with second, Writer(flow.source, topic, partitions=PARTITIONS, rate=5_000, log=tmp_path / "writer.log"):
            flow.wait_for_more(topic, 1_000, within=WITHIN)
            leader, other = first.data_plane, second
            for _ in range(3):
                frozen = psutil.Process(leader.pid)
                frozen.suspend()
                takes_over(other)
                flow.wait_for_more(topic, dice.randrange(100, 20_000), within=WITHIN)
                frozen.resume()
                flow.wait_for_more(topic, dice.randrange(100, 20_000), within=WITHIN)
                leader, other = other, leader
        wanted, copied = written(flow, topic), flow.remote(topic)
        wait_until(lambda: sum(end_offsets(flow.target, copied).values()) >= wanted, within=WITHIN, what="caught up")
        flow.wait_written_down(topic, within=WITHIN)
        counted = count(read_numbers(flow.source, topic), read_numbers(flow.target, copied))
        assert counted.equal, counted
        for kind in ("PartitionHalted", "ForeignWrite"):
            assert flow.events(kind) == []


def two_append(slots: Unleased) -> None:
    """Returns once two slots have appended. The first one is frozen meanwhile: while it appends, another slot on a busy
    machine may never be in time for the log's end that it has read."""
    first = wait_until(slots.appended_by, within=WITHIN, every=0.2, what="a slot appends")
    slots.freeze(min(first))
    wait_until(lambda: len(slots.appended_by()) > 1, within=WITHIN, every=0.2, what="another slot appends")
    slots.wake_all()


def takes_over(driver: ServiceProcess) -> None:
    """Returns once it says that it leads, anew."""
    terms = len(driver.said("leading"))
    wait_until(lambda: len(driver.said("leading")) > terms, within=WITHIN, what="the other driver leads")


def thrown() -> random.Random:
    """The dice of this run."""
    seed = int(os.environ.get("SEED") or 4_711)
    print(f"SEED={seed}")  # noqa: T201 - pytest shows it with the failure
    return random.Random(seed)


def struck(slots: Unleased, dice: random.Random) -> str:
    time.sleep(dice.uniform(0.05, 0.8))  # not to wait for anything: where in the pipeline a strike falls is to vary
    return slots.strike(dice)


def written(flow: MirroredFlow, topic: str) -> int:
    return sum(end_offsets(flow.source, topic).values())


def wait_copied(slots: Unleased, flow: MirroredFlow, topic: str) -> Count:
    """Counted once the copy is as long as the source, and again after every slot had time to add what it should not."""
    wanted = written(flow, topic)
    copied = flow.remote(topic)
    wait_until(lambda: sum(end_offsets(flow.target, copied).values()) >= wanted, within=WITHIN, what="caught up")
    flow.wait_written_down(topic, within=WITHIN)
    slots.check()
    return count(read_numbers(flow.source, topic), read_numbers(flow.target, copied))
