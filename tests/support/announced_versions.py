"""What a broker announces in ApiVersions, lowered on its way to a client: so a new broker looks like an old one."""

import struct
from collections.abc import Mapping

API_VERSIONS = 18
LENGTH, HEAD, ENTRY = struct.Struct(">i"), struct.Struct(">ihh"), struct.Struct(">hhh")


class AnnouncedVersions:
    """Lower the newest version of some APIs in the first answer of one connection, if that is to ApiVersions."""

    def __init__(self, newest: Mapping[int, int]) -> None:
        """`newest`: by the key of an API, the version that is announced as the newest."""
        self._newest = newest
        self._version: int | None = None
        self._answer: bytes | None = b""
        """What has come of the first answer; None: it has passed."""

    def see_request(self, chunk: bytes) -> None:
        """Take the first bytes of the connection, in which the version of the first request is."""
        if self._version is None:
            _, key, version = HEAD.unpack_from(chunk)
            self._version = version
            if key != API_VERSIONS:
                self._answer = None

    def lower(self, chunk: bytes) -> bytes:
        """Return the bytes that go to the client now."""
        if self._answer is None:
            return chunk
        self._answer += chunk
        if len(self._answer) < LENGTH.size or len(self._answer) < LENGTH.size + LENGTH.unpack_from(self._answer)[0]:
            return b""
        answer, self._answer = bytearray(self._answer), None
        flexible = (self._version or 0) >= 3
        # Length, correlation id, error code; then the number of entries: one byte more than it, or four.
        place = 10
        count, size = (answer[place] - 1, 1) if flexible else (LENGTH.unpack_from(answer, place)[0], LENGTH.size)
        if flexible and answer[place] & 0x80:
            count, size = (answer[place] & 0x7F | answer[place + 1] << 7) - 1, 2
        for number in range(count):
            at = place + size + number * (ENTRY.size + flexible)
            key, oldest, newest = ENTRY.unpack_from(answer, at)
            lowered = min(newest, self._newest.get(key, newest))
            ENTRY.pack_into(answer, at, key, min(oldest, lowered), lowered)
        return bytes(answer)
