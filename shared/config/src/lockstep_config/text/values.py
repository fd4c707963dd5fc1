"""Conversions of text to typed values by Kafka's rules (`ConfigDef.parseType`): blanks around a value never count.

Each function raises `BadValue` whose text completes the sentence "KEY ..." and says what would be right.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from lockstep_rules.versions import RuleSet, UnknownVersion, find_rules
from lockstep_state.names import LONGEST_TOPIC, is_topic_name
from lockstep_state.rows.value_types import LATEST_MS

LONGEST_NUMBER = 30
"""The most digits of a number. Java's own numbers have 19."""

LONGEST_DURATION = timedelta(days=365)

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DURATION = re.compile(r"([0-9]{1,12})(ms|s|m|h|d)")
_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class BadValue(ValueError):
    """A key does not take a value. The text says what the key takes."""


def boolean(text: str) -> bool:
    """Return True for `true` and False for `false`, in any case.

    Raises:
        BadValue: The text is another one, which `Boolean.parseBoolean` would take as false.
    """
    if text.strip().lower() in ("true", "false"):
        return is_true(text)
    raise BadValue(f"is {text!r}, which is no boolean: write true or false")


def is_true(text: str) -> bool:
    """Return whether the text is `true`, as `Boolean.parseBoolean`, but blanks around it do not count."""
    return text.strip().lower() == "true"


def integer(text: str, minimum: int | None = None, maximum: int | None = None) -> int:
    """Return a whole number within the limits, both inclusive.

    Raises:
        BadValue: The text is no whole number, or is out of range.
    """
    if not _INTEGER.fullmatch(text.strip()):
        raise BadValue(f"is {text!r}, which is no whole number")
    if len(text.strip()) > LONGEST_NUMBER:
        raise BadValue(f"is a number of {len(text.strip())} digits, out of range")
    number = int(text)
    if minimum is not None and number < minimum:
        raise BadValue(f"is {number}, out of range: the least it may be is {minimum}")
    if maximum is not None and number > maximum:
        raise BadValue(f"is {number}, out of range: the most it may be is {maximum}")
    return number


def choice(text: str, choices: Sequence[str]) -> str:
    """Return one of `choices`, compared without regard to case, as it is spelled there.

    Raises:
        BadValue: The text is none of them.
    """
    for candidate in choices:
        if candidate.lower() == text.strip().lower():
            return candidate
    raise BadValue(f"is {text!r}: it takes {alternatives(choices)}")


def moment(text: str) -> int:
    """Return a point in time as Unix milliseconds, from milliseconds or a date and time with an offset from UTC.

    Raises:
        BadValue: The text is no such time, or is before 1970 or after the year 9999.
    """
    if _INTEGER.fullmatch(text.strip()):
        return integer(text, 0, LATEST_MS)
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        raise BadValue(f"is {text!r}, which is no time: write Unix milliseconds, or 2026-01-31T12:00:00Z") from None
    if time.tzinfo is None:
        raise BadValue(f"is {text!r}, which says no zone: write {text.strip()}Z for UTC, or {text.strip()}+02:00")
    if (milliseconds := int(time.timestamp() * 1000)) < 0:
        raise BadValue(f"is {text!r}, which is before 1970: Kafka has no such time")
    if milliseconds > LATEST_MS:
        raise BadValue(f"is {text!r}, which is after the year 9999 in UTC")
    return milliseconds


def duration(text: str) -> timedelta:
    """Return a length of time, written as `90s`, `30m`, `2h` or `1d`; `0` is none.

    Raises:
        BadValue: The text is no such time, or is longer than a year.
    """
    written = text.strip()
    if written == "0":
        return timedelta(0)
    match = _DURATION.fullmatch(written)
    if match is None:
        raise BadValue(f"is {text!r}, which is no length of time: write 90s, 30m, 2h or 1d, or 0 for none")
    number, unit = match.groups()
    try:
        length = timedelta(**{_UNITS[unit]: int(number)})
    except OverflowError:
        length = timedelta.max
    if length > LONGEST_DURATION:
        raise BadValue(f"is {text!r}, out of range: the most it may be is {LONGEST_DURATION.days}d")
    return length


def progress_topic(text: str) -> str:
    """Return the name of the topic with the progress, by the brokers' rule for names of topics.

    Raises:
        BadValue: No topic may have that name.
    """
    name = text.strip()
    if not name:
        raise BadValue("is empty, and progress needs a topic: name one, or remove the line")
    if not is_topic_name(name):
        raise BadValue(f"is {name!r}, which no topic may be called: write letters, digits, '.', '_' and '-'")
    if len(name) > LONGEST_TOPIC:
        many = f"it has {len(name)} characters, and {LONGEST_TOPIC} are allowed"
        raise BadValue(f"is {name!r}, which no topic may be called: {many}")
    return name


def version(text: str) -> RuleSet:
    """Return the rules of a version of MirrorMaker 2.

    Raises:
        BadValue: The version is not known.
    """
    try:
        return find_rules(text)
    except UnknownVersion as exc:
        raise BadValue(str(exc)) from exc


def split_list(text: str) -> tuple[str, ...]:
    """Return the elements between commas, each once.

    An empty element does not count, as in MirrorMaker before 4.2; `list_remark` reports it.
    """
    return tuple(dict.fromkeys(filter(None, _between_commas(text))))


def list_remark(text: str) -> str:
    """Return a remark on a list that can be used, as the end of the sentence "KEY ..."; empty if there is none."""
    elements = _between_commas(text)
    repeated = sorted({element for element in elements if element and elements.count(element) > 1})
    remarks = [f"names {', '.join(map(repr, repeated))} more than once: it counts once"] if repeated else []
    if text.strip() and "" in elements:
        remarks.append("has a comma too many: nothing is between it and the next, or behind it")
    return "; ".join(remarks)


def _between_commas(text: str) -> list[str]:
    return [element.strip() for element in text.split(",")]


def alternatives(choices: Sequence[str]) -> str:
    """Return the choices in words: `a, b or c`."""
    return " or ".join(filter(None, (", ".join(choices[:-1]), choices[-1])))
