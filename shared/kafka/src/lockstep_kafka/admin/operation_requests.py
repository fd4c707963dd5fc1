"""The operations that we may do with a resource that a cluster describes (KIP-430), if its brokers report them."""

from typing import Any

from lockstep_kafka.admin.admin_requests import AdminRequests
from lockstep_kafka.session.broker_session import BrokerRequestFailed, SessionRefused
from lockstep_kafka.session.cluster_reader import says_cluster_operations


def said_operations(described: Any) -> frozenset[str] | None:
    """Return the operations that we may do with a described topic or group, in Kafka's upper-case words.

    None means that the brokers do not report them. Brokers describe no topic or group on which a client may do nothing.
    """
    operations = described.authorized_operations
    return frozenset(operation.name for operation in operations) if operations else None


class OperationRequests(AdminRequests):
    _says_operations: bool | None = None
    """True if brokers report the operations on the cluster, None while that is not known."""

    async def known_operations(self, described: Any) -> frozenset[str] | None:
        """Return the operations that we may do on the described cluster, in Kafka's upper-case words.

        None means that the brokers do not report them. Brokers describe the cluster to every client. librdkafka
        returns the same for operations that are not reported and for no operation at all. So a broker is asked once
        more, without librdkafka.
        """
        if (operations := said_operations(described)) is not None:
            return operations
        if self._says_operations is None:
            try:
                client_id = str(self._conf.get("client.id", ""))
                self._says_operations = await says_cluster_operations(self.properties, client_id, self._quick)
            except (TimeoutError, SessionRefused, BrokerRequestFailed, OSError):
                return frozenset()  # librdkafka could log in, so at worst a right is missing
        return frozenset() if self._says_operations else None
