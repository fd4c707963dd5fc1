"""Why a producer of control topics cannot append, as it is told."""

from confluent_kafka import KafkaError

from lockstep_kafka.common.errors import NotAppended, NotPermitted
from lockstep_kafka.librdkafka.control_producer import ControlProducer
from lockstep_state.kafka.kafka_errors import KafkaErrorCode as Code

FATAL = KafkaError(KafkaError._FATAL)


def producer() -> ControlProducer:
    return ControlProducer("B", {"bootstrap.servers": "b:9092"})


def test_denied_producer_id_names_the_missing_right() -> None:
    control = producer()
    control._on_error(KafkaError(Code.CLUSTER_AUTHORIZATION_FAILED, "Failed to acquire PID", fatal=True))
    trouble = control._trouble("state", FATAL)
    assert isinstance(trouble, NotPermitted)
    assert "IDEMPOTENT_WRITE on the cluster (InitProducerId)" in str(trouble)


def test_end_of_a_producer_has_the_error_that_ended_it() -> None:
    control = producer()
    control._on_error(KafkaError(KafkaError._TRANSPORT, "not this"))
    control._on_error(KafkaError(Code.INVALID_PRODUCER_EPOCH, "an older epoch", fatal=True))
    trouble = control._trouble("state", FATAL)
    assert isinstance(trouble, NotAppended)
    assert str(trouble).endswith("an older epoch (INVALID_PRODUCER_EPOCH)")
    assert "Fatal error" in str(producer()._trouble("state", FATAL)), "nothing more is known"
