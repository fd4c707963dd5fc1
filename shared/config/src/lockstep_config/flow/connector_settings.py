"""Settings of MM2's three connectors but for the copying of records: topics, ACLs, checkpoints, heartbeats,
restarts.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from lockstep_config.keys.key_values import key_field
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_state.names import Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSyncSettings:
    """Remote topics, partitions and configs (`mm2-behaviour.md` §4.1 to 4.5). `refresh_every` is the longest time, not
    the usual one. `keeps_counts`: topics that exist on the target keep their number of partitions, also if the source's
    is another.
    """

    refresh_enabled: bool = key_field(KEYS["refresh.topics.enabled"])
    refresh_every: timedelta = key_field(KEYS["refresh.topics.interval.seconds"])
    sync_configs: bool = key_field(KEYS["sync.topic.configs.enabled"])
    sync_configs_every: timedelta = key_field(KEYS["sync.topic.configs.interval.seconds"])
    replication_factor: int = key_field(KEYS["replication.factor"])
    heartbeats_replicated: bool = key_field(KEYS["heartbeats.replication.enabled"])
    keeps_counts: bool = False
    cycles_exact: bool = False
    """A name alone makes no copy: the topic that it names has to be on the other cluster."""
    aliases: frozenset[str] = frozenset()
    """Of all clusters of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AclSyncSettings:
    """ACLs of mirrored topics (`mm2-behaviour.md` §4.6), and what is asked for beyond MM2's rule (`lockstep.acls.*`).

    `prefixed`, `groups`: such bindings too. `delete`: also take back what we added and the source revoked, unless it is
    more than `delete_max` bindings in a round. `shared` are the file's other flows that may bring the same binding to
    the target where it keeps its name, or back to the source. What keeps its name is not taken back then.
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
    """Group positions translated and, when asked, written to the target (`mm2-behaviour.md` §3).

    `enabled` is `emit.checkpoints.enabled`; False also where the flow itself is not enabled. `tasks_max` None: not set.
    `opposite` is the state topic, on the source, of the flow from the target to the source. Groups that fail back are
    translated by it; None: there is no such flow.
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
    """The state topics, on the target, of flows that may write to the same topics there and move the same groups."""
    follow_rewinds: bool = False
    """`lockstep.groups.on.rewind` is `follow`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoRestart:
    """Whether what failed is started again by itself (Strimzi's `autoRestart`). `max_restarts`: starts in a row that
    fail again, None: no limit. Without it, or beyond, it waits for the command `restart`.
    """

    enabled: bool = key_field(KEYS["lockstep.auto.restart.enabled"])
    max_restarts: int | None = key_field(KEYS["lockstep.auto.restart.max"])


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoRestarts:
    """`AutoRestart` of each of MM2's three connectors."""

    source: AutoRestart = AutoRestart()
    checkpoint: AutoRestart = AutoRestart()
    heartbeat: AutoRestart = AutoRestart()


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedPhase:
    """That a file lets something rest (`lockstep.state`): `phase` is the word, `key` the line as its author knows it,
    with its place in the file.
    """

    phase: Literal["paused", "stopped"]
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedPhases:
    """What the file states of each of MM2's three connectors; None: commands decide."""

    source: StatedPhase | None = None
    checkpoint: StatedPhase | None = None
    heartbeat: StatedPhase | None = None


NOTHING_STATED = StatedPhases()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatSettings:
    """Heartbeats of a pair of clusters (`mm2-behaviour.md` §4.9). `enabled` does not depend on the flow being
    enabled.
    """

    enabled: bool = True
    every: timedelta = key_field(KEYS["emit.heartbeats.interval.seconds"])
    topic_replication_factor: int = key_field(KEYS["heartbeats.topic.replication.factor"])
