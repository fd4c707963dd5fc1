"""The clients of both clusters of a slot."""

from lockstep_config import FlowSettings
from lockstep_config.flow.client_settings import client_id
from lockstep_kafka.wire.cluster import ClusterClient, connect_cluster


def connect_clusters(settings: FlowSettings, slot: int) -> tuple[ClusterClient, ClusterClient]:
    """Return source and target, under the client ids that MM2's consumer and producer have. Nothing is connected before
    the first request. Raises BrokerUnreachable where certificates are unusable."""
    flow, reading, writing = settings.flow, settings.clients.source_consumer, settings.clients.data_producer
    source = connect_cluster(flow.source, reading, client_id(settings, f"replication-consumer-{slot}", reading))
    target = connect_cluster(flow.target, writing, client_id(settings, f"replication-producer-{slot}", writing))
    return source, target
