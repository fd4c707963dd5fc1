"""The stage of a slot in which the records of transformed topics are evaluated, between fetched and judged.

Deliveries of a partition wait here in their order. What became of them goes on as `Fetched` with `decided`. A record
that was not evaluated never goes on: if nothing evaluates it, its partition waits, and halts after `WAITS_AT_MOST_S`.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lockstep_data_plane.core.evaluation import (
    TRANSFORM_CASE,
    DecidedRecords,
    EvaluationRequest,
    PassedOver,
    RejectedBatch,
    TransformUnavailable,
    decide,
    evaluation_requests,
    refuse_failed,
    unavailable,
    without_content,
)
from lockstep_data_plane.core.events import Refused
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.quarantine_entry import refuse_records, refused_batch, with_offsets
from lockstep_data_plane.core.record_transform import RecordFailure, RecordTransform, TransformedRecords
from lockstep_data_plane.fetch.fetcher import Delivery
from lockstep_data_plane.record_batch.classify import AbortedTransactions
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_data_plane.resume.evidence import NOT_EVALUATED
from lockstep_data_plane.transform.evaluation_answer import TransformRefused, TransformTimedOut
from lockstep_kafka.common.asyncio_util import cancelled
from lockstep_kafka.common.backoff import Backoff
from lockstep_kafka.wire.error_codes import RETRIABLE_ERRORS
from lockstep_rules.statement_outline import COLUMNS
from lockstep_state.errors import NeedsDecision
from lockstep_state.reasons.reason_catalogue import ReasonCode

WAITS_AT_MOST_S = 120.0
"""Seconds for which a partition waits for what evaluates its records, before it halts."""

TIMES_OUT = 2
"""The number of evaluations in a row that exceed their time limit, after which a partition halts. The first may be a
machine that stood still. Each leaves a thread in the JVM that nothing can end.
"""


class EvaluationPatience:
    """The time for which a partition waits for what evaluates its records."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._timeouts = 0

    def is_exhausted(self, trouble: BaseException, now: float) -> bool:
        """Return whether the partition has to halt after this error, at a time of a monotonic clock.

        An error that is not about the transform begins the wait anew.
        """
        if not isinstance(trouble, NOT_EVALUATED):
            self._began, self._timeouts = None, 0
            return False
        self._began = now if self._began is None else self._began
        self._timeouts += isinstance(trouble, TransformTimedOut)
        return self._timeouts >= TIMES_OUT or now - self._began > WAITS_AT_MOST_S


@dataclass(frozen=True, slots=True)
class StageTransform:
    """The transform of some topics in one slot."""

    name: str
    transform: RecordTransform
    on_error: str = "halt"
    """`halt`, `quarantine` or `quarantine-metadata`."""
    made_columns: Collection[str] = COLUMNS
    """The columns that it makes anew, as far as that is known. What it masks is in no quarantine."""


class Decided(NamedTuple):
    """The decision of a transform about batches of one delivery."""

    delivery: Delivery
    batches: Sequence[Batch]
    parts: tuple[DecidedRecords, ...]


class EvaluationRefused(NeedsDecision):
    """Records were not evaluated, and their partition has to halt by this event."""

    def __init__(self, event: Refused) -> None:
        super().__init__(event.cause.code)
        self.event = event


class TransformStage:
    """The deliveries of one slot that wait until their records are evaluated."""

    def __init__(
        self,
        *,
        decided: Callable[[Decided], None],
        judge: Callable[[Delivery], None],
        refused: Callable[[PartitionState, Refused], None],
        released: Callable[[PartitionState], None],
        trouble: Callable[[BaseException | None], None],
    ) -> None:
        """Begin with no partition.

        Args:
            decided: Gets what became of batches, in order.
            judge: Gets deliveries without batches, in their place between the others.
            refused: Gets the event by which a partition halts.
            released: Gets each partition whose held bytes have changed.
            trouble: Gets each passing error, and None when it is over.
        """
        self._decided = decided
        self._judge = judge
        self._refused = refused
        self._released = released
        self._trouble = trouble
        self._transforms: dict[PartitionState, StageTransform] = {}
        self._queues: dict[PartitionState, deque[Delivery]] = {}
        self._tasks: dict[PartitionState, asyncio.Task[None]] = {}
        self._waits: set[PartitionState] = set()
        """The partitions that wait for what evaluates their records."""
        self._crash: BaseException | None = None

    def add(self, partition: PartitionState, transform: StageTransform) -> None:
        """Let the records of a partition be evaluated from now on."""
        self._transforms[partition] = transform

    def remove(self, partition: PartitionState) -> None:
        """Forget a partition that has left this slot."""
        self._transforms.pop(partition, None)
        self._queues.pop(partition, None)
        self._end_wait(partition)

    def evaluates(self, partition: PartitionState) -> bool:
        """Return whether the records of a partition are evaluated."""
        return partition in self._transforms

    def waits(self, partition: PartitionState) -> bool:
        """Return whether a partition waits for what evaluates its records. Nothing more should be fetched then."""
        return partition in self._waits

    def held_by_name(self) -> dict[str, int]:
        """Return the bytes that wait, by the name of their transform."""
        held: dict[str, int] = {}
        for partition in self._queues:
            if (transform := self._transforms.get(partition)) is not None:
                held[transform.name] = held.get(transform.name, 0) + self.bytes_held(partition)
        return held

    def bytes_held(self, partition: PartitionState) -> int:
        """Return the bytes of the partition that wait."""
        queue = self._queues.get(partition)
        return sum(len(delivery.fetched.records) for delivery in queue) if queue else 0

    def hold(self, delivery: Delivery) -> None:
        """Keep a delivery until its records are evaluated, in order. Its partition was added before."""
        partition = delivery.partition
        queue = self._queues.setdefault(partition, deque())
        queue.append(delivery)
        if (running := self._tasks.get(partition)) is None or running.done():
            task = asyncio.create_task(self._work(partition), name=f"transform {partition.name}")
            self._tasks[partition] = task
            task.add_done_callback(lambda ended: self._on_end(partition, ended))

    def crashed(self) -> BaseException | None:
        """Return the mistake that ended an evaluation; the slot ends with it. None: all go on."""
        return self._crash

    async def close(self) -> None:
        """End the evaluations."""
        await cancelled(list(self._tasks.values()))

    def _on_end(self, partition: PartitionState, task: asyncio.Task[None]) -> None:
        if self._tasks.get(partition) is task:
            del self._tasks[partition]
        if not task.cancelled() and (crash := task.exception()) is not None:
            self._crash = crash

    async def _work(self, partition: PartitionState) -> None:
        while queue := self._queues.get(partition):
            delivery = queue[0]
            try:
                await self._evaluate(delivery)
            except EvaluationRefused as refused:
                self._end_wait(partition)
                if partition.awaits(delivery.incarnation):
                    self._refused(partition, refused.event)
            if queue and queue[0] is delivery:
                queue.popleft()
            self._released(partition)
        self._queues.pop(partition, None)

    async def _evaluate(self, delivery: Delivery) -> None:
        partition, fetched = delivery.partition, delivery.fetched
        if not partition.awaits(delivery.incarnation):
            return
        if fetched.code or not delivery.batches:
            self._judge(delivery)
            return
        aborted = AbortedTransactions(fetched.aborted)
        for request in evaluation_requests(
            delivery.batches, partition.position, aborted, partition.provenance, partition.limits, partition.skips
        ):
            if not partition.awaits(delivery.incarnation):
                return
            match request:
                case PassedOver(batch):
                    part = DecidedRecords(None, batch.last_offset, batch.leader_epoch)
                    self._decided(Decided(delivery, (batch,), (part,)))
                case RejectedBatch(batch, reason):
                    raise _unreadable(delivery, batch, reason)
                case EvaluationRequest():
                    await self._evaluate_request(delivery, request)

    async def _evaluate_request(self, delivery: Delivery, request: EvaluationRequest) -> None:
        partition = delivery.partition
        start = max(partition.position, request.batches[0].base_offset)
        batches: Sequence[Batch] = request.batches
        while start <= request.last_offset and partition.awaits(delivery.incarnation):
            try:
                made = await self._ask(delivery, request, start)
            except TransformRefused as exc:
                if len(request.batches) == 1:
                    raise _unreadable(delivery, request.batches[0], str(exc)) from exc
                for batch in request.batches:  # those before the damaged one are good
                    await self._evaluate_request(delivery, request._replace(batches=(batch,)))
                return
            if made is None or not partition.awaits(delivery.incarnation):
                return
            try:
                part, failure = decide(request, start, made, partition.skips)
            except ValueError as exc:
                raise self._unavailable(partition, str(exc)) from exc
            if part is not None:
                self._decided(Decided(delivery, batches, (part,)))
                batches, start = (), part.covers + 1
            if failure is not None:
                raise EvaluationRefused(self._failed(partition, request, failure))

    async def _ask(self, delivery: Delivery, request: EvaluationRequest, start: int) -> TransformedRecords | None:
        """Return what the transform makes of a request; None: the partition does not want it any more.

        Raises:
            EvaluationRefused: It cannot be evaluated, or it was not within the time that a partition waits.
            TransformRefused: A batch of it cannot be read.
        """
        partition = delivery.partition
        if (stage_transform := self._transforms.get(partition)) is None:  # it has left
            return None
        transform = stage_transform.transform
        loop = asyncio.get_running_loop()
        backoff, patience = Backoff(first=0.25, limit=5.0), EvaluationPatience()
        while True:
            try:
                made = await transform.transform(request.batches, start, partition.tp)
            except TransformUnavailable as exc:
                raise EvaluationRefused(Refused(exc.cause, case=TRANSFORM_CASE)) from exc
            except NeedsDecision as exc:
                if isinstance(exc, TransformRefused) and exc.is_about_batch:
                    raise
                raise self._unavailable(partition, str(exc)) from exc
            except RETRIABLE_ERRORS as exc:
                if patience.is_exhausted(exc, loop.time()):
                    raise self._unavailable(partition, str(exc)) from exc
                self._waits.add(partition)
                self._trouble(exc)
                await asyncio.sleep(backoff.next())
                if not partition.awaits(delivery.incarnation):
                    self._end_wait(partition)
                    return None
            else:
                self._end_wait(partition)
                return made

    def _end_wait(self, partition: PartitionState) -> None:
        if partition in self._waits:
            self._waits.discard(partition)
            if not self._waits:
                self._trouble(None)

    def _unavailable(self, partition: PartitionState, text: str) -> EvaluationRefused:
        """Return the end of a partition whose records cannot be evaluated."""
        transform = self._transforms.get(partition)
        cause = unavailable("" if transform is None else transform.name, text).cause
        return EvaluationRefused(Refused(cause, case=TRANSFORM_CASE))

    def _failed(self, partition: PartitionState, request: EvaluationRequest, failure: RecordFailure) -> Refused:
        """Return the event for a record that cannot be evaluated. Nothing in it is from the record but its offset."""
        transform = self._transforms[partition]
        meant = f" ({failure.fragment})" if failure.fragment else ""
        cause = ReasonCode.RECORD_NOT_TRANSFORMED.to_reason(
            transform=transform.name,
            condition=failure.condition,
            fragment=meant,
            first=failure.offset,
            last=failure.offset,
            case="refused",
        )
        if transform.on_error == "halt" or partition.records_to_skip:
            return Refused(cause)
        reason = f"transform {transform.name}: {failure.condition}{meant}"
        return Refused(cause, refuse_failed(request, failure, reason, transform.on_error, transform.made_columns))


def _unreadable(delivery: Delivery, batch: Batch, reason: str) -> EvaluationRefused:
    """Return the end of a partition at a batch that cannot be read. Nothing of the batch is in it but its offsets."""
    refusal = without_content(refused_batch(batch, reason, delivery.fetched.high_watermark))
    return EvaluationRefused(Refused(refuse_records(with_offsets(batch, reason, refusal), refusal), refusal))
