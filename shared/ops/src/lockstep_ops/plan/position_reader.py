"""Positions that were reached before: Lockstep's rows, MirrorMaker 2's offsets, a legacy flow's group."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from lockstep_config import FlowSettings
from lockstep_kafka.common.errors import NotPermitted, TopicMissing
from lockstep_ops.cluster_snapshot import ClusterSnapshot
from lockstep_ops.plan.rules.flow_facts import MirrorMakerFacts, ReachedPosition
from lockstep_ops.plan.rules.flow_plan import LEGACY_GROUP, LOCKSTEP, MIRROR_MAKER
from lockstep_ops.status.flow_report import read_rows
from lockstep_ops.takeover.offset_location import STRIMZI, OffsetLocation, offset_location
from lockstep_ops.takeover.passed_over import PassedOverRecords
from lockstep_ops.takeover.takeover_io import Offsets, read_offsets
from lockstep_state.names import progress_topic, state_topic
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import Row, progress_by_partition


@dataclass(frozen=True, slots=True)
class Positions:
    """The positions that a flow or an MM2 reached before.

    `begun` are the topics of which the flow has rows, also of partitions without a record yet.
    """

    reached: Mapping[TopicPartition, ReachedPosition] = field(default_factory=dict)
    begun: frozenset[str] = frozenset()
    mirror_makers: tuple[MirrorMakerFacts, ...] = ()
    rows: Mapping[str, Row] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    """Sentences about records that were passed over. The forecast does not count them."""


async def read_positions(settings: FlowSettings, source: ClusterSnapshot, target: ClusterSnapshot) -> Positions:
    """Read the positions of a flow.

    Raises:
        ClusterError: A cluster does not answer, or refuses.
        NewerVersion: A row is of a newer release.
    """
    rows: Mapping[str, Row] = {}
    unread, passed_over = PassedOverRecords(), list[str]()
    if state_topic(settings.flow, settings.group_id) in await target.topic_names():
        with suppress(TopicMissing):  # by now
            rows, passed_over = await read_rows(settings)
    progress = progress_by_partition(rows.values())
    own = OffsetLocation(
        "own", settings.control.offset_storage_topic, settings.control.progress_connector, "", watched=False
    )
    reached, mirror_makers = await _mirror_makers(settings, target, own, unread)
    legacy = settings.data_plane.legacy
    if legacy is not None:
        for tp, committed in (await source.group_offsets(legacy.group)).items():
            reached[tp] = ReachedPosition(committed.offset, LEGACY_GROUP)
    for tp, row in progress.items():
        if row.upstream >= 0:
            reached[tp] = ReachedPosition(row.upstream + 1, LOCKSTEP)
        else:
            reached.pop(tp, None)
    settled = tuple(
        replace(facts, own=facts.own or partitions <= reached.keys()) for facts, partitions in mirror_makers
    )
    sentences = (
        *(f"a row cannot be read, so what it says does not count: {row}" for row in passed_over),
        *unread.topics,
    )
    return Positions(reached, frozenset(topic for topic, _ in progress), settled, rows, tuple(map(str, sentences)))


async def _mirror_makers(
    settings: FlowSettings, target: ClusterSnapshot, own: OffsetLocation, unread: PassedOverRecords
) -> tuple[dict[TopicPartition, ReachedPosition], list[tuple[MirrorMakerFacts, frozenset[TopicPartition]]]]:
    """Return the positions of MM2 that count at the start, and every place with progress of this source.

    Each place has the partitions of which it has progress.
    """
    reached: dict[TopicPartition, ReachedPosition] = {}
    mirror_makers = []
    topics: dict[str, Offsets] = {}
    for location in _offset_locations(settings, own):
        if location.topic not in await target.topic_names():
            continue
        if location.topic not in topics:
            topics[location.topic] = await read_offsets(settings, location.topic, unread.pass_over) or {}
        offsets = topics[location.topic].get((location.connector, settings.aliases.source), {})
        if not offsets:
            continue
        if location.is_same(own):
            reached |= {tp: ReachedPosition(offset + 1, MIRROR_MAKER) for tp, offset in offsets.items()}
        members = await _members(target, location.group)
        facts = MirrorMakerFacts(str(location), location.group, len(offsets), location.is_same(own), members)
        mirror_makers.append((facts, frozenset(offsets)))
    return reached, mirror_makers


async def _members(target: ClusterSnapshot, group: str) -> int:
    """Return the number of MM2's workers, or 0 if we may not describe the group."""
    try:
        return await target.count_members(group) if group else 0
    except NotPermitted:
        return 0


def _offset_locations(settings: FlowSettings, own: OffsetLocation) -> list[OffsetLocation]:
    """Return the places where an MM2 of this flow may keep its progress, each once."""
    flow, group_id = settings.flow, settings.group_id
    locations = [
        offset_location("dedicated", flow, group_id, progress_topic(flow)),
        offset_location(STRIMZI, flow, group_id, progress_topic(flow)),
    ]
    return locations if any(location.is_same(own) for location in locations) else [*locations, own]
