"""The values of keys, and settings whose fields are keys: a field's default is its key's default.

This module is pure.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from lockstep_config.keys.key_types import Key, ValueKind
from lockstep_config.keys.python_classes import import_class
from lockstep_config.text.values import BadValue, boolean, choice, integer, split_list
from lockstep_rules.filters import NameFilter

V = TypeVar("V")

_UNITS = {"seconds": "seconds", "ms": "milliseconds"}
"""The units of times, which Kafka's keys end in."""

_OF_KINDS: Mapping[ValueKind, Callable[[str], object]] = MappingProxyType(
    {
        ValueKind.BOOLEAN: boolean,
        ValueKind.LIST: split_list,
        ValueKind.PATTERNS: lambda text: NameFilter(split_list(text)),
        ValueKind.PYTHON_CLASS: import_class,
    }
)


@dataclass(frozen=True, slots=True)
class PerTopic(Generic[V]):
    """A value for every topic, and others for some: `halt, orders.*=skip`. It can be pickled.

    One element without `=` holds for every topic. The others are a Java regular expression and the value of the
    topics whose whole name it matches. The first that matches counts.
    """

    default: V
    others: tuple[tuple[NameFilter, V], ...] = ()

    def for_topic(self, topic: str) -> V:
        """Return the value for a topic of the source."""
        return next((value for names, value in self.others if names.matches(topic)), self.default)


def per_topic(text: str, value: Callable[[str], V], default: V) -> PerTopic[V]:
    """Return the values that a text of the file gives to topics.

    Args:
        text: The text as in the file.
        value: Reads the value of one element.
        default: The value for every topic if the text has none.

    Raises:
        BadValue: An element is wrong, or two hold for every topic; or `value` raised it.
        UntranslatablePattern: A pattern cannot be translated.
    """
    others: list[tuple[NameFilter, V]] = []
    for_all: list[V] = []
    for element in split_list(text):
        pattern, equals, own = element.rpartition("=")
        if not equals:
            for_all.append(value(element))
        elif not pattern.strip():
            raise BadValue(
                f"has {element!r} without a pattern: write PATTERN=VALUE, or the value alone for every topic"
            )
        else:
            others.append((NameFilter((pattern.strip(),)), value(own)))
    if len(for_all) > 1:
        raise BadValue("has two values for every topic: keep one, the others are written PATTERN=VALUE")
    return PerTopic(for_all[0] if for_all else default, tuple(others))


def parse_value(key: Key, text: str) -> Any:
    """Return the value that a text in the file means; a time is a `timedelta`.

    It is None if the text is empty and the key has no default.

    Raises:
        BadValue: The text is no value of the key; the error says what would be right.
        UntranslatablePattern: A pattern cannot be translated.
    """
    if key.per_topic:
        parse = partial(parse_value, replace(key, per_topic=False))
        return per_topic(text, parse, parse(key.default) if key.default else None)
    if key.parse is not None:
        return key.parse(text)
    if key.choices:
        return choice(text, key.choices)
    if key.kind is ValueKind.INTEGER:
        return _number(key, text)
    if key.kind in _OF_KINDS:
        return _OF_KINDS[key.kind](text)
    return text.strip() or (None if key.default is None else "")


def _number(key: Key, text: str) -> int | timedelta:
    number = integer(text, key.minimum, key.maximum)
    if key.minimum == -1 and number == 0:
        raise BadValue("is 0, out of range: it takes a number from 1, or -1 for the broker's default")
    unit = _UNITS.get(key.name.rpartition(".")[2])
    if unit is None:
        return number
    try:
        return timedelta(**{unit: number})
    except OverflowError as exc:
        raise BadValue(f"is {number}, out of range: nobody waits that long") from exc


def key_field(key: Key) -> Any:
    """Declare a field of settings that has the value of a key."""
    unset = key.default is None and not key.per_topic
    return field(default=None if unset else parse_value(key, key.default or ""), metadata={"key": key})


def field_keys(settings: type) -> Mapping[str, Key]:
    """Return the keys of the fields that `key_field` declared, by the field's name."""
    return {field.name: field.metadata["key"] for field in fields(settings) if "key" in field.metadata}
