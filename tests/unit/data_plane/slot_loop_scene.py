"""The loop of a slot between two clusters in memory: their connections also answer fetches and appends as they come,
and fail as the test says. Nothing of the loop is replaced but the sockets and the control topics."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, cast

import pytest

from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.phases import Phase
from lockstep_data_plane.core.provenance import FlowIds
from lockstep_data_plane.core.quarantine_entry import RefusedRecords
from lockstep_data_plane.progress.control_topic_writer import ControlTopicWriter
from lockstep_data_plane.record_batch.layout import CODEC_MASK, TRANSACTIONAL, scan
from lockstep_data_plane.slot.partition_task import PartitionBackoff
from lockstep_data_plane.slot.slot_loop import SlotLoop
from lockstep_data_plane.slot.slot_transforms import SlotTransforms
from lockstep_kafka.common.backoff import Backoff
from lockstep_kafka.messages.message_versions import load_message
from lockstep_kafka.wire.connection import Connection
from lockstep_kafka.wire.connection_errors import BrokerUnreachable, ConnectionClosedError
from lockstep_runtime.state.unreadable_records import UnreadableRecords
from lockstep_runtime.telemetry.failure_tracker import FailureTracker
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress, Row
from tests.support.batch_bytes import decoded
from tests.support.eventually import eventually
from tests.support.flow_context import flow_settings
from tests.support.kio_codec import read_back
from tests.support.memory_cluster import NOTHING, MemoryCluster, MemoryLog, _MemoryConnection
from tests.unit.data_plane.resume_scene import FIRST_ID, OURS

SOON_S = 0.01
"""How long a broker keeps a fetch for which there is nothing, and the first pause after a failure."""


class ScriptedCluster(MemoryCluster):
    def __init__(self, alias: str) -> None:
        super().__init__(alias)
        self.fetch_codes: deque[int] = deque()
        self.append_codes: deque[int] = deque()
        """Error codes of the next answers."""
        self.refused_codecs: dict[int, int] = {}
        """The error code with which batches of a codec are refused."""
        self.largest_request: int | None = None
        """The connection is closed on appends with more bytes of batches."""
        self.keeps_ids = self.keeps_ids_in_transactions = self.checks_sequences = self.takes_ids = True
        """As Kafka does with producer ids."""
        self.closes_on_ids = False
        """The connection is closed on appends with a producer id."""
        self.fences = self.aborts = True
        """As Kafka does with transactions."""
        self.holds_fetches = False
        """Fetches are taken, and not answered."""
        self.holds_answers = False
        """Appends are taken, and not answered."""
        self.open_codes: deque[int] = deque()
        self.connections: dict[tuple[int, str], AskingConnection] = {}

    async def connection(self, broker: int, produce_connection: str) -> Connection:
        connection = self.connections.get((broker, produce_connection))
        if connection is None or connection.closed:
            connection = self.connections[broker, produce_connection] = AskingConnection(self)
        return connection

    async def any_connection(self) -> Connection:
        return await self.connection(1, "any")

    def cut(self) -> None:
        """Every connection ends; who asks again gets a new one."""
        for connection in self.connections.values():
            connection.close()


class AskingConnection(_MemoryConnection):
    def __init__(self, cluster: ScriptedCluster) -> None:
        super().__init__(cluster)
        self._scripted = cluster
        self._is_closed = False
        self._out: list[asyncio.Future[Any]] = []

    @property
    def closed(self) -> bool:
        return self._is_closed

    @property
    def unanswered(self) -> int:
        return sum(not future.done() for future in self._out)

    def close(self, reason: object = None, exc: BaseException | None = None) -> Any:
        self._is_closed = True
        for future in self._out:
            if not future.done():
                future.set_exception(BrokerUnreachable("broker:9092: the connection ended"))

    def send(self, entity: Any, seen: Callable[[Any], None] | None = None) -> asyncio.Future[Any]:
        if self._is_closed:
            raise BrokerUnreachable("broker:9092: the connection is closed")
        request, future = read_back(entity), asyncio.get_running_loop().create_future()
        self._out = [*(other for other in self._out if not other.done()), future]
        largest = self._scripted.largest_request
        if largest is not None and _bytes_of(request) > largest:
            asyncio.get_running_loop().call_soon(self.close)
            return future
        asyncio.get_running_loop().call_soon(self._answer, request, seen, future)
        return future

    def _answer(self, request: Any, seen: Callable[[Any], None] | None, future: asyncio.Future[Any]) -> None:
        fetches_held = self._scripted.holds_fetches and type(request).__name__ == "FetchRequest"
        if future.done() or fetches_held:
            return
        fetches = type(request).__name__ == "FetchRequest"
        m = load_message("fetch" if fetches else "produce", int(request.__version__), "response")
        answer = self._fetch(m, request) if fetches else self._produce(m, request)
        if fetches and not self._has_news(answer) and seen is not None:
            asyncio.get_running_loop().call_later(SOON_S, self._give, answer, seen, future)
        elif fetches or not self._scripted.holds_answers:
            self._give(answer, seen, future)

    @staticmethod
    def _give(answer: Any, seen: Callable[[Any], None] | None, future: asyncio.Future[Any]) -> None:
        if not future.done():
            if seen is not None:
                seen(answer)
            future.set_result(answer)

    @staticmethod
    def _has_news(answer: Any) -> bool:
        return any(p.records or p.error_code for topic in answer.responses for p in topic.partitions)

    def _fetch(self, m: Any, request: Any) -> Any:
        if not self._scripted.fetch_codes or type(request).__name__ != "FetchRequest":
            return super()._fetch(m, request)
        (topic,) = request.topics
        part = m.PartitionData(
            partition_index=topic.partitions[0].partition,
            error_code=self._scripted.fetch_codes.popleft(),
            high_watermark=-1,
            last_stable_offset=-1,
            log_start_offset=-1,
            aborted_transactions=None,
            records=b"",
        )
        answer = m.FetchableTopicResponse(topic_id=topic.topic_id, partitions=(part,))
        return m.FetchResponse(throttle_time=NOTHING, error_code=0, session_id=0, responses=(answer,))

    def _produce(self, m: Any, request: Any) -> Any:
        names = {topic_id: topic for topic, topic_id in self._cluster.ids.items()}
        by_id = int(request.__version__) >= 13
        topics = []
        for topic in request.topic_data:
            name = names[topic.topic_id] if by_id else topic.name
            parts = tuple(self._append(m, (name, part.index), bytes(part.records)) for part in topic.partition_data)
            called = {"topic_id": topic.topic_id} if by_id else {"name": topic.name}
            topics.append(m.TopicProduceResponse(**called, partition_responses=parts))
        return m.ProduceResponse(responses=tuple(topics), throttle_time=NOTHING)

    def _append(self, m: Any, tp: tuple[str, int], data: bytes) -> Any:
        codes, log = self._scripted.append_codes, self._cluster.logs[tp]
        code, base = codes.popleft() if codes else 0, -1
        (batch,) = scan(data)
        if self._scripted.closes_on_ids and batch.producer_id >= 0:
            raise ConnectionClosedError("broker:9092: the connection ended")
        code = code or self._scripted.refused_codecs.get(batch.attributes & CODEC_MASK, 0)
        if not code:
            remembered = log.remembered.get(batch.producer_id, (-1, -1))
            last = remembered[1] if remembered[0] == batch.producer_epoch else -1
            checks = self._scripted.checks_sequences and batch.producer_id >= 0
            code = 0 if batch.base_sequence == last + 1 or not checks else 45
            code = code if self._scripted.takes_ids or batch.producer_id < 0 else 59
        if not code:
            base, producer = log.end, (batch.producer_id, batch.producer_epoch)
            transactional = bool(batch.attributes & TRANSACTIONAL)
            sequence, log.codec = batch.base_sequence, batch.attributes & CODEC_MASK
            cluster = self._scripted
            keeps = cluster.keeps_ids_in_transactions if transactional else cluster.keeps_ids
            kept = producer if keeps and batch.producer_id >= 0 else None
            log.append_records(decoded(data), kept, sequence=sequence, transactional=transactional)
        return m.PartitionProduceResponse(
            index=tp[1],
            error_code=code,
            base_offset=base,
            log_append_time=None,
            log_start_offset=0,
            record_errors=(m.BatchIndexAndErrorMessage(batch_index=0, batch_index_error_message="no"),) * (code == 87),
            error_message=None,
        )

    def _add_partitions_to_txn(self, m: Any, request: Any) -> Any:
        codes = self._scripted.open_codes
        code = codes.popleft() if codes else 0
        producer = request.v3_and_below_producer_id, request.v3_and_below_producer_epoch
        if not code and self._scripted.fences:
            current = self._scripted.producers.get(request.v3_and_below_transactional_id, producer)
            code = 0 if current == producer else 90
        results = tuple(
            m.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=tuple(
                    m.AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=code)
                    for number in topic.partitions
                ),
            )
            for topic in request.v3_and_below_topics
        )
        return m.AddPartitionsToTxnResponse(throttle_time=NOTHING, results_by_topic_v3_and_below=results)

    def _end_txn(self, m: Any, request: Any) -> Any:
        for log in self._cluster.logs.values():
            if request.producer_id in log.open_transactions and self._scripted.aborts:
                producer = request.producer_id, request.producer_epoch
                log.end_transaction(producer, commit=bool(request.committed))
        return m.EndTxnResponse(throttle_time=NOTHING, error_code=0)


def _bytes_of(request: Any) -> int:
    """Of the batches in an append; 0 of another request."""
    topics = getattr(request, "topic_data", ())
    return sum(len(part.records or b"") for topic in topics for part in topic.partition_data)


class Written:
    """In the place of `ControlTopicWriter`: keeps what is written."""

    slot, syncs = 0, None

    def __init__(self) -> None:
        self.rows: list[PartitionProgress] = []
        self.events: list[str] = []
        self.kept: list[RefusedRecords] = []
        self.progress = self
        """In the place of `MirrorProgressWriter`, too."""

    def add_partition(self, partition: PartitionState) -> None:
        return

    def remove_partition(self, partition: PartitionState) -> None:
        return

    async def write(self, row: Row | TopicPartition, upstream: int = -1) -> None:
        if isinstance(row, PartitionProgress):
            self.rows.append(row)

    async def flush(self, partitions: Iterable[PartitionState]) -> None:
        self.rows += [partition.row() for partition in partitions]

    async def quarantine(self, partition: PartitionState, refusal: RefusedRecords) -> None:
        self.kept.append(refusal)

    def event(self, kind: str, subject: str, text: str = "", **detail: object) -> None:
        self.events.append(kind)


class SlotLoopScene:
    """One partition, and what became of it."""

    def __init__(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        *lines: str,
        reads_back: bool = False,
        transforms: SlotTransforms | None = None,
    ) -> None:
        """`reads_back`: the trial of the target has chosen that. `transforms` None: those of the file, not compiled."""
        settings = flow_settings(folder, "\n".join([*lines, ""]))
        settings = replace(settings, data_plane=replace(settings.data_plane, read_back=reads_back))
        self.waits = False
        """The slot is not to fetch now."""
        self.source, self.target = ScriptedCluster("A"), ScriptedCluster("B")
        self.log, self.copy, self.progress = MemoryLog(), MemoryLog(), MemoryLog()
        self.source.create("t", self.log)
        self.target.create("A.t", self.copy)
        self.target.create("mm2-offsets.A.internal", self.progress)
        monkeypatch.setattr(
            "lockstep_data_plane.slot.slot_loop.connect_clusters", lambda *_: (self.source, self.target)
        )
        monkeypatch.setattr(
            "lockstep_data_plane.slot.partition_task.PartitionBackoff",
            lambda: PartitionBackoff(Backoff(first=SOON_S), Backoff(first=SOON_S)),
        )
        monkeypatch.setattr("lockstep_data_plane.produce.sender.BACK_PRESSURE_S", SOON_S)
        self.writer = Written()
        self.rows: dict[tuple[str, int], PartitionProgress] = {}
        self.topic = MirroredTopic(
            source_topic="t",
            target_topic="A.t",
            source_topic_id=FIRST_ID,
            target_topic_id=FIRST_ID,
            partitions=1,
            target_partitions=1,
        )
        self.loop = SlotLoop(
            settings,
            FlowIds(OURS),
            cast(ControlTopicWriter, self.writer),
            FailureTracker(FlowLog("data-plane", settings.flow)),
            {"t": self.topic},
            self.rows,
            lambda tp: (),
            UnreadableRecords(FlowLog("data-plane", settings.flow)).pass_over_at,
            transforms=transforms,
            waits=lambda: self.waits,
        )
        self.task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.task is not None and not self.task.done():
            self.loop.leave(("t", 0), goes_on=True)
        await self.end()

    async def begin(self) -> PartitionState:
        """The slot takes the partition up, and it copies."""
        self.task = asyncio.create_task(self.loop.run_partition(("t", 0), self.topic))
        await asyncio.sleep(0)
        partition = self.loop.partitions["t", 0]
        await eventually(lambda: partition.phase is Phase.COPYING, what="it copies")
        return partition

    def append(self, *numbers: int) -> None:
        """Records come to the source, each in a batch."""
        for number in numbers:
            self.log.append([number])

    @property
    def codecs(self) -> list[int]:
        """The codec of each batch on the target."""
        return [b.codec for b in self.copy._batches]

    @property
    def copied(self) -> list[bytes | None]:
        """What the target has, in its order."""
        return [r.value for b in self.copy._batches if b.attributes < 0x20 for r in b.content]

    async def has_copied(self, count: int) -> None:
        """Exactly these are there, once, and acknowledged."""
        wanted = [b"value-%d" % n for n in range(count)]
        partition = self.loop.partitions["t", 0]
        await eventually(
            lambda: len(self.copied) >= count and partition.row().upstream >= self.log.end - 1, what="all is copied"
        )
        assert self.copied == wanted

    async def end(self) -> None:
        if self.task is not None:
            await asyncio.wait_for(self.task, 3)
        await self.loop.close()
