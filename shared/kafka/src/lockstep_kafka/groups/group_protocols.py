"""The protocol of each group of a cluster, which librdkafka's listing keeps to itself.

librdkafka lists groups of the protocols "" and "consumer" only. Its request for all groups describes each of them,
which brokers refuse for groups of others. aiokafka's listing has the name and protocol of every group that the
principal may describe, and brokers refuse nothing.
"""

from collections.abc import Mapping

from aiokafka.admin import AIOKafkaAdminClient

from lockstep_kafka.session.aiokafka_client import client_arguments, within_cluster
from lockstep_kafka.session.sasl_session import renew_sessions


async def list_group_protocols(
    alias: str, properties: Mapping[str, str], client_id: str, timeout_s: float
) -> Mapping[str, str]:
    """Group to protocol type: `consumer`, `share` (KIP-932), `streams` (KIP-1071), `connect` and others; "" for groups
    without members that commit offsets only. Groups that the principal may not describe are left out.

    `properties` are a client's Java properties. It connects for this one answer: ask seldom. Raises ClusterUnreachable
    when one of the brokers does not answer, for its groups would be left out, and RequestUnsupported.
    """
    client = None
    try:
        with within_cluster(alias, properties, "list", "groups"):
            renew_sessions()
            client = AIOKafkaAdminClient(**client_arguments(properties, client_id, timeout_s))
            await client.start()
            return dict(await client.list_consumer_groups())
    finally:
        if client is not None:
            await client.close()
