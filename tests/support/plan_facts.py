"""What a plan is computed from, made by hand: a flow A->B with the topic `orders`, of one partition."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lockstep_config import FlowSettings, load
from lockstep_ops.plan.rules.copy_forecast import CopyRate, copy_forecast
from lockstep_ops.plan.rules.flow_facts import RELIED_ON, ClusterState, FlowFacts, LogFacts, TopicFacts
from lockstep_ops.plan.rules.flow_plan import CopyForecast, PartitionForecast, TopicForecast
from lockstep_rules.topic_plan import Create, Selection, TopicSyncPlan
from tests.support.flow_context import FILE

NOW_MS = 1_790_000_000_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

DELETED = {"cleanup.policy": "delete", "retention.ms": str(7 * DAY_MS)}


@cache
def settings_for(*lines: str) -> FlowSettings:
    """Return the flow A->B of a file with these lines."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "mm2.properties"
        path.write_text(FILE + "\n".join(lines) + "\n", encoding="utf-8")
        return load(path, {}).flows[0]


def cluster(alias: str, topics: Mapping[str, TopicFacts] | None = None, **fields: Any) -> ClusterState:
    facts_by_topic = topics or {}
    facts = ClusterState(
        alias=alias,
        bootstrap=f"{alias.lower()}:9092",
        cluster_id=f"id-of-{alias}",
        brokers=3,
        names={name: fact.partitions for name, fact in facts_by_topic.items()},
        topics=facts_by_topic,
        message_max=1_048_588,
    )
    return replace(facts, **fields)


def topic(partitions: int = 1, own: Mapping[str, str] | None = None, **configs: str) -> TopicFacts:
    named = {key.replace("_", "."): value for key, value in configs.items()}
    assert named.keys() <= set(RELIED_ON), "a plan reads no other configs"
    return TopicFacts("id", partitions, {**DELETED, "max.message.bytes": "1048588", **named}, own or {})


def log(records: int = 100, size: int | None = 1000, age_ms: int | None = DAY_MS, begin: int = 0) -> LogFacts:
    """Return `records` from `begin` on, the first of which is `age_ms` old."""
    return LogFacts(begin, begin + records, None if age_ms is None else NOW_MS - age_ms, size)


def facts(settings: FlowSettings, **fields: Any) -> FlowFacts:
    """Return the facts of a flow that has nothing on B yet, with `fields` in place of its own."""
    usual = FlowFacts(
        settings=settings,
        at_ms=NOW_MS,
        source=cluster("A", {"orders": topic()}),
        target=cluster("B"),
        selection=Selection({"orders": "A.orders"}),
        partitions=TopicSyncPlan((Create("orders", "A.orders", 1),)),
        logs={("orders", 0): log()},
        bytes_basis="log-directories",
    )
    return replace(usual, **fields)


def forecast(flow_facts: FlowFacts, per_second: int = 1_000_000) -> CopyForecast:
    return copy_forecast(flow_facts, CopyRate(per_second, "stated"))


def only_partition(copy: CopyForecast) -> PartitionForecast:
    (partition,) = only_topic(copy).partitions
    return partition


def only_topic(copy: CopyForecast) -> TopicForecast:
    (planned,) = copy.topics
    return planned
