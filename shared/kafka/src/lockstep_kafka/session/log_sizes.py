"""The size of each partition on disk (DescribeLogDirs, KIP-113), which librdkafka does not ask for."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lockstep_kafka.common.error_verdicts import error_verdict
from lockstep_kafka.common.errors import NotPermitted, RequestRefused
from lockstep_kafka.messages.message_versions import load_message
from lockstep_kafka.wire.request_client import request_client
from lockstep_state.kafka.kafka_error_names import error_name
from lockstep_state.kafka.kafka_errors import ErrorMeaning
from lockstep_state.offsets import TopicPartition

CLUSTER = "the log directories (resource CLUSTER kafka-cluster)"


async def read_log_sizes(
    alias: str,
    properties: Mapping[str, str],
    client_id: str,
    partitions: Iterable[TopicPartition],
    timeout_s: float,
) -> dict[TopicPartition, int]:
    """Return the bytes of each partition, of the largest replica.

    A partition is absent if no broker has it. Each call opens connections, and needs Describe on the cluster.

    Args:
        alias: The alias of the cluster, for errors.
        properties: Java properties of a client.
        client_id: The client id for the brokers.
        partitions: The partitions that are asked for.
        timeout_s: Seconds that each connection and each answer may take.

    Raises:
        ClusterUnreachable: A broker does not answer.
        NotPermitted: The principal may not describe the cluster.
        RequestUnsupported: A broker does not know the request.
        RequestRefused: A broker refuses the request.
    """
    by_topic = dict[str, list[int]]()
    for topic, number in partitions:
        by_topic.setdefault(topic, []).append(number)
    sizes = dict[TopicPartition, int]()
    async with request_client(alias, properties, client_id, timeout_s, "describe", "the log directories") as cluster:
        for broker in cluster.brokers:
            connection = await cluster.connection(broker, "log-dirs")
            m = load_message("describe_log_dirs", connection.version("describe_log_dirs"), "request")
            topics = tuple(
                m.DescribableLogDirTopic(topic=topic, partitions=tuple(numbers)) for topic, numbers in by_topic.items()
            )
            answer = await connection.request(m.DescribeLogDirsRequest(topics=topics))
            _gather(alias, answer.results, sizes)
    return sizes


def _gather(alias: str, results: Sequence[Any], sizes: dict[TopicPartition, int]) -> None:
    if not results:  # every broker has a log directory: an empty answer means a missing right
        raise NotPermitted(alias, "DESCRIBE", CLUSTER)
    for result in results:
        code = int(result.error_code)
        if error_verdict(code) is ErrorMeaning.DENIED:
            raise NotPermitted(alias, "DESCRIBE", CLUSTER)
        if code:
            raise RequestRefused(alias, "describe", f"log directory {result.log_dir}", code, error_name(code))
        for topic in result.topics:
            for partition in topic.partitions:
                if not partition.is_future_key:
                    tp = str(topic.name), int(partition.partition_index)
                    sizes[tp] = max(int(partition.partition_size), sizes.get(tp, 0))
