"""``python -m tools.bench.slot_path``: processor time that a slot uses for a batch, without brokers and sockets.

The loop of a slot copies partitions between two brokers in memory. Frames go in and out as they do on a socket. The
time that the brokers themselves use is left out. With ``--beside CHECKOUT`` the data plane of another checkout copies
the same batches in turn with this one. With ``--profile FILE`` one more copy is profiled."""

import argparse
import asyncio
import cProfile
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

from lockstep_config import load
from lockstep_data_plane.core.provenance import FlowIds
from lockstep_data_plane.progress.control_topic_writer import ControlTopicWriter
from lockstep_data_plane.progress.offset_sync_writer import OffsetSyncWriter
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.slot.slot_loop import SlotLoop
from lockstep_data_plane.slot.worker import COLLECT_AFTER
from lockstep_kafka.librdkafka.control_producer import ControlTopicLog
from lockstep_runtime.state.unreadable_records import UnreadableRecords
from lockstep_runtime.telemetry.failure_tracker import FailureTracker
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.util import memory
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import MirroredTopic
from tests.support.batch_bytes import LOG_APPEND_TIME, LZ4, batch_bytes, record
from tests.support.flow_context import FILE
from tests.support.framed_cluster import BrokerTime, EndlessLog, FramedCluster
from tests.support.memory_cluster import MemoryLog
from tests.support.message_sets import Message, message_set
from tools.bench.orders import Orders
from tools.bench.throughput import SHARED_KEY_EVERY

PARTITIONS = 4
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
WRITTEN_MS = 1_700_000_000_000

Form = Callable[[Sequence[PlainRecord], int], bytes]
"""What makes the batch of a source's log from its records and its last offset."""


def uncompressed(content: Sequence[PlainRecord], last_offset: int) -> bytes:
    return batch_bytes(content, base_offset=0, last_offset=last_offset)


def lz4(content: Sequence[PlainRecord], last_offset: int) -> bytes:
    return batch_bytes(content, base_offset=0, last_offset=last_offset, codec=LZ4)


def log_append_time(content: Sequence[PlainRecord], _: int) -> bytes:
    return batch_bytes(content, codec=LZ4, attributes=LOG_APPEND_TIME, max_timestamp=WRITTEN_MS)


def format_1(content: Sequence[PlainRecord], _: int) -> bytes:
    """Return a message set of the format before Kafka 0.11."""
    return message_set(1, [Message(r.offset, r.key, r.value, r.timestamp) for r in content], LZ4)


@dataclass(frozen=True, slots=True)
class Payload:
    """How many bytes of keys and values a batch has, and its form. `compacted`: one record in four is gone."""

    size: int
    form: Form = lz4
    compacted: bool = False


PAYLOADS: Mapping[str, Payload] = {
    "16k": Payload(16 << 10),
    "1k": Payload(1 << 10),
    "1k_none": Payload(1 << 10, uncompressed),
    "compacted_16k": Payload(16 << 10, compacted=True),
    "compacted_256k": Payload(256 << 10, compacted=True),
    "log_append_time_16k": Payload(16 << 10, log_append_time),
    "format_1_16k": Payload(16 << 10, format_1),
}
"""By name. A slot rebuilds the batches from `compacted_16k` on."""


@dataclass(frozen=True, slots=True)
class SourceBatch:
    """A batch of the bench's orders. `span`: the offsets that it takes, of which some may have no record."""

    data: bytes
    records: int
    span: int


async def discard(*_: object, **__: object) -> None:
    """Drop what would be written to a control topic."""


async def discard_all(records: Iterable[Any], **_: object) -> None:
    list(records)


def source_batch(payload: Payload) -> SourceBatch:
    orders, content, content_bytes = Orders.drawn(), list[PlainRecord](), 0
    while not content or content_bytes + len(orders.value(0)) < payload.size:
        number = len(content)
        key, value = orders.key(number), orders.value(number)
        content_bytes += len(key) + len(value)
        content.append(record(number, value, key=key, timestamp=WRITTEN_MS + number))
    kept = [each for each in content if not payload.compacted or each.offset % SHARED_KEY_EVERY]
    return SourceBatch(payload.form(kept, len(content) - 1), len(kept), len(content))


def scene(folder: Path, batch: SourceBatch, batches: int) -> tuple[SlotLoop, MirroredTopic, FramedCluster]:
    """Return a slot's loop between both clusters, its topic, and the target."""
    (file := folder / "mm2.properties").write_text(FILE)
    settings = load(file, {}).flow(Flow("A", "B"))
    used = BrokerTime()
    logs = [EndlessLog(batch.data, batch.span, batches) for _ in range(PARTITIONS)]
    source, target = FramedCluster("A", used, logs), FramedCluster("B", used)
    source.create("t", *(MemoryLog() for _ in logs))
    target.create("A.t", *(MemoryLog() for _ in logs))
    target.create("mm2-offsets.A.internal", MemoryLog())
    say = FlowLog("data-plane", settings.flow)
    no_topic = cast(ControlTopicLog, SimpleNamespace(append_all=discard_all))
    writer = SimpleNamespace(  # offset syncs are made, and nothing is written
        slot=0,
        syncs=OffsetSyncWriter(no_topic, settings.data_plane.offset_lag_max, say),
        add_partition=lambda _: None,
        remove_partition=lambda _: None,
        write=discard,
        event=discard,
    )
    topic = MirroredTopic(
        source_topic="t",
        target_topic="A.t",
        source_topic_id=TOPIC_ID,
        target_topic_id=TOPIC_ID,
        partitions=PARTITIONS,
        target_partitions=PARTITIONS,
    )
    with patch("lockstep_data_plane.slot.slot_loop.connect_clusters", lambda *_: (source, target)):
        control, pass_over = cast(ControlTopicWriter, writer), UnreadableRecords(say).pass_over_at
        common = settings, FlowIds(4000), control, FailureTracker(say)
        loop = SlotLoop(*common, {"t": topic}, {}, lambda tp: (), pass_over)
    return loop, topic, target


async def copied(folder: Path, batch: SourceBatch, batches: int, switch: Callable[[], None]) -> dict[str, Any]:
    """Copy everything. ``switch`` is called when all partitions copy, and when the last batch is through."""
    loop, topic, target = scene(folder, batch, batches)
    tasks = [asyncio.create_task(loop.run_partition(("t", number), topic)) for number in range(PARTITIONS)]
    total = batch.records * batches * PARTITIONS
    while sum(partition.reads for partition in loop.partitions.values()) < PARTITIONS:
        await asyncio.sleep(0)
    switch()
    began, used, before = time.process_time(), target.time_used.seconds, loop.appended
    while loop.appended < total:
        loop.check()
        await asyncio.sleep(0.001)
    duration_s = time.process_time() - began - (target.time_used.seconds - used)
    switch()
    moved = (loop.appended - before) / batch.records
    if target.ends != dict.fromkeys(range(PARTITIONS), batch.records * batches):
        raise SystemExit(f"the copy has {target.ends}, the source {batch.records * batches} in each partition")
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return {
        "us": duration_s / moved * 1e6,
        "batches_a_request": target.batches / target.requests,
        "sent": target.batches,
        "records": batch.records,
        "stored": len(batch.data),
    }


def measured(payload: str, batches: int, profile: Path | None) -> dict[str, Any]:
    """Copy once in this process. Return the figures by name."""
    profiler, states = cProfile.Profile(), [True, False]

    def switch() -> None:
        if profile is not None:
            (profiler.enable if states.pop(0) else profiler.disable)()

    memory.freeze_gc(COLLECT_AFTER)  # as a worker of Spark does
    with tempfile.TemporaryDirectory(prefix="lockstep-slot-") as folder:
        figures = asyncio.run(copied(Path(folder), source_batch(PAYLOADS[payload]), batches, switch))
    if profile is not None:
        profiler.dump_stats(profile)
    return figures


def in_child(checkout: Path | None, payload: str, batches: int) -> dict[str, Any]:
    """Copy once in a process of its own, with the data plane of a checkout, or of this one if it is None."""
    paths = [] if checkout is None else [str(path) for path in sorted(checkout.resolve().glob("*/*/src"))]
    command = (sys.executable, "-m", "tools.bench.slot_path", "--once", "--payload", payload, "--batches", str(batches))
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, os.getcwd()])}
    done = subprocess.run(command, env=environ, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> int:
    """Print the best of several copies for each payload and checkout."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.slot_path", description=__doc__)
    parser.add_argument("--payload", choices=[*PAYLOADS, "all"], default="all")
    parser.add_argument("--batches", type=int, default=4_000, help="of each of the four partitions")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--beside", type=Path, help="another checkout, whose data plane is measured in turn")
    parser.add_argument("--profile", type=Path, metavar="FILE", help="write a profile for pstats")
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.once:
        logging.disable(logging.INFO)
        sys.stdout.write(json.dumps(measured(chosen.payload, chosen.batches, None)) + "\n")
        return 0
    for payload in PAYLOADS if chosen.payload == "all" else [chosen.payload]:
        checkouts = [None] if chosen.beside is None else [chosen.beside, None]
        best: dict[Path | None, dict[str, Any]] = {}
        for _ in range(chosen.runs):
            for checkout in checkouts:
                figures = in_child(checkout, payload, chosen.batches)
                best[checkout] = min(best.get(checkout, figures), figures, key=lambda copy: float(copy["us"]))
        for checkout, figures in best.items():
            sys.stdout.write(
                f"{payload} {checkout or 'this checkout'}: {figures['us']:.1f} us a batch of {figures['records']} "
                f"records ({figures['stored']} bytes); {figures['batches_a_request']:.1f} in a request, "
                f"{figures['sent']} sent\n"
            )
        if chosen.profile:
            measured(payload, chosen.batches, chosen.profile)
    return 0


if __name__ == "__main__":
    sys.exit(main())
