"""The appends in the target's log of a partition that has no row (no I/O).

Somebody has copied there before. It was this flow, if the state topic was lost since (decision 0083).
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace

from lockstep_data_plane.record_batch.layout import CONTROL, TRANSACTIONAL, Batch, add_sequence
from lockstep_state.rows.state_rows import PartitionProgress


@dataclass(frozen=True, slots=True)
class UnaccountedAppend:
    """The last append that no row accounts for.

    `offset` is that of its last record in the target's log; -1: only the leader remembers it.
    """

    producer_id: int
    offset: int = -1

    def sentence(self, source_name: str, target_name: str) -> str:
        """Say what is not known, and how to go on. The names are those of the partition on both sides."""
        location = "only its leader remembers it" if self.offset < 0 else f"up to offset {self.offset}"
        return (
            f"nothing says where the copy of {source_name} ends, and the target's log of {target_name} holds what "
            f"producer {self.producer_id} appended ({location}). Either our control topics were lost, or another "
            "program copies there. To go on, stop the flow and alter the partition's offset"
        )


def last_unaccounted(
    batches: Iterable[Batch],
    remembered: Mapping[int, tuple[int, int]],
    ours: Set[int] | None,
    *,
    transactional: bool,
) -> UnaccountedAppend | None:
    """Return the last append that we may have made; None: there is none.

    Args:
        batches: The batches of the target's log, in order.
        remembered: The (epoch, last sequence) that the leader remembers, by producer id.
        ours: Our producer ids, where others append to the topic as well. None: the topic is a copy, so every producer
            with an id may be one of ours whose row was lost. MirrorMaker 2 appends without an id.
        transactional: Records in transactions count too, because no committed progress accounts for them.
    """
    newest: UnaccountedAppend | None = None
    for batch in batches:
        skipped = CONTROL if transactional else CONTROL | TRANSACTIONAL
        if batch.producer_id < 0 or batch.attributes & skipped:
            continue
        if ours is None or batch.producer_id in ours:
            newest = UnaccountedAppend(batch.producer_id, batch.last_offset)
    if newest is None and ours is not None:
        return next((UnaccountedAppend(producer_id) for producer_id in sorted(remembered.keys() & ours)), None)
    return newest


def row_at(row: PartitionProgress, batch: Batch, upstream: int, downstream: int) -> PartitionProgress:
    """Return the row of a copy that has appended `upstream` at `downstream`, in this batch, and nothing behind it."""
    return replace(
        row,
        upstream=upstream,
        upstream_epoch=-1,
        downstream=downstream,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        sequence=add_sequence(batch.base_sequence, downstream - batch.base_offset),
    )
