"""The base of the rows of the state topic: a key, a version, JSON (`architecture.md` §3).

Rows travel as JSON objects with a `version`; a fold keeps the last row of each key and may see any row twice. A reader
ignores fields it does not know. It stops with `NewerVersion` on a row whose version it was not built for: such a row
may mean something else. Fields are added with a default and without a new version. A kind gets a new version when an
earlier release would misread it. The rows are in `state_rows.py`, their JSON Schemas in `schemas`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self, TypeVar

from lockstep_state.codecs.strict_json import parse_object
from lockstep_state.rows.value_types import Count, UnixMs, field_readers


class MalformedRow(ValueError):
    """An error for a record of a control topic that is not what its topic or its key says.

    The message has the reason.
    """


class NewerVersion(ValueError):
    """An error for a row, event or command of a newer release, which the reader could misread.

    `key` is the record's, or its kind. `topic` names the topic and its cluster, if the reader knows them.
    """

    def __init__(self, key: str, version: int, read: int, topic: str = "") -> None:
        location = f" in {topic}" if topic else ""
        super().__init__(
            f"{key!r}{location} was written in version {version}, this release reads up to {read}:"
            " run the newer release everywhere"
        )
        self.key = key
        self.version = version
        self.read = read

    def within(self, topic: str) -> "NewerVersion":
        """Return the same error with its topic."""
        return NewerVersion(self.key, self.version, self.read, topic)


NEWEST_VERSION = 1_000
"""A greater number in `version` is no version of any release, but garbage."""

LONGEST_SUBJECT = 100
"""Characters of a value of the record in a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRecord:
    """The base of rows, events and commands. Their value has the version and the fields in their order."""

    version: ClassVar[int] = 1

    def encode_value(self) -> bytes:
        """Return the value as in the topic. The same record always gives the same bytes."""
        body = {"version": self.version} | {name: getattr(self, name) for name in field_readers(type(self))}
        return _ENCODER.encode(body).encode()

    @classmethod
    def decode_value(cls, value: bytes, name: str, named_by: str = "") -> Self:
        """Return the record in a value.

        Every field has its declared type, and fits into it (`value_types`). Fields that the class does not have are
        ignored.

        Args:
            value: The value of the record.
            name: The name of the record in messages.
            named_by: The field that identifies the record in messages.

        Raises:
            MalformedRow: The bytes are no such record.
            NewerVersion: A newer release wrote them.
        """
        try:
            body = parse_object(value)
            version = body.get("version")
            if type(version) is not int or not 0 < version <= NEWEST_VERSION:
                raise MalformedRow(f"{name}: its version is {str(version)[:20]!r}")
            if version > cls.version:
                if not isinstance(body.get(named_by, ""), str):
                    raise MalformedRow(f"{name}: its {named_by} is no text")
                subject = body.get(named_by, "")[:LONGEST_SUBJECT]
                raise NewerVersion(f"{name} {subject}".strip(), version, cls.version)
            return cls.from_fields(_read_fields(cls, body))
        except (MalformedRow, NewerVersion):
            raise
        except (ValueError, TypeError) as exc:
            raise MalformedRow(f"{name}: {exc}") from exc

    @classmethod
    def from_fields(cls, values: dict[str, Any]) -> Self:
        """Return the record of these fields, as they were read. The method may change `values`."""
        return cls(**values)


def _read_fields(record: type[ControlRecord], body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a row. Raises ValueError with the field whose value has another type."""
    readers, values = field_readers(record), {}
    name = ""
    try:
        for name, value in body.items():
            if (read := readers.get(name)) is not None:
                values[name] = read(value)
    except ValueError as exc:
        raise ValueError(f"field {name!r}: {exc}") from exc
    return values


def _as_json(value: Any) -> Any:
    """Return the JSON form of a value that is none of JSON's."""
    return value.to_json() if hasattr(value, "to_json") else asdict(value)


_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, default=_as_json)
"""The encoder of all records. Its construction costs a tenth of a record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(ControlRecord):
    """A fact of the state topic. `at_ms` is the writer's wall clock, `term` its leadership term (0: none needed)."""

    kind: ClassVar[str] = ""
    identified_by: ClassVar[tuple[str, ...]] = ()
    """The fields of which `identity` consists, unless a kind says otherwise."""
    owned_by: ClassVar[str | None] = None
    """The service that owns the rows of the kind. They count only in the newest term of its leader. None: no leader
    writes them, or each row names its owner."""
    at_ms: UnixMs = 0
    term: Count = 0

    def identity(self) -> tuple[str, ...]:
        """Return the parts of the key behind the kind."""
        if not self.identified_by:
            raise TypeError(f"{type(self).__name__} has no key of its own")
        return tuple(str(getattr(self, name)) for name in self.identified_by)

    def key(self) -> str:
        """Return the record's key as text: `kind/part/part`.

        Topic and group names have no slash; cluster aliases must not.
        """
        return self.key_of(*self.identity())

    @classmethod
    def key_of(cls, *identity: str | int) -> str:
        """Return the key of the row with this identity, without a row: to look one up costs a tenth of making one."""
        return "/".join((cls.kind, *map(str, identity)))

    def encode(self) -> tuple[bytes, bytes]:
        """Return key and value as in the topic. The same row always gives the same bytes."""
        return self.key().encode(), self.encode_value()


ROWS: dict[str, type[Row]] = {}
"""Every row class whose module has been imported, by kind. `state_rows.py` has them all."""
R = TypeVar("R", bound=Row)


def row_kind(kind: str, *identified_by: str, owner: str | None) -> Callable[[type[R]], type[R]]:
    """Make a frozen dataclass the row of a kind, with these fields as its identity, for `decode_row`."""

    def register(cls: type[R]) -> type[R]:
        cls.kind, cls.identified_by, cls.owned_by = kind, identified_by, owner
        ROWS[kind] = cls
        return cls

    return register


def decode_row(key: bytes, value: bytes | None) -> Row | None:
    """Return the row in a record of the state topic. None: a kind that this release does not know, or a tombstone.

    Raises:
        MalformedRow: The bytes are no such row, or its fields do not have their types.
        NewerVersion: A newer release wrote it.
    """
    cls = ROWS.get(key.partition(b"/")[0].decode(errors="replace"))
    if cls is None or value is None:
        return None
    try:
        text = key.decode()
    except UnicodeDecodeError as exc:
        raise MalformedRow(f"state row {key!r}: {exc}") from exc
    try:
        row = cls.decode_value(value, repr(text))
    except MalformedRow as exc:
        raise MalformedRow(f"state row {exc}") from exc
    except NewerVersion as exc:
        raise NewerVersion(text, exc.version, exc.read) from exc
    if row.key() != text:
        raise MalformedRow(f"state row {text!r}: its value belongs to {row.key()!r}")
    return row
