"""See `compiled_records.c`. There only where a C compiler was when Lockstep was built."""

from collections.abc import Sequence

from lockstep_data_plane.record_batch.copied_records import Copied, Part, Skips

def stamp(
    batch: bytes | memoryview,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    transactional: bool,
    /,
) -> bytes: ...
def renumber(batches: Sequence[Part], position: int, skips: Skips, /) -> Copied | None: ...
def translate(
    messages: bytes | memoryview,
    magic: int,
    last_offset: int,
    append_time: int | None,
    position: int,
    skips: Skips,
    /,
) -> Copied | None: ...
