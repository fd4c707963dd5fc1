"""Record batches of a trial: what a slot would fetch, made of records (no I/O)."""

from collections.abc import Iterable, Iterator, Sequence

from lockstep_data_plane.core.evaluation import REQUEST_BYTES
from lockstep_data_plane.record_batch.gapped_batch import gapped_batch, read_outgoing
from lockstep_data_plane.record_batch.layout import (
    ATTRIBUTES_AT,
    CRC,
    CRC_AT,
    LOG_APPEND_TIME,
    Batch,
    expected_crc,
    scan,
)
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.transform.evaluation_answer import TransformAnswer
from lockstep_state.codecs.transform_trial import TrialOutcome, TrialPartition, TrialRecord

BATCH_BYTES = 64 * 1024
"""The size of keys and values from which on a batch takes no further record."""


def batches_of(records: Iterable[TrialRecord]) -> Iterator[Batch]:
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


def requests_of(batches: Iterable[Batch]) -> Iterator[tuple[Batch, ...]]:
    """Yield the batches in the groups in which they are evaluated."""
    waiting: list[Batch] = []
    for batch in batches:
        if waiting and sum(len(unsent.data) for unsent in waiting) + len(batch.data) > REQUEST_BYTES:
            yield tuple(waiting)
            waiting = []
        waiting.append(batch)
    if waiting:
        yield tuple(waiting)


def outcomes_of(partition: TrialPartition, answers: Sequence[TransformAnswer]) -> Iterator[TrialOutcome]:
    """Yield what became of each record, in the order of their offsets. The answers have decided all of them."""
    kept = {offset: record for answer in answers for offset, record in _records(answer)}
    failures = {failure.offset: failure for answer in answers for failure in answer.failures}
    for record in partition.records:
        identity = (partition.topic, partition.partition, record.offset)
        if (failure := failures.get(record.offset)) is not None:
            yield TrialOutcome(*identity, "failed", None, failure.condition, failure.fragment)
        elif (after := kept.get(record.offset)) is not None:
            yield TrialOutcome(*identity, "kept", after)
        else:
            yield TrialOutcome(*identity, "dropped")


def _joins(earlier: TrialRecord, later: TrialRecord) -> bool:
    follows = later.offset == earlier.offset + 1 and later.log_append == earlier.log_append
    return follows and not (later.log_append and later.timestamp != earlier.timestamp)


def _batch(records: Sequence[TrialRecord]) -> Batch:
    plain = [PlainRecord(r.offset, r.timestamp, r.key, r.value, r.headers) for r in records]
    batch = gapped_batch(plain, records[-1].offset, leader_epoch=0)
    if not records[0].log_append:
        return batch
    data = bytearray(batch.data)
    data[ATTRIBUTES_AT] |= LOG_APPEND_TIME
    CRC.pack_into(data, CRC_AT, expected_crc(data))
    (batch,) = scan(bytes(data))
    return batch


def _records(answer: TransformAnswer) -> Iterator[tuple[int, TrialRecord]]:
    outgoing = answer.outgoing()
    for record in () if outgoing is None else read_outgoing(outgoing):
        yield record.offset, TrialRecord(*record[:4], tuple(record.headers))
