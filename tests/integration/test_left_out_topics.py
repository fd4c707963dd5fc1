"""Topics that a name leaves out, or lets in: cycles, one cluster under two aliases, heartbeats of a user's own
(`docs/guides/topics.md`)."""

import time
import uuid
from functools import partial
from pathlib import Path

import pytest

from lockstep_state.events import Event, decode_event
from lockstep_state.names import Flow, events_topic, state_topic
from lockstep_state.rows.state_rows import MirroredTopic, decode_row
from tests.support import eventually
from tests.support.broker import Broker
from tests.support.clusters import create_topic, delete_topic, read_topic, topic_names
from tests.support.services import ServiceProcess, two_cluster_file

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]

TOPIC_SYNC = "lockstep_topic_sync"
ROUNDS_S = 12.0
wait_until = partial(eventually.wait_until, within=60.0, every=0.5)


def topics(broker: Broker) -> set[str]:
    return topic_names(broker.bootstrap)


def rows(broker: Broker, flow: Flow) -> dict[str, MirroredTopic]:
    rows_by_topic = {}
    for record in read_topic(broker.bootstrap, state_topic(flow)):
        decoded = decode_row(record.key or b"", record.value)
        if isinstance(decoded, MirroredTopic):
            rows_by_topic[decoded.source_topic] = decoded
    return rows_by_topic


def events(broker: Broker, flow: Flow, kind: str) -> list[Event]:
    decoded = [decode_event(r.value or b"") for r in read_topic(broker.bootstrap, events_topic(flow))]
    return [event for event in decoded if event.kind == kind]


def test_topic_left_out_by_its_name_is_named_and_mirrored_if_no_copy(
    tmp_path: Path, broker_a: Broker, broker_b: Broker
) -> None:
    mark = uuid.uuid4().hex[:6]
    flow = Flow(f"s{mark}", f"t{mark}")
    no_copy, copy, plain = f"pay{mark}.{flow.target}.v{mark}", f"{flow.target}.orders{mark}", f"orders{mark}"
    for broker, name in ((broker_a, no_copy), (broker_a, copy), (broker_a, plain), (broker_b, plain)):
        create_topic(broker.bootstrap, name, partitions=1)
    lines = (f"{flow}.enabled = true", f"topics = .*{mark}.*", "emit.heartbeats.enabled = false")
    clusters = (flow.source, broker_a.bootstrap), (flow.target, broker_b.bootstrap)
    with ServiceProcess(TOPIC_SYNC, two_cluster_file(tmp_path, *clusters, *lines), str(flow)) as service:
        wait_until(lambda: f"{flow.source}.{plain}" in topics(broker_b), what="the other topic is mirrored")
        rows_by_topic = wait_until(lambda: rows(broker_b, flow).keys() >= {no_copy, copy} and rows(broker_b, flow))
        assert {rows_by_topic[name].phase for name in (no_copy, copy)} == {"left-out"}
        assert f"{flow.target} has no such topic: lockstep.cycles=exact mirrors it" in rows_by_topic[no_copy].note
        assert f"a copy of {plain} of {flow.target}" in rows_by_topic[copy].note
        assert "has no such topic" not in rows_by_topic[copy].note
        time.sleep(ROUNDS_S)
        levels = {line["subject"]: line["level"] for line in service.said("topic left out")}
        assert levels == {no_copy: "warning", copy: "info"}
        assert len(events(broker_b, flow, "TopicLeftOut")) == 2
        assert f'lockstep_topics{{flow="{flow}",phase="left-out"}} 2.0' in service.page("/metrics")[1]
        assert service.stop() == 0
    exact = two_cluster_file(tmp_path, *clusters, *lines, "lockstep.cycles = exact")
    with ServiceProcess(TOPIC_SYNC, exact, str(flow)):
        wait_until(lambda: f"{flow.source}.{no_copy}" in topics(broker_b), what="what is no copy is mirrored")
        time.sleep(ROUNDS_S)
        assert f"{flow.source}.{copy}" not in topics(broker_b)
        # What is once decided stays so, whatever becomes of the originals.
        delete_topic(broker_b.bootstrap, plain)
        create_topic(broker_b.bootstrap, f"v{mark}", partitions=1)
        time.sleep(ROUNDS_S)
        assert f"{flow.source}.{copy}" not in topics(broker_b)
        phases = {name: row.phase for name, row in rows(broker_b, flow).items()}
        assert phases == {no_copy: "mirrored", copy: "left-out", plain: "mirrored"}


def test_cluster_under_two_aliases_copies_no_copies(tmp_path: Path, broker_a: Broker) -> None:
    mark = uuid.uuid4().hex[:6]
    there, back = Flow(f"s{mark}", f"t{mark}"), Flow(f"t{mark}", f"s{mark}")
    create_topic(broker_a.bootstrap, f"orders{mark}", partitions=1)
    clusters = (there.source, broker_a.bootstrap), (there.target, broker_a.bootstrap)
    lines = (f"{there}.enabled = true", f"{back}.enabled = true", f"topics = .*{mark}.*")
    with ServiceProcess(TOPIC_SYNC, two_cluster_file(tmp_path, *clusters, *lines)) as service:
        copies = {f"{alias}.orders{mark}" for alias in (there.source, there.target)}
        wait_until(lambda: copies <= topics(broker_a), what="both copies")
        time.sleep(ROUNDS_S)
        made = {name for name in topics(broker_a) if mark in name and not name.startswith("mm2-lockstep")}
        assert {name for name in made if "orders" in name} == {f"orders{mark}", *copies}
        assert len(service.said("one cluster under two aliases")) == 2


def test_user_topic_ending_in_heartbeats_keeps_its_name_if_set(
    tmp_path: Path, broker_a: Broker, broker_b: Broker
) -> None:
    mark = uuid.uuid4().hex[:6]
    flow = Flow(f"s{mark}", f"t{mark}")
    name = f"device-{mark}-heartbeats"
    create_topic(broker_a.bootstrap, name, partitions=1)
    clusters = (flow.source, broker_a.bootstrap), (flow.target, broker_b.bootstrap)
    identity = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    lines = (f"{flow}.enabled = true", f"topics = .*{mark}.*", f"replication.policy.class = {identity}")
    with ServiceProcess(TOPIC_SYNC, two_cluster_file(tmp_path, *clusters, *lines), str(flow)):
        wait_until(lambda: f"{flow.source}.{name}" in topics(broker_b), what="it is renamed, as in MirrorMaker 2")
        noted = wait_until(lambda: (row := rows(broker_b, flow).get(name)) and row.phase == "mirrored" and row)
        assert noted.note.startswith("renamed although names are kept")
    exact = two_cluster_file(tmp_path, *clusters, *lines, "lockstep.heartbeats.topics = exact")
    with ServiceProcess(TOPIC_SYNC, exact, str(flow)):
        wait_until(lambda: name in topics(broker_b), what="it keeps its name")
