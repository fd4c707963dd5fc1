"""What is said of the limits of both clusters."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from lockstep_config import FlowSettings
from lockstep_ops.doctor.checks.check import CheckFinding, Result
from lockstep_ops.doctor.checks.limits import FlowLimits, SideLimits, TopicFault, TopicPair, judge_limits
from lockstep_ops.doctor.checks.quotas import ClientQuota, effective_quota
from lockstep_ops.doctor.limit_reader import created_factors

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
    return {one.check.code: one for one in judge_limits(facts)}


def test_like_clusters_have_good_lines_only() -> None:
    found = judged(FACTS)
    assert {code: one.result for code, one in found.items() if one.result is not Result.OK} == {"LD802": Result.SKIPPED}
    assert found["LD801"].detail == "B takes 1.0 MiB; compared 1 mirrored topic"


def test_control_topic_that_a_cluster_refuses_is_a_failure() -> None:
    facts = replace(FACTS, refused_topics=("cluster B refused to create topic state: no",), changed_topics=("events",))
    findings = [one for one in judge_limits(facts) if one.check.code == "LD808"]
    assert [(one.result, one.detail) for one in findings] == [
        (Result.FAILED, "cluster B refused to create topic state: no"),
        (Result.OK, "events"),
    ]
    assert judged(replace(FACTS, new_topics=2))["LD808"].detail == "2 topics would be created"


@pytest.mark.parametrize(("ends_work", "result"), [(True, Result.FAILED), (False, Result.WARNING)])
def test_fault_of_a_control_topic_fails_if_it_ends_the_work(ends_work: bool, result: Result) -> None:
    fault = TopicFault("the state topic has x=1, and needs 2", "kafka-configs ...", ends_work)
    finding = judged(replace(FACTS, control_faults=(fault,)))["LD807"]
    assert (finding.result, finding.detail, finding.fix) == (result, fault.sentence, fault.command)


def test_smaller_limit_of_the_target_is_a_warning() -> None:
    target = replace(TARGET, configs=CONFIGS | {"message.max.bytes": "100000"})
    one = judged(replace(FACTS, target=target, pairs=()))["LD801"]
    assert one.result is Result.WARNING
    assert one.detail == "message.max.bytes is 97.7 KiB on B, and 1.0 MiB on A"


@pytest.mark.parametrize(
    ("pair", "result"),
    [
        (replace(PAIR, copy_bytes=1000), Result.WARNING),
        (replace(PAIR, source_bytes=10_000_000, copy_bytes=None), Result.WARNING),
        (replace(PAIR, source_bytes=10_000_000, copy_bytes=None, is_own=True), Result.OK),
        (replace(PAIR, source_bytes=1000, copy_bytes=1000), Result.OK),
    ],
)
def test_copy_is_compared_with_its_topic(pair: TopicPair, result: Result) -> None:
    assert judged(replace(FACTS, pairs=(pair,)))["LD801"].result is result


def test_copies_are_compared_also_where_brokers_configs_are_not_known() -> None:
    assert judged(replace(FACTS, target=UNREADABLE))["LD801"].result is Result.OK
    small = replace(PAIR, copy_bytes=10)
    assert judged(replace(FACTS, target=UNREADABLE, pairs=(small,)))["LD801"].result is Result.WARNING
    without_copy = replace(PAIR, topic="u", copy_bytes=None)
    one = judged(replace(FACTS, target=UNREADABLE, pairs=(PAIR, without_copy), topics=2))["LD801"]
    assert (one.result, one.fix) == (Result.UNKNOWN, "kafka-acls")
    assert judged(replace(FACTS, target=UNREADABLE, pairs=(), topics=0))["LD801"].result is Result.UNKNOWN


def test_source_of_which_nothing_is_known_leaves_sizes_unknown() -> None:
    source = replace(SOURCE, configs=None, configs_trouble="denied", configs_fix="kafka-acls")
    one = judged(replace(FACTS, source=source, pairs=(), topics=0))["LD801"]
    assert (one.result, one.detail, one.fix) == (Result.UNKNOWN, "denied", "kafka-acls")
    assert judged(replace(FACTS, source=source))["LD801"].result is Result.OK


def test_request_size_above_the_targets_limit_is_a_warning() -> None:
    assert judged(replace(FACTS, request_bytes=2_000_000))["LD802"].result is Result.WARNING
    assert judged(replace(FACTS, request_bytes=1_000_000))["LD802"].result is Result.OK
    assert judged(replace(FACTS, request_bytes=1, target=UNREADABLE))["LD802"].result is Result.UNKNOWN


def test_replication_factor_above_the_brokers_names_its_key() -> None:
    target = replace(TARGET, brokers=1, factors={"replication.factor": 2, "x": 1})
    one = judged(replace(FACTS, target=target))["LD803"]
    assert one.result is Result.WARNING
    assert one.detail == "B has 1 broker, and replication.factor is 2: new topics get 1"


@pytest.mark.parametrize(
    ("rate", "result"), [(500_000.0, Result.WARNING), (50_000_000.0, Result.OK), (None, Result.OK)]
)
def test_quota_below_one_batch_a_second_is_a_warning(rate: float | None, result: Result) -> None:
    quotas = () if rate is None else (ClientQuota("mirror", None, {"producer_byte_rate": rate}),)
    one = judged(replace(FACTS, target=replace(TARGET, quotas=quotas)))["LD804"]
    assert one.result is result


def test_quotas_that_cannot_be_read_are_unknown() -> None:
    one = judged(replace(FACTS, target=replace(TARGET, quotas=None, quotas_trouble="denied", quotas_fix="x")))["LD804"]
    assert (one.result, one.detail, one.fix) == (Result.UNKNOWN, "writing to B: denied", "x")


@pytest.mark.parametrize(
    ("user", "client_id", "expected"),
    [
        ("mirror", "c-0", 1.0),
        ("mirror", "other", 2.0),
        ("anna", "c-0", 4.0),
        ("anna", "other", 3.0),
    ],
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
    found = effective_quota(quotas, user, client_id, key)
    assert found is not None
    assert found[1] == expected


def test_quota_of_another_client_does_not_count() -> None:
    assert effective_quota([ClientQuota(None, "x", {"k": 1.0})], "mirror", "c-0", "k") is None
    assert ClientQuota("", "c", {}).entity == "the default user with client id c"


def test_target_that_dates_records_is_a_warning() -> None:
    target = replace(TARGET, configs=CONFIGS | {"log.message.timestamp.type": "LogAppendTime"})
    assert judged(replace(FACTS, target=target))["LD805"].result is Result.WARNING
    dated = replace(PAIR, copy_timestamps="LogAppendTime")
    one = judged(replace(FACTS, pairs=(dated,)))["LD805"]
    assert (one.result, one.detail) == (Result.WARNING, "B dates the records of A.t")
    both = replace(dated, source_timestamps="LogAppendTime")
    assert judged(replace(FACTS, pairs=(both,)))["LD805"].result is Result.OK
    assert judged(replace(FACTS, target=UNREADABLE))["LD805"].result is Result.OK
    assert judged(replace(FACTS, target=UNREADABLE, pairs=()))["LD805"].result is Result.UNKNOWN


def test_unclean_elections_are_a_warning_on_either_side() -> None:
    unclean = CONFIGS | {"unclean.leader.election.enable": "true"}
    found = list(judge_limits(replace(FACTS, source=replace(SOURCE, configs=unclean))))
    assert [one.result for one in found if one.check.code == "LD806"] == [Result.WARNING, Result.OK]
    assert judged(replace(FACTS, target=UNREADABLE))["LD806"].result is Result.UNKNOWN


def test_replicas_of_control_topics_are_compared_with_the_brokers(settings: Callable[..., FlowSettings]) -> None:
    key = "lockstep.control.replication.factor"
    assert created_factors(settings(f"{key} = 5"), "B")[key] == 5
    assert key not in created_factors(settings(f"{key} = 5"), "A")
    assert key not in created_factors(settings(), "B"), "offset.storage.replication.factor is named instead"
