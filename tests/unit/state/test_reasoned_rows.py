"""Rows with reasons: the text follows from the code, and a text alone is `unknown`."""

import json
from dataclasses import replace

import pytest

from lockstep_kafka.common.errors import ClusterUnreachable, NotPermitted, RequestRefused, TopicMissing
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence
from lockstep_state.rows.reasoned_row import ReasonedRow
from lockstep_state.rows.row import Row
from lockstep_state.rows.state_rows import ROWS, MirroredTopic, SlotStatus, decode_row
from tests.support.control_records import example

DENIED = ReasonCode.NOT_PERMITTED.to_reason(
    cluster="B", operation="CREATE", resource="topic A.t", text="User:m lacks Create", grant="kafka-acls --add"
)
SAID = "cluster B does not permit CREATE on topic A.t: User:m lacks Create; to grant it: kafka-acls --add"
TOPIC = MirroredTopic(source_topic="t", target_topic="A.t", phase="failed", cause=DENIED)
REASONED = [kind for kind, row in ROWS.items() if issubclass(row, ReasonedRow)]


def read_again(row: Row, **changed: object) -> Row | None:
    key, value = row.encode()
    body = {name: kept for name, kept in {**json.loads(value), **changed}.items() if kept is not None}
    return decode_row(key, json.dumps(body).encode())


def test_rows_with_a_reason_have_a_code() -> None:
    texts = {kind for kind, row in ROWS.items() if "reason" in getattr(row, "__dataclass_fields__", ())}
    assert texts - set(REASONED) == {"group"}, "a group has `why`, which reads rows of all releases"


def test_row_has_the_sentence_of_its_cause() -> None:
    body = json.loads(TOPIC.encode()[1])
    assert (body["reason"], body["cause"]) == (SAID, DENIED.to_json())
    assert replace(TOPIC, cause=NO_REASON).reason == ""
    assert read_again(TOPIC) == TOPIC


@pytest.mark.parametrize("kind", REASONED)
def test_row_with_a_text_alone_is_unknown_with_the_text(kind: str) -> None:
    row = read_again(replace(example(ROWS[kind]), cause=DENIED), cause=None, reason="of old")
    assert isinstance(row, ReasonedRow)
    assert (row.cause, row.reason) == (ReasonCode.UNKNOWN.to_reason(text="of old"), "of old")


def test_row_with_a_code_of_a_newer_release_keeps_it() -> None:
    row = read_again(TOPIC, cause={"code": "of-a-newer-release", "details": {"n": 1}}, reason="in its words")
    assert isinstance(row, MirroredTopic)
    assert row.cause == Reason("of-a-newer-release", (("n", 1),))
    assert "does not know" in row.reason


def test_slot_has_sentences_of_its_causes_and_reads_texts() -> None:
    slot = SlotStatus(slot=0, phase="started", causes=(("t-0", DENIED),))
    assert slot.troubles == (("t-0", SAID),)
    assert read_again(slot) == slot
    old = read_again(slot, causes=None, troubles=[["t-0", "of old"]])
    assert isinstance(old, SlotStatus)
    assert old.causes == (("t-0", ReasonCode.UNKNOWN.to_reason(text="of old")),)


@pytest.mark.parametrize(
    "trouble",
    [
        ClusterUnreachable("A", "a:9092", "timed out"),
        NotPermitted("A", "DESCRIBE", "topic t"),
        RequestRefused("A", "create", "topic t", 44, "a policy"),
        TopicMissing("A", "t"),
    ],
)
def test_error_of_a_cluster_has_the_same_sentence_as_its_reason(trouble: ClusterUnreachable) -> None:
    assert format_sentence(trouble.to_reason()) == str(trouble)


def test_reason_because_of_another_keeps_the_command_that_ends_it() -> None:
    reason = ReasonCode.TOPIC_CONFIGS.because(DENIED)
    assert (reason.detail("because"), reason.detail("grant")) == ("not-permitted", "kafka-acls --add")
    assert format_sentence(reason) == f"its configs: {SAID}"
