"""The CRC-32C of record batches."""

from collections.abc import Callable

import google_crc32c

from lockstep_data_plane.record_batch.compiled_module import find_compiled

Bytes = bytes | bytearray | memoryview


def _crc32c_by_package(data: Bytes, before: int = 0) -> int:
    """Return the CRC-32C of `data`, behind the bytes whose CRC is `before`.

    The package takes no memory views, so this copies the bytes first.
    """
    return int(google_crc32c.extend(before, bytes(data)))


def _fastest() -> Callable[..., int]:
    compiled = find_compiled()
    return _crc32c_by_package if compiled is None else compiled.crc32c


crc32c = _fastest()
"""Return the CRC-32C of bytes, behind those whose CRC is the second argument. Each copied byte goes through this."""
