"""The table of error codes agrees with both Kafka libraries."""

import confluent_kafka
import pytest
from kio.schema.errors import ErrorCode

from lockstep_state.kafka.kafka_errors import ErrorMeaning, KafkaErrorCode, codes_that_mean, error_meaning

OLDER_NAMES = {
    "NONE": "NO_ERROR",
    "CORRUPT_MESSAGE": "INVALID_MSG",
    "UNKNOWN_TOPIC_OR_PARTITION": "UNKNOWN_TOPIC_OR_PART",
    "NOT_LEADER_OR_FOLLOWER": "NOT_LEADER_FOR_PARTITION",
    "MESSAGE_TOO_LARGE": "MSG_SIZE_TOO_LARGE",
    "INVALID_TOPIC_EXCEPTION": "TOPIC_EXCEPTION",
}
"""librdkafka keeps these."""

NOT_OF_LIBRDKAFKA = {"FETCH_SESSION_TOPIC_ID_ERROR"}


@pytest.mark.parametrize("code", KafkaErrorCode, ids=lambda code: code.name)
def test_code_has_the_name_of_kio(code: KafkaErrorCode) -> None:
    assert ErrorCode(code).name.upper() == code.name


def test_codes_have_the_names_of_librdkafka() -> None:
    codes = {code for code in KafkaErrorCode if code.name not in NOT_OF_LIBRDKAFKA}
    theirs = {code: getattr(confluent_kafka.KafkaError, OLDER_NAMES.get(code.name, code.name)) for code in codes}
    assert theirs == {code: int(code) for code in codes}
    assert not any(hasattr(confluent_kafka.KafkaError, name) for name in NOT_OF_LIBRDKAFKA)


def test_each_code_of_a_missing_permission_means_denied() -> None:
    assert codes_that_mean(ErrorMeaning.DENIED) == {
        int(code) for code in ErrorCode if code.name.endswith("_authorization_failed")
    }


def test_retriable_request_codes_are_those_of_kafka() -> None:
    """What librdkafka's callers repeat besides: a broker that is away, a group that rebalances."""
    repeated = codes_that_mean(ErrorMeaning.RETRIABLE) | codes_that_mean(ErrorMeaning.UNREACHABLE)
    assert {code.name for code in KafkaErrorCode if code in repeated and not ErrorCode(code).retriable} == {
        "BROKER_NOT_AVAILABLE",
        "REBALANCE_IN_PROGRESS",
        "SASL_AUTHENTICATION_FAILED",
    }


@pytest.mark.parametrize("number", [-1, 4, 31_999])
def test_code_that_is_not_in_the_table_depends_on_the_request(number: int) -> None:
    assert error_meaning(number) is ErrorMeaning.OTHER
