"""Kafka's requests that our own connections send, with the known versions of each, and those a copy cannot do without.

The oldest versions are those of Kafka 4's own clients (KIP-896), which speak with brokers from 2.1 on.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple


class KafkaApi(NamedTuple):
    """An API with the versions that Lockstep can fill. `name` is Kafka's."""

    name: str
    key: int
    oldest: int
    newest: int

    def since(self, oldest: int) -> "KafkaApi":
        """Return the API without its versions before `oldest`."""
        return self._replace(oldest=max(self.oldest, oldest))

    def common_version(self, oldest: int, newest: int) -> int | None:
        """Return the newest version that a broker with these versions knows too; None: there is none."""
        version = min(self.newest, newest)
        return version if version >= max(self.oldest, oldest) else None


APIS: Mapping[str, KafkaApi] = MappingProxyType(
    {
        "produce": KafkaApi("Produce", 0, 3, 13),
        "fetch": KafkaApi("Fetch", 1, 4, 17),
        "list_offsets": KafkaApi("ListOffsets", 2, 1, 8),
        "metadata": KafkaApi("Metadata", 3, 1, 12),
        "find_coordinator": KafkaApi("FindCoordinator", 10, 1, 4),  # 0 finds groups only, and we ask for transactions
        "init_producer_id": KafkaApi("InitProducerId", 22, 0, 4),
        "offset_for_leader_epoch": KafkaApi("OffsetForLeaderEpoch", 23, 2, 4),
        "add_partitions_to_txn": KafkaApi("AddPartitionsToTxn", 24, 0, 3),
        "end_txn": KafkaApi("EndTxn", 26, 0, 4),  # from 5 on each one changes the epoch (KIP-890): ours keeps its own
        "describe_producers": KafkaApi("DescribeProducers", 61, 0, 0),
        "api_versions": KafkaApi("ApiVersions", 18, 0, 0),
        "sasl_handshake": KafkaApi("SaslHandshake", 17, 1, 1),
        "sasl_authenticate": KafkaApi("SaslAuthenticate", 36, 0, 1),
        "offset_fetch": KafkaApi("OffsetFetch", 9, 2, 7),  # from 8 on it asks for several groups
        "offset_commit": KafkaApi("OffsetCommit", 8, 2, 8),
        "list_groups": KafkaApi("ListGroups", 16, 0, 4),
        "describe_groups": KafkaApi("DescribeGroups", 15, 0, 5),
        "describe_acls": KafkaApi("DescribeAcls", 29, 1, 3),
        "create_acls": KafkaApi("CreateAcls", 30, 1, 3),
        "describe_configs": KafkaApi("DescribeConfigs", 32, 1, 4),
        "create_partitions": KafkaApi("CreatePartitions", 37, 0, 3),
        "incremental_alter_configs": KafkaApi("IncrementalAlterConfigs", 44, 0, 1),
        "describe_log_dirs": KafkaApi("DescribeLogDirs", 35, 1, 1),
        "describe_client_quotas": KafkaApi("DescribeClientQuotas", 48, 0, 1),
        "describe_quorum": KafkaApi("DescribeQuorum", 55, 1, 1),  # Kafka 3.3 (KIP-836)
    }
)

OF_BOTH = ("metadata", "list_offsets", "fetch")
"""Requests that brokers of source and target must know. The target's log is read where a copy resumes."""

OF_TARGET = (*OF_BOTH, "produce")
"""Requests that brokers of a target must know. Without the others a copy has another way, or no transactions."""

OF_PRODUCER_IDS = (*OF_TARGET, "init_producer_id")
"""Requests that brokers of a target must know if topics keep their names: a copy is known by its producer id."""

OF_TRANSACTIONS = (*OF_PRODUCER_IDS, "find_coordinator", "add_partitions_to_txn", "end_txn")
"""Requests that brokers of a target must know if a flow copies in transactions."""

NO_VERSIONS = (0, -1)
"""The versions of an API that a broker does not know."""


class UnfitRequest(NamedTuple):
    """A request that a cluster must know, and a broker of it knows in no version of ours.

    `oldest` and `newest` are the broker's versions.
    """

    api: KafkaApi
    oldest: int
    newest: int

    @property
    def text(self) -> str:
        """The request with both ranges of versions, in the words of a sentence."""
        broker_versions, own_versions = (
            versions_text(self.oldest, self.newest),
            versions_text(self.api.oldest, self.api.newest),
        )
        return f"{self.api.name} ({broker_versions}, and Lockstep {own_versions})"


def unfit_requests(versions: Mapping[int, tuple[int, int]], required: Iterable[str]) -> tuple[UnfitRequest, ...]:
    """Return the required requests that a broker knows in no version of ours. `versions` are its own, by key."""
    requests = ((APIS[name], *versions.get(APIS[name].key, NO_VERSIONS)) for name in required)
    return tuple(UnfitRequest(*request) for request in requests if request[0].common_version(*request[1:]) is None)


def versions_text(oldest: int, newest: int) -> str:
    """Return versions of a request as a sentence names them."""
    if newest < max(oldest, 0):
        return "none"
    return f"version {oldest}" if oldest == newest else f"versions {oldest} to {newest}"
