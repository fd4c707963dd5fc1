"""Topics with other names on the target: everything about them follows (`docs/guides/rename-topics.md`)."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from lockstep_client import IdentityReplicationPolicy, Rename, remote_topics, translate_offsets
from lockstep_state.codecs.mm2_codec import decode_checkpoint
from lockstep_state.names import Flow
from tests.conftest import Pair
from tests.support.clusters import (
    Record,
    admin,
    commit_offset,
    committed_offset,
    config_of,
    create_topic,
    produce,
    read_topic,
    topic_names,
    unique_name,
)
from tests.support.eventually import wait_until
from tests.support.mirror import MirroredFlow
from tests.support.runs import lockstep_runs
from tests.support.services import two_cluster_file
from tests.support.topic_comparison import compare

WITHIN = 120.0
IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


class RenamingFlow:
    """A flow that renames `MARK-orders-x` to `eu.MARK.x`, and two topics to one name."""

    def __init__(self, folder: Path, pair: Pair, *lines: str) -> None:
        self.mark = unique_name("rn").replace("-", "")
        self.a, self.b = pair.a.bootstrap, pair.b.bootstrap
        self.flow = Flow(f"a{self.mark}", f"b{self.mark}")
        self.orders, self.renamed = f"{self.mark}-orders-x", f"eu.{self.mark}.x"
        self.group = f"{self.mark}-billing"
        self.file = two_cluster_file(
            folder,
            (self.flow.source, self.a),
            (self.flow.target, self.b),
            f"{self.flow}.enabled = true",
            f"topics = {self.mark}-.*",
            f"groups = {self.mark}-.*",
            "emit.heartbeats.enabled = false",
            "heartbeats.replication.enabled = false",
            "checkpoints.topic.replication.factor = 1",
            "offset-syncs.topic.replication.factor = 1",
            "emit.checkpoints.interval.seconds = 1",
            "sync.group.offsets.enabled = true",
            "sync.group.offsets.interval.seconds = 1",
            "refresh.topics.interval.seconds = 1",
            IDENTITY,
            *lines,
        )
        self.rows = MirroredFlow(self.flow, self.a, self.b)

    def rename(self, to: str) -> None:
        """Set the flow's renames."""
        lines = [line for line in self.file.read_text().splitlines() if "lockstep.rename" not in line]
        self.file.write_text("\n".join([*lines, f"{self.flow}.lockstep.rename = {to}", ""]))

    def lockstep(self, *arguments: str) -> tuple[int, Any]:
        """Return the exit code of a command, and what it printed as JSON."""
        command = [sys.executable, "-m", "lockstep_cli", *arguments, "--output", "json"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN, check=False)
        assert ended.stdout, ended.stderr
        return ended.returncode, json.loads(ended.stdout)

    def phase(self) -> str:
        """Return the phase of the topic's partition."""
        return self.rows.progress(self.orders)[0].phase

    def is_copied(self, copy: str) -> bool:
        return copy in topic_names(self.b) and compare(read_topic(self.a, self.orders), read_topic(self.b, copy)).equal


def test_everything_about_a_topic_has_its_new_name(tmp_path: Path, pair: Pair) -> None:
    flow = RenamingFlow(tmp_path, pair)
    flow.rename(f"{flow.mark}-orders-(.*) -> eu.{flow.mark}.$1 ; {flow.mark}-twin-. -> eu.{flow.mark}.twin")
    create_topic(flow.a, flow.orders, partitions=1, configs={"retention.ms": "777000000"})
    for name in ("twin-1", "twin-2", "plain"):
        create_topic(flow.a, f"{flow.mark}-{name}", partitions=1)
    produce(flow.a, flow.orders, [Record(value=b"%d" % number) for number in range(500)])
    commit_offset(flow.a, flow.group, flow.orders, 0, 123)
    _, plan = flow.lockstep("plan", str(flow.file))
    codes = {hazard["code"] for hazard in plan["flows"][0]["hazards"]}
    assert "LS004" in codes, "two topics would meet in one name"
    with lockstep_runs(flow.file):
        wait_until(lambda: flow.is_copied(flow.renamed), within=WITHIN, every=0.5, what="it is copied")
        wait_until(
            lambda: committed_offset(flow.b, flow.group, flow.renamed, 0) == 123,
            within=WITHIN,
            what="the group is moved",
        )
        produce(flow.a, flow.orders, [Record(value=b"%d" % number) for number in range(500, 600)])
        flow.rows.wait_written_down(flow.orders)
        code, verified = flow.lockstep("verify", "run", str(flow.file), "--topic", flow.orders)
        assert (code, verified["differences"]) == (0, []), verified
        twins = wait_until(lambda: flow.rows.mirrored(f"{flow.mark}-twin-1"), within=WITHIN, what="a twin has its row")
        assert (twins.phase, twins.target_topic) == ("left-out", "")
        assert f"makes it eu.{flow.mark}.twin, and {flow.mark}-twin-2 as well" in twins.note
    assert config_of(flow.b, flow.renamed, "retention.ms") == "777000000"
    assert {name for name in topic_names(flow.b) if flow.mark in name and not name.startswith("mm2-")} == {
        flow.renamed,
        f"{flow.mark}-plain",
        f"{flow.flow.source}.checkpoints.internal",
    }
    checkpoints = read_topic(flow.b, f"{flow.flow.source}.checkpoints.internal")
    assert {decode_checkpoint(record.key, record.value).topic for record in checkpoints} == {flow.renamed}
    assert {sync.topic for sync in flow.rows.offset_syncs(flow.orders)} == {flow.orders}
    renames = (Rename(f"{flow.mark}-orders-(.*)", f"eu.{flow.mark}.$1"),)
    conf, policy = {"bootstrap.servers": flow.b}, IdentityReplicationPolicy(flow.flow.source, renames=renames)
    translated = translate_offsets(conf, flow.flow.source, flow.group, policy=policy)
    assert [(each.topic, each.partition, each.offset) for each in translated] == [(flow.renamed, 0, 123)]
    assert flow.renamed in remote_topics(conf, flow.flow.source, policy=policy)
    assert policy.upstream_topic(flow.renamed) == flow.orders


def test_changed_rename_is_another_topic_and_waits_for_a_decision(tmp_path: Path, pair: Pair) -> None:
    flow = RenamingFlow(tmp_path, pair)
    flow.rename(f"{flow.mark}-orders-(.*) -> eu.{flow.mark}.$1")
    create_topic(flow.a, flow.orders, partitions=1)
    produce(flow.a, flow.orders, [Record(value=b"%d" % number) for number in range(500)])
    with lockstep_runs(flow.file):
        wait_until(lambda: flow.is_copied(flow.renamed), within=WITHIN, every=0.5, what="it is copied")
        flow.rows.wait_written_down(flow.orders)
    flow.rename(f"{flow.mark}-orders-(.*) -> us.{flow.mark}.$1")
    _, plan = flow.lockstep("plan", str(flow.file))
    (hazard,) = (each for each in plan["flows"][0]["hazards"] if each["code"] == "LS035")
    assert hazard["details"][0].endswith(f"and would be copied to us.{flow.mark}.x now")
    with lockstep_runs(flow.file):
        wait_until(lambda: flow.phase() == "halted", within=WITHIN, every=0.5, what="the partition halts")
    with flow.file.open("a") as file:
        file.write("lockstep.on.recreate = restart\n")
    with lockstep_runs(flow.file):
        wait_until(lambda: flow.is_copied(f"us.{flow.mark}.x"), within=WITHIN, every=0.5, what="it is copied again")
    assert flow.is_copied(flow.renamed), "the earlier copy stays"


def test_copy_never_has_the_records_of_two_topics(tmp_path: Path, pair: Pair) -> None:
    flow = RenamingFlow(tmp_path, pair)
    flow.rename(f"{flow.mark}-twin-. -> eu.{flow.mark}.twin")
    first, second, copy = f"{flow.mark}-twin-1", f"{flow.mark}-twin-2", f"eu.{flow.mark}.twin"

    def written(topic: str, records: int) -> None:
        create_topic(flow.a, topic, partitions=1)
        produce(flow.a, topic, [Record(value=f"{topic} {number}".encode()) for number in range(records)])

    def has(*topics: tuple[str, int]) -> bool:
        wanted = [f"{topic} {number}".encode() for topic, records in topics for number in range(records)]
        return copy in topic_names(flow.b) and [record.value for record in read_topic(flow.b, copy)] == wanted

    def left_out_because_of(sentence: str) -> bool:
        row = flow.rows.mirrored(second)
        return row is not None and row.phase == "left-out" and sentence in row.note

    written(first, 30)
    on_source, on_target = admin(flow.a), admin(flow.b)
    with lockstep_runs(flow.file):
        wait_until(lambda: has((first, 30)), within=WITHIN, every=0.5, what="the first topic is copied")
        written(second, 5)
        wait_until(lambda: left_out_because_of(f"and {first} as well"), within=WITHIN, what="the second is left out")
        on_source.delete_topics([first])[first].result()
        words = f"which has the records of {first}"
        wait_until(lambda: left_out_because_of(words), within=WITHIN, what="it stays left out when the first is gone")
    with lockstep_runs(flow.file):
        written(f"{flow.mark}-plain", 1)
        wait_until(lambda: flow.rows.mirrored(f"{flow.mark}-plain"), within=WITHIN, what="a round has passed")
        assert left_out_because_of(words)
        assert has((first, 30))
        on_target.delete_topics([copy])[copy].result()
        wait_until(lambda: has((second, 5)), within=WITHIN, every=0.5, what="the copy is deleted, and begins anew")
