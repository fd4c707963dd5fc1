"""What we may do with something that a cluster describes (KIP-430), if its brokers say so."""

from typing import Any

from lockstep_kafka.admin.admin_requests import AdminRequests
from lockstep_kafka.session.broker_session import QuestionRefused, SessionRefused
from lockstep_kafka.session.cluster_reader import says_cluster_operations


def said_operations(described: Any) -> frozenset[str] | None:
    """Return what we may do with a topic or group that was described, in Kafka's upper-case words. None: the brokers do
    not say so. They describe none with which a client may do nothing.
    """
    operations = described.authorized_operations
    return frozenset(operation.name for operation in operations) if operations else None


class OperationRequests(AdminRequests):
    _says_operations: bool | None = None
    """True: brokers say what we may do on the cluster. None: that is not known yet."""

    async def known_operations(self, described: Any) -> frozenset[str] | None:
        """Return what we may do on the cluster that was described, in Kafka's upper-case words. None: the brokers do
        not say so. They describe a cluster to every client. librdkafka has the same answer for operations that are
        not said, and for none at all. So a broker is asked once more, without librdkafka.
        """
        if (operations := said_operations(described)) is not None:
            return operations
        if self._says_operations is None:
            try:
                client_id = str(self._conf.get("client.id", ""))
                self._says_operations = await says_cluster_operations(self._properties, client_id, self._quick)
            except (TimeoutError, SessionRefused, QuestionRefused, OSError):
                return frozenset()  # librdkafka was let in: the worst is that a right is missing
        return frozenset() if self._says_operations else None
