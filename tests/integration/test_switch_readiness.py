"""A running flow becomes ready to switch, and names what prevents it, in `lockstep status` and on the driver's page."""

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from tests.support.broker import Broker
from tests.support.clusters import Record, commit_offset, create_topic, delete_records, produce
from tests.support.commands import lockstep
from tests.support.eventually import wait_until
from tests.support.metrics import read_page, values
from tests.support.mirror import COPIED_WITHIN, SOURCE_CONNECTOR, Mirror, MirroredFlow
from tests.support.services import ServiceProcess

RECORDS = 100
Expect = Callable[..., None]


@pytest.fixture
def mirrored(tmp_path: Path, broker_a: Broker, broker_b: Broker) -> Iterator[Mirror]:
    """topic-sync and the data plane of a flow that syncs its groups."""
    a, b = ((broker.bootstrap, broker.bootstrap) for broker in (broker_a, broker_b))
    lines = (
        "sync.topic.acls.enabled = false",
        "emit.heartbeats.enabled = false",
        "heartbeats.replication.enabled = false",
        "checkpoints.topic.replication.factor = 1",
        "emit.checkpoints.interval.seconds = 1",
        "sync.group.offsets.enabled = true",
        "sync.group.offsets.interval.seconds = 1",
    )
    with Mirror.one_flow(tmp_path, f"ready{uuid.uuid4().hex[:6]}", a, b, *lines) as mirror:
        yield mirror


def topic_with_records(there: MirroredFlow) -> str:
    topic = create_topic(there.source, f"{there.flow.source.removeprefix('s')}-orders")
    produce(there.source, topic, [Record(value=b"%d" % n) for n in range(RECORDS)])
    return topic


def expected(mirror: Mirror) -> Expect:
    """Wait until both say that exactly these reasons prevent a switch, each with its subject."""
    flow = str(mirror.flow)

    def on_page(*reasons: str) -> bool:
        page = read_page(mirror.data_plane.page("/metrics")[1])
        counts = {labels["reason"]: count for labels, count in page.get("lockstep_switch_blockers", ())}
        assert counts, "the driver does not lead yet"
        assert {reason for reason, count in counts.items() if count} == set(reasons), counts
        assert values(page, "lockstep_switch_ready", flow=flow) == [0 if reasons else 1]
        return True

    def in_status(*found: tuple[str, str], code: int) -> list[dict[str, Any]]:
        said = lockstep("status", mirror.config, "--flow", flow, "--output", "json", code=code)
        (body,) = json.loads(said)["flows"]
        blockers: list[dict[str, Any]] = body["switch_blockers"]
        assert [(blocker["reason"], blocker["subject"]) for blocker in blockers] == list(found), blockers
        assert body["switch_ready"] is not bool(found)
        return blockers or [{}]

    def expect(*found: tuple[str, str], code: int = 0, text: str = "") -> None:
        reasons = {reason for reason, _ in found}
        wait_until(lambda: on_page(*reasons), within=COPIED_WITHIN, every=0.5, what=f"the page says {reasons}")
        blockers = wait_until(
            lambda: in_status(*found, code=code), within=COPIED_WITHIN, every=0.5, what=f"status says {found}"
        )
        assert text in str(blockers[0].get("text", ""))

    return expect


@pytest.mark.long
def test_flow_is_ready_once_copied_and_names_each_reason_when_not(mirrored: Mirror) -> None:
    there, expect = mirrored.flow, expected(mirrored)
    topic = topic_with_records(there)
    group = f"{topic}-billing"
    commit_offset(there.source, group, topic, 0, RECORDS)
    expect(("service-failing", "checkpoint"), ("groups-unknown", ""), code=1, text="no replica of it runs")

    with ServiceProcess("lockstep_checkpoint", mirrored.config, str(there)):
        expect()
        assert "ready to switch: yes" in lockstep("status", mirrored.config, "--flow", str(there))

        member = Consumer(
            {
                "bootstrap.servers": there.target,
                "group.id": group,
                "client.id": "app-7",
                "enable.auto.commit": "false",
                "auto.offset.reset": "earliest",
            }
        )
        member.subscribe([there.remote(topic)])
        wait_until(lambda: member.poll(0.5) is not None or bool(member.assignment()), within=COPIED_WITHIN)
        expect(("group-in-use", group), text="app-7 at ")
        member.close()
        expect()

        there.ask("stop", SOURCE_CONNECTOR)
        expect(("stopped", SOURCE_CONNECTOR))
        there.ask("resume", SOURCE_CONNECTOR)
        expect()

        there.ask("pause", f"topic:{topic}")
        expect(("paused", f"topic:{topic}"))
        produce(there.source, topic, [Record(value=b"%d" % n) for n in range(10)])
        delete_records(there.source, topic, before=RECORDS + 5)
        there.ask("resume", f"topic:{topic}")
        expect(("partition-halted", f"{topic}-0"), code=1)
        said = lockstep("status", mirrored.config, "--flow", str(there), code=1)
        assert f"ready to switch: no: partition {topic}-0 is halted and waits for a decision" in said
