"""An outgoing batch: a batch ready to be stamped and appended, and which upstream offsets it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lockstep_data_plane.record_batch.layout import Batch


@dataclass(slots=True)
class OutgoingBatch:
    """`data` is one magic-2 batch whose offsets run without gaps from its base. Record i came from upstream offset
    `offsets[i]`. When the outgoing batch is durable, everything up to `covers` is decided."""

    data: bytes | memoryview
    count: int
    offsets: Sequence[int]
    covers: int
    base_timestamp: int
    max_timestamp: int
    leader_epoch: int
    producer_id: int = -1
    """Our producer id for it; set when it is queued."""
    to: int = -1
    """The target's partition, where records are spread over several; -1: the one of the same number."""

    @property
    def size(self) -> int:
        return len(self.data)


def as_outgoing(batch: Batch) -> OutgoingBatch:
    """A batch that passes unchanged."""
    return OutgoingBatch(
        batch.data,
        batch.record_count,
        range(batch.base_offset, batch.base_offset + batch.record_count),
        batch.last_offset,
        batch.base_timestamp,
        batch.max_timestamp,
        batch.leader_epoch,
    )
