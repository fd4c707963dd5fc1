"""doctor's checks of a cluster after the login."""

from dataclasses import dataclass, replace
from typing import cast

import pytest

from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable
from lockstep_kafka.session.broker_session import clock_reading
from lockstep_ops.doctor.checks import registry
from lockstep_ops.doctor.checks.access_facts import AccessFacts, BrokerFacts
from lockstep_ops.doctor.checks.check import CheckFinding, Result
from lockstep_ops.doctor.checks.cluster import ClockFacts, ClusterFacts, judge_clock, judge_cluster
from lockstep_ops.doctor.path_examination import compare_two_clusters
from lockstep_ops.exit_codes import Exit
from lockstep_state.kafka.kafka_apis import APIS, UnfitRequest

BROKER = BrokerFacts(1, "a1", 9092, unfit=(), round_trips_s=(0.001, 0.002, 0.003))
ACCESS = AccessFacts("A", "PLAINTEXT", cluster_id="id", brokers=(BROKER,))
FACTS = ClusterFacts(ACCESS, "a:9092", "", is_out_of_reach=False, clock=ClockFacts("controller 1", 5.0, 1.0))


def judged(facts: ClusterFacts) -> dict[str, CheckFinding]:
    return {finding.check.code: finding for finding in judge_cluster(facts)}


def test_good_cluster_has_four_good_lines() -> None:
    findings = judged(FACTS)
    assert list(findings) == ["LD601", "LD602", "LD603", "LD604"]
    assert {finding.result for finding in findings.values()} == {Result.OK}
    assert findings["LD601"].detail == "1 broker, cluster id id (a:9092)"
    assert findings["LD604"].detail == "p50 2.0 ms"


@pytest.mark.parametrize("is_out_of_reach", [True, False])
def test_cluster_without_an_answer_is_fatal_and_another_fault_is_not(*, is_out_of_reach: bool) -> None:
    finding = judged(replace(FACTS, trouble="cannot be reached", is_out_of_reach=is_out_of_reach))["LD601"]
    assert (finding.result, finding.is_fatal) == (Result.FAILED, is_out_of_reach)


def test_broker_that_is_too_old_fails_by_its_place() -> None:
    unfit = UnfitRequest(APIS["produce"], 0, 2), UnfitRequest(APIS["fetch"], 0, -1)
    old = replace(BROKER, id=2, unfit=unfit)
    finding = judged(replace(FACTS, access=replace(ACCESS, brokers=(BROKER, old))))["LD602"]
    assert finding.result is Result.FAILED
    assert finding.detail == (
        "broker 2 at a1:9092 does not know what the flows need in a version that Lockstep knows: "
        "Produce (versions 0 to 2, and Lockstep versions 3 to 13), Fetch (none, and Lockstep versions 4 to 17)"
    )


def test_broker_that_did_not_say_its_versions_is_unknown() -> None:
    silent = replace(BROKER, unfit=None, trouble="no answer", round_trips_s=())
    findings = judged(replace(FACTS, access=replace(ACCESS, brokers=(silent,))))
    assert (findings["LD602"].result, findings["LD604"].result) == (Result.UNKNOWN, Result.UNKNOWN)
    assert findings["LD602"].detail == "1 broker did not say: broker 1 at a1:9092: no answer"


def test_slowest_broker_is_named_where_there_are_several() -> None:
    far = replace(BROKER, id=2, host="a2", round_trips_s=(0.04,))
    finding = judged(replace(FACTS, access=replace(ACCESS, brokers=(BROKER, far))))["LD604"]
    assert finding.detail == "p50 21.0 ms; the slowest is broker 2 at a2:9092 with 40.0 ms"


@pytest.mark.parametrize(
    ("ahead_ms", "error_ms", "result"),
    [
        (12.0, 3.0, Result.OK),
        (-29_000.0, 10.0, Result.OK),
        (31_000.0, 10.0, Result.WARNING),
        (31_000.0, 5_000.0, Result.OK),  # as far as it is certain
        (-3_700_000.0, 10.0, Result.FAILED),
        (0.0, 20_000.0, Result.UNKNOWN),
    ],
)
def test_clock_is_judged_by_what_is_certain(ahead_ms: float, error_ms: float, result: Result) -> None:
    assert judge_clock(registry.CLOCK, "A", ClockFacts("controller 1", ahead_ms, error_ms)).result is result


@pytest.mark.parametrize(
    ("clock", "detail"),
    [
        (ClockFacts(trouble="denied", fix="kafka-acls"), "denied"),
        (ClockFacts(is_measured_later=True), "LD907 measures it with the scratch topic"),
        (ClockFacts("controller 1", -61_000.0, 2.0), "controller 1 is 1.0 min behind this machine (±2 ms)"),
        (ClockFacts("controller 1", -0.2, 0.3), "controller 1 has the time of this machine (±1 ms)"),
    ],
)
def test_clock_has_its_detail(clock: ClockFacts, detail: str) -> None:
    finding = judge_clock(registry.CLOCK, "A", clock)
    assert finding.detail == detail
    assert finding.fix == clock.fix or finding.result is not Result.UNKNOWN
    assert (finding.result is Result.UNKNOWN, finding.result is Result.SKIPPED) == (
        bool(clock.trouble),
        clock.is_measured_later,
    )


def test_time_between_two_of_ours_is_half_of_them_uncertain() -> None:
    reading = clock_reading("x", 1_000_150.0, 1000.0, 1000.2)
    assert (round(reading.ahead_ms), round(reading.error_ms)) == (50, 100)


@dataclass(frozen=True)
class IdentifiedCluster:
    """A cluster that says its id, or raises an error."""

    alias: str
    answer: str | ClusterError
    bootstrap: str = "broker:9092"

    async def cluster_id(self) -> str:
        if isinstance(self.answer, ClusterError):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "result", "probe_exit", "words"),
    [
        ("y", Result.OK, Exit.FINE, "cluster ids x and y"),
        ("x", Result.FAILED, Exit.TROUBLE, "A at broker:9092 and B at broker:9092 are one cluster (x)"),
        (ClusterUnreachable("B", "broker:9092", "no answer"), Result.FAILED, Exit.NO_ANSWER, "no answer"),
    ],
)
async def test_two_aliases_lead_to_two_clusters(
    answer: str | ClusterError, result: Result, probe_exit: Exit, words: str
) -> None:
    source, target = (cast(Admin, IdentifiedCluster(alias, it)) for alias, it in (("A", "x"), ("B", answer)))
    finding = await compare_two_clusters("A->B", source, target)
    assert (finding.result, finding.probe_exit) == (result, probe_exit)
    assert words in finding.detail
