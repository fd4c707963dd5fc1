"""A flow that tests plan on two real clusters: its file, its topics, and what `lockstep plan` prints about it."""

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockstep_protocol.names import Flow, state_topic
from lockstep_protocol.rows.state_rows import Row
from lockstep_protocol.schemas import schema
from tests.support.clusters import Record, admin, create_topic, produce
from tests.support.commands import lockstep
from tests.support.json_schema import faults

FACTORS = (
    "checkpoints.topic.replication.factor = 1",
    "lockstep.control.replication.factor = 1",
    "offset.storage.partitions = 3",
)
QUIET = ("emit.heartbeats.enabled = false", "heartbeats.replication.enabled = false", "tasks.max = 1")


@dataclass(frozen=True, slots=True)
class PlannedFlow:
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
