"""How many bytes each partition has on disk, which librdkafka does not ask for (DescribeLogDirs, KIP-113)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Boolean, Int16, Int32, Int64, Schema, String

from lockstep_kafka.common.error_verdicts import error_verdict
from lockstep_kafka.common.errors import NotPermitted, RequestRefused
from lockstep_kafka.session.aiokafka_client import client_arguments, within_cluster
from lockstep_kafka.session.sasl_session import renew_sessions
from lockstep_state.kafka.kafka_error_names import error_name
from lockstep_state.kafka.kafka_errors import ErrorMeaning
from lockstep_state.offsets import TopicPartition

KEY = 35

CLUSTER = "the log directories (resource CLUSTER kafka-cluster)"


class LogDirsAnswer(Response):  # type: ignore[misc]  # aiokafka has no annotations
    """Version 1, which brokers of 1.0 to 4.x know."""

    API_KEY = KEY
    API_VERSION = 1
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "results",
            Array(
                ("error_code", Int16),
                ("log_dir", String("utf-8")),
                (
                    "topics",
                    Array(
                        ("name", String("utf-8")),
                        (
                            "partitions",
                            Array(
                                ("partition_index", Int32),
                                ("partition_size", Int64),
                                ("offset_lag", Int64),
                                ("is_future_key", Boolean),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    )


class LogDirsQuestion(RequestStruct):  # type: ignore[misc]  # aiokafka has no annotations
    """About every partition of one broker where `topics` is None."""

    API_KEY = KEY
    API_VERSION = 1
    RESPONSE_TYPE = LogDirsAnswer
    SCHEMA = Schema(("topics", Array(("topic", String("utf-8")), ("partitions", Array(Int32)))))


class LogDirsRequest(Request[LogDirsQuestion]):  # type: ignore[misc]  # aiokafka has no annotations
    """About these partitions."""

    API_KEY = KEY

    def __init__(self, topics: Mapping[str, list[int]]) -> None:
        self._topics = topics

    def build(self, request_struct_class: type[LogDirsQuestion]) -> LogDirsQuestion:
        """The question as aiokafka sends it."""
        return request_struct_class(list(self._topics.items()))


async def read_log_sizes(
    alias: str,
    properties: Mapping[str, str],
    client_id: str,
    partitions: Iterable[TopicPartition],
    timeout_s: float,
) -> dict[TopicPartition, int]:
    """Bytes of each partition, of the largest replica. Absent: no broker has it.

    `properties` are a client's Java properties. It connects for this one answer. Raises ClusterUnreachable,
    NotPermitted (it needs Describe on the cluster) and RequestRefused. It is a RequestUnsupported if a broker does not
    know the request."""
    by_topic = dict[str, list[int]]()
    for topic, number in partitions:
        by_topic.setdefault(topic, []).append(number)
    client, sizes = None, dict[TopicPartition, int]()
    try:
        with within_cluster(alias, properties, "describe", "the log directories"):
            renew_sessions()
            client = AIOKafkaClient(**client_arguments(properties, client_id, timeout_s))
            await client.bootstrap()
            for broker in client.cluster.brokers():
                answer = await client.send(broker.nodeId, LogDirsRequest(by_topic))
                _gather(alias, answer.results, sizes)
    finally:
        if client is not None:
            await client.close()
    return sizes


def _gather(alias: str, results: Sequence[Any], sizes: dict[TopicPartition, int]) -> None:
    if not results:  # each broker has a log directory; in this version it is silent where it does not permit it
        raise NotPermitted(alias, "DESCRIBE", CLUSTER)
    for code, folder, topics in results:
        if error_verdict(code) is ErrorMeaning.DENIED:
            raise NotPermitted(alias, "DESCRIBE", CLUSTER)
        if code:
            raise RequestRefused(alias, "describe", f"log directory {folder}", code, error_name(code))
        for topic, partitions in topics:
            for number, size, _, is_future in partitions:
                if not is_future:
                    sizes[topic, number] = max(size, sizes.get((topic, number), 0))
