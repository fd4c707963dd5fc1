"""`lockstep plan` on two real clusters: what it finds, and that it changes nothing."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep_state.codecs.mm2_codec import encode_source_progress
from lockstep_state.names import Flow, progress_topic, state_topic
from lockstep_state.rows.state_rows import DesiredState, PartitionProgress
from tests.support.clusters import Record, commit_offset, create_topic, delete_topic, produce
from tests.support.planned_flow import FACTORS, PlannedFlow, hazards, numbered, only_partition
from tests.support.runs import LockstepRun
from tests.support.services import two_cluster_file
from tests.support.wire import join_as_connect, leave_group

HOUR_S, DAY_S = 3600, 86_400

# -- changes and copy --------------------------------------------------------------------------------------------------


def test_plan_of_a_new_flow_shows_all_and_changes_nothing(planned: PlannedFlow) -> None:
    topic = planned.topic(partitions=2, records=200, retention_ms="86400000")
    before = planned.names()
    plan = planned.only("--rate", "1MB/s", "--detailed-exitcode", code=2)
    assert planned.names() == before
    changes = {change["name"]: change for change in plan["changes"]}
    remote = f"{planned.flow.source}.{topic}"
    assert changes[remote]["action"] == "create"
    assert (changes[remote]["partitions"], changes[remote]["configs"]) == (2, {"retention.ms": "86400000"})
    assert state_topic(planned.flow) in changes
    copy = plan["copy"]
    assert (copy["rate"], copy["rate_basis"], copy["bytes_basis"]) == (1_000_000, "stated", "log-directories")
    assert copy["records"] == 200
    assert 10_000 < copy["bytes"] < 100_000, "200 records of some 100 bytes, as they are on disk"
    assert copy["seconds"] == pytest.approx(copy["bytes"] / 1_000_000, rel=0.5)
    assert {topic["begins"] for topic in copy["topics"]} == {"earliest"}
    assert plan["hazards"] == []
    assert plan["rights"] == []


def test_plan_of_a_day_has_the_bytes_of_both_links(planned: PlannedFlow) -> None:
    """Of records of the last day, and of older ones; the same bytes in each value are what a codec makes smaller."""
    topic = planned.topic(retention_ms="-1")
    for age_s, count in ((2 * DAY_S, 3000), (3 * HOUR_S, 1000)):
        produce(planned.source, topic, numbered(count, age_s), codec="zstd")
    traffic = planned.only()["traffic"]
    assert traffic["records_a_day"] == 1000
    assert traffic["record_bytes_a_day"] == pytest.approx(1000 * 116, rel=0.1)
    assert (traffic["source"]["basis"], traffic["target"]["basis"]) == ("stored", "unchanged")
    assert 0 < traffic["source"]["bytes_a_day"] < 0.3 * traffic["record_bytes_a_day"]
    assert traffic["source"]["bytes_a_day"] == traffic["target"]["bytes_a_day"]
    assert f"received from {planned.flow.source}: " in planned.plan()


def test_plan_for_people_has_whole_lines_and_a_sum(planned: PlannedFlow) -> None:
    topic = planned.topic(records=5)
    text = planned.plan()
    remote = f"{planned.flow.source}.{topic}"
    line = f"  + topic {remote} on {planned.flow.target}: 1 partition, replication factor 1, from {topic}"
    assert line in text.splitlines()
    assert text.rstrip().splitlines()[-1].startswith("Plan: ")
    assert "5 records" in text


def test_everything_that_differs_is_altered(planned: PlannedFlow) -> None:
    topic = planned.topic(partitions=3, retention_ms="5000")
    remote = create_topic(planned.target, f"{planned.flow.source}.{topic}", configs={"segment.ms": "77777"})
    plan = planned.only("--detailed-exitcode", code=2)
    altered = {(change["kind"], change["key"]): change for change in plan["changes"] if change["action"] == "alter"}
    assert altered.keys() == {("partitions", ""), ("config", "retention.ms"), ("config", "segment.ms")}
    assert {change["name"] for change in altered.values()} == {remote}
    assert (altered["partitions", ""]["before"], altered["partitions", ""]["after"]) == ("1", "3")
    assert (altered["config", "retention.ms"]["before"], altered["config", "retention.ms"]["after"]) == (None, "5000")
    assert (altered["config", "segment.ms"]["before"], altered["config", "segment.ms"]["after"]) == ("77777", None)


def test_groups_are_found_with_their_fates(planned: PlannedFlow) -> None:
    planned.file.write_text(f"{planned.file.read_text()}sync.group.offsets.enabled = true\n")
    topic = planned.topic(records=5)
    ours, other = f"{planned.mark}-billing", f"other-{planned.mark}"
    for group in (ours, other):
        commit_offset(planned.source, group, topic, 0, 3)
    plan = planned.only()
    assert [change["name"] for change in plan["changes"] if change["kind"] == "group"] == [ours]
    assert {group["group"]: group["fate"] for group in plan["groups"]} == {ours: "create", other: "excluded"}
    assert list(hazards(plan)) == ["LS012"]


def test_mirrored_flow_has_nothing_to_do(planned: PlannedFlow) -> None:
    """As Lockstep leaves it: topics of its own, a copy, and a row that is at the end."""
    topic = planned.topic(records=10)
    for change in planned.only()["changes"]:
        cluster = planned.source if change["cluster"] == planned.flow.source else planned.target
        create_topic(cluster, change["name"], partitions=change["partitions"], configs=change["configs"])
    produce(planned.target, f"{planned.flow.source}.{topic}", numbered(10))
    planned.write_rows(PartitionProgress(topic=topic, partition=0, upstream=9, downstream=9))
    text = planned.plan("--detailed-exitcode")
    assert "none: topics, configs, ACLs and groups are as they should be" in text
    assert text.rstrip().splitlines()[-1] == "Plan: 0 to create, 0 to alter, 0 to delete; nothing to copy; 0 hazards"
    produce(planned.source, topic, numbered(5))
    plan = planned.only("--detailed-exitcode")
    assert (only_partition(plan)["begins"], only_partition(plan)["records"]) == ("lockstep", 5)


@pytest.mark.long
def test_flow_that_runs_has_nothing_to_do(planned: PlannedFlow) -> None:
    planned.topic(records=100)
    planned.plan("--detailed-exitcode", code=2)
    run = LockstepRun(planned.file)
    try:
        run.until_said_by("data-plane", "slot started", within=120)
        deadline = time.monotonic() + 60
        while planned.body()["summary"]["records"] and time.monotonic() < deadline:
            time.sleep(1)
        assert planned.body("--detailed-exitcode")["summary"]["create"] == 0
    finally:
        run.kill()
    assert "nothing to copy" in planned.plan("--detailed-exitcode")


def test_parts_that_are_paused_or_stopped_are_shown(planned: PlannedFlow) -> None:
    topic = planned.topic(records=5)
    assert planned.only()["held_back"] == []
    state = next(change for change in planned.only()["changes"] if change["name"] == state_topic(planned.flow))
    create_topic(planned.target, state["name"], configs=state["configs"])
    planned.write_rows(
        DesiredState(scope="connector:MirrorCheckpointConnector", phase="stopped"),
        DesiredState(scope=f"topic:{topic}", phase="paused"),
        DesiredState(scope="slot:0", phase="running"),
    )
    assert planned.only()["held_back"] == [
        {"scope": "connector:MirrorCheckpointConnector", "wanted": "stopped"},
        {"scope": f"topic:{topic}", "wanted": "paused"},
    ]
    assert f"  topic:{topic} is paused\n" in planned.plan()


def test_heartbeats_are_planned_before_their_topic_is_there(planned: PlannedFlow, tmp_path: Path) -> None:
    """Each flow writes heartbeats to its target, and the opposite one mirrors them from there."""
    for cluster, topics in zip((planned.source, planned.target), planned.names(), strict=True):
        if "heartbeats" in topics:  # of another test
            delete_topic(cluster, "heartbeats")
    away, back = planned.flow, Flow(planned.flow.target, planned.flow.source)
    file = two_cluster_file(
        tmp_path,
        (away.source, planned.source),
        (away.target, planned.target),
        f"{away}.enabled = true",
        f"{back}.enabled = true",
        f"topics = {planned.mark}-.*",
        "offset-syncs.topic.replication.factor = 1",
        *FACTORS,
        "heartbeats.topic.replication.factor = 1",
    )
    both = replace(planned, file=file)
    before = planned.names()
    plans = {plan["flow"]: plan for plan in both.body("--rate", "1MB/s")["flows"]}
    assert planned.names() == before
    for flow in (away, back):
        changes = {change["name"]: change for change in plans[str(flow)]["changes"]}
        written, mirrored = changes["heartbeats"], changes[f"{flow.source}.heartbeats"]
        assert (written["kind"], written["cluster"]) == ("control-topic", flow.target)
        assert (mirrored["kind"], mirrored["source"], mirrored["partitions"]) == ("topic", "heartbeats", 1)
        assert mirrored["configs"]["cleanup.policy"] == "compact"
        (copied,) = [topic for topic in plans[str(flow)]["copy"]["topics"] if topic["topic"] == "heartbeats"]
        assert (copied["records"], copied["bytes"], copied["seconds"]) == (0, 0, 0.0)
        assert "heartbeats" not in plans[str(flow)]["source"]["topics"], "a plan does not rely on what is not there"


# -- MirrorMaker 2 -----------------------------------------------------------------------------------------------------


def mm2_copied(planned: PlannedFlow, place: str, connector: str, topic: str, offset: int) -> None:
    if place not in planned.names()[1]:
        create_topic(planned.target, place, partitions=3, configs={"cleanup.policy": "compact"})
    planned.write(place, [encode_source_progress(planned.flow.source, topic, 0, offset, connector)])


def test_progress_of_mirror_maker_counts(planned: PlannedFlow) -> None:
    topic = planned.topic(records=100)
    mm2_copied(planned, progress_topic(planned.flow), "MirrorSourceConnector", topic, 69)
    partition = only_partition(planned.only())
    assert (partition["begins"], partition["start"], partition["records"]) == ("mirrormaker2", 70, 30)


def test_plan_names_progress_and_rows_that_it_cannot_read(planned: PlannedFlow) -> None:
    planned.topic(records=10)
    compacted = {"cleanup.policy": "compact"}
    create_topic(planned.target, progress_topic(planned.flow), configs=compacted)
    own = {**compacted, "message.timestamp.type": "LogAppendTime"}
    create_topic(planned.target, state_topic(planned.flow), configs=own)
    produce(planned.target, progress_topic(planned.flow), [Record(key=b"[", value=b"[")] * 2)
    produce(planned.target, state_topic(planned.flow), [Record(key=b"topic/x", value=b"[")])
    text = " ".join(planned.only()["remarks"])
    assert f"2 records of {progress_topic(planned.flow)} cannot be read, so what they say does not count" in text
    assert "a row cannot be read, so what it says does not count" in text
    assert f"2 records of {progress_topic(planned.flow)}" in " ".join(planned.plan().split())


def test_mirror_maker_that_runs_is_a_hazard(planned: PlannedFlow) -> None:
    topic = planned.topic(records=10)
    mm2_copied(planned, progress_topic(planned.flow), "MirrorSourceConnector", topic, 5)
    group = f"{planned.flow.source}-mm2"
    member = join_as_connect(planned.target, group)
    try:
        assert hazards(planned.only())["LS019"] == [f"group {group} on {planned.flow.target} has 1 member"]
    finally:
        leave_group(planned.target, group, member)


def test_progress_of_strimzi_is_a_hazard_until_it_is_taken_over(planned: PlannedFlow) -> None:
    topic = planned.topic(records=10)
    connector = f"{planned.flow}.MirrorSourceConnector"
    mm2_copied(planned, "mirrormaker2-cluster-offsets", connector, topic, 5)
    plan = planned.only()
    assert only_partition(plan)["begins"] == "earliest"
    assert "has offsets of 1 partition" in hazards(plan)["LS020"][0]
    mm2_copied(planned, progress_topic(planned.flow), "MirrorSourceConnector", topic, 5)
    assert "LS020" not in hazards(planned.only())


@pytest.mark.long
def test_measured_rate_is_that_of_reading(planned: PlannedFlow) -> None:
    topic = planned.topic()
    produce(planned.source, topic, [Record(value=b"v" * 10_000) for _ in range(2000)])
    copy = planned.only("--measure")["copy"]
    assert copy["rate_basis"] == "measured"
    assert copy["rate"] > 1_000_000


def test_measurement_of_too_little_is_no_rate(planned: PlannedFlow) -> None:
    planned.topic(records=3)
    plan = planned.only("--measure")
    assert plan["copy"]["rate_basis"] == "assumed"
    assert any("too few bytes to measure" in remark for remark in plan["remarks"])
