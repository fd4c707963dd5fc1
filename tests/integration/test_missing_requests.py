"""A target that lacks requests of administration, as services do: it is said once, and the rest goes on."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep_state.kafka.kafka_apis import APIS
from lockstep_state.kafka.kafka_requests import KafkaRequest as Request
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import AclStatus, ClusterCapabilities, MirroredTopic
from tests.support.broker import Broker
from tests.support.cluster_profile import ClusterProfile, ConfigRules, ReplicationRule
from tests.support.clusters import config_of, create_topic, set_configs
from tests.support.control import events, last_row
from tests.support.doctor_runs import run_doctor
from tests.support.eventually import wait_until
from tests.support.planned_flow import PlannedFlow, hazards
from tests.support.proxy import Proxy
from tests.support.services import ServiceProcess, one_flow_file

LACKS: dict[int, int] = {
    **dict.fromkeys((Request.DESCRIBE_ACLS, Request.CREATE_ACLS, Request.INCREMENTAL_ALTER_CONFIGS), -1),
    **dict.fromkeys((Request.DESCRIBE_LOG_DIRS, Request.DESCRIBE_QUORUM, Request.DESCRIBE_CLIENT_QUOTAS), -1),
    **{Request.METADATA: 7, Request.DESCRIBE_GROUPS: 2},
}
"""ACLs, increments of configs, and what is only shown; rights are not said."""
WITHIN = 60.0


@pytest.fixture
def lacking(proxy_b: Proxy) -> Iterator[Proxy]:
    """B's proxy, whose brokers lack them."""
    proxy_b.announce(LACKS)
    yield proxy_b
    proxy_b.announce({})


@pytest.fixture
def planned(tmp_path: Path, broker_a: Broker, lacking: Proxy) -> PlannedFlow:
    mark = uuid.uuid4().hex[:6]
    flow = Flow(f"s{mark}", f"t{mark}")
    lines = (
        *("sync.topic.configs.interval.seconds = 1", "sync.topic.acls.interval.seconds = 1", "replication.factor = 1"),
        f"{flow.target}->{flow.source}.emit.heartbeats.enabled = false",
    )
    file = one_flow_file(tmp_path, flow, mark, broker_a.bootstrap, lacking.bootstrap, *lines)
    return PlannedFlow(flow, file, mark, broker_a.bootstrap, lacking.bootstrap)


def test_configs_and_acls_go_on_without_requests_of_the_target(planned: PlannedFlow, broker_b: Broker) -> None:
    flow, topic = planned.flow, planned.topic(retention_ms="3600000")
    remote = f"{flow.source}.{topic}"
    with (
        ServiceProcess("lockstep_topic_sync", planned.file, str(flow)) as topics,
        ServiceProcess("lockstep_acl_sync", planned.file, str(flow)),
    ):
        wait_until(lambda: last_row(broker_b.bootstrap, flow, f"topic/{topic}"), within=WITHIN, what="the copy")
        set_configs(planned.source, topic, {"retention.ms": "7200000", "max.message.bytes": "2000000"})
        wait_until(
            lambda: config_of(broker_b.bootstrap, remote, "max.message.bytes") == "2000000", within=WITHIN, what="alter"
        )
        assert config_of(broker_b.bootstrap, remote, "retention.ms") == "7200000"

        row = wait_until(lambda: last_row(broker_b.bootstrap, flow, "acl/sync"), within=WITHIN, what="ACLs")
        assert isinstance(row, AclStatus)
        assert (row.phase, row.cause.code) == ("not-supported", "acls-unsupported")
        row = wait_until(lambda: last_row(broker_b.bootstrap, flow, f"cluster/{flow.target}"), within=WITHIN)
        assert isinstance(row, ClusterCapabilities)
        assert {"DescribeAcls", "IncrementalAlterConfigs", "Metadata 8"} <= set(row.lacks)
        mirrored = last_row(broker_b.bootstrap, flow, f"topic/{topic}")
        assert isinstance(mirrored, MirroredTopic)
        assert (mirrored.phase, mirrored.reason) == ("mirrored", "")
        assert topics.running
    assert events(broker_b.bootstrap, flow, "TopicFailed") == []


def test_plan_and_doctor_name_requests_and_no_missing_right(planned: PlannedFlow) -> None:
    planned.topic()
    is_too_old = APIS["metadata"].oldest > LACKS[Request.METADATA]
    plan = planned.only(code=int(is_too_old))
    assert ("LS028" in hazards(plan)) is is_too_old
    assert plan["rights"] == []
    assert any(f"rights on {planned.flow.target} are not checked" in remark for remark in plan["remarks"])
    details = hazards(plan)["LS029"]
    assert any("does not know IncrementalAlterConfigs" in detail for detail in details)
    run = run_doctor(planned.file, "--category", "capabilities", "--category", "rights", code=4)
    assert run.one("LD652", planned.flow.target)["result"] == "warning"
    assert run.one("LD652", planned.flow.source)["result"] == "ok"
    assert [check for check in run.not_ok() if check[0] == "LD701"] == [("LD701", str(planned.flow))]
    assert run.one("LD701", str(planned.flow), "are not checked")["result"] == "unknown"


def test_control_topics_are_created_on_a_cluster_of_kafka_2_3(planned: PlannedFlow, lacking: Proxy) -> None:
    """Where the broker's default replication factor cannot be asked for: CreateTopics 4 (Kafka 2.4)."""
    lacking.announce({**LACKS, Request.CREATE_TOPICS: 3})
    planned.file.write_text(planned.file.read_text() + "replication.factor = -1\n")
    topic = create_topic(planned.source, f"{planned.mark}-old")
    with ServiceProcess("lockstep_topic_sync", planned.file, str(planned.flow)):
        wait_until(lambda: last_row(planned.target, planned.flow, f"topic/{topic}"), within=WITHIN, what="the copy")
    created, *_ = [event for event in events(planned.target, planned.flow, "TopicCreated") if event.subject == topic]
    assert created.detail["replication_factor"] == 1


@pytest.mark.long
def test_bandwidth_is_measured_on_a_target_that_refuses_configs(planned: PlannedFlow, lacking: Proxy) -> None:
    """Without records that the broker dates, its clock is not known."""
    rules = ConfigRules(settable=frozenset({"cleanup.policy", "retention.ms"}))
    lacking.answer_as(ClusterProfile(configs=rules, replication=ReplicationRule(factor=3)))
    planned.topic(records=10)
    run = run_doctor(planned.file, "--category", "flow", "--bandwidth")
    assert run.one("LD904", str(planned.flow))["result"] == "ok"
    assert "LD907" not in run.results(planned.flow.target)
