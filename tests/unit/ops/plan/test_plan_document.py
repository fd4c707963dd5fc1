"""A plan and a comparison are what their schemas say, and have no secret."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lockstep_ops.plan.effective_settings import read_effective
from lockstep_ops.plan.plan_document import as_text, read_basis, read_body
from lockstep_ops.plan.rules.comparison import as_body as comparison_body
from lockstep_ops.plan.rules.comparison import compare
from lockstep_ops.plan.rules.flow_facts import FlowFacts, ReachedPosition
from lockstep_ops.plan.rules.flow_plan import LOCKSTEP, MissingRight, Plan, PlannedGroup
from lockstep_ops.plan.rules.plan_builder import build_flow_plan, build_plan
from lockstep_ops.status.report import PausedPart
from lockstep_state.schemas import schema
from tests.support.json_schema import faults
from tests.support.plan_facts import cluster, facts, log, settings_for, topic

RICH = {
    "groups": (PlannedGroup(group="billing", fate="create"), PlannedGroup(group="audit", fate="active", reason="r")),
    "rights": (MissingRight(cluster="B", lacks="User:x lacks Read", command="kafka-acls ..."),),
    "remarks": ("a remark",),
    "unaccounted": {"A.orders": 3},
}


def made(*flow_facts: FlowFacts, file: str = "mm2.properties") -> Plan:
    return build_plan(file, 1, "0.1.0", [build_flow_plan(item, None, {"topics": "orders"}) for item in flow_facts])


@pytest.mark.parametrize(
    "found", [facts(settings_for()), facts(settings_for(), **RICH), facts(settings_for(), logs={})]
)
def test_plan_is_what_its_schema_describes(found: FlowFacts) -> None:
    body = json.loads(as_text(made(found)))
    assert list(faults(body, schema("plan"), "plan")) == []
    assert next(iter(body.items())) == ("version", 1)


def test_comparison_is_what_its_schema_describes() -> None:
    one, other = made(facts(settings_for())), made(facts(settings_for(), **RICH), file="other.yaml")
    body = json.loads(json.dumps(comparison_body(compare(one, other))))
    assert list(faults(body, schema("plan-comparison"), "comparison")) == []


def test_basis_is_read_back_from_the_file(tmp_path: Path) -> None:
    path, plan = tmp_path / "plan.json", made(facts(settings_for()))
    path.write_text(as_text(plan))
    (flow,) = read_body(path)["flows"]
    assert read_basis(path, flow["source"]) == plan.flows[0].source
    assert read_basis(path, flow["target"]) == plan.flows[0].target


def test_basis_has_the_configs_that_the_plan_relies_on() -> None:
    source = cluster("A", {"orders": topic(retention_ms="7", own={"segment.ms": "9"})})
    configs = made(facts(settings_for(), source=source)).flows[0].source.topics["orders"].configs
    assert configs["retention.ms"] == "7"
    assert configs["segment.ms"] == "9"


def test_effective_settings_have_no_secret(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="hunter2";'
    path.write_text(
        "clusters = A, B\nA.bootstrap.servers = a:9092\nB.bootstrap.servers = b:9092\nA->B.enabled = true\n"
        f"A.security.protocol = SASL_PLAINTEXT\nA.sasl.mechanism = PLAIN\nA.sasl.jaas.config = {jaas}\n"
    )
    flows = read_effective(path, {}).flows
    assert "A: sasl.jaas.config" in flows["A->B"]
    assert "hunter2" not in json.dumps(flows)


# -- the summary -------------------------------------------------------------------------------------------------------


def test_summary_counts_what_is_created_and_begins() -> None:
    summary = made(facts(settings_for(), **RICH)).summary
    assert (summary.create, summary.alter, summary.delete, summary.begin) == (2, 0, 0, 1)
    assert (summary.hazards, summary.errors, summary.notes, summary.rights) == (2, 1, 0, 1)
    assert (summary.records, summary.bytes) == (100, 1000)


def test_partition_that_goes_on_does_not_begin_and_an_unknown_flow_is_unknown() -> None:
    summary = made(facts(settings_for(), reached={("orders", 0): ReachedPosition(50, LOCKSTEP)})).summary
    assert (summary.begin, summary.records) == (0, 50)
    summary = made(facts(settings_for()), facts(settings_for(), logs={})).summary
    assert (summary.records, summary.bytes, summary.seconds) == (None, None, None)


def test_summary_of_several_flows_has_the_slowest_time() -> None:
    slow = facts(settings_for(), logs={("orders", 0): log(size=500_000_000, age_ms=1000)})
    summary = made(facts(settings_for()), slow).summary
    assert summary.seconds == 10, "500 MB at the assumed 50 MB/s"
    assert summary.bytes == 500_001_000


# -- two files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [{}, {"logs": {("orders", 0): log(101)}}], ids=["equal", "positions that move"])
def test_files_that_plan_the_same_do_not_differ(other: dict[str, Any]) -> None:
    assert compare(made(facts(settings_for())), made(facts(settings_for(), **other))).is_empty


def test_settings_and_lines_that_differ_are_named() -> None:
    plan = made(facts(settings_for()))
    flow = replace(plan.flows[0], settings={"topics": ".*", "tasks.max": "2"}, changes=())
    comparison = compare(plan, replace(plan, file="other", flows=(flow,)))
    assert [(item.key, item.this, item.other) for item in comparison.settings] == [
        ("tasks.max", None, "2"),
        ("topics", "orders", ".*"),
    ]
    assert [(line.only, line.line.partition(":")[0]) for line in comparison.plan] == [("this", "+ topic A.orders on B")]


def test_flow_of_one_file_alone_differs_as_a_whole() -> None:
    plan = made(facts(settings_for()))
    comparison = compare(plan, replace(plan, flows=()))
    assert {line.only for line in comparison.plan} == {"this"}
    assert any(line.line.startswith("copy orders to A.orders") for line in comparison.plan)


def test_basis_leaves_out_what_is_not_there_yet() -> None:
    coming = replace(topic(), is_there=False)
    flow = facts(settings_for(), source=cluster("A", {"orders": topic(), "heartbeats": coming}))
    assert list(made(flow).flows[0].source.topics) == ["orders"]


def test_plan_has_what_is_held_back_in_its_document() -> None:
    flow = facts(settings_for(), held_back=(PausedPart("topic:orders", "paused"),))
    body = json.loads(as_text(made(flow)))
    assert body["flows"][0]["held_back"] == [{"scope": "topic:orders", "wanted": "paused"}]
    assert list(faults(body, schema("plan"), "plan")) == []
