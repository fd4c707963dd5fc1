"""The consequences for a flow if a cluster does not know a request. Pure.

`kafka_apis` has the requests without which nothing can be copied. For each of these there is another way, or something
stays unknown.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from lockstep_rules.clusters.cluster_kind import ApiVersions
from lockstep_state.kafka.kafka_apis import OF_BOTH, OF_PRODUCER_IDS, OF_TARGET, OF_TRANSACTIONS
from lockstep_state.kafka.kafka_requests import KafkaRequest as Request


class Role(Enum):
    """The role of a cluster in a flow."""

    SOURCE = "source"
    TARGET = "target"


class Cost(Enum):
    """The loss of a flow without a request."""

    WORK = "work"
    """Something that the file asks for is not done, or is done more slowly or less safely."""
    KNOWLEDGE = "knowledge"
    """Something is not shown."""


@dataclass(frozen=True, slots=True)
class Capability:
    """A request that Lockstep can do without.

    `oldest` is the version needed, `without` the sentence about the consequence.
    """

    request: Request
    oldest: int
    roles: frozenset[Role]
    cost: Cost
    without: str

    @property
    def name(self) -> str:
        """Kafka's name of the request, with the version if a cluster may have an older one."""
        return self.request.kafka_name + (f" {self.oldest}" if self.oldest else "")

    def is_supported(self, versions: ApiVersions) -> bool:
        """Return whether brokers announce the request in the version needed."""
        return versions.get(self.request, (0, -1))[1] >= self.oldest


_SOURCE, _TARGET = frozenset({Role.SOURCE}), frozenset({Role.TARGET})
_BOTH = _SOURCE | _TARGET

CAPABILITIES: tuple[Capability, ...] = (
    Capability(
        *(Request.DESCRIBE_PRODUCERS, 0, _TARGET, Cost.WORK),
        "the tail of the target's log is read instead when a partition begins, which takes longer",
    ),
    Capability(
        *(Request.OFFSET_FOR_LEADER_EPOCH, 2, _SOURCE, Cost.WORK),
        "a truncation of the source is found by the leader epochs in the log, which takes longer",
    ),
    Capability(
        *(Request.FETCH, 7, _SOURCE, Cost.WORK),
        "there are no fetch sessions: each fetch names all partitions, which costs bytes",
    ),
    Capability(
        *(Request.FETCH, 10, _SOURCE, Cost.WORK),
        "batches in zstd are not given, and their partitions halt",
    ),
    Capability(
        *(Request.FETCH, 12, _SOURCE, Cost.WORK),
        "the broker does not compare its log with what was fetched: a partition resumes at each change of its leader",
    ),
    Capability(
        *(Request.METADATA, 9, _SOURCE, Cost.WORK),
        "leader epochs are not used: a former leader may answer a fetch until it knows the new one",
    ),
    Capability(
        *(Request.PRODUCE, 7, _TARGET, Cost.WORK),
        "batches in zstd are compressed anew with a codec that is taken, and halt with lockstep.recompress=never",
    ),
    Capability(
        *(Request.PRODUCE, 8, _TARGET, Cost.WORK),
        "the target does not say which records of a batch it refuses, so the partition halts, and none is quarantined",
    ),
    Capability(
        *(Request.INIT_PRODUCER_ID, 0, _TARGET, Cost.WORK),
        "there are no producer ids. The target's log is read back: one batch of a partition is in flight, and a writer "
        "that was frozen may double it. Records of control topics may be appended twice",
    ),
    Capability(
        *(Request.ADD_PARTITIONS_TO_TXN, 0, _TARGET, Cost.WORK),
        "there are no transactions. If the first start shows that the target does not keep producer ids either, its "
        "log is read back: one batch of a partition is in flight, and a writer that was frozen may double it",
    ),
    Capability(
        *(Request.LIST_GROUPS, 0, _SOURCE, Cost.WORK),
        "groups are not known, so none of them is translated",
    ),
    Capability(
        *(Request.OFFSET_FETCH, 0, _SOURCE, Cost.WORK),
        "offsets of groups are not known, so none of them is translated",
    ),
    Capability(
        *(Request.OFFSET_COMMIT, 0, _TARGET, Cost.WORK),
        "offsets of groups are not set",
    ),
    Capability(
        *(Request.DESCRIBE_GROUPS, 0, _TARGET, Cost.WORK),
        "groups with members are not known, so offsets of groups are not set",
    ),
    Capability(
        *(Request.INCREMENTAL_ALTER_CONFIGS, 0, _TARGET, Cost.WORK),
        "configs are read and written as a whole, and a change of another client in between is lost",
    ),
    Capability(
        *(Request.CREATE_PARTITIONS, 0, _TARGET, Cost.WORK),
        "partitions that a source topic gets are not added to its copy",
    ),
    Capability(
        *(Request.DESCRIBE_CONFIGS, 0, _BOTH, Cost.WORK),
        "configs are not copied, and control topics are not checked",
    ),
    Capability(
        *(Request.DESCRIBE_ACLS, 0, _BOTH, Cost.WORK),
        "ACLs are not copied",
    ),
    Capability(
        *(Request.CREATE_ACLS, 0, _TARGET, Cost.WORK),
        "ACLs are not copied",
    ),
    Capability(
        *(Request.METADATA, 10, _BOTH, Cost.WORK),
        "topics have no ids, so one that is created again under its name may be taken for the former one",
    ),
    Capability(
        *(Request.METADATA, 8, _BOTH, Cost.KNOWLEDGE),
        "rights are not checked",
    ),
    Capability(
        *(Request.DESCRIBE_LOG_DIRS, 0, _SOURCE, Cost.KNOWLEDGE),
        "plan estimates sizes from a sample",
    ),
    Capability(
        *(Request.DESCRIBE_QUORUM, 1, _BOTH, Cost.KNOWLEDGE),
        "the clock of the controller is not known",
    ),
    Capability(
        *(Request.DESCRIBE_CLIENT_QUOTAS, 0, _BOTH, Cost.KNOWLEDGE),
        "quotas are not known",
    ),
)


def capabilities_of(roles: Iterable[Role]) -> Iterator[Capability]:
    """Yield the capabilities that a cluster in these roles should have."""
    all_roles = frozenset(roles)
    return (capability for capability in CAPABILITIES if all_roles & capability.roles)


def missing_capabilities(versions: ApiVersions, roles: Iterable[Role]) -> Iterator[Capability]:
    """Yield the capabilities that a cluster in these roles lacks.

    Args:
        versions: Versions that all of its brokers know (`known_versions`).
        roles: Its roles in the flows.
    """
    return (capability for capability in capabilities_of(roles) if not capability.is_supported(versions))


def known_versions(versions: ApiVersions, refused: Iterable[int]) -> dict[int, tuple[int, int]]:
    """Return the versions of the requests that brokers know.

    Args:
        versions: Versions that they announce.
        refused: Keys of requests that they announce and do not know all the same, as their answers show.
    """
    keys = frozenset(refused)
    return {key: announced for key, announced in versions.items() if key not in keys}


def shared_versions(brokers: Iterable[ApiVersions]) -> dict[int, tuple[int, int]]:
    """Return the versions that every one of these brokers knows. During an upgrade they differ."""
    all_versions = list(brokers)
    keys = frozenset(all_versions[0]).intersection(*all_versions[1:]) if all_versions else frozenset[int]()
    ranges = {
        key: (max(versions[key][0] for versions in all_versions), min(versions[key][1] for versions in all_versions))
        for key in keys
    }
    return {key: (oldest, newest) for key, (oldest, newest) in ranges.items() if oldest <= newest}


def needed_apis(role: Role, *, transactions: bool, keeps_names: bool) -> frozenset[str]:
    """Return the requests, by their name in `kafka_apis.APIS`, without which a cluster cannot have this role.

    Args:
        role: The role of the cluster in the flow.
        transactions: The flow copies in transactions, as its file asks.
        keeps_names: Topics have the same names on both clusters.
    """
    if role is Role.SOURCE:
        return frozenset(OF_BOTH)
    if transactions:
        return frozenset(OF_TRANSACTIONS)
    return frozenset(OF_PRODUCER_IDS if keeps_names else OF_TARGET)
