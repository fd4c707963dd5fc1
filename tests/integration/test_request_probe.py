"""Requests that a cluster announces and does not know all the same, or does not announce: each is found beforehand.

Whatever the way in which a cluster does without a request, `plan` and `doctor` name it alike.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from lockstep_config.flow.client_settings import wire_connection
from lockstep_kafka.session.broker_session import BrokerSession
from lockstep_kafka.session.cluster_reader import read_cluster_versions
from lockstep_kafka.session.request_probe import PROBED, find_refused_requests
from lockstep_rules.clusters.cluster_capabilities import CAPABILITIES
from lockstep_state.kafka.kafka_apis import APIS
from lockstep_state.kafka.kafka_requests import KafkaRequest as Request
from tests.support.broker import Broker
from tests.support.cluster_profile import ClusterProfile
from tests.support.clusters import create_topic, group_names, topic_names, unique_name
from tests.support.doctor_runs import run_doctor
from tests.support.planned_flow import QUIET, PlannedFlow, hazards
from tests.support.proxy import Proxy

WAYS: dict[str, Callable[[frozenset[str]], ClusterProfile]] = {
    "absent": lambda names: ClusterProfile(absent=names),
    "unsupported-version": lambda names: ClusterProfile(refuses=dict.fromkeys(names, ErrorCode.unsupported_version)),
    "connection-closed": lambda names: ClusterProfile(closes_on=names),
    "policy-violation": lambda names: ClusterProfile(refuses=dict.fromkeys(names, ErrorCode.policy_violation)),
}
SAY_NO_ERROR = frozenset({Request.CREATE_ACLS})
"""The answer has an error for each ACL to create, and none is asked for."""
CASES = [
    (request, way)
    for request in sorted(PROBED)
    for way in WAYS
    if request not in SAY_NO_ERROR or way in ("absent", "connection-closed")
]
OF_PLAN = frozenset(
    {Request.INIT_PRODUCER_ID, Request.ADD_PARTITIONS_TO_TXN, Request.DESCRIBE_PRODUCERS, Request.DESCRIBE_ACLS}
    | {Request.OFFSET_COMMIT, Request.DESCRIBE_GROUPS, Request.INCREMENTAL_ALTER_CONFIGS, Request.CREATE_PARTITIONS}
)
"""Requests of a target, each of which `plan` names by LS029."""
ONLY_SHOWN = frozenset({Request.DESCRIBE_LOG_DIRS, Request.DESCRIBE_QUORUM, Request.DESCRIBE_CLIENT_QUOTAS})
"""Requests whose answers are only shown."""
OF_SOURCE = ONLY_SHOWN | frozenset(
    {Request.LIST_GROUPS, Request.OFFSET_FETCH, Request.OFFSET_FOR_LEADER_EPOCH, Request.DESCRIBE_ACLS}
    | {Request.DESCRIBE_CONFIGS}
)


@pytest.mark.parametrize(("request_key", "way"), CASES, ids=lambda part: getattr(part, "name", part))
async def test_request_that_a_cluster_does_without_is_found(proxy_b: Proxy, request_key: Request, way: str) -> None:
    proxy_b.answer_as(WAYS[way](frozenset({request_key.api_name})))
    reading = await read_cluster_versions({"bootstrap.servers": proxy_b.bootstrap}, "test", 10.0, PROBED)
    assert request_key not in reading.versions
    assert PROBED - {request_key} <= reading.versions.keys()
    assert (request_key in reading.announced) is (way != "absent")


async def test_cluster_that_knows_all_is_asked_and_not_changed(proxy_b: Proxy) -> None:
    before = topic_names(proxy_b.bootstrap), group_names(proxy_b.bootstrap)
    reading = await read_cluster_versions({"bootstrap.servers": proxy_b.bootstrap}, "test", 10.0, PROBED)
    assert reading.refused == frozenset()
    assert (topic_names(proxy_b.bootstrap), group_names(proxy_b.bootstrap)) == before


async def test_connection_that_is_closed_once_proves_nothing(proxy_b: Proxy) -> None:
    host, _, port = proxy_b.bootstrap.rpartition(":")
    settings = wire_connection({"bootstrap.servers": proxy_b.bootstrap}, "test", 10.0)
    proxy_b.answer_as(ClusterProfile(closes_on=frozenset({"describe_producers"})))
    opened = 0

    async def connect() -> BrokerSession:
        nonlocal opened
        opened += 1
        if opened == 2:
            proxy_b.answer_as(ClusterProfile())
        return await BrokerSession.open(host, int(port), settings)

    assert await find_refused_requests(connect, PROBED) == frozenset()
    assert opened == 2


def test_every_request_that_a_flow_can_do_without_is_tried() -> None:
    """But for those that it sends to each cluster, and whose versions tell all."""
    always_sent = {Request.FETCH, Request.METADATA, Request.PRODUCE}
    assert {capability.request for capability in CAPABILITIES} - always_sent == PROBED
    assert {request.api_name for request in PROBED} <= APIS.keys()


@pytest.fixture
def planned(tmp_path: Path, broker_a: Broker, proxy_b: Proxy) -> PlannedFlow:
    return PlannedFlow.between(broker_a, proxy_b, tmp_path, unique_name("p"), *QUIET)


@pytest.mark.parametrize("way", WAYS)
def test_plan_and_doctor_name_each_request_in_whatever_way_it_is_missing(
    planned: PlannedFlow, proxy_b: Proxy, way: str
) -> None:
    create_topic(planned.source, f"{planned.mark}-orders")
    proxy_b.answer_as(WAYS[way](frozenset(request.api_name for request in OF_PLAN)))
    details = hazards(planned.only())["LS029"]
    for request in OF_PLAN:
        assert any(f"does not know {request.kafka_name}:" in detail for detail in details), (request, details)
    finding = run_doctor(planned.file, "--category", "capabilities").one("LD652", planned.flow.target)
    assert finding["result"] == "warning"
    for request in OF_PLAN:
        assert f"without {request.kafka_name} " in finding["detail"]


@pytest.mark.parametrize("way", WAYS)
def test_plan_goes_on_without_each_request_of_a_source(
    planned: PlannedFlow, broker_a: Broker, proxy_a: Proxy, way: str
) -> None:
    topic = create_topic(planned.source, f"{planned.mark}-orders")
    planned.file.write_text(planned.file.read_text().replace(broker_a.bootstrap, proxy_a.bootstrap))
    proxy_a.answer_as(WAYS[way](frozenset(request.api_name for request in OF_SOURCE)))
    flow = planned.only()
    details = hazards(flow)["LS029"]
    named = {request for request in OF_SOURCE if any(f"does not know {request.kafka_name}" in text for text in details)}
    assert named == OF_SOURCE - ONLY_SHOWN
    assert [copied["topic"] for copied in flow["copy"]["topics"]] == [topic]


@pytest.mark.parametrize("way", WAYS)
def test_target_that_gives_no_producer_ids_has_its_mode_in_the_plan(
    planned: PlannedFlow, proxy_b: Proxy, way: str
) -> None:
    create_topic(planned.source, f"{planned.mark}-orders")
    proxy_b.answer_as(WAYS[way](frozenset({"init_producer_id"})))
    (detail,) = (each for each in hazards(planned.only())["LS029"] if "InitProducerId" in each)
    assert "The target's log is read back: one batch of a partition is in flight" in detail
