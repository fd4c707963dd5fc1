"""A slot's writes to the control topics (`architecture.md` §5).

They are progress and status as state rows, MM2's own progress, offset syncs and events. Every row and event is
written after its fact. So after a crash the target's log is ahead of the rows, never behind, and `target_tail.py`
finds out by how much.
"""

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
"""The name under which a slot reports that its progress cannot be written."""

YIELD_AFTER_S = 0.002
"""Seconds for which rows are made before other tasks run. The rows of this time are one append, which costs the
broker and every reader the same for any number of rows. Records wait for little longer than this.
"""

QUARANTINE_BYTES = 64 << 20
"""The size of the largest record of the quarantine topic. Records that were too large elsewhere must fit, below the
100 MiB that a broker takes as a request.
"""

QUARANTINE_CONFIGS = {"cleanup.policy": "delete", "retention.ms": "-1", "max.message.bytes": str(QUARANTINE_BYTES)}


class ControlTopicWriter:
    """The writer of one flow's control topics in one slot."""

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
            alias = settings.offset_syncs_cluster
            producer = ControlProducer(alias, conf, access=needed_access(settings, alias))
            self._producers.append(producer)
            topic = ControlTopicLog(producer, settings.offset_syncs_topic)
            self.syncs = OffsetSyncWriter(topic, settings.data_plane.offset_lag_max, log)
        self._written: dict[tuple[str, int], PartitionProgress] = {}
        self._sent: dict[tuple[str, int], PartitionProgress] = {}
        """The last row of each partition that was sent, acknowledged or not."""
        self._partitions: dict[tuple[str, int], PartitionState] = {}
        self.commits = Window()
        """The durations of writes of progress rows, in milliseconds."""

    async def start(self) -> None:
        """Start the producers. The clusters need not answer yet: appends wait for them.

        Raises:
            ClusterUnreachable: There are no credentials.
        """
        for producer in self._producers:
            await producer.start()

    async def stop(self) -> None:
        """Stop the producers, after a short wait for what is in flight."""
        await self.progress.stop(1.0)
        if self.syncs is not None:
            await self.syncs.settle(1.0)
        await asyncio.gather(*(producer.stop(1.0) for producer in self._producers))

    async def write(self, row: Row) -> None:
        """Append one row to the state topic and wait for the acknowledgement.

        Raises:
            ClusterError: The row was not taken.
        """
        if isinstance(row, PartitionProgress) and (row.topic, row.partition) in self._partitions:
            row = self._partitions[row.topic, row.partition].acked.stats.with_counts(row)
        key, value = replace(row, at_ms=now_ms()).encode()
        await self.state.append(key, value, partition=0)

    async def quarantine(self, partition: PartitionState, refusal: RefusedRecords) -> None:
        """Append refused records to the quarantine topic, wait for every acknowledgement, and write the event.

        The topic is created if it is missing. A repeated call goes on after the acknowledged entries
        (`PartitionState.quarantined_entries`), and does nothing if all are acknowledged.

        Raises:
            ClusterError: The topic cannot be created, or an entry was not taken.
        """
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
            key, value, headers = entry.record(partition.topic, partition.number, refusal.reason)
            await self._quarantine.append(key, value, partition=0, headers=headers)
            partition.step(EntryQuarantined())
        name = partition.name
        first, last = refusal.ranges[0][0], refusal.ranges[-1][1]
        self.event(
            "BatchQuarantined",
            name,
            f"{name}: {len(refusal.entries)} of offsets {first} to {last} put into {topic}: {refusal.reason}",
            ranges=refusal.ranges,
            reason=refusal.reason,
        )

    async def flush(self, partitions: Iterable[PartitionState]) -> None:
        """Write the progress rows that changed since the last time, and wait for their acknowledgements.

        MM2's progress and the delayed offset syncs are in flight when this returns. Offset runs come before the
        progress of the same moment. After a crash in between, the records after that progress are copied or skipped
        again, so the runs have no hole.

        Every `YIELD_AFTER_S` other tasks may run between two partitions, but not between the making of a partition's
        row and its sending. Another flush would write a newer row there, and the newer row must come later.

        Raises:
            ClusterError: Rows were not taken. They are still due.
        """
        due: list[tuple[PartitionState, PartitionProgress]] = []
        ended: list[tuple[PartitionState, list[OffsetRuns]]] = []
        sent: list[asyncio.Future[tuple[int, int]]] = []
        began = yielded_at = time.monotonic()
        for p in partitions:
            if not p.has_row:
                continue
            row = p.row(lag_ms=p.acked.lag_ms(now_ms()), slot=self.slot, at_ms=0)
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
                at_ms = now_ms()
                sent += self.state.send((replace(fact, at_ms=at_ms).encode() for fact in facts), partition=0)
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
        """Add a partition of the slot. From now on each row about it has its counts."""
        self._partitions[partition.tp] = partition

    def remove_partition(self, partition: PartitionState) -> None:
        """Remove a partition that has left this slot."""
        self._written.pop(partition.tp, None)
        self._sent.pop(partition.tp, None)
        self._partitions.pop(partition.tp, None)
        self.progress.remove(partition.tp)
        if self.syncs is not None:
            self.syncs.remove(partition.tp)

    def event(self, kind: str, subject: str, text: str = "", *, cause: Reason = NO_REASON, **detail: object) -> None:
        """Log what happened, and send the event to the events topic without waiting.

        A failure to write the event is logged. To be called after `start`.

        Args:
            kind: One of `EVENT_KINDS`.
            subject: The partition, topic or cluster that the event is about.
            text: The text of the log line; the subject if it is empty.
            cause: The reason, which is added to the detail. The log has its sentence as `reason`.
            detail: Further values of the event.
        """
        logged = detail | ({"reason": format_sentence(cause)} if cause else {})
        self._log.info(event_words(kind), text or subject, level=EVENT_KINDS[kind].level, kind=kind, **logged)
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

        def on_response(answered: asyncio.Future[tuple[int, int]]) -> None:
            if not answered.cancelled() and (trouble := answered.exception()) is not None:
                self._log.warn("event not written", f"{kind} of {subject}: {trouble}")

        sent.add_done_callback(on_response)
