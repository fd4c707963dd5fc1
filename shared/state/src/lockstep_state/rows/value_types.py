"""The types of fields as checks of JSON values. Rows, events and commands declare them.

A value is checked once, where a record is read. Then it has the declared type, fits into it, and is frozen: JSON's
lists are tuples. Thousands of rows are read each second, so the checks of a class are derived once, and long lists are
checked column by column.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from reprlib import Repr
from typing import Annotated, Any, Protocol, TypeAlias, get_args, get_origin, get_type_hints

from lockstep_state.codecs.strict_json import DEEPEST, require_shallow


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the greatest integer that a field takes."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Longest:
    """The greatest number of characters of a text."""

    characters: int


LATEST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999: Python, and most others, know no later times."""

MOST_PARTITIONS = 1_000_000
"""The greatest number of partitions of one topic. A greater one is a mistake, and a loop over it would not end."""

ANY_INTEGER = Bounds(-(2**65), 2**65)
"""The bounds of integers without other ones. An age is the difference of two times of 64 bits, and may need one bit
more."""

LARGEST_COUNT = 2**63 - 1
"""The greatest integer of 64 bits, as Kafka and others have it."""

Count: TypeAlias = Annotated[int, Bounds(0, LARGEST_COUNT)]
Offset: TypeAlias = Annotated[int, Bounds(-1, 2**63 - 1)]
"""-1: there is none."""
UnixMs: TypeAlias = Annotated[int, Bounds(0, LATEST_MS)]
PartitionNumber: TypeAlias = Annotated[int, Bounds(0, MOST_PARTITIONS - 1)]
PartitionCount: TypeAlias = Annotated[int, Bounds(0, MOST_PARTITIONS)]
ProducerId: TypeAlias = Annotated[int, Bounds(-1, 2**63 - 1)]
Epoch: TypeAlias = Annotated[int, Bounds(-1, 2**15 - 1)]
"""The epoch of a producer."""
LeaderEpoch: TypeAlias = Annotated[int, Bounds(-1, 2**31 - 1)]
BatchSequence: TypeAlias = Annotated[int, Bounds(-1, 2**31 - 1)]
SlotNumber: TypeAlias = Annotated[int, Bounds(-1, 2**31 - 1)]

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 60


class ValueType(Protocol):
    """The check of a JSON value. `read` and `read_all` raise ValueError with what was expected."""

    def read(self, value: Any) -> Any:
        """Return the value, frozen."""

    def read_all(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return values that all have to be of the type, frozen."""


@dataclass(frozen=True, slots=True)
class _Integer:
    least: int
    most: int

    def read(self, value: Any) -> int:
        if type(value) is int and self.least <= value <= self.most:  # True is an int to isinstance
            return value
        raise _unexpected(value, f"an integer from {self.least} to {self.most}")

    def read_all(self, values: Sequence[Any]) -> tuple[int, ...]:
        for value in values if {*map(type, values)} != {int} else (min(values), max(values)):
            self.read(value)
        return tuple(values)


@dataclass(frozen=True, slots=True)
class _Flag:
    def read(self, value: Any) -> bool:
        if type(value) is bool:
            return value
        raise _unexpected(value, "true or false")

    def read_all(self, values: Sequence[Any]) -> tuple[bool, ...]:
        return tuple(map(self.read, values))


@dataclass(frozen=True, slots=True)
class _Text:
    longest: int | None

    def read(self, value: Any) -> str:
        if type(value) is str and (self.longest is None or len(value) <= self.longest):
            return value
        raise _unexpected(value, "a text" if self.longest is None else f"a text of at most {self.longest} characters")

    def read_all(self, values: Sequence[Any]) -> tuple[str, ...]:
        if self.longest is None and {*map(type, values)} == {str}:
            return tuple(values)
        return tuple(map(self.read, values))


@dataclass(frozen=True, slots=True)
class _Many:
    """A tuple of any length with one type, `element`."""

    element: ValueType

    def read(self, value: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise _unexpected(value, "a list")
        return self.element.read_all(value) if value else ()

    def read_all(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], ...]:
        return tuple(map(self.read, values))


@dataclass(frozen=True, slots=True)
class _Each:
    """A tuple with a type for each element."""

    elements: tuple[ValueType, ...]

    def read(self, value: Any) -> tuple[Any, ...]:
        return self.read_all((value,))[0]

    def read_all(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], ...]:
        if {*map(type, values)} != {list} or {*map(len, values)} != {len(self.elements)}:
            wrong = next(value for value in values if type(value) is not list or len(value) != len(self.elements))
            raise _unexpected(wrong, f"a list of {len(self.elements)}")
        columns = zip(self.elements, zip(*values, strict=True), strict=True)
        return tuple(zip(*(element.read_all(column) for element, column in columns), strict=True))


@dataclass(frozen=True, slots=True)
class _AnyObject:
    """An object whose members have any types."""

    def read(self, value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise _unexpected(value, "an object")
        require_shallow(value, DEEPEST)
        return value

    def read_all(self, values: Sequence[Any]) -> tuple[dict[str, Any], ...]:
        return tuple(map(self.read, values))


@dataclass(frozen=True, slots=True)
class _Nested:
    """A value with a JSON form of its own: a class with `from_json`."""

    kind: Any

    def read(self, value: Any) -> Any:
        if type(value) is not dict:
            raise _unexpected(value, "an object")
        return self.kind.from_json(value)

    def read_all(self, values: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(map(self.read, values))


def _unexpected(value: Any, expected: str) -> ValueError:
    return ValueError(f"{_SHORT.repr(value)} is not {expected}")


_READERS: dict[type, Mapping[str, Callable[[Any], Any]]] = {}


def field_readers(record: type) -> Mapping[str, Callable[[Any], Any]]:
    """Return `ValueType.read` for each field of a dataclass, by name. Raises TypeError for a type without a check."""
    if (readers := _READERS.get(record)) is None:
        hints = get_type_hints(record, include_extras=True)
        readers = {field.name: _value_type(hints[field.name]).read for field in fields(record)}
        _READERS[record] = readers
    return readers


def _value_type(hint: Any) -> ValueType:
    """Return the check of a declared type. Raises TypeError if there is none."""
    extras: tuple[Any, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *rest = get_args(hint)
        extras = tuple(rest)
    bounds, longest = _only(extras, Bounds), _only(extras, Longest)
    if hint is int:
        bounds = bounds or ANY_INTEGER
        return _Integer(bounds.least, bounds.most)
    if hint is str:
        return _Text(None if longest is None else longest.characters)
    if hint is bool:
        return _Flag()
    if get_origin(hint) is dict:
        return _AnyObject()
    if get_origin(hint) is tuple:
        elements = get_args(hint)
        if elements[-1] is Ellipsis:
            return _Many(_value_type(elements[0]))
        return _Each(tuple(map(_value_type, elements)))
    if hasattr(hint, "from_json"):
        return _Nested(hint)
    raise TypeError(f"no check for fields of type {hint}")


def _only(extras: Sequence[Any], kind: type) -> Any:
    return next((extra for extra in extras if isinstance(extra, kind)), None)
