"""A setting that may differ by topic: `halt, orders.*=skip`.

One element without `=` holds for every topic. The others are a Java regular expression and the value of the topics
whose whole name it matches. The first that matches counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from lockstep_config.text.values import BadValue, split_list
from lockstep_protocol.filters import NameFilter

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class PerTopic(Generic[V]):
    """A value for every topic, and others for some. Can be pickled."""

    default: V
    others: tuple[tuple[NameFilter, V], ...] = ()

    def for_topic(self, topic: str) -> V:
        """What holds for a topic of the source."""
        return next((value for names, value in self.others if names.matches(topic)), self.default)


def per_topic(text: str, value: Callable[[str], V], default: V) -> PerTopic[V]:
    """`text` as in a file; `default` where it has no element for every topic.

    Raises BadValue, also what `value` raises, and UntranslatablePattern."""
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
