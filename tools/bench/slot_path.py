"""``python -m tools.bench.slot_path``: processor time that a slot uses for a batch, without brokers and sockets.

The engine of a slot copies partitions between two brokers in memory. Frames go in and out as they do on a socket. The
time that the brokers themselves use is left out. With ``--beside CHECKOUT`` the data plane of another checkout copies
the same batches in turn with this one. With ``--profile FILE`` one more copy is profiled."""

import argparse
import asyncio
import cProfile
import json
import logging
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from lockstep_config import load
from lockstep_data_plane.core.machine import PartitionMachine
from lockstep_data_plane.core.provenance import FlowIds
from lockstep_data_plane.progress.control_topic_writer import ControlTopicWriter
from lockstep_data_plane.progress.offset_sync_writer import OffsetSyncWriter
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.slot.engine import SlotEngine
from lockstep_kafka.librdkafka.control_producer import ControlTopicLog
from lockstep_kafka.messages.message_versions import message
from lockstep_kafka.wire.connection import Connection
from lockstep_runtime.state.unreadable_records import UnreadableRecords
from lockstep_runtime.telemetry.failure_tracker import FailureTracker
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import MirroredTopic, Row
from tests.support.batch_bytes import LZ4, batch_bytes, record
from tests.support.flow_context import FILE
from tests.support.memory_cluster import MemoryCluster, MemoryLog, _MemoryConnection
from tools.bench.orders import Orders

PARTITIONS = 4
SESSION = 7
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
BASE_OFFSET = struct.Struct(">q")
FRAME_PREFIX = 4
HEADER = struct.Struct(">hhi")
NO_TAGS = b"\0"
CLIENT_ID = "slot"
CLIENT_HEADER_SIZE = 2 + len(CLIENT_ID) + len(NO_TAGS)
PAYLOADS = {"16k": (16 << 10, LZ4), "1k": (1 << 10, LZ4), "1k_none": (1 << 10, 0)}
"""By name: how many bytes of keys and values a batch has, and its codec."""


class BrokerTime:
    """Processor time that the brokers use, which is not the slot's."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """What is done inside is the brokers' work."""
        began = time.process_time()
        try:
            yield
        finally:
            self.seconds += time.process_time() - began


class EndlessLog:
    """The log of a source partition: ``batches`` times the same batch, at offsets that follow each other."""

    def __init__(self, batch: bytes, records: int, batches: int) -> None:
        self._batch = batch
        self.records = records
        self.end = records * batches

    def read(self, offset: int, at_most: int) -> bytes:
        """Whole batches from the offset on."""
        size = len(self._batch)
        count = min((self.end - offset) // self.records, max(1, at_most // size))
        data = bytearray(self._batch * count)
        for index in range(count):
            BASE_OFFSET.pack_into(data, index * size, offset + index * self.records)
        return bytes(data)


class FramedCluster(MemoryCluster):
    """Its connections for fetching and producing exchange frames."""

    def __init__(self, alias: str, time_used: BrokerTime, source: Iterable[EndlessLog] = ()) -> None:
        super().__init__(alias)
        self.time_used = time_used
        self.source = list(source)
        self.requests = self.batches = 0
        self.ends = [0] * PARTITIONS
        self._framed: dict[str, FramedConnection] = {}

    async def connection(self, broker: int, purpose: str) -> Connection:
        if not purpose.startswith(("fetch-", "produce-")):
            return _MemoryConnection(self)
        if purpose not in self._framed:
            self._framed[purpose] = FramedConnection(self, purpose.startswith("fetch-"))
        return self._framed[purpose]


class FramedConnection(Connection):
    """A real connection. A broker in memory takes its frames, and answers each a turn of the loop later."""

    def __init__(self, cluster: FramedCluster, fetches: bool) -> None:
        super().__init__("broker", 9092, client_id=CLIENT_ID)
        known = _MemoryConnection(cluster)
        self._versions = known._versions
        self._cluster = cluster
        self._writer = self
        self.round_trip_s = 0.001
        self._asked: dict[Any, tuple[int, int]] = {}
        api = "fetch" if fetches else "produce"
        self._answer = self._fetch if fetches else self._produce
        self._version = self.version(api)
        self._read = entity_reader(getattr(message(api, self._version, "request"), f"{api.title()}Request"))
        self._m = message(api, self._version, "response")

    def write(self, frame: bytes) -> None:
        """In the place of the socket."""
        with self._cluster.time_used.counted():
            at = FRAME_PREFIX + HEADER.size + CLIENT_HEADER_SIZE
            request, _ = self._read(memoryview(frame), at)
            out = BytesIO()
            out.write(frame[FRAME_PREFIX + 4 : FRAME_PREFIX + 8] + NO_TAGS)  # the number of the request
            has_news = self._answer(request, out)
            answer = memoryview(out.getvalue())
        loop = asyncio.get_running_loop()
        if has_news:
            loop.call_soon(self._answered, answer)

    def close(self, reason: Any = None, exc: BaseException | None = None) -> Any:
        return None

    def _fetch(self, request: Any, out: BytesIO) -> bool:
        asked = self._asked
        for topic in request.topics:
            for p in topic.partitions:
                asked[topic.topic_id, p.partition] = p.fetch_offset, p.partition_max_bytes
        for topic in request.forgotten_topics_data:
            for number in topic.partitions:
                asked.pop((topic.topic_id, number), None)
        parts, left = [], int(request.max_bytes)
        for (_, number), (offset, most) in asked.items():
            log = self._cluster.source[number]
            data = log.read(offset, min(most, left)) if left > 0 and offset < log.end else b""
            left -= len(data)
            if data:
                parts.append(
                    self._m.PartitionData(
                        partition_index=number,
                        error_code=ErrorCode.none,
                        high_watermark=log.end,
                        last_stable_offset=log.end,
                        aborted_transactions=None,
                        records=data,
                    )
                )
        topics = tuple(
            self._m.FetchableTopicResponse(topic_id=topic_id, partitions=tuple(parts))
            for topic_id in {key[0] for key in asked}
        )
        answer = self._m.FetchResponse(
            throttle_time=timedelta(0), error_code=ErrorCode.none, session_id=SESSION, responses=topics
        )
        entity_writer(type(answer))(out, answer)
        return bool(parts)

    def _produce(self, request: Any, out: BytesIO) -> bool:
        topics = []
        self._cluster.requests += 1
        for topic in request.topic_data:
            parts = []
            for p in topic.partition_data:
                self._cluster.batches += 1
                base = self._cluster.ends[p.index]
                self._cluster.ends[p.index] = base + struct.unpack_from(">i", p.records, 57)[0]
                parts.append(
                    self._m.PartitionProduceResponse(
                        index=p.index,
                        error_code=ErrorCode.none,
                        base_offset=base,
                        record_errors=(),
                    )
                )
            topics.append(self._m.TopicProduceResponse(topic_id=topic.topic_id, partition_responses=tuple(parts)))
        answer = self._m.ProduceResponse(responses=tuple(topics), throttle_time=timedelta(0))
        entity_writer(type(answer))(out, answer)
        return True


class NoControlTopic:
    """In the place of the control topics: what is appended is gone."""

    async def append_all(self, records: Iterable[Any], **_: Any) -> None:
        list(records)


class NoControlWriter:
    """In the place of `ControlTopicWriter`: offset syncs are made, and nothing is written."""

    slot = 0

    def __init__(self, lag_max: int, say: FlowLog) -> None:
        self.syncs = OffsetSyncWriter(cast(ControlTopicLog, NoControlTopic()), lag_max, say)

    def add_partition(self, partition: PartitionMachine) -> None:
        """Nothing is kept of it."""

    def remove_partition(self, partition: PartitionMachine) -> None:
        """Nothing is kept of it."""

    async def write(self, row: Row) -> None:
        """It is gone."""

    async def event(self, kind: str, subject: str, text: str = "", **detail: object) -> None:
        """It is gone."""


def source_batch(size: int, codec: int) -> tuple[bytes, int]:
    """A batch of the bench's orders, so many bytes of keys and values, and how many records it has."""
    orders, content, held = Orders.drawn(), list[PlainRecord](), 0
    while not content or held + len(orders.value(0)) < size:
        number = len(content)
        key, value = orders.key(number), orders.value(number)
        held += len(key) + len(value)
        content.append(record(number, value, key=key, timestamp=1_700_000_000_000 + number))
    return batch_bytes(content, codec=codec), len(content)


def scene(folder: Path, batch: bytes, records: int, batches: int) -> tuple[SlotEngine, MirroredTopic, FramedCluster]:
    """A slot's engine between both clusters, and its target."""
    (file := folder / "mm2.properties").write_text(FILE)
    settings = load(file, {}).flow(Flow("A", "B"))
    used = BrokerTime()
    logs = [EndlessLog(batch, records, batches) for _ in range(PARTITIONS)]
    source, target = FramedCluster("A", used, logs), FramedCluster("B", used)
    source.create("t", *(MemoryLog() for _ in logs))
    target.create("A.t", *(MemoryLog() for _ in logs))
    target.create("mm2-offsets.A.internal", MemoryLog())
    say = FlowLog("data-plane", settings.flow)
    writer = NoControlWriter(settings.data_plane.offset_lag_max, say)
    topic = MirroredTopic(
        source_topic="t",
        target_topic="A.t",
        source_topic_id=TOPIC_ID,
        target_topic_id=TOPIC_ID,
        partitions=PARTITIONS,
        target_partitions=PARTITIONS,
    )
    with patch("lockstep_data_plane.slot.engine.connect_clusters", lambda *_: (source, target)):
        control, pass_over = cast(ControlTopicWriter, writer), UnreadableRecords(say).pass_over_at
        common = settings, FlowIds(4000), control, FailureTracker(say)
        engine = SlotEngine(*common, {"t": topic}, {}, lambda tp: (), pass_over)
    return engine, topic, target


async def copied(folder: Path, batch: bytes, records: int, batches: int, switch: Callable[[], None]) -> dict[str, Any]:
    """Copy everything. ``switch`` is called when all partitions copy, and when the last batch is through."""
    engine, topic, target = scene(folder, batch, records, batches)
    tasks = [asyncio.create_task(engine.tend(("t", number), topic)) for number in range(PARTITIONS)]
    total = records * batches * PARTITIONS
    while sum(partition.reads for partition in engine.partitions.values()) < PARTITIONS:
        await asyncio.sleep(0)
    switch()
    began, used, before = time.process_time(), target.time_used.seconds, engine.appended
    while engine.appended < total:
        engine.check()
        await asyncio.sleep(0.001)
    took = time.process_time() - began - (target.time_used.seconds - used)
    switch()
    moved = (engine.appended - before) / records
    if target.ends != [records * batches] * PARTITIONS:
        raise SystemExit(f"the copy has {target.ends}, the source {records * batches} in each partition")
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return {"us": took / moved * 1e6, "batches_a_request": target.batches / target.requests, "sent": target.batches}


def measured(payload: str, batches: int, profile: Path | None) -> dict[str, Any]:
    """One copy in this process."""
    batch, records = source_batch(*PAYLOADS[payload])
    profiler, states = cProfile.Profile(), [True, False]

    def switch() -> None:
        if profile is not None:
            (profiler.enable if states.pop(0) else profiler.disable)()

    logging.disable(logging.INFO)
    with tempfile.TemporaryDirectory(prefix="lockstep-slot-") as folder:
        found = asyncio.run(copied(Path(folder), batch, records, batches, switch))
    if profile is not None:
        profiler.dump_stats(profile)
    return {**found, "records": records, "stored": len(batch)}


def in_child(checkout: Path | None, payload: str, batches: int) -> dict[str, Any]:
    """The same in a process of its own, with the data plane of a checkout; None: of this one."""
    paths = [] if checkout is None else [str(path) for path in sorted(checkout.resolve().glob("*/*/src"))]
    command = (sys.executable, "-m", "tools.bench.slot_path", "--once", "--payload", payload, "--batches", str(batches))
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, os.getcwd()])}
    done = subprocess.run(command, env=environ, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


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
        sys.stdout.write(json.dumps(measured(chosen.payload, chosen.batches, None)) + "\n")
        return 0
    for payload in PAYLOADS if chosen.payload == "all" else [chosen.payload]:
        checkouts = [None] if chosen.beside is None else [chosen.beside, None]
        best: dict[Path | None, dict[str, Any]] = {}
        for _ in range(chosen.runs):
            for checkout in checkouts:
                found = in_child(checkout, payload, chosen.batches)
                best[checkout] = min(best.get(checkout, found), found, key=lambda each: float(each["us"]))
        for checkout, found in best.items():
            sys.stdout.write(
                f"{payload} {checkout or 'this checkout'}: {found['us']:.1f} us a batch of {found['records']} records "
                f"({found['stored']} bytes); {found['batches_a_request']:.1f} in a request, {found['sent']} sent\n"
            )
        if chosen.profile:
            measured(payload, chosen.batches, chosen.profile)
    return 0


if __name__ == "__main__":
    sys.exit(main())
