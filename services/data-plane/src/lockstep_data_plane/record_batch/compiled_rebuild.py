"""The rebuild of a batch by compiled code, which copies and numbers records without an object for each.

That code is optional (`docs/decisions/0066-records-are-copied-by-compiled-code.md`). Without it, and for records that
it does not copy, `rebuild.py` decodes each record and makes the same bytes.
"""

from collections.abc import Sequence
from types import ModuleType

from lockstep_data_plane.record_batch import message_set
from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_data_plane.record_batch.codecs import LZ4, NONE, CompressionLevels, compress, decompress
from lockstep_data_plane.record_batch.compiled_module import find_compiled
from lockstep_data_plane.record_batch.layout import (
    CODEC_MASK,
    COVERED,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    OLD_LEAST_SIZE,
    PREFIX,
    Batch,
    CorruptRecordError,
    GappedOffsets,
    OutgoingBatch,
    Stretch,
    header_with_crc,
    scan,
)

Skips = Sequence[tuple[int, int]]
Copied = tuple[bytes, tuple[Stretch, ...], int, int, int]
"""The result of compiled code: records, stretches of offsets, and the largest, the smallest and the first timestamp."""


def copy_records(batch: Batch, position: int, limits: TargetLimits, skips: Skips = ()) -> list[OutgoingBatch] | None:
    """Rebuild the batch as `rebuild` does, into one outgoing batch; None: its records have to be decoded.

    That is so if they are too large for one batch, are encoded in an unusual way, or are damaged.
    """
    compiled = find_compiled()
    if compiled is None:
        return None
    had, program = batch.attributes & CODEC_MASK, b"" if limits.rules is None else limits.rules.program
    try:
        copied: Copied | None
        if batch.magic < 2:
            messages = message_set.unpack_set(batch, limits.unpacked_at_most)
            append_time, last_offset = messages.append_time, messages.last_offset
            if limits.adds_too_much(len(messages.messages) // OLD_LEAST_SIZE):
                return None
            copied = compiled.translate(
                messages.messages, batch.magic, last_offset, append_time, position, skips, program
            )
        else:
            if limits.adds_too_much(batch.record_count):
                return None
            unpacked = decompress(batch.data[HEADER_SIZE:], had, limits.unpacked_at_most)
            append_time = batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else None
            copied = compiled.renumber(
                unpacked,
                batch.record_count,
                batch.base_offset,
                batch.last_offset_delta,
                batch.base_timestamp,
                append_time,
                position,
                skips,
                program,
            )
    except CorruptRecordError:
        return None  # decoding them says what is wrong
    if copied is None:
        return None
    records, stretches, newest, oldest, base = copied
    if not stretches:
        return []
    offsets, codec = GappedOffsets(stretches), limits.choose_codec(had)
    made = as_batch(records, len(offsets), base, newest, codec, limits.levels)
    if len(made) > limits.largest_split:
        return None
    covers = max(batch.last_offset, offsets[-1])
    return [OutgoingBatch(made, len(offsets), offsets, covers, oldest, newest, batch.leader_epoch)]


def join_batches(
    group: Sequence[OutgoingBatch], codec: int, levels: CompressionLevels, at_most: int
) -> OutgoingBatch | None:
    """Return the records of several outgoing batches as one; None: they have to be decoded.

    That is so as for `copy_records`, and if they take more than `at_most` bytes uncompressed.
    """
    compiled = find_compiled()
    if compiled is None:
        return None
    groups = [outgoing.data for outgoing in group]
    try:
        payload = None if codec == NONE else _joined_payload(compiled, groups, codec, at_most)
    except CorruptRecordError:
        return None  # decoding them says what is wrong
    copied: Copied | None = compiled.join(groups, payload)
    if copied is None:
        return None
    records, ((_, _, count),), newest, oldest, base = copied
    offsets = GappedOffsets.join(outgoing.offsets for outgoing in group)
    if len(offsets) != count:
        return None
    made, last = as_batch(records, count, base, newest, codec, levels), group[-1]
    return OutgoingBatch(
        made, count, offsets, last.covers, oldest, newest, last.leader_epoch, target_partition=last.target_partition
    )


def _joined_payload(
    compiled: ModuleType, groups: Sequence[bytes | memoryview], codec: int, at_most: int
) -> bytes | memoryview:
    """Return the uncompressed records of all batches, one behind the other.

    A frame costs far more to begin than to read, so LZ4 frames become one first.
    """
    if codec == LZ4 and (frame := compiled.join_frames(groups)) is not None:
        return decompress(frame, codec, at_most)
    parts, remaining = [], at_most
    for body in (batch.data[HEADER_SIZE:] for group in groups for batch in scan(group)):
        parts.append(decompress(body, codec, remaining))
        remaining -= len(parts[-1])
    return b"".join(parts)


def as_batch(records: bytes, count: int, base: int, newest: int, codec: int, levels: CompressionLevels) -> bytes:
    """Return the records as a compressed batch with a header, without a producer."""
    payload = records if codec == NONE else compress(records, codec, levels)
    length = HEADER_SIZE + len(payload) - PREFIX.size
    covered = COVERED.pack(codec, count - 1, base, newest, -1, -1, -1, count)
    return header_with_crc(length, -1, covered, payload) + payload
