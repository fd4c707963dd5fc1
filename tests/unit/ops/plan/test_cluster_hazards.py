"""Hazards of what a cluster is and which requests its brokers know."""

from lockstep_ops.plan.rules.flow_plan import ERROR, WARNING
from lockstep_rules.clusters.cluster_capabilities import Role, missing_capabilities
from lockstep_state.kafka.kafka_apis import APIS, unfit_requests
from lockstep_state.kafka.kafka_requests import KafkaRequest
from tests.support.plan_facts import cluster
from tests.unit.ops.plan.test_hazards import hazards, plain


def test_needed_request_in_older_versions_is_named_with_both_ranges() -> None:
    unfit = unfit_requests({KafkaRequest.PRODUCE: (0, 2)}, ("produce", "init_producer_id"))
    hazard = hazards(plain(target=cluster("B", product="Kafka 0.10", unfit=unfit)))["LS028"]
    produce, producer_id = APIS["produce"], APIS["init_producer_id"]
    assert hazard.severity == ERROR
    assert hazard.details == (
        "B (Kafka 0.10) does not know what the flow needs in a version that Lockstep knows: "
        f"Produce (versions 0 to 2, and Lockstep versions {produce.oldest} to {produce.newest}), "
        f"InitProducerId (none, and Lockstep versions {producer_id.oldest} to {producer_id.newest})",
    )


def test_request_that_is_done_without_is_a_warning() -> None:
    lacks = tuple(missing_capabilities({}, (Role.TARGET,)))
    hazard = hazards(plain(target=cluster("B", lacks=lacks)))["LS029"]
    assert hazard.severity == WARNING
    assert any("does not know IncrementalAlterConfigs" in detail for detail in hazard.details)
