"""The control topics of a flow.

Whichever service comes first creates them, and a topic that exists is a success (`architecture.md` §3).
"""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from lockstep_config.flow.model import ControlSettings, FlowSettings
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.admin.lowered_factor import warn_of_lowered
from lockstep_kafka.admin.topic_creation import Creation, create_fitting_topics
from lockstep_kafka.common.admin_types import NewTopic
from lockstep_rules.topic_plan import factor_words, possible_factor
from lockstep_state.names import COMMANDS_PARTITIONS, Flow, commands_topic, events_topic, state_topic

KEPT = timedelta(days=7)
"""Retention of events and commands."""

INDEX_BYTES = 64 << 10
"""Size of the indexes of a segment, in bytes.

Brokers make two indexes of this size for each segment of each partition, once it has 4 KiB. The append that brings
these waits for it: 20 ms each on some file systems, with the default of 10 MiB. 64 KiB index 20 MiB.
"""

STATE_SEGMENT_BYTES = 16 << 20
"""Segment size of the state topic.

The active segment is never compacted, so everything in it is replayed at every start.
"""

VISIBLE_WITHIN, LOOK_AGAIN = 10.0, 0.1
"""Seconds until created topics have to be visible, and between two looks. Usually a tenth of a second is enough."""

KEPT_CONFIGS = frozenset({"cleanup.policy"})
"""Configs without which a control topic loses records. Without the others it is slower, or larger."""

OUR_TIME = {"message.timestamp.type": "LogAppendTime"}
"""The config that lets brokers date our records.

Brokers refuse a record from more than an hour ahead of them (`message.timestamp.after.max.ms`). A clock of ours that is
off would keep progress from being written.
"""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ControlTopic:
    """A topic of Lockstep or MM2 that has to exist.

    A `replication_factor` of -1 is the broker's default. All such topics are small, and are created with small indexes
    besides their `configs`.
    """

    name: str
    partitions: int = 1
    replication_factor: int = -1
    configs: dict[str, str] = field(default_factory=lambda: {"cleanup.policy": "compact"})
    needs_partitions: bool = False
    """True if a part of the work is not done with fewer partitions."""
    is_one_log: bool = False
    """True if the topic must have one partition, because the order of its records matters.

    Others may have more partitions than they need.
    """

    @property
    def creation_configs(self) -> dict[str, str]:
        """Return the configs for the creation of the topic, the most important first.

        A cluster that refuses two configs that do not fit together gets the first one.
        """
        return {**self.configs, "segment.index.bytes": str(INDEX_BYTES)}


def flow_topics(flow: Flow, group_id: str | None, replication_factor: int) -> tuple[ControlTopic, ...]:
    """Return the state topic, the events topic and the commands topic of a flow."""
    kept = {"cleanup.policy": "delete", "retention.ms": str(int(KEPT.total_seconds() * 1000)), **OUR_TIME}
    state = {"cleanup.policy": "compact", **OUR_TIME, "segment.bytes": str(STATE_SEGMENT_BYTES)}
    return (
        ControlTopic(state_topic(flow, group_id), 1, replication_factor, state, is_one_log=True),
        ControlTopic(events_topic(flow, group_id), 1, replication_factor, kept),
        ControlTopic(
            commands_topic(flow, group_id), COMMANDS_PARTITIONS, replication_factor, kept, needs_partitions=True
        ),
    )


def source_offsets_topic(control: ControlSettings) -> ControlTopic:
    """Return the topic in which Connect keeps the source offsets of connectors."""
    return ControlTopic(
        control.offset_storage_topic, control.offset_storage_partitions, control.storage_replication_factor
    )


def offset_syncs_topic(settings: FlowSettings) -> ControlTopic:
    """Return the topic of the offset syncs, on `settings.offset_syncs_cluster`."""
    return ControlTopic(settings.offset_syncs_topic, 1, settings.data_plane.offset_syncs_replication_factor)


def checkpoints_topic(settings: FlowSettings) -> ControlTopic:
    """Return the topic of the checkpoints, on the target."""
    return ControlTopic(settings.checkpoints_topic, 1, settings.checkpoint.topic_replication_factor)


def heartbeats_topic(settings: FlowSettings) -> ControlTopic:
    """Return the topic of the heartbeats, on the target."""
    return ControlTopic(settings.policy.heartbeats_topic(), 1, settings.heartbeat.topic_replication_factor)


def service_topics(settings: FlowSettings, service: str) -> tuple[tuple[str, ControlTopic], ...]:
    """Return the topics that a service creates when it starts, each with the alias of its cluster.

    Topics that every service of a flow needs are not among them. Neither is the quarantine topic: the first refused
    record creates it.
    """
    target, emits = settings.flow.target, settings.data_plane.emit_offset_syncs
    syncs = [(settings.offset_syncs_cluster, offset_syncs_topic(settings))] if emits else []
    match service:
        case "data-plane":
            return ((target, source_offsets_topic(settings.control)), *syncs)
        case "checkpoint":
            return ((target, checkpoints_topic(settings)), *syncs)
        case "heartbeat":
            return ((target, heartbeats_topic(settings)),)
    return ()


@dataclass(frozen=True, slots=True)
class CreatedTopics:
    """Control topics that were missing and that this call created."""

    names: tuple[str, ...] = ()
    refused: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Configs that the cluster refused, each with its message, by topic."""


async def ensure_control_topics(admin: Admin, topics: Sequence[ControlTopic]) -> CreatedTopics:
    """Create the topics that are missing.

    Safe to call at any time and from several processes at once. A replication factor above the number of brokers is
    lowered to it. One that the cluster refuses is replaced by one that it accepts. Both are logged as warnings.
    Configs that the cluster refuses are left out, but for `KEPT_CONFIGS`.

    Raises:
        NotPermitted: The first topic that could not be created lacks a permission.
        RequestRefused: The cluster refused the first topic that could not be created.
        ClusterUnreachable: No broker answers.
    """
    existing = await admin.topic_names()
    missing = [t for t in topics if t.name not in existing]
    if not missing:
        return CreatedTopics()
    brokers = await admin.broker_count()
    warn_of_lowered(admin.alias, max(topic.replication_factor for topic in missing), brokers)
    creation = await create_fitting_topics(admin, [new_topic(t, brokers) for t in missing], kept=KEPT_CONFIGS)
    for trouble in creation.failed.values():
        raise trouble
    _warn_of_factors(admin.alias, creation)
    await _visible(admin, missing)
    return CreatedTopics(creation.created, creation.refused)


def new_topic(topic: ControlTopic, brokers: int) -> NewTopic:
    """Return a control topic as it is created on a cluster with so many brokers."""
    factor = possible_factor(topic.replication_factor, brokers)
    return NewTopic(topic.name, topic.partitions, factor, topic.creation_configs)


def refused_configs_text(topic: str, alias: str, refused: Mapping[str, str]) -> str:
    """Return a sentence about the configs of a control topic that a cluster does not accept."""
    refusals = "; ".join(f"{key} ({reason})" for key, reason in refused.items())
    return f"{topic}: cluster {alias} does not take {refusals}; the topic is created without"


def _warn_of_factors(alias: str, creation: Creation) -> None:
    for factor in sorted(set(creation.factors.values())):
        names = ", ".join(sorted(name for name, accepted in creation.factors.items() if accepted == factor))
        text = f"{alias} refused the wanted number for {names}, and takes {factor_words(factor)}"
        log.warning("replication factor refused", extra={"text": text, "cluster": alias})


async def _visible(admin: Admin, created: Sequence[ControlTopic]) -> None:
    """Wait a little for topics that have just been created.

    Brokers learn of a topic later than the controller, and answer meanwhile that it does not exist. The code that
    needs a topic finds out if it is still missing after the wait.
    """
    names, deadline = {topic.name for topic in created}, time.monotonic() + VISIBLE_WITHIN
    while not names <= (await admin.topic_names()).keys() and time.monotonic() < deadline:
        await asyncio.sleep(LOOK_AGAIN)
