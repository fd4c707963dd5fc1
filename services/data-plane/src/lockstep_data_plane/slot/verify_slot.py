"""A slot that copies nothing: it compares copies with their source (`docs/guides/verify.md`).

It follows the flow's state topic. It compares its share of the mirrored partitions one after the other, a while each.
It carries out an operator's request, and follows all copies if `lockstep.verify.enabled` is set. It writes how far
each comparison is into the partition's row, and goes on from there after a restart.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from lockstep_config.credentials.permissions import needed_access
from lockstep_config.flow import client_settings
from lockstep_config.flow.client_settings import client_id
from lockstep_data_plane.core.provenance import producers_of_copy
from lockstep_data_plane.provenance.origin_filter import OriginFilter
from lockstep_data_plane.slot.certificate_watch import CertificateWatch
from lockstep_data_plane.slot.progress_rows import ProgressRows
from lockstep_data_plane.slot.slot_spec import SlotSpec
from lockstep_data_plane.slot.slot_transforms import SlotTransforms
from lockstep_data_plane.verify.batch_comparison import Depth
from lockstep_data_plane.verify.log_comparison import LogStretch, ReadLimit, compare_logs
from lockstep_data_plane.verify.offset_map import OffsetMap
from lockstep_data_plane.verify.partition_share import comparing_slot, copied_partitions
from lockstep_data_plane.verify.partition_verifier import PartitionVerifier
from lockstep_data_plane.verify.record_alignment import TargetRules
from lockstep_data_plane.verify.transformed_batch import transform_batch
from lockstep_data_plane.verify.verified_position import (
    ComparisonStretch,
    CopyState,
    LogRanges,
    add_comparison,
    add_counts,
    comparable_from,
    finish_comparison,
    is_enough,
    needs_comparison,
    next_stretch,
    row_to_compare,
    waits_for_copy,
    with_beyond,
)
from lockstep_kafka.common.asyncio_util import cancelled
from lockstep_kafka.librdkafka.control_producer import ControlProducer, ControlTopicLog
from lockstep_kafka.topics.topic_follower import target_follower
from lockstep_kafka.topics.topic_reader import Record
from lockstep_kafka.wire.cluster import DEBUGGING, EARLIEST, ClusterClient, connect_cluster
from lockstep_kafka.wire.error_codes import RETRIABLE_ERRORS
from lockstep_rules.offsets.offset_runs import RunMap
from lockstep_runtime.state.unreadable_records import UnreadableRecords
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.util.clock import now_ms
from lockstep_state.errors import NeedsDecision
from lockstep_state.names import state_topic
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import (
    Leader,
    MalformedRow,
    MirroredTopic,
    OffsetRuns,
    Origin,
    PartitionProgress,
    Verification,
    VerifiedPartition,
    decode_row,
)

CHECK_INTERVAL_S = 1.0
"""Seconds after which the slot looks for newly copied records to compare."""

WRITTEN_EVERY_S = 2.0
"""Seconds between two writes of a partition's row while it is compared."""

AT_ONCE_S = 10.0
"""Seconds for which one partition is compared before the next one has its turn."""


class VerifySlot:
    """One of a flow's slots that compare.

    `run` returns when nothing is left to compare, unless `lockstep.verify.enabled` is set. It also returns when
    another instance leads, or certificates change.
    """

    def __init__(self, spec: SlotSpec) -> None:
        self._spec = spec
        self._settings = spec.settings
        self._verify = spec.settings.data_plane.verify
        self._log = FlowLog("data-plane", spec.settings.flow)
        self._unreadable = UnreadableRecords(self._log)
        self._topics: dict[str, MirroredTopic] = {}
        self._progress = ProgressRows()
        self._runs: dict[TopicPartition, dict[str, OffsetRuns]] = {}
        self._rows: dict[TopicPartition, VerifiedPartition] = {}
        self._request: Verification | None = None
        self._written: set[TopicPartition] = set()
        """The partitions whose rows this slot has written. Their rows in the state topic are this slot's own, so they
        are not read.
        """
        self._producers: set[int] = {spec.producer_id}
        self._limit = ReadLimit(None)
        self._succeeded = False
        self._certificates = CertificateWatch(spec.settings, self._log)
        self._source, self._target = self._clusters()
        self._transforms = SlotTransforms(spec.settings, spec.transforms)
        self._origins = OriginFilter(spec.settings, self._source, self._target, self._unreadable.pass_over_at)

    @property
    def renews(self) -> bool:
        """Return whether it ends because the certificates of this host changed.

        Another slot takes its place then.
        """
        return self._certificates.renewed and not self._succeeded

    @property
    def _leaves(self) -> bool:
        return self._succeeded or self._certificates.renewed

    def _clusters(self) -> tuple[ClusterClient, ClusterClient]:
        settings, number = self._settings, self._spec.slot
        reading, writing = settings.clients.source_consumer, settings.clients.data_producer
        return (
            connect_cluster(settings.flow.source, reading, client_id(settings, f"verify-source-{number}", reading)),
            connect_cluster(settings.flow.target, writing, client_id(settings, f"verify-target-{number}", writing)),
        )

    async def run(self) -> int:
        """Compare until nothing is left, and return 0, the number of appended records.

        A programming error in any of its tasks ends it too, and is raised.

        Raises:
            LogTruncated: The state topic was re-created.
        """
        settings = self._settings
        topic = state_topic(settings.flow, settings.group_id)
        conf = client_settings.target_producer(settings, f"verify-{self._spec.slot}")
        producer = ControlProducer(settings.flow.target, conf, access=needed_access(settings, settings.flow.target))
        state = ControlTopicLog(producer, topic)
        await producer.start()
        try:
            async with target_follower(settings, f"verify-{self._spec.slot}", topic, self._fold) as follower:
                await follower.caught_up()
                failed = asyncio.create_task(follower.failed())
                watching = asyncio.create_task(self._certificates.watch(asyncio.Event()))
                while not self._leaves and not (await self._compare_all(state) and not self._verify.enabled):
                    for task in (failed, watching):
                        if task.done():
                            task.result()
                    await asyncio.sleep(CHECK_INTERVAL_S)
                await cancelled([failed, watching])
        finally:
            await self._transforms.close()
            await self._source.close()
            await self._target.close()
            await producer.stop()
        return 0

    async def _compare_all(self, state: ControlTopicLog) -> bool:
        """Compare every partition of this slot in turns, until each is compared up to where it is copied.

        Returns:
            True if nothing of a request is left to do.
        """
        while not self._leaves:
            is_cut = False
            for tp in self._partitions():
                request, progress, row = self._open_request(tp), self._progress.get(tp), self._rows.get(tp)
                if progress is None or self._leaves:
                    continue
                follows = self._verify.enabled and needs_comparison(row, progress, self._verify.depth)
                if follows or (request is not None and not waits_for_copy(row, progress, request)):
                    is_cut = await self._compare(tp, progress, request, state) or is_cut
            if not is_cut:
                return not any(self._open_request(tp) for tp in self._partitions() if tp in self._progress)
        return False

    def _partitions(self) -> Sequence[TopicPartition]:
        """Return this slot's share of the mirrored partitions."""
        every = copied_partitions(self._topics.values(), by_key=self._settings.data_plane.by_key)
        return [tp for tp in every if comparing_slot(tp, self._verify.tasks_max) == self._spec.slot]

    def _open_request(self, tp: TopicPartition) -> Verification | None:
        """Return the running request that names the partition, if it is not yet carried out for it."""
        request, row = self._request, self._rows.get(tp)
        if request is None or request.phase != "running" or (request.topics and tp[0] not in request.topics):
            return None
        return None if row is not None and row.request == request.id and row.done else request

    # -- one partition -------------------------------------------------------------------------------------------------

    async def _compare(
        self, tp: TopicPartition, progress: PartitionProgress, request: Verification | None, state: ControlTopicLog
    ) -> bool:
        """Compare the partition up to where its copy is. Return whether another turn is needed at once."""
        verified, topic, began_ms = self._rows.get(tp), self._topics[tp[0]], now_ms()
        fresh = verified or VerifiedPartition(topic=tp[0], partition=tp[1], verified_ms=began_ms)
        if self._settings.data_plane.by_key:
            cause = ReasonCode.COPIED_BY_KEYS.to_reason()
            request_id = request.id if request is not None else fresh.request
            await self._write(replace(fresh, cause=cause, request=request_id, done=True), state)
            return False
        depth = self._verify.depth if request is None else request.depth
        self._limit.change(self._verify.max_bytes_per_s if request is None else request.max_bytes_per_s or None)
        remote = topic.target_topic, tp[1]
        try:
            await self._source.refresh([tp[0]])
            await self._target.refresh([topic.target_topic])
            if cause := self._recreated(tp, remote, progress):
                await self._write(replace(fresh, cause=cause), state)
                return False
            copy = await self._copy_state(tp, remote, progress, began_ms)
            stretch = next_stretch(row_to_compare(verified, copy, depth, request), copy)
            if stretch.row.depth == Depth.COUNT.value:
                row = add_counts(stretch, copy.offsets, copy.logs.target_log_end)
            else:
                row = await self._compare_stretch(tp, remote, stretch, copy, state)
        except (*RETRIABLE_ERRORS, NeedsDecision) as exc:
            if fresh.cause != (cause := ReasonCode.REPORTED.to_reason(text=str(exc))):
                self._log.warn("verification waits", f"{tp[0]}-{tp[1]}: {exc}")
            await self._write(replace(self._rows.get(tp, fresh), cause=cause), state)
            return False
        done = finish_comparison(row, progress, began_ms)
        await self._write(done, state)
        return done.upstream < done.upstream_end

    def _recreated(self, tp: TopicPartition, remote: TopicPartition, progress: PartitionProgress) -> Reason:
        """Return the reason if either topic was re-created since it was copied, else `NO_REASON`.

        It compares topic ids, so brokers without them show nothing.
        """
        for cluster, name, copied_id in (
            (self._source, tp, progress.source_topic_id),
            (self._target, remote, progress.target_topic_id),
        ):
            if copied_id and cluster.topic_id(name) not in ("", copied_id):
                return ReasonCode.TOPIC_RECREATED.to_reason(topic=name[0], cluster=cluster.alias)
        return NO_REASON

    async def _copy_state(
        self, tp: TopicPartition, remote: TopicPartition, progress: PartitionProgress, at_ms: int
    ) -> CopyState:
        committed = self._settings.data_plane.reads_committed
        logs = LogRanges(
            await self._source.end_offset(tp, timestamp=EARLIEST),
            await self._target.end_offset(remote, timestamp=EARLIEST),
            await self._source.end_offset(tp, committed=committed),
            await self._source.end_offset(tp, replica_id=DEBUGGING),
            await self._target.end_offset(remote, replica_id=DEBUGGING),
            await self._target.end_offset(remote, committed=progress.transactional),
        )
        run_map = RunMap.build(progress, self._runs.get(tp, {}).values())
        offsets = OffsetMap(run_map.runs, progress.upstream, run_map.generation)
        transform = self._transforms.find(tp[0])
        known_from = comparable_from(progress, "" if transform is None else transform.version)
        return CopyState(progress, offsets, logs, at_ms, self._origins.traces(tp[0]), known_from)

    async def _compare_stretch(
        self,
        tp: TopicPartition,
        remote: TopicPartition,
        stretch: ComparisonStretch,
        copy: CopyState,
        state: ControlTopicLog,
    ) -> VerifiedPartition:
        """Compare the stretch, or the part of it that fits into one turn, and return the row with the result."""
        row, progress = stretch.row, copy.progress
        producer_ids = producers_of_copy(progress, self._producers)
        configs, traces = dict(self._topics[tp[0]].target_configs), copy.is_traced
        rules = TargetRules("compact" in configs.get("cleanup.policy", ""), has_foreign_writers=traces)

        def new_verifier(begin: tuple[int, int], end: tuple[int, int], shift: int) -> PartitionVerifier:
            is_copied = self._origins.copies if traces else lambda batch: True
            context = Depth(row.depth), rules, copy.offsets, producer_ids.__contains__
            return PartitionVerifier(begin, end, *context, shift, is_copied)

        verifier = new_verifier(stretch.begin, stretch.end, row.shift)
        began = written = time.monotonic()
        writes: list[asyncio.Task[None]] = []

        def so_far() -> VerifiedPartition:
            return add_comparison(row, verifier, round((time.monotonic() - began) * 1e3))

        def goes_on() -> bool:
            nonlocal written
            now = time.monotonic()
            if not verifier.is_settled:
                return True
            if self._leaves or now - began >= AT_ONCE_S or is_enough(row, verifier.position[0]):
                return False
            if now - written >= WRITTEN_EVERY_S and all(write.done() for write in writes):
                written = now
                writes[:] = [
                    *(write for write in writes if write.exception()),
                    asyncio.create_task(self._write(so_far(), state)),
                ]
            return True

        isolation = self._settings.data_plane.isolation_level
        ends = min(stretch.end[0], copy.logs.source_log_end), min(stretch.end[1], copy.logs.target_log_end)
        source = LogStretch(self._source, tp, stretch.begin[0], ends[0], isolation)
        # Of a copy in transactions the target also holds the appends that were aborted and then repeated.
        target_isolation = "read_committed" if progress.transactional else "read_uncommitted"
        target = LogStretch(self._target, remote, stretch.begin[1], ends[1], target_isolation)
        learn = self._origins.look_up if traces else None
        transform = self._transforms.find(tp[0]) if progress.transform else None
        made = None if transform is None else partial(transform_batch, transform, tp=tp)
        try:
            await compare_logs(verifier, source, target, self._limit, goes_on, learn, made)
        finally:
            await asyncio.gather(*writes)
        verified = so_far()
        if verified.upstream < verified.upstream_end:
            return verified
        if not row.request or row.done:  # a copy that is followed is read once: what comes next is compared next
            return replace(verified, beyond=0, beyond_first=-1) if verified.upstream > row.upstream else verified
        # What was copied since the row was written is there too. So the source is asked for its end after the target.
        end = await self._source.end_offset(tp, committed=isolation == "read_committed"), copy.logs.target_end
        tail = new_verifier(stretch.end, (max(end[0], stretch.end[0]), max(end[1], stretch.end[1])), verifier.shift)
        if end[1] > stretch.end[1]:
            source, target = (
                source._replace(begin=stretch.end[0], end=end[0]),
                target._replace(begin=stretch.end[1], end=end[1]),
            )
            await compare_logs(tail, source, target, self._limit, lambda: True, learn, made)
        return with_beyond(verified, tail)

    # -- the state topic -----------------------------------------------------------------------------------------------

    async def _write(self, row: VerifiedPartition, state: ControlTopicLog) -> None:
        """Write the row, unless only its time differs from the last one."""
        former = self._rows.get((row.topic, row.partition))
        if former is not None and replace(row, at_ms=former.at_ms) == former:
            return
        row = replace(row, at_ms=now_ms())
        self._rows[row.topic, row.partition] = row
        self._written.add((row.topic, row.partition))
        await state.append(*row.encode(), partition=0)

    def _fold(self, records: Sequence[Record]) -> None:
        for record in records:
            try:
                if record.key is not None and self._progress.fold(record.key, record.value):
                    continue
                row = decode_row(record.key or b"", record.value)
            except MalformedRow as exc:
                self._unreadable.pass_over(record, exc, stays=True)
                continue
            if isinstance(row, MirroredTopic):
                self._topics[row.source_topic] = row
            elif isinstance(row, OffsetRuns):
                self._runs.setdefault((row.topic, row.partition), {})[row.key()] = row
            elif isinstance(row, VerifiedPartition) and (row.topic, row.partition) not in self._written:
                self._rows[row.topic, row.partition] = row
            elif isinstance(row, Verification):
                self._request = row
            elif isinstance(row, Origin):
                self._producers.add(row.producer_id)
            elif isinstance(row, Leader):
                self._succeeded = self._succeeded or self._spec.is_succeeded_by(row, record.offset)
