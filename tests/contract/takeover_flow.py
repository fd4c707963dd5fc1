"""A flow that moves between MirrorMaker 2 and Lockstep while a writer goes on, and what was lost or doubled."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockstep_state.names import Flow
from tests.contract.turns import NumberedCopy
from tests.faults.counting import Count
from tests.faults.numbered import Writer
from tests.support.broker import Broker
from tests.support.clusters import create_topic, end_offsets
from tests.support.commands import lockstep
from tests.support.mirror import MirroredFlow
from tests.support.mm2 import GRACE_MS
from tests.support.services import two_cluster_file

PARTITIONS = 4
RATE = 1_000
MORE = 3_000
"""Records that each of them copies before the next one's turn."""
FACTORS = ("offset-syncs.topic", "checkpoints.topic", "status.storage", "config.storage")
EVERY_SECOND = ("emit.checkpoints", "refresh.groups", "sync.group.offsets")
STRIMZI = "mirrormaker2-cluster"
"""The group of Strimzi's workers, and how the names of their topics begin."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A flow that goes from one to the other, with its only topic, `<mark>-numbers`."""

    flow: Flow
    file: Path
    copy: NumberedCopy

    @classmethod
    def create(cls, flow: Flow, file: Path, a: str, b: str, mark: str) -> "Moved":
        topic = create_topic(a, f"{mark}-numbers", partitions=PARTITIONS)
        return cls(flow, file, NumberedCopy(a, b, topic, f"{flow.source}.{topic}"))

    @property
    def mirrored(self) -> MirroredFlow:
        return MirroredFlow(self.flow, self.copy.a, self.copy.b)

    @property
    def connector(self) -> str:
        return f"{self.flow}.MirrorSourceConnector"

    def writer(self, folder: Path) -> Writer:
        log = folder / f"writer-{self.flow.source}.log"
        return Writer(self.copy.a, self.copy.topic, partitions=PARTITIONS, rate=RATE, log=log)

    def lockstep(self, verb: str, *arguments: str, code: int = 0) -> str:
        """What the command prints."""
        return lockstep(verb, self.file, "--flow", str(self.flow), *arguments, code=code)

    def not_written_down(self) -> int:
        """Records that MM2 copied and has not in its progress; before anybody else has copied."""
        kept = self.mirrored.mm2_progress(self.copy.topic)
        ends = end_offsets(self.copy.b, self.copy.remote)
        return sum(end - 1 - (kept[number] or 0) for number, end in ends.items())

    def refused_while_it_runs(self, *kind: str, modes: Sequence[str] = ("--dry-run", "--yes")) -> None:
        """Neither a look nor a take-over goes through, and both name who runs."""
        group = STRIMZI if kind else f"{self.flow.source}-mm2"
        for how in modes:
            said = self.lockstep("takeover", *kind, how, code=1)
            assert f"MirrorMaker 2 still runs: group {group} on {self.flow.target} has 1 member." in said


def dedicated(folder: Path, brokers: tuple[Broker, Broker], mark: str, *lines: str) -> Moved:
    """One file for both of them."""
    a, b = (broker.bootstrap for broker in brokers)
    flow = Flow(f"a{mark}", f"b{mark}")
    file = two_cluster_file(
        folder,
        (flow.source, a),
        (flow.target, b),
        f"{flow}.enabled = true",
        f"{flow}.topics = {mark}-.*",
        "emit.heartbeats.enabled = false",
        "sync.topic.acls.enabled = false",
        "tasks.max = 2",
        f"{flow.target}.task.shutdown.graceful.timeout.ms = {GRACE_MS}",
        *(f"{topic}.replication.factor = 1" for topic in FACTORS),
        *lines,
    )
    return Moved.create(flow, file, a, b, mark)


def flushes(mark: str) -> str:
    """MM2 writes its progress ten times as often as by default. It takes this for a cluster only."""
    return f"b{mark}.offset.flush.interval.ms = 6000"


def say(what: str, count: Count) -> None:
    print(f"{what}: {count}")  # noqa: T201 - the figures are what it is for


def plan_of(moved: Moved) -> list[str] | None:
    """The notes of a plan without refusals."""
    try:
        plan: dict[str, Any] = json.loads(moved.lockstep("takeover", "--dry-run", "--output", "json"))
    except AssertionError:
        return None
    return list(plan["notes"])


def equal(what: str, moved: Moved) -> Count:
    """Nothing of what was copied so far is lost, doubled or out of order."""
    count = moved.copy.counted()
    say(f"{what}, {moved.flow}", count)
    assert count.equal, count
    return count
