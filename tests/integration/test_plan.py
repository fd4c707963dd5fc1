"""`lockstep plan` on two real clusters: what it finds, and that it changes nothing."""

import json
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lockstep_config.credentials.permissions import Grant
from lockstep_protocol.mm2_codec import encode_source_progress
from lockstep_protocol.names import Flow, progress_topic, state_topic
from lockstep_protocol.rows.state_rows import PartitionProgress, Row, Wanted
from lockstep_protocol.schemas import schema
from tests.conftest import GuardedPair
from tests.support.clusters import (
    Record,
    add_partitions,
    admin,
    commit_offset,
    create_topic,
    delete_topic,
    produce,
    set_configs,
    unique_name,
)
from tests.support.commands import lockstep
from tests.support.eventually import wait_until
from tests.support.guarded import USERS, login
from tests.support.json_schema import faults
from tests.support.ports import free_port
from tests.support.runs import LockstepRun
from tests.support.services import one_flow_file, two_cluster_file
from tests.support.wire import join_as_connect, leave_group

FACTORS = (
    "checkpoints.topic.replication.factor = 1",
    "lockstep.control.replication.factor = 1",
    "offset.storage.partitions = 3",
)
QUIET = ("emit.heartbeats.enabled = false", "heartbeats.replication.enabled = false", "tasks.max = 1")


@dataclass(frozen=True, slots=True)
class Planned:
    """A flow of a test's own, for topics that begin with its mark."""

    flow: Flow
    file: Path
    mark: str
    source: str
    target: str

    def plan(self, *arguments: str, code: int = 0) -> str:
        return lockstep("plan", self.file, *arguments, code=code)

    def body(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.plan("--output", "json", *arguments, code=code))
        assert list(faults(found, schema("plan"), "plan")) == []
        return found

    def only(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        (flow,) = self.body(*arguments, code=code)["flows"]
        assert isinstance(flow, dict)
        return flow

    def topic(self, name: str = "orders", *, partitions: int = 1, records: int = 0, **configs: str) -> str:
        named = {key.replace("_", "."): value for key, value in configs.items()}
        made = create_topic(self.source, f"{self.mark}-{name}", partitions=partitions, configs=named)
        if records:
            produce(self.source, made, numbered(records))
        return made

    def write(self, topic: str, records: Iterable[tuple[bytes, bytes | None]]) -> None:
        produce(
            self.target,
            topic,
            [Record(key=key, value=value) for key, value in records],
            settings={"partitioner": "murmur2_random"},
        )

    def write_rows(self, *rows: Row) -> None:
        self.write(state_topic(self.flow), [row.encode() for row in rows])

    def names(self) -> list[set[str]]:
        """All topics of both clusters, but for the one that Kafka makes when it is asked about a group."""
        clusters = (admin(one).list_topics(timeout=10) for one in (self.source, self.target))
        return [set(cluster.topics) - {"__consumer_offsets"} for cluster in clusters]


def numbered(count: int, age_s: float = 0.0) -> list[Record]:
    then = int((time.time() - age_s) * 1000)
    return [Record(value=b"%d" % number + b"v" * 100, timestamp_ms=then + number) for number in range(count)]


def hazards(flow: dict[str, Any]) -> dict[str, list[str]]:
    return {one["code"]: one["details"] for one in flow["hazards"]}


def only_partition(flow: dict[str, Any]) -> dict[str, Any]:
    (topic,) = flow["copy"]["topics"]
    (partition,) = topic["partitions"]
    assert isinstance(partition, dict)
    return partition


@pytest.fixture
def planned(tmp_path: Path, pair: GuardedPair) -> Planned:
    mark = unique_name("p")
    flow = Flow(f"s{mark}", f"t{mark}")
    file = one_flow_file(
        tmp_path,
        flow,
        mark,
        pair.a.bootstrap,
        pair.b.bootstrap,
        f"groups = {mark}-.*",
        "sync.topic.acls.enabled = false",
        *FACTORS,
        *QUIET,
    )
    return Planned(flow, file, mark, pair.a.bootstrap, pair.b.bootstrap)


# -- changes and copy --------------------------------------------------------------------------------------------------


def test_plan_of_a_new_flow_shows_all_and_changes_nothing(planned: Planned) -> None:
    topic = planned.topic(partitions=2, records=200, retention_ms="86400000")
    before = planned.names()
    found = planned.only("--rate", "1MB/s", "--detailed-exitcode", code=2)
    assert planned.names() == before
    changes = {one["name"]: one for one in found["changes"]}
    remote = f"{planned.flow.source}.{topic}"
    assert changes[remote]["action"] == "create"
    assert (changes[remote]["partitions"], changes[remote]["configs"]) == (2, {"retention.ms": "86400000"})
    assert state_topic(planned.flow) in changes
    copy = found["copy"]
    assert (copy["rate"], copy["rate_basis"], copy["bytes_basis"]) == (1_000_000, "stated", "log-directories")
    assert copy["records"] == 200
    assert 10_000 < copy["bytes"] < 100_000, "200 records of some 100 bytes, as they are on disk"
    assert copy["seconds"] == pytest.approx(copy["bytes"] / 1_000_000, rel=0.5)
    assert {one["begins"] for one in copy["topics"]} == {"earliest"}
    assert found["hazards"] == []
    assert found["rights"] == []


def test_plan_for_people_has_whole_lines_and_a_sum(planned: Planned) -> None:
    topic = planned.topic(records=5)
    text = planned.plan()
    remote = f"{planned.flow.source}.{topic}"
    line = f"  + topic {remote} on {planned.flow.target}: 1 partition, replication factor 1, from {topic}"
    assert line in text.splitlines()
    assert text.rstrip().splitlines()[-1].startswith("Plan: ")
    assert "5 records" in text


def test_everything_that_differs_is_altered(planned: Planned) -> None:
    topic = planned.topic(partitions=3, retention_ms="5000")
    remote = create_topic(planned.target, f"{planned.flow.source}.{topic}", configs={"segment.ms": "77777"})
    found = planned.only("--detailed-exitcode", code=2)
    altered = {(one["kind"], one["key"]): one for one in found["changes"] if one["action"] == "alter"}
    assert altered.keys() == {("partitions", ""), ("config", "retention.ms"), ("config", "segment.ms")}
    assert {one["name"] for one in altered.values()} == {remote}
    assert (altered["partitions", ""]["before"], altered["partitions", ""]["after"]) == ("1", "3")
    assert (altered["config", "retention.ms"]["before"], altered["config", "retention.ms"]["after"]) == (None, "5000")
    assert (altered["config", "segment.ms"]["before"], altered["config", "segment.ms"]["after"]) == ("77777", None)


def test_groups_are_found_with_their_fates(planned: Planned) -> None:
    planned.file.write_text(f"{planned.file.read_text()}sync.group.offsets.enabled = true\n")
    topic = planned.topic(records=5)
    ours, other = f"{planned.mark}-billing", f"other-{planned.mark}"
    for group in (ours, other):
        commit_offset(planned.source, group, topic, 0, 3)
    found = planned.only()
    assert [one["name"] for one in found["changes"] if one["kind"] == "group"] == [ours]
    assert {one["group"]: one["fate"] for one in found["groups"]} == {ours: "create", other: "excluded"}
    assert list(hazards(found)) == ["LS012"]


def test_mirrored_flow_has_nothing_to_do(planned: Planned) -> None:
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
    found = planned.only("--detailed-exitcode")
    assert (only_partition(found)["begins"], only_partition(found)["records"]) == ("lockstep", 5)


@pytest.mark.long
def test_flow_that_runs_has_nothing_to_do(planned: Planned) -> None:
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


def test_parts_that_are_paused_or_stopped_are_shown(planned: Planned) -> None:
    topic = planned.topic(records=5)
    assert planned.only()["held_back"] == []
    state = next(one for one in planned.only()["changes"] if one["name"] == state_topic(planned.flow))
    create_topic(planned.target, state["name"], configs=state["configs"])
    planned.write_rows(
        Wanted(scope="connector:MirrorCheckpointConnector", phase="stopped"),
        Wanted(scope=f"topic:{topic}", phase="paused"),
        Wanted(scope="slot:0", phase="running"),
    )
    assert planned.only()["held_back"] == [
        {"scope": "connector:MirrorCheckpointConnector", "wanted": "stopped"},
        {"scope": f"topic:{topic}", "wanted": "paused"},
    ]
    assert f"  topic:{topic} is paused\n" in planned.plan()


def test_heartbeats_are_planned_before_their_topic_is_there(planned: Planned, tmp_path: Path) -> None:
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
    plans = {one["flow"]: one for one in both.body("--rate", "1MB/s")["flows"]}
    assert planned.names() == before
    for flow in (away, back):
        found = {one["name"]: one for one in plans[str(flow)]["changes"]}
        written, mirrored = found["heartbeats"], found[f"{flow.source}.heartbeats"]
        assert (written["kind"], written["cluster"]) == ("control-topic", flow.target)
        assert (mirrored["kind"], mirrored["source"], mirrored["partitions"]) == ("topic", "heartbeats", 1)
        assert mirrored["configs"]["cleanup.policy"] == "compact"
        (copied,) = [one for one in plans[str(flow)]["copy"]["topics"] if one["topic"] == "heartbeats"]
        assert (copied["records"], copied["bytes"], copied["seconds"]) == (0, 0, 0.0)
        assert "heartbeats" not in plans[str(flow)]["source"]["topics"], "a plan does not rely on what is not there"


# -- MirrorMaker 2 -----------------------------------------------------------------------------------------------------


def mm2_copied(planned: Planned, place: str, connector: str, topic: str, offset: int) -> None:
    if place not in planned.names()[1]:
        create_topic(planned.target, place, partitions=3, configs={"cleanup.policy": "compact"})
    planned.write(place, [encode_source_progress(planned.flow.source, topic, 0, offset, connector)])


def test_progress_of_mirror_maker_counts(planned: Planned) -> None:
    topic = planned.topic(records=100)
    mm2_copied(planned, progress_topic(planned.flow), "MirrorSourceConnector", topic, 69)
    partition = only_partition(planned.only())
    assert (partition["begins"], partition["start"], partition["records"]) == ("mirrormaker2", 70, 30)


def test_mirror_maker_that_runs_is_a_hazard(planned: Planned) -> None:
    topic = planned.topic(records=10)
    mm2_copied(planned, progress_topic(planned.flow), "MirrorSourceConnector", topic, 5)
    group = f"{planned.flow.source}-mm2"
    member = join_as_connect(planned.target, group)
    try:
        assert hazards(planned.only())["LS019"] == [f"group {group} on {planned.flow.target} has 1 member"]
    finally:
        leave_group(planned.target, group, member)


def test_progress_of_strimzi_is_a_hazard_until_it_is_taken_over(planned: Planned) -> None:
    topic = planned.topic(records=10)
    connector = f"{planned.flow}.MirrorSourceConnector"
    mm2_copied(planned, "mirrormaker2-cluster-offsets", connector, topic, 5)
    found = planned.only()
    assert only_partition(found)["begins"] == "earliest"
    assert "has offsets of 1 partition" in hazards(found)["LS020"][0]
    mm2_copied(planned, progress_topic(planned.flow), "MirrorSourceConnector", topic, 5)
    assert "LS020" not in hazards(planned.only())


# -- hazards -----------------------------------------------------------------------------------------------------------


def test_foreign_data_is_an_error(planned: Planned) -> None:
    topic = planned.topic(records=5)
    remote = create_topic(planned.target, f"{planned.flow.source}.{topic}")
    produce(planned.target, remote, numbered(3))
    found = planned.only(code=1)
    assert hazards(found)["LS003"][0].startswith(f"{remote} on {planned.flow.target} has 3 records")


def test_retention_that_is_shorter_than_the_catch_up_is_found(planned: Planned) -> None:
    topic = planned.topic(retention_ms="3600000")
    produce(planned.source, topic, numbered(1000, age_s=1800))
    slow = planned.only("--rate", "10B/s")
    assert only_partition(slow)["loses_ms"] > 0
    (detail,) = hazards(slow)["LS008"]
    assert detail.startswith(f"{topic}-0 loses ")
    assert "retention.ms is 1.0 h" in detail
    assert "LS008" not in hazards(planned.only("--rate", "10MB/s"))


def test_names_that_collide_on_the_target_are_found(planned: Planned) -> None:
    topic = planned.topic()
    create_topic(planned.target, f"{planned.flow.source}_{topic}")
    found = planned.only(code=1)
    assert "LS004" in hazards(found)
    assert "collides" in hazards(found)["LS015"][0], "the target was asked, and says so too"


def test_name_that_grows_too_long_is_found(planned: Planned) -> None:
    create_topic(planned.source, f"{planned.mark}-{'t' * (248 - len(planned.mark))}")
    assert list(hazards(planned.only(code=1))) == ["LS005"]


def test_smaller_messages_and_rebuilt_topics_are_found(planned: Planned) -> None:
    planned.file.write_text(
        f"{planned.file.read_text()}config.properties.exclude = max\\\\.message\\\\.bytes\n", encoding="utf-8"
    )
    topic = planned.topic(cleanup_policy="compact", max_message_bytes="5000000")
    produce(planned.source, topic, [Record(key=b"k", value=b"v")])
    found = hazards(planned.only())
    assert found["LS007"][0].startswith(f"{topic} takes 5,000,000 bytes")
    assert found["LS013"] == [f"{topic}: cleanup.policy has compact"]


def test_too_few_brokers_are_found(planned: Planned) -> None:
    planned.file.write_text(f"{planned.file.read_text()}{planned.flow}.replication.factor = 3\n")
    planned.topic()
    assert "replication.factor is 3" in hazards(planned.only())["LS006"][0]


def test_one_cluster_under_two_aliases_is_found(planned: Planned, tmp_path: Path) -> None:
    flow = planned.flow
    file = one_flow_file(tmp_path, flow, planned.mark, planned.source, planned.source, *FACTORS, *QUIET)
    found = Planned(flow, file, planned.mark, planned.source, planned.source).only(code=1)
    assert "LS002" in hazards(found)


# -- clusters that do not answer, or do not permit it ------------------------------------------------------------------


def test_target_that_cannot_be_reached_ends_with_one_sentence(planned: Planned) -> None:
    port = free_port()
    planned.file.write_text(planned.file.read_text().replace(planned.target, f"127.0.0.1:{port}"))
    text = planned.plan("--timeout", "1", code=3)
    assert text.startswith(f"cluster {planned.flow.target} at 127.0.0.1:{port} cannot be reached")
    assert len(text.splitlines()) == 1
    planned.plan("--timeout", "1", "--detailed-exitcode", code=1)


def test_missing_rights_have_the_command_that_grants_them(planned: Planned, pair: GuardedPair) -> None:
    topic = planned.topic(records=5)
    lines = [*login(planned.flow.source, USERS[1]), *login(planned.flow.target, USERS[1])]
    text = planned.file.read_text().replace(pair.a.bootstrap, pair.a.guarded).replace(pair.b.bootstrap, pair.b.guarded)
    planned.file.write_text(text + "\n".join(lines) + "\n")
    nothing = planned.only(code=1)
    assert nothing["rights"]
    assert all(one["command"].startswith("kafka-acls --bootstrap-server") for one in nothing["rights"])
    assert "lockstep-secret" not in json.dumps(nothing)
    assert any("shows no topic" in remark and "--operation Read" in remark for remark in nothing["remarks"])
    see = [Grant("topic", "*", "Describe", ""), Grant("topic", "*", "DescribeConfigs", "")]
    with ExitStack() as stack:
        pair.a.grant(USERS[1], see)
        stack.callback(pair.a.revoke, USERS[1], see)
        some = planned.only(code=1)
    assert some["copy"]["bytes_basis"] in ("sampled", "unknown")
    assert any("bytes are" in remark for remark in some["remarks"])
    lacks = " ".join(one["lacks"] for one in some["rights"])
    assert f"lacks Read on topic {topic}" in lacks or "lacks Read on topic *" in lacks
    assert "Create on topic" in lacks


# -- run --plan --------------------------------------------------------------------------------------------------------


def refused(planned: Planned, plan: Path) -> str:
    """What `lockstep run` says that must not start."""
    before = planned.names()
    text = lockstep("run", planned.file, "--plan", plan, code=2)
    assert planned.names() == before
    assert len(text.splitlines()) == 1
    return text


@pytest.mark.long
def test_run_refuses_a_plan_for_each_kind_of_change(planned: Planned, tmp_path: Path) -> None:
    topic = planned.topic(partitions=2, records=5)
    plan = tmp_path / "plan.json"

    def made() -> None:
        planned.plan("-o", str(plan))

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


def test_run_refuses_a_plan_of_another_cluster(planned: Planned, tmp_path: Path) -> None:
    planned.topic()
    plan = tmp_path / "plan.json"
    planned.plan("-o", str(plan))
    body = json.loads(plan.read_text())
    body["flows"][0]["target"]["cluster_id"] = "another"
    plan.write_text(json.dumps(body))
    assert f"{planned.flow.target} was cluster another and is cluster " in refused(planned, plan)


@pytest.mark.long
def test_run_accepts_a_plan_that_holds(planned: Planned, tmp_path: Path) -> None:
    topic = planned.topic(records=5)
    plan = tmp_path / "plan.json"
    planned.plan("-o", str(plan))
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
def test_two_files_are_compared(planned: Planned, tmp_path: Path) -> None:
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


@pytest.mark.long
def test_measured_rate_is_that_of_reading(planned: Planned) -> None:
    topic = planned.topic()
    produce(planned.source, topic, [Record(value=b"v" * 10_000) for _ in range(2000)])
    found = planned.only("--measure")["copy"]
    assert found["rate_basis"] == "measured"
    assert found["rate"] > 1_000_000


def test_measurement_of_too_little_is_no_rate(planned: Planned) -> None:
    planned.topic(records=3)
    found = planned.only("--measure")
    assert found["copy"]["rate_basis"] == "assumed"
    assert any("too few bytes to measure" in remark for remark in found["remarks"])
