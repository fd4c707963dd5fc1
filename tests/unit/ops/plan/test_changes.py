"""Changes of a plan: one line each, with its sign."""

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
    return [
        change_text(change) for change in planned_changes(facts(settings_for(), **{"partitions": NOTHING, **fields}))
    ]


ACL = "acl ALLOW READ on TOPIC A.orders (LITERAL) for User:anna from * on B"
MADE = TopicSyncPlan((Create("orders", "A.orders", 1),))
STATE_TOPIC = ControlTopicFacts("B", "mm2-lockstep-state.A.internal", 1, -1, {"cleanup.policy": "compact"})
SYNCS_TOPIC = ControlTopicFacts("A", "mm2-offset-syncs.B.internal", 1, 5)


def altered(before: str | None, after: str | None) -> dict[str, Any]:
    return {"config_changes": (ConfigChange("orders", "A.orders", "retention.ms", before, after),)}


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({}, []),
        (
            {
                "source": cluster("A", {"orders": topic(3, own={"retention.ms": "5"})}),
                "partitions": TopicSyncPlan((Create("orders", "A.orders", 3),)),
            },
            ["+ topic A.orders on B: 3 partitions, replication factor 2, retention.ms=5, from orders"],
        ),
        (
            {"partitions": MADE, "target": cluster("B", brokers=1)},
            ["+ topic A.orders on B: 1 partition, replication factor 1, from orders"],
        ),
        ({"partitions": MADE, "refused": {"A.orders": "no"}}, []),
        ({"partitions": MADE, "unreadable": {"orders": "A.orders exists on B, and may not be described"}}, []),
        (
            {"partitions": TopicSyncPlan(grow=(Grow("orders", "A.orders", 2, 5),))},
            ["~ partitions A.orders on B: 2 -> 5, as orders has"],
        ),
        (altered("1", "2"), ["~ config A.orders on B: retention.ms 1 -> 2, as orders has"]),
        (altered(None, "2"), ["~ config A.orders on B: retention.ms unset -> 2, as orders has"]),
        (altered("1", None), ["~ config A.orders on B: retention.ms 1 -> the brokers' default, as orders has"]),
        ({"acls": AclFacts((READ,), (READ,))}, [f"+ {ACL}", f"- {ACL}"]),
        (
            {"control_topics": (STATE_TOPIC, SYNCS_TOPIC)},
            [
                "+ control-topic mm2-lockstep-state.A.internal on B: 1 partition, the brokers' replication factor, "
                "cleanup.policy=compact",
                "+ control-topic mm2-offset-syncs.B.internal on A: 1 partition, replication factor 3",
            ],
        ),
        ({"control_topics": (STATE_TOPIC,), "refused": {STATE_TOPIC.name: "no"}}, []),
    ],
)
def test_change_has_its_line_with_its_sign(fields: dict[str, Any], shown: list[str]) -> None:
    assert lines(**fields) == shown


@pytest.mark.parametrize("fate", ["sync", "checkpoints", "active", "excluded", "other-protocol", "unreadable"])
def test_only_a_group_that_is_created_is_a_change(fate: str) -> None:
    groups = PlannedGroup(group="billing", fate="create"), PlannedGroup(group="audit", fate=fate)
    assert lines(groups=groups) == ["+ group billing on B: with its offsets, translated"]
