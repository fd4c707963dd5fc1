"""Why a record of a control topic was not appended, as it is told."""

import pytest
from confluent_kafka import KafkaError

from lockstep_config.credentials.permissions import NO_ACCESS
from lockstep_kafka.common.errors import ClusterError, NotAppended, NotPermitted
from lockstep_kafka.librdkafka.append_trouble import ENDED, append_trouble
from lockstep_kafka.librdkafka.producer_id_support import NO_IDS
from lockstep_state.kafka.kafka_errors import KafkaErrorCode as Code

OF_RECORDS = (KafkaError._FATAL, KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)


def trouble(code: int, end_cause: KafkaError | None) -> ClusterError:
    return append_trouble("B", "state", KafkaError(code), end_cause, NO_ACCESS)


@pytest.mark.parametrize("code", OF_RECORDS)
def test_denied_producer_id_names_the_missing_right(code: int) -> None:
    error = trouble(code, KafkaError(Code.CLUSTER_AUTHORIZATION_FAILED, "Failed to acquire PID", fatal=True))
    assert isinstance(error, NotPermitted)
    assert "IDEMPOTENT_WRITE on the cluster (InitProducerId)" in str(error)


@pytest.mark.parametrize("code", OF_RECORDS)
def test_record_of_an_ended_producer_has_the_error_that_ended_it(code: int) -> None:
    error = trouble(code, KafkaError(Code.INVALID_PRODUCER_EPOCH, "an older epoch", fatal=True))
    assert isinstance(error, NotAppended)
    assert str(error).endswith("an older epoch (INVALID_PRODUCER_EPOCH)")


@pytest.mark.parametrize("code", [KafkaError._UNSUPPORTED_FEATURE, Code.UNSUPPORTED_VERSION])
def test_cluster_without_producer_ids_is_named_by_the_request(code: int) -> None:
    assert str(trouble(KafkaError._FATAL, KafkaError(code))).endswith(NO_IDS)
    assert NO_IDS not in str(trouble(code, None)), "of the record itself, not of its producer"


def test_record_of_an_end_without_a_cause_admits_it() -> None:
    assert str(trouble(KafkaError._FATAL, None)).endswith(ENDED)


def test_record_that_is_lost_otherwise_keeps_its_own_error() -> None:
    error = trouble(KafkaError._MSG_TIMED_OUT, KafkaError(Code.INVALID_PRODUCER_EPOCH))
    assert "timed out" in str(error)
