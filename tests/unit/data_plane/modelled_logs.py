"""The logs of a partition, in memory: the source's, and the target's with the broker's rule of producer ids and
sequences (`kafka-wire.md` §0, §1)."""

import struct
from collections import deque
from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from aiokafka.record.legacy_records import LegacyRecordBatchBuilder

from lockstep_data_plane.record_batch.layout import Batch, scan, scan_groups
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from tests.support.batch_bytes import (
    CONTROL,
    DELETE_HORIZON,
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    TRANSACTIONAL,
    ZSTD,
    batch_bytes,
    crc_is_right,
    decoded,
    record,
)

OURS, OUR_EPOCH = 4000, 1
OTHER = 4001
"""Our producer id for what came to the source from elsewhere and is passed on."""
FROM_ELSEWHERE, FROM_THE_TARGET = 900, 901
"""Producer ids in the source's log."""
SEQUENCES = 2**31
OUT_OF_ORDER, NOT_ENOUGH_REPLICAS, INVALID_RECORD = 45, 19, 87
REMEMBERED = 5
AHEAD = 2 * REMEMBERED
"""Slots have more under way than the target remembers (decision 0041)."""

KINDS = (
    *("plain", "tiny", "compressed", "large", "horizon", "compacted", "compacted to the end", "log append time"),
    *("empty", "control", "aborted", "aborted later", "committed", "gap", "old 0", "old 1", "old 1 compressed"),
    *("passed on", "came from the target"),
)
"""What a source's log is made of, at least once each where it matters (`batches.md`)."""


@dataclass
class SourceLog:
    """A source partition's log, and what a consumer of it would see under `read_committed`."""

    batches: list[bytes] = field(default_factory=list)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    """(producer id, first offset, offset of the marker) of each aborted transaction."""
    visible: list[PlainRecord] = field(default_factory=list)
    end: int = 0
    _scanned: list[Batch] = field(default_factory=list)

    @classmethod
    def from_parts(cls, parts: Sequence[tuple[str, int]], begin: int = 0) -> "SourceLog":
        """`parts`: kind and number of records of each batch."""
        log = cls(end=begin)
        open_aborts: list[tuple[int, int]] = []
        for index, (kind, count) in enumerate(parts):
            log._add(kind, count, 100 + index, open_aborts)
        for producer_id, first in open_aborts:
            log._marker(producer_id, first)
        return log

    def _add(self, kind: str, count: int, producer_id: int, open_aborts: list[tuple[int, int]]) -> None:
        step = 2 if kind.startswith("compacted") else 1
        content = [self._record(self.end + step * i, large=kind == "large") for i in range(count)]
        if kind == "gap":
            self.end += count  # removed as a whole, by the cleaner
            self._add("tiny", 1, producer_id, open_aborts)
        elif kind == "empty":
            self._put(batch_bytes([], base_offset=self.end, last_offset=self.end + count), count + 1, [])
        elif kind == "control":
            self._marker(producer_id, None)
        elif kind.startswith("old"):
            self._put(_old_message_set(int(kind[4]), content, GZIP if "compressed" in kind else 0), count, content)
        elif kind.startswith("aborted"):
            first = self.end
            self._put(_encoded(content, TRANSACTIONAL, producer_id), count, [])
            if kind == "aborted":
                self._marker(producer_id, first)
            else:
                open_aborts.append((producer_id, first))
        elif kind == "log append time":
            raw = _encoded(content, LOG_APPEND_TIME, max_timestamp=90_000 + self.end)
            self._put(raw, count, [r._replace(timestamp=90_000 + self.end) for r in content])
        elif kind == "committed":
            self._put(_encoded(content, TRANSACTIONAL, producer_id), count, content)
            self._marker(producer_id, None)
        elif kind in ("tiny", "passed on"):
            for record in content:
                self._put(_encoded([record], producer_id=FROM_ELSEWHERE if kind == "passed on" else -1), 1, [record])
        elif kind == "came from the target":
            self._put(_encoded(content, producer_id=FROM_THE_TARGET), count, [])
        else:
            length = content[-1].offset - self.end + 1 + (2 if kind == "compacted to the end" else 0)
            raw = _encoded(
                content,
                DELETE_HORIZON if kind == "horizon" else 0,
                codec={"compressed": LZ4, "large": ZSTD if count % 2 else 0}.get(kind, 0),
                last_offset=self.end + length - 1,
            )
            self._put(raw, length, content)

    def _record(self, offset: int, *, large: bool) -> PlainRecord:
        value = None if offset % 7 == 6 else b"%d" % offset + (bytes(range(60, 90)) if large else b"")
        key = None if offset % 5 == 4 else b"k"
        headers = (("h", None), ("h", b"x")) if offset % 3 == 2 else ()
        return record(
            offset, value, key=key, timestamp=offset % 4 - 1 if offset % 2 else 5000 + offset, headers=headers
        )

    def _put(self, raw: bytes, length: int, content: Sequence[PlainRecord]) -> None:
        self.batches.append(raw)
        self.visible += content
        self.end += length

    def _marker(self, producer_id: int, aborts_from: int | None) -> None:
        if aborts_from is not None:
            self.aborted.append((producer_id, aborts_from, self.end))
        self._put(_encoded([record(self.end)], CONTROL | TRANSACTIONAL, producer_id), 1, [])

    def cleaned(self, offsets: Set[int]) -> "SourceLog":
        """The log after its cleaner has removed the records at `offsets`. Batches stay, be they empty."""
        batches = []
        for batch in scan(b"".join(self.batches)):
            remaining = [r for r in decoded(batch.data, batch.base_offset) if r.offset not in offsets]
            batches.append(batch_bytes(remaining, base_offset=batch.base_offset, last_offset=batch.last_offset))
        visible = [r for r in self.visible if r.offset not in offsets]
        return SourceLog(batches, [], visible, self.end)

    def fetch(self, offset: int, count: int) -> tuple[tuple[Batch, ...], list[tuple[int, int]]]:
        """At most `count` batches from the one that holds `offset` on, small ones in groups, and the aborted
        transactions in them."""
        if not self._scanned:
            self._scanned = list(scan(b"".join(self.batches)))
        batches = [b for b in self._scanned if b.last_offset >= offset][:count]
        last = batches[-1].last_offset if batches else -1
        groups = tuple(scan_groups(b"".join(b.data for b in batches), any_producer=False))
        return groups, [(p, first) for p, first, end in self.aborted if first <= last and end >= offset]


def _encoded(
    content: Sequence[PlainRecord],
    attributes: int = 0,
    producer_id: int = -1,
    *,
    codec: int = 0,
    last_offset: int | None = None,
    max_timestamp: int | None = None,
) -> bytes:
    return batch_bytes(
        content,
        attributes=attributes,
        codec=codec,
        producer=(producer_id, 0, 0),
        last_offset=last_offset,
        max_timestamp=max_timestamp,
    )


def _old_message_set(magic: int, content: list[PlainRecord], codec: int) -> bytes:
    """Magic 0 and 1 know no headers, magic 0 no time; `content` is made to say so too."""
    builder = LegacyRecordBatchBuilder(magic, codec, 100_000)
    for i, r in enumerate(content):
        content[i] = r._replace(headers=(), timestamp=max(0, r.timestamp) if magic else -1)
        builder.append(i if codec else r.offset, content[i].timestamp if magic else None, r.key, r.value)
    raw = bytearray(builder.build())
    if codec:
        struct.pack_into(">q", raw, 0, content[-1].offset)
    return bytes(raw)


@dataclass
class Producer:
    last: int
    recent: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))


class TargetLog:
    """A target partition's log. Takes a batch only if its sequence follows the producer's last one; of the last five it
    answers a repeated one as it did the first time; everything else is 45."""

    def __init__(self, sequence: int = -1) -> None:
        """`sequence`: that of our last record, of which the log holds nothing any more; -1: we are unknown."""
        self.batches: list[bytes] = []
        self.ours: list[tuple[int, PlainRecord]] = []
        """Our records with their downstream offsets."""
        self.end = 0
        self._producers: dict[int, Producer] = {} if sequence == -1 else {OURS: Producer(sequence)}

    def append(self, data: bytes) -> tuple[int, int]:
        """Error code and base offset."""
        (batch,) = scan(data)
        assert (batch.base_offset, batch.last_offset_delta) == (0, batch.record_count - 1), "87 INVALID_RECORD"
        assert crc_is_right(data), "2 CORRUPT_MESSAGE"
        if batch.producer_id >= 0:
            assert batch.producer_epoch == OUR_EPOCH
            first, last = batch.base_sequence, (batch.base_sequence + batch.last_offset_delta) % SEQUENCES
            producer = self._producers.get(batch.producer_id)
            for begin, end, base in producer.recent if producer else ():
                if (begin, end) == (first, last):
                    return 0, base
            if producer is None:
                producer = self._producers[batch.producer_id] = Producer(first - 1)
            elif first != (producer.last + 1) % SEQUENCES:
                return OUT_OF_ORDER, -1
            producer.last = last
            producer.recent.append((first, last, self.end))
            self.ours += [(r.offset, r) for r in decoded(data, self.end)]
        base, self.end = self.end, self.end + batch.record_count
        self.batches.append(struct.pack(">q", base) + data[8:])
        return 0, base

    def somebody_else_appends(self) -> None:
        self.append(batch_bytes([record(0, b"foreign")]))

    def cleaned(self, offsets: Set[int]) -> None:
        """The log's cleaner removes the records at `offsets`. Batches stay, be they empty, and bear what they bore."""
        batches = []
        for batch in scan(b"".join(self.batches)):
            remaining = [r for r in decoded(batch.data, batch.base_offset) if r.offset not in offsets]
            bore = (batch.producer_id, batch.producer_epoch, batch.base_sequence)
            batches.append(
                batch_bytes(remaining, base_offset=batch.base_offset, last_offset=batch.last_offset, producer=bore)
            )
        self.batches = batches

    def tail(self, offset: int) -> list[Batch]:
        return [b for b in scan(b"".join(self.batches)) if b.last_offset >= offset]
