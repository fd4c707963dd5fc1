"""The progress that committed transactions have left in MM2's progress topic (`mm2-behaviour.md` §1.7, §4.8).

The topic is read past the last stable offset and its markers are followed, so that a transaction which somebody else
leaves open delays nobody: what counts of a partition is known once its own transactional id is fenced."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from lockstep_data_plane.common.single_flight import SingleFlight
from lockstep_data_plane.record_batch.layout import CONTROL, TRANSACTIONAL, Batch
from lockstep_data_plane.record_batch.rebuild import read
from lockstep_data_plane.wire.cluster import Cluster, KafkaProtocolError, TopicPartition
from lockstep_data_plane.wire.log_reader import LogCursor
from lockstep_protocol.kafka_errors import KafkaErrorCode
from lockstep_protocol.mm2_codec import MalformedRecord, decode_source_progress, encode_source_progress_reset
from lockstep_protocol.murmur2 import partition_for

__all__ = ["CommittedProgress", "CommittedProgressReader"]

_MARKER = struct.Struct(">hh")
COMMIT = 1


class CommittedProgress:
    """A fold of one partition of the progress topic, batch by batch: how far each partition of a source is, as the
    connector of that name keeps it. Connectors share the topic in Connect, also several of one source."""

    def __init__(self, connector: str, source: str) -> None:
        self._connector = connector
        self._source = source
        self._open: dict[int, list[tuple[TopicPartition, int | None]]] = {}
        self.known: dict[TopicPartition, int] = {}
        """Last upstream offset that is decided, by partition of the source."""

    def reset(self) -> None:
        """Begin anew: what was taken is not of this log."""
        self._open.clear()
        self.known.clear()

    def apply(self, batches: Iterable[Batch]) -> None:
        """Fold batches of the log, in its order. Raises ValueError, or aiokafka's CorruptRecordException, where they
        cannot be read."""
        for batch in batches:
            if batch.attributes & CONTROL:
                self._ended(batch)
            elif batch.attributes & TRANSACTIONAL:
                self._open.setdefault(batch.producer_id, []).extend(self._progress(batch))
            else:
                self._apply(self._progress(batch))

    def _progress(self, batch: Batch) -> list[tuple[TopicPartition, int | None]]:
        found: list[tuple[TopicPartition, int | None]] = []
        for record in read(batch):
            try:
                progress = decode_source_progress(record.key, record.value)
            except MalformedRecord:
                continue  # a shared Connect cluster keeps other connectors' offsets here too, in whatever form
            if progress is not None and (progress.connector, progress.cluster) == (self._connector, self._source):
                found.append(((progress.topic, progress.partition), progress.offset))
        return found

    def _ended(self, batch: Batch) -> None:
        for record in read(batch):
            if record.key is not None and len(record.key) >= _MARKER.size:
                _, kind = _MARKER.unpack_from(record.key)
                held = self._open.pop(batch.producer_id, [])
                if kind == COMMIT:
                    self._apply(held)

    def _apply(self, progress: Iterable[tuple[TopicPartition, int | None]]) -> None:
        for tp, offset in progress:
            if offset is None:
                self.known.pop(tp, None)
            else:
                self.known[tp] = offset


class CommittedProgressReader:
    """The progress topic of one flow, read as far as somebody needs it."""

    def __init__(self, target: Cluster, topic: str, connector: str, source: str) -> None:
        """`connector`: the name in the keys; `source`: the alias of the flow's source."""
        self._target = target
        self.topic = topic
        self._connector = connector
        self._source = source
        self._logs: dict[int, _PartitionLog] = {}
        """By partition of the topic."""

    async def place(self, tp: TopicPartition) -> TopicPartition | None:
        """The partition of the topic in which the progress of `tp` stands, chosen as Connect's producer chooses it;
        None where there is no such topic. Raises KafkaProtocolError and BrokerUnreachable."""
        count = self._target.partitions(self.topic)
        if not count:
            await self._target.refresh([self.topic])
            count = self._target.partitions(self.topic)
        if not count:
            code = self._target.trouble(self.topic) or KafkaErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if code == KafkaErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return None
            about = f"cluster {self._target.alias}: topic {self.topic}"
            raise KafkaProtocolError(code, about, self._target.alias, ("topic", self.topic, "Read"))
        key, _ = encode_source_progress_reset(self._source, *tp, self._connector)
        return self.topic, partition_for(key, count)

    async def newest(self, tp: TopicPartition) -> int | None:
        """The last upstream offset of `tp` that a committed transaction, or a record outside of one, says to be
        decided, as of a moment after this call; None: nothing says anything. Raises KafkaProtocolError,
        BrokerUnreachable."""
        place = await self.place(tp)
        if place is None:
            return None
        log = self._logs.setdefault(place[1], _PartitionLog(self._target, place, self._fold()))
        await log.reading.done()
        return log.fold.known.get(tp)

    def _fold(self) -> CommittedProgress:
        return CommittedProgress(self._connector, self._source)


class _PartitionLog:
    """One partition of the progress topic, as far as it was read."""

    def __init__(self, target: Cluster, place: TopicPartition, fold: CommittedProgress) -> None:
        self._target = target
        self._place = place
        self._cursor = LogCursor(target, place)
        self.fold = fold
        self.reading = SingleFlight(self._read_on)

    async def _read_on(self) -> None:
        async with self._target.led(self._place):
            async for batches in self._cursor.unread(self.fold.reset):
                self.fold.apply(batches)
