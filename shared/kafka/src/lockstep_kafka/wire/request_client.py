"""A client that is connected for a few requests that librdkafka lacks, and then closed."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from lockstep_kafka.common.errors import ClusterUnreachable, RequestUnsupported
from lockstep_kafka.wire.cluster import ClusterClient, connect_cluster
from lockstep_kafka.wire.connection_errors import BrokerUnreachable, ProtocolUnfitError
from lockstep_kafka.wire.timeouts import Timeouts
from lockstep_state.kafka.kafka_errors import KafkaErrorCode


@asynccontextmanager
async def request_client(
    alias: str, properties: Mapping[str, str], client_id: str, timeout_s: float, operation: str, resource: str
) -> AsyncIterator[ClusterClient]:
    """Give a client that has the metadata of a cluster, and close it afterwards.

    Args:
        alias: The alias of the cluster, for errors.
        properties: Java properties of a client.
        client_id: The client id for the brokers.
        timeout_s: Seconds that each connection and each answer may take.
        operation: The operation, for errors.
        resource: The resource of the operation, for errors.

    Raises:
        ClusterUnreachable: The client or its credentials failed.
        RequestUnsupported: A broker knows a request in no version of ours.
    """
    cluster = None
    try:
        cluster = connect_cluster(
            alias, properties, client_id, Timeouts(opening_s=timeout_s, short_request_s=timeout_s)
        )
        await cluster.refresh([])
        yield cluster
    except ProtocolUnfitError as exc:
        code = KafkaErrorCode.UNSUPPORTED_VERSION
        raise RequestUnsupported(alias, operation, resource, code, str(exc)) from exc
    except BrokerUnreachable as exc:
        raise ClusterUnreachable(alias, properties["bootstrap.servers"], str(exc)) from exc
    finally:
        if cluster is not None:
            await cluster.close()
