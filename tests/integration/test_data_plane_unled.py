"""Slots go on while nobody leads, and end when another instance does (`unled.py`, decision 0047)."""

import uuid
from pathlib import Path

import psutil
import pytest

from lockstep_state.rows.state_rows import SlotStatus
from tests.conftest import Pair
from tests.support.clusters import create_topic, unique_name
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.proxy import Proxy
from tests.support.traffic import Traffic

MARK = f"u{uuid.uuid4().hex[:6]}"
STANDS_DOWN_WITHIN = LEADS_WITHIN = ENDS_WITHIN = 60.0


def runs_of(flow: MirroredFlow) -> dict[int, str]:
    """Which run of each slot spoke last."""
    return {status.slot: status.run for status in flow.rows(SlotStatus)}


def test_a_target_that_was_away_finds_the_same_slots(mirror: Mirror, there: MirroredFlow, proxy_b: Proxy) -> None:
    topic = create_topic(there.source, unique_name("there-unled"), partitions=2)
    flow, driver = str(there), mirror.data_plane
    with Traffic(there.source, topic, partitions=2, rate=300):
        there.wait_for_more(topic, 100)
        runs = runs_of(there)
        down, up = (len(driver.said(word, flow=flow)) for word in ("standing down", "leading"))
        proxy_b.refuse()
        wait_until(lambda: len(driver.said("standing down", flow=flow)) > down, within=STANDS_DOWN_WITHIN)
        proxy_b.heal()
        there.wait_for_more(topic, 100)
        wait_until(lambda: len(driver.said("leading", flow=flow)) > up, within=LEADS_WITHIN, what="it leads again")
        there.wait_for_more(topic, 100)
    there.wait_copied(topic)
    there.wait_written_down(topic)
    assert runs_of(there) == runs
    assert there.compared(topic).equal
    # Whom the driver has found again it can order about.
    paused = there.ask("pause", f"topic:{topic}")
    assert paused.kind != "CommandRefused"
    wait_until(lambda: {row.phase for row in there.progress(topic).values()} == {"paused"}, within=LEADS_WITHIN)


@pytest.mark.long
def test_driver_stopped_while_the_target_is_away_ends_its_slots(pair: Pair, proxy_b: Proxy, tmp_path: Path) -> None:
    a, b = (pair.a.bootstrap,) * 2, (pair.b.bootstrap, proxy_b.bootstrap)
    with Mirror.one_flow(tmp_path, MARK, a, b) as one:
        topic = create_topic(one.flow.source, unique_name(MARK), partitions=2)
        with Traffic(one.flow.source, topic, partitions=2, rate=300):
            one.flow.wait_for_more(topic, 100)
            proxy_b.refuse()
            wait_until(lambda: one.data_plane.said("slots go on"), within=STANDS_DOWN_WITHIN)
            processes = one.processes()
            assert one.data_plane.stop(within=ENDS_WITHIN) == 0
            _, alive = psutil.wait_procs(processes, timeout=ENDS_WITHIN)
            assert alive == []


@pytest.mark.long
def test_frozen_driver_leaves_its_slots_to_the_new_leader(pair: Pair, tmp_path: Path) -> None:
    """They end by themselves, for their driver can tell them nothing."""
    a, b = (pair.a.bootstrap,) * 2, (pair.b.bootstrap,) * 2
    with Mirror.one_flow(tmp_path, MARK, a, b) as one:
        flow, two = one.flow, Mirror(one.config, [one.flow], instance="second")
        topic = create_topic(flow.source, unique_name(MARK), partitions=2)
        with two.data_plane, Traffic(flow.source, topic, partitions=2, rate=300):
            two.data_plane.wait_ready()
            flow.wait_for_more(topic, 300)
            leads = wait_until(lambda: leading(one, two), within=LEADS_WITHIN, what="the slot of one of them copies")
            other = two if leads is one else one
            runs, worker = runs_of(flow), leads.copying_worker()
            driver = leads.processes()[0]
            driver.suspend()
            try:
                wait_until(lambda: runs_of(flow) != runs, within=ENDS_WITHIN, what="the other's slot copies")
                wait_until(lambda: not leads.is_connected(worker), within=ENDS_WITHIN, what="the first's slot ends")
                flow.wait_for_more(topic, 100)
            finally:
                driver.resume()
            wait_until(lambda: leads.data_plane.said("slots go on"), within=ENDS_WITHIN, what="its driver finds out")
            flow.wait_for_more(topic, 500)
            assert leading(one, two) is other
            assert leads.data_plane.running
        flow.wait_copied(topic)
        assert flow.compared(topic).equal
        assert flow.events("PartitionHalted") == []


def leading(*mirrors: Mirror) -> Mirror | None:
    """The one whose slots alone copy."""
    copying = [mirror for mirror in mirrors if any(mirror.is_connected(worker) for worker in mirror.workers())]
    return copying[0] if len(copying) == 1 else None
