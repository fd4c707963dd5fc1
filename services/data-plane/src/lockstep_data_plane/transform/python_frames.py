"""The frames between a slot and the process of a Python function: fields as JSON, and bytes behind them.

In front of each are two lengths (4 bytes each, big-endian): of all that follows, and of the fields. A kind in the
fields says what the frame is. The process answers each request in its turn.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

LENGTHS = struct.Struct(">II")
LARGEST_FRAME = 1 << 30

OPEN, OPENED, REFUSED, EVALUATE, ANSWER = "open", "opened", "refused", "evaluate", "answer"

Fields = Mapping[str, Any]


def pack_frame(fields: Fields, content: Sequence[bytes | memoryview] = ()) -> list[bytes | memoryview]:
    """Return the parts of a frame."""
    written = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogateescape")
    size = len(written) + sum(map(len, content))
    if size > LARGEST_FRAME:
        raise ValueError(f"a frame of {size} bytes")
    return [LENGTHS.pack(size, len(written)), written, *content]


def read_lengths(front: bytes) -> tuple[int, int]:
    """Return the length of what follows, and of the fields in it. Raises ValueError for what is no frame."""
    size, fields_size = LENGTHS.unpack(front)
    if not fields_size <= size <= LARGEST_FRAME:
        raise ValueError(f"a frame of {size} bytes with fields of {fields_size}")
    return int(size), int(fields_size)


def read_frame(frame: bytes | memoryview, fields_size: int) -> tuple[dict[str, Any], memoryview]:
    """Return the fields of a frame, and the bytes behind them. Raises ValueError for what is no frame."""
    view = memoryview(frame)
    fields = json.loads(bytes(view[:fields_size]))
    if not isinstance(fields, dict):
        raise ValueError("a frame without fields")
    return fields, view[fields_size:]
