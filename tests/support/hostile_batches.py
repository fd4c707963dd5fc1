"""Record batches with a right CRC and content that no good producer writes, from a seed."""

import random
import struct
from zlib import crc32

from google_crc32c import value as crc32c

from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from tests.support.batch_bytes import COMPRESS, GZIP, LOG_APPEND_TIME, LZ4, SNAPPY, TRANSACTIONAL, ZSTD, batch_bytes
from tests.support.message_sets import Message, message, message_set

HEADER = 61
EDGES = (0, 1, -1, -2, 1000, 2**31 - 1, -(2**31), 2**32, 2**62, 2**63 - 1, -(2**63))
FIELDS = {"base": (0, 8), "epoch": (12, 4), "delta": (23, 4), "time": (27, 8), "newest": (35, 8), "count": (57, 4)}
"""Where some numbers of the header lie, and how long they are."""
TIMES = (-1, 0, 1000, 2**62, 2**63 - 1)
NAME, NO_UTF8 = "PLAIN", b"\xff\xfePLA"


class HostileBatches:
    """Writes batches of format 2 and message sets of formats 0 and 1."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def log(self) -> bytes:
        """Return one to three of them, ten offsets from each other where their headers say so."""
        choices = (self.batch, self.batch, self.batch, self.message_set)
        return b"".join(self._random.choice(choices)(10 * place) for place in range(self._random.randint(1, 3)))

    def batch(self, base: int) -> bytes:
        """Return a batch whose header, records or compressed bytes are spoilt, and whose CRC is right."""
        pick = self._random.choice
        codec = pick((0, 0, GZIP, SNAPPY, LZ4, ZSTD))
        whole = self._whole_batch(base)
        body = bytearray(whole[HEADER:].replace(NAME.encode(), NO_UTF8 if pick((True, False)) else NAME.encode()))
        for _ in range(pick((0, 0, 1, 2))):
            self._spoil(body)
        stored = bytearray(COMPRESS[codec](bytes(body)))
        if codec and self._random.random() < 0.3:
            stored[self._random.randrange(len(stored))] = self._random.randrange(256)
        head = bytearray(whole[:HEADER])
        head[22] = codec | pick((0, 0, 0, LOG_APPEND_TIME, TRANSACTIONAL))
        for _ in range(pick((0, 1, 1, 2))):
            field = pick((*FIELDS, "magic"))
            if field == "magic":
                head[16] = pick((3, 4, 127, 128, 255))
            else:
                position, size = FIELDS[field]
                head[position : position + size] = self._number(8 * size)
        raw = head + stored
        raw[8:12] = struct.pack(">i", len(raw) - 12)
        raw[17:21] = struct.pack(">I", crc32c(bytes(raw[21:])))
        return bytes(raw)

    def message_set(self, base: int) -> bytes:
        """Return a message, or a compressed set, of format 0 or 1 that is spoilt, and whose outer CRC is right."""
        pick = self._random.choice
        magic, codec = pick((0, 1)), pick((0, 0, GZIP, SNAPPY, LZ4))
        content = [
            Message(base + place, pick((None, b"k")), pick((None, b"v" * 5)), pick((-1, 5, 2**63 - 1)))
            for place in range(self._random.randint(1, 3))
        ]
        raw = bytearray(message_set(magic, content))
        for _ in range(pick((0, 1, 2))):
            if pick((True, False)):
                raw[self._random.randrange(len(raw))] = pick((0, 1, 127, 128, 254, 255))
            else:  # a size of a message, of its key, or of its value
                position = pick((8, 12, 18, 22, 26, 30))
                raw[position : position + 4] = self._number(32)
        if codec:
            wrapper = Message(pick((base, base, pick(EDGES[:6]))), None, COMPRESS[codec](bytes(raw)), 5)
            return message(magic, wrapper, codec)
        raw[8:12] = struct.pack(">i", len(raw) - 12)
        raw[12:16] = struct.pack(">I", crc32(bytes(raw[16:])))
        return bytes(raw)

    def _whole_batch(self, base: int) -> bytes:
        pick = self._random.choice
        headers = ((NAME, b"x"),) * self._random.randint(0, 2)
        content = [
            PlainRecord(base + place, pick(TIMES), b"k", pick((None, b"", b"v" * 9)), headers)
            for place in range(self._random.randint(1, 4))
        ]
        return batch_bytes(content)

    def _spoil(self, body: bytearray) -> None:
        pick, position = self._random.choice, self._random.randrange(len(body) or 1)
        match pick(("set", "set", "set", "insert", "cut")):
            case "set":
                body[position : position + 1] = bytes((pick((0, 1, 2, 3, 127, 128, 255, self._random.randrange(256))),))
            case "insert":
                body[position:position] = pick((b"\xff" * 9 + b"\1", b"\xff" * 5, b"\x80" * 12))
            case _:
                del body[position : position + self._random.randint(1, 4)]

    def _number(self, bits: int) -> bytes:
        half = 1 << bits - 1
        value = self._random.choice((*EDGES, self._random.getrandbits(bits) - half))
        return max(-half, min(half - 1, value)).to_bytes(bits // 8, "big", signed=True)
