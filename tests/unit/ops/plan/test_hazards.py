"""Each hazard is found where it is, and nowhere else."""

import re
from dataclasses import replace
from typing import Any

import pytest

from lockstep_ops.plan.rules.flow_facts import (
    ConfigChange,
    ControlTopicFacts,
    FlowFacts,
    MirrorMakerFacts,
    ReachedPosition,
    TopicClaim,
)
from lockstep_ops.plan.rules.flow_plan import ERROR, LOCKSTEP, NOTE, WARNING, PlanHazard, PlannedGroup
from lockstep_ops.plan.rules.hazards import HAZARDS, found_hazards
from lockstep_rules.selection_count import SelectionCount
from lockstep_rules.topic_plan import Create, LeftOutTopic, Selection, TopicSyncPlan
from tests.support.plan_facts import DAY_MS, HOUR_MS, cluster, facts, forecast, log, settings_for, topic

IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
CLAIM = TopicClaim("C->B", "C")
EXISTS = {"partitions": TopicSyncPlan(), "target": cluster("B", {"A.orders": topic()})}


def hazards(found: FlowFacts, per_second: int = 1_000_000) -> dict[str, PlanHazard]:
    return {one.code: one for one in found_hazards(found, forecast(found, per_second))}


def plain(*lines: str, **fields: Any) -> FlowFacts:
    """The flow A->B with factors that its brokers have, and these facts."""
    return facts(settings_for(*lines), **fields)


def test_plain_flow_has_no_hazard() -> None:
    assert hazards(plain()) == {}


def test_codes_are_unique_and_without_a_gap() -> None:
    assert [one.code for one in HAZARDS] == [f"LS{number:03}" for number in range(1, len(HAZARDS) + 1)]


@pytest.mark.parametrize("kind", HAZARDS, ids=lambda kind: kind.code)
def test_entry_is_fit_for_the_page(kind: Any) -> None:
    assert kind.severity in (ERROR, WARNING, NOTE)
    assert kind.meaning.endswith(".")
    assert not kind.fix.endswith(".")
    assert re.fullmatch(r"[A-Z][A-Za-z0-9 -]+", kind.title), "the anchor of its section is made of it"


# -- the flow ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", ["mm2-lockstep-state.B.internal", "mm2-offsets.B.internal"])
def test_cycle_through_another_deployment_is_found(sign: str) -> None:
    source = cluster("A", {"orders": topic()}, names={"orders": 1, sign: 1})
    found = plain(IDENTITY, source=source)
    one = hazards(found)["LS001"]
    assert one.severity == ERROR
    assert sign in one.details[0]
    assert "B->A" in one.details[0]


def test_cycle_is_none_where_names_show_it_or_the_file_has_both() -> None:
    source = cluster("A", {"orders": topic()}, names={"orders": 1, "mm2-lockstep-state.B.internal": 1})
    assert "LS001" not in hazards(plain(source=source))
    assert "LS001" not in hazards(plain(IDENTITY, source=source, opposite=True))


def test_one_cluster_under_two_aliases_is_found() -> None:
    one = hazards(plain(target=cluster("B", cluster_id="id-of-A")))["LS002"]
    assert one.severity == ERROR
    assert one.details == ("A at a:9092 and B at b:9092 are id-of-A",)


def test_foreign_data_in_a_target_topic_is_found() -> None:
    one = hazards(plain(**EXISTS, unaccounted={"A.orders": 7}))["LS003"]
    assert one.severity == ERROR
    assert one.subjects == ("A.orders",)
    assert "A.orders on B has 7 records" in one.details[0]


def test_data_of_the_opposite_flow_is_not_foreign() -> None:
    found = plain(IDENTITY, **EXISTS, unaccounted={"orders": 7}, opposite=True)
    assert "LS003" not in hazards(found)
    assert "LS003" in hazards(replace(found, opposite=False))


# -- names -------------------------------------------------------------------------------------------------------------


def test_two_topics_of_one_remote_name_collide() -> None:
    one = hazards(plain(selection=Selection({"orders": "all", "payments": "all"})))["LS004"]
    assert one.details == ("orders and payments would all be all on B",)


def test_topic_of_another_flow_collides() -> None:
    one = hazards(plain(claims={"A.orders": CLAIM}))["LS004"]
    assert one.details == ("C->B writes to A.orders on B too",)
    assert "LS004" not in hazards(plain(IDENTITY, claims={"A.orders": CLAIM})), "the names are kept there"


def test_topic_that_two_flows_feed_is_found_with_what_differs() -> None:
    merged = plain(
        IDENTITY,
        selection=Selection({"orders": "orders"}),
        source=cluster("A", {"orders": topic(3)}),
        claims={"orders": replace(CLAIM, topic=topic(6, cleanup_policy="compact"))},
    )
    one = hazards(merged)["LS023"]
    assert (one.severity, one.subjects) == (WARNING, ("orders",))
    assert one.details == (
        "A->B and C->B write to one log of orders on B; it has 3 partitions on A and 6 on C; "
        "cleanup.policy is delete on A and compact on C",
    )
    assert "LS023" not in hazards(replace(merged, claims={"other": CLAIM}))
    assert "LS023" not in hazards(plain(claims={"A.orders": CLAIM})), "a collision"


@pytest.mark.parametrize(("fate", "named"), [("sync", True), ("create", True), ("checkpoints", False)])
def test_group_that_two_flows_move_is_named(fate: str, named: bool) -> None:
    merged = plain(
        IDENTITY,
        selection=Selection({"orders": "orders"}),
        claims={"orders": replace(CLAIM, groups=frozenset({"g", "theirs"}))},
        groups=(PlannedGroup(group="g", fate=fate), PlannedGroup(group="ours", fate="sync")),
    )
    assert hazards(merged)["LS023"].subjects == (("orders", "g") if named else ("orders",))


def test_names_that_differ_in_dots_alone_collide() -> None:
    one = hazards(plain(target=cluster("B", names={"A_orders": 1})))["LS004"]
    assert one.subjects == ("A.orders",)
    assert "A_orders" in one.details[0]


def test_names_that_exist_already_do_not_collide() -> None:
    target = cluster("B", {"A.orders": topic()}, names={"A.orders": 1, "A_orders": 1})
    assert "LS004" not in hazards(plain(partitions=TopicSyncPlan(), target=target))


@pytest.mark.parametrize(("length", "found"), [(247, False), (248, True)])
def test_name_that_grows_too_long_is_found(length: int, found: bool) -> None:
    name = "t" * length
    selection = Selection({name: f"A.{name}"})
    assert ("LS005" in hazards(plain(selection=selection))) is found


# -- topics ------------------------------------------------------------------------------------------------------------


def test_replication_factor_above_the_brokers_is_found() -> None:
    one = hazards(plain(target=cluster("B", brokers=1)))["LS006"]
    assert one.details == ("replication.factor is 2, B has 1 broker: new topics get 1",)
    assert "LS006" not in hazards(plain(partitions=TopicSyncPlan(), target=cluster("B", brokers=1)))


def test_control_topic_with_too_many_replicas_is_found() -> None:
    control = (ControlTopicFacts("B", "heartbeats", 1, 5), ControlTopicFacts("A", "syncs", 1, 3))
    one = hazards(plain(control_topics=control))["LS006"]
    assert one.details == ("heartbeats wants 5 replicas, B has 3 brokers: it gets 3",)


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        pytest.param({"target": cluster("B", message_max=1000)}, "1,000", id="brokers"),
        pytest.param(
            {"partitions": TopicSyncPlan(), "target": cluster("B", {"A.orders": topic(max_message_bytes="5")})},
            "5",
            id="topic",
        ),
        pytest.param({"source": cluster("A", {"orders": topic(own={"max.message.bytes": "9"})})}, "9", id="copied"),
        pytest.param(
            {**EXISTS, "config_changes": (ConfigChange("orders", "A.orders", "max.message.bytes", "1048588", "7"),)},
            "7",
            id="altered",
        ),
    ],
)
def test_smaller_messages_on_the_target_are_found(fields: dict[str, Any], limit: str) -> None:
    one = hazards(plain(**fields))["LS007"]
    assert one.severity == WARNING
    assert one.details == (f"orders takes 1,048,588 bytes on A, A.orders takes {limit}",)


def test_message_limit_that_will_be_copied_is_no_hazard() -> None:
    source = cluster("A", {"orders": topic(max_message_bytes="5000000", own={"max.message.bytes": "5000000"})})
    assert "LS007" not in hazards(plain(source=source))
    unknown = cluster("A", {"orders": topic(max_message_bytes="")})
    assert "LS007" not in hazards(plain(source=unknown, target=cluster("B", message_max=None)))


def test_retention_shorter_than_the_catch_up_is_found() -> None:
    source = cluster("A", {"orders": topic(retention_ms=str(HOUR_MS))})
    found = plain(source=source, logs={("orders", 0): log(1000, 7_200_000, HOUR_MS // 2)})
    one = hazards(found, 1000)["LS008"]
    assert one.subjects == ("orders-0",)
    assert one.details == (
        "orders-0 loses 15 min (500 records) at most before the copy gets there: retention.ms is 1.0 h, the copy "
        "needs 2.0 h",
    )
    assert "LS008" not in hazards(found, 100_000)


def test_topics_that_cycle_detection_leaves_out_are_found() -> None:
    left_out = {"B.orders": LeftOutTopic("its name says that it is a copy of orders of B")}
    one = hazards(plain(selection=Selection({"orders": "A.orders"}, left_out)))["LS009"]
    assert one.details == ("B.orders: its name says that it is a copy of orders of B",)


@pytest.mark.parametrize(
    ("configs", "why"),
    [
        ({"cleanup_policy": "compact"}, "cleanup.policy has compact"),
        ({"cleanup_policy": "compact,delete"}, "cleanup.policy has compact"),
        ({"message_timestamp_type": "LogAppendTime"}, "message.timestamp.type is LogAppendTime"),
    ],
)
def test_topics_that_are_rebuilt_are_noted(configs: dict[str, Any], why: str) -> None:
    found = plain(source=cluster("A", {"orders": topic(**configs)}))
    one = hazards(found)["LS013"]
    assert (one.severity, one.details) == (NOTE, (f"orders: {why}",))
    assert "LS013" not in hazards(replace(found, logs={("orders", 0): log(0, 0)})), "nothing is to be copied"


def test_position_whose_records_are_gone_is_found() -> None:
    reached = {("orders", 0): ReachedPosition(40, LOCKSTEP)}
    one = hazards(plain(logs={("orders", 0): log(100, begin=50)}, reached=reached))["LS014"]
    assert one.details == ("orders-0 goes on at offset 40, and A has lost 10 offsets from there on",)


def test_topic_that_the_target_refuses_is_found() -> None:
    one = hazards(plain(refused={"A.orders": "a policy says no"}))["LS015"]
    assert one.details == ("A.orders: a policy says no",)


def test_long_name_that_the_target_refuses_is_found_once() -> None:
    remote = f"A.{'t' * 250}"
    found = hazards(plain(selection=Selection({"t" * 250: remote}), refused={remote: "too long"}))
    assert "LS005" in found
    assert "LS015" not in found


def test_topic_that_cannot_be_read_is_found() -> None:
    one = hazards(plain(unreadable={"orders": "cluster A does not permit it"}))["LS017"]
    assert (one.severity, one.subjects) == (ERROR, ("orders",))


def test_copy_that_never_catches_up_is_found() -> None:
    size = 2_000_000 * DAY_MS // 1000
    found = hazards(plain(logs={("orders", 0): log(size=size)}))
    assert found["LS018"].details == (
        "producers add 2,000,000 bytes/s to these topics on average, and the copy has 1,000,000",
    )


# -- MirrorMaker 2 and groups ------------------------------------------------------------------------------------------


def test_running_mirror_maker_is_found() -> None:
    running = MirrorMakerFacts("mm2-offsets.A.internal", "A-mm2", 3, own=True, members=2)
    assert hazards(plain(mirror_makers=(running,)))["LS019"].details == ("group A-mm2 on B has 2 members",)
    assert hazards(plain(mirror_makers=(replace(running, members=0),))) == {}


def test_progress_in_another_place_is_found() -> None:
    elsewhere = MirrorMakerFacts("strimzi's topic", "strimzi", 3, own=False)
    assert "3 partitions" in hazards(plain(mirror_makers=(elsewhere,)))["LS020"].details[0]


@pytest.mark.parametrize(
    ("fate", "code"),
    [("active", "LS010"), ("other-protocol", "LS011"), ("excluded", "LS012"), ("unreadable", "LS021")],
)
def test_group_that_is_not_synced_is_found_with_the_reason(fate: str, code: str) -> None:
    found = hazards(plain(groups=(PlannedGroup(group="billing", fate=fate, reason="the reason"),)))
    assert found.keys() == {code}
    assert found[code].details == ("billing: the reason",)


@pytest.mark.parametrize("fate", ["create", "sync", "checkpoints"])
def test_group_that_is_followed_is_no_hazard(fate: str) -> None:
    assert hazards(plain(groups=(PlannedGroup(group="billing", fate=fate),))) == {}


def test_hazard_names_each_subject_once() -> None:
    selection = Selection({"orders": "all", "payments": "all"})
    found = plain(selection=selection, claims={"all": CLAIM}, partitions=TopicSyncPlan((Create("orders", "all", 1),)))
    one = hazards(found)["LS004"]
    assert one.subjects == ("all",)
    assert len(one.details) == 2


# -- selections and replicas -------------------------------------------------------------------------------------------


def test_selection_of_topics_that_matches_nothing_is_found() -> None:
    there = cluster("A", names={"orders": 1, "payments": 1, "heartbeats": 1, "mm2-offsets.B.internal": 1})
    none: dict[str, Any] = {"source": there, "selection": Selection({}), "partitions": TopicSyncPlan(), "logs": {}}
    one = hazards(plain("topics = ORDERS", **none))["LS024"]
    assert (one.severity, one.subjects) == (WARNING, ("topics",))
    assert one.details == ("0 of 2 topics of A match topics",)
    one = hazards(plain("topics = orders", "topics.exclude = .*", **none))["LS024"]
    assert one.details == ("0 of 2 topics of A match: topics.exclude takes all 1 that topics includes",)
    assert "LS024" not in hazards(plain("topics = orders", **none))
    assert "LS024" not in hazards(plain("topics = ORDERS", **{**none, "source": cluster("A")})), "there are none"


def test_selection_of_groups_that_matches_nothing_is_found() -> None:
    one = hazards(plain(group_count=SelectionCount(8, 0, 0)))["LS024"]
    assert (one.subjects, one.details) == (("groups",), ("0 of 8 groups of A match groups",))
    assert "LS024" not in hazards(plain(group_count=SelectionCount(8, 1, 1)))


@pytest.mark.parametrize(("least", "found"), [(None, False), (2, False), (3, True)])
def test_new_topics_below_the_replicas_in_sync_of_brokers_are_found(least: int | None, found: bool) -> None:
    hazard = hazards(plain(target=cluster("B", min_insync=least))).get("LS025")
    assert (hazard is not None) is found
    if hazard is not None:
        assert hazard.details == ("A.orders on B has 2 replicas, and min.insync.replicas is 3",)


def test_new_topics_below_the_replicas_in_sync_of_the_source_are_found() -> None:
    source = cluster("A", {"orders": topic(own={"min.insync.replicas": "3"})})
    found = plain(source=source, target=cluster("B", min_insync=1))
    assert hazards(found)["LS025"].subjects == ("A.orders",)


def test_copies_below_their_replicas_in_sync_are_found() -> None:
    copy = replace(topic(min_insync_replicas="2"), replicas=1)
    found = plain(partitions=TopicSyncPlan(), target=cluster("B", {"A.orders": copy}))
    assert hazards(found)["LS025"].details == ("A.orders on B has 1 replica, and min.insync.replicas is 2",)
    for fine in (replace(copy, replicas=2), replace(copy, replicas=0)):
        assert "LS025" not in hazards(plain(partitions=TopicSyncPlan(), target=cluster("B", {"A.orders": fine})))
