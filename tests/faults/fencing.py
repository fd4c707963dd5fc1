"""What the markers of `lockstep.fence=marker` look like in a target's log, and that they kept out whom they should."""

from __future__ import annotations

from collections.abc import Iterable

from lockstep_data_plane.record_batch.layout import CONTROL, Batch
from tests.support.batches import read_batches

__all__ = ["REFUSED", "take_overs"]

REFUSED = "a later epoch of ours has written (INVALID_PRODUCER_EPOCH)"
"""What a slot says whose append a marker has refused."""


def take_overs(bootstrap: str, topic: str, partitions: int) -> int:
    """How many markers stand in the topic's partitions. Raises AssertionError where records lie behind a marker that
    ended their epoch, or where those of two epochs follow each other with no marker between."""
    return sum(_markers(read_batches(bootstrap, topic, number)) for number in range(partitions))


def _markers(log: Iterable[Batch]) -> int:
    markers, ended, appending = 0, -1, -1
    for batch in log:
        if batch.attributes & CONTROL:
            markers, ended, appending = markers + 1, max(ended, batch.producer_epoch), -1
            continue
        at = f"epoch {batch.producer_epoch} at offset {batch.base_offset}"
        assert batch.producer_epoch > ended, f"{at}, behind a marker of epoch {ended}"
        assert appending in (-1, batch.producer_epoch), f"{at}, and no marker behind epoch {appending}"
        appending = batch.producer_epoch
    return markers
