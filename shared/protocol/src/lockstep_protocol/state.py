"""Rows of the state topic: what is so now (design §3).

Each row is a frozen dataclass with a key of its own and one owning service. Rows travel as JSON objects with a
`version`; a fold keeps the last row of each key and may see any row twice. A reader ignores fields it does not know
and stops with `NewerVersion` on a row whose version it was not built for: such a row may mean something else.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, Self, TypeVar

__all__ = [
    "AclStatus",
    "Assignment",
    "FlowPulse",
    "GroupStatus",
    "Leader",
    "MalformedRow",
    "MirroredTopic",
    "NewerVersion",
    "Origin",
    "PartitionProgress",
    "Row",
    "SlotStatus",
    "decode_row",
]

VERSION = 1


class MalformedRow(ValueError):
    """A record of a control topic that is not what its key says; the message names the key."""


class NewerVersion(ValueError):
    """A row written by a newer release; going on could misread it, so the reader stops with this sentence."""

    def __init__(self, key: str, version: int) -> None:
        super().__init__(
            f"{key!r} was written in version {version}, this release reads up to {VERSION}:"
            " run the newer release everywhere"
        )
        self.key = key
        self.version = version


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A fact of the state topic. `at_ms` is the writer's wall clock, `term` its leadership term (0: none needed)."""

    kind: ClassVar[str] = ""
    at_ms: int = 0
    term: int = 0

    def identity(self) -> tuple[str, ...]:
        """The parts of the key behind the kind."""
        raise TypeError(f"{type(self).__name__} has no key of its own")

    def key(self) -> str:
        """The record's key as text: `kind/part/part`. Topic and group names hold no slash, cluster aliases must not."""
        return "/".join((self.kind, *self.identity()))

    def encode(self) -> tuple[bytes, bytes]:
        """Key and value as they lie in the topic. The same row always gives the same bytes."""
        body = {"version": VERSION, **asdict(self)}
        return self.key().encode(), json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Self:
        known = {f.name for f in fields(cls)}
        values = {name: _frozen(value) for name, value in body.items() if name in known}
        return cls(**values)


def _frozen(value: Any) -> Any:
    """JSON's lists as tuples, at every depth, so that rows stay hashable and comparable."""
    return tuple(_frozen(v) for v in value) if isinstance(value, list) else value


ROWS: dict[str, type[Row]] = {}
R = TypeVar("R", bound=Row)


def _row(kind: str) -> Callable[[type[R]], type[R]]:
    def register(cls: type[R]) -> type[R]:
        cls.kind = kind
        ROWS[kind] = cls
        return cls

    return register


def decode_row(key: bytes, value: bytes | None) -> Row | None:
    """The row behind a record of the state topic, or None for a kind this release does not know and for a tombstone.

    Raises MalformedRow for bytes that are no such row and NewerVersion for one of a later version.
    """
    try:
        text = key.decode()
        kind = text.partition("/")[0]
        cls = ROWS.get(kind)
        if cls is None or value is None:
            return None
        body = json.loads(value)
        version = body["version"]
        if version > VERSION:
            raise NewerVersion(text, version)
        row = cls.from_json(body)
    except NewerVersion:
        raise
    except (ValueError, KeyError, TypeError) as exc:
        raise MalformedRow(f"state row {key!r}: {exc}") from exc
    if row.key() != text:
        raise MalformedRow(f"state row {key!r}: its value belongs to {row.key()!r}")
    return row


@_row("topic")
@dataclass(frozen=True, slots=True, kw_only=True)
class MirroredTopic(Row):
    """A source topic and its remote topic. Owner: topic-sync. The data plane copies those in phase `mirrored`.

    phase: `mirrored` (both exist, the target has at least as many partitions) | `failed` (reason says why; tried
    again) | `deleted` (gone on the source) | `excluded` (no longer selected). Topic ids are Kafka's own base64 text.
    """

    source_topic: str
    target_topic: str
    source_topic_id: str = ""
    target_topic_id: str = ""
    partitions: int = 0
    target_partitions: int = 0
    phase: str = "mirrored"
    reason: str = ""
    target_configs: tuple[tuple[str, str], ...] = ()
    """What the data plane needs of the target topic: max.message.bytes, message.timestamp.type, cleanup.policy,
    compression.type."""

    def identity(self) -> tuple[str, ...]:
        return (self.source_topic,)


@_row("partition")
@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProgress(Row):
    """How far a partition's chain of appends has got, as last written down. Owner: data plane (the slot).

    Written before the first append of an epoch, then at least every second while records move and at drain. The truth
    may be further on, never behind: the producer id and sequence in the target's log say by how much (`wire.md` §2).
    """

    topic: str
    partition: int
    phase: str = "copying"
    """`copying` | `halted` (reason says why; nothing moves until somebody decides)."""
    reason: str = ""
    case: str = ""
    """Why it halted, as a word: `records-gone` | `source-truncated` | `source-recreated` | `target-truncated` |
    `target-recreated` | `in-doubt` | `refused`; "" while it copies."""
    upstream: int = -1
    """Last upstream offset that is durable downstream, or decided to be passed over (control batches); -1: none."""
    upstream_epoch: int = -1
    """Leader epoch the source's log gave the batch at `upstream`."""
    downstream: int = -1
    """Downstream offset of the last record appended; before the first one, the target's log end minus 1 then."""
    producer_id: int = -1
    producer_epoch: int = 0
    sequence: int = -1
    """Sequence of the last record appended in this epoch; -1: none yet, the next is 0."""
    source_topic_id: str = ""
    target_topic_id: str = ""
    source_end: int = -1
    """The source's high watermark when last fetched."""
    lag_records: int = 0
    lag_ms: int = 0
    """Age of the oldest record not yet acknowledged by the target; 0 when there is none."""
    records: int = 0
    """Records appended by this run of the slot (a counter that restarts with it), with their uncompressed-agnostic
    wire bytes."""
    bytes: int = 0
    skips: tuple[tuple[int, int], ...] = ()
    """Upstream offsets (first, last) beyond `upstream` that are quarantined and passed over in this epoch."""
    given_up: int = 0
    """Upstream offsets that policies gave up in the life of the partition: gaps skipped."""
    quarantined: int = 0
    """Records, or batches that cannot be read, put into the quarantine topic in the life of the partition."""
    latency_ms: int = 0
    """Record timestamp to acknowledgement, of the last batch."""
    slot: int = -1

    def identity(self) -> tuple[str, ...]:
        return (self.topic, str(self.partition))


@_row("assignment")
@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment(Row):
    """What a slot is to copy.

    Owner: data plane (the driver). A slot drains what is no longer in its newest assignment.
    """

    slot: int
    generation: int = 0
    partitions: tuple[tuple[str, int], ...] = ()
    ending: bool = False
    """The slot drains everything, says so in its status and ends."""

    def identity(self) -> tuple[str, ...]:
        return (str(self.slot),)


@_row("slot")
@dataclass(frozen=True, slots=True, kw_only=True)
class SlotStatus(Row):
    """A slot as it sees itself. Owner: data plane (the slot). phase: `started` | `released`."""

    slot: int
    phase: str
    run: str = ""
    """Which run of the slot speaks; the driver ignores the words of earlier ones."""
    generation: int = 0
    partitions: int = 0

    def identity(self) -> tuple[str, ...]:
        return (str(self.slot),)


@_row("origin")
@dataclass(frozen=True, slots=True, kw_only=True)
class Origin(Row):
    """What a producer id in the target's log stands for. Owner: data plane (the driver). Never deleted (`wire.md` §4).

    The flow's producer id is the one of the *first* such row in the log whose target cluster id is the target's
    present one.
    """

    producer_id: int
    source: str
    target: str
    origin_cluster_id: str
    target_cluster_id: str

    def identity(self) -> tuple[str, ...]:
        return (str(self.producer_id),)


@_row("acl")
@dataclass(frozen=True, slots=True, kw_only=True)
class AclStatus(Row):
    """How ACL sync stands. Owner: acl-sync. phase: `in-sync` | `no-authorizer` | `not-permitted` | `failing`."""

    phase: str
    reason: str = ""
    copied: int = 0
    left_out: int = 0
    """Source bindings that MM2's rule does not copy."""

    def identity(self) -> tuple[str, ...]:
        return ("sync",)


@_row("group")
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus(Row):
    """Where a consumer group stands on the target. Owner: checkpoint. One row a group, all its partitions in it."""

    group: str
    phase: str
    """`translated` | `waiting` (reason says for what) | `failing`."""
    reason: str = ""
    synced: bool = False
    """Its offsets were written to the target's group of the same name."""
    positions: tuple[tuple[str, int, int, int], ...] = ()
    """(target topic, partition, upstream, downstream) as last emitted."""

    def identity(self) -> tuple[str, ...]:
        return (self.group,)


@_row("flow")
@dataclass(frozen=True, slots=True, kw_only=True)
class FlowPulse(Row):
    """The flow's own heartbeat as last acknowledged.

    Owner: heartbeat. Written when its phase changes, not each beat.
    """

    source: str
    target: str
    phase: str
    """`beating` | `failing`."""
    reason: str = ""

    def identity(self) -> tuple[str, ...]:
        return (f"{self.source}->{self.target}",)


@_row("leader")
@dataclass(frozen=True, slots=True, kw_only=True)
class Leader(Row):
    """Who acts for a service in this flow. The record's own offset is the term (design §4, `wire.md` §7)."""

    service: str
    instance: str
    labels: tuple[tuple[str, str], ...] = field(default=())

    def identity(self) -> tuple[str, ...]:
        return (self.service,)
