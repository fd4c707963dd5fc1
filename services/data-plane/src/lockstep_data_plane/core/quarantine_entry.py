"""The quarantine's view of a batch that the target does not take, or that cannot be read (no I/O)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lockstep_data_plane.record_batch.codecs import UNPACKED_AT_MOST
from lockstep_data_plane.record_batch.layout import LARGEST_OFFSET, Batch, OutgoingBatch, expected_crc, scan
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import read_records, with_rules
from lockstep_rules.record_rules import RecordRules
from lockstep_state.errors import NeedsDecision
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class QuarantineEntry:
    """One record of the quarantine topic.

    `first` and `last` are upstream offsets. They differ where the entry keeps the bytes of a whole batch that cannot be
    read.
    """

    first: int
    last: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int
    batch: bool = False

    def record(
        self, topic: str, partition: int, reason: str
    ) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]:
        """Return key, value and headers as they are appended: our headers first, then the record's own."""
        lockstep_headers = {
            "lockstep.topic": topic,
            "lockstep.partition": str(partition),
            "lockstep.offset": str(self.first),
            "lockstep.last.offset": str(self.last),
            "lockstep.timestamp": str(self.timestamp),
            "lockstep.content": "batch" if self.batch else "record",
            "lockstep.reason": reason,
        }
        own = [(name, b"" if value is None else value) for name, value in self.headers]
        return self.key, self.value, [(name, text.encode()) for name, text in lockstep_headers.items()] + own


@dataclass(frozen=True, slots=True)
class RefusedRecords:
    """Upstream offsets that cannot be copied, with the reason and the entries that are kept of them."""

    reason: str
    entries: tuple[QuarantineEntry, ...]
    is_decided: bool = False
    """They go to quarantine whatever `lockstep.on.refused` says, because another key of the file says so."""

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """Return the upstream offsets (first, last) that are to be passed over, in order."""
        return tuple(sorted((entry.first, entry.last) for entry in self.entries))


def refuse_records(reason: str, refusal: RefusedRecords | None) -> Reason:
    """Return the reason of a partition that halts at refused records, with their offsets where these are known."""
    offsets = {"first": refusal.ranges[0][0], "last": refusal.ranges[-1][1]} if refusal is not None else {}
    return ReasonCode.RECORDS_REFUSED.to_reason(text=reason, case="refused", **offsets)


class BatchRejected(NeedsDecision):
    """A batch must not be copied as it is, and cannot be rebuilt.

    The message names its offsets and the reason. `refusal` has what could be quarantined of it.
    """

    def __init__(self, sentence: str, refusal: RefusedRecords | None = None) -> None:
        super().__init__(sentence)
        self.refusal = refusal


def refused_record(record: PlainRecord, reason: str) -> RefusedRecords:
    """Return the refusal of one record."""
    entry = QuarantineEntry(record.offset, record.offset, record.key, record.value, record.headers, record.timestamp)
    return RefusedRecords(reason, (entry,))


def refused_batch(batch: Batch, reason: str, source_end: int) -> RefusedRecords | None:
    """Return the refusal of a batch that cannot be read, which keeps its bytes.

    In the old formats only the records say which offsets a batch has. If the CRC is wrong, so may be the last offset in
    the header. Then the next batch says where this one ends, or the end of the log if the header agrees.

    Args:
        batch: The batch as it was fetched.
        reason: The reason, for people.
        source_end: The next offset of the source's log.

    Returns:
        None if nothing shows which offsets the batch has.
    """
    if batch.magic < 2 or batch.base_offset < 0:
        return None
    last_offset = batch.last_offset
    if expected_crc(batch.data) != batch.crc:
        if batch.magic > 2:  # the header may have other fields than ours
            return None
        is_last = batch.following_offset < 0 and last_offset + 1 == source_end
        end = source_end if is_last else batch.following_offset
        if not batch.base_offset < end <= source_end:
            return None
        last_offset = end - 1
    if not batch.base_offset <= last_offset <= LARGEST_OFFSET:
        return None
    entry = QuarantineEntry(
        batch.base_offset, last_offset, None, bytes(batch.data), (), batch.max_timestamp, batch=True
    )
    return RefusedRecords(reason, (entry,))


def with_offsets(batch: Batch, reason: str, refusal: RefusedRecords | None) -> str:
    """Return the reason with the offsets of the batch, as far as they are certain."""
    if refusal is None:
        return f"offsets from {batch.base_offset}: {reason}"
    ((first, last),) = refusal.ranges
    return f"offsets {first} to {last}: {reason}"


def refused_outgoing(outgoing: OutgoingBatch, indexes: Iterable[int], reason: str) -> RefusedRecords | None:
    """Return the records of an outgoing batch that the target names by index; None: it names none of them."""
    try:
        (batch,) = scan(outgoing.data)
        records = list(read_records(batch))
    except ValueError:
        return None
    entries = [
        QuarantineEntry(outgoing.offsets[i], outgoing.offsets[i], r.key, r.value, r.headers, r.timestamp)
        for i, r in ((i, records[i]) for i in sorted(set(indexes)) if 0 <= i < len(records))
    ]
    return RefusedRecords(reason, tuple(entries)) if entries else None


def read_unread_records(
    batch: Batch,
    position: int,
    ranges: Sequence[tuple[int, int]],
    at_most: int = UNPACKED_AT_MOST,
    rules: RecordRules | None = None,
) -> list[PlainRecord]:
    """Return the records of a batch from upstream offset `position` on that are not passed over.

    `ranges` are the (first, last) offsets that are passed over. Records that `rules` drop are left out, and the others
    have the headers that they get. Raises as `read_records`.
    """
    records = read_records(batch, at_most) if rules is None else with_rules(read_records(batch, at_most), rules)
    return [r for r in records if r.offset >= position and not skipped(r.offset, ranges)]


def wholly_skipped(batch: Batch, position: int, ranges: Iterable[tuple[int, int]]) -> bool:
    """Return whether all of a batch from upstream offset `position` on is passed over.

    In the old formats a compressed batch has the offset of its last record, and only its records say where it begins.
    So such a batch never counts as passed over.
    """
    begin = max(batch.base_offset, position)
    return batch.magic >= 2 and any(first <= begin and batch.last_offset <= last for first, last in ranges)


def skipped(offset: int, ranges: Iterable[tuple[int, int]]) -> bool:
    """Return whether an upstream offset is in one of the (first, last) ranges that are passed over."""
    return any(first <= offset <= last for first, last in ranges)
