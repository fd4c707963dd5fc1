"""A flow of 10,000 partitions in 50 slots, as far as one machine can say something of it.

Two measurements that do not depend on each other: the driver's planning, and the traffic of the state topic. If one
fails, it is shown beside the figures of the other. The driver plans without a cluster. The load is reckoned
(`modelled_fleet.py`), and reaches its code as rows do: through the fold of the state topic and the collector's rates.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from lockstep_data_plane.driver.load_balancer import PATIENCE_S, UNEVEN, LoadBalancer, assign
from lockstep_data_plane.driver.metrics_collector import MetricsCollector
from lockstep_data_plane.slot.desired_partitions import closed_slots
from lockstep_data_plane.verify.partition_share import copied_partitions
from lockstep_rules.sliding_window import SAMPLE_MS
from lockstep_runtime.flow.context import Clock
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import Assignment, MirroredTopic, PartitionProgress
from lockstep_state.rows.state_rows import Row as StateRow
from tests.support.flow_context import leading, state_record
from tools.bench.modelled_fleet import ModelledFleet
from tools.bench.results import OURS, Failed, Readings, Systems
from tools.bench.stage import Measured, Stage
from tools.bench.state_traffic import Held, measure_traffic

SCALE = "scale"
PARTITIONS, SLOTS, BYTES_PER_S = 10_000, 50, 500e6
TIMES = 5
"""Each planning is timed so often; the median counts."""
ADDED_TOPICS, ADDED_PARTITIONS = 100, 8
BEGAN_MS = 1_750_000_000_000
MOST_ROUNDS = 100

Answer = TypeVar("Answer")


class PlanningScene:
    """The driver's collector and the rows that it reads, for a flow that leads and has no clusters."""

    def __init__(self, folder: Path, slots: int) -> None:
        self.slots, self.now_ms = slots, BEGAN_MS
        clock = Clock(wall_ms=lambda: self.now_ms, monotonic=lambda: self.now_ms / 1000)
        self.ctx = leading(folder, "data-plane", (0, 1), clock=clock)
        self.collector = MetricsCollector(self.ctx, dict)

    def read(self, rows: Sequence[StateRow]) -> None:
        """Let the rows come through the state topic."""
        self.ctx.heartbeat_at = self.ctx.clock.monotonic()
        first = self.ctx.state.position + 1
        written = (replace(row, at_ms=self.now_ms) for row in rows)
        self.ctx.state.receive([state_record(row, first + number) for number, row in enumerate(written)])

    def follow_load(self, rates: Mapping[TopicPartition, float]) -> None:
        """Let each partition move for as long as a sample of a rate is."""
        self.collector.follow(list(rates))
        for moved_s in (0, SAMPLE_MS // 1000):
            self.now_ms += moved_s * 1000
            for (topic, number), rate in rates.items():
                row = PartitionProgress(topic=topic, partition=number, producer_id=1, counts_since=BEGAN_MS)
                self.read([replace(row, bytes=round(rate * moved_s))])

    def plan(self, slots: int | None = None) -> dict[int, tuple[TopicPartition, ...]]:
        """Return what the driver decides, from the rows to who has what."""
        state, limit = self.ctx.state, slots or self.slots
        wanted = copied_partitions(state.all(MirroredTopic), by_key=False)
        held = {row.slot: row.partitions for row in state.all(Assignment)}
        self.collector.follow(wanted)
        return assign(wanted, limit, held, self.collector.byte_rates(), closed_slots(state.rows, limit))


def measure_planning(folder: Path, fleet: ModelledFleet, slots: int) -> Readings:
    """Let the driver's own code plan, even out and plan again."""
    scene, rates = PlanningScene(folder, slots), fleet.rates
    scene.read(fleet.topics)
    first_ms, first = timed_ms(scene.plan)
    assignments = [Assignment(slot=slot, partitions=tuple(held)) for slot, held in first.items()]
    scene.read(assignments)
    scene.follow_load(rates)
    again_ms, again = timed_ms(scene.plan)
    lost_ms, lost = timed_ms(lambda: scene.plan(slots - 1))
    balanced, rounds, round_ms = balance(first, rates)
    row_bytes = [len(b"".join(row.encode())) for row in assignments]
    page_ms, page = timed_ms(scene.ctx.metrics.exposition, times=1)
    scene.read(fleet.with_topics(ADDED_TOPICS, ADDED_PARTITIONS).topics[len(fleet.topics) :])
    added_ms, added = timed_ms(scene.plan)
    counts = [len(held) for held in first.values()]
    return Readings(
        values={
            "plan_first_ms": first_ms,
            "plan_again_ms": again_ms,
            "plan_again_moved": moved(first, again),
            "plan_lost_ms": lost_ms,
            "plan_lost_moved": moved(first, lost),
            "plan_lost_least": least_moved(len(fleet.partitions), slots, slots - 1),
            "plan_added_ms": added_ms,
            "plan_added_moved": moved(first, added),
            "imbalance_before": imbalance(first, rates),
            "imbalance_after": imbalance(balanced, rates),
            "heavy_slots_before": heavy_slots(first, rates),
            "heavy_slots_after": heavy_slots(balanced, rates),
            "imbalance_least": max(1.0, max(rates.values()) * slots / sum(rates.values())),
            "balance_rounds": rounds,
            "balance_minutes": rounds * PATIENCE_S / 60,
            "balance_round_ms": round_ms,
            "balance_moved": moved(first, balanced),
            "assignment_rows_bytes": sum(row_bytes),
            "assignment_row_longest_bytes": max(row_bytes),
            "metrics_page_ms": page_ms,
            "metrics_page_mb": len(page) / 1e6,
        },
        notes=[
            f"planned without a cluster, by the driver's code: {len(fleet.topics)} topics, {min(counts)} to "
            f"{max(counts)} partitions a slot; the load is reckoned: {sum(rates.values()) / 1e6:,.0f} MB/s, the topic "
            "of rank n moves 1/n of the first, seed and skew in modelled_fleet.py",
        ],
    )


def balance(held: Held, rates: Mapping[TopicPartition, float]) -> tuple[Held, int, float]:
    """Return the division that the balancer leaves alone, after how many changes, and how long the slowest took."""
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


def _loads(held: Held, rates: Mapping[TopicPartition, float]) -> list[float]:
    """Return what each slot moves, as a multiple of what slots move on average."""
    loads = [sum(rates.get(tp, 0.0) for tp in partitions) for partitions in held.values()]
    return [load / statistics.fmean(loads) for load in loads]


def imbalance(held: Held, rates: Mapping[TopicPartition, float]) -> float:
    """Return what the heaviest slot moves, as a multiple of the average."""
    return max(_loads(held, rates))


def heavy_slots(held: Held, rates: Mapping[TopicPartition, float]) -> int:
    """Return how many slots move more than the balancer leaves to a slot."""
    return sum(load > UNEVEN for load in _loads(held, rates))


def moved(before: Held, after: Held) -> int:
    """Return how many partitions have another slot than before; new ones do not count."""
    slot_before = {tp: slot for slot, partitions in before.items() for tp in partitions}
    return sum(slot_before.get(tp, slot) != slot for slot, partitions in after.items() for tp in partitions)


def least_moved(partitions: int, slots: int, remaining: int) -> int:
    """Return how many have to move when the last slots are lost, which have the fewest partitions."""
    return (slots - remaining) * (partitions // slots)


def timed_ms(act: Callable[[], Answer], times: int = TIMES) -> tuple[float, Answer]:
    """Return the median duration in milliseconds, and the last answer."""
    durations_ms: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        answer = act()
        durations_ms.append((time.perf_counter() - began) * 1000)
    return statistics.median(durations_ms), answer


def _scale(stage: Stage) -> Measured:
    """Plan, and write the state topic, of Lockstep alone."""
    fleet = ModelledFleet.modelled(PARTITIONS, BYTES_PER_S)
    held = assign(fleet.partitions, SLOTS, {})
    measured: dict[str, Readings | Failed] = {}
    if stage.ours:
        measured["planning"] = stage.attempt(SCALE, "planning", partial(measure_planning, stage.work, fleet, SLOTS))
        measured["state topic"] = stage.attempt(SCALE, "state topic", partial(measure_traffic, stage, fleet, held))
    return {"partitions": PARTITIONS, "slots": SLOTS, "added_topics": ADDED_TOPICS}, merged(measured)


def merged(systems: Systems) -> Systems:
    """Return one column with all that was measured, and one for each measurement that failed."""
    measured = [readings for readings in systems.values() if isinstance(readings, Readings)]
    failed = {name: readings for name, readings in systems.items() if isinstance(readings, Failed)}
    if not measured:
        return failed
    values = {key: value for readings in measured for key, value in readings.values.items()}
    return {OURS: Readings(values=values, notes=[note for readings in measured for note in readings.notes]), **failed}


MEASURES = {SCALE: _scale}
