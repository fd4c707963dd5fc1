"""Names and numbers as people read them. Pure."""

import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime

_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
"""Unicode's categories of characters that move the cursor, turn the line round, or show nothing."""


def visible(text: str) -> str:
    r"""Return the text with each unseen character as Python writes it (`\t`).

    Unseen characters would break a line or hide something written.
    """
    return "".join(
        character.encode("unicode_escape").decode() if unicodedata.category(character) in _UNSEEN else character
        for character in text
    )


def without_name(reason: str, kind: str, name: str) -> str:
    """Return a reason without the name of its subject in front, which is shown anyhow."""
    for before in (f"{kind} {name}: ", f"{name}: "):
        if reason.startswith(before):
            return reason.removeprefix(before)
    return reason


def as_sentence(text: str) -> str:
    """Return the text with a full stop, unless it ends in one."""
    return text if not text or text.endswith((".", "!", "?", ":")) else f"{text}."


def in_sentences(parts: Iterable[str]) -> str:
    """Return the parts as sentences, each once and none that is empty."""
    return " ".join(dict.fromkeys(as_sentence(part) for part in parts if part))


def shorten(names: Iterable[str], most: int = 5, separator: str = ", ") -> str:
    """Return the first `most` names as a text, and how many more there are."""
    names = list(names)
    shown = separator.join(names[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown


def name_partitions(partitions: Iterable[tuple[str, int]], most: int = 5) -> str:
    """Return the first `most` partitions as a text: `orders-0, orders-1 and 7 more`."""
    return shorten([f"{topic}-{number}" for topic, number in partitions], most)


_TIMES = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))
_BYTES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def count_text(count: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun: `1 topic`, `2,000 topics`."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def in_time(ms: int) -> str:
    """Return a duration in its largest unit: `350 ms`, `2.4 s`, `12 min`."""
    for size, unit in _TIMES:
        if ms >= size:
            amount = ms / size
            return f"{amount:.1f} {unit}" if amount < 10 else f"{amount:,.0f} {unit}"
    return f"{ms} ms"


def lasting(since_ms: int, now_ms: int) -> str:
    """Return how long something has lasted.

    The clocks of two machines may differ, so a time in the future counts as now.
    """
    return in_time(max(0, now_ms - since_ms))


def ago(then_ms: int, now_ms: int) -> str:
    """Return how long ago something was, or "" if it never was."""
    return f"{lasting(then_ms, now_ms)} ago" if then_ms > 0 else ""


def utc_moment(ms: int) -> str:
    """Return a time in Unix milliseconds as RFC 3339, in UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


def in_bytes(size: int) -> str:
    """Return a size as a text: `512 B`, `1.5 MiB`."""
    for unit_size, unit in _BYTES:
        if size >= unit_size:
            return f"{size / unit_size:.1f} {unit}"
    return f"{size} B"
