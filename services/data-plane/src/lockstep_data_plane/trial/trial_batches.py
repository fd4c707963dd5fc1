"""Record batches of a trial: what a slot would fetch, made of records (no I/O)."""

from collections.abc import Iterable, Iterator, Sequence

from lockstep_data_plane.record_batch import rebuild
from lockstep_data_plane.record_batch.classify import NO_LIMIT
from lockstep_data_plane.record_batch.codecs import NONE
from lockstep_data_plane.record_batch.layout import (
    ATTRIBUTES_AT,
    CRC,
    CRC_AT,
    LOG_APPEND_TIME,
    PREFIX,
    expected_crc,
    scan,
)
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.transform.evaluator import TransformAnswer
from lockstep_state.codecs.transform_trial import TrialOutcome, TrialPartition, TrialRecord

BATCH_BYTES = 64 * 1024
"""The size of keys and values from which on a batch takes no further record."""
REQUEST_BYTES = 1_000_000
"""The size of batches from which on a request takes no further one."""


def batches_of(records: Iterable[TrialRecord]) -> Iterator[bytes]:
    """Yield the records as batches. Their offsets ascend, and a batch has no gap between them."""
    waiting: list[TrialRecord] = []
    size = 0
    for record in records:
        if waiting and (size >= BATCH_BYTES or not _joins(waiting[-1], record)):
            yield _batch(waiting)
            waiting, size = [], 0
        waiting.append(record)
        size += len(record.key or b"") + len(record.value or b"")
    if waiting:
        yield _batch(waiting)


def requests_of(batches: Iterable[bytes]) -> Iterator[tuple[bytes, ...]]:
    """Yield the batches in the groups in which they are evaluated."""
    waiting: list[bytes] = []
    for batch in batches:
        if waiting and sum(map(len, waiting)) + len(batch) > REQUEST_BYTES:
            yield tuple(waiting)
            waiting = []
        waiting.append(batch)
    if waiting:
        yield tuple(waiting)


def first_offset(batch: bytes) -> int:
    """Return the offset of a batch's first record."""
    return int(PREFIX.unpack_from(batch)[0])


def outcomes_of(partition: TrialPartition, answers: Sequence[TransformAnswer]) -> Iterator[TrialOutcome]:
    """Yield what became of each record, in the order of their offsets. The answers have decided all of them."""
    kept = {offset: record for answer in answers for offset, record in _records(answer)}
    failures = {failure.offset: failure for answer in answers for failure in answer.failures}
    for record in partition.records:
        place = (partition.topic, partition.partition, record.offset)
        if (failure := failures.get(record.offset)) is not None:
            yield TrialOutcome(*place, "failed", None, failure.condition, failure.fragment)
        elif (after := kept.get(record.offset)) is not None:
            yield TrialOutcome(*place, "kept", after)
        else:
            yield TrialOutcome(*place, "dropped")


def _joins(earlier: TrialRecord, later: TrialRecord) -> bool:
    follows = later.offset == earlier.offset + 1 and later.log_append == earlier.log_append
    return follows and not (later.log_append and later.timestamp != earlier.timestamp)


def _batch(records: Sequence[TrialRecord]) -> bytes:
    plain = [PlainRecord(each.offset, each.timestamp, each.key, each.value, each.headers) for each in records]
    (outgoing,) = rebuild.build(plain, NONE, NO_LIMIT, 0)
    data = bytearray(outgoing.data)
    _, length = PREFIX.unpack_from(data)
    PREFIX.pack_into(data, 0, records[0].offset, length)
    if records[0].log_append:
        data[ATTRIBUTES_AT] |= LOG_APPEND_TIME
        CRC.pack_into(data, CRC_AT, expected_crc(data))
    return bytes(data)


def _records(answer: TransformAnswer) -> Iterator[tuple[int, TrialRecord]]:
    decoded = (record for batch in scan(answer.batch) for record in rebuild.read_records(batch))
    for offset, record in zip(answer.offsets, decoded, strict=True):
        yield offset, TrialRecord(offset, record.timestamp, record.key, record.value, tuple(record.headers))
