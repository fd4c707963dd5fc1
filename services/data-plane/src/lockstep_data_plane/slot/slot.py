"""A slot: the work inside one Spark task, for as long as its assignment holds (`architecture.md` §5).

It follows the flow's state topic and copies the partitions that its assignment names. It ends when the assignment
says so, and when the certificates of this host change: then it is started again. The task's arguments hold only the
slot's identity and settings. The progress of each partition is read from Kafka.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from lockstep_data_plane.core.provenance import FlowIds
from lockstep_data_plane.progress.control_topic_writer import PROGRESS, ControlTopicWriter
from lockstep_data_plane.progress.slot_spans import SlotSpans
from lockstep_data_plane.slot.certificate_watch import CertificateWatch
from lockstep_data_plane.slot.desired_partitions import DesiredPartition, desired_partitions
from lockstep_data_plane.slot.end_searches import EndSearches
from lockstep_data_plane.slot.offset_run_rows import OffsetRunRows
from lockstep_data_plane.slot.progress_rows import ProgressRows
from lockstep_data_plane.slot.resuming_count import ResumingCount
from lockstep_data_plane.slot.row_deadline import ROWS_WITHIN_S, RowDeadline
from lockstep_data_plane.slot.slot_loop import SlotLoop
from lockstep_data_plane.slot.slot_spec import SlotSpec
from lockstep_data_plane.slot.slot_succession import SlotSuccession
from lockstep_data_plane.slot.slot_transforms import SlotTransforms
from lockstep_kafka.common.asyncio_util import cancelled, set_within
from lockstep_kafka.common.errors import ClusterError
from lockstep_kafka.common.tracing import NO_TRACING, Tracing
from lockstep_kafka.topics.topic_follower import target_follower
from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.state.unreadable_records import UnreadableRecords
from lockstep_runtime.telemetry.failure_tracker import FailureTracker
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.util.clock import now_ms
from lockstep_state.names import state_topic
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import (
    Assignment,
    DesiredState,
    Leader,
    MalformedRow,
    MirroredTopic,
    Row,
    SeenEnds,
    SlotStatus,
    decode_row,
)

ALIVE_EVERY_S = 5.0
"""Seconds between two status rows. The driver takes a slot for frozen that was silent for several times as long."""

TOGETHER_S = 0.25
"""Seconds that the first partition to leave waits for others, since hundreds may leave at once."""

RECONCILES_EVERY_S = 30.0
"""Seconds after which the slot compares its partitions with their desired state although no row has changed."""

RENEWS_WITHIN_S = 10.0
"""Seconds that a slot drains before it reconnects with new certificates. The former certificates may not work any
more. The target's log then shows what became of the batches in flight.
"""

PROGRESS_WITHIN_S = 2.0
"""Seconds that a slot waits at its end for the write of MM2's progress. The progress row, which counts more, is
written by then.
"""


class Slot:
    """One run of a slot of a flow.

    `run` returns when the slot has been asked to end and all its partitions have left.
    """

    def __init__(self, spec: SlotSpec, tracing: Tracing = NO_TRACING, *, syncs_before: int = 0) -> None:
        """Create the slot, with nothing connected.

        Args:
            spec: The identity and settings of this run.
            tracing: The destination of spans.
            syncs_before: Offset syncs that were acknowledged in the same run before new certificates restarted the
                slot.
        """
        self._spec = spec
        self._syncs_before = syncs_before
        self._slot_spans = SlotSpans(tracing, str(spec.settings.flow), spec.slot, spec.run, time.time_ns)
        self._settings = spec.settings
        self._log = FlowLog("data-plane", spec.settings.flow)
        self._troubles = FailureTracker(self._log, spec.driver_clusters)
        self._topics: dict[str, MirroredTopic] = {}
        self._unreadable = UnreadableRecords(self._log)
        self._rows = ProgressRows(self._unreadable.pass_over_later)
        self._run_rows = OffsetRunRows(self._unreadable.pass_over_later)
        self._assignment = Assignment(slot=spec.slot)
        self._reconciled_generation = self._assignment.generation
        self._desired_rows: dict[str, DesiredState] = {}
        self._orders: Mapping[TopicPartition, DesiredPartition] = {}
        self._ended_at: dict[TopicPartition, int] = {}
        """The partitions that have reached the ends that an operator set, with these ends."""
        self._succession = SlotSuccession(spec)
        self._changed = asyncio.Event()
        self._control_writer = ControlTopicWriter(spec.settings, spec.slot, spec.run, self._log)
        self._row_deadline = RowDeadline()
        self._resuming = ResumingCount()
        self._loop = SlotLoop(
            spec.settings,
            FlowIds(spec.producer_id, spec.source_cluster_id),
            self._control_writer,
            self._troubles,
            self._topics,
            self._rows,
            self._run_rows.find,
            self._unreadable.pass_over_at,
            transforms=SlotTransforms(spec.settings, spec.transforms),
            waits=lambda: self._row_deadline.has_expired(time.monotonic()),
        )
        self._partition_tasks: dict[TopicPartition, asyncio.Task[None]] = {}
        self._ended: list[TopicPartition] = []
        """The tasks that have ended. Without this list each turn would go through thousands of running tasks."""
        self._started_with: dict[TopicPartition, DesiredPartition] = {}
        """The desired state under which the task of each partition began."""
        self._searches = EndSearches(time.monotonic)
        self._alive_at = 0.0
        self._reconciled_at = 0.0
        self._certificates = CertificateWatch(spec.settings, self._log)

    @property
    def renews(self) -> bool:
        """Return whether the slot ends only to start again with new certificates."""
        return self._certificates.renewed and not self._assignment.ending

    @property
    def syncs(self) -> int:
        """The number of offset syncs acknowledged in this run.

        It does not fall when new certificates restart the slot.
        """
        writer = self._control_writer.syncs
        return self._syncs_before + (0 if writer is None else writer.sent)

    async def run(self) -> int:
        """Copy until the slot is asked to end, and return how many records were appended.

        A programming error in any of its tasks ends it too, and is raised.

        Raises:
            LogTruncated: The state topic was re-created.
        """
        topic = state_topic(self._settings.flow, self._settings.group_id)
        follower = target_follower(self._settings, f"slot-{self._spec.slot}", topic, self._fold)
        try:
            await self._control_writer.start()
            async with follower:
                await follower.caught_up()
                if self._settings.data_plane.read_back or not self._succession.ended_cleanly:
                    left_s = self._spec.appends_of_others_s(now_ms())
                    self._loop.others_end_by = asyncio.get_running_loop().time() + left_s
                await self._copy_until_asked(asyncio.create_task(follower.failed()))
        finally:
            await self._loop.close()
            await self._control_writer.stop()
        return self._loop.appended

    async def _copy_until_asked(self, following: asyncio.Task[None]) -> None:
        loop = asyncio.get_running_loop()
        certificate_watch = asyncio.create_task(self._certificates.watch(self._changed))
        silence_watch = asyncio.create_task(self._loop.end_silent())
        end_search = asyncio.create_task(self._searches.retry_searches(self._loop.source_answers, self._changed))
        flushed_at = 0.0
        flush_every = self._settings.data_plane.offset_flush_every.total_seconds()
        try:
            await self._write_status("started")
            name, count = f"slot {self._spec.slot}", len(self._assignment.partitions)
            self._control_writer.event(
                "SlotStarted", name, f"{name}: {count} partitions", slot=self._spec.slot, partitions=count
            )
            changed = True
            self._reconcile()  # a slot that has only to end looks for the end of what it was given, too
            while not (self._leaving and not self._partition_tasks) and not self._certificates.renewed_for(
                RENEWS_WITHIN_S
            ):
                self._check(following, silence_watch, certificate_watch, end_search)
                if changed or self._any_reaches_end() or loop.time() - self._reconciled_at >= RECONCILES_EVERY_S:
                    self._reconcile()
                if loop.time() - self._alive_at >= ALIVE_EVERY_S:  # first: a flush takes its time on slow cores
                    await self._write_status("started")
                if loop.time() - flushed_at >= flush_every or self._leaving:
                    await self._flush()
                    flushed_at = loop.time()
                self._update_spans()
                self._report_wait()
                due = min(flushed_at + flush_every, self._alive_at + ALIVE_EVERY_S)
                if changed := await set_within(self._changed, due - loop.time()):
                    self._changed.clear()
            if self._assignment.ending:
                await self._flush()
                await self._control_writer.progress.settle(PROGRESS_WITHIN_S)
                await self._write_status("released")
        finally:
            self._update_spans(last=True)
            for task in (certificate_watch, following, silence_watch, end_search):
                task.cancel()
            await cancelled(self._partition_tasks.values())

    def _update_spans(self, *, last: bool = False) -> None:
        self._slot_spans.update(
            self._loop.appended,
            self._loop.appended_bytes,
            "; ".join(self._troubles.now.values()),
            last=last,
            partitions=len(self._partition_tasks),
            held_bytes=self._loop.held_bytes,
        )

    @property
    def _leaving(self) -> bool:
        return self._assignment.ending or self._continues

    @property
    def _continues(self) -> bool:
        """Return whether another run takes over the partitions of this one at once."""
        return bool(self._succession.successor) or self.renews

    def _check(self, *without_end: asyncio.Task[None]) -> None:
        self._loop.check()
        for task in without_end:
            if task.done() and not task.cancelled() and (exc := task.exception()) is not None:
                raise exc
        while self._ended:
            tp = self._ended.pop()
            task, order = self._partition_tasks.pop(tp), self._started_with.pop(tp)
            if (partition := self._loop.partitions.get(tp)) is not None and partition.resolves_end:
                self._searches.end(tp, self._orders.get(tp, order), needs_source=partition.needs_source)
            self._loop.remove(tp)
            task.result()

    async def _write_status(self, phase: str) -> None:
        spoke_at, self._alive_at = self._alive_at, asyncio.get_running_loop().time()
        partitions, syncs = self._loop.partitions.values(), self._control_writer.syncs
        status = SlotStatus(
            slot=self._spec.slot,
            phase=phase,
            run=self._spec.run,
            generation=self._assignment.generation,
            partitions=len(self._partition_tasks),
            resting=sum(order.resting_reason != "" for order in self._orders.values()),
            held_bytes=self._loop.held_bytes,
            held_records=sum(p.routing.records_held for p in partitions),
            commit_window=self._control_writer.commits.summary,
            syncs=self.syncs,
            sync_window=() if syncs is None else syncs.latency.summary,
            resuming=self._resuming.take_count(self._assignment.generation),
            pause_ms=round((self._alive_at - spoke_at) * 1000) if spoke_at else 0,
            unreadable=self._unreadable.by_partition,
            causes=self._troubles.row_causes,
            link_bytes=self._loop.link_bytes,
            transforms=self._loop.transform_counts,
        )
        await self._try_to_write("slot status", self._control_writer.write(status))

    async def _flush(self) -> None:
        generation = self._reconciled_generation
        count = sum(self._loop.is_resuming(tp) for tp in self._partition_tasks)
        if await self._try_to_write(PROGRESS, self._loop.flush()):
            self._resuming.on_rows_written(generation, count)

    async def _try_to_write(self, name: str, writing: Coroutine[Any, Any, None]) -> bool:
        """Write rows, and return whether the state topic took them.

        A failure is reported once, and the rows are tried again later. The copy goes on meanwhile, but no longer than
        `RowDeadline` allows.
        """
        self._row_deadline.on_write(time.monotonic())
        try:
            await writing
        except ClusterError as trouble:
            self._troubles.record_failure(name, trouble)
            return False
        self._troubles.record_success(name)
        self._row_deadline.on_acknowledged()
        self._report_wait()
        return True

    def _report_wait(self) -> None:
        """Report when the slot stops copying because its rows are not taken, and when it goes on."""
        name, waits = f"slot {self._spec.slot}", self._row_deadline.take_change(time.monotonic())
        if waits:
            text = f"nothing has taken its rows for {ROWS_WITHIN_S:.0f} s, so it copies nothing until something does"
            self._log.warn(f"{name} waits", text, slot=self._spec.slot)
        elif waits is not None:
            self._log.info(f"{name} goes on", "its rows are taken again", slot=self._spec.slot)
            self._loop.wake()

    # -- what the state topic says -------------------------------------------------------------------------------------

    def _fold(self, records: Sequence[Record]) -> None:
        for record in records:
            try:
                if record.key is not None and (
                    self._run_rows.fold(record.key, record.value) or self._rows.fold(record.key, record.value)
                ):
                    continue  # written several times a second, by us and by the other slots: nothing to reconcile
                row = decode_row(record.key or b"", record.value)
            except MalformedRow as exc:
                self._unreadable.pass_over(record, exc, stays=True)
                continue
            if row is not None and self._take_row(row, record.offset):
                self._changed.set()

    def _take_row(self, row: Row, offset: int) -> bool:
        """Take a row other than of progress, and return whether partitions may have to begin or to leave."""
        match row:
            case MirroredTopic():
                self._topics[row.source_topic] = row
                self._loop.topic_changed(row)
            case SeenEnds():
                self._loop.take_seen_ends(row)
                return False
            case Assignment() if row.slot == self._spec.slot:
                if row.generation >= self._assignment.generation:
                    self._assignment = row
            case SlotStatus() if row.slot == self._spec.slot:
                if not self._succession.see_status(row):
                    return False
                self._report_successor("copies now")
            case DesiredState():
                self._desired_rows[row.key()] = row
            case Leader():
                if self._succession.see_leader(row, offset):
                    self._report_successor("leads now and starts its own")
            case _:
                return False
        return True

    def _report_successor(self, words: str) -> None:
        text = f"{self._succession.successor} {words}"
        self._log.info(f"slot {self._spec.slot} ends", text, slot=self._spec.slot)

    def _reconcile(self) -> None:
        self._reconciled_at = asyncio.get_running_loop().time()
        own_counts = Counter(topic for topic, _ in self._assignment.partitions)
        flow_counts = {name: self._copied(row) for name, row in self._topics.items() if row.phase == "mirrored"}
        self._loop.share_rates(own_counts, flow_counts)
        assigned, self._reconciled_generation = set(self._assignment.partitions), self._assignment.generation
        orders = desired_partitions(self._desired_rows, self._spec.slot, assigned, self._settings.states)
        self._loop.set_ends({tp: order.end for tp, order in orders.items() if order.end is not None})
        self._ended_at = {
            tp: order.end for tp, order in orders.items() if order.end is not None and self._reaches(tp, order.end)
        }
        self._orders = {tp: order.ended() if tp in self._ended_at else order for tp, order in orders.items()}
        if not self._continues:
            for tp in assigned - self._partition_tasks.keys():
                self._start_partition(tp, self._orders[tp])
        for tp in self._partition_tasks:
            order = self._orders.get(tp)
            if order is None or self._leaving or order != self._started_with[tp]:
                rests = order.resting_reason if order is not None else ""
                goes_on = self._continues or order is None or not (rests or self._assignment.ending)
                self._loop.leave(tp, rests, goes_on=goes_on)

    def _any_reaches_end(self) -> bool:
        """Return whether a partition that is copied has reached its end since the last reconciliation."""
        return any(
            order.end is not None and tp not in self._ended_at and self._reaches(tp, order.end)
            for tp, order in self._orders.items()
        )

    def _reaches(self, tp: TopicPartition, end: int) -> bool:
        """Return whether the copy of a partition has reached an end, by its row, by its task, or by an earlier one."""
        row = self._rows.get(tp)
        is_written = end <= (0 if row is None else row.upstream + 1)
        return is_written or self._ended_at.get(tp) == end or self._loop.has_reached(tp, end)

    def _copied(self, topic: MirroredTopic) -> int:
        return topic.copied(by_key=self._settings.data_plane.by_key)

    def _start_partition(self, tp: TopicPartition, order: DesiredPartition) -> None:
        topic = self._topics.get(tp[0])
        if topic is None or topic.phase != "mirrored" or tp[1] >= self._copied(topic):
            return
        at_rest = bool(order.resting_reason) or self._assignment.ending
        if at_rest and (self._is_located(tp) or self._searches.was_searched(tp, order)):
            return
        self._searches.begin(tp)
        self._started_with[tp] = order
        rests = order.resting_reason if at_rest else None
        task = asyncio.create_task(self._loop.run_partition(tp, topic, rests=rests), name=f"tend {tp[0]}-{tp[1]}")
        task.add_done_callback(lambda _: self._has_ended(tp))
        self._partition_tasks[tp] = task

    def _is_located(self, tp: TopicPartition) -> bool:
        """Return whether the end of a partition at rest needs no search.

        A killed run wrote rows, but maybe not the last one.
        """
        row = self._rows.get(tp)
        return row is None or row.is_set or (row.located and self._succession.ended_cleanly)

    def _has_ended(self, tp: TopicPartition) -> None:
        if not self._ended:
            asyncio.get_running_loop().call_later(TOGETHER_S, self._changed.set)
        self._ended.append(tp)
