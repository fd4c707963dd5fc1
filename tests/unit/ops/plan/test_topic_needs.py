"""Topics that flows create, and the limits of cloud services."""

from dataclasses import replace
from typing import Any

import pytest

from lockstep_ops.plan.flow_reader import with_claims
from lockstep_ops.plan.rules.flow_facts import FlowFacts
from lockstep_ops.plan.rules.flow_plan import NOTE, WARNING
from lockstep_ops.plan.rules.topic_needs import count_copies, count_of_file, count_own_topics
from lockstep_ops.plan.topic_reader import missing_control_topics
from lockstep_rules.clusters.cluster_kind import ClusterKind
from lockstep_rules.clusters.cluster_limits import TopicCount
from lockstep_rules.topic_plan import Create, Grow, Selection, TopicSyncPlan
from tests.support.plan_facts import cluster, facts, settings_for, topic
from tests.unit.ops.plan.test_hazards import hazards

EVENT_HUBS = cluster("B", names={"there": 4}, product=ClusterKind.EVENT_HUBS)
SERVERLESS = cluster("B", product=ClusterKind.MSK_SERVERLESS)


def new_flow(*lines: str, copies: int = 1, **fields: Any) -> FlowFacts:
    """The flow A->B on clusters that have nothing but its topics, of two partitions each."""
    settings = settings_for(*lines)
    names = [f"orders{number}" for number in range(copies)]
    compacted = {"cleanup.policy": "compact"}
    return facts(
        settings,
        source=cluster("A", {name: topic(2, compacted) for name in names}),
        selection=Selection({name: f"A.{name}" for name in names}),
        partitions=TopicSyncPlan(tuple(Create(name, f"A.{name}", 2) for name in names)),
        control_topics=tuple(missing_control_topics(settings, {"A": {}, "B": {}})),
        **fields,
    )


def test_flow_creates_six_topics_on_the_target_and_one_on_the_source() -> None:
    flow = new_flow()
    assert count_own_topics(flow, flow.target) == TopicCount(topics=6, partitions=35, compacted=28, largest=25)
    assert count_own_topics(flow, flow.source) == TopicCount(topics=1, partitions=1, compacted=1, largest=1)
    assert count_copies(flow, flow.target) == TopicCount(topics=1, partitions=2, compacted=2, largest=2)
    assert count_copies(flow, flow.source) == TopicCount()


def test_flow_of_heartbeats_alone_creates_four_topics() -> None:
    flow = new_flow("A->B.enabled = false", copies=0)
    assert count_own_topics(flow, flow.target) == TopicCount(topics=4, partitions=9, compacted=2, largest=6)


def test_partitions_that_existing_copies_get_are_counted() -> None:
    flow = replace(new_flow(), partitions=TopicSyncPlan(grow=(Grow("orders0", "A.orders0", 2, 5),)))
    assert count_copies(flow, flow.target) == TopicCount(partitions=3)


def test_topic_that_two_flows_need_counts_once() -> None:
    first = new_flow()
    second = replace(first, control_topics=tuple(topic for topic in first.control_topics if topic.name == "heartbeats"))
    assert count_of_file([first, second]) == count_of_file([first])
    assert count_of_file([first])["id-of-B"] == TopicCount(topics=7, partitions=37, compacted=30, largest=25)


def test_service_with_few_topics_is_named_with_what_it_gets() -> None:
    (flow,) = with_claims([new_flow(copies=2, target=EVENT_HUBS)])
    hazard = hazards(flow)["LS030"]
    assert (hazard.severity, hazard.subjects) == (NOTE, ("B",))
    assert hazard.details[0].startswith(
        "On B (Azure Event Hubs) A->B creates 8 topics with 39 partitions, 32 of them compacted: 6 of Lockstep's own, "
        "2 copies. All flows of the file create 8 topics with 39 partitions, 32 of them compacted. "
        "It has 1 topic with 4 partitions. Standard takes 10 topics, 32 partitions of a topic. Premium takes 100 topics"
    )
    assert "LS031" not in hazards(flow)


@pytest.mark.parametrize(
    ("copies", "target", "detail"),
    [
        (4, EVENT_HUBS, "B would have 11 topics. Azure Event Hubs, Standard, takes 10"),
        (47, SERVERLESS, "B would have 122 compacted partitions. MSK Serverless, Default quota, takes 120"),
    ],
)
def test_topics_beyond_the_limit_of_a_service_are_a_warning(copies: int, target: Any, detail: str) -> None:
    hazard = hazards(new_flow(copies=copies, target=target))["LS031"]
    assert (hazard.severity, hazard.details) == (WARNING, (detail,))
    assert "LS031" not in hazards(new_flow(copies=copies - 1, target=target))


def test_limits_of_other_clusters_or_without_creations_are_no_hazard() -> None:
    assert not {"LS030", "LS031"} & hazards(new_flow(target=cluster("B", product="Kafka 4.1"))).keys()
    flow = new_flow(copies=0, target=cluster("B", names={"x": 99}, product=ClusterKind.EVENT_HUBS))
    assert not {"LS030", "LS031"} & hazards(replace(flow, control_topics=())).keys()
