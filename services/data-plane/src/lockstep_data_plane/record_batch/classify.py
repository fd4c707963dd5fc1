"""The judgement of a batch: it passes as it is, is rebuilt, is skipped, or is refused.

`BatchCase` has the cases in the order in which they are checked. `batches.md` has them with their reasons.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from lockstep_data_plane.record_batch.checksum import crc32c
from lockstep_data_plane.record_batch.codecs import (
    INSTEAD_OF_REFUSED,
    JAVAS_LEVELS,
    NONE,
    UNPACKED_AT_MOST,
    CompressionLevels,
)
from lockstep_data_plane.record_batch.layout import (
    CODEC_MASK,
    CONTROL,
    CRC_FROM,
    LARGEST_OFFSET,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    Batch,
)
from lockstep_rules.record_rules import RecordRules


class BatchAction(Enum):
    """The four outcomes of a batch's judgement."""

    PASS = "pass"  # noqa: S105  # not a password
    REBUILD = "rebuild"
    SKIP = "skip"
    REFUSE = "refuse"


class BatchCase(Enum):
    """The cases of a batch, of which the first that holds counts: its action, and the words for it."""

    UNKNOWN_FORMAT = BatchAction.REFUSE, "its format is not known"
    IMPOSSIBLE_OFFSETS = BatchAction.REFUSE, "its offsets cannot be right"
    OLD_FORMAT = BatchAction.REBUILD, "old message format"
    BEFORE_THE_POSITION = BatchAction.SKIP, "before the position"
    WRONG_CRC = BatchAction.REFUSE, "its CRC does not match its bytes"
    CONTROL_BATCH = BatchAction.SKIP, "control batch"
    EMPTY = BatchAction.SKIP, "empty batch"
    ABORTED = BatchAction.SKIP, "aborted transaction"
    ELSEWHERE = BatchAction.SKIP, "originated elsewhere"
    HAS_RULES = BatchAction.REBUILD, "records are filtered, or their headers changed"
    BEGINS_BEFORE = BatchAction.REBUILD, "begins before the position"
    COMPACTED = BatchAction.REBUILD, "compacted"
    APPEND_TIME = BatchAction.REBUILD, "log append time"
    TOO_LARGE = BatchAction.REBUILD, "larger than the target takes"
    CODEC_REFUSED = BatchAction.REBUILD, "its codec is refused by the target"
    COMPRESSION_ASKED = BatchAction.REBUILD, "compression asked for"
    OTHER_COMPRESSION_ASKED = BatchAction.REBUILD, "other compression asked for"
    ANY_OTHER = BatchAction.PASS, ""


NO_LIMIT = 2**31 - 1

UNPACKED_TIMES, UNPACKED_AT_LEAST = 64, 16 * 1024 * 1024
"""Limits of a rebuilt batch's uncompressed records: a multiple of the target's `max.message.bytes`, or bytes.

The larger one counts. Above it a batch of a few kilobytes could take all memory of a slot.
"""

ANY_OTHER, PASSED = BatchCase.ANY_OTHER, BatchCase.ANY_OTHER.value
"""The case of nearly every batch, and its value: to read an enum's `value` costs more than the judgement."""


@dataclass(frozen=True, slots=True)
class TargetLimits:
    """The limits of the target topic, and the compression that its batches get.

    Attributes:
        max_bytes: The largest batch, as the topic's configuration announces it.
        codec: The codec (bits of the attributes) that uncompressed batches get, by an explicit producer
            `compression.type`. NONE: they stay as they are.
        recompress: Whether all batches get `codec`.
        levels: The compression levels of batches that are rebuilt.
        tombstones_kept_ms: The milliseconds that a compacted topic keeps tombstones at least (`delete.retention.ms`).
        split_above: A guessed limit, after the target refused a batch of several records. It only splits batches: a
            single record may be larger, and is sent alone.
        refused_codecs: Codecs for which the target has refused batches. They are replaced.
        rules: The rules by which records are filtered, and headers changed. None: records stay as they are.
    """

    max_bytes: int = 1048588
    codec: int = NONE
    recompress: bool = False
    levels: CompressionLevels = JAVAS_LEVELS
    tombstones_kept_ms: int = 0
    split_above: int = NO_LIMIT
    refused_codecs: frozenset[int] = frozenset()
    rules: RecordRules | None = None

    @property
    def largest_split(self) -> int:
        """Return the largest size of a batch of several records."""
        return min(self.max_bytes, self.split_above)

    @property
    def unpacked_at_most(self) -> int:
        """Return how many bytes the uncompressed records of a batch that is rebuilt may take."""
        return min(max(UNPACKED_TIMES * self.max_bytes, UNPACKED_AT_LEAST), UNPACKED_AT_MOST)

    def adds_too_much(self, records: int) -> bool:
        """Return whether the headers that the rules add to so many records take more memory than records may."""
        return self.rules is not None and records * self.rules.added_bytes > self.unpacked_at_most

    def choose_codec(self, had: int) -> int:
        """Return the codec of a batch that is rebuilt from one that had `had`."""
        codec = self.codec if self.recompress else had or self.codec
        return self.replace_refused(codec) if codec in self.refused_codecs else codec

    def replace_refused(self, codec: int) -> int:
        """Return the codec in place of a refused one: the producer's, if it is set and not refused."""
        configured: tuple[int, ...] = () if self.codec == NONE else (self.codec,)
        usable = (
            candidate
            for candidate in (*configured, *INSTEAD_OF_REFUSED)
            if candidate != codec and candidate not in self.refused_codecs
        )
        return next(usable)


class AbortedTransactions:
    """The aborted transactions that one fetch response names, followed batch by batch in offset order (KIP-98).

    Args:
        named: The producer id and the first offset of each; empty under `read_uncommitted`.
    """

    def __init__(self, named: Iterable[tuple[int, int]] = ()) -> None:
        self._coming = sorted(named, key=lambda entry: entry[1], reverse=True)
        self._open: set[int] = set()
        self.any = bool(self._coming)
        """True if the response names any."""

    def holds(self, batch: Batch) -> bool:
        """Return whether the batch belongs to an aborted transaction. Call it once for each batch, in order."""
        while self._coming and self._coming[-1][1] <= batch.last_offset:
            self._open.add(self._coming.pop()[0])
        if batch.attributes & CONTROL:
            self._open.discard(batch.producer_id)
            return False
        return bool(batch.attributes & TRANSACTIONAL) and batch.producer_id in self._open


def classify(
    batch: Batch, position: int, limits: TargetLimits, *, aborted: bool, elsewhere: bool = False
) -> tuple[BatchAction, str]:
    """Return the batch's action and, unless it passes, the reason.

    The result depends on the arguments only. So a batch that is judged again after a restart meets the same action,
    which exact resume counts on.

    Args:
        batch: A batch, or a group of small ones.
        position: The next upstream offset to copy.
        limits: The limits of the target topic.
        aborted: Whether the batch belongs to an aborted transaction.
        elsewhere: Whether the flow does not copy records of the batch's origin (`provenance.py`).
    """
    base_offset, magic = batch.base_offset, batch.magic
    last_offset = base_offset + batch.last_offset_delta
    if magic > 2:  # no CRC covers it
        return BatchCase.UNKNOWN_FORMAT.value
    if not 0 <= base_offset <= last_offset <= LARGEST_OFFSET:
        return BatchCase.IMPOSSIBLE_OFFSETS.value
    if magic < 2:
        return BatchCase.OLD_FORMAT.value
    if last_offset < position:
        return BatchCase.BEFORE_THE_POSITION.value
    if batch.batches == 1 and crc32c(batch.data[CRC_FROM:]) != batch.crc:  # a group's are right
        return BatchCase.WRONG_CRC.value
    if batch.attributes & CONTROL:
        return BatchCase.CONTROL_BATCH.value
    if batch.record_count == 0:
        return BatchCase.EMPTY.value
    if aborted:
        return BatchCase.ABORTED.value
    if elsewhere:
        return BatchCase.ELSEWHERE.value
    case = _rebuild_or_pass(batch, position, limits)
    return PASSED if case is ANY_OTHER else case.value


def _rebuild_or_pass(batch: Batch, position: int, limits: TargetLimits) -> BatchCase:
    if limits.rules is not None:
        return BatchCase.HAS_RULES
    if batch.base_offset < position:
        return BatchCase.BEGINS_BEFORE
    if batch.last_offset_delta + 1 != batch.record_count:
        return BatchCase.COMPACTED
    if batch.attributes & LOG_APPEND_TIME:
        return BatchCase.APPEND_TIME
    size = len(batch.data)
    if size > limits.max_bytes or (size > limits.split_above and batch.record_count > 1):
        return BatchCase.TOO_LARGE
    had = batch.attributes & CODEC_MASK
    if had in limits.refused_codecs:
        return BatchCase.CODEC_REFUSED
    if limits.codec != NONE and had == NONE:
        return BatchCase.COMPRESSION_ASKED
    if limits.recompress and had != limits.codec:
        return BatchCase.OTHER_COMPRESSION_ASKED
    return ANY_OTHER
