"""Flows as connectors of Kafka Connect: names, states, and the bodies that its clients read."""

from pathlib import Path
from typing import Any

import pytest

from lockstep_config import FlowSettings, load
from lockstep_console.api.connect import allowed_methods, failed_scopes
from lockstep_console.connect_view import (
    SHOWN,
    ConnectorState,
    FlowConnector,
    WorkState,
    connector_config,
    connector_info,
    connector_offsets,
    connector_state,
    connector_status,
    connector_topics,
    flow_connectors,
    plugins,
    server_info,
    target_ids,
    task_list,
)
from lockstep_state.commands.command_vocabulary import Connector
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import (
    ClusterCapabilities,
    DesiredState,
    FlowPulse,
    Leader,
    PartitionProgress,
    Restarts,
    Row,
    SlotStatus,
    SourceGroupsStatus,
)
from tests.support import reasons
from tests.support.reports import NOW, at_work, progress, reported, topic

SOURCE, CHECKPOINT, HEARTBEAT = Connector.SOURCE, Connector.CHECKPOINT, Connector.HEARTBEAT
FILE = """
clusters = A, B
A.bootstrap.servers = a1:1, a2:1
B.bootstrap.servers = b:2
A.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="hunter2";
A.security.protocol = SASL_PLAINTEXT
A.sasl.mechanism = PLAIN
A->B.enabled = true
A->B.topics = orders.*, bills
"""
LEADERS = tuple(
    Leader(service=name, instance=f"pod-{name}", at_ms=5)
    for name in ("topic-sync", "acl-sync", "data-plane", "checkpoint-0", "heartbeat")
)
ALL_RUN = {"topic-sync": 1, "acl-sync": 1, "data-plane": 1, "checkpoint": 1, "heartbeat": 1}
WORKING = (*LEADERS, topic(), progress(), *at_work(("t", 0)))


def flows(folder: Path, *lines: str) -> tuple[FlowSettings, ...]:
    file = folder / "mm2.properties"
    file.write_text(FILE + "\n".join(lines) + "\n")
    return load(file, {}).flows


@pytest.fixture
def source(tmp_path: Path) -> FlowConnector:
    """Return the source connector of A->B."""
    return flow_connectors(flows(tmp_path))["A->B.MirrorSourceConnector"]


def wanted(connector: Connector, phase: str) -> DesiredState:
    return DesiredState(scope=f"connector:{connector.value}", phase=phase)


def states(connector: Connector, *rows: Row, **facts: Any) -> tuple[str, dict[int, str]]:
    """Return the states of a connector and of its tasks."""
    state = connector_state(connector, reported(*rows, **{"replicas": ALL_RUN, **facts}))
    return state.connector.state, {number: task.state for number, task in state.tasks.items()}


def traces(connector: Connector, *rows: Row, **facts: Any) -> list[str]:
    """Return the traces of a connector and of its tasks, without empty ones."""
    state = connector_state(connector, reported(*rows, **{"replicas": ALL_RUN, **facts}))
    return [each.trace for each in (state.connector, *state.tasks.values()) if each.trace]


# -- names -------------------------------------------------------------------------------------------------------------


def test_flow_has_the_connectors_for_which_the_file_has_work(tmp_path: Path) -> None:
    names = ["A->B.MirrorSourceConnector", "A->B.MirrorCheckpointConnector", "A->B.MirrorHeartbeatConnector"]
    assert list(flow_connectors(flows(tmp_path))) == [*names, "B->A.MirrorHeartbeatConnector"]
    off = flows(tmp_path, "emit.heartbeats.enabled = false", "A->B.emit.checkpoints.enabled = false")
    assert list(flow_connectors(off)) == names[:1]


# -- states ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("connector", [CHECKPOINT, HEARTBEAT])
def test_connector_without_slots_has_one_task(connector: Connector) -> None:
    assert states(connector, *LEADERS) == ("RUNNING", {0: "RUNNING"})
    assert states(connector, *LEADERS, wanted(connector, "paused")) == ("PAUSED", {0: "PAUSED"})
    assert states(connector, *LEADERS, wanted(connector, "stopped")) == ("STOPPED", {})
    assert states(connector, *LEADERS, replicas={**ALL_RUN, connector.owner: 0}) == ("UNASSIGNED", {0: "UNASSIGNED"})


@pytest.mark.parametrize(
    ("rows", "facts", "expected"),
    [
        ((), {}, ("RUNNING", {0: "RUNNING"})),
        ((wanted(SOURCE, "paused"),), {}, ("PAUSED", {0: "PAUSED"})),
        ((wanted(SOURCE, "stopped"),), {}, ("STOPPED", {})),
        ((DesiredState(scope="slot:0", phase="paused"),), {}, ("RUNNING", {0: "PAUSED"})),
        ((DesiredState(scope="slot:0", phase="stopped"),), {}, ("RUNNING", {0: "UNASSIGNED"})),
        ((), {"replicas": {**ALL_RUN, "data-plane": 0}}, ("RUNNING", {0: "UNASSIGNED"})),
        ((), {"replicas": {**ALL_RUN, "topic-sync": 0}}, ("UNASSIGNED", {0: "RUNNING"})),
        ((), {"replicas": {**ALL_RUN, "acl-sync": 0}}, ("UNASSIGNED", {0: "RUNNING"})),
        ((), {"replicas": {}, "replicas_unknown": ("topic-sync",)}, ("UNASSIGNED", {0: "RUNNING"})),
        ((), {"replicas": {}}, ("RUNNING", {0: "RUNNING"})),
        ((SlotStatus(slot=1, phase="released", at_ms=NOW),), {}, ("RUNNING", {0: "RUNNING"})),
        ((SlotStatus(slot=1, phase="started", at_ms=NOW),), {}, ("RUNNING", {0: "RUNNING", 1: "RUNNING"})),
        (at_work(("t", 0), heard_ms=NOW - 61_000), {}, ("RUNNING", {0: "UNASSIGNED"})),
    ],
)
def test_source_connector_has_a_task_for_each_slot(
    rows: tuple[Row, ...], facts: dict[str, Any], expected: tuple[str, dict[int, str]]
) -> None:
    assert states(SOURCE, *WORKING, *rows, **facts) == expected


def test_source_connector_without_a_leader_is_unassigned() -> None:
    assert states(SOURCE, topic(), progress()) == ("UNASSIGNED", {})
    assert traces(SOURCE) == ["topic-sync: no replica acts"]


def test_what_failed_as_often_as_allowed_has_failed() -> None:
    spent = Restarts(owner="topic-sync", phase="failed", count=3, cause=reasons.reported("denied"), asked=("",))
    assert states(SOURCE, *WORKING, spent) == ("FAILED", {0: "RUNNING"})
    assert traces(SOURCE, *WORKING, spent) == ["topic-sync: failed 3 times and waits for the command restart: denied"]


def test_slot_with_a_halted_partition_has_failed() -> None:
    halted = progress(phase="halted", case="records-gone", reason="offsets 5 to 9 are gone")
    assert states(SOURCE, *WORKING, halted) == ("RUNNING", {0: "FAILED"})
    assert traces(SOURCE, *WORKING, halted) == ["partition t-0: offsets 5 to 9 are gone"]


def test_trace_names_the_first_halted_partitions_and_counts_the_others() -> None:
    count = SHOWN + 3
    rows = [progress(partition=number, phase="halted", reason="gone") for number in range(count)]
    slot = at_work(*(("t", number) for number in range(count)))
    (trace,) = traces(SOURCE, *LEADERS, topic(partitions=count), *rows, *slot)
    lines = trace.splitlines()
    assert len(lines) == SHOWN + 1
    assert (lines[0], lines[-1]) == ("partition t-0: gone", "and 3 more")


def test_slot_that_tries_again_by_itself_runs_and_says_so() -> None:
    cause = ReasonCode.PART_FAILS.because(reasons.reported("not leader"), what="t-0", more=0)
    failing = SlotStatus(slot=0, phase="started", partitions=1, at_ms=NOW, causes=(("t-0", cause),))
    assert states(SOURCE, *WORKING, failing) == ("RUNNING", {0: "RUNNING"})
    (trace,) = traces(SOURCE, *WORKING, failing)
    assert "not leader" in trace


@pytest.mark.parametrize(
    ("connector", "row"),
    [
        (HEARTBEAT, FlowPulse(source="A", target="B", phase="failing", cause=reasons.reported("gone"))),
        (CHECKPOINT, SourceGroupsStatus(share=0, phase="failing", cause=reasons.reported("gone"))),
    ],
)
def test_work_that_fails_and_is_retried_is_a_failed_task(connector: Connector, row: Row) -> None:
    facts = {"groups_read": ()} if connector is CHECKPOINT else {}
    assert states(connector, *LEADERS, row, **facts) == ("RUNNING", {0: "FAILED"})
    assert traces(connector, *LEADERS, row, **facts) == ["gone"]


def test_unknown_state_is_unassigned_with_the_reason() -> None:
    state = connector_state(SOURCE, None, "cluster B cannot be reached")
    assert state.connector.as_json() == {
        "state": "UNASSIGNED",
        "worker_id": "",
        "trace": "cluster B cannot be reached",
    }
    assert state.tasks == {}
    assert connector_state(SOURCE, None).connector.trace


def test_connector_that_the_report_lacks_is_unassigned() -> None:
    report = reported(services=["heartbeat"])
    assert connector_state(SOURCE, report).connector.state == "UNASSIGNED"


# -- bodies ------------------------------------------------------------------------------------------------------------


def test_status_has_the_fields_of_connect(source: FlowConnector) -> None:
    state = connector_state(SOURCE, reported(*WORKING, replicas=ALL_RUN))
    assert connector_status(source, state) == {
        "name": "A->B.MirrorSourceConnector",
        "connector": {"state": "RUNNING", "worker_id": "pod-topic-sync"},
        "tasks": [{"id": 0, "state": "RUNNING", "worker_id": "pod-data-plane"}],
        "type": "source",
    }


def test_info_and_tasks_have_the_fields_of_connect(source: FlowConnector) -> None:
    info = connector_info(source, [1, 0])
    assert info["tasks"] == [{"connector": source.name, "task": number} for number in (0, 1)]
    assert info.keys() == {"name", "config", "tasks", "type"}
    assert [task["id"] for task in task_list(source, [1, 0])] == info["tasks"]
    assert task_list(source, [0])[0]["config"] == info["config"]


def test_config_is_a_map_of_texts_without_secrets(tmp_path: Path) -> None:
    named = flow_connectors(flows(tmp_path, "tasks.max = 3"))
    configs = {name: connector_config(connector) for name, connector in named.items()}
    assert configs["A->B.MirrorSourceConnector"] == {
        "name": "A->B.MirrorSourceConnector",
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": "a1:1,a2:1",
        "target.cluster.bootstrap.servers": "b:2",
        "topics": "orders.*,bills",
        "topics.exclude": configs["A->B.MirrorSourceConnector"]["topics.exclude"],
        "tasks.max": "3",
        "sync.topic.acls.enabled": "true",
        "sync.topic.configs.enabled": "true",
        "offset-syncs.topic.location": "source",
    }
    assert configs["A->B.MirrorCheckpointConnector"]["emit.checkpoints.interval.seconds"] == "60"
    assert configs["A->B.MirrorHeartbeatConnector"]["emit.heartbeats.interval.seconds"] == "1"
    assert all(isinstance(value, str) for config in configs.values() for value in config.values())
    assert "hunter2" not in str(configs)


def test_topics_are_those_on_the_target(tmp_path: Path) -> None:
    named = flow_connectors(flows(tmp_path))
    report = reported(*WORKING, topic("u"))
    topics = {name: connector_topics(each, report)[name]["topics"] for name, each in named.items() if "A->B" in name}
    assert topics == {
        "A->B.MirrorSourceConnector": ["A.t"],
        "A->B.MirrorCheckpointConnector": ["A.checkpoints.internal"],
        "A->B.MirrorHeartbeatConnector": ["heartbeats"],
    }
    source = named["A->B.MirrorSourceConnector"]
    assert connector_topics(source, None) == {source.name: {"topics": []}}


def test_offsets_are_the_last_copied_ones_in_order(tmp_path: Path, source: FlowConnector) -> None:
    rows = [
        PartitionProgress(topic="u", partition=0, upstream=7),
        PartitionProgress(topic="t", partition=10, upstream=0),
        PartitionProgress(topic="t", partition=2, upstream=41),
        PartitionProgress(topic="t", partition=3, upstream=-1),
        PartitionProgress(topic="t", partition=4, upstream=-1, begins="reset"),
        topic(),
    ]
    offsets = connector_offsets(source, rows)["offsets"]
    assert offsets[0] == {"partition": {"cluster": "A", "partition": 2, "topic": "t"}, "offset": {"offset": 41}}
    assert [(each["partition"]["topic"], each["partition"]["partition"]) for each in offsets] == [
        ("t", 2),
        ("t", 10),
        ("u", 0),
    ]
    checkpoint = flow_connectors(flows(tmp_path))["A->B.MirrorCheckpointConnector"]
    assert connector_offsets(checkpoint, rows) == {"offsets": []}


@pytest.mark.parametrize(("ids", "shown"), [((), None), (("x",), "x"), (("x", "x"), "x"), (("x", "y"), None)])
def test_server_has_the_cluster_of_all_flows_or_none(tmp_path: Path, ids: tuple[str, ...], shown: str | None) -> None:
    of_two = flows(tmp_path, "lockstep.mm2.version = 3.9")
    assert server_info(of_two, "0.1.0", ids) == {
        "version": "3.9.0",
        "commit": "lockstep-0.1.0",
        "kafka_cluster_id": shown,
    }


def test_cluster_id_is_that_of_the_target(source: FlowConnector) -> None:
    rows = [ClusterCapabilities(alias="A", cluster_id="x"), ClusterCapabilities(alias="B", cluster_id="y")]
    assert list(target_ids(source.settings, rows)) == ["y"]
    assert list(target_ids(source.settings, [ClusterCapabilities(alias="B")])) == []


def test_plugins_are_the_classes_of_mirror_maker() -> None:
    assert plugins("4.3.0")[0] == {
        "class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "type": "source",
        "version": "4.3.0",
    }
    assert len(plugins("4.3.0")) == len(Connector)


# -- restarts and methods ----------------------------------------------------------------------------------------------


def scopes_of(connector: FlowConnector, state: str, tasks: dict[int, str], *, tasks_too: bool) -> list[str]:
    whole = ConnectorState(WorkState(state), {number: WorkState(word) for number, word in tasks.items()})
    return [str(scope) for scope in failed_scopes(connector, whole, tasks_too=tasks_too)]


def test_only_what_has_failed_is_restarted(source: FlowConnector, tmp_path: Path) -> None:
    slots = {0: "FAILED", 1: "RUNNING", 2: "UNASSIGNED", 3: "FAILED"}
    assert scopes_of(source, "RUNNING", slots, tasks_too=True) == ["slot:0", "slot:3"]
    assert scopes_of(source, "RUNNING", slots, tasks_too=False) == []
    assert scopes_of(source, "FAILED", slots, tasks_too=True) == ["connector:MirrorSourceConnector"]
    checkpoint = flow_connectors(flows(tmp_path))["A->B.MirrorCheckpointConnector"]
    assert scopes_of(checkpoint, "RUNNING", {0: "FAILED"}, tasks_too=True) == ["connector:MirrorCheckpointConnector"]


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/connectors", ["GET", "POST"]),
        ("/connectors/A->B.MirrorSourceConnector", ["DELETE", "GET"]),
        ("/connectors/x/config/", ["GET", "PATCH", "PUT"]),
        ("/connectors/x/restart", ["POST"]),
        ("/connectors/x/tasks/0/restart", ["POST"]),
        ("/connectors/x/stop", ["PUT"]),
        ("/connectors/x/nothing", []),
        ("/connectors/x/tasks/0/restart/more", []),
    ],
)
def test_path_of_connect_names_its_methods(path: str, methods: list[str]) -> None:
    assert allowed_methods(path) == methods
