"""The compiled code of this package, as `compiled_records.c` has it. It exists only if a C compiler built it."""

from collections.abc import Sequence

from lockstep_data_plane.record_batch.compiled_rebuild import Copied, Skips

def stamp(
    batch: bytes | memoryview,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    transactional: bool,
    /,
) -> bytes: ...
def gather(
    records: bytes | memoryview, at: int, largest: int, most: int, any_producer: bool, /
) -> tuple[int, ...] | None: ...
def join_frames(groups: Sequence[bytes | memoryview], /) -> bytes | None: ...
def join(groups: Sequence[bytes | memoryview], records: bytes | memoryview | None, /) -> Copied | None: ...
def renumber(
    records: bytes | memoryview,
    count: int,
    base_offset: int,
    base_timestamp: int,
    append_time: int | None,
    position: int,
    skips: Skips,
    rules: bytes,
    /,
) -> Copied | None: ...
def translate(
    messages: bytes | memoryview,
    magic: int,
    last_offset: int,
    append_time: int | None,
    position: int,
    skips: Skips,
    rules: bytes,
    /,
) -> Copied | None: ...
