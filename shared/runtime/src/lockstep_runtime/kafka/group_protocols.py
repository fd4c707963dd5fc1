"""The protocol of each group of a cluster, which librdkafka's listing keeps to itself.

librdkafka lists groups of the protocols "" and "consumer" only. Its request for all groups describes each of them,
which brokers refuse for groups of others. aiokafka's listing has the name and protocol of every group that the
principal may describe, and brokers refuse nothing.
"""

from collections.abc import Mapping

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from lockstep_config.clients.token_source import TokenUnavailable
from lockstep_config.flow.client_settings import aiokafka_connection
from lockstep_runtime.util.errors import ClusterUnreachable


async def list_group_protocols(
    alias: str, properties: Mapping[str, str], client_id: str, timeout_s: float
) -> Mapping[str, str]:
    """Group to protocol type: `consumer`, `share` (KIP-932), `streams` (KIP-1071), `connect` and others; "" for groups
    without members that commit offsets only. Groups that the principal may not describe are left out.

    `properties` are a client's Java properties. It connects for this one answer: ask seldom. Raises ClusterUnreachable
    when one of the brokers does not answer, for its groups would be left out.
    """
    bootstrap = properties["bootstrap.servers"]
    client = None
    try:
        client = AIOKafkaAdminClient(
            bootstrap_servers=[address.strip() for address in bootstrap.split(",") if address.strip()],
            client_id=client_id,
            request_timeout_ms=round(timeout_s * 1000),
            **aiokafka_connection(properties),
        )
        await client.start()
        return dict(await client.list_consumer_groups())
    except (KafkaError, OSError, TimeoutError, TokenUnavailable) as exc:
        raise ClusterUnreachable(alias, bootstrap, str(exc) or type(exc).__name__) from exc
    finally:
        if client is not None:
            await client.close()
