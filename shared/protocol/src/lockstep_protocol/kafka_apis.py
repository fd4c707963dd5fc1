"""Kafka's requests that the data plane sends: the versions of each that it knows, and which cluster needs it.

The oldest versions are those of Kafka 4's own clients (KIP-896), which speak with brokers of 2.1 and newer.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from lockstep_protocol.reason import Detail, Reason
from lockstep_protocol.reason_catalogue import ReasonCode

VersionRange = tuple[int, int]
"""The oldest and the newest version of a request that a broker announces."""


class ClusterRole(StrEnum):
    """What a flow asks of a cluster: to be read, or to be written, without or with transactions."""

    SOURCE = "source"
    TARGET = "target"
    TRANSACTIONAL_TARGET = "transactional-target"


class KafkaApi(NamedTuple):
    """An API that is spoken, and the oldest and newest version that are filled. A cluster in one of the roles of
    `needed_by` cannot do without it."""

    key: int
    oldest: int
    newest: int
    needed_by: frozenset[ClusterRole]


_EVERY = frozenset(ClusterRole)
_TARGETS = _EVERY - {ClusterRole.SOURCE}
_TRANSACTIONS = frozenset({ClusterRole.TRANSACTIONAL_TARGET})
_NOBODY: frozenset[ClusterRole] = frozenset()

APIS: Mapping[str, KafkaApi] = MappingProxyType(
    {
        "produce": KafkaApi(0, 3, 13, _TARGETS),
        "fetch": KafkaApi(1, 4, 17, _EVERY),
        "list_offsets": KafkaApi(2, 1, 8, _EVERY),  # 7 is of Kafka 3.0
        "metadata": KafkaApi(3, 1, 12, _EVERY),
        "find_coordinator": KafkaApi(10, 1, 4, _TRANSACTIONS),  # 0 finds coordinators of groups only
        "init_producer_id": KafkaApi(22, 0, 4, _TARGETS),
        "offset_for_leader_epoch": KafkaApi(23, 2, 4, _NOBODY),  # of the source; without it the end of its log counts
        "add_partitions_to_txn": KafkaApi(24, 0, 3, _TRANSACTIONS),
        "end_txn": KafkaApi(26, 0, 4, _TRANSACTIONS),  # from 5 on each one changes the epoch (KIP-890)
        "describe_producers": KafkaApi(61, 0, 0, frozenset({ClusterRole.TARGET})),
    }
)


class ApiAbsent(NamedTuple):
    """A request that cannot be sent to a broker. `announced`: the versions that the broker knows, None: it does not
    know the request at all."""

    api: str
    announced: VersionRange | None

    def to_reason(self, cluster: str, broker: str) -> Reason:
        """Return why the request cannot be sent to this broker of this cluster."""
        ours = APIS[self.api]
        about: dict[str, Detail] = {
            "cluster": cluster,
            "broker": broker,
            "api": self.api,
            "oldest": ours.oldest,
            "newest": ours.newest,
        }
        if self.announced is None:
            return ReasonCode.REQUEST_UNKNOWN.to_reason(**about)
        first, last = self.announced
        return ReasonCode.REQUEST_VERSIONS.to_reason(**about, first=first, last=last)


def negotiate(api: str, announced: Mapping[int, VersionRange], *, oldest: int = 0) -> int | ApiAbsent:
    """Return the newest version of an API that both sides know, or its absence. `announced`: what a broker knows, by
    the keys of APIs. `oldest`: an older version would not do."""
    ours, theirs = APIS[api], announced.get(APIS[api].key)
    if theirs is None:
        return ApiAbsent(api, None)
    first, last = theirs
    version = min(ours.newest, int(last))
    return version if version >= max(ours.oldest, int(first), oldest) else ApiAbsent(api, (int(first), int(last)))


def missing_apis(roles: Iterable[ClusterRole], announced: Mapping[int, VersionRange]) -> tuple[ApiAbsent, ...]:
    """Return what a broker lacks of the requests that a cluster in these roles needs."""
    asked = frozenset(roles)
    outcomes = [negotiate(name, announced) for name, api in APIS.items() if api.needed_by & asked]
    return tuple(outcome for outcome in outcomes if isinstance(outcome, ApiAbsent))
