"""Rows of the state topic: what is so now (`architecture.md` §3).

Each row is a frozen dataclass with a key of its own and one owning service; what they have in common is `row.py`'s.
Here are those of the services that do not copy. The data plane's are in `data_plane_rows.py`, those about a
verification in `verification_rows.py`, those of consumer groups in `group_rows.py`, those of a switch in
`switch_rows.py`. `source_rows.py` has what the data plane knows of the source. An import of this module makes all of
them decodable.
"""

import hashlib
from dataclasses import dataclass, field

from lockstep_state.rows.cluster_rows import ClusterCapabilities
from lockstep_state.rows.data_plane_rows import (
    Assignment,
    OffsetRuns,
    Origin,
    PartitionProgress,
    SlotStatus,
    progress_by_partition,
)
from lockstep_state.rows.group_rows import GroupStatus, SourceGroupsStatus
from lockstep_state.rows.reasoned_row import ReasonedRow
from lockstep_state.rows.row import ROWS, MalformedRow, NewerVersion, Row, decode_row, row_kind
from lockstep_state.rows.source_rows import LegacyGroup, SourceEnds
from lockstep_state.rows.switch_rows import Switch, SwitchGroup, SwitchTopic
from lockstep_state.rows.value_types import Count, PartitionCount, UnixMs
from lockstep_state.rows.verification_rows import Verification, VerifiedPartition

__all__ = [
    "ROWS",
    "AclStatus",
    "Assignment",
    "ClusterCapabilities",
    "CopiedAcl",
    "FlowPulse",
    "GroupStatus",
    "Handover",
    "Leader",
    "LegacyGroup",
    "MalformedRow",
    "MirroredTopic",
    "NewerVersion",
    "OffsetRuns",
    "Origin",
    "PartitionProgress",
    "Restarts",
    "Row",
    "SlotStatus",
    "SourceEnds",
    "SourceGroupsStatus",
    "Switch",
    "SwitchGroup",
    "SwitchTopic",
    "Verification",
    "VerifiedPartition",
    "Wanted",
    "decode_row",
    "progress_by_partition",
]


@row_kind("topic", "source_topic", owner="topic-sync")
@dataclass(frozen=True, slots=True, kw_only=True)
class MirroredTopic(ReasonedRow):
    """A source topic and its remote topic. Owner: topic-sync. The data plane copies those in phase `mirrored`.

    phase: `mirrored` | `failed` | `deleted` | `excluded` | `left-out`. Mirrored: both exist, and all but `missing`
    partitions have a place on the target, or keys choose one. Failed: reason says why; tried again. Deleted: gone on
    the source. Excluded: no longer selected. Left out: selected, and not mirrored because its name says that it is a
    copy from the target; note says by which rule. Topic ids are Kafka's own base64 text.
    """

    source_topic: str
    target_topic: str
    source_topic_id: str = ""
    target_topic_id: str = ""
    partitions: PartitionCount = 0
    target_partitions: PartitionCount = 0
    phase: str = "mirrored"
    missing: PartitionCount = 0
    """Partitions of the source that the target of a mirrored topic lacks, so that they are not copied: those from
    `partitions` on."""
    target_configs: tuple[tuple[str, str], ...] = ()
    """What the data plane needs of the target topic: max.message.bytes, message.timestamp.type, cleanup.policy,
    compression.type, delete.retention.ms."""
    note: str = ""
    """By which rule it is left out, or is mirrored or renamed as a heartbeats topic; "" where none is worth a word."""
    original: str = ""
    """Of a topic that is left out, the topic of the other cluster that it was seen to be a copy of."""

    @property
    def is_selected(self) -> bool:
        """Whether the target is to have the topic: it is on the source, and neither the filters nor its name leave it
        out."""
        return self.phase not in ("deleted", "excluded", "left-out")

    @property
    def source_partitions(self) -> int:
        """How many partitions the source has, also those that the target lacks."""
        return self.partitions + self.missing

    @property
    def missing_partitions(self) -> range:
        """The partitions of the source that the target lacks."""
        return range(self.partitions, self.source_partitions)

    def copied(self, *, by_key: bool) -> int:
        """How many partitions of the source are copied: each into the one of the same number. If keys choose the
        partition, they are copied into all that there are."""
        return self.partitions if by_key else min(self.partitions, self.target_partitions)


@row_kind("acl", owner="acl-sync")
@dataclass(frozen=True, slots=True, kw_only=True)
class AclStatus(ReasonedRow):
    """The state of ACL sync. Owner: acl-sync. phase: `in-sync` | `no-authorizer` | `not-permitted` |
    `not-supported` | `oauth` | `failing`. Not supported: a cluster does not know requests about ACLs. OAuth: a cluster
    grants permissions in OAuth tokens, not in ACLs: there are no rules to copy."""

    phase: str
    copied: Count = 0
    left_out: Count = 0
    """Source bindings that are not copied."""
    left_out_for: tuple[tuple[str, Count], ...] = ()
    """(why, how many) of them, where why is a word of `docs/guides/acls.md`."""
    left_out_named: tuple[tuple[str, str], ...] = ()
    """(binding, why), those first that one would least expect; at most 20."""
    owned: Count = 0
    """Bindings on the target that are ours to take back: none of them was there before us."""
    revoked: Count = 0
    """Those of them that the source has no more, and that are still there."""
    notes: tuple[str, ...] = ()
    """What an operator should know though nothing fails, one sentence each: why something is not taken back, and where
    principals come from tokens."""

    def identity(self) -> tuple[str, ...]:
        return ("sync",)


@row_kind("acl-binding", owner="acl-sync")
@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedAcl(ReasonedRow):
    """A binding that ACL sync made on the target. Owner: acl-sync. Words as Kafka spells them (TOPIC, LITERAL, ALLOW).

    Written before the binding is made, so a binding without such a row is never ours. phase: `owned` (ours, or about to
    be) | `deleting` (it is being taken back) | `released` (not ours, or not there any more; reason says why).
    """

    resource: str
    name: str
    """As on the target; `source_name` is the topic, prefix or group it was copied from."""
    pattern: str
    principal: str
    host: str
    operation: str
    permission: str
    source_name: str = ""
    since_ms: UnixMs = 0
    """Unix milliseconds since when it is ours."""
    phase: str = "owned"

    def identity(self) -> tuple[str, ...]:
        """Principals hold slashes and are long, hence a digest (SHA-256, its first half) of the binding's words."""
        words = (self.resource, self.name, self.pattern, self.principal, self.host, self.operation, self.permission)
        return (hashlib.sha256("\0".join(words).encode()).hexdigest()[:32],)


@row_kind("flow", owner="heartbeat")
@dataclass(frozen=True, slots=True, kw_only=True)
class FlowPulse(ReasonedRow):
    """The flow's own heartbeat as last acknowledged.

    Owner: heartbeat. Written when its phase changes, not each beat.
    """

    source: str
    target: str
    phase: str
    """`beating` | `failing`."""

    def identity(self) -> tuple[str, ...]:
        return (f"{self.source}->{self.target}",)


@row_kind("wanted", "scope", owner=None)
@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted(Row):
    """What an operator wants of a part of the flow's work. Owner: topic-sync, for the checkpoint connector checkpoint
    (its partition 0), for the heartbeat connector heartbeat. Where there is no row it is to run.

    phase: `running` | `paused` (it keeps its processes and assignments and does nothing) | `stopped` (it ends).
    """

    scope: str
    """`connector:NAME`, `slot:N`, `topic:T` or `partition:T-N` (`Scope`)."""
    phase: str = "running"
    restart: str = ""
    """Id of the last command that asked for a new start: the work of the scope ends and begins anew when it
    changes."""


@row_kind("restarts", "owner", "subject", owner=None)
@dataclass(frozen=True, slots=True, kw_only=True)
class Restarts(ReasonedRow):
    """Starts of what failed, in a row, where they are limited (`lockstep.auto.restart.*`). Owner: the leader `owner`.

    phase: `running` | `failed` (waits for the command `restart`; reason says why).
    """

    owner: str
    """`Leader.service` of the service that starts it."""
    subject: str = "service"
    """`service`: its main loop; `slot:N`."""
    count: Count = 0
    phase: str = "running"
    asked: tuple[str, ...] = ()
    """`Wanted.restart` of its scopes, when it failed. Other ids mean that a new start was requested since, and it
    counts from none."""


@row_kind("handover", owner=None)
@dataclass(frozen=True, slots=True, kw_only=True)
class Handover(Row):
    """Whose progress the flow continued from, or left its own to. Without an owner: `lockstep takeover` and `handback`
    write it, while the flow does not copy. Only these two decide by it.

    phase: `taken-over` | `handed-back`.
    """

    phase: str
    topic: str
    """Connect's topic of offsets, on the target."""
    connector: str
    """The source connector's name in its keys."""
    group: str
    """The group of its Connect workers, on the target."""
    origin: str = "dedicated"
    """`dedicated` (MM2's own mode) | `strimzi` | `connect`."""
    partitions: Count = 0
    """Source partitions whose offset there counted."""

    def identity(self) -> tuple[str, ...]:
        return ("progress",)


@row_kind("leader", "service", owner=None)
@dataclass(frozen=True, slots=True, kw_only=True)
class Leader(Row):
    """The acting replica of a service in this flow. The record's own offset is the term (`architecture.md` §4,
    `kafka-wire.md` §7)."""

    service: str
    instance: str
    labels: tuple[tuple[str, str], ...] = field(default=())
