"""Listed groups that may get checkpoints (`mm2-behaviour.md` §3.5, conformance nos. 28, 39 and 40)."""

import pytest

from lockstep_checkpoint.source_groups import find_hidden_groups
from lockstep_kafka.common.errors import NotPermitted
from lockstep_rules.filters import DEFAULT_GROUPS, DEFAULT_GROUPS_EXCLUDE, NameFilter
from lockstep_rules.groups.group_selection import is_consumer_group
from lockstep_state.names import Flow, service_group

DEFAULTS = NameFilter(DEFAULT_GROUPS, DEFAULT_GROUPS_EXCLUDE)


@pytest.mark.parametrize(
    ("group", "kind", "names", "counts"),
    [
        *(("billing", kind, DEFAULTS, True) for kind in ("CLASSIC", "CONSUMER", "", "UNKNOWN")),
        *(("billing", kind, DEFAULTS, False) for kind in ("SHARE", "STREAMS")),
        *((group, "CLASSIC", DEFAULTS, False) for group in ("console-consumer-1", "connect-sink", "__internal")),
        ("group1", "CLASSIC", NameFilter(("group1",)), True),
        ("group2", "CLASSIC", NameFilter(("group1",)), False),
    ],
)
def test_mm2_028_040_group_counts_by_its_type_and_name(group: str, kind: str, names: NameFilter, counts: bool) -> None:
    assert is_consumer_group(group, kind, names) is counts


@pytest.mark.parametrize("group_id", [None, "blue"])
def test_own_service_groups_are_never_selected(group_id: str | None) -> None:
    ours = service_group("checkpoint", Flow("A", "B"), group_id)
    assert not is_consumer_group(ours, "CLASSIC", NameFilter((".*",)))


def test_a_group_is_hidden_by_a_topic_that_is_denied_and_by_no_other() -> None:
    orders, payments = (NotPermitted("A", "to describe", f"topic {name}") for name in ("orders", "payments"))
    topics = {"one": {"orders", "x"}, "two": {"x"}, "three": {"payments", "orders"}, "four": set[str]()}
    denied = {"payments": payments, "orders": orders, "unused": orders}
    assert find_hidden_groups(topics, denied) == {"one": orders, "three": orders}
    assert find_hidden_groups(topics, {}) == {}
