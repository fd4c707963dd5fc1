"""A cluster in memory: logs of real record batches behind the real `ClusterClient`, whose connections answer here.

Nothing of the code under test is replaced but the sockets. What brokers really answer, tests on brokers show."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import dropwhile
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_kafka.messages.message_versions import EncodedRequest, load_message
from lockstep_kafka.wire.cluster import ClusterClient
from lockstep_kafka.wire.connection import Connection
from lockstep_kafka.wire.connection_errors import BrokerUnreachable, ConnectionClosedError
from lockstep_state.kafka.kafka_apis import APIS
from lockstep_state.offsets import TopicPartition
from tests.support.batch_bytes import CONTROL, TRANSACTIONAL, batch_bytes, record
from tests.support.kio_codec import read_back

LATEST, EARLIEST = -1, -2
DEBUGGING = -2
"""The replica id that asks for what is not replicated yet, too."""
SEQUENCES = 2**31
"""After the last one comes 0."""
NOTHING = timedelta(0)
FIRST_PRODUCER = 7000
"""The first producer id that a transactional id gets."""
COMMIT, ABORT = b"\0\0\0\1", b"\0\0\0\0"
"""Keys of control records."""


@dataclass(frozen=True, slots=True)
class _Stored:
    """A batch as the log holds it."""

    content: tuple[PlainRecord, ...]
    base: int
    last: int
    producer: tuple[int, int, int] = (-1, -1, -1)
    attributes: int = 0
    leader_epoch: int = 3
    codec: int = 0
    is_damaged: bool = False
    claimed_delta: int | None = None
    """The last offset in the header, counted from the base offset, if it is another one. The CRC is then wrong."""

    @property
    def claimed(self) -> int:
        """Return the last offset in the header, which is all that a broker knows of it."""
        return self.last if self.claimed_delta is None else self.base + self.claimed_delta

    def encoded(self) -> bytes:
        data = batch_bytes(
            self.content,
            base_offset=self.base,
            last_offset=self.last,
            producer=self.producer,
            attributes=self.attributes,
            leader_epoch=self.leader_epoch,
            codec=self.codec,
        )
        if self.claimed_delta is not None:
            data = data[:23] + self.claimed_delta.to_bytes(4, "big", signed=True) + data[27:]
        return data[:-1] + bytes([data[-1] ^ 1]) if self.is_damaged else data


@dataclass
class MemoryLog:
    """The log of one partition, as its leader has it. Record number n has the same content wherever it is appended."""

    start: int = 0
    end: int = 0
    unreplicated: int = 0
    """So many offsets at the end lie behind the high watermark."""
    remembered: dict[int, tuple[int, int]] = field(default_factory=dict)
    """(epoch, last sequence) by producer id."""
    epoch_ends: dict[int, int] = field(default_factory=dict)
    """Where a leader epoch ends; the leader cannot tell of others."""
    leader_epoch: int = 3
    """Of what is appended from now on."""
    codec: int = 0
    """Of what is appended from now on."""
    _batches: list[_Stored] = field(default_factory=list)
    _open: dict[int, int] = field(default_factory=dict)
    """First offsets of open transactions by producer id."""
    _aborted: list[tuple[int, int, int]] = field(default_factory=list)

    def append(
        self,
        numbers: Iterable[int],
        producer: tuple[int, int] | None = None,
        *,
        sequence: int | None = None,
        transactional: bool = False,
        key: bytes = b"k",
    ) -> "MemoryLog":
        """One batch of these records. `producer`: id and epoch; its sequences follow each other."""
        content = [record(0, b"value-%d" % n, timestamp=1000 + n, key=key) for n in numbers]
        return self.append_records(content, producer, sequence=sequence, transactional=transactional)

    def append_records(
        self,
        content: Sequence[PlainRecord],
        producer: tuple[int, int] | None = None,
        *,
        sequence: int | None = None,
        transactional: bool = False,
    ) -> "MemoryLog":
        """As `append`, of any records; their offsets are the log's."""
        placed = tuple(r._replace(offset=self.end + i) for i, r in enumerate(content))
        stamp = (-1, -1, -1)
        if producer is not None:
            epoch, last = self.remembered.get(producer[0], (-1, -1))
            first = sequence if sequence is not None else (last + 1) % SEQUENCES if epoch == producer[1] else 0
            stamp = (*producer, first)
            self.remembered[producer[0]] = (producer[1], (first + len(placed) - 1) % SEQUENCES)
            if transactional:
                self._open.setdefault(producer[0], self.end)
        last_offset = self.end + len(placed) - 1
        attributes = TRANSACTIONAL if transactional else 0
        stored = _Stored(placed, self.end, last_offset, stamp, attributes, self.leader_epoch, self.codec)
        self._batches.append(stored)
        self.end = last_offset + 1
        return self

    def damage(self, claimed_delta: int | None = None) -> "MemoryLog":
        """Let the last byte of the last batch be another one, so that its CRC is wrong, or its last offset delta."""
        self._batches[-1] = replace(self._batches[-1], is_damaged=claimed_delta is None, claimed_delta=claimed_delta)
        return self

    def end_transaction(self, producer: tuple[int, int], *, commit: bool) -> "MemoryLog":
        """Append a marker."""
        first = self._open.pop(producer[0], self.end)
        if not commit:
            self._aborted.append((producer[0], first, self.end))
        control = (record(self.end, b"\0" * 6, key=COMMIT if commit else ABORT),)
        self._batches.append(_Stored(control, self.end, self.end, (*producer, -1), CONTROL | TRANSACTIONAL))
        self.end += 1
        return self

    @property
    def open_transactions(self) -> Mapping[int, int]:
        """The first offset of each, by producer id."""
        return self._open

    def delete_before(self, offset: int) -> "MemoryLog":
        """Retention, or DeleteRecords."""
        self.start, self.end = offset, max(self.end, offset)
        self._batches = [b for b in self._batches if b.last >= offset]
        return self

    def truncate(self, offset: int) -> "MemoryLog":
        """From there on the log is no more; `append` grows it again."""
        self._batches = [b for b in self._batches if b.last < offset]
        self.end, self.start = offset, min(self.start, offset)
        self.remembered.clear()
        return self

    def compact(self, *offsets: int) -> "MemoryLog":
        """Remove these records as the cleaner does. A batch of which none is left goes as a whole."""
        kept = [replace(b, content=tuple(r for r in b.content if r.offset not in offsets)) for b in self._batches]
        self._batches = [b for b in kept if b.content]
        return self

    def forget(self) -> "MemoryLog":
        """Let the leader forget every producer."""
        self.remembered.clear()
        return self

    @property
    def high_watermark(self) -> int:
        """Return where what is replicated ends."""
        return self.end - self.unreplicated

    @property
    def last_stable(self) -> int:
        """Return where what is decided ends."""
        return min([self.high_watermark, *self._open.values()])

    def at(self, timestamp: int) -> int:
        """Return the answer of ListOffsets."""
        if timestamp in (LATEST, EARLIEST):
            return self.high_watermark if timestamp == LATEST else self.start
        return next((r.offset for b in self._batches for r in b.content if r.timestamp >= timestamp), -1)

    def fetched(self, offset: int, *, committed: bool) -> tuple[bytes, list[tuple[int, int]]]:
        """Return the batches from the one that holds the offset on, and the aborted transactions among them."""
        until = self.last_stable if committed else self.high_watermark
        replicated = (b for b in self._batches if b.last < until)
        data = b"".join(b.encoded() for b in dropwhile(lambda b: b.claimed < offset, replicated))
        return data, [(p, first) for p, first, marker in self._aborted if committed and marker >= offset]


class MemoryCluster(ClusterClient):
    """A cluster of one broker, which is `away` or `silent` only if the test says so."""

    def __init__(self, alias: str) -> None:
        super().__init__(alias, [("broker", 9092)], {})
        self.logs: dict[TopicPartition, MemoryLog] = {}
        self.ids: dict[str, UUID] = {}
        """Topic ids, 1, 2 and so on in the order in which topics were created."""
        self.asked: list[str] = []
        """The names of the requests that came, in order."""
        self.producers: dict[str, tuple[int, int]] = {}
        """Id and epoch of each transactional id."""
        self.leaves_out_markers = False
        """Of transactions that a fence ends, as Kafka 4.3 does where a partition has no leader."""
        self.in_transaction: set[TopicPartition] = set()
        """The partitions that were added to the open transaction."""
        self.fencing_codes: list[int] = []
        """Error codes of the next answers to InitProducerId."""
        self._created = 0
        self.unknown_apis: Collection[str] = ()
        """Names of requests that ApiVersions does not name."""
        self.closes_on: Collection[str] = ()
        """Names of requests on which the connection is closed."""
        self.away = False
        """No connection can be opened."""
        self.silent = False
        """Connections are open, and nothing is answered."""

    async def answer(self) -> None:
        """Wait until it answers. Raises BrokerUnreachable."""
        if self.silent:
            await asyncio.Event().wait()
        if self.away:
            raise BrokerUnreachable("broker:9092: connection refused", self.alias)

    def create(self, topic: str, *logs: MemoryLog) -> None:
        """Also anew, in the place of one that was deleted; clients see that once they ask for the metadata."""
        self._created += 1
        self.ids[topic] = UUID(int=self._created)
        self.logs |= {(topic, number): log for number, log in enumerate(logs)}

    async def refresh(self, topics: Iterable[str]) -> None:
        self.asked.append("Metadata")
        await self.answer()
        described = [
            SimpleNamespace(
                name=topic,
                error_code=0 if topic in self.ids else 3,
                topic_id=self.ids.get(topic),
                partitions=[
                    SimpleNamespace(leader_id=1, leader_epoch=0, partition_index=number)
                    for name, number in self.logs
                    if name == topic
                ],
            )
            for topic in sorted(set(topics))
        ]
        broker = SimpleNamespace(node_id=1, host="broker", port=9092, rack=None)
        version = APIS["metadata"].newest
        answer = SimpleNamespace(__version__=version, cluster_id=self.alias, brokers=[broker], topics=described)
        self._store_metadata(answer, sorted(set(topics)))

    async def connection(self, broker: int, produce_connection: str) -> Connection:
        return _MemoryConnection(self)


class _MemoryConnection(Connection):
    """Answers what a resume asks a broker."""

    def __init__(self, cluster: MemoryCluster) -> None:
        super().__init__("broker", 9092, client_id="test")
        known_apis = {name: api for name, api in APIS.items() if name not in cluster.unknown_apis}
        self._versions = {api.key: (0, api.newest) for api in known_apis.values()}
        self._cluster = cluster

    async def request(self, entity: Any, timeout_s: float = 30.0) -> Any:
        request = read_back(entity) if isinstance(entity, EncodedRequest) else entity
        name = type(request).__name__.removesuffix("Request")
        self._cluster.asked.append(name)
        await self._cluster.answer()
        api = "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")
        if api in self._cluster.closes_on:
            raise ConnectionClosedError("broker:9092: the connection is closed", self._cluster.alias)
        return getattr(self, f"_{api}")(load_message(api, int(request.__version__), "response"), request)

    def _fetch(self, m: Any, request: Any) -> Any:
        names = {topic_id: topic for topic, topic_id in self._cluster.ids.items()}
        (topic,) = request.topics
        (wanted,) = topic.partitions
        log = self._cluster.logs[names[topic.topic_id], wanted.partition]
        data, aborted = log.fetched(wanted.fetch_offset, committed=request.isolation_level == 1)
        part = m.PartitionData(
            partition_index=wanted.partition,
            error_code=0,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable,
            log_start_offset=log.start,
            aborted_transactions=tuple(
                m.AbortedTransaction(producer_id=p, first_offset=first_offset) for p, first_offset in aborted
            ),
            records=data,
        )
        answer = m.FetchableTopicResponse(topic_id=topic.topic_id, partitions=(part,))
        return m.FetchResponse(throttle_time=NOTHING, error_code=0, session_id=0, responses=(answer,))

    def _list_offsets(self, m: Any, request: Any) -> Any:
        log, name, wanted = self._one(request)
        offset = log.end if request.replica_id == DEBUGGING else log.at(wanted.timestamp)
        part = m.ListOffsetsPartitionResponse(partition_index=0, error_code=0, timestamp=None, offset=offset)
        topic = m.ListOffsetsTopicResponse(name=name, partitions=(part,))
        return m.ListOffsetsResponse(throttle_time=NOTHING, topics=(topic,))

    def _offset_for_leader_epoch(self, m: Any, request: Any) -> Any:
        log, name, wanted = self._one(request)
        end = log.epoch_ends.get(wanted.leader_epoch, -1)
        part = m.EpochEndOffset(error_code=0, partition=0, leader_epoch=wanted.leader_epoch, end_offset=end)
        topic = m.OffsetForLeaderTopicResult(topic=name, partitions=(part,))
        return m.OffsetForLeaderEpochResponse(throttle_time=NOTHING, topics=(topic,))

    def _describe_producers(self, m: Any, request: Any) -> Any:
        (topic,) = request.topics
        log = self._cluster.logs[topic.name, topic.partition_indexes[0]]
        states = tuple(
            m.ProducerState(
                producer_id=producer_id,
                producer_epoch=epoch,
                last_sequence=sequence,
                last_timestamp=0,
                coordinator_epoch=0,
                current_txn_start_offset=log.open_transactions.get(producer_id, -1),
            )
            for producer_id, (epoch, sequence) in log.remembered.items()
        )
        part = m.PartitionResponse(
            partition_index=topic.partition_indexes[0], error_code=0, error_message=None, active_producers=states
        )
        return m.DescribeProducersResponse(
            throttle_time=NOTHING, topics=(m.TopicResponse(name=topic.name, partitions=(part,)),)
        )

    def _find_coordinator(self, m: Any, request: Any) -> Any:
        (key,) = request.coordinator_keys
        coordinator = m.Coordinator(key=key, node_id=1, host="broker", port=9092, error_code=0, error_message=None)
        return m.FindCoordinatorResponse(throttle_time=NOTHING, coordinators=(coordinator,))

    def _init_producer_id(self, m: Any, request: Any) -> Any:
        """Fences: what is open under the former epoch is aborted."""
        producers = self._cluster.producers
        if self._cluster.fencing_codes:
            code = ErrorCode(self._cluster.fencing_codes.pop(0))
            return m.InitProducerIdResponse(throttle_time=NOTHING, error_code=code, producer_id=-1, producer_epoch=-1)
        producer_id, epoch = producers.get(request.transactional_id, (FIRST_PRODUCER + len(producers), -1))
        for log in self._cluster.logs.values():
            if producer_id in log.open_transactions and not self._cluster.leaves_out_markers:
                log.end_transaction((producer_id, epoch), commit=False)
        producers[request.transactional_id] = producer_id, epoch + 1
        return m.InitProducerIdResponse(
            throttle_time=NOTHING, error_code=0, producer_id=producer_id, producer_epoch=epoch + 1
        )

    def _add_partitions_to_txn(self, m: Any, request: Any) -> Any:
        topics = request.v3_and_below_topics
        self._cluster.in_transaction |= {(topic.name, number) for topic in topics for number in topic.partitions}
        results = tuple(
            m.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=tuple(
                    m.AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=0)
                    for number in topic.partitions
                ),
            )
            for topic in topics
        )
        return m.AddPartitionsToTxnResponse(throttle_time=NOTHING, results_by_topic_v3_and_below=results)

    def _end_txn(self, m: Any, request: Any) -> Any:
        for tp in self._cluster.in_transaction:
            producer = int(request.producer_id), int(request.producer_epoch)
            self._cluster.logs[tp].end_transaction(producer, commit=request.committed)
        self._cluster.in_transaction.clear()
        return m.EndTxnResponse(throttle_time=NOTHING, error_code=0)

    def _one(self, request: Any) -> tuple[MemoryLog, str, Any]:
        """Return the log that a request of one partition is about, the topic's name, and what is asked of it."""
        (topic,) = request.topics
        (wanted,) = topic.partitions
        name = str(getattr(topic, "name", None) or topic.topic)
        number = wanted.partition_index if hasattr(wanted, "partition_index") else wanted.partition
        return self._cluster.logs[name, number], name, wanted
