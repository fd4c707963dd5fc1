"""Logs of every shape that producers and a cleaner can leave behind, made up by Hypothesis and written to real topics.

A log is a partition. Its steps are written in order: raw batches with all codecs, odd times and bits that the cleaner
sets, swarms of batches with one record each, and transactions, committed, aborted, one after the other and interleaved.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from confluent_kafka import KafkaError, Message, Producer
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from lockstep_data_plane.log_reader import log_between
from lockstep_data_plane.record_batch.codecs import CODECS
from lockstep_data_plane.record_batch.layout import CODEC_MASK, CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, Batch
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_kafka.messages.produce_codec import produce_request
from lockstep_kafka.wire.cluster import ClusterClient, connect_cluster
from lockstep_state.offsets import TopicPartition
from tests.support.batch_bytes import COMPRESS, DELETE_HORIZON, batch_bytes
from tests.support.clusters import unique_name

UNKNOWN_BITS = 0x4080
DAY_MS = 86_400_000
NO_TIME = -1
TAKEN_AHEAD_MS = 1_800_000
KEYS = (b"a", b"b", b"c", b"")
TRANSACTION_TIMEOUT = 30.0
ACKNOWLEDGED_WITHIN = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Whole:
    """One batch as it is."""

    records: tuple[PlainRecord, ...]
    codec: int
    attributes: int
    producer: tuple[int, int, int] = (-1, -1, -1)
    """Id, epoch and first sequence."""


@dataclass(frozen=True, slots=True)
class Swarm:
    """A batch for each record."""

    records: tuple[PlainRecord, ...]
    codec: int


@dataclass(frozen=True, slots=True)
class Transactions:
    """Two transactions of different producers that are open at the same time: their records go out turn by turn, and
    the first ends first. An empty second one is none."""

    first: tuple[PlainRecord, ...]
    first_commits: bool
    second: tuple[PlainRecord, ...]
    second_commits: bool


Step = Whole | Swarm | Transactions
Log = tuple[Step, ...]


def _times(now_ms: int, *, ahead_ms: int) -> st.SearchStrategy[int]:
    """None at all, the beginning of time, years ago, today, and so far ahead."""
    odd = st.sampled_from([NO_TIME, 0, 1, now_ms - 4_000 * DAY_MS, now_ms - 400 * DAY_MS, now_ms + ahead_ms])
    return st.one_of(st.integers(now_ms - DAY_MS, now_ms), odd)


def _records(now_ms: int, *, keyed: bool, ahead_ms: int, most: int) -> st.SearchStrategy[tuple[PlainRecord, ...]]:
    some_bytes = st.one_of(
        st.binary(max_size=20), st.integers(0, 900).map(lambda size: bytes(range(250)) * 4 + b"." * size)
    )
    keys = st.sampled_from(KEYS)
    headers = st.lists(
        st.tuples(st.sampled_from(["", "a", "a", "b", "ü"]), st.one_of(st.none(), st.binary(max_size=5))), max_size=3
    ).map(tuple)
    record = st.builds(
        PlainRecord,
        st.just(0),
        _times(now_ms, ahead_ms=ahead_ms),
        keys if keyed else st.one_of(st.none(), keys),
        st.one_of(st.none(), st.just(b""), some_bytes),
        headers,
    )
    return st.lists(record, min_size=1, max_size=most).map(tuple)


def _logs(now_ms: int, *, keyed: bool, ahead_ms: int) -> st.SearchStrategy[Log]:
    codecs = st.sampled_from(sorted(COMPRESS))
    bits = st.sampled_from([0, 0, DELETE_HORIZON, UNKNOWN_BITS, DELETE_HORIZON | UNKNOWN_BITS])
    few = _records(now_ms, keyed=keyed, ahead_ms=ahead_ms, most=6)
    steps = st.one_of(
        st.builds(Whole, few, codecs, bits),
        st.builds(Swarm, _records(now_ms, keyed=keyed, ahead_ms=ahead_ms, most=25), codecs),
        st.builds(Transactions, few, st.booleans(), st.one_of(st.just(()), few), st.booleans()),
    )
    return st.lists(steps, min_size=2, max_size=6).map(tuple)


def generated(count: int, *, keyed: bool, ahead_ms: int = TAKEN_AHEAD_MS) -> list[Log]:
    """So many logs, the same ones each time but for the clock. `keyed`: no record without a key, as compacted topics
    want. Some records are dated so far ahead, by default as far as every broker takes."""
    logs: list[Log] = []
    now_ms = time.time_ns() // 1_000_000

    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        derandomize=True,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(_logs(now_ms, keyed=keyed, ahead_ms=ahead_ms))
    def collect(log: Log) -> None:
        logs.append(log)

    collect()
    return logs[:count]


class Writer:
    """Writes steps to one cluster; an async context manager. Raw batches go through the data plane's own connection,
    without a producer id, transactions through librdkafka producers, which take turns: nobody may begin anew while the
    coordinator still writes the markers of the last one."""

    def __init__(self, bootstrap: str) -> None:
        self._cluster: ClusterClient = connect_cluster("written", {"bootstrap.servers": bootstrap}, "generated-logs")
        self._producers = [
            Producer(
                {
                    "bootstrap.servers": bootstrap,
                    "transactional.id": unique_name("generated"),
                    "linger.ms": 0,
                    "transaction.timeout.ms": 600_000,  # one is left open until a whole mirror has started
                    "compression.type": codec,
                }
            )
            for codec in ("none", "lz4", "none", "gzip", "zstd", "none")
        ]
        self._turn = 0

    async def __aenter__(self) -> Self:
        for producer in self._producers:
            producer.init_transactions(TRANSACTION_TIMEOUT)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._cluster.close()

    async def write(self, topic: str, partition: int, step: Step) -> None:
        """All of a step, acknowledged."""
        if isinstance(step, Whole):
            await self.append(topic, partition, [_batch(step.records, step.codec, step.attributes, step.producer)])
        elif isinstance(step, Swarm):
            await self.append(topic, partition, [_batch([r], step.codec, 0) for r in step.records])
        else:
            self._transactions(topic, partition, step)

    async def append(self, topic: str, partition: int, batches: Iterable[bytes]) -> None:
        """Raw batches, one after the other. Raises AssertionError with the broker's words when one is refused."""
        if self._cluster.leader((topic, partition)) is None:
            await self._cluster.refresh([topic])
        leader = self._cluster.require_leader((topic, partition))
        connection = await self._cluster.connection(leader.broker, "raw")
        asked = []
        for batch in batches:
            asked.append(
                connection.send(produce_request(13, [((topic, partition), leader, batch)], ACKNOWLEDGED_WITHIN))
            )
        for answer in asked:
            (said,) = (await answer).responses[0].partition_responses
            assert said.error_code == 0, (said.error_code, said.error_message, said.record_errors)

    async def shapes(self, topics: Iterable[str]) -> set[str]:
        """What kinds of batches lie in the logs of these topics now."""
        found: set[str] = set()
        for topic in topics:
            await self._cluster.refresh([topic])
            number = 0
            while self._cluster.leader((topic, number)) is not None:
                found |= await self._shapes((topic, number))
                number += 1
        return found

    async def _shapes(self, tp: TopicPartition) -> set[str]:
        start, end = await self._cluster.end_offset(tp, timestamp=-2), await self._cluster.end_offset(tp)
        batches = [batch async for some, _ in log_between(self._cluster, tp, start, end) for batch in some]
        cut = {"begins before"} if batches and batches[0].base_offset < start <= batches[0].last_offset else set()
        return cut.union(*map(shapes_of, batches))

    def begin(self) -> Producer:
        """The next of the transactional producers, with a transaction open. An open one keeps its place."""
        producer = self._producers[self._turn % len(self._producers)]
        self._turn += 1
        producer.begin_transaction()
        return producer

    def end(self, producer: Producer, *, commit: bool) -> None:
        if commit:
            producer.commit_transaction(TRANSACTION_TIMEOUT)
        else:
            producer.abort_transaction(TRANSACTION_TIMEOUT)

    def _transactions(self, topic: str, partition: int, step: Transactions) -> None:
        one = self.begin()
        other = self.begin() if step.second else None
        for turn in range(max(len(step.first), len(step.second))):
            for producer, records in ((one, step.first), (other, step.second)):
                if producer is not None:
                    send(producer, topic, partition, records[turn : turn + 1])
        self.end(one, commit=step.first_commits)
        if other is not None:
            self.end(other, commit=step.second_commits)


def shapes_of(batch: Batch) -> set[str]:
    """The words for what is special about a batch."""
    named = {
        "transactional": batch.attributes & TRANSACTIONAL,
        "control batch": batch.attributes & CONTROL,
        "log append time": batch.attributes & LOG_APPEND_TIME,
        "delete horizon": batch.attributes & DELETE_HORIZON,
        "unknown bits": batch.attributes & UNKNOWN_BITS,
        "gap inside": batch.last_offset_delta + 1 > batch.record_count > 0,
        "empty": batch.record_count == 0,
        "one record": batch.record_count == 1,
        "no time": batch.base_timestamp == NO_TIME and batch.record_count > 0,
    }
    codec = next(name for name, number in CODECS.items() if number == batch.attributes & CODEC_MASK)
    return {word for word, is_so in named.items() if is_so} | {codec}


def send(producer: Producer, topic: str, partition: int, records: Sequence[PlainRecord]) -> None:
    """Records of an open transaction, acknowledged."""
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)

    for r in records:
        options: dict[str, Any] = {} if r.timestamp < 1 else {"timestamp": r.timestamp}  # librdkafka takes 0 for now
        producer.produce(
            topic, r.value, r.key, partition=partition, headers=list(r.headers), on_delivery=delivered, **options
        )
    unsent = producer.flush(TRANSACTION_TIMEOUT)
    assert (unsent, failures) == (0, [])


def _batch(
    records: Sequence[PlainRecord], codec: int, attributes: int, producer: tuple[int, int, int] = (-1, -1, -1)
) -> bytes:
    numbered = [r._replace(offset=i) for i, r in enumerate(records)]
    return batch_bytes(numbered, codec=codec, attributes=attributes, producer=producer)
