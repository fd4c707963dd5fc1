"""Renames in which topics meet, or lead round: by a flow for each topic, there and back, and in a ring of clusters
(`docs/guides/rename-topics.md`)."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import MirroredTopic
from tests.conftest import Pair
from tests.support.broker import Broker, started
from tests.support.clusters import Record, create_topic, produce, read_topic, topic_names, unique_name
from tests.support.eventually import wait_until
from tests.support.mirror import MirroredFlow
from tests.support.processes import end
from tests.support.runs import LockstepRun
from tests.support.services import ServiceProcess

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

WITHIN = 180.0
FACTORS = ("replication.factor", "offset.storage.replication.factor", "offset-syncs.topic.replication.factor")
IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


class Clusters:
    """A file of some clusters, by their aliases, and of flows that rename what begins with `mark`."""

    def __init__(self, folder: Path, at: Sequence[str], renames: dict[tuple[int, int], str], *lines: str) -> None:
        """`at`: the address of each cluster; of two flows of one cluster it is named twice. `renames` of each flow, by
        the places of its clusters; "" renames nothing."""
        self.mark = unique_name("rm").replace("-", "")
        aliases = [f"{chr(ord('a') + place)}{self.mark}" for place in range(len(at))]
        self.at = list(at)
        self.flows = [
            MirroredFlow(Flow(aliases[source], aliases[target]), at[source], at[target]) for source, target in renames
        ]
        keys = [
            f"{mirrored.flow}.lockstep.rename = {rename.format(mark=self.mark)}"
            for mirrored, rename in zip(self.flows, renames.values(), strict=True)
            if rename
        ]
        self.file = folder / "mm2.properties"
        text = [
            f"clusters = {', '.join(aliases)}",
            *(f"{alias}.bootstrap.servers = {address}" for alias, address in zip(aliases, at, strict=True)),
            *(f"{factor} = 1" for factor in FACTORS),
            *(f"{mirrored.flow}.enabled = true" for mirrored in self.flows),
            *("emit.heartbeats.enabled = false", "emit.checkpoints.enabled = false", "tasks.max = 1", IDENTITY),
            f"topics = .*{self.mark}-.*",
            *keys,
            *(line.format(mark=self.mark, aliases=aliases) for line in lines),
        ]
        self.file.write_text("\n".join(text) + "\n")

    @contextmanager
    def running(self) -> Iterator[LockstepRun]:
        run = LockstepRun(self.file)
        try:
            yield run
        finally:
            run.kill()

    def hazards(self, code: int) -> list[set[str]]:
        """Return the codes of the hazards of each flow. The command ends with `code`."""
        command = [sys.executable, "-m", "lockstep_cli", "plan", str(self.file), "--output", "json"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN, check=False)
        assert ended.returncode == code, ended.stdout + ended.stderr
        return [{hazard["code"] for hazard in flow["hazards"]} for flow in json.loads(ended.stdout)["flows"]]

    def write(self, cluster: int, name: str, first: int, count: int) -> None:
        values = [f"{name} {number:05d}" for number in range(first, first + count)]
        produce(self.at[cluster], f"{name}-{self.mark}-x", [Record(value=value.encode()) for value in values])

    def has(self, cluster: int, name: str, written: dict[str, int]) -> bool:
        """Return whether a topic has the first so many records of each origin, each once and in their order."""
        topic = f"{name}-{self.mark}-x"
        values = [(record.value or b"").decode() for record in read_topic(self.at[cluster], topic)]
        by_origin = {origin: [value for value in values if value.startswith(f"{origin} ")] for origin in written}
        wanted = {origin: [f"{origin} {number:05d}" for number in range(count)] for origin, count in written.items()}
        assert len(values) == len(set(values)), "a record came twice"
        return by_origin == wanted and len(values) == sum(written.values())

    def wait_has(self, cluster: int, name: str, written: dict[str, int]) -> None:
        topic = f"{name}-{self.mark}-x"
        wait_until(
            lambda: topic in topic_names(self.at[cluster]) and self.has(cluster, name, written),
            within=WITHIN,
            every=0.5,
            what=f"{topic} has {written}",
        )


def test_two_topics_meet_if_each_has_a_flow(tmp_path: Path, pair: Pair) -> None:
    """The source has an alias for each flow. Kills double no record, and each topic keeps its order."""
    renames = {(0, 2): "(de|fr)-{mark}-x -> all-{mark}-x", (1, 2): "(de|fr)-{mark}-x -> all-{mark}-x"}
    selected = ("{aliases[0]}->{aliases[2]}.topics = de-{mark}-.*", "{aliases[1]}->{aliases[2]}.topics = fr-{mark}-.*")
    clusters = Clusters(tmp_path, [pair.a.bootstrap, pair.a.bootstrap, pair.b.bootstrap], renames, *selected)
    for name in ("de", "fr"):
        create_topic(pair.a.bootstrap, f"{name}-{clusters.mark}-x", partitions=1)
        clusters.write(0, name, 0, 500)
    for codes in clusters.hazards(0):
        assert "LS023" in codes
        assert "LS004" not in codes
    for written in (500, 4_500, 8_500):
        with clusters.running():
            clusters.wait_has(2, "all", {"de": written, "fr": written})
            for name in ("fr", "de"):
                clusters.write(0, name, written, 4_000)
    with clusters.running() as run:
        clusters.wait_has(2, "all", {"de": 12_500, "fr": 12_500})
        for mirrored, name in zip(clusters.flows, ("de", "fr"), strict=True):
            mirrored.wait_written_down(f"{name}-{clusters.mark}-x", within=WITHIN)
        run.until_said_by("run", "ready", within=WITHIN)
        assert end(run.process) == 0


def test_topic_that_comes_back_under_its_new_name_is_no_hazard(tmp_path: Path, pair: Pair) -> None:
    """B->A has no rename, so the copy on B comes back to A under its new name."""
    clusters = Clusters(tmp_path, [pair.a.bootstrap, pair.b.bootstrap], {(0, 1): "de-(.*) -> eu-$1", (1, 0): ""})
    onward, backward = clusters.flows
    create_topic(pair.a.bootstrap, f"de-{clusters.mark}-x", partitions=1)
    clusters.write(0, "de", 0, 100)
    with clusters.running():
        clusters.wait_has(1, "eu", {"de": 100})
        wait_until(lambda: backward.mirrored(f"eu-{clusters.mark}-x"), within=WITHIN, every=0.5, what="it comes back")
        clusters.write(1, "eu", 0, 10)
        clusters.wait_has(0, "eu", {"eu": 10})
        noted = wait_until(
            lambda: onward.mirrored(f"eu-{clusters.mark}-x"), within=WITHIN, every=0.5, what="A->B leaves it out"
        )
        assert noted.phase == "left-out"
        clusters.write(0, "de", 100, 50)
        clusters.wait_has(1, "eu", {"de": 150, "eu": 10})
    codes = clusters.hazards(0)
    assert all("LS004" not in each for each in codes), codes


@pytest.mark.timeout(300)
def test_kill_before_the_row_is_written_leaves_the_copy_to_its_topic(tmp_path: Path, pair: Pair) -> None:
    """The opposite flow has brought the copies back by the time topic-sync starts again."""
    clusters = Clusters(tmp_path, [pair.a.bootstrap, pair.b.bootstrap], {(0, 1): "de-(.*) -> eu-$1", (1, 0): ""})
    (onward, _), mark, many = clusters.flows, clusters.mark, 60
    names = [f"{mark}-{number}" for number in range(many)]
    for name in names:
        create_topic(pair.a.bootstrap, f"de-{name}", partitions=1)
    service = ServiceProcess("lockstep_topic_sync", clusters.file, str(onward.flow))
    with service:

        def created() -> set[str]:
            return topic_names(pair.b.bootstrap) & {f"eu-{name}" for name in names}

        copies = wait_until(created, within=WITHIN, every=0.01, what="a copy is created")
        service.kill()
        rows = {row.target_topic: row.phase for row in onward.rows(MirroredTopic)}
        assert any(rows.get(copy) != "mirrored" for copy in copies), "it was killed before it had written its rows"
        for copy in created():
            create_topic(pair.a.bootstrap, copy, partitions=1)
        service.start()

        def all_mirrored() -> bool:
            phases = {row.source_topic: row.phase for row in onward.rows(MirroredTopic)}
            return all(phases.get(f"de-{name}") == "mirrored" for name in names)

        wait_until(all_mirrored, within=WITHIN, every=0.5, what="each topic has its copy")
        phases = {row.source_topic: row.phase for row in onward.rows(MirroredTopic)}
        assert {phases[copy] for copy in copies} == {"left-out"}


def test_ring_of_renames_brings_each_record_round_once(tmp_path: Path, pair: Pair) -> None:
    """A->B->C->A, each with another name, and the last rename leads back to the first."""
    c = Broker("C")
    renames = {(0, 1): "de-(.*) -> fr-$1", (1, 2): "fr-(.*) -> it-$1", (2, 0): "it-(.*) -> de-$1"}
    with started(c):
        clusters = Clusters(tmp_path, [pair.a.bootstrap, pair.b.bootstrap, c.bootstrap], renames)
        names = ("de", "fr", "it")
        create_topic(pair.a.bootstrap, f"de-{clusters.mark}-x", partitions=1)
        clusters.write(0, "de", 0, 200)
        with clusters.running():
            for cluster, name in enumerate(names):
                clusters.wait_has(cluster, name, {"de": 200})
        for cluster, name in enumerate(names[1:], 1):
            clusters.write(cluster, name, 0, 200)
        clusters.write(0, "de", 200, 100)
        with clusters.running() as run:
            everything = {"de": 300, "fr": 200, "it": 200}
            for cluster, name in enumerate(names):
                clusters.wait_has(cluster, name, everything)
            for mirrored, name in zip(clusters.flows, names, strict=True):
                mirrored.wait_written_down(f"{name}-{clusters.mark}-x", within=WITHIN)
            for cluster, name in enumerate(names):
                assert clusters.has(cluster, name, everything), "nothing came round once more"
            assert end(run.process) == 0
        copies = {name for at in clusters.at for name in topic_names(at) if clusters.mark in name}
        assert {name for name in copies if not name.startswith("mm2-")} == {f"{n}-{clusters.mark}-x" for n in names}
