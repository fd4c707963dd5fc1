"""The evaluation of records as statements and functions have it in common: options, answers, counts and errors."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Protocol

from lockstep_data_plane.core.record_transform import RecordFailure, TransformedRecords
from lockstep_data_plane.record_batch.codecs import UNPACKED_AT_MOST
from lockstep_data_plane.record_batch.gapped_batch import in_format_2
from lockstep_data_plane.record_batch.layout import HEADER, Batch, GappedOffsets, OutgoingBatch
from lockstep_kafka.common.asyncio_util import retrieve_error
from lockstep_state.errors import NeedsDecision, RetriableError
from lockstep_state.offsets import TopicPartition

READ_AHEAD = 1 << 20
"""The bytes that a connection buffers in each direction."""


class TransformConnectionLost(RetriableError):
    """The error of a JVM, a process of a function, or a connection, that has ended."""


class TransformTimedOut(RetriableError):
    """The error of an evaluation that took longer than it may, such as a regular expression that never ends."""


class TransformVersionDiffers(NeedsDecision):
    """The error of a JVM or a process in which a transform has another version than in the driver."""


class TransformRefused(NeedsDecision):
    """The error of what the JVM or the process refuses. `code` says why, such as BATCH_CORRUPT or SECRET_MISSING."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    @property
    def is_about_batch(self) -> bool:
        """Return whether a batch is refused that cannot be read, and not the transform."""
        return self.code.startswith("BATCH_")

    def __str__(self) -> str:
        return ": ".join(self.args)


TransformError = TransformConnectionLost | TransformTimedOut | TransformVersionDiffers | TransformRefused
"""An error of a transform that was not evaluated. Nothing is known about the records."""


class Tombstones(Enum):
    """The treatment of a record without a value by a filter."""

    PASS = "pass"  # noqa: S105  # the word of the key
    FILTER = "filter"


class Filtered(Enum):
    """The remainder of a record that is filtered: nothing, or a tombstone."""

    DROP = "drop"
    TOMBSTONE = "tombstone"


class AnswerEnd(IntEnum):
    """The reason for the end of an answer. WHOLE is the last record of the request, the others come before it."""

    WHOLE = 0
    BYTES = 1
    TIME = 2
    FAILURES = 3


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """The options of one connection, which hold for each of its answers."""

    seconds: float = 10.0
    """The time after which an answer ends with what it has; a connection without an answer is then given up."""
    batch_bytes: int = 1_000_000
    """The largest batch of an answer, unless a single record is larger."""
    unpacked_bytes: int = 128 * 1024 * 1024
    """The most that the records of one batch may take, uncompressed, before and after."""
    failures: int = 1
    """The number of failed records after which an answer ends."""
    tombstones: Tombstones = Tombstones.PASS
    filtered: Filtered = Filtered.DROP


@dataclass(frozen=True, slots=True)
class TransformAnswer:
    """The records of a request that are left, in one batch.

    Every source offset from the request's start to `covers` is decided: it is in `offsets`, in `failures`, or filtered.
    If `end` is not WHOLE, the slot asks for the rest, from `covers` + 1 on.
    """

    batch: bytes = field(repr=False)
    """One batch of magic 2 without a producer; empty: no record is left."""
    offsets: GappedOffsets
    covers: int
    """The last offset that is decided; -1: there was no batch."""
    end: AnswerEnd
    failures: tuple[RecordFailure, ...]
    records_read: int
    oldest_timestamp: int

    def outgoing(self) -> OutgoingBatch | None:
        """Return the batch as it is appended; None: there is none."""
        if not self.batch:
            return None
        _, _, leader_epoch, _, _, _, _, _, newest, _, _, _, count = HEADER.unpack_from(self.batch)
        return OutgoingBatch(self.batch, count, self.offsets, self.covers, self.oldest_timestamp, newest, leader_epoch)


class Evaluator(Protocol):
    """The other side of a JVM's connection, or of a function's process."""

    async def evaluate(
        self, batches: Sequence[bytes | memoryview], start: int, partition: int, topic: str
    ) -> TransformAnswer:
        """Return what is left of the records from offset `start` on."""


@dataclass(slots=True)
class EvaluationCount:
    """The count of what a transform has evaluated in this slot, also for a resume."""

    records_in: int = 0
    records_out: int = 0
    failed: int = 0

    async def evaluate(
        self, evaluator: Evaluator, batches: Sequence[Batch], start: int, tp: TopicPartition
    ) -> TransformedRecords:
        """Have records evaluated, count them, and return what becomes of them.

        A caller that is cancelled does not end the evaluation, because others use the connection or process as well.

        Raises:
            CorruptRecordError: A batch of an old format cannot be read.
            RetriableError: As `evaluator`.
            NeedsDecision: As `evaluator`.
        """
        present = [made for batch in batches if (made := in_format_2(batch, UNPACKED_AT_MOST)) is not None]
        evaluation = asyncio.ensure_future(evaluator.evaluate([batch.data for batch in present], start, tp[1], tp[0]))
        evaluation.add_done_callback(retrieve_error)
        answer = await asyncio.shield(evaluation)
        outgoing = answer.outgoing()
        self.records_in += answer.records_read
        self.records_out += 0 if outgoing is None else outgoing.count
        self.failed += len(answer.failures)
        return TransformedRecords(outgoing, answer.covers, answer.end is AnswerEnd.WHOLE, answer.failures)
