"""The search for the end of a copy that has no row although the target holds its records: the state topic was lost.

It reads what the target's log, MM2's progress and the offset syncs still say (`docs/internals/resume.md`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from lockstep_config import FlowSettings
from lockstep_data_plane.core.evaluation import TransformUnavailable
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.target_log.target_tail import SEARCHED
from lockstep_data_plane.core.target_log.unaccounted_append import UnaccountedAppend, last_unaccounted, row_at
from lockstep_data_plane.log_reader import LogCursor, first_batch, log_between
from lockstep_data_plane.record_batch.layout import CONTROL, TRANSACTIONAL, Batch, CorruptRecordError
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import read_records
from lockstep_data_plane.resume.copied_records import evaluated_records
from lockstep_kafka.common.single_flight import SingleFlight
from lockstep_kafka.wire.cluster import EARLIEST, ClusterClient, KafkaProtocolError
from lockstep_kafka.wire.error_codes import DENIED
from lockstep_kafka.wire.optional_requests import active_producers
from lockstep_state.codecs.mm2_codec import MalformedRecord, decode_offset_sync
from lockstep_state.errors import NeedsDecision
from lockstep_state.kafka.kafka_errors import KafkaErrorCode
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import PartitionProgress


class LostRowFinder:
    """The finder of the ends of copies without a row, for one slot's partitions."""

    def __init__(self, settings: FlowSettings, producer_id: int, source: ClusterClient, target: ClusterClient) -> None:
        self._producer_id = producer_id
        self._source = source
        self._target = target
        on_source = settings.offset_syncs_cluster == settings.flow.source
        self._syncs = _NewestSyncs(source if on_source else target, settings.offset_syncs_topic)

    async def find_unaccounted(self, partition: PartitionState, *, transactional: bool) -> UnaccountedAppend | None:
        """Return the last append that no row accounts for, as `last_unaccounted`.

        Raises:
            RetriableError: The target does not answer or refuses a request.
        """
        if not partition.routing.in_one_log:
            return None  # committed progress alone says how far a copy is that spreads by keys
        producer_ids = None
        if partition.has_foreign_writers:
            producer_ids = frozenset({self._producer_id, *await partition.provenance.own_producer_ids()})
        tp, batches = partition.target_tp, list[Batch]()
        remembered = {} if producer_ids is None else await active_producers(self._target, tp, producer_ids) or {}
        end = await self._target.end_offset(tp)
        start = max(end - SEARCHED, await self._target.end_offset(tp, timestamp=EARLIEST))
        async for fetched, _ in log_between(self._target, tp, start, end):
            batches += fetched
        return last_unaccounted(batches, remembered, producer_ids, transactional=transactional)

    async def find_committed_behind(
        self, partition: PartitionState, row: PartitionProgress
    ) -> UnaccountedAppend | None:
        """Return the last append of ours behind the row of a copy in transactions.

        No committed progress names that append, or it was lost. Aborted appends do not count.

        Raises:
            RetriableError: The target does not answer or refuses a request.
        """
        if not partition.routing.in_one_log or row.upstream < 0:
            return None
        tp, newest = partition.target_tp, None
        start = max(row.downstream + 1, await self._target.end_offset(tp, timestamp=EARLIEST))
        end = await self._target.end_offset(tp)
        async for batches, aborted in log_between(self._target, tp, start, end, "read_committed"):
            counted = [batch for batch in batches if not aborted.holds(batch)]
            producer_ids = frozenset({row.producer_id}) if partition.has_foreign_writers else None
            newest = last_unaccounted(counted, {}, producer_ids, transactional=True) or newest
        return newest

    async def rebuild(
        self, partition: PartitionState, row: PartitionProgress, append: UnaccountedAppend, committed: int | None
    ) -> PartitionProgress | None:
        """Return a row that the logs prove by one record of the source, and its copy at a known offset of the target.

        The newest offset sync names such a pair. Otherwise MM2's progress does, if both logs have equal offsets. The
        two records have to be equal, and the producer that appended the copy has to be that of `append`. Records that
        were appended behind them are found as behind any row.

        Args:
            partition: The partition without a row.
            row: The row that a first start would write.
            append: The last append that no row accounts for.
            committed: The upstream offset of MM2's progress; None: there is none.

        Returns:
            None if nothing is proved.

        Raises:
            RetriableError: A cluster does not answer or refuses a request.
        """
        if (sync := await self._syncs.find(partition.tp)) is not None:
            proved = await self._prove(partition, row, append, *sync)
            if proved is not None:
                return proved
        # The offsets of a transformed copy are seldom equal, and equal ones prove nothing.
        if committed is None or committed < 0 or partition.transform is not None:
            return None
        if await self._is_repeated(partition.tp, committed):
            return None
        return await self._prove(partition, row, append, committed, committed)

    async def _prove(
        self,
        partition: PartitionState,
        row: PartitionProgress,
        append: UnaccountedAppend,
        upstream: int,
        downstream: int,
    ) -> PartitionProgress | None:
        target_batch = await _batch_at(self._target, partition.target_tp, downstream)
        if (
            target_batch is None
            or target_batch.producer_id != append.producer_id
            or target_batch.attributes & (CONTROL | TRANSACTIONAL)
        ):
            return None
        source_batch = await _batch_at(self._source, partition.tp, upstream)
        if source_batch is None:
            return None
        original = await _transformed_at(partition, source_batch, upstream)
        if not _are_equal(original, _record_at(target_batch, downstream)):
            return None
        proved = row_at(row, target_batch, upstream, downstream)
        # Nothing shows which version of the transform has made what is before.
        return proved if partition.transform is None else replace(proved, transform_since=upstream)

    async def _is_repeated(self, tp: TopicPartition, offset: int) -> bool:
        """Return whether the record before may have the same content, so that an equal copy proves nothing.

        That is also so if the log no longer has one of the two records, or if one cannot be read.
        """
        if offset == 0:
            return False
        batch, before = await _batch_at(self._source, tp, offset), await _batch_at(self._source, tp, offset - 1)
        if batch is None or before is None:
            return True
        return may_repeat(_record_at(before, offset - 1), _record_at(batch, offset))


class _NewestSyncs:
    """The newest offset sync of each partition, as (upstream, downstream)."""

    def __init__(self, cluster: ClusterClient, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._cursor = LogCursor(cluster, (topic, 0))
        self._newest: dict[TopicPartition, tuple[int, int]] = {}
        self._reading = SingleFlight(self._read_on)

    async def find(self, tp: TopicPartition) -> tuple[int, int] | None:
        """Return the newest offset sync of a partition; None: there is none, or the topic may not be read.

        Raises:
            RetriableError: The cluster does not answer or refuses a request.
        """
        try:
            await self._reading.run()
        except KafkaProtocolError as exc:
            if exc.code not in DENIED:
                raise
        return self._newest.get(tp)

    async def _read_on(self) -> None:
        await self._cluster.refresh([self._topic])
        if not self._cluster.partitions(self._topic):
            code = self._cluster.trouble(self._topic) or KafkaErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if code == KafkaErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return
            context = f"cluster {self._cluster.alias}: topic {self._topic}"
            raise KafkaProtocolError(code, context, self._cluster.alias, ("topic", self._topic, "Read"))
        async with self._cluster.leader_for_request((self._topic, 0)):
            async for batches in self._cursor.read_new_batches(self._newest.clear):
                self._fold(batches)

    def _fold(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            for record in readable_records(batch) if not batch.attributes & CONTROL else ():
                try:
                    sync = decode_offset_sync(
                        None if record.key is None else bytes(record.key),
                        None if record.value is None else bytes(record.value),
                    )
                except MalformedRecord:
                    continue  # it proves nothing; checkpoint counts and names it
                self._newest[sync.topic, sync.partition] = int(sync.upstream), int(sync.downstream)


async def _batch_at(cluster: ClusterClient, tp: TopicPartition, offset: int) -> Batch | None:
    """Return the batch that holds this offset; None: the log does not have such a record, or has it no more."""
    if not await cluster.end_offset(tp, timestamp=EARLIEST) <= offset < await cluster.end_offset(tp):
        return None
    batch = await first_batch(cluster, tp, offset, offset + 1)
    return batch if batch is not None and batch.base_offset <= offset else None


async def _transformed_at(partition: PartitionState, batch: Batch, offset: int) -> PlainRecord | None:
    """Return what the partition's transform makes of a source record; None: it drops it, or cannot read it.

    Raises:
        RetriableError: The transform is not evaluated now.
        TransformUnavailable: Nothing evaluates the transform.
    """
    if partition.transform is None:
        return _record_at(batch, offset)
    try:
        records, _ = await evaluated_records(partition.transform, batch, offset, partition.tp)
    except TransformUnavailable:
        raise
    except (NeedsDecision, ValueError):
        return None
    return next((record for record in records if record.offset == offset), None)


def _record_at(batch: Batch, offset: int) -> PlainRecord | None:
    return next((record for record in readable_records(batch) if record.offset == offset), None)


def readable_records(batch: Batch) -> Sequence[PlainRecord]:
    """Return the records of a batch; none if they cannot be read.

    Such a batch proves nothing, however often it is read again.
    """
    try:
        return tuple(read_records(batch))
    except CorruptRecordError:
        return ()


def may_repeat(before: PlainRecord | None, record: PlainRecord | None) -> bool:
    """Return whether two consecutive records may be the same; a record that is None is unknown."""
    return before is None or record is None or _are_equal(before, record)


def _are_equal(first: PlainRecord | None, second: PlainRecord | None) -> bool:
    """Return whether both records are known and have the same key, value, headers and timestamp."""
    if first is None or second is None:
        return False
    return first._replace(offset=0) == second._replace(offset=0)
