"""What we may do with something that a cluster describes (KIP-430), if its brokers say so."""

from typing import Any

from lockstep_protocol.cluster_kind import ApiVersions
from lockstep_protocol.kafka_requests import KafkaRequest
from lockstep_runtime.kafka.admin_requests import AdminRequests
from lockstep_runtime.kafka.broker_session import SessionRefused
from lockstep_runtime.kafka.cluster_reader import read_bootstrap_versions

SAY_OPERATIONS = {KafkaRequest.METADATA: 8, KafkaRequest.DESCRIBE_GROUPS: 3}
"""From which version on brokers say what a client may do."""


class OperationRequests(AdminRequests):
    _versions: ApiVersions | None = None
    """Those that a broker announced when it was asked."""

    async def known_operations(self, described: Any, request: KafkaRequest) -> frozenset[str] | None:
        """Return what we may do with something that was described by a request, in Kafka's upper-case words. None: the
        brokers do not say so. librdkafka has the same answer for that and for nothing at all, so versions decide."""
        if operations := described.authorized_operations:
            return frozenset(operation.name for operation in operations)
        return frozenset() if await self._says_operations(request) else None

    async def _says_operations(self, request: KafkaRequest) -> bool:
        if self._versions is None:
            try:
                client_id = str(self._conf.get("client.id", ""))
                self._versions = await read_bootstrap_versions(self._properties, client_id, self._quick)
            except (TimeoutError, SessionRefused, OSError):
                return True  # librdkafka was let in: the worst is that a right is missing
        return self._versions.get(request, (0, -1))[1] >= SAY_OPERATIONS[request]
