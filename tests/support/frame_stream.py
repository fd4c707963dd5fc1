"""Kafka's frames in a stream of bytes: each passes as it comes, or is taken whole and rewritten."""

from collections.abc import Callable

Rewrite = Callable[[bytes], bytes]


class FrameStream:
    """One direction of a connection.

    `read_head` is given the first `head` bytes of each frame, its length of four bytes among them. It returns what
    makes another frame of the whole one, or None: the frame passes as it comes.
    """

    def __init__(self, head: int, read_head: Callable[[bytes], Rewrite | None]) -> None:
        self._head = head
        self._read_head = read_head
        self._begun = bytearray()
        """The present frame, as far as it has come and is kept."""
        self._missing = 0
        """Bytes of the present frame that are still to come, once its head has."""
        self._rewrite: Rewrite | None = None

    def pass_on(self, chunk: bytes) -> bytes:
        """Return the bytes that may go on now that these have come."""
        passed = bytearray()
        while chunk:
            if not self._missing:
                wanted = self._head - len(self._begun)
                self._begun += chunk[:wanted]
                chunk = chunk[wanted:]
                if len(self._begun) < self._head:
                    break
                self._missing = max(0, int.from_bytes(self._begun[:4]) + 4 - self._head)
                self._rewrite = self._read_head(bytes(self._begun))
                if self._rewrite is None:
                    passed += self._begun
                    self._begun = bytearray()
            came, chunk = chunk[: self._missing], chunk[self._missing :]
            self._missing -= len(came)
            if self._rewrite is None:
                passed += came
                continue
            self._begun += came
            if not self._missing:
                passed += self._rewrite(bytes(self._begun))
                self._begun = bytearray()
        return bytes(passed)
