"""What the driver's own code makes of a large flow, without a cluster: it plans, evens out and plans again.

The load is reckoned (`modelled_fleet.py`). It reaches the driver's code as rows do: through the fold of the state topic
and the collector's rates.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from lockstep_config import load
from lockstep_data_plane.driver.load_balancer import PATIENCE_S, UNEVEN, LoadBalancer, assign, mirrored_partitions
from lockstep_data_plane.driver.metrics_collector import MetricsCollector
from lockstep_data_plane.slot.desired_state import closed_slots
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.topics.topic_reader import Record
from lockstep_rules.sliding_window import SAMPLE_MS
from lockstep_runtime.flow.context import Clock, FlowContext
from lockstep_runtime.state.leadership import Leadership, leader_label
from lockstep_runtime.telemetry.metrics import Metrics
from lockstep_state.names import Flow
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import Assignment, MirroredTopic, PartitionProgress, Row
from tests.support.mm2 import properties
from tools.bench.modelled_fleet import ModelledFleet

TIMES = 5
"""Each planning is timed so often; the median counts."""

ADDED_TOPICS, ADDED_PARTITIONS = 100, 8
BEGAN_MS = 1_750_000_000_000
MOST_ROUNDS = 100

Held = Mapping[int, Sequence[TopicPartition]]
Answer = TypeVar("Answer")


@dataclass(slots=True)
class ModelledClock:
    """A clock that only a call moves."""

    now_ms: int = BEGAN_MS

    def advance(self, seconds: float) -> None:
        self.now_ms += round(seconds * 1000)

    def clock(self) -> Clock:
        return Clock(wall_ms=lambda: self.now_ms, monotonic=lambda: self.now_ms / 1000)


class PlanningScene:
    """The driver's collector and the rows that it reads, for a flow that leads and has no clusters."""

    def __init__(self, folder: Path, slots: int) -> None:
        self.slots = slots
        self.time = ModelledClock()
        self.ctx = _leading_context(folder, self.time)
        self.collector = MetricsCollector(self.ctx, dict)

    def read(self, rows: Sequence[Row]) -> None:
        """Let the rows come through the state topic."""
        self.ctx.heartbeat_at = self.ctx.clock.monotonic()
        first = self.ctx.state.position + 1
        encoded = [replace(row, at_ms=self.time.now_ms).encode() for row in rows]
        self.ctx.state.receive(
            [Record("state", 0, first + n, key, value, self.time.now_ms) for n, (key, value) in enumerate(encoded)]
        )

    def follow_load(self, rates: Mapping[TopicPartition, float]) -> None:
        """Each partition moves for as long as a sample of a rate is."""
        self.collector.follow(list(rates))
        rows = [PartitionProgress(topic=topic, partition=number, producer_id=1) for topic, number in rates]
        for moved_s in (0, SAMPLE_MS // 1000):
            self.time.advance(moved_s)
            self.read(
                [
                    replace(row, counts_since=BEGAN_MS, bytes=round(rates[row.topic, row.partition] * moved_s))
                    for row in rows
                ]
            )

    def plan(self, slots: int | None = None) -> dict[int, tuple[TopicPartition, ...]]:
        """What the driver decides, from the rows to who has what."""
        state, limit = self.ctx.state, slots or self.slots
        wanted = mirrored_partitions(state.all(MirroredTopic), by_key=False)
        held = {row.slot: row.partitions for row in state.all(Assignment)}
        self.collector.follow(wanted)
        return assign(wanted, limit, held, self.collector.byte_rates(), closed_slots(state.rows, limit))

    def write(self, plan: Held) -> None:
        """The assignments of a plan are written down."""
        self.read([Assignment(slot=slot, partitions=tuple(partitions)) for slot, partitions in plan.items()])


def measure_planning(folder: Path, fleet: ModelledFleet, slots: int) -> tuple[dict[str, float], list[str]]:
    """Figures by key, and notes about them."""
    scene = PlanningScene(folder, slots)
    scene.read(fleet.topics)
    first_ms, first = timed_ms(scene.plan)
    scene.write(first)
    scene.follow_load(fleet.rates)
    again_ms, again = timed_ms(scene.plan)
    lost_ms, lost = timed_ms(lambda: scene.plan(slots - 1))
    before = imbalance(first, fleet.rates)
    balanced, rounds, round_ms = balance(first, fleet.rates)
    rows = [len(b"".join(Assignment(slot=slot, partitions=held).encode())) for slot, held in first.items()]
    page_ms, page = timed_ms(scene.ctx.metrics.exposition, times=1)
    larger = fleet.with_topics(ADDED_TOPICS, ADDED_PARTITIONS)
    scene.read(larger.topics[len(fleet.topics) :])
    added_ms, added = timed_ms(scene.plan)
    values = {
        "plan_first_ms": first_ms,
        "plan_again_ms": again_ms,
        "plan_again_moved": moved(first, again),
        "plan_lost_ms": lost_ms,
        "plan_lost_moved": moved(first, lost),
        "plan_lost_least": least_moved(len(fleet.partitions), slots, slots - 1),
        "plan_added_ms": added_ms,
        "plan_added_moved": moved(first, added),
        "imbalance_before": before,
        "imbalance_after": imbalance(balanced, fleet.rates),
        "heavy_slots_before": heavy_slots(first, fleet.rates),
        "heavy_slots_after": heavy_slots(balanced, fleet.rates),
        "imbalance_least": max(1.0, max(fleet.rates.values()) * slots / sum(fleet.rates.values())),
        "balance_rounds": rounds,
        "balance_minutes": rounds * PATIENCE_S / 60,
        "balance_round_ms": round_ms,
        "balance_moved": moved(first, balanced),
        "assignment_rows_bytes": sum(rows),
        "assignment_row_longest_bytes": max(rows),
        "metrics_page_ms": page_ms,
        "metrics_page_mb": len(page) / 1e6,
    }
    counts = [len(held) for held in first.values()]
    notes = [
        f"planned without a cluster, by the driver's code: {len(fleet.topics)} topics, {min(counts)} to {max(counts)} "
        f"partitions a slot; the load is reckoned: {sum(fleet.rates.values()) / 1e6:,.0f} MB/s, the topic of rank n "
        f"moves 1/n of the first, seed and skew in modelled_fleet.py",
    ]
    return values, notes


def balance(held: Held, rates: Mapping[TopicPartition, float]) -> tuple[Held, int, float]:
    """The division that the balancer leaves alone, after how many changes, and how long the slowest took."""
    balancer, now, rounds, slowest = LoadBalancer(), 0.0, 0, 0.0
    while rounds < MOST_ROUNDS:
        balancer.plan(held, rates, now)
        now += PATIENCE_S
        took_ms, better = timed_ms(partial(balancer.plan, held, rates, now), times=1)
        slowest = max(slowest, took_ms)
        if not better:
            break
        held, rounds = better, rounds + 1
    return held, rounds, slowest


def imbalance(held: Held, rates: Mapping[TopicPartition, float]) -> float:
    """What the heaviest slot moves, as a multiple of what slots move on average."""
    loads = [sum(rates.get(tp, 0.0) for tp in partitions) for partitions in held.values()]
    return max(loads) / statistics.fmean(loads)


def heavy_slots(held: Held, rates: Mapping[TopicPartition, float]) -> int:
    """How many slots move more than the balancer leaves to a slot."""
    loads = [sum(rates.get(tp, 0.0) for tp in partitions) for partitions in held.values()]
    return sum(load > UNEVEN * statistics.fmean(loads) for load in loads)


def moved(before: Held, after: Held) -> int:
    """How many partitions have another slot than before; new ones do not count."""
    slot_before = {tp: slot for slot, partitions in before.items() for tp in partitions}
    return sum(slot_before.get(tp, slot) != slot for slot, partitions in after.items() for tp in partitions)


def least_moved(partitions: int, slots: int, left: int) -> int:
    """How many have to move when slots are lost: what was theirs, if the partitions were divided evenly. The last slots
    are lost, which have the fewest."""
    return (slots - left) * (partitions // slots)


def timed_ms(call: Callable[[], Answer], times: int = TIMES) -> tuple[float, Answer]:
    """The median duration in milliseconds, and the last answer."""
    took: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        answer = call()
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took), answer


def _leading_context(folder: Path, modelled: ModelledClock) -> FlowContext:
    file = folder / "scale-planning.properties"
    file.write_text(properties("a:9092", "b:9092", ".*", {}))
    leadership = Leadership("data-plane", divided=False)
    leadership.assigned({0})
    leadership.claimed(0, 1)
    leadership.read_claim(leader_label("data-plane", 0, divided=False), "bench", 1)
    nowhere = {"bootstrap.servers": "127.0.0.1:1"}
    return FlowContext(
        "data-plane",
        load(file, {}).flow(Flow("A", "B")),
        instance="bench",
        source=Admin("A", nowhere),
        target=Admin("B", nowhere),
        leadership=leadership,
        metrics=Metrics(),
        clock=modelled.clock(),
        divided=False,
    )
