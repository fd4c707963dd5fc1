"""Reads and writes for taking over and handing back: both clusters, Connect's topic of offsets, the flow's state.

Everything here may be done twice, and again after it ended half-way: what is written already is not written again.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any, TypeAlias

from lockstep_config import FlowSettings
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.admin.replicas import count_replicas
from lockstep_kafka.common.errors import ClusterError, TopicMissing
from lockstep_kafka.librdkafka.control_producer import ControlTopicLog
from lockstep_kafka.topics.control_topics import ensure_control_topics, flow_topics, source_offsets_topic
from lockstep_kafka.topics.topic_follower import target_follower
from lockstep_kafka.topics.topic_reader import Record
from lockstep_ops.cluster_snapshot import ClusterSnapshot
from lockstep_ops.clusters import REFUSED_S, source_client, target_client
from lockstep_ops.command_client import ask, producing
from lockstep_ops.command_request import CommandReply, command_request, exit_code
from lockstep_ops.exit_codes import Exit
from lockstep_ops.formatting import name_partitions
from lockstep_ops.services import DATA_PLANE
from lockstep_ops.status.flow_report import read_rows
from lockstep_ops.status.state_topic_rows import SILENT_S
from lockstep_ops.takeover.handback import HandBack, not_drained, plan_hand_back
from lockstep_ops.takeover.migration import MigrationState
from lockstep_ops.takeover.offset_location import OffsetLocation, still_runs
from lockstep_ops.takeover.passed_over import PassedOverRecords
from lockstep_ops.takeover.takeover import TakeoverPlan, TakeoverState
from lockstep_runtime.util.clock import now_ms
from lockstep_state.codecs.connect_offsets import OffsetChange, OffsetFold, listing
from lockstep_state.codecs.mm2_codec import MalformedRecord, decode_checkpoint, encode_source_progress
from lockstep_state.commands.command_vocabulary import OFFSETS_ALTER, Connector, Scope
from lockstep_state.names import state_topic
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.rows.state_rows import Handover, Row

OnUnreadable: TypeAlias = Callable[[Record, ValueError], None]

Offsets = Mapping[tuple[str, str], Mapping[TopicPartition, int]]
"""Offsets by (connector, cluster)."""

READ_WITHIN_S = 60.0
"""The seconds within which a topic of offsets is read.

Such a topic is small. Only a transaction that somebody left open keeps it from being read to its end.
"""

RECHECK_INTERVAL_S = 0.5


def find_handover_location(rows: Mapping[str, Row]) -> OffsetLocation | None:
    """Return the place from which the flow was taken over, or to which it was handed back, last."""
    row = rows.get("handover/progress")
    return OffsetLocation(row.origin, row.topic, row.connector, row.group) if isinstance(row, Handover) else None


async def read_takeover_state(settings: FlowSettings, location: OffsetLocation) -> TakeoverState:
    """Read both clusters' facts that a takeover depends on. Nothing is changed.

    Raises:
        ClusterError: A cluster does not answer, or refuses.
        NewerVersion: A row is of a newer release.
    """
    control = settings.control
    source, target = (
        ClusterSnapshot(client(settings, refused_s=REFUSED_S)) for client in (source_client, target_client)
    )
    own = OffsetLocation("own", control.offset_storage_topic, control.progress_connector, "", watched=False)
    await asyncio.gather(source.probe(), target.probe())
    unread = PassedOverRecords()
    (offsets, common), target_names, groups = await asyncio.gather(
        _read_target(settings, target.admin, location, unread),
        target.topic_names(),
        _groups_with_checkpoints(settings, unread.pass_over),
    )
    own_offsets = offsets if own.topic == location.topic else await read_offsets(settings, own.topic, unread.pass_over)
    selected = [name for name in sorted(await source.topic_names()) if settings.replicates(name)]
    described = (await source.topics(selected)).require_done()
    partitions = [(name, number) for name, topic in described.items() for number in range(topic.partitions)]
    committed = settings.data_plane.reads_committed
    begins, ends = await source.log_bounds(partitions, read_committed=committed)
    if unknown := [tp for tp in partitions if tp not in begins or tp not in ends]:
        text = f"cluster {settings.flow.source} does not say where these logs begin and end: {name_partitions(unknown)}"
        raise ClusterError(settings.flow.source, f"{text}. Ask again when they have leaders")
    return TakeoverState(
        **common,
        unread=unread.topics,
        own=own,
        other_sources=frozenset(offsets or {}) - {(location.connector, settings.aliases.source)},
        own_offsets=(own_offsets or {}).get((own.connector, settings.aliases.source), {}),
        selected={name: settings.remote_topic(name) for name in selected if name in described},
        begins=begins,
        ends=ends,
        target_topics=frozenset(target_names),
        groups=groups,
        reset=settings.data_plane.auto_offset_reset,
        flush_every=settings.data_plane.offset_flush_interval,
    )


async def carry_out_takeover(settings: FlowSettings, plan: TakeoverPlan, within: float) -> None:
    """Take over by a plan without refusals.

    Raises:
        ClusterError: It failed. Then it can be done again.
    """
    flow, target = settings.flow, target_client(settings)
    await _must_be_stopped(target, flow.target, plan.state.location)
    if plan.alters:
        source = settings.aliases.source
        entries = listing(
            OffsetChange({"cluster": source, "partition": number, "topic": topic}, offset)
            for (topic, number), offset in plan.alters
        )
        reply = CommandReply(command_request(settings, OFFSETS_ALTER, Scope.for_connector(Connector.SOURCE), entries))
        await ask(settings, reply, within)
        if exit_code([reply]) is not Exit.FINE:
            raise ClusterError(flow.target, "\n".join(reply.as_lines()))
    if plan.writes:
        await ensure_control_topics(target, [source_offsets_topic(settings.control)])
        await _write(settings, plan.state.own, plan.writes, within)
    await _write_handover(settings, target, plan.row, within)


async def read_hand_back_state(
    settings: FlowSettings, location: OffsetLocation, *, refused_s: float = inf
) -> MigrationState:
    """Read the target's facts that a hand-back depends on. Nothing is changed.

    `refused_s` is that of `AdminRequests`.

    Raises:
        ClusterError: The target does not answer, or refuses.
        NewerVersion: A row is of a newer release.
    """
    target = target_client(settings, refused_s=refused_s)
    await target.probe()
    unread = PassedOverRecords()
    offsets, common = await _read_target(settings, target, location, unread)
    if offsets is None and location.topic == settings.control.offset_storage_topic:
        common["mm2_offsets"] = {}
    return MigrationState(**common, unread=unread.topics)


async def stop_and_drain(settings: FlowSettings, location: OffsetLocation, reply: CommandReply, within: float) -> None:
    """Stop the whole flow, and wait until it has drained, at most `within` seconds for each.

    `reply` gets what the services answered.
    """
    await ask(settings, reply, within)
    if exit_code([reply]) is not Exit.FINE:
        return
    deadline = time.monotonic() + within
    while not_drained(await read_hand_back_state(settings, location)) and time.monotonic() < deadline:
        await asyncio.sleep(RECHECK_INTERVAL_S)


async def carry_out_hand_back(settings: FlowSettings, plan: HandBack, within: float) -> None:
    """Hand back by a plan without refusals.

    Raises:
        ClusterError: It failed. Then it can be done again.
    """
    target, location = target_client(settings), plan.state.location
    new_plan = plan_hand_back(await read_hand_back_state(settings, location))
    if new_plan.refusals or new_plan.offsets != plan.offsets:  # somebody has read the plan meanwhile
        shown = "; ".join(map(format_sentence, new_plan.refusals)) or "it has copied on since the plan was shown"
        raise ClusterError(settings.flow.target, f"{settings.flow}: {shown}: nothing was written, ask again")
    await _must_be_stopped(target, settings.flow.target, location)
    if plan.writes:
        if location.topic == settings.control.offset_storage_topic:
            await ensure_control_topics(target, [source_offsets_topic(settings.control)])
        await _write(settings, location, plan.writes, within)
    await _write_handover(settings, target, plan.row, within)


# -- reading -----------------------------------------------------------------------------------------------------------


async def _read_target(
    settings: FlowSettings, target: Admin, location: OffsetLocation, unread: PassedOverRecords
) -> tuple[Offsets | None, dict[str, Any]]:
    """Return all offsets in the topic of that place, and the fields of a `MigrationState`."""
    rows, offsets, members, replicas = await asyncio.gather(
        flow_rows(settings),
        read_offsets(settings, location.topic, unread.pass_over),
        _members(target, location),
        count_replicas(target, settings, [DATA_PLANE]),
    )
    return offsets, {
        "flow": settings.flow,
        "cluster": settings.aliases.source,
        "location": location,
        "mm2_offsets": None if offsets is None else offsets.get((location.connector, settings.aliases.source), {}),
        "rows": rows,
        "states": settings.states,
        "members": members,
        "replicas": replicas.get(DATA_PLANE, 0),
    }


async def flow_rows(settings: FlowSettings) -> Mapping[str, Row]:
    """Return the rows of the flow that count now, or none if it has never run."""
    try:
        return (await read_rows(settings))[0]
    except TopicMissing:
        return {}


async def read_offsets(
    settings: FlowSettings, topic: str, on_unreadable: OnUnreadable = lambda record, error: None
) -> Offsets | None:
    """Return the offsets of every source connector in a topic of Connect's on the target.

    Offsets that were reset are not in it, nor what transactions have not committed. None means that there is no such
    topic.

    Args:
        settings: The flow.
        topic: The topic.
        on_unreadable: It is called with each record that is passed over: users of a shared topic write what they like.

    Raises:
        ClusterError: The target does not answer, or refuses.
    """
    fold, alias = OffsetFold(), settings.flow.target

    def fold_in(records: Sequence[Record]) -> None:
        for record in records:
            try:
                fold.apply(record.key, record.value)
            except MalformedRecord as exc:
                on_unreadable(record, exc)

    try:
        async with asyncio.timeout(READ_WITHIN_S):
            await target_follower(settings, "takeover", topic, fold_in).replay()
    except TopicMissing:
        return None
    except TimeoutError as exc:
        raise ClusterError(
            alias,
            f"topic {topic} on cluster {alias} cannot be read to its end within {READ_WITHIN_S:.0f} s: somebody left a "
            "transaction open there. It ends by itself after its transaction.timeout.ms; ask again then",
        ) from exc
    offsets: dict[tuple[str, str], dict[TopicPartition, int]] = {}
    for connector, changes in fold.changes.items():
        for change in changes.values():
            partition = change.source_partition()
            if partition is not None and change.offset is not None:
                cluster, tp = partition
                offsets.setdefault((connector, cluster), {})[tp] = change.offset
    return offsets


async def _groups_with_checkpoints(settings: FlowSettings, on_unreadable: OnUnreadable) -> int:
    groups: set[str] = set()

    def fold_in(records: Sequence[Record]) -> None:
        for record in records:
            try:
                groups.add(decode_checkpoint(record.key, record.value).group)
            except ValueError as exc:  # MM2 reads past it too
                on_unreadable(record, exc)

    topic = settings.checkpoints_topic
    try:
        await target_follower(settings, "takeover", topic, fold_in).replay(silent_s=SILENT_S)
    except TopicMissing:
        return 0
    return len(groups)


# -- writing -----------------------------------------------------------------------------------------------------------


async def _must_be_stopped(target: Admin, alias: str, location: OffsetLocation) -> None:
    """Check that MM2's group has no members.

    What was seen a moment ago may have changed, because somebody has read the plan meanwhile.

    Raises:
        ClusterError: It has members.
    """
    if members := await _members(target, location):
        raise ClusterError(alias, format_sentence(still_runs(location, alias, members)))


async def _members(target: Admin, location: OffsetLocation) -> int:
    """Return the number of members of MM2's group, or 0 if it is not watched."""
    return await target.count_members(location.group) if location.watched else 0


async def _write(
    settings: FlowSettings, location: OffsetLocation, offsets: Sequence[tuple[TopicPartition, int]], within: float
) -> None:
    """Append offsets as Connect does, and read them back."""
    source, target = settings.aliases.source, settings.flow.target
    records = [encode_source_progress(source, *tp, offset, location.connector) for tp, offset in offsets]
    async with producing(settings, within) as producer:
        await ControlTopicLog(producer, location.topic).append_all(records)
    written = (await read_offsets(settings, location.topic) or {}).get((location.connector, source), {})
    if wrong := [tp for tp, offset in offsets if written.get(tp) != offset]:
        topic, number = wrong[0]
        raise ClusterError(
            target,
            f"{location} on cluster {target} does not say what was written, of {topic}-{number} for one: somebody else "
            "writes there too",
        )


async def _write_handover(settings: FlowSettings, target: Admin, row: Handover, within: float) -> None:
    """Append the row to the state topic, unless the topic has it already."""
    flow, group_id = settings.flow, settings.group_id
    await ensure_control_topics(target, flow_topics(flow, group_id, settings.control.replication_factor))
    former = (await flow_rows(settings)).get(row.key())
    if isinstance(former, Handover) and replace(former, at_ms=0) == row:
        return
    key, value = replace(row, at_ms=now_ms()).encode()
    async with producing(settings, within) as producer:
        await ControlTopicLog(producer, state_topic(flow, group_id)).append(key, value, partition=0)
