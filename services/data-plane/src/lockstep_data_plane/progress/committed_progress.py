"""The progress that committed transactions have left in MM2's progress topic (`mm2-behaviour.md` §1.7, §4.8).

The reader goes past the last stable offset and follows the markers. So an open transaction of another client delays
no partition. The progress of a partition is known once its own transactional id is fenced.

A progress record of Lockstep has a header that says up to which offset of the target its transaction goes. With it a
transaction that hangs is judged (`core/target_log/hanging_transaction.py`). MM2 and Connect ignore headers.
"""

import json
import struct
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeAlias

from lockstep_data_plane.core.target_log.hanging_transaction import ProgressRecord, TransactionOutcome
from lockstep_data_plane.log_reader import LogCursor
from lockstep_data_plane.record_batch.layout import CONTROL, TRANSACTIONAL, Batch, CorruptRecordError
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import read_records
from lockstep_kafka.common.single_flight import SingleFlight
from lockstep_kafka.wire.cluster import ClusterClient, KafkaProtocolError
from lockstep_runtime.state.unreadable_records import PassOver
from lockstep_state.codecs.connect_offsets import OffsetFold
from lockstep_state.codecs.mm2_codec import MalformedRecord, encode_source_progress_reset
from lockstep_state.codecs.murmur2 import partition_for
from lockstep_state.kafka.kafka_errors import KafkaErrorCode
from lockstep_state.offsets import TopicPartition

_MARKER = struct.Struct(">hh")
COMMIT = 1

APPENDED_TO = "lockstep.appended.to"
"""The header of a progress record with the last offset in each partition of the target's topic."""

Header: TypeAlias = tuple[str, bytes | None]


def appended_to_header(topic_id: str, appended_to: Mapping[int, int]) -> Header:
    """Return the header of a progress record whose transaction goes up to these offsets of the target's topic."""
    offsets = {str(number): offset for number, offset in sorted(appended_to.items())}
    return APPENDED_TO, json.dumps({"topicId": topic_id, "offsets": offsets}, separators=(",", ":")).encode()


def is_commit_marker(batch: Batch) -> bool | None:
    """Return whether the batch is a marker that commits; False: it aborts; None: it is no marker of a transaction.

    Raises CorruptRecordError.
    """
    if not batch.attributes & CONTROL:
        return None
    for record in read_records(batch):
        if record.key is not None and len(record.key) >= _MARKER.size:
            return bool(_MARKER.unpack_from(record.key)[1] == COMMIT)
    return None


class CommittedProgress:
    """A fold of one partition of the progress topic, batch by batch, without uncommitted transactions."""

    def __init__(self, on_malformed: Callable[[int, ValueError], None] = lambda offset, error: None) -> None:
        """Call `on_malformed` with the offset of each record or batch that is passed over.

        These are records that are not Connect's, and batches that cannot be read.
        """
        self._on_malformed = on_malformed
        self.reset()

    def reset(self) -> None:
        """Forget everything, since it came from another log."""
        self._open: dict[int, list[PlainRecord]] = {}
        self.offsets = OffsetFold()
        self.last_records: dict[bytes | None, tuple[int, TransactionOutcome, PlainRecord]] = {}
        """The last record in a transaction, by key: its producer id, what became of it, and the record."""
        self.last_committed: dict[bytes | None, tuple[int, TransactionOutcome, PlainRecord]] = {}
        """The last record in a committed transaction, likewise. A later one outside of transactions replaces it."""

    def apply(self, batches: Iterable[Batch]) -> None:
        """Fold batches of the log, in its order.

        A batch that cannot be read is passed over: it stays in the log, and other connectors may have written it.
        """
        for batch in batches:
            try:
                commits, records = is_commit_marker(batch), list(read_records(batch))
            except CorruptRecordError as error:
                self._on_malformed(batch.base_offset, error)
                continue
            if commits is not None:
                self._end_transaction(batch.producer_id, commits=commits)
            elif batch.attributes & CONTROL:
                continue
            elif batch.attributes & TRANSACTIONAL:
                self._open.setdefault(batch.producer_id, []).extend(records)
                for record in records:
                    self.last_records[record.key] = batch.producer_id, TransactionOutcome.OPEN, record
            else:
                for record in records:
                    self.last_committed.pop(record.key, None)
                    if (last := self.last_records.get(record.key)) and last[1] is not TransactionOutcome.OPEN:
                        del self.last_records[record.key]
                self._apply(records)

    def _end_transaction(self, producer_id: int, *, commits: bool) -> None:
        records = self._open.pop(producer_id, [])
        outcome = TransactionOutcome.COMMITTED if commits else TransactionOutcome.ABORTED
        for record in records:
            self.last_records[record.key] = producer_id, outcome, record
        if commits:
            self.last_committed |= {record.key: self.last_records[record.key] for record in records}
            self._apply(records)

    def _apply(self, records: Iterable[PlainRecord]) -> None:
        for record in records:
            try:
                self.offsets.apply(record.key, record.value)
            except MalformedRecord as error:
                self._on_malformed(record.offset, error)


class CommittedProgressReader:
    """A reader of the progress topic of one flow, which reads as far as needed."""

    def __init__(self, target: ClusterClient, topic: str, connector: str, source: str, pass_over: PassOver) -> None:
        """Create the reader.

        Args:
            target: The target cluster.
            topic: The progress topic.
            connector: The connector's name in the keys.
            source: The alias of the flow's source.
            pass_over: Called for records that cannot be read.
        """
        self._pass_over = pass_over
        self._target = target
        self.topic = topic
        self._connector = connector
        self._source = source
        self._logs: dict[int, _PartitionLog] = {}
        """The logs that were read, by partition of the progress topic."""

    async def progress_partition(self, tp: TopicPartition) -> TopicPartition | None:
        """Return the partition of the topic that holds the progress of `tp`, as Connect's producer chooses it.

        It is None if there is no such topic.

        Raises:
            KafkaProtocolError: A broker answers with an error, as a missing permission.
            BrokerUnreachable: The target cannot be reached.
        """
        count = self._target.partitions(self.topic)
        if not count:
            await self._target.refresh([self.topic])
            count = self._target.partitions(self.topic)
        if not count:
            code = self._target.trouble(self.topic) or KafkaErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if code == KafkaErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return None
            context = f"cluster {self._target.alias}: topic {self.topic}"
            raise KafkaProtocolError(code, context, self._target.alias, ("topic", self.topic, "Read"))
        return self.topic, partition_for(self._key(tp), count)

    async def read_newest(self, tp: TopicPartition) -> int | None:
        """Return the last upstream offset of `tp` from a committed transaction or a record outside of transactions.

        It holds as of a moment after this call, and is None if there is no such record.

        Raises:
            KafkaProtocolError: A broker answers with an error.
            BrokerUnreachable: The target cannot be reached.
        """
        partition = await self.progress_partition(tp)
        if partition is None:
            return None
        log = await self._read_log(partition)
        entry = log.fold.offsets.for_connector(self._connector).get(self._key(tp))
        return None if entry is None else entry.offset

    async def read_last_records(
        self, tp: TopicPartition, producer_id: int, topic_id: str
    ) -> tuple[ProgressRecord | None, ProgressRecord | None]:
        """Return the last progress record of a producer in a transaction, and the last one that is committed.

        They are as of a moment after this call, and None if there is none. A record outside of transactions, such as
        one by which an operator or a policy moves the copy, leaves none before it.

        Args:
            tp: The source's partition.
            producer_id: The producer id of its transactional id.
            topic_id: The id of the target's topic. What a record says of another topic does not count.

        Raises:
            KafkaProtocolError: A broker answers with an error.
            BrokerUnreachable: The target cannot be reached.
        """
        partition = await self.progress_partition(tp)
        if partition is None:
            return None, None
        fold, key = (await self._read_log(partition)).fold, self._key(tp)
        last, committed = (
            None if entry is None or entry[0] != producer_id else _progress_record(*entry[1:], topic_id)
            for entry in (fold.last_records.get(key), fold.last_committed.get(key))
        )
        return last, committed

    async def _read_log(self, partition: TopicPartition) -> "_PartitionLog":
        log = self._logs.setdefault(partition[1], _PartitionLog(self._target, partition, self._pass_over))
        await log.reading.run()
        return log

    def _key(self, tp: TopicPartition) -> bytes:
        key, _ = encode_source_progress_reset(self._source, *tp, self._connector)
        return key


def _progress_record(outcome: TransactionOutcome, record: PlainRecord, topic_id: str) -> ProgressRecord:
    try:
        content = json.loads(dict(record.headers).get(APPENDED_TO) or b"null")
        if content is None:
            return ProgressRecord(outcome)
        of_topic = content["topicId"] == topic_id
        offsets = {int(number): int(offset) for number, offset in content["offsets"].items() if of_topic}
    except (ValueError, TypeError, KeyError, AttributeError):
        return ProgressRecord(outcome)  # another client has written it
    return ProgressRecord(outcome, offsets)


class _PartitionLog:
    """One partition of the progress topic, as far as it was read."""

    def __init__(self, target: ClusterClient, tp: TopicPartition, pass_over: PassOver) -> None:
        self._target = target
        self._tp = tp
        self._cursor = LogCursor(target, tp)
        self.fold = CommittedProgress(partial(pass_over, *tp))
        self.reading = SingleFlight(self._read_on)

    async def _read_on(self) -> None:
        async with self._target.leader_for_request(self._tp):
            async for batches in self._cursor.read_new_batches(self.fold.reset):
                self.fold.apply(batches)
