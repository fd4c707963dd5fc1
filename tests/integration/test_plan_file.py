"""`lockstep run --plan` refuses a plan that no longer holds, and `lockstep plan --against` compares two files."""

import json
from pathlib import Path

import pytest

from lockstep_state.schemas import schema
from tests.support.clusters import add_partitions, create_topic, delete_topic, produce, set_configs
from tests.support.commands import lockstep
from tests.support.eventually import wait_until
from tests.support.json_schema import faults
from tests.support.planned_flow import PlannedFlow, numbered
from tests.support.runs import LockstepRun


def refused(planned: PlannedFlow, plan: Path) -> str:
    """What `lockstep run` says that must not start."""
    before = planned.names()
    text = lockstep("run", planned.file, "--plan", plan, code=2)
    assert planned.names() == before
    assert len(text.splitlines()) == 1
    return text


@pytest.mark.long
def test_run_refuses_a_plan_for_each_kind_of_change(planned: PlannedFlow, tmp_path: Path) -> None:
    topic = planned.topic(partitions=2, records=5)
    plan = tmp_path / "plan.json"

    def made() -> None:
        planned.plan("--out", str(plan))

    made()
    text = planned.file.read_text()
    planned.file.write_text(f"{text}{planned.flow}.tasks.max = 2\n")
    assert f"{planned.flow}: tasks.max was 1 and is 2" in refused(planned, plan)
    planned.file.write_text(text)

    add_partitions(planned.source, topic, 3)
    assert f"topic {topic} on {planned.flow.source} had 2 partitions and has 3" in refused(planned, plan)
    made()
    set_configs(planned.source, topic, {"retention.ms": "7777777"})
    assert "retention.ms was" in refused(planned, plan)
    made()
    other = planned.topic("other")
    assert f"topic {other} is new on {planned.flow.source}" in refused(planned, plan)
    made()
    delete_topic(planned.source, other)
    assert f"topic {other} is gone from {planned.flow.source}" in refused(planned, plan)
    made()
    create_topic(planned.target, f"{planned.flow.source}.{topic}", partitions=3)
    assert f"topic {planned.flow.source}.{topic} is new on {planned.flow.target}" in refused(planned, plan)
    made()
    delete_topic(planned.source, topic)
    create_topic(planned.source, topic, partitions=3, configs={"retention.ms": "7777777"})
    assert "was deleted and created again" in refused(planned, plan)


def test_run_refuses_a_plan_of_another_cluster(planned: PlannedFlow, tmp_path: Path) -> None:
    planned.topic()
    plan = tmp_path / "plan.json"
    planned.plan("--out", str(plan))
    body = json.loads(plan.read_text())
    body["flows"][0]["target"]["cluster_id"] = "another"
    plan.write_text(json.dumps(body))
    assert f"{planned.flow.target} was cluster another and is cluster " in refused(planned, plan)


@pytest.mark.long
def test_run_accepts_a_plan_that_holds(planned: PlannedFlow, tmp_path: Path) -> None:
    topic = planned.topic(records=5)
    plan = tmp_path / "plan.json"
    planned.plan("--out", str(plan))
    produce(planned.source, topic, numbered(5))
    run = LockstepRun(planned.file, "--plan", str(plan))
    try:
        remote = f"{planned.flow.source}.{topic}"
        wait_until(lambda: remote in planned.names()[1], within=120, every=0.5, what="the remote topic")
    finally:
        run.kill()
    assert "is new on" in refused(planned, plan), "it has created what it wanted"


# -- two files ---------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_two_files_are_compared(planned: PlannedFlow, tmp_path: Path) -> None:
    topic, other = planned.topic(), planned.topic("other")
    second = tmp_path / "second.properties"
    second.write_text(planned.file.read_text().replace(f"{planned.mark}-.*", topic))
    text = planned.plan("--against", str(second), "--detailed-exitcode", code=2)
    assert f"  ~ {planned.flow}  topics: {planned.mark}-.* -> {topic}" in text
    assert f"only with {planned.file}: + topic {planned.flow.source}.{other} on {planned.flow.target}" in text
    body = json.loads(planned.plan("--against", str(second), "--output", "json"))
    assert list(faults(body, schema("plan-comparison"), "comparison")) == []
    same = planned.plan("--against", str(planned.file), "--detailed-exitcode")
    assert "have the same effect" in same
