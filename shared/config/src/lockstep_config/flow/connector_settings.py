"""Settings of MM2's three connectors but for the copying of records.

They are about topics, ACLs, checkpoints, heartbeats and restarts.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from lockstep_config.keys.key_values import key_field
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_state.names import Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSyncSettings:
    """Settings of remote topics, their partitions and configs (`mm2-behaviour.md` §4.1 to 4.5).

    `refresh_every` is the longest time, not the usual one. With `keeps_counts` topics that exist on the target keep
    their number of partitions, also if the source's is another.
    """

    refresh_enabled: bool = key_field(KEYS["refresh.topics.enabled"])
    refresh_every: timedelta = key_field(KEYS["refresh.topics.interval.seconds"])
    sync_configs: bool = key_field(KEYS["sync.topic.configs.enabled"])
    sync_configs_every: timedelta = key_field(KEYS["sync.topic.configs.interval.seconds"])
    replication_factor: int = key_field(KEYS["replication.factor"])
    heartbeats_replicated: bool = key_field(KEYS["heartbeats.replication.enabled"])
    keeps_counts: bool = False
    cycles_exact: bool = False
    """True if a name alone makes no copy: the topic that it names has to be on the other cluster."""
    aliases: frozenset[str] = frozenset()
    """The aliases of all clusters of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AclSyncSettings:
    """Settings of the ACLs of mirrored topics (`mm2-behaviour.md` §4.6), with those beyond MM2's (`lockstep.acls.*`).

    `prefixed` and `groups` include such bindings. `delete` also deletes bindings that Lockstep added and the source
    revoked, unless they are more than `delete_max` in a round. `shared` are the file's other flows that may bring the
    same binding to the target where it keeps its name, or back to the source. Bindings that keep their name are then
    not deleted.
    """

    enabled: bool = True
    every: timedelta = key_field(KEYS["sync.topic.acls.interval.seconds"])
    prefixed: bool = key_field(KEYS["lockstep.acls.prefixed"])
    groups: bool = key_field(KEYS["lockstep.acls.groups"])
    delete: bool = key_field(KEYS["lockstep.acls.delete"])
    delete_max: int = key_field(KEYS["lockstep.acls.delete.max"])
    shared: tuple[Flow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSettings:
    """Settings of the translation of group positions (`mm2-behaviour.md` §3).

    On request positions are also written to the target's groups. `enabled` is `emit.checkpoints.enabled`, and False
    if the flow itself is not enabled. `tasks_max` is None if it is not set. `opposite` is the state topic, on the
    source, of the flow from the target to the source. Groups that fail back are translated by it. It is None if there
    is no such flow.
    """

    enabled: bool = True
    emit_every: timedelta = key_field(KEYS["emit.checkpoints.interval.seconds"])
    refresh_groups: bool = key_field(KEYS["refresh.groups.enabled"])
    refresh_groups_every: timedelta = key_field(KEYS["refresh.groups.interval.seconds"])
    sync_group_offsets: bool = key_field(KEYS["sync.group.offsets.enabled"])
    sync_group_offsets_every: timedelta = key_field(KEYS["sync.group.offsets.interval.seconds"])
    topic_replication_factor: int = key_field(KEYS["checkpoints.topic.replication.factor"])
    tasks_max: int | None = key_field(KEYS["tasks.max"])
    opposite: str | None = key_field(KEYS["lockstep.checkpoint.opposite"])
    siblings: tuple[str, ...] = ()
    """The state topics, on the target, of flows that may write to the same topics and move the same groups."""
    follow_rewinds: bool = False
    """True if `lockstep.groups.on.rewind` is `follow`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoRestart:
    """The rule by which failed work is started again by itself (Strimzi's `autoRestart`).

    `max_restarts` limits the starts in a row that fail again; None means no limit. If it is not enabled, or beyond
    the limit, the work waits for the command `restart`.
    """

    enabled: bool = key_field(KEYS["lockstep.auto.restart.enabled"])
    max_restarts: int | None = key_field(KEYS["lockstep.auto.restart.max"])


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoRestarts:
    """The `AutoRestart` of each of MM2's three connectors."""

    source: AutoRestart = AutoRestart()
    checkpoint: AutoRestart = AutoRestart()
    heartbeat: AutoRestart = AutoRestart()


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedPhase:
    """A line of the file that pauses or stops a connector (`lockstep.state`).

    `phase` is the word. `key` is the line as its author knows it, with its place in the file.
    """

    phase: Literal["paused", "stopped"]
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedPhases:
    """The stated phase of each of MM2's three connectors; None means that commands decide."""

    source: StatedPhase | None = None
    checkpoint: StatedPhase | None = None
    heartbeat: StatedPhase | None = None


NOTHING_STATED = StatedPhases()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatSettings:
    """Settings of the heartbeats of a pair of clusters (`mm2-behaviour.md` §4.9).

    `enabled` does not depend on the flow being enabled.
    """

    enabled: bool = True
    every: timedelta = key_field(KEYS["emit.heartbeats.interval.seconds"])
    topic_replication_factor: int = key_field(KEYS["heartbeats.topic.replication.factor"])
