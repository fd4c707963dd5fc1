"""What an error code of a broker means (`kafka-wire.md` §1): the log will tell, smaller may do, or it will never do."""

import ast
from collections.abc import Iterator

import pytest
from aiokafka import errors as kafka

from lockstep_kafka.messages.fetch_codec import DIVERGED
from lockstep_kafka.wire.error_codes import explain
from lockstep_state.kafka.kafka_errors import ErrorMeaning, KafkaErrorCode
from tests.support.source_modules import source_modules

SENTENCES = [code for code in KafkaErrorCode if code.sentence]
REFUSED, TOO_LARGE = ErrorMeaning.REFUSED, ErrorMeaning.TOO_LARGE
PASSING = None
"""Any other meaning: the log will tell."""


@pytest.mark.parametrize(
    ("code", "fate", "name"),
    [
        (DIVERGED, PASSING, "diverging epoch"),
        (1, PASSING, "OFFSET_OUT_OF_RANGE"),
        (2, REFUSED, "CORRUPT_MESSAGE"),
        (3, PASSING, "UNKNOWN_TOPIC_OR_PARTITION"),
        (5, PASSING, "LEADER_NOT_AVAILABLE"),
        (6, PASSING, "NOT_LEADER_OR_FOLLOWER"),
        (7, PASSING, "REQUEST_TIMED_OUT"),
        (10, TOO_LARGE, "MESSAGE_TOO_LARGE"),
        (17, REFUSED, "INVALID_TOPIC_EXCEPTION"),
        (18, TOO_LARGE, "RECORD_LIST_TOO_LARGE"),
        (19, PASSING, "NOT_ENOUGH_REPLICAS"),
        (20, PASSING, "NOT_ENOUGH_REPLICAS_AFTER_APPEND"),
        (29, PASSING, "TOPIC_AUTHORIZATION_FAILED"),
        (31, PASSING, "CLUSTER_AUTHORIZATION_FAILED"),
        (32, REFUSED, "INVALID_TIMESTAMP"),
        (35, PASSING, "UNSUPPORTED_VERSION"),
        (43, REFUSED, "UNSUPPORTED_FOR_MESSAGE_FORMAT"),
        (45, PASSING, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (46, PASSING, "DUPLICATE_SEQUENCE_NUMBER"),
        (47, PASSING, "INVALID_PRODUCER_EPOCH"),
        (56, PASSING, "KAFKA_STORAGE_ERROR"),
        (59, PASSING, "UNKNOWN_PRODUCER_ID"),
        (74, PASSING, "FENCED_LEADER_EPOCH"),
        (75, PASSING, "UNKNOWN_LEADER_EPOCH"),
        (76, REFUSED, "UNSUPPORTED_COMPRESSION_TYPE"),
        (78, PASSING, "OFFSET_NOT_AVAILABLE"),
        (87, REFUSED, "INVALID_RECORD"),
        (100, PASSING, "UNKNOWN_TOPIC_ID"),
        (103, PASSING, "INCONSISTENT_TOPIC_ID"),
    ],
)
def test_error_code_of_the_table_has_meaning_and_name(code: int, fate: ErrorMeaning | None, name: str) -> None:
    meaning, sentence = explain(code)
    assert (meaning if meaning in (REFUSED, TOO_LARGE) else PASSING) is fate
    assert f"({name})" in sentence, "people find the name that Kafka's documentation has"


def test_each_code_of_the_table_is_a_case_above() -> None:
    cases = {case[0] for case in test_error_code_of_the_table_has_meaning_and_name.pytestmark[0].args[1]}  # type: ignore[attr-defined]  # set by the mark
    assert cases == {DIVERGED, *SENTENCES}


def test_error_code_that_is_unknown_is_retried_and_named() -> None:
    assert explain(4711) == (ErrorMeaning.OTHER, "an error that this release does not know, with code 4711")
    assert explain(89) == (ErrorMeaning.RETRIABLE, "THROTTLING_QUOTA_EXCEEDED")


def test_error_codes_retriable_in_kafka_are_never_refused_but_damage() -> None:
    """A corrupt message is retriable to a client that can read it anew; the batch we sent will not get better."""
    retriable = {code for code in SENTENCES if code != 2 and getattr(kafka.for_code(code), "retriable", False)}
    assert retriable
    assert {code for code in retriable if explain(code)[0] is REFUSED} == set()


WITH_CODES = ("lockstep_data_plane.", "lockstep_kafka.wire.")


def _numbers_compared_with_codes(tree: ast.Module) -> Iterator[int]:
    """Lines on which an error code is compared with a number."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        names = {side.attr if isinstance(side, ast.Attribute) else getattr(side, "id", "") for side in sides}
        numbers = [leaf for side in sides for leaf in ast.walk(side) if isinstance(leaf, ast.Constant)]
        if names & {"code", "error_code", "partition_error_code"} and any(type(n.value) is int for n in numbers):
            yield node.lineno


def test_codes_are_compared_with_names_only() -> None:
    modules = [(name, tree) for name, tree in source_modules() if name.startswith(WITH_CODES)]
    assert len(modules) > 100
    compared = [f"{name}:{line}" for name, tree in modules for line in _numbers_compared_with_codes(tree)]
    assert compared == []
    assert list(_numbers_compared_with_codes(ast.parse("if answer.code in (0, 74): ..."))) == [1]
