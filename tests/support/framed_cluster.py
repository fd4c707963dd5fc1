"""Brokers in memory that take the frames of a slot's real connections and answer them, without sockets."""

import asyncio
import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from io import BytesIO
from typing import Any

from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from lockstep_kafka.messages.message_versions import load_message
from lockstep_kafka.wire.connection import Connection
from tests.support.memory_cluster import MemoryCluster, _MemoryConnection

SESSION = 7
BASE_OFFSET = struct.Struct(">q")
RECORD_COUNT = struct.Struct(">i")
MAGIC_AT, RECORD_COUNT_AT = 16, 57
FRAME_PREFIX, HEADER_SIZE = 4, 8
NO_TAGS = b"\0"


class BrokerTime:
    """Processor time that the brokers use, which is not the slot's."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count what is done inside as the brokers' work."""
        began = time.process_time()
        try:
            yield
        finally:
            self.seconds += time.process_time() - began


class EndlessLog:
    """The log of a source partition: ``batches`` times the same batch, each of which takes ``span`` offsets."""

    def __init__(self, batch: bytes, span: int, batches: int) -> None:
        self._batch, self._span = batch, span
        # A message set of an old format has the offset of its last message.
        self._offset_in_batch = 0 if batch[MAGIC_AT] == 2 else span - 1
        self.end = span * batches

    def read(self, offset: int, at_most: int) -> bytes:
        """Return whole batches from the offset on."""
        size = len(self._batch)
        count = min((self.end - offset) // self._span, max(1, at_most // size))
        data = bytearray(self._batch * count)
        for index in range(count):
            BASE_OFFSET.pack_into(data, index * size, offset + index * self._span + self._offset_in_batch)
        return bytes(data)


class FramedCluster(MemoryCluster):
    """Its connections for fetching and producing exchange frames."""

    def __init__(self, alias: str, time_used: BrokerTime, source: Iterable[EndlessLog] = ()) -> None:
        super().__init__(alias)
        self.time_used = time_used
        self.source = list(source)
        self.requests = self.batches = 0
        self.ends: dict[int, int] = {}
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
        super().__init__("broker", 9092, client_id="slot")
        in_memory = _MemoryConnection(cluster)
        self._versions = in_memory._versions
        self._cluster = cluster
        self._writer = self
        self.round_trip_s = 0.001
        self._asked: dict[Any, tuple[int, int]] = {}
        api = "fetch" if fetches else "produce"
        self._answer = self._fetch if fetches else self._produce
        self._version = self.version(api)
        self._read = entity_reader(getattr(load_message(api, self._version, "request"), f"{api.title()}Request"))
        self._m = load_message(api, self._version, "response")

    def write(self, frame: bytes) -> None:
        """Take a frame in the place of the socket."""
        with self._cluster.time_used.counted():
            header_end = FRAME_PREFIX + HEADER_SIZE + len(self._framing._client_id_headers[True])
            request, _ = self._read(memoryview(frame), header_end)
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
        positions = self._asked
        for topic in request.topics:
            for p in topic.partitions:
                positions[topic.topic_id, p.partition] = p.fetch_offset, p.partition_max_bytes
        for topic in request.forgotten_topics_data:
            for number in topic.partitions:
                positions.pop((topic.topic_id, number), None)
        parts, room = [], int(request.max_bytes)
        for (_, number), (offset, most) in positions.items():
            log = self._cluster.source[number]
            data = log.read(offset, min(most, room)) if room > 0 and offset < log.end else b""
            room -= len(data)
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
            for topic_id in {key[0] for key in positions}
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
                base = self._cluster.ends.get(p.index, 0)
                self._cluster.ends[p.index] = base + RECORD_COUNT.unpack_from(p.records, RECORD_COUNT_AT)[0]
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
