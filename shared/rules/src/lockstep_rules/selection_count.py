"""The count of names that a selection takes. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from lockstep_rules.filters import (
    DEFAULT_GROUPS,
    DEFAULT_GROUPS_EXCLUDE,
    DEFAULT_TOPICS,
    DEFAULT_TOPICS_EXCLUDE,
    NameFilter,
    Names,
)
from lockstep_rules.policy import ReplicationPolicy
from lockstep_state.names import LOCKSTEP_PREFIX, OUR_GROUPS


@dataclass(frozen=True, slots=True)
class SelectionCount:
    """The count of existing names.

    If a list of patterns selects no name, `included` counts the names that it includes before its excludes. Otherwise
    `included` is `selected`. All counts are 0 for an empty list, and for the default patterns.
    """

    total: int = 0
    included: int = 0
    selected: int = 0

    @property
    def is_nothing(self) -> bool:
        """Names exist, and none of them is selected."""
        return self.total > 0 and not self.selected

    def sentence(self, noun: str, cluster: str, keys: tuple[str, str]) -> str:
        """Return the selection, such as `0 of 8 topics of A match`, with the key that decides.

        `keys` are those of the patterns that include, and of those that exclude.
        """
        counts = f"{self.selected:,} of {self.total:,} {noun}"
        if self.is_nothing and self.included:
            return f"{counts} of {cluster} match: {keys[1]} takes all {self.included:,} that {keys[0]} includes"
        return f"{counts} of {cluster} match {keys[0]}"


NOT_COUNTED = SelectionCount()

DEFAULTS = (NameFilter(DEFAULT_TOPICS, DEFAULT_TOPICS_EXCLUDE), NameFilter(DEFAULT_GROUPS, DEFAULT_GROUPS_EXCLUDE))

TOPIC_KEYS = ("topics", "topics.exclude")
GROUP_KEYS = ("groups", "groups.exclude")


def count_topics(names: Iterable[str], topics: Names, policy: ReplicationPolicy) -> SelectionCount:
    """Count the topics of users. Other rules select internal topics and heartbeats."""
    return _count(
        (
            name
            for name in names
            if not (
                name.startswith(LOCKSTEP_PREFIX) or policy.is_internal_topic(name) or policy.is_heartbeats_topic(name)
            )
        ),
        topics,
    )


def count_groups(names: Iterable[str], groups: Names) -> SelectionCount:
    """Count the consumer groups of users."""
    return _count((name for name in names if not name.startswith(OUR_GROUPS)), groups)


def _count(names: Iterable[str], selection: Names) -> SelectionCount:
    if isinstance(selection, NameFilter) and (not selection.include or selection in DEFAULTS):
        return SelectionCount()  # none is wanted, or the file says nothing
    all_names = list(names)
    selected = sum(map(selection.matches, all_names))
    if not isinstance(selection, NameFilter) or selected:
        return SelectionCount(len(all_names), selected, selected)
    included = NameFilter(selection.include)
    return SelectionCount(len(all_names), sum(map(included.matches, all_names)), 0)
