"""What becomes of a batch: it passes as it is, is rebuilt, is passed over, or is refused (the table of design §5)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from lockstep_data_plane.batches.layout import CODEC_MASK, CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, Batch
from lockstep_data_plane.batches.stamp import crc_of

__all__ = ["AbortedTransactions", "Limits", "Verdict", "judge"]


class Verdict(Enum):
    """The four fates of a batch."""

    PASS = "pass"  # noqa: S105  # not a password
    REBUILD = "rebuild"
    SKIP = "skip"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Limits:
    """What the target takes: `max_bytes` for a batch, and the codec (bits of the attributes) that an explicit producer
    `compression.type` gives to uncompressed batches; 0 leaves them as they are."""

    max_bytes: int = 1048588
    codec: int = 0


class AbortedTransactions:
    """The aborted transactions that one fetch answer names, followed batch by batch in offset order (KIP-98)."""

    def __init__(self, named: Iterable[tuple[int, int]] = ()) -> None:
        """`named`: (producer id, first offset) of each aborted transaction; empty under `read_uncommitted`."""
        self._coming = sorted(named, key=lambda entry: entry[1], reverse=True)
        self._open: set[int] = set()

    def holds(self, batch: Batch) -> bool:
        """Whether the batch belongs to an aborted transaction. To be asked once for each batch, in order."""
        while self._coming and self._coming[-1][1] <= batch.last_offset:
            self._open.add(self._coming.pop()[0])
        if batch.attributes & CONTROL:
            self._open.discard(batch.producer_id)
            return False
        return bool(batch.attributes & TRANSACTIONAL) and batch.producer_id in self._open


def judge(batch: Batch, position: int, limits: Limits, *, aborted: bool) -> tuple[Verdict, str]:
    """The batch's fate and, unless it passes, the reason. `position` is the next upstream offset wanted.

    Depends on its arguments only, so a batch judged again after a restart meets the same fate: exact resume counts on
    it."""
    if batch.magic < 2:
        return Verdict.REBUILD, "old message format"
    if batch.last_offset < position:
        return Verdict.SKIP, "before the position"
    if crc_of(batch.data) != batch.crc:
        return Verdict.REFUSE, "its CRC does not match its bytes"
    if batch.attributes & CONTROL:
        return Verdict.SKIP, "control batch"
    if batch.record_count == 0:
        return Verdict.SKIP, "empty batch"
    if aborted:
        return Verdict.SKIP, "aborted transaction"
    return _rebuild_or_pass(batch, position, limits)


def _rebuild_or_pass(batch: Batch, position: int, limits: Limits) -> tuple[Verdict, str]:
    if batch.base_offset < position:
        return Verdict.REBUILD, "begins before the position"
    if batch.last_offset_delta + 1 != batch.record_count:
        return Verdict.REBUILD, "compacted"
    if batch.attributes & LOG_APPEND_TIME:
        return Verdict.REBUILD, "log append time"
    if len(batch.data) > limits.max_bytes:
        return Verdict.REBUILD, "larger than the target takes"
    if limits.codec and not batch.attributes & CODEC_MASK:
        return Verdict.REBUILD, "compression asked for"
    return Verdict.PASS, ""
