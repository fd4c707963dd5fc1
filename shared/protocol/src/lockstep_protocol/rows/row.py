"""What every row of the state topic has in common: a key, a version, JSON (`architecture.md` §3). The rows are in
`state_rows.py`.

Rows travel as JSON objects with a `version`; a fold keeps the last row of each key and may see any row twice. A reader
ignores fields it does not know. It stops with `NewerVersion` on a row whose version it was not built for: such a row
may mean something else. Fields are added with a default and without a new version. A kind gets a new version when an
earlier release would misread it. What each kind holds, for other programs: `schemas`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Self, TypeVar

from lockstep_protocol.reason import Reason


class MalformedRow(ValueError):
    """A record of a control topic that is not what its key says; the message names the key."""


class NewerVersion(ValueError):
    """A row, event or command written by a newer release; going on could misread it, so the reader stops with this
    sentence. `key`: the record's, or what it is. `place`: the topic and its cluster, where the reader knows them."""

    def __init__(self, key: str, version: int, read: int, place: str = "") -> None:
        where = f" in {place}" if place else ""
        super().__init__(
            f"{key!r}{where} was written in version {version}, this release reads up to {read}:"
            " run the newer release everywhere"
        )
        self.key = key
        self.version = version
        self.read = read

    def within(self, place: str) -> "NewerVersion":
        """The same, with its place."""
        return NewerVersion(self.key, self.version, self.read, place)


_FIELD_NAMES: dict[type["ControlRecord"], Mapping[str, None]] = {}


def _field_names(record: type["ControlRecord"]) -> Mapping[str, None]:
    """In their order. Thousands of rows are read and written each second, so they are collected once."""
    if (known := _FIELD_NAMES.get(record)) is None:
        known = _FIELD_NAMES[record] = dict.fromkeys(one.name for one in fields(record))
    return known


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRecord:
    """What rows, events and commands have in common: a value of their version and their fields, in their order."""

    version: ClassVar[int] = 1

    def encode_value(self) -> bytes:
        """The value as in the topic. The same record always gives the same bytes."""
        body = {"version": self.version} | {name: getattr(self, name) for name in _field_names(type(self))}
        return json.dumps(body, separators=(",", ":"), ensure_ascii=False, default=_to_json).encode()

    @classmethod
    def decode_value(cls, value: bytes, name: str, *texts: str) -> Self:
        """Read an event or a command, called `name` with its article: a JSON object that has these `texts`. Raises
        ValueError when the bytes are none, NewerVersion when they are a newer release's."""
        body = json.loads(value)
        version = body.get("version", 0) if isinstance(body, dict) else 0
        if not isinstance(version, int):
            raise ValueError(f"not {name}: its version is {version!r}")
        if version > cls.version:
            raise NewerVersion(f"{name.split()[-1]} {body.get(texts[0])}", version, cls.version)
        if not isinstance(body, dict) or not all(isinstance(body.get(text), str) for text in texts):
            named = f"{', '.join(texts[:-1])} and {texts[-1]}"
            raise ValueError(f"not {name}: a JSON object with the texts {named} is expected")
        return cls(**{name: body[name] for name in _field_names(cls) if name in body})


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(ControlRecord):
    """A fact of the state topic. `at_ms` is the writer's wall clock, `term` its leadership term (0: none needed)."""

    kind: ClassVar[str] = ""
    identified_by: ClassVar[tuple[str, ...]] = ()
    """The fields of which `identity` consists, unless a kind says otherwise."""
    owned_by: ClassVar[str | None] = None
    """The service that owns the rows of the kind. They count only in the newest term of its leader. None: no leader
    writes them, or each row says whose it is."""
    at_ms: int = 0
    term: int = 0

    def identity(self) -> tuple[str, ...]:
        """The parts of the key behind the kind."""
        if not self.identified_by:
            raise TypeError(f"{type(self).__name__} has no key of its own")
        return tuple(str(getattr(self, name)) for name in self.identified_by)

    def key(self) -> str:
        """The record's key as text: `kind/part/part`. Topic and group names hold no slash, cluster aliases must not."""
        return "/".join((self.kind, *self.identity()))

    def encode(self) -> tuple[bytes, bytes]:
        """Key and value as they lie in the topic. The same row always gives the same bytes."""
        return self.key().encode(), self.encode_value()

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Self:
        known = _field_names(cls)
        values: dict[str, Any] = {name: _frozen(value) for name, value in body.items() if name in known}
        return cls(**values)


def _frozen(value: Any) -> Any:
    """Return JSON's lists as tuples and its objects as reasons, at every depth: rows stay hashable and comparable.

    Raises:
        ValueError: An object is no reason. Rows have no other objects.
    """
    if isinstance(value, list | tuple):
        return tuple(map(_frozen, value))
    return Reason.from_json(value) if isinstance(value, dict) else value


def _to_json(value: Any) -> Any:
    """Return what `json` cannot write itself as what it can."""
    return value.to_json() if isinstance(value, Reason) else asdict(value)


ROWS: dict[str, type[Row]] = {}
"""By kind: every row whose module has been imported. `state_rows.py` has them all."""
R = TypeVar("R", bound=Row)


def row_kind(kind: str, *identified_by: str, owner: str | None) -> Callable[[type[R]], type[R]]:
    """Makes a frozen dataclass the row of a kind, which `decode_row` then knows, with these fields as its identity."""

    def register(cls: type[R]) -> type[R]:
        cls.kind, cls.identified_by, cls.owned_by = kind, identified_by, owner
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
        if version > cls.version:
            raise NewerVersion(text, version, cls.version)
        row = cls.from_json(body)
    except NewerVersion:
        raise
    except (ValueError, KeyError, TypeError) as exc:
        raise MalformedRow(f"state row {key!r}: {exc}") from exc
    if row.key() != text:
        raise MalformedRow(f"state row {key!r}: its value belongs to {row.key()!r}")
    return row
