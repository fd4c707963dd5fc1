"""The protocol type of each group of a cluster, which librdkafka's listing omits.

librdkafka lists groups of the protocol types "" and "consumer" only. Its request for all groups describes each of them,
which brokers refuse for groups of other types. ListGroups returns the name and protocol type of every group that the
principal may describe, and brokers refuse nothing.
"""

from collections.abc import Mapping

from lockstep_kafka.common.errors import RequestRefused
from lockstep_kafka.messages.message_versions import load_message
from lockstep_kafka.wire.request_client import request_client
from lockstep_state.kafka.kafka_error_names import error_name

GROUPS = "groups"


async def list_group_protocols(
    alias: str, properties: Mapping[str, str], client_id: str, timeout_s: float
) -> Mapping[str, str]:
    """Return the protocol type of each group by its name.

    That is `consumer`, `share` (KIP-932), `streams` (KIP-1071), `connect` or another. It is "" for groups without
    members that commit offsets only. Groups that the principal may not describe are absent. Each call opens
    connections: call it seldom.

    Args:
        alias: The alias of the cluster, for errors.
        properties: Java properties of a client.
        client_id: The client id for the brokers.
        timeout_s: Seconds that each connection and each answer may take.

    Raises:
        ClusterUnreachable: One of the brokers does not answer, so that its groups would be missing.
        RequestUnsupported: A broker does not know the request.
        RequestRefused: A broker refuses it.
    """
    protocols: dict[str, str] = {}
    async with request_client(alias, properties, client_id, timeout_s, "list", GROUPS) as cluster:
        for broker in cluster.brokers:
            connection = await cluster.connection(broker, GROUPS)
            m = load_message("list_groups", connection.version("list_groups"), "request")
            answer = await connection.request(m.ListGroupsRequest())
            if answer.error_code:
                code = int(answer.error_code)
                raise RequestRefused(alias, "list", GROUPS, code, error_name(code))
            protocols |= {str(group.group_id): str(group.protocol_type) for group in answer.groups}
    return protocols
