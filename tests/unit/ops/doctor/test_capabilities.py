"""doctor's checks of the requests that brokers know."""

from dataclasses import replace

from lockstep_ops.doctor.checks.access_facts import AccessFacts, BrokerFacts, HostAddresses
from lockstep_ops.doctor.checks.capabilities import judge_capabilities
from lockstep_ops.doctor.checks.check import CheckFinding, Result
from lockstep_rules.clusters.cluster_capabilities import Role
from lockstep_rules.clusters.cluster_kind import ApiVersions
from tests.unit.rules.test_cluster_kind import EVENT_HUBS, KAFKA_2_8, KAFKA_3_9, KFAKE, announced

SOURCE = frozenset({Role.SOURCE})


def judged(*versions: ApiVersions, host: str = "a1") -> dict[str, CheckFinding]:
    brokers = tuple(BrokerFacts(number, f"b{number}", 9092, versions=ranges) for number, ranges in enumerate(versions))
    facts = AccessFacts("A", "PLAINTEXT", hosts=(HostAddresses(host, 9092),), cluster_id="id", brokers=brokers)
    return {finding.check.code: finding for finding in judge_capabilities(facts, SOURCE)}


def test_kafka_of_today_knows_all() -> None:
    findings = judged(announced(KAFKA_3_9))
    assert findings["LD651"].detail == "looks like Kafka 3.9"
    assert (findings["LD652"].result, findings["LD652"].detail) == (Result.OK, "knows all that Lockstep asks")


def test_what_is_only_not_shown_is_no_warning() -> None:
    finding = judged(announced(KAFKA_2_8))["LD652"]
    assert finding.result is Result.OK
    assert finding.detail == "without DescribeQuorum 1 the clock of the controller is not known"


def test_service_without_requests_has_a_warning_for_each() -> None:
    findings = judged(announced(EVENT_HUBS), host="ns.servicebus.windows.net")
    assert findings["LD651"].detail == "looks like Azure Event Hubs"
    assert findings["LD652"].result is Result.WARNING
    assert "without DescribeAcls ACLs are not copied" in findings["LD652"].detail


def test_cluster_of_no_known_kind_has_a_sentence_of_its_own() -> None:
    assert judged(announced(KFAKE))["LD651"].detail == "looks like no kind that Lockstep knows"


def test_cluster_can_do_what_all_of_its_brokers_can() -> None:
    assert "looks like Kafka 2.8" in judged(announced(KAFKA_3_9), announced(KAFKA_2_8))["LD651"].detail


def test_silent_brokers_leave_it_unknown() -> None:
    silent = AccessFacts("A", "PLAINTEXT", brokers=(BrokerFacts(1, "a1", 9092),))
    assert {finding.result for finding in judge_capabilities(silent, SOURCE)} == {Result.UNKNOWN}
    assert {finding.result for finding in judge_capabilities(replace(silent, brokers=()), SOURCE)} == {Result.UNKNOWN}
