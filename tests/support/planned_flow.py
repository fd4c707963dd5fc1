"""A flow that tests plan on two real clusters: its file, its topics, and what `lockstep plan` prints about it."""

import json
import time
from dataclasses import dataclass
from typing import Any

from lockstep_state.schemas import schema
from tests.support.clusters import Record, create_topic, produce
from tests.support.commands import lockstep
from tests.support.json_schema import faults
from tests.support.own_flow import OwnFlow

FACTORS = (
    "checkpoints.topic.replication.factor = 1",
    "lockstep.control.replication.factor = 1",
    "offset.storage.partitions = 3",
)
QUIET = ("emit.heartbeats.enabled = false", "heartbeats.replication.enabled = false", "tasks.max = 1")


@dataclass(frozen=True, slots=True)
class PlannedFlow(OwnFlow):
    """What a plan says about it."""

    def plan(self, *arguments: str, code: int = 0) -> str:
        return lockstep("plan", self.file, *arguments, code=code)

    def body(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        plan: dict[str, Any] = json.loads(self.plan("--output", "json", *arguments, code=code))
        assert list(faults(plan, schema("plan"), "plan")) == []
        return plan

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


def numbered(count: int, age_s: float = 0.0) -> list[Record]:
    then = int((time.time() - age_s) * 1000)
    return [Record(value=b"%d" % number + b"v" * 100, timestamp_ms=then + number) for number in range(count)]


def hazards(flow: dict[str, Any]) -> dict[str, list[str]]:
    return {hazard["code"]: hazard["details"] for hazard in flow["hazards"]}


def only_partition(flow: dict[str, Any]) -> dict[str, Any]:
    (topic,) = flow["copy"]["topics"]
    (partition,) = topic["partitions"]
    assert isinstance(partition, dict)
    return partition
