"""The counts of selected topics and groups, and the text for an empty selection."""

import pytest

from lockstep_rules.filters import DEFAULT_GROUPS, DEFAULT_GROUPS_EXCLUDE, NameFilter
from lockstep_rules.policy import DefaultReplicationPolicy
from lockstep_rules.selection_count import GROUP_KEYS, TOPIC_KEYS, SelectionCount, count_groups, count_topics

NAMES = ("orders", "payments", "heartbeats", "B.heartbeats", "mm2-offsets.B.internal", "mm2-lockstep-state.B.internal")


@pytest.mark.parametrize(
    ("include", "exclude", "count", "sentence"),
    [
        (("ORDERS",), (), SelectionCount(2, 0, 0), "0 of 2 topics of A match topics"),
        (
            ("orders",),
            ("o.*",),
            SelectionCount(2, 1, 0),
            "0 of 2 topics of A match: topics.exclude takes all 1 that topics includes",
        ),
        ((".*",), ("o.*",), SelectionCount(2, 1, 1), "1 of 2 topics of A match topics"),
    ],
)
def test_topics_of_users_that_match_are_counted(
    include: tuple[str, ...], exclude: tuple[str, ...], count: SelectionCount, sentence: str
) -> None:
    count = count_topics(NAMES, NameFilter(include, exclude), DefaultReplicationPolicy())
    assert (count, count.is_nothing) == (count, count.selected == 0)
    assert count.sentence("topics", "A", TOPIC_KEYS) == sentence


def test_cluster_without_topics_is_no_selection_of_nothing() -> None:
    count = count_topics(NAMES[2:], NameFilter((".*",)), DefaultReplicationPolicy())
    assert (count, count.is_nothing) == (SelectionCount(), False)


def test_empty_list_asks_for_nothing_and_is_no_mistake() -> None:
    assert not count_groups(["billing"], NameFilter(())).is_nothing


def test_defaults_that_take_nothing_are_no_mistake() -> None:
    defaults = NameFilter(DEFAULT_GROUPS, DEFAULT_GROUPS_EXCLUDE)
    assert not count_groups(["console-consumer-7"], defaults).is_nothing
    assert count_groups(["console-consumer-7"], NameFilter((".*",), ("console.*",))).is_nothing


def test_groups_of_lockstep_are_not_counted() -> None:
    count = count_groups(["billing", "lockstep-A-B-checkpoint"], NameFilter((".*",), ("bill.*",)))
    assert (count, count.is_nothing) == (SelectionCount(1, 1, 0), True)
    assert count.sentence("groups", "A", GROUP_KEYS).endswith("groups.exclude takes all 1 that groups includes")
