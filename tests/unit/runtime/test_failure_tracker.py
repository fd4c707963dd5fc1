"""What fails is logged once when it begins, and once when it is over."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import KafkaError

from lockstep_config.credentials.permissions import Remedy
from lockstep_kafka.common.errors import (
    ClusterError,
    ClusterUnreachable,
    NotPermitted,
    ProtocolUnfit,
    RequestRefused,
    TopicDeleted,
)
from lockstep_runtime.telemetry.failure_tracker import LOGGED_AT_ONCE, LOGGED_CAUSES, FailureTracker
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_state.reasons.reason_catalogue import ReasonCode

AWAY = ClusterUnreachable("B", "b:9092", "refused")
UNFIT = ProtocolUnfit(
    "B",
    ReasonCode.REQUEST_UNFIT.to_reason(cluster="B", broker="b:9092", request="Fetch", theirs="none", ours="version 4"),
)
DENIED = NotPermitted("B", "to create", "topic x")


@contextmanager
def heard(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    lines: list[str] = []
    with caplog.at_level(logging.INFO, logger="lockstep.test"):
        yield lines
    lines += [record.getMessage() for record in caplog.records]


def test_unreachable_cluster_is_logged_once_for_all_failures(caplog: pytest.LogCaptureFixture) -> None:
    troubles = FailureTracker(FlowLog("test", "A->B"))
    with heard(caplog) as lines:
        troubles.began("one", AWAY)
        troubles.began("two", AWAY)
        troubles.began("one", AWAY)
        troubles.over("one")
        troubles.over("two")
        troubles.over("two")
    assert lines == ["cluster unreachable", "cluster reachable again"]


@pytest.mark.parametrize(
    ("others_say", "said"),
    [((), ["cluster unreachable", "one failing", "cluster reachable again", "two recovered"]), (("B",), [])],
)
def test_cluster_that_is_too_old_is_logged_once_for_all_failures(
    caplog: pytest.LogCaptureFixture, others_say: tuple[str, ...], said: list[str]
) -> None:
    troubles = FailureTracker(FlowLog("test", "A->B"), others_say)
    with heard(caplog) as lines:
        troubles.began("one", AWAY)
        for name in ("one", "two", "one"):
            troubles.began(name, UNFIT)
        assert {reason.code for reason in troubles.reasons.values()} == {"request-unfit"}
        troubles.over("one")
        troubles.over("two")
    assert lines == said


def test_outage_whose_cause_changes_is_logged_once_with_each_cause(caplog: pytest.LogCaptureFixture) -> None:
    troubles = FailureTracker(FlowLog("test", "A->B"))
    expired = "the certificate has expired"
    with heard(caplog) as lines:
        for why in ("refused after 12 ms", "refused after 9 ms", expired, "refused after 7 ms", expired):
            for name in ("one", "two"):
                troubles.began(name, ClusterUnreachable("B", "b:9092", why))
        troubles.over("one")
        troubles.over("two")
        troubles.began("one", ClusterUnreachable("B", "b:9092", expired))
    assert lines == ["cluster unreachable"] * 2 + ["cluster reachable again", "cluster unreachable"]
    said = [vars(record).get("reason") or record.__dict__ for record in caplog.records]
    assert expired in str(said[1])


def test_outage_with_ever_new_causes_has_a_bounded_number_of_lines(caplog: pytest.LogCaptureFixture) -> None:
    troubles = FailureTracker(FlowLog("test", "A->B"))
    with heard(caplog) as lines:
        for number in range(100):
            troubles.began("one", ClusterUnreachable("B", "b:9092", "x" * number))
    assert lines == ["cluster unreachable"] * LOGGED_CAUSES


def test_failure_that_is_forgotten_leaves_room_for_others(caplog: pytest.LogCaptureFixture) -> None:
    troubles = FailureTracker(FlowLog("test", "A->B"))
    for number in range(2 * LOGGED_AT_ONCE):
        troubles.began(f"gone-{number}", ClusterError("B", "deleted"))
    troubles.began("gone-0", AWAY)
    for number in range(2 * LOGGED_AT_ONCE):
        troubles.forget(f"gone-{number}")
    assert troubles.now == {}
    caplog.clear()
    with heard(caplog) as lines:
        troubles.began("orders-0", ClusterError("B", "refused"))
        troubles.began("orders-1", AWAY)
    assert lines == ["orders-0 failing", "cluster unreachable"]


def test_forgotten_failures_are_logged_anew_when_they_begin_again(caplog: pytest.LogCaptureFixture) -> None:
    troubles = FailureTracker(FlowLog("test", "A->B"))
    with heard(caplog) as lines:
        for _ in range(2):
            troubles.began("one", AWAY)
            troubles.began("two", DENIED)
            troubles.forget_all()
            assert troubles.now == {}
    assert lines == 2 * ["cluster unreachable", "two failing"]


def test_other_failures_are_logged_when_they_begin_or_change(caplog: pytest.LogCaptureFixture) -> None:
    troubles = FailureTracker(FlowLog("test", "A->B"))
    with heard(caplog) as lines:
        troubles.began("one", DENIED)
        troubles.began("one", DENIED)
        troubles.began("one", NotPermitted("B", "to create", "topic y"))
        troubles.over("one")
    assert lines == ["one failing", "one failing", "one recovered"]


def test_first_of_many_failures_are_named(caplog: pytest.LogCaptureFixture) -> None:
    troubles, names = FailureTracker(FlowLog("test", "A->B")), [f"p-{number}" for number in range(LOGGED_AT_ONCE + 3)]
    with heard(caplog) as lines:
        for text in ("no leader", "still none"):
            for name in names:
                troubles.began(name, ClusterError("B", text))
        assert troubles.now.keys() == set(names)
        for name in reversed(names):
            troubles.over(name)
        troubles.began("p-0", ClusterError("B", "again"))
    named = names[:LOGGED_AT_ONCE]
    failing, recovered = [f"{name} failing" for name in named], [f"{name} recovered" for name in reversed(named)]
    assert lines == [*failing, "others failing", *failing, "others recovered", *recovered, "p-0 failing"]


def test_number_of_unnamed_failures_is_logged_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    troubles = FailureTracker(FlowLog("test", "A->B"))
    caplog.set_level(logging.INFO, logger="lockstep.test")
    for _ in range(2):
        for number in range(LOGGED_AT_ONCE + 3):
            troubles.began(f"p-{number}", ClusterError("B", "no leader"))
        caplog.clear()
        for number in range(LOGGED_AT_ONCE + 3):
            troubles.over(f"p-{number}")
        (record,) = (each for each in caplog.records if each.message == "others recovered")
        assert record.__dict__["text"] == "all that were not named, 3"
    assert not troubles.now


def test_missing_permission_is_logged_once_with_its_end(caplog: pytest.LogCaptureFixture) -> None:
    troubles = FailureTracker(FlowLog("test", "A->B"))
    remedy, other = Remedy("we lack Write on topic x", "grant A."), Remedy("we lack Read on topic x", "grant *")
    with heard(caplog) as lines:
        for name in ("x-0", "x-1", "y-0"):
            troubles.began(name, NotPermitted("B", "WRITE", f"topic {name}", remedy))
        troubles.began("z-0", NotPermitted("B", "READ", "topic z", other))
        assert len(troubles.now) == 4
        for name in ("x-0", "y-0", "x-1", "z-0"):
            troubles.over(name)
    assert lines == ["x-0 failing", "z-0 failing", "x-1 recovered", "z-0 recovered"]


def test_a_cluster_that_answers_with_a_refusal_is_reachable_again(caplog: pytest.LogCaptureFixture) -> None:
    troubles = FailureTracker(FlowLog("test", "A->B"))
    with heard(caplog) as lines:
        troubles.began("one", AWAY)
        troubles.began("one", DENIED)
    assert lines == ["cluster unreachable", "one failing", "cluster reachable again"]


def test_failures_logged_by_another_service_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    troubles = FailureTracker(FlowLog("test", "A->B"), others_say={"B"})
    with heard(caplog) as lines:
        troubles.began("copying", AWAY)
        troubles.began("progress", ClusterUnreachable("A", "a:9092", "refused"))
        assert troubles.now["copying"] == str(AWAY)
        troubles.over("copying")
        troubles.over("progress")
        troubles.began("copying", DENIED)
    assert lines == ["cluster unreachable", "cluster reachable again", "copying failing"]


def test_deleted_topic_is_logged_as_deleted(caplog: pytest.LogCaptureFixture) -> None:
    with heard(caplog) as lines:
        troubles = FailureTracker(FlowLog("test", "A->B"))
        for _ in range(2):
            troubles.began("orders-0", TopicDeleted("A", "orders"))
        troubles.over("orders-0")
    assert lines == ["orders-0 deleted", "orders-0 recovered"]
    text = "topic orders was deleted on cluster A: a broker says that there is none; it is looked for again"
    assert caplog.records[0].__dict__["text"] == text


def test_cluster_that_has_not_answered_is_not_reachable_again(caplog: pytest.LogCaptureFixture) -> None:
    troubles = FailureTracker(FlowLog("test", "A->B"))
    with heard(caplog) as lines:
        troubles.began("the whole", AWAY)
        troubles.began("the whole", ClusterError("C", "another cluster fails"))
        troubles.began("one", AWAY)
        troubles.over("one", answered=False)
        troubles.over("the whole", answered=False)
    assert "cluster reachable again" not in lines


def test_cluster_that_refuses_is_reachable_again(caplog: pytest.LogCaptureFixture) -> None:
    troubles = FailureTracker(FlowLog("test", "A->B"))
    with heard(caplog) as lines:
        troubles.began("one", AWAY)
        troubles.began("one", DENIED)
    assert lines == ["cluster unreachable", "one failing", "cluster reachable again"]


def test_error_of_librdkafka_is_no_answer_of_the_cluster(caplog: pytest.LogCaptureFixture) -> None:
    troubles = FailureTracker(FlowLog("test", "A->B"))
    waiting = RequestRefused("B", "list offsets of", "group g", KafkaError._WAIT_COORD, "waiting for coordinator")
    with heard(caplog) as lines:
        troubles.began("one", AWAY)
        troubles.began("one", waiting)
        troubles.began("one", AWAY)
        troubles.over("one")
    assert lines == ["cluster unreachable", "cluster reachable again"]


def test_present_failures_have_reasons_with_codes() -> None:
    troubles = FailureTracker(FlowLog("test", "A->B"))
    troubles.began("one", AWAY)
    troubles.began("two", DENIED)
    troubles.began("three", RequestRefused("B", "create", "topic x", 44, "policy violation"))
    troubles.began("four", TopicDeleted("B", "x"))
    codes = ["cluster-unreachable", "not-permitted", "request-refused", "reported"]
    assert [reason.code for reason in troubles.reasons.values()] == codes
    assert [reason.detail("cluster") for reason in troubles.reasons.values()] == ["B"] * 4
    assert troubles.reasons["three"].detail("error") == 44
    troubles.over("two")
    assert list(troubles.reasons) == ["one", "three", "four"]
