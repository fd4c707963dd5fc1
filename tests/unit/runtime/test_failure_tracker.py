"""What fails is logged once when it begins, and once when it is over."""

import logging
from collections.abc import Callable

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
DENIED_Y = NotPermitted("B", "to create", "topic y")
WAITING = RequestRefused("B", "list offsets of", "group g", KafkaError._WAIT_COORD, "waiting for coordinator")
DELETED = TopicDeleted("A", "orders")

Step = tuple[str, ClusterError | None]
"""A name, and the error with which it fails; None: it works again."""


@pytest.fixture
def troubles() -> FailureTracker:
    return FailureTracker(FlowLog("test", "A->B"))


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.INFO, logger="lockstep.test")
    return lambda: [record.getMessage() for record in caplog.records]


def go_through(troubles: FailureTracker, *steps: Step) -> None:
    for name, error in steps:
        if error is None:
            troubles.record_success(name)
        else:
            troubles.record_failure(name, error)


@pytest.mark.parametrize(
    ("steps", "messages"),
    [
        pytest.param(
            [("one", AWAY), ("two", AWAY), ("one", AWAY), ("one", None), ("two", None), ("two", None)],
            ["cluster unreachable", "cluster reachable again"],
            id="outage",
        ),
        pytest.param(
            [("one", AWAY), ("one", UNFIT), ("two", UNFIT), ("one", UNFIT), ("one", None), ("two", None)],
            ["cluster unreachable", "one failing", "cluster reachable again", "two recovered"],
            id="cluster-too-old",
        ),
        pytest.param(
            [("one", DENIED), ("one", DENIED), ("one", DENIED_Y), ("one", None)],
            ["one failing", "one failing", "one recovered"],
            id="cause-changes",
        ),
        pytest.param(
            [("one", AWAY), ("one", DENIED)],
            ["cluster unreachable", "one failing", "cluster reachable again"],
            id="refusal-is-an-answer",
        ),
        pytest.param(
            [("one", AWAY), ("one", WAITING), ("one", AWAY), ("one", None)],
            ["cluster unreachable", "cluster reachable again"],
            id="librdkafka's-own-error-is-no-answer",
        ),
        pytest.param(
            [("orders-0", DELETED), ("orders-0", DELETED), ("orders-0", None)],
            ["orders-0 deleted", "orders-0 recovered"],
            id="deleted-topic",
        ),
    ],
)
def test_failure_is_logged_once_with_its_end(
    troubles: FailureTracker, lines: Callable[[], list[str]], steps: list[Step], messages: list[str]
) -> None:
    go_through(troubles, *steps)
    assert lines() == messages


def test_failures_logged_by_another_service_are_not_logged(lines: Callable[[], list[str]]) -> None:
    troubles = FailureTracker(FlowLog("test", "A->B"), logged_elsewhere={"B"})
    go_through(troubles, ("one", AWAY), ("one", UNFIT), ("two", UNFIT), ("one", None), ("two", None), ("copying", AWAY))
    assert troubles.now["copying"] == str(AWAY)
    assert lines() == []
    go_through(troubles, ("progress", ClusterUnreachable("A", "a:9092", "refused")), ("copying", None))
    go_through(troubles, ("progress", None), ("copying", DENIED))
    assert lines() == ["cluster unreachable", "cluster reachable again", "copying failing"]


def test_outage_whose_cause_changes_is_logged_once_with_each_cause(
    troubles: FailureTracker, lines: Callable[[], list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    expired = "the certificate has expired"
    for cause in ("refused after 12 ms", "refused after 9 ms", expired, "refused after 7 ms", expired):
        for name in ("one", "two"):
            troubles.record_failure(name, ClusterUnreachable("B", "b:9092", cause))
    go_through(troubles, ("one", None), ("two", None), ("one", ClusterUnreachable("B", "b:9092", expired)))
    assert lines() == ["cluster unreachable"] * 2 + ["cluster reachable again", "cluster unreachable"]
    assert expired in str(vars(caplog.records[1]))


def test_outage_with_ever_new_causes_has_a_bounded_number_of_lines(
    troubles: FailureTracker, lines: Callable[[], list[str]]
) -> None:
    for number in range(100):
        troubles.record_failure("one", ClusterUnreachable("B", "b:9092", "x" * number))
    assert lines() == ["cluster unreachable"] * LOGGED_CAUSES


def test_failure_that_is_forgotten_leaves_room_for_others(
    troubles: FailureTracker, lines: Callable[[], list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(2 * LOGGED_AT_ONCE):
        troubles.record_failure(f"gone-{number}", ClusterError("B", "deleted"))
    troubles.record_failure("gone-0", AWAY)
    for number in range(2 * LOGGED_AT_ONCE):
        troubles.forget(f"gone-{number}")
    assert troubles.now == {}
    caplog.clear()
    go_through(troubles, ("orders-0", ClusterError("B", "refused")), ("orders-1", AWAY))
    assert lines() == ["orders-0 failing", "cluster unreachable"]


def test_forgotten_failures_are_logged_anew_when_they_begin_again(
    troubles: FailureTracker, lines: Callable[[], list[str]]
) -> None:
    for _ in range(2):
        go_through(troubles, ("one", AWAY), ("two", DENIED))
        troubles.forget_all()
        assert troubles.now == {}
    assert lines() == 2 * ["cluster unreachable", "two failing"]


def test_first_of_many_failures_are_named(
    troubles: FailureTracker, lines: Callable[[], list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    names = [f"p-{number}" for number in range(LOGGED_AT_ONCE + 3)]
    for text in ("no leader", "still none"):
        go_through(troubles, *((name, ClusterError("B", text)) for name in names))
    assert troubles.now.keys() == set(names)
    go_through(troubles, *((name, None) for name in reversed(names)), ("p-0", ClusterError("B", "again")))
    named = names[:LOGGED_AT_ONCE]
    failing, recovered = [f"{name} failing" for name in named], [f"{name} recovered" for name in reversed(named)]
    assert lines() == [*failing, "others failing", *failing, "others recovered", *recovered, "p-0 failing"]
    go_through(troubles, *((name, ClusterError("B", "no leader")) for name in names), *((name, None) for name in names))
    texts = [vars(record)["text"] for record in caplog.records if record.message == "others recovered"]
    assert texts == 2 * ["all that were not named, 3"]
    assert not troubles.now


def test_missing_permission_is_logged_once_with_its_end(
    troubles: FailureTracker, lines: Callable[[], list[str]]
) -> None:
    remedy, other = Remedy("we lack Write on topic x", "grant A."), Remedy("we lack Read on topic x", "grant *")
    for name in ("x-0", "x-1", "y-0"):
        troubles.record_failure(name, NotPermitted("B", "WRITE", f"topic {name}", remedy))
    troubles.record_failure("z-0", NotPermitted("B", "READ", "topic z", other))
    assert len(troubles.now) == 4
    go_through(troubles, *((name, None) for name in ("x-0", "y-0", "x-1", "z-0")))
    assert lines() == ["x-0 failing", "z-0 failing", "x-1 recovered", "z-0 recovered"]


def test_deleted_topic_is_logged_with_its_cluster(troubles: FailureTracker, caplog: pytest.LogCaptureFixture) -> None:
    troubles.record_failure("orders-0", DELETED)
    text = "topic orders was deleted on cluster A: a broker says that there is none; it is looked for again"
    assert caplog.records[0].__dict__["text"] == text


def test_cluster_that_has_not_answered_is_not_reachable_again(
    troubles: FailureTracker, lines: Callable[[], list[str]]
) -> None:
    go_through(troubles, ("the whole", AWAY), ("the whole", ClusterError("C", "another cluster fails")), ("one", AWAY))
    troubles.record_success("one", answered=False)
    troubles.record_success("the whole", answered=False)
    assert "cluster reachable again" not in lines()


def test_present_failures_have_reasons_with_codes(troubles: FailureTracker) -> None:
    refused = RequestRefused("B", "create", "topic x", 44, "policy violation")
    go_through(troubles, ("one", AWAY), ("two", DENIED), ("three", refused), ("four", TopicDeleted("B", "x")))
    troubles.record_failure("five", UNFIT)
    codes = ["cluster-unreachable", "not-permitted", "request-refused", "reported", "request-unfit"]
    assert [reason.code for reason in troubles.reasons.values()] == codes
    assert [reason.detail("cluster") for reason in troubles.reasons.values()] == ["B"] * 5
    assert troubles.reasons["three"].detail("error") == 44
    troubles.record_success("two")
    assert list(troubles.reasons) == ["one", "three", "four", "five"]
