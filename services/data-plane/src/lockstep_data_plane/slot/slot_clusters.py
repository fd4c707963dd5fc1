"""The clients of both clusters of a slot."""

from lockstep_config import FlowSettings
from lockstep_config.flow.client_settings import client_id
from lockstep_kafka.wire.cluster import ClusterClient, connect_cluster


def connect_clusters(settings: FlowSettings, slot: int) -> tuple[ClusterClient, ClusterClient]:
    """Return the clients of source and target, under the client ids of MM2's consumer and producer.

    They connect with the first request.

    Raises:
        BrokerUnreachable: The certificates cannot be used.
    """
    flow, reading, writing = settings.flow, settings.clients.source_consumer, settings.clients.data_producer
    source = connect_cluster(flow.source, reading, client_id(settings, f"replication-consumer-{slot}", reading))
    target = connect_cluster(flow.target, writing, client_id(settings, f"replication-producer-{slot}", writing))
    return source, target
