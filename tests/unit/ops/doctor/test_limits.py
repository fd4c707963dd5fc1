"""doctor's checks of the limits of both clusters."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lockstep_config import FlowSettings
from lockstep_ops.doctor.checks.check import CheckFinding, Result
from lockstep_ops.doctor.checks.limits import FlowLimits, SideLimits, TopicFault, TopicPair, judge_limits
from lockstep_ops.doctor.limit_reader import created_factors
from lockstep_rules.clusters.client_quotas import ClientQuota, effective_quota

CONFIGS = {
    "message.max.bytes": "1048588",
    "unclean.leader.election.enable": "false",
    "log.message.timestamp.type": "CreateTime",
}
SOURCE = SideLimits("A", 3, {}, CONFIGS, (), "mirror", "c-0")
TARGET = SideLimits("B", 3, {"replication.factor": 3}, CONFIGS, (), "mirror", "p-0")
PAIR = TopicPair("t", "A.t", 1_048_588, 1_048_588, copy_timestamps="CreateTime", source_timestamps="CreateTime")
FACTS = FlowLimits("A->B", SOURCE, TARGET, (PAIR,), 1)
UNREADABLE = replace(TARGET, configs=None, configs_trouble="denied", configs_fix="kafka-acls")


def judged(facts: FlowLimits) -> dict[str, CheckFinding]:
    """By code; of several findings of a check the last."""
    return {finding.check.code: finding for finding in judge_limits(facts)}


def test_like_clusters_have_good_lines_only() -> None:
    findings = judged(FACTS)
    assert {code: finding.result for code, finding in findings.items() if finding.result is not Result.OK} == {
        "LD802": Result.SKIPPED
    }
    assert findings["LD801"].detail == "B takes 1.0 MiB; compared 1 mirrored topic"


def test_control_topic_that_a_cluster_refuses_is_a_failure() -> None:
    facts = replace(FACTS, refused_topics=("cluster B refused to create topic state: no",), changed_topics=("events",))
    findings = [finding for finding in judge_limits(facts) if finding.check.code == "LD808"]
    assert [(finding.result, finding.detail) for finding in findings] == [
        (Result.FAILED, "cluster B refused to create topic state: no"),
        (Result.OK, "events"),
    ]
    assert judged(replace(FACTS, new_topics=2))["LD808"].detail == "2 topics would be created"


@pytest.mark.parametrize(("ends_work", "result"), [(True, Result.FAILED), (False, Result.WARNING)])
def test_fault_of_a_control_topic_fails_if_it_ends_the_work(ends_work: bool, result: Result) -> None:
    fault = TopicFault("the state topic has x=1, and needs 2", "kafka-configs ...", ends_work)
    finding = judged(replace(FACTS, control_faults=(fault,)))["LD807"]
    assert (finding.result, finding.detail, finding.fix) == (result, fault.sentence, fault.command)


SMALL = replace(PAIR, copy_bytes=10)
LARGE = replace(PAIR, source_bytes=10_000_000, copy_bytes=None)
DATED = replace(PAIR, copy_timestamps="LogAppendTime")
BOTH_DATED = replace(DATED, source_timestamps="LogAppendTime")
UNREADABLE_SOURCE = replace(SOURCE, configs=None, configs_trouble="denied", configs_fix="kafka-acls")
DATING = replace(TARGET, configs=CONFIGS | {"log.message.timestamp.type": "LogAppendTime"})


def limited(bytes_per_second: float) -> SideLimits:
    return replace(TARGET, quotas=(ClientQuota("mirror", None, {"producer_byte_rate": bytes_per_second}),))


@pytest.mark.parametrize(
    ("code", "fields", "result"),
    [
        ("LD801", {"pairs": (replace(PAIR, copy_bytes=1000),)}, Result.WARNING),
        ("LD801", {"pairs": (LARGE,)}, Result.WARNING),
        ("LD801", {"pairs": (replace(LARGE, is_own=True),)}, Result.OK),
        ("LD801", {"pairs": (replace(PAIR, source_bytes=1000, copy_bytes=1000),)}, Result.OK),
        ("LD801", {"target": UNREADABLE}, Result.OK),
        ("LD801", {"target": UNREADABLE, "pairs": (SMALL,)}, Result.WARNING),
        ("LD801", {"target": UNREADABLE, "pairs": (), "topics": 0}, Result.UNKNOWN),
        ("LD801", {"source": UNREADABLE_SOURCE}, Result.OK),
        ("LD802", {"request_bytes": 2_000_000}, Result.WARNING),
        ("LD802", {"request_bytes": 1_000_000}, Result.OK),
        ("LD802", {"request_bytes": 1, "target": UNREADABLE}, Result.UNKNOWN),
        ("LD804", {"target": limited(500_000.0)}, Result.WARNING),
        ("LD804", {"target": limited(50_000_000.0)}, Result.OK),
        ("LD804", {}, Result.OK),
        ("LD805", {"target": DATING}, Result.WARNING),
        ("LD805", {"pairs": (BOTH_DATED,)}, Result.OK),
        ("LD805", {"target": UNREADABLE}, Result.OK),
        ("LD805", {"target": UNREADABLE, "pairs": ()}, Result.UNKNOWN),
        ("LD806", {"target": UNREADABLE}, Result.UNKNOWN),
    ],
)
def test_check_of_limits_has_its_result(code: str, fields: dict[str, Any], result: Result) -> None:
    assert judged(replace(FACTS, **fields))[code].result is result


@pytest.mark.parametrize(
    ("code", "fields", "result", "detail", "fix"),
    [
        (
            *("LD801", {"target": UNREADABLE, "pairs": (PAIR, replace(PAIR, topic="u", copy_bytes=None)), "topics": 2}),
            *(Result.UNKNOWN, "of 1 topic without a copy: denied", "kafka-acls"),
        ),
        (
            *("LD801", {"source": UNREADABLE_SOURCE, "pairs": (), "topics": 0}),
            *(Result.UNKNOWN, "denied", "kafka-acls"),
        ),
        (
            *("LD801", {"target": replace(TARGET, configs=CONFIGS | {"message.max.bytes": "100000"}), "pairs": ()}),
            *(Result.WARNING, "message.max.bytes is 97.7 KiB on B, and 1.0 MiB on A", None),
        ),
        (
            *("LD803", {"target": replace(TARGET, brokers=1, factors={"replication.factor": 2, "x": 1})}),
            *(Result.WARNING, "B has 1 broker, and replication.factor is 2: new topics get 1", None),
        ),
        (
            *("LD804", {"target": replace(TARGET, quotas=None, quotas_trouble="denied", quotas_fix="x")}),
            *(Result.UNKNOWN, "writing to B: denied", "x"),
        ),
        ("LD805", {"pairs": (DATED,)}, Result.WARNING, "B dates the records of A.t", None),
    ],
)
def test_check_of_limits_has_its_detail_and_fix(
    code: str, fields: dict[str, Any], result: Result, detail: str, fix: str | None
) -> None:
    finding = judged(replace(FACTS, **fields))[code]
    assert (finding.result, finding.detail) == (result, detail)
    assert fix in (None, finding.fix)


def test_unclean_elections_are_a_warning_on_either_side() -> None:
    unclean = replace(SOURCE, configs=CONFIGS | {"unclean.leader.election.enable": "true"})
    findings = judge_limits(replace(FACTS, source=unclean))
    assert [finding.result for finding in findings if finding.check.code == "LD806"] == [Result.WARNING, Result.OK]


@pytest.mark.parametrize(
    ("user", "client_id", "expected"),
    [("mirror", "c-0", 1.0), ("mirror", "other", 2.0), ("anna", "c-0", 4.0), ("anna", "other", 3.0)],
)
def test_quota_of_the_narrowest_entity_counts(user: str, client_id: str, expected: float) -> None:
    key = "producer_byte_rate"
    quotas = (
        ClientQuota("mirror", "c-0", {key: 1.0}),
        ClientQuota("mirror", None, {key: 2.0}),
        ClientQuota("", None, {key: 3.0}),
        ClientQuota("", "c-0", {key: 4.0}),
        ClientQuota(None, "c-0", {key: 5.0}),
        ClientQuota("mirror", "c-0", {"consumer_byte_rate": 9.0}),
    )
    quota = effective_quota(quotas, user, client_id, key)
    assert quota is not None
    assert quota[1] == expected


def test_quota_of_another_client_does_not_count() -> None:
    assert effective_quota([ClientQuota(None, "x", {"k": 1.0})], "mirror", "c-0", "k") is None
    assert ClientQuota("", "c", {}).entity == "the default user with client id c"


def test_replicas_of_control_topics_are_compared_with_the_brokers(settings: Callable[..., FlowSettings]) -> None:
    key = "lockstep.control.replication.factor"
    assert created_factors(settings(f"{key} = 5"), "B")[key] == 5
    assert key not in created_factors(settings(f"{key} = 5"), "A")
    assert key not in created_factors(settings(), "B"), "offset.storage.replication.factor is named instead"
