"""A plan as people read it."""

from dataclasses import replace
from typing import Any

import pytest

from lockstep_cli.rendering.plan import SHOWN, comparison_parts, plan_parts, summary_line
from lockstep_ops.plan.rules.comparison import compare
from lockstep_ops.plan.rules.flow_facts import FlowFacts, ReachedPosition
from lockstep_ops.plan.rules.flow_plan import MIRROR_MAKER, MissingRight, PlannedGroup
from lockstep_ops.plan.rules.plan_builder import build_flow_plan, build_plan
from lockstep_ops.status.report import PausedPart
from lockstep_rules.topic_plan import Create, Selection, TopicSyncPlan
from tests.support.plan_facts import HOUR_MS, cluster, facts, log, settings_for, topic
from tests.support.printed import printed


def plan(*flows: FlowFacts) -> Any:
    plans = [build_flow_plan(flow_facts, None, {"topics": "orders"}) for flow_facts in flows]
    return build_plan("mm2.properties", 1, "0.1.0", plans)


def shown(flow_facts: FlowFacts, *, terminal: bool = False) -> str:
    return printed(plan_parts(plan(flow_facts), terminal=terminal), 160, terminal=terminal)


@pytest.mark.parametrize("terminal", [False, True])
def test_plan_shows_clusters_changes_copy_and_the_sum(terminal: bool) -> None:
    text = shown(facts(settings_for()), terminal=terminal)
    assert "A->B  a:9092 (id-of-A) to b:9092 (id-of-B)" in text
    assert "+ topic A.orders on B: 1 partition, replication factor 2, from orders" in text
    assert "50 MB/s: an assumption: say --rate" in text
    assert text.rstrip().splitlines()[-1] == (
        "Plan: 1 to create, 0 to alter, 0 to delete; 1 kB to copy in under 1 s at 50 MB/s; 0 hazards"
    )


def test_copy_is_one_whole_line_for_programs() -> None:
    assert "  orders -> A.orders: 1 partition, from earliest, 100 records, 1 kB, under 1 s, kept 7.0 d\n" in shown(
        facts(settings_for())
    )


@pytest.mark.parametrize("terminal", [False, True])
def test_copy_shows_what_becomes_of_records_on_the_way(terminal: bool) -> None:
    lines = ("lockstep.delay = orders=30m", "lockstep.filter = tombstone")
    treated, plain = facts(settings_for(*lines)), facts(settings_for())
    text = shown(treated, terminal=terminal)
    assert ("on the way" in text) is terminal
    assert ("kept 7.0 d, delayed 30 min, filter\n" in text) is not terminal
    assert "delayed 30 min, filter" in text
    assert "delayed" not in shown(plain, terminal=terminal)
    assert "on the way" not in shown(plain, terminal=terminal)
    lines_of_plan = {each.line for each in compare(plan(treated), plan(plain)).plan}
    assert "copy orders to A.orders from earliest, delayed 30 min, filter" in lines_of_plan


def test_copy_shows_whose_position_counts() -> None:
    text = shown(facts(settings_for(), reached={("orders", 0): ReachedPosition(90, MIRROR_MAKER)}))
    assert "from where MirrorMaker 2 is, 10 records" in text


def test_unknown_numbers_are_question_marks() -> None:
    text = shown(facts(settings_for(), logs={("orders", 0): log(size=None)}, bytes_basis="unknown"))
    assert "100 records, unknown bytes, ?, kept" in text
    assert "unknown bytes to copy in a time that is not known at 50 MB/s" in text
    assert "None" not in text


def test_plan_without_work_has_words_for_it() -> None:
    text = shown(facts(settings_for(), partitions=TopicSyncPlan(), logs={("orders", 0): log(0, 0)}))
    assert "none: topics, configs, ACLs and groups are as they should be" in text
    assert "Plan: 0 to create, 0 to alter, 0 to delete; nothing to copy; 0 hazards" in text


def test_hazard_has_code_sentences_fix_and_page() -> None:
    text = shown(facts(settings_for(), unaccounted={"A.orders": 3}))
    assert "LS003 error  Foreign data in a target topic" in text
    assert "    A.orders on B has 3 records" in text
    assert "    docs/reference/plan-hazards.md#ls003-foreign-data-in-a-target-topic\n" in text
    assert text.rstrip().endswith("1 hazard")


def test_missing_right_has_its_command() -> None:
    right = MissingRight(cluster="B", lacks="User:x lacks Write on topic A.", command="kafka-acls --add ...")
    text = shown(facts(settings_for(), rights=(right,)))
    assert "Missing rights\n  B: User:x lacks Write on topic A.\n    kafka-acls --add ...\n" in text
    assert text.rstrip().endswith("1 missing right")


def test_groups_that_are_kept_are_named() -> None:
    groups = PlannedGroup(group="billing", fate="sync"), PlannedGroup(group="audit", fate="checkpoints")
    text = shown(facts(settings_for(), groups=groups))
    assert "1 group kept in step: billing" in text
    assert "1 group translated, not set on the target: audit" in text


def test_many_topics_are_cut_on_a_terminal_alone() -> None:
    names = [f"orders-{number:05}" for number in range(200)]
    flow_facts = facts(
        settings_for(),
        selection=Selection({name: f"A.{name}" for name in names}),
        source=cluster("A", {name: topic() for name in names}),
        partitions=TopicSyncPlan(tuple(Create(name, f"A.{name}", 1) for name in names)),
        logs={(name, 0): log() for name in names},
    )
    whole, cut = shown(flow_facts), shown(flow_facts, terminal=True)
    assert whole.count("+ topic") == 200
    assert cut.count("+ topic") == SHOWN
    assert f"and {200 - SHOWN} more: lockstep plan FILE | less shows all" in cut


def test_names_cannot_break_the_lines() -> None:
    groups = (PlannedGroup(group="bil\nling\x1b[31m", fate="create"),)
    text = shown(facts(settings_for(), groups=groups))
    assert "+ group bil\\nling\\x1b[31m on B" in text


def test_summary_has_notes_apart_from_hazards() -> None:
    flow_facts = facts(settings_for(), source=cluster("A", {"orders": topic(cleanup_policy="compact")}))
    assert summary_line(plan(flow_facts)).endswith("0 hazards; 1 note")


def test_retention_loss_is_in_the_plan() -> None:
    source = cluster("A", {"orders": topic(retention_ms=str(HOUR_MS))})
    slow = settings_for("A->B.lockstep.max.bytes.per.second = 1000")
    text = shown(facts(slow, source=source, logs={("orders", 0): log(1000, 7_200_000, HOUR_MS // 2)}))
    assert "the file's lockstep.max.bytes.per.second" in text
    assert "orders-0 loses 15 min (500 records) at most before the copy gets there" in text


def test_comparison_names_files_and_values() -> None:
    base = plan(facts(settings_for()))
    other = replace(base, file="other.yaml", flows=(replace(base.flows[0], settings={"topics": ".*"}, changes=()),))
    text = printed(comparison_parts(compare(base, other)))
    assert "  ~ A->B  topics: orders -> .*\n" in text
    assert "  A->B  only with mm2.properties: + topic A.orders on B" in text
    assert text.endswith("1 setting differs, 1 line of the plan\n")
    same = printed(comparison_parts(compare(base, base)))
    assert same == "mm2.properties and mm2.properties have the same effect\n"


@pytest.mark.parametrize("terminal", [False, True])
def test_plan_of_a_flow_that_is_held_back_shows_what_and_how(terminal: bool) -> None:
    parts = PausedPart("connector:MirrorSourceConnector", "stopped"), PausedPart("topic:orders", "paused")
    text = shown(facts(settings_for(), held_back=parts), terminal=terminal)
    assert "Paused or stopped\n  connector:MirrorSourceConnector is stopped\n  topic:orders is paused\n" in text
    assert "lockstep resume" in text


def test_plan_of_a_flow_that_runs_has_nothing_held_back() -> None:
    assert "Paused" not in shown(facts(settings_for()))
