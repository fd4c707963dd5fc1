"""What a slot writes down: progress and status as state rows, MM2's own progress, offset syncs, events
(`architecture.md` §5).

Every row and event here comes after its fact. So a crash in between leaves the log further on than the rows, never
behind, and `target_tail.py` finds out by how much."""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import replace

from lockstep_config import FlowSettings
from lockstep_config.credentials.permissions import needed_access
from lockstep_config.flow import client_settings
from lockstep_data_plane.core.events import EntryQuarantined, RunsWritten
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.quarantine_entry import RefusedRecords
from lockstep_data_plane.progress.mirror_progress_writer import MirrorProgressWriter
from lockstep_data_plane.progress.offset_sync_writer import OffsetSyncWriter
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.librdkafka.control_producer import ControlProducer, ControlTopicLog
from lockstep_kafka.topics.control_topics import ControlTopic, ensure_control_topics, refused_configs_text
from lockstep_rules.sliding_window import Window
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.util.clock import now_ms
from lockstep_state.event_kinds import EVENT_KINDS
from lockstep_state.events import Event, cause_detail, event_words
from lockstep_state.names import events_topic, quarantine_topic, state_topic
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.rows.state_rows import OffsetRuns, PartitionProgress, Row

PROGRESS = "progress"
"""What a slot calls it in its troubles when progress cannot be written down."""

YIELD_AFTER_S = 0.002
"""How long rows are made without letting other tasks run. What is sent within this time is one append, which costs the
broker and every reader the same for any number of rows. Records wait for little longer than this."""

QUARANTINE_BYTES = 64 << 20
"""The largest record of the quarantine topic: what was too large elsewhere must fit, below the 100 MiB that a broker
takes as a request."""

QUARANTINE_CONFIGS = {"cleanup.policy": "delete", "retention.ms": "-1", "max.message.bytes": str(QUARANTINE_BYTES)}


class ControlTopicWriter:
    """The control topics of one flow, as a slot writes them."""

    def __init__(self, settings: FlowSettings, slot: int, run: str, log: FlowLog) -> None:
        self._settings = settings
        self.slot = slot
        self._run = run
        self._log = log
        flow = settings.flow
        access = needed_access(settings, flow.target)
        target = ControlProducer(flow.target, client_settings.target_producer(settings, f"slot-{slot}"), access=access)
        self._producers = [target]
        self.state = ControlTopicLog(target, state_topic(flow, settings.group_id))
        self._events = ControlTopicLog(target, events_topic(flow, settings.group_id))
        self.progress = MirrorProgressWriter(
            ControlTopicLog(target, settings.control.offset_storage_topic),
            settings.aliases.source,
            settings.control.progress_connector,
            log,
        )
        self._quarantine: ControlTopicLog | None = None
        self.syncs: OffsetSyncWriter | None = None
        if settings.data_plane.emit_offset_syncs:
            conf = client_settings.offset_syncs_producer(settings, f"slot-{slot}")
            at = settings.offset_syncs_cluster
            producer = ControlProducer(at, conf, access=needed_access(settings, at))
            self._producers.append(producer)
            topic = ControlTopicLog(producer, settings.offset_syncs_topic)
            self.syncs = OffsetSyncWriter(topic, settings.data_plane.offset_lag_max, log)
        self._written: dict[tuple[str, int], PartitionProgress] = {}
        self._sent: dict[tuple[str, int], PartitionProgress] = {}
        """The newest row of each partition, which may not have been acknowledged."""
        self._partitions: dict[tuple[str, int], PartitionState] = {}
        self.commits = Window()
        """How long it took to write rows of progress down, in milliseconds."""

    async def start(self) -> None:
        """Begin. Does not need the clusters: appends wait for them. Raises ClusterUnreachable where there are no
        credentials."""
        for producer in self._producers:
            await producer.start()

    async def stop(self) -> None:
        """End, after what is on its way has had its chance."""
        await self.progress.stop(1.0)
        if self.syncs is not None:
            await self.syncs.settle(1.0)
        await asyncio.gather(*(producer.stop(1.0) for producer in self._producers))

    async def write(self, row: Row) -> None:
        """Append one row to the state topic and wait for its acknowledgement. Raises ClusterError."""
        if isinstance(row, PartitionProgress) and (row.topic, row.partition) in self._partitions:
            row = self._partitions[row.topic, row.partition].acked.stats.in_row(row)
        key, value = replace(row, at_ms=now_ms()).encode()
        await self.state.append(key, value, partition=0)

    async def quarantine(self, partition: PartitionState, refusal: RefusedRecords) -> None:
        """Append what was refused to the quarantine topic, which is created where it is missing, wait for every
        acknowledgement, and say it. Raises ClusterError; called again it goes on behind what was acknowledged
        (`PartitionState.quarantined_entries`), and does nothing once all of it was."""
        if partition.quarantined_entries == len(refusal.entries):
            return
        topic = quarantine_topic(self._settings.flow, self._settings.group_id)
        if self._quarantine is None:
            conf = client_settings.target_producer(self._settings, f"slot-{self.slot}-quarantine")
            alias = self._settings.flow.target
            access = needed_access(self._settings, alias)
            producer = ControlProducer(alias, {**conf, "message.max.bytes": str(QUARANTINE_BYTES)}, access=access)
            asking = client_settings.target_admin(self._settings, f"slot-{self.slot}-quarantine")
            admin = Admin(alias, asking, access=access)
            created = await ensure_control_topics(
                admin, [ControlTopic(topic, 1, self._settings.control.replication_factor, QUARANTINE_CONFIGS)]
            )
            for name, refused in created.refused.items():
                self.event(
                    "ConfigRefused",
                    name,
                    refused_configs_text(name, alias, refused),
                    cluster=alias,
                    keys=dict(refused),
                )
            self._producers.append(producer)
            self._quarantine = ControlTopicLog(producer, topic)
        for entry in refusal.entries[partition.quarantined_entries :]:
            key, value, headers = entry.record(partition.topic, partition.number, refusal.why)
            await self._quarantine.append(key, value, partition=0, headers=headers)
            partition.step(EntryQuarantined())
        name = partition.name
        first, last = refusal.ranges[0][0], refusal.ranges[-1][1]
        self.event(
            "BatchQuarantined",
            name,
            f"{name}: {len(refusal.entries)} of offsets {first} to {last} put into {topic}: {refusal.why}",
            ranges=refusal.ranges,
            reason=refusal.why,
        )

    async def flush(self, partitions: Iterable[PartitionState]) -> None:
        """Write down how far each partition is, where that changed since the last time. Rows are acknowledged when this
        returns. MM2's progress, and the delayed offset syncs, are on their way then. Raises ClusterError, after which
        the same rows are still due.

        Offset runs come before the progress of the same moment. What is behind it is copied or skipped again, so a
        crash in between leaves no hole in them. Every YIELD_AFTER_S other tasks may run between two partitions, but not
        between making a partition's row and sending it. A flush in between would write a newer row, and that must come
        later."""
        due: list[tuple[PartitionState, PartitionProgress]] = []
        ended: list[tuple[PartitionState, list[OffsetRuns]]] = []
        sent: list[asyncio.Future[tuple[int, int]]] = []
        began = yielded_at = time.monotonic()
        for p in partitions:
            if not p.acked.is_loaded:
                continue
            row = replace(p.row(), lag_ms=p.acked.lag_ms(now_ms()), slot=self.slot, at_ms=0)
            facts: list[Row] = []
            if rows := p.acked.runs.due():
                ended.append((p, rows))
                facts += rows
            if row != self._written.get(p.tp):
                due.append((p, row))
                facts.append(row)
                self._sent[p.tp] = row
            if self.syncs is not None:
                self.syncs.flush(p.tp)
            if facts:
                at = now_ms()
                sent += self.state.send((replace(fact, at_ms=at).encode() for fact in facts), partition=0)
                if time.monotonic() - yielded_at >= YIELD_AFTER_S:
                    await asyncio.sleep(0)
                    yielded_at = time.monotonic()
        if not sent:
            return
        await asyncio.gather(*sent)
        for p, rows in ended:
            p.step(RunsWritten(rows))
        # A partition that has sent a newer row meanwhile writes the progress that belongs to it; ours would come later.
        overtaken = {p.tp for p, row in due if self._sent.get(p.tp) is not row}
        due = [(p, row) for p, row in due if p.tp not in overtaken]
        self.progress.offer(
            {
                p.tp: row.upstream
                for p, row in due
                if row.upstream >= 0 and not row.transactional and row.upstream != p.acked.progress_before
            }
        )
        for p, row in due:
            self._written[p.tp] = row
        self.commits.record(now_ms(), 1000 * (time.monotonic() - began))

    def add_partition(self, partition: PartitionState) -> None:
        """The slot has taken the partition up: from now on each row about it has its counts."""
        self._partitions[partition.tp] = partition

    def remove_partition(self, partition: PartitionState) -> None:
        """The partition has left this slot."""
        self._written.pop(partition.tp, None)
        self._sent.pop(partition.tp, None)
        self._partitions.pop(partition.tp, None)
        self.progress.remove(partition.tp)
        if self.syncs is not None:
            self.syncs.remove(partition.tp)

    def event(self, kind: str, subject: str, text: str = "", *, cause: Reason = NO_REASON, **detail: object) -> None:
        """Say what happened, in the log at once. The event is on its way to the events topic when this returns: nothing
        waits for it. If the cluster does not take it, that is logged too. A `cause` is in the detail as such, and as
        the sentence `reason`. To be called after `start`."""
        said = detail | ({"reason": format_sentence(cause)} if cause else {})
        self._log.info(event_words(kind), text or subject, level=EVENT_KINDS[kind].level, kind=kind, **said)
        event = Event(
            kind=kind,
            service="data-plane",
            flow=str(self._settings.flow),
            subject=subject,
            at_ms=now_ms(),
            instance=self._run,
            detail=detail | cause_detail(cause),
        )
        (sent,) = self._events.send([event.encode()], partition=0)

        def on_answer(answered: asyncio.Future[tuple[int, int]]) -> None:
            if not answered.cancelled() and (trouble := answered.exception()) is not None:
                self._log.warn("event not written", f"{kind} of {subject}: {trouble}")

        sent.add_done_callback(on_answer)
