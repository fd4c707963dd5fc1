"""MM2's records as bytes, byte for byte as MM2 4.3 writes them (`mm2-behaviour.md` §1.2 to 1.7).

Every decoder raises MalformedRecord, with what was wrong, for bytes that are no such record, and ignores trailing
bytes. That includes a tombstone: MM2 writes none into these topics. It includes numbers that no broker and no clock
gives: a negative partition or offset, a time before 1970 or after the year 9999. Every encoder raises ValueError for
what the format cannot hold.
"""

import json
import re
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

from lockstep_state.offsets import DownstreamOffset, TopicPartition, UpstreamOffset


@dataclass(frozen=True, slots=True)
class OffsetSync:
    """The target acknowledged the source's record at `upstream` at `downstream`. `topic` is the source's name."""

    topic: str
    partition: int
    upstream: UpstreamOffset
    downstream: DownstreamOffset


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The group that committed `upstream` on the source is at `downstream` on the target.

    `topic` is the target's name; `metadata` is what the group committed beside its offset.
    """

    group: str
    topic: str
    partition: int
    upstream: UpstreamOffset
    downstream: DownstreamOffset
    metadata: str = ""

    @property
    def tp(self) -> TopicPartition:
        """The partition of the target."""
        return self.topic, self.partition


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The flow `source->target` was alive at `timestamp_ms` of the sender's wall clock."""

    source: str
    target: str
    timestamp_ms: int


SOURCE_CONNECTOR = "MirrorSourceConnector"
"""The connector's name in MM2's dedicated mode; under Kafka Connect it is the connector's `name`."""

RECORD_VERSION = 0

NEWEST_VERSION = 255
"""A greater or negative version is none of any release, but garbage: a text has 8,000 and more there."""

LATEST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999."""

LONGEST_STRING = 32767

ESCAPED_OTHERWISE_BY_JACKSON = re.compile(r"\\(?:u(?P<hex>[0-9a-f]{4})|.)|(?P<astral>[\U00010000-\U0010ffff])")
r"""Connect's JSON library has upper-case digits in \\u001F and writes what UTF-16 needs two units for as two escapes.
"""

INT16 = struct.Struct(">h")
INT32 = struct.Struct(">i")
INT64 = struct.Struct(">q")


class MalformedRecord(ValueError):
    """An error for bytes that are not the record of their topic. The message says what was expected where."""


class UnsupportedRecordVersion(ValueError):
    """An error for a checkpoint or heartbeat of a version other than 0, which may mean something else (KAFKA-20659)."""


def encode_offset_sync(sync: OffsetSync) -> tuple[bytes, bytes]:
    """Return key and value of an offset sync. It belongs in partition 0."""
    return (
        _string("topic", sync.topic) + _int(INT32, "partition", sync.partition),
        _int(INT64, "upstream", sync.upstream) + _int(INT64, "downstream", sync.downstream),
    )


def decode_offset_sync(key: bytes | None, value: bytes | None) -> OffsetSync:
    """Read an offset sync. It has no version."""
    topic, partition = _sync_key(key)
    in_value = _Reader("offset sync value", value)
    return OffsetSync(
        topic=topic,
        partition=partition,
        upstream=UpstreamOffset(in_value.natural(INT64, "upstream offset")),
        downstream=DownstreamOffset(in_value.natural(INT64, "downstream offset")),
    )


@lru_cache(maxsize=1 << 16)
def _sync_key(key: bytes | None) -> tuple[str, int]:
    """Read the key of an offset sync. The cache is for partitions with many syncs."""
    reader = _Reader("offset sync key", key)
    return reader.string("topic"), reader.natural(INT32, "partition")


def encode_checkpoint(checkpoint: Checkpoint) -> tuple[bytes, bytes]:
    """Return key and value of a checkpoint. It belongs in partition 0."""
    return (
        _string("group", checkpoint.group)
        + _string("topic", checkpoint.topic)
        + _int(INT32, "partition", checkpoint.partition),
        _int(INT16, "version", RECORD_VERSION)
        + _int(INT64, "upstream", checkpoint.upstream)
        + _int(INT64, "downstream", checkpoint.downstream)
        + _string("metadata", checkpoint.metadata),
    )


def decode_checkpoint(key: bytes | None, value: bytes | None) -> Checkpoint:
    """Read a checkpoint. The key has no version.

    Raises UnsupportedRecordVersion before it reads what a later version may have changed, the value.
    """
    in_key, in_value = _Reader("checkpoint key", key), _Reader("checkpoint value", value)
    group, topic = in_key.string("group"), in_key.string("topic")
    partition = in_key.natural(INT32, "partition")
    in_value.version()
    return Checkpoint(
        group=group,
        topic=topic,
        partition=partition,
        upstream=UpstreamOffset(in_value.natural(INT64, "upstream offset")),
        downstream=DownstreamOffset(in_value.natural(INT64, "downstream offset")),
        metadata=in_value.string("metadata"),
    )


def encode_heartbeat(heartbeat: Heartbeat) -> tuple[bytes, bytes]:
    """Return key and value of a heartbeat. It belongs in partition 0, with the same time as its record timestamp."""
    return (
        _string("source", heartbeat.source) + _string("target", heartbeat.target),
        _int(INT16, "version", RECORD_VERSION) + _int(INT64, "timestamp", heartbeat.timestamp_ms),
    )


def decode_heartbeat(key: bytes | None, value: bytes | None) -> Heartbeat:
    """Read a heartbeat. Raises UnsupportedRecordVersion as `decode_checkpoint`."""
    in_key, in_value = _Reader("heartbeat key", key), _Reader("heartbeat value", value)
    source, target = in_key.string("source alias"), in_key.string("target alias")
    in_value.version()
    return Heartbeat(source=source, target=target, timestamp_ms=in_value.natural(INT64, "timestamp", LATEST_MS))


def encode_source_progress(
    cluster: str, topic: str, partition: int, offset: int, connector: str = SOURCE_CONNECTOR
) -> tuple[bytes, bytes]:
    """Return key and value with which Connect keeps the offset of the last replicated record of a source partition.

    Connect finds its offsets by the key's raw bytes, so the order of the fields is Java's. It chooses the partition by
    murmur2 of the key. Raises ValueError for what Connect's own `alterOffsets` refuses: a negative partition or offset.
    """
    if offset < 0:
        raise ValueError(f"progress of {topic}-{partition} cannot be {offset}: offsets begin at 0")
    key, _ = encode_source_progress_reset(cluster, topic, partition, connector)
    return key, connect_json({"offset": offset})


def encode_source_progress_reset(
    cluster: str, topic: str, partition: int, connector: str = SOURCE_CONNECTOR
) -> tuple[bytes, None]:
    """Return key and tombstone with which Connect forgets a source partition's offset, as if never replicated."""
    if partition < 0:
        raise ValueError(f"{topic} has no partition {partition}: partitions begin at 0")
    return connect_json([connector, {"cluster": cluster, "partition": partition, "topic": topic}]), None


def connect_json(value: Any) -> bytes:
    """Return JSON as Connect's converter writes it: no blanks, UTF-8, escaped where Jackson escapes."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return ESCAPED_OTHERWISE_BY_JACKSON.sub(_as_jackson, text).encode()


def _as_jackson(match: re.Match[str]) -> str:
    if match["hex"]:
        return "\\u" + match["hex"].upper()
    if match["astral"]:
        units = match["astral"].encode("utf-16-be").hex().upper()
        return f"\\u{units[:4]}\\u{units[4:]}"
    return match[0]


def _string(field: str, text: str) -> bytes:
    data = text.encode()
    if len(data) > LONGEST_STRING:
        raise ValueError(f"{field} takes {len(data)} bytes, the format holds at most {LONGEST_STRING}")
    return INT16.pack(len(data)) + data


def _int(form: struct.Struct, field: str, number: int) -> bytes:
    try:
        return form.pack(number)
    except struct.error as exc:
        raise ValueError(f"{field} {number} does not fit into {form.size} bytes") from exc


class _Reader:
    """A reader of fields from left to right, with messages for those that end too early."""

    def __init__(self, record_kind: str, data: bytes | None) -> None:
        if data is None:
            raise MalformedRecord(f"{record_kind}: missing (a tombstone, or a record without a key)")
        self.record_kind = record_kind
        self.data = data
        self.position = 0

    def number(self, form: struct.Struct, field: str) -> int:
        return int(form.unpack(self._read_bytes(form.size, field))[0])

    def natural(self, form: struct.Struct, field: str, most: int = 2**63 - 1) -> int:
        """Read a number that is not negative, and at most `most`."""
        number = self.number(form, field)
        if not 0 <= number <= most:
            self._fail(f"{field} is {number}, which it cannot be")
        return number

    def string(self, field: str) -> str:
        length = self.number(INT16, f"length of {field}")
        if length < 0:
            self._fail(f"{field} has length {length}, null is not allowed")
        data = self._read_bytes(length, field)
        try:
            return data.decode()
        except UnicodeDecodeError as exc:
            raise MalformedRecord(f"{self.record_kind}: {field} is not UTF-8: {exc}") from exc

    def version(self) -> None:
        version = self.number(INT16, "version")
        if not 0 <= version <= NEWEST_VERSION:
            self._fail(f"there is no version {version}")
        if version != RECORD_VERSION:
            raise UnsupportedRecordVersion(
                f"{self.record_kind}: version {version}, this release reads version {RECORD_VERSION}"
            )

    def _read_bytes(self, size: int, field: str) -> bytes:
        chunk = self.data[self.position : self.position + size]
        if len(chunk) < size:
            self._fail(f"{field} needs {size} bytes at {self.position}, {len(chunk)} are left")
        self.position += size
        return chunk

    def _fail(self, fault: str) -> NoReturn:
        raise MalformedRecord(f"{self.record_kind}: {fault}")
