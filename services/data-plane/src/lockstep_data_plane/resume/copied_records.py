"""The source's records as they are copied, read once more to find where a copy is."""

from collections.abc import AsyncIterator, Sequence

from lockstep_data_plane.core.evaluation import TransformUnavailable, unavailable
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.provenance import batches_with_records
from lockstep_data_plane.core.quarantine_entry import read_unread_records, wholly_skipped
from lockstep_data_plane.core.record_transform import TopicTransform, transformed_records
from lockstep_data_plane.log_reader import log_between
from lockstep_data_plane.record_batch.classify import NO_LIMIT, BatchAction, TargetLimits, classify
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import next_offset
from lockstep_data_plane.transform.evaluation_answer import TransformRefused
from lockstep_kafka.wire.cluster import ClusterClient
from lockstep_state.errors import NeedsDecision
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import PartitionProgress

NO_LIMITS = TargetLimits(max_bytes=NO_LIMIT)


async def copied_records(
    source: ClusterClient, partition: PartitionState, row: PartitionProgress, position: int, end: int, isolation: str
) -> AsyncIterator[tuple[list[PlainRecord], int]]:
    """Read the records from `position` on that are to be copied: those of each batch, and the offset behind it.

    Records in quarantine were not appended, so they are left out. If the row names a transform, the records are those
    that the partition's transform leaves. They end before the first one that it cannot evaluate: nothing behind that
    was appended.

    Args:
        source: The source cluster.
        partition: The partition that is read.
        row: The progress whose skipped offsets are left out.
        position: The first upstream offset.
        end: The upstream offset behind the last one.
        isolation: The isolation level of the fetches.

    Raises:
        RetriableError: The source does not answer or refuses a request, or the transform is not evaluated now.
        TransformUnavailable: Nothing evaluates the transform.
        TransformRefused: The records of a batch cannot be read.
        ValueError: Likewise.
    """
    transform = partition.transform if row.transform else None
    async for batches, aborted in log_between(source, partition.tp, position, end, isolation):
        await partition.provenance.look_up(batches_with_records(batches))
        for batch in batches:
            elsewhere = partition.provenance.copy_producer_id(batch) is None
            action, _ = classify(batch, position, NO_LIMITS, aborted=aborted.holds(batch), elsewhere=elsewhere)
            if action in (BatchAction.SKIP, BatchAction.REFUSE) or wholly_skipped(batch, position, row.skips):
                yield [], max(batch.base_offset, batch.last_offset + 1)
            elif transform is None:
                yield read_unread_records(batch, position, row.skips), next_offset(batch)
            else:
                records, failed = await evaluated_records(transform, batch, position, partition.tp, row.skips)
                yield records, next_offset(batch) if failed is None else failed
                if failed is not None:
                    return


async def evaluated_records(
    transform: TopicTransform, batch: Batch, start: int, tp: TopicPartition, skips: Sequence[tuple[int, int]] = ()
) -> tuple[list[PlainRecord], int | None]:
    """Return what `transformed_records` returns. Nothing is concluded about a copy from a transform that has failed.

    Raises:
        RetriableError: It was not evaluated, and may be evaluated later.
        TransformUnavailable: Nothing evaluates the transform.
        TransformRefused: The records of the batch cannot be read.
        ValueError: As `transformed_records`.
    """
    try:
        return await transformed_records(transform, batch, start, tp, skips)
    except TransformUnavailable:
        raise
    except NeedsDecision as exc:
        if isinstance(exc, TransformRefused) and exc.is_about_batch:
            raise
        raise unavailable(f"of {tp[0]}", str(exc)) from exc
