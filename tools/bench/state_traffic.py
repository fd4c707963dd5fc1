"""What a large flow writes to its state topic, on a real broker: real rows, encoders and producers at real intervals.

The slots' work is reckoned: each second each partition has moved as `modelled_fleet.py` says. Nothing is mirrored.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

from lockstep_config import load
from lockstep_config.flow import client_settings
from lockstep_data_plane.driver.end_history import ObservedPartition
from lockstep_data_plane.driver.source_ends_watch import check_interval_s, source_ends_row
from lockstep_data_plane.slot.slot import ALIVE_EVERY_S
from lockstep_kafka.common.errors import ClusterError
from lockstep_kafka.librdkafka.control_producer import ControlProducer, ControlTopicLog
from lockstep_kafka.topics.control_topics import flow_topics
from lockstep_rules.offsets.lag import LogRange
from lockstep_runtime.util.clock import now_ms
from lockstep_state.names import Flow
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import Assignment, PartitionProgress, Row, SlotStatus
from tests.support.clusters import set_configs
from tests.support.mm2 import properties
from tests.support.systems import SystemEnded
from tools.bench.limit import LogShape, log_shape
from tools.bench.modelled_fleet import ModelledFleet
from tools.bench.results import Readings
from tools.bench.stage import Stage
from tools.bench.state_replay import READERS
from tools.bench.throughput import CLEAN_NOW, UNTIL_LATER, wait_compacted
from tools.bench.wire import end_offsets

T = TypeVar("T")

WARM_S, MEASURED_S = 15.0, 45.0
RECORD_BYTES = 470
DAYS_COPIED_S = 10 * 86_400.0
REPLAYED_WITHIN_S = 300.0

Held = Mapping[int, Sequence[TopicPartition]]
"""The partitions of each slot."""


def begun_row(tp: TopicPartition, slot: int, bytes_per_s: float, at_ms: int) -> PartitionProgress:
    """Return the progress of a partition that has been copied for ten days at this rate."""
    records = int(bytes_per_s * DAYS_COPIED_S / RECORD_BYTES)
    row = PartitionProgress(
        topic=tp[0],
        partition=tp[1],
        producer_id=4_001,
        producer_epoch=2,
        upstream=-1,
        upstream_epoch=11,
        sequence=-1,
        source_topic_id="m4oYx2QeRvW1jZ3kT5nAbw",
        target_topic_id="tP9cF0uLSkK7dG2hV6sXyA",
        counts_since=max(0, at_ms - int(DAYS_COPIED_S * 1000)),
        slot=slot,
    )
    return moved_row(row, records, at_ms)


def moved_row(row: PartitionProgress, records: int, at_ms: int) -> PartitionProgress:
    """Return the next row, so many records later: what a slot changes in it while it copies."""
    upstream, size = row.upstream + records, records * RECORD_BYTES
    return replace(
        row,
        upstream=upstream,
        downstream=upstream,
        sequence=upstream % (1 << 31),
        open_run=(0, 0, upstream + 1),
        source_end=upstream + 1,
        records=row.records + records,
        bytes=row.bytes + size,
        read_bytes=row.read_bytes + size,
        latency_ms=4,
        age_window=(at_ms, 2, 1, 19, 3),
        latency_window=(at_ms, 4, 2, 31, 5),
        at_ms=at_ms,
    )


class StateTraffic:
    """A flow of `fleet`, whose slots have what `held` says, on clean clusters with an empty state topic."""

    def __init__(self, stage: Stage, fleet: ModelledFleet, held: Held) -> None:
        """Create the state topic. Raises NeverHappened and KafkaException."""
        source, self.target = stage.clusters.source, stage.clusters.target
        self.file = stage.work / "scale-state.properties"
        self.file.write_text(properties(source, self.target, "none", {"tasks.max": str(len(held))}))
        self.settings = load(self.file, {}).flow(Flow("A", "B"))
        self.fleet, self.held, self.say = fleet, held, stage.say
        stage.clusters.begin_anew()
        topic = flow_topics(self.settings.flow, self.settings.group_id, 1)[0]
        stage.clusters.create(self.target, topic.name, topic.partitions, topic.creation_configs)
        self.topic = topic.name

    async def write(self) -> float:
        """Write as the driver and the slots do, for `WARM_S` and `MEASURED_S`. Returns the records a second in the
        latter. Raises ClusterError."""
        until = asyncio.get_running_loop().time() + WARM_S + MEASURED_S
        slots = [self._write_slot_rows(slot, partitions, until) for slot, partitions in self.held.items()]
        writing = asyncio.gather(self._write_driver_rows(until), *slots)
        per_s, _ = await asyncio.gather(self._count(), writing)
        return per_s

    async def _count(self) -> float:
        await asyncio.sleep(WARM_S)
        (first,), began = await asyncio.to_thread(self._ends), time.perf_counter()
        await asyncio.sleep(MEASURED_S - 1.0)
        (last,), ended = await asyncio.to_thread(self._ends), time.perf_counter()
        return (last - first) / (ended - began)

    @asynccontextmanager
    async def _log(self, role: str) -> AsyncIterator[ControlTopicLog]:
        producer = ControlProducer("B", client_settings.target_producer(self.settings, role))
        await producer.start()
        yield ControlTopicLog(producer, self.topic)
        await producer.stop()

    async def _write_driver_rows(self, until: float) -> None:
        loop, began_ms = asyncio.get_running_loop(), now_ms()
        rows: list[Row] = [*self.fleet.topics]
        rows += [Assignment(slot=slot, partitions=tuple(held), generation=1) for slot, held in self.held.items()]
        ends = {tp: int(rate * DAYS_COPIED_S / RECORD_BYTES) for tp, rate in self.fleet.rates.items()}
        seen = {tp: ObservedPartition(None, LogRange(0, end)) for tp, end in ends.items()}
        async with self._log("driver") as log:
            await log.append_all([replace(row, at_ms=began_ms).encode() for row in rows], partition=0)
            while loop.time() < until:
                row = replace(source_ends_row(seen, now_ms(), lambda _: began_ms), at_ms=now_ms())
                await log.append_all([row.encode()], partition=0)
                await asyncio.sleep(min(check_interval_s(len(ends)), max(0.0, until - loop.time())))

    async def _write_slot_rows(self, slot: int, partitions: Sequence[TopicPartition], until: float) -> None:
        """Write a row of each partition that moved, one after the other, as `ControlTopicWriter.flush` does."""
        loop, rates = asyncio.get_running_loop(), self.fleet.rates
        every_s = self.settings.data_plane.offset_flush_every.total_seconds()
        rows = {tp: begun_row(tp, slot, rates[tp], now_ms()) for tp in partitions}
        await asyncio.sleep(every_s * slot / len(self.held))
        alive_at = float("-inf")
        async with self._log(f"slot-{slot}") as log:
            while (began := loop.time()) < until:
                sent = []
                for tp, row in rows.items():
                    rows[tp] = moved_row(row, max(1, int(rates[tp] * every_s / RECORD_BYTES)), now_ms())
                    sent += log.send([rows[tp].encode()], partition=0)
                    await asyncio.sleep(0)
                if began - alive_at >= ALIVE_EVERY_S:
                    alive_at = began
                    held = len(rows)
                    status = SlotStatus(slot=slot, phase="started", run="bench-1-1", partitions=held, at_ms=now_ms())
                    sent += log.send([status.encode()], partition=0)
                await asyncio.gather(*sent)
                await asyncio.sleep(max(0.0, began + every_s - loop.time()))

    def _ends(self) -> tuple[int, ...]:
        return end_offsets(self.target, self.topic, 1)

    def freeze(self) -> LogShape:
        """Let the broker compact nothing more, so that every reader finds the same log. Return what it holds."""
        set_configs(self.target, self.topic, {"min.compaction.lag.ms": UNTIL_LATER})
        return log_shape(self.target, self.topic, self._ends())

    async def compact(self) -> LogShape:
        """Let the broker compact all of it, and wait. Raises NeverHappened."""
        set_configs(self.target, self.topic, CLEAN_NOW)
        await asyncio.sleep(1.0)
        async with self._log("last") as log:  # a broker never compacts the segment that it writes to
            await log.append_all([SlotStatus(slot=0, phase="released", at_ms=now_ms()).encode()], partition=0)
        # Rows of topics, partitions, slots (two each) and of the ends, and the last one.
        row_count = len(self.fleet.topics) + len(self.fleet.rates) + 2 * len(self.held) + 2
        return await asyncio.to_thread(wait_compacted, self.target, self.topic, self._ends(), row_count)

    def replays(self) -> Iterator[tuple[str, Mapping[str, float]]]:
        """Yield each reader, as keys have it, with what its replay costs now. Raises SystemEnded."""
        for reader in READERS:
            self.say(f"scale: {reader} reads the state topic")
            command = [sys.executable, "-m", "tools.bench.state_replay", str(self.file), reader]
            try:
                ran = subprocess.run(command, capture_output=True, text=True, timeout=REPLAYED_WITHIN_S, check=True)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as failed:
                raise SystemEnded(
                    f"{reader} did not read the state topic: {failed}; {failed.stderr!r:.500}"
                ) from failed
            yield reader.replace("-", "_"), json.loads(ran.stdout)


def measure_traffic(stage: Stage, fleet: ModelledFleet, held: Held) -> Readings:
    """Write, count and replay. Raises NeverHappened, SystemEnded and KafkaException."""
    traffic = StateTraffic(stage, fleet, held)
    stage.say(f"scale: {len(held)} slots write rows of {len(fleet.rates):,} partitions for {WARM_S + MEASURED_S:.0f} s")
    per_s = _completed(traffic.write())
    shape = traffic.freeze()
    row_bytes = shape.stored / shape.records
    values = {
        "state_rows_per_s": per_s,
        "state_row_bytes": row_bytes,
        "state_bytes_per_s": per_s * row_bytes,
        "state_log_mb": shape.stored / 1e6,
        "state_log_rows": shape.records,
    }
    for name, cost in traffic.replays():
        values[f"replay_log_s_{name}"] = cost["seconds"]
        values[f"fold_mib_{name}"] = cost["grown_mib"]
        values[f"follow_share_{name}"] = per_s * cost["cpu_s"] / cost["records"]
    shape = _completed(traffic.compact())
    values |= {"state_compacted_mb": shape.stored / 1e6, "state_compacted_rows": shape.records}
    values |= {f"replay_compacted_s_{name}": cost["seconds"] for name, cost in traffic.replays()}
    notes = [
        f"state topic: every partition moves each second ({len(fleet.rates):,} rows a second are asked for). Rows are "
        f"written for {WARM_S:.0f} s and then counted for {MEASURED_S:.0f} s, by one process with a producer for each "
        "slot. The log as it is: what the broker had not compacted at the end of that. To follow is reckoned: the CPU "
        "of that replay for each record, times the rows a second."
    ]
    return Readings(values=values, notes=notes)


def _completed(work: Coroutine[Any, Any, T]) -> T:
    """Do the work to its end. Raises SystemEnded if the broker does not take a row."""
    try:
        return asyncio.run(work)
    except ClusterError as trouble:
        raise SystemEnded(str(trouble)) from trouble
