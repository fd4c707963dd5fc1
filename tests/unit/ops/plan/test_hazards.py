"""Hazards of a plan: each where it is, and nowhere else."""

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
from lockstep_ops.plan.rules.hazards import HAZARDS, find_hazards
from lockstep_rules.clusters.cluster_capabilities import Role, missing_capabilities
from lockstep_rules.selection_count import SelectionCount
from lockstep_rules.topic_plan import Create, LeftOutTopic, Selection, TopicSyncPlan
from lockstep_state.kafka.kafka_apis import APIS, unfit_requests
from lockstep_state.kafka.kafka_requests import KafkaRequest
from tests.support.plan_facts import DAY_MS, HOUR_MS, cluster, facts, forecast, log, settings_for, topic

IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
CLAIM = TopicClaim("C->B", "C")
MET_ON_ITS_WAY_BACK = Selection(
    {"orders": "eu.orders"},
    {"eu.orders": LeftOutTopic("lockstep.rename gives orders its name")},
    collisions={"eu.orders": ("eu.orders", "orders")},
)
EXISTS = {"partitions": TopicSyncPlan(), "target": cluster("B", {"A.orders": topic()})}


COPIED = {"partitions": TopicSyncPlan()}
FUNCTION = "lockstep.transform.f.topics = orders\nlockstep.transform.f.python = acme:mask"
TWO_TRANSFORMS = "".join(
    f"lockstep.transform.{name}.topics = {pattern}\nlockstep.transform.{name}.mask = $.a: mask\n"
    for name, pattern in (("a", ".*ders"), ("b", "ord.*s"))
)
TO_ONE_NAME = Selection({"orders": "all", "payments": "all"})
LONGEST_NAME = Selection({"t" * 248: f"A.{'t' * 248}"})
ONE_BROKER = cluster("B", brokers=1)
CONTROL = (ControlTopicFacts("B", "heartbeats", 1, 5), ControlTopicFacts("A", "syncs", 1, 3))
LARGE = "orders takes 1,048,588 bytes on A, A.orders takes"
ALTERED = ConfigChange("orders", "A.orders", "max.message.bytes", "1048588", "7")
LEFT_OUT = Selection(
    {"orders": "A.orders"}, {"B.orders": LeftOutTopic("its name says that it is a copy of orders of B")}
)
PASSED_BY_RETENTION = {
    "logs": {("orders", 0): log(100, begin=50)},
    "reached": {("orders", 0): ReachedPosition(40, LOCKSTEP)},
}
FASTER = "producers add 2,000,000 bytes/s to these topics on average, and the copy has 1,000,000"
RUNNING = MirrorMakerFacts("mm2-offsets.A.internal", "A-mm2", 3, own=True, members=2)
NO_TOPICS: dict[str, Any] = {
    "source": cluster("A", names={"orders": 1, "payments": 1, "heartbeats": 1, "mm2-offsets.B.internal": 1}),
    "selection": Selection({}),
    "partitions": TopicSyncPlan(),
    "logs": {},
}
GROUP_CODES = ("LS010", "LS011", "LS012", "LS021")
ALL_EXCLUDED = "0 of 2 topics of A match: topics.exclude takes all 1 that topics includes"


def hazards(flow: FlowFacts, per_second: int = 1_000_000) -> dict[str, PlanHazard]:
    return {hazard.code: hazard for hazard in find_hazards(flow, forecast(flow, per_second))}


def plain(lines: str = "", **fields: Any) -> FlowFacts:
    """The flow A->B with factors that its brokers have, and these facts."""
    return facts(settings_for(*lines.splitlines()), **fields)


def source(**configs: Any) -> Any:
    """The source A with one topic of these configs."""
    return cluster("A", {"orders": topic(**configs)})


APPEND_TIME = source(message_timestamp_type="LogAppendTime")
STRICT_SOURCE = {"source": source(own={"min.insync.replicas": "3"}), "target": cluster("B", min_insync=1)}


def cycle_through(control_topic: str) -> dict[str, Any]:
    """A source on which a deployment of the opposite direction has this topic."""
    names = {"orders": 1, control_topic: 1}
    return {"lines": IDENTITY, "source": cluster("A", {"orders": topic()}, names=names)}


def group(fate: str) -> dict[str, Any]:
    return {"groups": (PlannedGroup(group="billing", fate=fate, reason="the reason"),)}


def copies(replicas: int) -> dict[str, Any]:
    """A copy that needs two replicas in sync, and has so many replicas (0: unknown)."""
    copy = replace(topic(min_insync_replicas="2"), replicas=replicas)
    return {**COPIED, "target": cluster("B", {"A.orders": copy})}


def test_plain_flow_has_no_hazard() -> None:
    assert hazards(plain()) == {}


def test_codes_are_unique_and_without_a_gap() -> None:
    assert [kind.code for kind in HAZARDS] == [f"LS{number:03}" for number in range(1, len(HAZARDS) + 1)]


@pytest.mark.parametrize("kind", HAZARDS, ids=lambda kind: kind.code)
def test_entry_is_fit_for_the_page(kind: Any) -> None:
    assert kind.severity in (ERROR, WARNING, NOTE)
    assert kind.meaning.endswith(".")
    assert not kind.fix.endswith(".")
    assert re.fullmatch(r"[A-Z][A-Za-z0-9 -]+", kind.title), "the anchor of its section is made of it"


# -- the flow ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "fields", "details"),
    [
        ("LS001", cycle_through("mm2-lockstep-state.B.internal"), "mm2-lockstep-state.B.internal"),
        ("LS001", cycle_through("mm2-offsets.B.internal"), "mm2-offsets.B.internal"),
        ("LS001", cycle_through("mm2-offsets.B.internal"), "B->A"),
        ("LS002", {"target": cluster("B", cluster_id="id-of-A")}, "A at a:9092 and B at b:9092 are id-of-A"),
        ("LS003", {**EXISTS, "unaccounted": {"A.orders": 7}}, "A.orders on B has 7 records"),
        ("LS003", {"lines": IDENTITY, **EXISTS, "unaccounted": {"orders": 7}}, "orders on B has 7 records"),
        ("LS004", {"selection": TO_ONE_NAME}, "orders and payments would all be all on B"),
        ("LS004", {"claims": {"A.orders": CLAIM}}, "C->B writes to A.orders on B too"),
        ("LS004", {"target": cluster("B", names={"A_orders": 1})}, "A_orders"),
        ("LS004", {"selection": MET_ON_ITS_WAY_BACK}, "eu.orders and orders would all be eu.orders on B"),
        ("LS004", {"selection": MET_ON_ITS_WAY_BACK, "comes_back": {"eu.orders": "x"}}, "eu.orders and orders would"),
        ("LS005", {"selection": LONGEST_NAME}, "t" * 248),
        ("LS006", {"target": ONE_BROKER}, "replication.factor is 2, B has 1 broker: new topics get 1"),
        ("LS006", {"control_topics": CONTROL}, "heartbeats wants 5 replicas, B has 3 brokers: it gets 3"),
        ("LS007", {"target": cluster("B", message_max=1000)}, f"{LARGE} 1,000"),
        ("LS007", {**COPIED, "target": cluster("B", {"A.orders": topic(max_message_bytes="5")})}, f"{LARGE} 5"),
        ("LS007", {"source": source(own={"max.message.bytes": "9"})}, f"{LARGE} 9"),
        ("LS007", {**EXISTS, "config_changes": (ALTERED,)}, f"{LARGE} 7"),
        ("LS009", {"selection": LEFT_OUT}, "B.orders: its name says that it is a copy of orders of B"),
        ("LS010", group("active"), "billing: the reason"),
        ("LS011", group("other-protocol"), "billing: the reason"),
        ("LS012", group("excluded"), "billing: the reason"),
        ("LS013", {"source": source(cleanup_policy="compact")}, "orders: cleanup.policy has compact"),
        ("LS013", {"source": source(cleanup_policy="compact,delete")}, "orders: cleanup.policy has compact"),
        ("LS013", {"source": APPEND_TIME}, "orders: message.timestamp.type is LogAppendTime"),
        ("LS014", PASSED_BY_RETENTION, "orders-0 goes on at offset 40, and A has lost 10 offsets from there on"),
        ("LS015", {"refused": {"A.orders": "a policy says no"}}, "A.orders: a policy says no"),
        ("LS017", {"unreadable": {"orders": "cluster A does not permit it"}}, "cluster A does not permit it"),
        ("LS018", {"logs": {("orders", 0): log(size=2_000_000 * DAY_MS // 1000)}}, FASTER),
        ("LS019", {"mirror_makers": (RUNNING,)}, "group A-mm2 on B has 2 members"),
        ("LS020", {"mirror_makers": (MirrorMakerFacts("strimzi's topic", "strimzi", 3, own=False),)}, "3 partitions"),
        ("LS021", group("unreadable"), "billing: the reason"),
        ("LS024", {"lines": "topics = ORDERS", **NO_TOPICS}, "0 of 2 topics of A match topics"),
        ("LS024", {"lines": "topics = orders\ntopics.exclude = .*", **NO_TOPICS}, ALL_EXCLUDED),
        ("LS024", {"group_count": SelectionCount(8, 0, 0)}, "0 of 8 groups of A match groups"),
        ("LS025", {"target": cluster("B", min_insync=3)}, "A.orders on B has 2 replicas, and min.insync.replicas is 3"),
        ("LS025", STRICT_SOURCE, "A.orders on B has 2 replicas, and min.insync.replicas is 3"),
        ("LS025", copies(1), "A.orders on B has 1 replica, and min.insync.replicas is 2"),
        ("LS032", {"lines": TWO_TRANSFORMS}, "orders: the transforms a and b both select orders"),
        (
            "LS033",
            {"lines": "lockstep.filter = header x", "source": source(cleanup_policy="compact")},
            "orders is compacted, and its rules may drop tombstones",
        ),
        (
            "LS033",
            {"lines": "lockstep.filter = header x and not tombstone", "source": source(cleanup_policy="compact")},
            "orders is compacted, and its rules may drop records, but no tombstones",
        ),
        (
            "LS033",
            {"lines": FUNCTION, "source": source(cleanup_policy="compact")},
            "orders is compacted, and its transform f, a function, may drop records, but no tombstones",
        ),
        ("LS034", {"lines": FUNCTION}, "orders: the transform f, a function, may make key or timestamp anew"),
        ("LS013", {"lines": "lockstep.headers = drop x"}, "orders: lockstep.filter or lockstep.headers holds for it"),
        ("LS035", {"former_names": {"orders": "eu.orders"}}, "orders was copied to eu.orders on B, and would be"),
    ],
)
def test_hazard_is_found_with_its_details(code: str, fields: dict[str, Any], details: str) -> None:
    hazard = hazards(plain(**fields))[code]
    assert len(hazard.details) == 1
    assert details in hazard.details[0]


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        ("LS001", {**cycle_through("mm2-lockstep-state.B.internal"), "lines": ""}),
        ("LS033", {"lines": "lockstep.headers = drop x", "source": source(cleanup_policy="compact")}),
        ("LS033", {"lines": "lockstep.filter = header x"}),
        ("LS033", {"lines": FUNCTION}),
        (
            "LS033",
            {
                "lines": f"{FUNCTION}\nlockstep.transform.f.filtered = tombstone",
                "source": source(cleanup_policy="compact"),
            },
        ),
        ("LS001", {**cycle_through("mm2-lockstep-state.B.internal"), "opposite": True}),
        ("LS003", {"lines": IDENTITY, **EXISTS, "unaccounted": {"orders": 7}, "opposite": True}),
        ("LS004", {"lines": IDENTITY, "claims": {"A.orders": CLAIM}}),
        ("LS004", {**COPIED, "target": cluster("B", {"A.orders": topic()}, names={"A.orders": 1, "A_orders": 1})}),
        ("LS004", {"selection": MET_ON_ITS_WAY_BACK, "comes_back": {"eu.orders": "eu.orders"}}),
        ("LS005", {"selection": Selection({"t" * 247: f"A.{'t' * 247}"})}),
        ("LS006", {**COPIED, "target": ONE_BROKER}),
        ("LS007", {"source": source(max_message_bytes="5000000", own={"max.message.bytes": "5000000"})}),
        ("LS007", {"source": source(max_message_bytes=""), "target": cluster("B", message_max=None)}),
        ("LS013", {"source": APPEND_TIME, "logs": {("orders", 0): log(0, 0)}}),
        ("LS019", {"mirror_makers": (replace(RUNNING, members=0),)}),
        ("LS020", {"mirror_makers": (replace(RUNNING, members=0),)}),
        *((code, group(fate)) for fate in ("create", "sync", "checkpoints") for code in GROUP_CODES),
        ("LS024", {"lines": "topics = orders", **NO_TOPICS}),
        ("LS024", {"lines": "topics = ORDERS", **NO_TOPICS, "source": cluster("A")}),
        ("LS024", {"group_count": SelectionCount(8, 1, 1)}),
        ("LS025", {"target": cluster("B", min_insync=None)}),
        ("LS025", {"target": cluster("B", min_insync=2)}),
        ("LS025", copies(2)),
        ("LS025", copies(0)),
        ("LS032", {"lines": TWO_TRANSFORMS.replace("ord.*s", "ord.*x")}),
    ],
)
def test_hazard_is_not_found_where_it_is_not(code: str, fields: dict[str, Any]) -> None:
    assert code not in hazards(plain(**fields))


@pytest.mark.parametrize("severity", [ERROR, WARNING, NOTE])
def test_hazards_of_each_severity_are_these(severity: str) -> None:
    codes = {ERROR: "LS001 LS002 LS003 LS017", WARNING: "LS007 LS023 LS024", NOTE: "LS013"}
    assert set(codes[severity].split()) <= {kind.code for kind in HAZARDS if kind.severity == severity}


def test_topic_that_two_flows_feed_is_found_with_what_differs() -> None:
    merged = plain(
        IDENTITY,
        selection=Selection({"orders": "orders"}),
        source=cluster("A", {"orders": topic(3)}),
        claims={"orders": replace(CLAIM, topic=topic(6, cleanup_policy="compact"))},
    )
    hazard = hazards(merged)["LS023"]
    assert hazard.subjects == ("orders",)
    assert hazard.details == (
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


def test_retention_shorter_than_the_catch_up_is_found() -> None:
    flow = plain(source=source(retention_ms=str(HOUR_MS)), logs={("orders", 0): log(1000, 7_200_000, HOUR_MS // 2)})
    hazard = hazards(flow, 1000)["LS008"]
    assert hazard.subjects == ("orders-0",)
    assert hazard.details == (
        "orders-0 loses 15 min (500 records) at most before the copy gets there: retention.ms is 1.0 h, the copy "
        "needs 2.0 h",
    )
    assert "LS008" not in hazards(flow, 100_000)


DELAYED = "lockstep.delay = 30m"


@pytest.mark.parametrize(
    ("kept", "details"),
    [
        ({"retention_ms": str(HOUR_MS)}, "orders: retention.ms is 1.0 h, lockstep.delay is 30 min: 30 min are left"),
        ({"retention_ms": "600000"}, "orders: retention.ms is 10 min, lockstep.delay is 30 min: records are deleted"),
        ({"retention_bytes": "60000"}, "orders: retention.bytes is 60,000, which is 1.0 h of its log, lockstep.delay"),
        (
            {"cleanup_policy": "compact", "delete_retention_ms": "600000"},
            "orders: delete.retention.ms is 10 min, lockstep.delay is 30 min: tombstones are deleted before they are",
        ),
    ],
)
def test_retention_that_leaves_a_delayed_copy_little_room_is_found(kept: dict[str, str], details: str) -> None:
    logs = {("orders", 0): log(1000, 60_000, HOUR_MS)}
    hazard = hazards(plain(DELAYED, source=source(**kept), logs=logs))["LS036"]
    assert hazard.subjects == ("orders",)
    (found,) = hazard.details
    assert found.startswith(details)
    assert "LS036" not in hazards(plain(source=source(**kept), logs=logs)), "without a delay"


def test_retention_of_the_copy_that_is_shorter_than_the_delay_is_found() -> None:
    kept = {"source": source(), "target": cluster("B", {"A.orders": topic(retention_ms="600000")})}
    (found,) = hazards(plain(DELAYED, **kept))["LS036"].details
    assert found == (
        "orders: retention.ms of its copy is 10 min, lockstep.delay is 30 min: records are deleted when they come"
    )
    change = ConfigChange("orders", "A.orders", "retention.ms", "600000", str(7 * DAY_MS))
    assert "LS036" not in hazards(plain(DELAYED, **kept, config_changes=(change,))), "it is set anew"


def test_retention_that_leaves_a_delayed_copy_enough_room_is_no_hazard() -> None:
    for kept in (str(HOUR_MS * 3 // 2), "-1"):
        assert "LS036" not in hazards(plain(DELAYED, source=source(retention_ms=kept)))
    compacted = source(cleanup_policy="compact", retention_ms="1000", delete_retention_ms=str(24 * HOUR_MS))
    assert "LS036" not in hazards(plain(DELAYED, source=compacted))
    not_compacted = source(delete_retention_ms="1000")
    assert "LS036" not in hazards(plain(DELAYED, source=not_compacted))
    idle = source(retention_bytes="10")
    assert "LS036" not in hazards(plain(DELAYED, source=idle, logs={("orders", 0): log(0, 0)}))


def test_long_name_that_the_target_refuses_is_found_once() -> None:
    remote = f"A.{'t' * 250}"
    codes = hazards(plain(selection=Selection({"t" * 250: remote}), refused={remote: "too long"})).keys()
    assert "LS005" in codes
    assert "LS015" not in codes


def test_hazard_names_each_subject_once() -> None:
    partitions = TopicSyncPlan((Create("orders", "all", 1),))
    hazard = hazards(plain(selection=TO_ONE_NAME, claims={"all": CLAIM}, partitions=partitions))["LS004"]
    assert hazard.subjects == ("all",)
    assert len(hazard.details) == 2


def test_needed_request_in_older_versions_is_named_with_both_ranges() -> None:
    unfit = unfit_requests({KafkaRequest.PRODUCE: (0, 2)}, ("produce", "fetch"))
    hazard = hazards(plain(target=cluster("B", product="Kafka 0.10", unfit=unfit)))["LS028"]
    produce, fetch = APIS["produce"], APIS["fetch"]
    assert hazard.severity == ERROR
    assert hazard.details == (
        "B (Kafka 0.10) does not know what the flow needs in a version that Lockstep knows: "
        f"Produce (versions 0 to 2, and Lockstep versions {produce.oldest} to {produce.newest}), "
        f"Fetch (none, and Lockstep versions {fetch.oldest} to {fetch.newest})",
    )


def test_kept_names_on_a_target_without_producer_ids_are_named_with_reason_and_way_out() -> None:
    unfit = unfit_requests({}, ("init_producer_id",))
    by_code = hazards(plain(target=cluster("B", product="unknown", unfit=unfit)))
    assert (by_code["LS037"].severity, "LS028" in by_code) == (ERROR, False)
    assert "could not tell copies from its own records" in by_code["LS037"].details[0]
    assert "DefaultReplicationPolicy" in by_code["LS037"].fix


def test_producer_id_of_a_flow_in_transactions_is_a_needed_request() -> None:
    unfit = unfit_requests({}, ("init_producer_id",))
    settings = settings_for("B.exactly.once.source.support = enabled")
    by_code = hazards(replace(plain(target=cluster("B", unfit=unfit)), settings=settings))
    assert "LS028" in by_code
    assert "LS037" not in by_code


def test_request_that_is_done_without_is_a_warning() -> None:
    lacks = tuple(missing_capabilities({}, (Role.TARGET,)))
    hazard = hazards(plain(target=cluster("B", lacks=lacks)))["LS029"]
    assert hazard.severity == WARNING
    assert any("does not know IncrementalAlterConfigs" in detail for detail in hazard.details)


STATE_TOPIC = ControlTopicFacts("B", "mm2-lockstep-state.A.internal", 1, 1)
CONFIG_REFUSALS = {"LS016", "LS026"}


@pytest.mark.parametrize(
    ("fields", "code", "severity", "details"),
    [
        (
            {"refused_configs": {"A.orders": {"flush.ms": "unknown key"}}},
            *("LS016", WARNING, ("A.orders: flush.ms (unknown key)",)),
        ),
        (
            {"control_topics": (STATE_TOPIC,), "refused_configs": {STATE_TOPIC.name: {"segment.bytes": "too small"}}},
            *("LS026", NOTE, (f"{STATE_TOPIC.name} on B is created without segment.bytes (too small)",)),
        ),
        (
            {"factors": {"A.orders": 3, "A.payments": -1}},
            *("LS027", WARNING),
            ("A.orders: B takes a replication factor of 3", "A.payments: B takes its own default"),
        ),
    ],
)
def test_topic_that_a_cluster_creates_otherwise_is_a_hazard(
    fields: dict[str, Any], code: str, severity: str, details: tuple[str, ...]
) -> None:
    hazards_by_code = hazards(plain(**fields))
    assert (hazards_by_code[code].severity, hazards_by_code[code].details) == (severity, details)
    assert hazards_by_code.keys() & (CONFIG_REFUSALS - {code}) == set()


def test_control_topic_that_a_cluster_refuses_keeps_the_flow_from_starting() -> None:
    hazard = hazards(plain(control_topics=(STATE_TOPIC,), refused={STATE_TOPIC.name: "no compaction"}))["LS015"]
    assert hazard.severity == ERROR
    assert "without which the flow does not start: no compaction" in hazard.details[0]


# -- transforms --------------------------------------------------------------------------------------------------------

FILTER = "SELECT * FROM records WHERE json_int(value, '$.n') > 1"


def transformed(statement: str, *lines: str) -> str:
    return "\n".join(("lockstep.transform.pii.topics = orders", f"lockstep.transform.pii.sql = {statement}", *lines))


@pytest.mark.parametrize(
    ("lines", "policy", "lost"),
    [
        (transformed(FILTER), "compact", "records, but no tombstones"),
        (transformed(FILTER, "lockstep.transform.pii.tombstones = filter"), "compact,delete", "tombstones"),
        (transformed(FILTER, "lockstep.transform.pii.filtered = tombstone"), "compact", ""),
        (transformed("SELECT json_mask(value, '$.n', 'mask') AS value FROM records"), "compact", ""),
        (transformed(FILTER), "delete", ""),
    ],
)
def test_a_transform_that_filters_a_compacted_topic(lines: str, policy: str, lost: str) -> None:
    hazard = hazards(plain(lines, source=source(cleanup_policy=policy))).get("LS033")
    if not lost:
        assert hazard is None
    else:
        assert hazard is not None
        assert hazard.details == (f"orders is compacted, and its transform pii may drop {lost}",)


@pytest.mark.parametrize(
    ("statement", "made"),
    [
        ("SELECT upper(key) AS key FROM records", "key"),
        ("SELECT upper(key) AS key, timestamp + INTERVAL 1 HOUR AS timestamp FROM records", "key and timestamp"),
        (FILTER, ""),
    ],
)
def test_a_transform_that_changes_keys_or_timestamps(statement: str, made: str) -> None:
    hazard = hazards(plain(transformed(statement))).get("LS034")
    details = () if hazard is None else hazard.details
    assert details == ((f"orders: the transform pii makes {made} anew",) if made else ())
