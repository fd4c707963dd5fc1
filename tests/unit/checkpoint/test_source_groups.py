"""Which listed groups may get checkpoints (`mm2-behaviour.md` §3.5, conformance nos. 28, 39 and 40)."""

import pytest

from lockstep_checkpoint.source_groups import hidden
from lockstep_kafka.common.errors import NotPermitted
from lockstep_rules.filters import DEFAULT_GROUPS, DEFAULT_GROUPS_EXCLUDE, NameFilter
from lockstep_rules.groups.group_selection import is_consumer_group
from lockstep_state.names import Flow, service_group

DEFAULTS = NameFilter(DEFAULT_GROUPS, DEFAULT_GROUPS_EXCLUDE)


@pytest.mark.parametrize("kind", ["CLASSIC", "CONSUMER", "", "UNKNOWN"])
def test_classic_and_consumer_groups_count(kind: str) -> None:
    assert is_consumer_group("billing", kind, DEFAULTS)


@pytest.mark.parametrize("kind", ["SHARE", "STREAMS"])
def test_groups_of_other_types_are_not_selected(kind: str) -> None:
    assert not is_consumer_group("billing", kind, DEFAULTS)


@pytest.mark.parametrize("group", ["console-consumer-1", "connect-sink", "__internal"])
def test_excluded_names_do_not(group: str) -> None:
    assert not is_consumer_group(group, "CLASSIC", DEFAULTS)


def test_mm2_028_040_only_the_groups_asked_for_do() -> None:
    only = NameFilter(("group1",))
    assert is_consumer_group("group1", "CLASSIC", only)
    assert not is_consumer_group("group2", "CLASSIC", only)


@pytest.mark.parametrize("group_id", [None, "blue"])
def test_own_service_groups_are_never_selected(group_id: str | None) -> None:
    ours = service_group("checkpoint", Flow("A", "B"), group_id)
    assert not is_consumer_group(ours, "CLASSIC", NameFilter((".*",)))


def test_a_group_is_hidden_by_a_topic_that_is_denied_and_by_no_other() -> None:
    orders, payments = (NotPermitted("A", "to describe", f"topic {name}") for name in ("orders", "payments"))
    topics = {"one": {"orders", "x"}, "two": {"x"}, "three": {"payments", "orders"}, "four": set[str]()}
    denied = {"payments": payments, "orders": orders, "unused": orders}
    assert hidden(topics, denied) == {"one": orders, "three": orders}
    assert hidden(topics, {}) == {}
