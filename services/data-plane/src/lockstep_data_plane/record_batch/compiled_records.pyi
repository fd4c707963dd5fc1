"""The compiled code of this package, as `compiled_records.c` has it. It exists only if a C compiler built it."""

from collections.abc import Sequence
from typing import Any

from lockstep_data_plane.record_batch.compiled_rebuild import Copied, Skips
from lockstep_data_plane.record_batch.record_columns import Buffer, BytesColumn, HeadersColumn

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
def read_columns(
    batches: Sequence[tuple[bytes | memoryview, int, int, int, int, int | None]], start: int, /
) -> tuple[Any, ...] | None: ...
def write_rows(
    rows: Buffer,
    timestamps: Buffer,
    key: BytesColumn,
    is_own_key: bool,
    value: BytesColumn,
    is_own_value: bool,
    blocks: BytesColumn,
    headers: HeadersColumn | None,
    own_headers: Buffer | None,
    /,
) -> tuple[bytes, int, int, int]: ...
def match_rows(offsets: Buffer, wanted: Buffer, /) -> bytes | None: ...
