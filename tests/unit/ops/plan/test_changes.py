"""Each change that a service would make has its line, with its sign."""

from typing import Any

import pytest

from lockstep_ops.plan.rules.changes import change_text, planned_changes
from lockstep_ops.plan.rules.flow_facts import AclFacts, ConfigChange, ControlTopicFacts
from lockstep_ops.plan.rules.flow_plan import PlannedGroup
from lockstep_rules.topic_plan import Create, Grow, TopicSyncPlan
from lockstep_state.acl_binding import AclBinding
from tests.support.plan_facts import cluster, facts, settings_for, topic

READ = AclBinding(name="A.orders", principal="User:anna", operation="READ", permission="ALLOW")
NOTHING = TopicSyncPlan()


def lines(**fields: Any) -> list[str]:
    return [change_text(one) for one in planned_changes(facts(settings_for(), **{"partitions": NOTHING, **fields}))]


def test_nothing_to_change_has_no_line() -> None:
    assert lines() == []


def test_new_topic_has_partitions_factor_and_configs() -> None:
    source = cluster("A", {"orders": topic(3, own={"retention.ms": "5"})})
    made = TopicSyncPlan((Create("orders", "A.orders", 3),))
    assert lines(source=source, partitions=made) == [
        "+ topic A.orders on B: 3 partitions, replication factor 2, retention.ms=5, from orders"
    ]


def test_new_topic_gets_no_more_replicas_than_there_are_brokers() -> None:
    made = TopicSyncPlan((Create("orders", "A.orders", 1),))
    (line,) = lines(partitions=made, target=cluster("B", brokers=1))
    assert "1 partition, replication factor 1" in line


def test_topic_that_the_target_refuses_is_no_change() -> None:
    made = TopicSyncPlan((Create("orders", "A.orders", 1),))
    assert lines(partitions=made, refused={"A.orders": "no"}) == []


def test_topic_that_is_there_and_hidden_is_no_change() -> None:
    made = TopicSyncPlan((Create("orders", "A.orders", 1),))
    assert lines(partitions=made, unreadable={"orders": "A.orders exists on B, and it may not be described"}) == []


def test_added_partitions_show_both_numbers() -> None:
    grown = TopicSyncPlan(grow=(Grow("orders", "A.orders", 2, 5),))
    assert lines(partitions=grown) == ["~ partitions A.orders on B: 2 -> 5, as orders has"]


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [("1", "2", "1 -> 2"), (None, "2", "unset -> 2"), ("1", None, "1 -> the brokers' default")],
)
def test_altered_config_shows_both_values(before: str | None, after: str | None, shown: str) -> None:
    change = ConfigChange("orders", "A.orders", "retention.ms", before, after)
    assert lines(config_changes=(change,)) == [f"~ config A.orders on B: retention.ms {shown}, as orders has"]


def test_acls_are_added_and_taken_back() -> None:
    assert lines(acls=AclFacts((READ,), (READ,))) == [
        "+ acl ALLOW READ on TOPIC A.orders (LITERAL) for User:anna from * on B",
        "- acl ALLOW READ on TOPIC A.orders (LITERAL) for User:anna from * on B",
    ]


@pytest.mark.parametrize("fate", ["sync", "checkpoints", "active", "excluded", "other-protocol", "unreadable"])
def test_only_a_group_that_is_created_is_a_change(fate: str) -> None:
    groups = PlannedGroup(group="billing", fate="create"), PlannedGroup(group="audit", fate=fate)
    assert lines(groups=groups) == ["+ group billing on B: with its offsets, translated"]


def test_control_topics_are_created_where_they_belong() -> None:
    control = (
        ControlTopicFacts("B", "mm2-lockstep-state.A.internal", 1, -1, {"cleanup.policy": "compact"}),
        ControlTopicFacts("A", "mm2-offset-syncs.B.internal", 1, 5),
    )
    assert lines(control_topics=control) == [
        "+ control-topic mm2-lockstep-state.A.internal on B: 1 partition, the brokers' replication factor, "
        "cleanup.policy=compact",
        "+ control-topic mm2-offset-syncs.B.internal on A: 1 partition, replication factor 3",
    ]


def test_control_topic_that_a_cluster_refuses_is_no_change() -> None:
    control = (ControlTopicFacts("B", "mm2-lockstep-state.A.internal", 1, -1),)
    assert lines(control_topics=control, refused={"mm2-lockstep-state.A.internal": "no"}) == []
