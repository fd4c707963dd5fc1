"""The rows of the state topic (`architecture.md` §3).

Each row is a frozen dataclass with a key of its own and one owning service. The decorator
`@row_kind(KIND, FIELD, ..., owner=SERVICE)` makes the key `KIND/FIELD/...`, unless `identity` gives its parts. `row.py`
has the base of all rows. This module has the rows of the services that do not copy, and imports all others, which makes
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
    Transform,
    progress_by_partition,
)
from lockstep_state.rows.group_rows import GroupStatus, SourceGroupsStatus
from lockstep_state.rows.lag_rows import LagBlock, WorstLags
from lockstep_state.rows.reasoned_row import ReasonedRow
from lockstep_state.rows.row import ROWS, MalformedRow, NewerVersion, Row, decode_row, row_kind
from lockstep_state.rows.source_rows import LegacyGroup, SeenEnds, SourceEnds
from lockstep_state.rows.switch_rows import SWITCH_KEY, Switch, SwitchGroup, SwitchTopic
from lockstep_state.rows.value_types import Count, PartitionCount, PartitionNumber, UnixMs
from lockstep_state.rows.verification_rows import VERIFICATION_KEY, Verification, VerifiedPartition

__all__ = [
    "ROWS",
    "SWITCH_KEY",
    "VERIFICATION_KEY",
    "AclStatus",
    "Assignment",
    "ClusterCapabilities",
    "CopiedAcl",
    "DesiredState",
    "FlowPulse",
    "GroupStatus",
    "Handover",
    "LagBlock",
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
    "SeenEnds",
    "SlotStatus",
    "SourceEnds",
    "SourceGroupsStatus",
    "Switch",
    "SwitchGroup",
    "SwitchTopic",
    "Transform",
    "Verification",
    "VerifiedPartition",
    "WorstLags",
    "decode_row",
    "progress_by_partition",
]


@row_kind("topic", "source_topic", owner="topic-sync")
@dataclass(frozen=True, slots=True, kw_only=True)
class MirroredTopic(ReasonedRow):
    """A source topic and its remote topic. Owner: topic-sync. The data plane copies those in phase `mirrored`.

    phase: `mirrored` | `creating` | `failed` | `deleted` | `excluded` | `left-out`. Mirrored: both exist, and all but
    `missing` partitions have one of the same number on the target. With `lockstep.legacy.partitioning=key` the target
    may have any number of partitions, because the key of each record chooses one. Creating: written before the
    copy of a topic that gets another name is created. Failed: reason says why; tried again. Deleted: gone on the
    source. Excluded: no longer selected. Left out: selected, and not mirrored because its name says that it is a copy
    from the target; note says by which rule. Topic ids are Kafka's own base64 text.
    """

    source_topic: str
    target_topic: str
    source_topic_id: str = ""
    target_topic_id: str = ""
    partitions: PartitionCount = 0
    """Partitions of the source that are copied, or will be once the target has them. Those of the source that the
    target lacks are not among them: see `missing`."""
    target_partitions: PartitionCount = 0
    phase: str = "mirrored"
    missing: PartitionCount = 0
    """Partitions of the source that the target of a mirrored topic lacks, so that they are not copied: those from
    `partitions` on."""
    target_configs: tuple[tuple[str, str], ...] = ()
    """Configs of the target topic that the data plane needs: max.message.bytes, message.timestamp.type, cleanup.policy,
    compression.type, delete.retention.ms."""
    note: str = ""
    """The rule by which it is left out, or is mirrored or renamed as a heartbeats topic; "" if there is nothing to
    note."""
    original: str = ""
    """The topic of the other cluster that a topic that is left out is a copy of."""
    earlier_names: tuple[str, ...] = ()
    """Names that the copy had before a rename or the replication policy was changed. Copies of these names stay."""

    @property
    def is_selected(self) -> bool:
        """The topic is on the source, and neither the filters nor its name leave it out."""
        return self.phase not in ("deleted", "excluded", "left-out")

    @property
    def source_partitions(self) -> int:
        """The number of partitions of the source, including those that the target lacks."""
        return self.partitions + self.missing

    @property
    def missing_partitions(self) -> range:
        """The partitions of the source that the target lacks."""
        return range(self.partitions, self.source_partitions)

    def copied(self, *, by_key: bool) -> int:
        """Return how many partitions of the source are copied: 0 to the result - 1, each into the one of its number.

        With `by_key` (`DataPlaneSettings.by_key`) the key of each record chooses its partition of the target, so all
        partitions of the source are copied.
        """
        return self.partitions if by_key else min(self.partitions, self.target_partitions)


@row_kind("acl", owner="acl-sync")
@dataclass(frozen=True, slots=True, kw_only=True)
class AclStatus(ReasonedRow):
    """The state of ACL sync. Owner: acl-sync.

    phase: `in-sync` | `no-authorizer` | `not-permitted` | `not-supported` | `oauth` | `failing`. Not supported: a
    cluster does not know requests about ACLs. OAuth: a cluster grants permissions in OAuth tokens, not in ACLs, so
    there are no rules to copy.
    """

    phase: str
    copied: Count = 0
    """Source bindings that the target has too."""
    left_out: Count = 0
    """Source bindings that are not copied."""
    left_out_for: tuple[tuple[str, Count], ...] = ()
    """(reason, count) of them, where the reason is a word of `docs/guides/acls.md`."""
    left_out_named: tuple[tuple[str, str], ...] = ()
    """(binding, reason) of at most 20 of them, in the order of `LeftOutReason`: the least expected reasons first."""
    owned: Count = 0
    """Bindings on the target that Lockstep created and may delete."""
    revoked: Count = 0
    """Owned bindings that the source has no more, and the target still has."""
    notes: tuple[str, ...] = ()
    """Notes for the operator although nothing fails, one sentence each: why a binding is not deleted, and where
    principals come from tokens."""

    def identity(self) -> tuple[str, ...]:
        return ("sync",)


@row_kind("acl-binding", owner="acl-sync")
@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedAcl(ReasonedRow):
    """A binding that ACL sync made on the target. Owner: acl-sync. Words as Kafka spells them (TOPIC, LITERAL, ALLOW).

    Written before the binding is made, so a binding without such a row is never ours. phase: `owned` (ours, or about to
    be) | `deleting` (it is being deleted) | `released` (not ours, or gone; reason says why).
    """

    resource: str
    name: str
    """The name on the target. `source_name` is the topic, prefix or group it was copied from."""
    pattern: str
    principal: str
    host: str
    operation: str
    permission: str
    source_name: str = ""
    since_ms: UnixMs = 0
    """The Unix milliseconds since when it is ours."""
    phase: str = "owned"

    def identity(self) -> tuple[str, ...]:
        """Return a digest of the binding's words (the first half of SHA-256): principals have slashes and are long."""
        words = (self.resource, self.name, self.pattern, self.principal, self.host, self.operation, self.permission)
        return (hashlib.sha256("\0".join(words).encode()).hexdigest()[:32],)


@row_kind("flow", owner="heartbeat")
@dataclass(frozen=True, slots=True, kw_only=True)
class FlowPulse(ReasonedRow):
    """The state of the flow's own heartbeat. Owner: heartbeat. Written when its phase changes, not each beat."""

    source: str
    target: str
    phase: str
    """`beating` | `failing`."""

    def identity(self) -> tuple[str, ...]:
        return (f"{self.source}->{self.target}",)


@row_kind("wanted", "scope", owner=None)
@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredState(Row):
    """The desired state of a part of the flow's work. Without a row it is to run.

    Owner: topic-sync, for the checkpoint connector checkpoint (its partition 0), for the heartbeat connector heartbeat.
    phase: `running` | `paused` (it keeps its processes and assignments and does nothing) | `stopped` (it ends).
    """

    scope: str
    """`connector:NAME`, `slot:N`, `topic:T` or `partition:T-N` (`Scope`)."""
    phase: str = "running"
    command: str = ""
    """Id of the last command that has set the phase. It says for which decision a connector is stopped."""
    restart: str = ""
    """Id of the last command that asked for a restart. When it changes, the work of the scope ends and begins again."""
    before_ms: UnixMs = 0
    """The Unix milliseconds of `lockstep stop --before`; 0: none. With phase `stopped`, the scope goes on until each of
    its partitions has reached its end in `ends`. An earlier release stops it at once."""
    ends: tuple[tuple[str, PartitionNumber, Count], ...] = ()
    """(topic, partition, next offset) at which copies end. Partitions that are not named end where they are."""

    @property
    def has_ends(self) -> bool:
        """The scope is to stop at offsets, and not at once."""
        return self.phase == "stopped" and self.before_ms > 0


@row_kind("restarts", "owner", "subject", owner=None)
@dataclass(frozen=True, slots=True, kw_only=True)
class Restarts(ReasonedRow):
    """Restarts in a row of what failed, where they are limited (`lockstep.auto.restart.*`). Owner: the leader `owner`.

    phase: `running` | `failed` (waits for the command `restart`; reason says why).
    """

    owner: str
    """`Leader.service` of the service that starts it."""
    subject: str = "service"
    """`service`: its main loop; `slot:N`."""
    count: Count = 0
    phase: str = "running"
    asked: tuple[str, ...] = ()
    """`DesiredState.restart` of its scopes, when it failed. Other ids mean that a restart was requested since, and it
    counts from none."""


@row_kind("handover", owner=None)
@dataclass(frozen=True, slots=True, kw_only=True)
class Handover(Row):
    """The offsets of MM2 that `lockstep takeover` read last, or `lockstep handback` wrote last. It has no owner.

    These two commands write it while the flow does not copy, and only they decide by it. phase: `taken-over` (the copy
    went on behind these offsets) | `handed-back` (MM2 may go on behind the copy).
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
    """Source partitions whose offset in that topic counted."""

    def identity(self) -> tuple[str, ...]:
        return ("progress",)


@row_kind("leader", "service", owner=None)
@dataclass(frozen=True, slots=True, kw_only=True)
class Leader(Row):
    """The acting replica of a service in this flow. The record's own offset is the term.

    See `architecture.md` §4 and `kafka-wire.md` §7.
    """

    service: str
    instance: str
    labels: tuple[tuple[str, str], ...] = field(default=())
