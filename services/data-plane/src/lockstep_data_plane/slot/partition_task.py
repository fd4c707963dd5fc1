"""The task of each partition, which takes it through its phases until it is released.

It resumes, settles, drains and quarantines. It sleeps except when the phase changes. The slot's loop (`SlotIO`)
carries out the partition's events.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from time import monotonic

from lockstep_config.flow.model import DataPlaneSettings
from lockstep_data_plane.core.evaluation import TRANSFORM_CASE, TransformUnavailable, unavailable
from lockstep_data_plane.core.events import (
    AllAnswered,
    Failed,
    NothingCopied,
    Quarantined,
    Refused,
    Resumed,
    TargetSized,
    Unplaced,
)
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.phases import Phase
from lockstep_data_plane.core.slot_io import SlotIO
from lockstep_data_plane.core.target_log.locate import Position
from lockstep_data_plane.produce.sender import Sender
from lockstep_data_plane.progress.control_topic_writer import PROGRESS, ControlTopicWriter
from lockstep_data_plane.progress.event_reporter import EventReporter
from lockstep_data_plane.resume.gap_resolver import HaltPartition
from lockstep_data_plane.resume.resumer import Resumer
from lockstep_data_plane.resume.transaction_runner import TransactionRunner
from lockstep_data_plane.slot.transform_stage import EvaluationPatience
from lockstep_kafka.common.asyncio_util import cancelled, retrieve_error, set_within
from lockstep_kafka.common.backoff import Backoff
from lockstep_kafka.common.errors import ClusterError
from lockstep_kafka.wire.cluster import ClusterClient
from lockstep_kafka.wire.connection_errors import BrokerUnreachable
from lockstep_kafka.wire.error_codes import RETRIABLE_ERRORS
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import MirroredTopic, OffsetRuns

AT_MOST_S = 4.0
"""The longest pause in seconds before a retry. Waiting partitions share one metadata request, so a retry is cheap."""

LOCATES_WITHIN_S = 3.0
"""Seconds without records of a partition that is located, after which the slot asks whether the source is there."""

BRINGS_WITHIN_S = 10.0
"""More seconds that a source which answers has to bring records of a partition that is located."""

AT_LEAST_S = 0.5
"""The shortest pause in seconds before a retry, even if other partitions reach their brokers."""


class RetryGate:
    """The partitions of one slot that wait to retry.

    If one reaches its brokers, all retry at once. Otherwise each of thousands would wait out its own back-off after an
    outage.
    """

    def __init__(self) -> None:
        self._asleep: set[asyncio.Event] = set()
        self._through = 0

    async def wait(self, trouble: BaseException, changed: asyncio.Event, seconds: float) -> None:
        """Wait before the next retry.

        After BrokerUnreachable it waits as `pause` does, since other partitions find out too when the broker is back.
        After any other error it waits until `changed` is set, but at most `seconds`.
        """
        if isinstance(trouble, BrokerUnreachable):
            await self.pause(changed, seconds)
        else:
            await set_within(changed, seconds)

    async def pause(self, changed: asyncio.Event, seconds: float) -> None:
        """Wait until `changed` is set or another partition gets through, at most `seconds` and `AT_MOST_S`.

        It waits at least `AT_LEAST_S` if only other partitions get through.
        """
        seconds, before = min(seconds, AT_MOST_S), self._through
        if await set_within(changed, min(seconds, AT_LEAST_S)) or self._through != before:
            return
        self._asleep.add(changed)
        try:
            await set_within(changed, seconds - AT_LEAST_S)
        finally:
            self._asleep.discard(changed)

    def wake_all(self) -> None:
        """Let every waiting partition retry now, since one has reached its brokers. Sets their `changed` events."""
        self._through += 1
        for changed in self._asleep:
            changed.set()
        self._asleep.clear()


@dataclass(slots=True)
class PartitionBackoff:
    """The back-off of one partition.

    Failures while it resumes and failures while it copies are counted separately. So after a long outage, the first
    failure of the copy is retried soon. Times are seconds of a monotonic clock.
    """

    _resuming: Backoff = field(default_factory=Backoff)
    _copying: Backoff = field(default_factory=Backoff)
    evaluations: EvaluationPatience = field(default_factory=EvaluationPatience)
    _resumed_at: float = 0.0

    def delay_after_failed_resume(self, trouble: BaseException) -> float:
        """Return the seconds until the next try to resume. They double with each failure, up to 30."""
        return self._resuming.next(away=isinstance(trouble, BrokerUnreachable))

    def resumed(self, now: float) -> None:
        """Note that the partition has resumed."""
        self._resuming.reset()
        self.evaluations = EvaluationPatience()
        self._resumed_at = now

    def delay_after_failed_copy(self, now: float, *, no_progress: bool) -> float:
        """Return the seconds to wait before it resumes after a failed copy.

        They are 0 if the copy made progress since it last resumed. Otherwise they double with each failure, up to 30.
        One failure is forgotten for each ten seconds of copying, because an idle partition makes no progress either.
        """
        if not no_progress:
            self._copying.reset()
            return 0.0
        self._copying.forget_failures(now - self._resumed_at)
        return self._copying.next()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTasks:
    """The tasks of a slot's partitions, each of which takes one partition through its phases."""

    plane: DataPlaneSettings
    target: ClusterClient
    topics: Mapping[str, MirroredTopic]
    find_runs: Callable[[TopicPartition], Iterable[OffsetRuns]]
    """Returns the rows of a partition's offset runs that the state topic has now."""
    control_writer: ControlTopicWriter
    reporter: EventReporter
    resumer: Resumer
    transaction_runner: TransactionRunner
    sender: Sender
    changes: Mapping[PartitionState, asyncio.Event]
    """The event of each partition. It is set when the phase has changed or the last answer is in."""
    io: SlotIO
    retry_gate: RetryGate = field(default_factory=RetryGate)

    async def run_partition(self, partition: PartitionState) -> None:
        """Take the partition through its phases, until it is released and its last row is written."""
        changed, pauses, asks_source = self.changes[partition], PartitionBackoff(), True
        while partition.phase is not Phase.RELEASED:
            changed.clear()
            if partition.phase is Phase.RESUMING:
                await self._try_to_resume(partition, pauses, asks_source=asks_source)
            elif partition.phase is Phase.LOCATING:
                asks_source = await self._watch_locating(partition)
            elif partition.phase not in (Phase.SETTLING, Phase.DRAINING) or not partition.drained:
                await changed.wait()
            elif partition.ends_transaction_first and self.transaction_runner.is_under_way(partition):
                await self.transaction_runner.wait_ended(partition)
            elif self._quarantines(partition):
                await self._quarantine(partition, pauses)
            else:
                await self._leave_settled_phase(partition, pauses)
        self.sender.detach(partition)
        await self._flush_progress(partition)

    async def _leave_settled_phase(self, partition: PartitionState, pauses: PartitionBackoff) -> None:
        """Enter the next phase, since every append has its answer."""
        self.io.step(partition, AllAnswered())
        if partition.phase is Phase.RESUMING:
            await self._backoff_before_resume(partition, pauses)

    async def _backoff_before_resume(self, partition: PartitionState, pauses: PartitionBackoff) -> None:
        """Wait before resuming after a copy that failed, until something else happens to the partition."""
        seconds = pauses.delay_after_failed_copy(monotonic(), no_progress=partition.no_progress_since_resume)
        if seconds:
            self.changes[partition].clear()  # the step before this set it
            await set_within(self.changes[partition], seconds)

    def _quarantines(self, partition: PartitionState) -> bool:
        refusal = partition.refusal
        if partition.phase is not Phase.DRAINING or refusal is None or partition.leaving:
            return False
        return refusal.is_decided or self.plane.on_refused.for_topic(partition.topic) == "quarantine"

    async def _quarantine(self, partition: PartitionState, pauses: PartitionBackoff) -> None:
        """Write refused records to the quarantine topic, record in the row that they are passed over, and go on.

        The partition waits until both writes are acknowledged. Records that were written are not written again,
        unless the process crashes between the two writes.
        """
        refusal = partition.refusal
        if refusal is None:
            return
        try:
            row = await self.resumer.gap_resolver.row_behind_refusal(partition, refusal.ranges)
            if row is not None:
                await self.control_writer.quarantine(partition, refusal)
                await self.control_writer.write(row)
        except RETRIABLE_ERRORS as exc:
            await self._report_and_wait(partition, exc, pauses)
        except HaltPartition as exc:
            self.io.step(partition, Refused(exc.cause))
        else:
            self.io.step(partition, Quarantined(row))

    async def _flush_progress(self, partition: PartitionState) -> None:
        try:
            await self.control_writer.flush([partition])
        except ClusterError as trouble:
            self.reporter.report_slot_failure(PROGRESS, trouble)

    async def _try_to_resume(self, partition: PartitionState, pauses: PartitionBackoff, *, asks_source: bool) -> None:
        try:
            await self._resume(partition, asks_source=asks_source)
            pauses.resumed(monotonic())
        except RETRIABLE_ERRORS as exc:
            if pauses.evaluations.is_exhausted(exc, monotonic()):
                cause = unavailable(f"of {partition.topic}", str(exc)).cause
                self.io.step(partition, Refused(cause, case=TRANSFORM_CASE))
            else:
                await self._report_and_wait(partition, exc, pauses)
        except HaltPartition as exc:
            self.io.step(partition, Refused(exc.cause, case=exc.case.value))
        except TransformUnavailable as exc:
            self.io.step(partition, Refused(exc.cause, case=TRANSFORM_CASE))

    async def _report_and_wait(
        self, partition: PartitionState, trouble: BaseException, pauses: PartitionBackoff
    ) -> None:
        """Report the error, and wait before the next try."""
        self.reporter.trouble(partition, trouble)
        await self.retry_gate.wait(trouble, self.changes[partition], pauses.delay_after_failed_resume(trouble))

    async def _resume(self, partition: PartitionState, *, asks_source: bool) -> None:
        topic = self.topics[partition.topic]
        if partition.resolves_end:
            await self._locate(partition, asks_source=asks_source)
            return
        # The end of a former chain is read once, so it has to stand still. The next chain's first append fences it.
        ends_first = self.plane.read_back or self.resumer.changes_transform(partition)
        if ends_first and not await self._await_cut_off_runs(partition):
            return
        resumed = await self._resumed(partition, topic)
        if resumed is None:
            return
        row, end = resumed
        if self.target.partitions(partition.target_topic) < topic.target_partitions:
            await self.target.refresh([partition.target_topic])  # keys choose among all that topic-sync has seen
        partitions = self.target.partitions(partition.target_topic)
        if not partitions:
            raise BrokerUnreachable(f"topic {partition.target_topic} is not there", self.target.alias)
        if not partition.routing.fits_partitions(partitions):
            self.sender.detach(partition)
        partition.step(TargetSized(partitions))
        await self.sender.attach(partition, alone=row.transactional)
        if partition.phase is not Phase.RESUMING or partition.resolves_end:
            return
        transactions = self.transaction_runner.start(partition) if row.transactional else None
        self._go_on(partition, Resumed(row, end, self.find_runs(partition.tp), transactions))

    async def _resumed(self, partition: PartitionState, topic: MirroredTopic) -> Position | None:
        """Return what `Resumer.resume` returns, or None as soon as the partition is to leave.

        It stops waiting for the source in that case too, since the source may be gone for good.
        """
        changed, resuming = self.changes[partition], asyncio.ensure_future(self.resumer.resume(partition, topic))
        resuming.add_done_callback(retrieve_error)  # this task may be cancelled in the turn in which it fails
        try:
            while not resuming.done() and partition.phase is Phase.RESUMING and not partition.resolves_end:
                changed.clear()
                change = asyncio.ensure_future(changed.wait())
                try:
                    await asyncio.wait({resuming, change}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    change.cancel()
        finally:
            if not resuming.done():
                await cancelled([resuming])
        return None if resuming.cancelled() else resuming.result()

    async def _watch_locating(self, partition: PartitionState) -> bool:
        """Wait until the phase may have changed, and return whether the source may be asked again.

        It gives up a source that falls silent, and one that answers but brings no records.
        """
        if await self._moves_on(partition, LOCATES_WITHIN_S):
            return True
        if await self.resumer.source_answers(partition.tp) and await self._moves_on(partition, BRINGS_WITHIN_S):
            return True
        if partition.phase is Phase.LOCATING:
            self.io.step(partition, Failed(source_failed=True))
        return False

    async def _moves_on(self, partition: PartitionState, within_s: float) -> bool:
        """Return whether the phase or the position changes within `within_s` seconds."""
        position = partition.position
        return await set_within(self.changes[partition], within_s) or partition.position != position

    def _go_on(self, partition: PartitionState, event: Resumed | NothingCopied | Unplaced) -> None:
        self.io.step(partition, event)
        if partition.phase is not Phase.SETTLING:  # its leader was there
            self.retry_gate.wake_all()

    async def _await_cut_off_runs(self, partition: PartitionState) -> bool:
        """Wait until a cut-off run can append no more. Return False if the partition changes first."""
        others_s = (self.io.others_end_by or 0.0) - asyncio.get_running_loop().time()
        return others_s <= 0 or not await set_within(self.changes[partition], others_s)

    async def _locate(self, partition: PartitionState, *, asks_source: bool) -> None:
        """Find where the copy of a partition at rest ends, so that its row says it.

        Retriable errors of `Resumer.located` pass through.

        Args:
            partition: The partition, which is not copied now.
            asks_source: As for `Resumer.located`.

        Raises:
            HaltPartition: The end is unknown.
        """
        if not await self._await_cut_off_runs(partition):
            return
        position = await self.resumer.located(partition, asks_source=asks_source)
        if partition.phase is not Phase.RESUMING or not partition.resolves_end:
            return
        if isinstance(position, Position):
            self._go_on(partition, Resumed(*position, self.find_runs(partition.tp)))
        else:
            self._go_on(partition, position or NothingCopied())
