"""Kafka's frames on a socket: answers are taken apart as they arrive, requests are put together with one copy.

asyncio's streams copy each answer twice on its way, and a request written piece by piece is copied as it grows. At
hundreds of megabytes a second that is a third of a slot's time. uvloop brought no visible gain, for one more compiled
package in every image.
"""

import asyncio
import struct
from collections.abc import Callable

READ_BYTES = 64 * 1024
"""Bytes read at once while no large frame is in progress: several small answers, or the beginning of a large one."""

KEPT_BYTES = 16 * 1024 * 1024
"""A buffer larger than this is freed once its frame was taken."""

SIZE = struct.Struct(">i")


class FrameProtocol(asyncio.BufferedProtocol):
    """The receiver of frames from a socket.

    Args:
        on_frame: Called with each whole frame, in order. The view is read-only, and valid during that call only.
        on_lost: Called with the error that ends the connection, or with None if the broker closed it. A frame of an
            impossible length is such an error.
        on_gone: Called when the socket is closed.
        largest_frame: Returns the largest size of the next frame. No memory is taken for a longer one.
    """

    def __init__(
        self,
        on_frame: Callable[[memoryview], None],
        on_lost: Callable[[Exception | None], None],
        on_gone: Callable[[], object],
        largest_frame: Callable[[], int],
    ) -> None:
        self._largest_frame = largest_frame
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._on_gone = on_gone
        self._begun = memoryview(bytearray(READ_BYTES))
        self._large = memoryview(b"")
        self._frame_size = 0
        """The size of the frame that is being read into `_large`. With 0, bytes are read into `_begun`."""
        self._filled = 0

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._large[self._filled : self._frame_size] if self._frame_size else self._begun[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        try:
            if not self._frame_size:
                self._parse()
            elif self._filled == self._frame_size:
                frame, self._frame_size, self._filled = self._large[: self._frame_size], 0, 0
                self._on_frame(frame.toreadonly())
                if len(self._large) > KEPT_BYTES:
                    self._large = memoryview(b"")
        except Exception as exc:  # noqa: BLE001  # after any error no later answer can be read
            self._on_lost(exc)

    def _parse(self) -> None:
        position, filled, view = 0, self._filled, self._begun
        while filled - position >= SIZE.size:
            (size,) = SIZE.unpack_from(view, position)
            if size < SIZE.size:
                raise ConnectionError(f"the broker sent a frame that says it is {size} bytes long")
            if filled - position - SIZE.size < size:
                if size > READ_BYTES - SIZE.size:
                    if size > (largest := self._largest_frame()):
                        raise ConnectionError(
                            f"the broker sent a frame that says it is {size} bytes long, "
                            f"where at most {largest} were asked for"
                        )
                    if len(self._large) < size:
                        self._large = memoryview(bytearray(size))
                    self._frame_size, self._filled = size, filled - position - SIZE.size
                    self._large[: self._filled] = view[position + SIZE.size : filled]
                    return
                break
            position += SIZE.size
            self._on_frame(view[position : position + size].toreadonly())
            position += size
        self._filled = filled - position
        if position and self._filled:
            view[: self._filled] = bytes(view[position:filled])

    def eof_received(self) -> None:
        self._on_lost(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_lost(exc)
        self._on_gone()
