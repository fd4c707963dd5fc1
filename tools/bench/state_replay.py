"""Reads the state topic of a flow once, as one of its readers does, and prints what that took.

A process of its own for each reader, so that the memory is that reader's: ``python -m tools.bench.state_replay FILE
READER``.
"""

import asyncio
import gc
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from lockstep_acl_sync.app import AclSync
from lockstep_checkpoint.app import CheckpointFlow
from lockstep_config import FlowSettings, load
from lockstep_data_plane.driver.driver import Driver
from lockstep_data_plane.slot.progress_rows import ProgressRows
from lockstep_heartbeat.app import Heartbeats
from lockstep_kafka.topics.topic_follower import target_follower
from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.state.state_fold import StateFold
from lockstep_state.names import Flow, state_topic
from lockstep_state.rows.state_rows import Row, decode_row
from lockstep_topic_sync.app import TopicSync
from tools.bench.results import MEBIBYTE

SLOT = "slot"
WANTS: Mapping[str, frozenset[type[Row]]] = {
    "topic-sync": TopicSync.wants,
    "heartbeat": Heartbeats.wants,
    "acl-sync": AclSync.wants,
    "checkpoint": CheckpointFlow.wants,
    "data-plane": Driver.wants,
}
READERS = (*WANTS, SLOT)
"""Those that read the whole state topic."""


async def replay(settings: FlowSettings, fold: Callable[[Record], object]) -> dict[str, float]:
    """Read all there is now. Return what that took, and by how much the resident memory has grown (`grown_mib`)."""
    records = 0

    def receive(batch: Sequence[Record]) -> None:
        nonlocal records
        records += len(batch)
        for record in batch:
            fold(record)

    follower = target_follower(settings, "bench", state_topic(settings.flow, settings.group_id), receive)
    gc.collect()
    process = psutil.Process()
    resident, began, cpu = process.memory_info().rss, time.perf_counter(), time.process_time()
    await follower.replay()
    seconds, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    gc.collect()
    grown = (process.memory_info().rss - resident) / MEBIBYTE
    return {"records": records, "seconds": seconds, "cpu_s": cpu_s, "grown_mib": grown}


def fold_of_reader(reader: str) -> Callable[[Record], object]:
    """Return what the reader does with each record."""
    if reader == SLOT:
        rows, others = ProgressRows(), dict[bytes, Row | None]()

        def fold_in_slot(record: Record) -> object:
            key = record.key or b""
            if rows.fold(key, record.value):
                return rows
            others[key] = decode_row(key, record.value)
            return others[key]

        return fold_in_slot
    state = StateFold(wants=WANTS[reader])
    return lambda record: state.fold(record.offset, record.key, record.value)


def main() -> None:
    """Print what it takes to read the state topic of the flow A->B."""
    file, reader = sys.argv[1:]
    cost = asyncio.run(replay(load(Path(file), {}).flow(Flow("A", "B")), fold_of_reader(reader)))
    sys.stdout.write(f"{json.dumps(cost)}\n")


if __name__ == "__main__":
    main()
