"""The flow's producer ids in its events topic, for a start after the state topic was lost (decision 0083).

If both clusters have the same topic names, only these ids distinguish a copy from what others wrote.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from lockstep_kafka.common.errors import NotPermitted, TopicMissing
from lockstep_kafka.topics.topic_follower import target_follower
from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.flow.context import FlowContext
from lockstep_state.events import decode_event
from lockstep_state.names import Flow, events_topic
from lockstep_state.rows.row import NewerVersion
from lockstep_state.rows.state_rows import Origin

RECORDED = "OriginRecorded"
REPEATED_EVERY = timedelta(days=1)
"""The time between two records of the ids. The events topic keeps seven days."""

SILENT_S = 10.0


async def restore_origins(ctx: FlowContext) -> None:
    """Write the flow's producer ids again if no row names one, because the state topic was lost.

    Raises ClusterError.
    """
    target_id = await ctx.target.cluster_id()
    origins = (row for row in ctx.state.rows.values() if isinstance(row, Origin))
    if any((row.source, row.target_cluster_id) == (ctx.flow.source, target_id) for row in origins):
        return
    if rows := await _recorded_origins(ctx, target_id):
        await ctx.state.write_all(rows)
        ctx.log.warn("producer ids written again", ", ".join(str(row.producer_id) for row in rows))


async def _recorded_origins(ctx: FlowContext, target_cluster_id: str) -> list[Origin]:
    """Return the rows that events of the last days name, first those that count for their origin.

    The list is empty if the topic is missing or may not be read. Raises ClusterError.
    """
    recorded: dict[Origin, bool] = {}

    def fold(records: Sequence[Record]) -> None:
        recorded.update(_origins_in(records, ctx.flow, target_cluster_id))

    topic = events_topic(ctx.flow, ctx.settings.group_id)
    try:
        await target_follower(ctx.settings, "origins", topic, fold).replay(silent_s=SILENT_S)
    except (TopicMissing, NotPermitted) as trouble:
        ctx.log.debug("no recorded origins", str(trouble))
    return sorted(recorded, key=lambda row: not recorded[row])


def _origins_in(records: Iterable[Record], flow: Flow, target_cluster_id: str) -> Mapping[Origin, bool]:
    """Return the rows that these events name, and for each whether it is the one that counts for its origin.

    Producer ids of another cluster are left out.
    """
    rows: dict[Origin, bool] = {}
    for record in records:
        if record.value is None or RECORDED.encode() not in record.value:
            continue
        try:
            event = decode_event(record.value)
            detail = event.detail
            row = Origin(
                producer_id=int(detail["producer_id"]),
                source=flow.source,
                target=flow.target,
                origin_cluster_id=str(detail["origin_cluster_id"]),
                target_cluster_id=str(detail["target_cluster_id"]),
            )
        except (NewerVersion, ValueError, TypeError, KeyError):
            continue  # it names no id that can be used
        if not 0 <= row.producer_id < 2**63:
            continue
        if event.kind == RECORDED and event.flow == str(flow) and row.target_cluster_id == target_cluster_id:
            rows[row] = detail.get("counts") is True
    return rows


class OriginRecorder:
    """The recorder of the flow's producer ids, which repeats them because the events topic forgets."""

    def __init__(self, ctx: FlowContext) -> None:
        self._ctx = ctx
        self._recorded_at = float("-inf")

    def begin(self) -> None:
        """Let the next call record, because a driver begins."""
        self._recorded_at = float("-inf")

    async def record_if_due(self) -> None:
        """Record once a day. Raises LeadershipLost."""
        now = self._ctx.clock.monotonic()
        if now - self._recorded_at >= REPEATED_EVERY.total_seconds():
            self._recorded_at = now
            await _record_origins(self._ctx)


async def _record_origins(ctx: FlowContext) -> None:
    flow, rows = ctx.flow, [row for row in ctx.state.rows.values() if isinstance(row, Origin)]
    counting: dict[tuple[str, str], int] = {}
    for row in reversed(rows):
        counting[row.origin_cluster_id, row.target_cluster_id] = row.producer_id
    await asyncio.gather(
        *(
            ctx.event(
                RECORDED,
                str(row.producer_id),
                f"producer {row.producer_id} stands for {flow}",
                producer_id=row.producer_id,
                origin_cluster_id=row.origin_cluster_id,
                target_cluster_id=row.target_cluster_id,
                counts=counting[row.origin_cluster_id, row.target_cluster_id] == row.producer_id,
            )
            for row in rows
            if (row.source, row.target) == (flow.source, flow.target)
        )
    )
