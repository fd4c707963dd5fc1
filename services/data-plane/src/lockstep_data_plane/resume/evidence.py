"""The evidence of both clusters about a partition that resumes.

That is topic ids, log ends, the target's log behind the row, and the records of both logs where counting is not enough.
Nothing here is decided (`core/target_log/locate.py`), and no log is changed.
"""

import asyncio
from collections.abc import Callable, Set
from contextlib import suppress

from lockstep_config import FlowSettings
from lockstep_data_plane.core.evaluation import TransformUnavailable
from lockstep_data_plane.core.events import Unplaced
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.provenance import appended_since
from lockstep_data_plane.core.target_log.content_match import MatchedPosition
from lockstep_data_plane.core.target_log.fencing import fence_for_row
from lockstep_data_plane.core.target_log.leader_epochs import EpochEvidence
from lockstep_data_plane.core.target_log.locate import LogEnds, NeedsMore, Position, locate
from lockstep_data_plane.core.target_log.log_read_back import ComparedCopy, ReadBackTail
from lockstep_data_plane.core.target_log.target_tail import LogContradiction, NotReplicated, TargetTail
from lockstep_data_plane.core.target_log.transformed_match import TransformedMatch
from lockstep_data_plane.log_reader import first_batch, log_between
from lockstep_data_plane.resume.log_match import match_logs, match_transformed
from lockstep_data_plane.resume.read_back_reader import compare_logs, read_back
from lockstep_data_plane.transform.evaluation_answer import TransformConnectionLost, TransformTimedOut
from lockstep_data_plane.transform.jvm_socket import NoTransformServer
from lockstep_kafka.wire.cluster import DEBUGGING, EARLIEST, LATEST, ClusterClient, KafkaProtocolError
from lockstep_kafka.wire.connection_errors import BrokerUnreachable
from lockstep_kafka.wire.optional_requests import active_producers, epoch_end
from lockstep_kafka.wire.unsupported_requests import UnsupportedCase
from lockstep_rules.offsets.gap_policy import GapCase, GapFound
from lockstep_state.errors import NeedsDecision
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import PartitionProgress

SETTLE_S = 30.0
"""The longest wait, in seconds, for what the leader has appended to be replicated and so become visible."""

ROW_WITHIN_S = 30.0
"""The longest wait, in seconds, for the row of appends that the target's log already has."""

SOURCE_WITHIN_S = 2.0
"""The longest wait, in seconds, for the source's answer about a partition at rest. What only the source knows then
stays unknown.
"""

COMPARED_WITHIN_S = 10.0
"""The longest time, in seconds, to compare the records of both logs for a partition at rest."""

AGAIN_AFTER_S = 0.25

NOT_EVALUATED = (TransformUnavailable, TransformConnectionLost, TransformTimedOut, NoTransformServer)
"""The errors of a transform that is not evaluated now."""


class EvidenceReader:
    """The reader that asks both clusters about the partitions of one slot, as far as `locate` needs it."""

    def __init__(self, settings: FlowSettings, source: ClusterClient, target: ClusterClient) -> None:
        self._settings = settings
        self._source = source
        self._target = target
        self._unaccounted: dict[PartitionState, float] = {}
        """The time, by partition, since when the copy waits for the row of records that the target's log holds."""

    async def end(
        self, partition: PartitionState, row: PartitionProgress, *, counts: bool = True, asks_source: bool = True
    ) -> Position | GapFound | Unplaced:
        """Return where the copy of a partition at rest ends.

        The source is asked for a short time only, and only if the target holds more than the row says. So is the
        partition's transform: what only they know stays unknown if one of them does not answer.

        Args:
            partition: The partition at rest.
            row: Its written progress.
            counts: As for `locate`.
            asks_source: The source may be asked.

        Raises:
            RetriableError: The target does not answer or refuses a request.
        """
        target = await self.target_tail(partition, row, rests=True)
        outcome = locate(row, None, target, fence_for_row(row), self.policy(partition.topic), counts=counts)
        if not isinstance(outcome, NeedsMore):
            return self._accounted(partition, outcome)
        if asks_source and await self.source_answers(partition.tp):
            try:
                async with asyncio.timeout(COMPARED_WITHIN_S):
                    return await self.position(partition, row, counts=counts)
            except (BrokerUnreachable, KafkaProtocolError) as exc:
                if exc.alias == self._target.alias:
                    raise
            except (TimeoutError, *NOT_EVALUATED):
                pass
        return Unplaced(appended_since(row, outcome.end.sequence, outcome.end.others))

    async def source_answers(self, tp: TopicPartition) -> bool:
        """Return whether the leader of the partition on the source answers within `SOURCE_WITHIN_S`.

        So a cluster that elects a leader has some time, and a cluster that is gone delays nothing for long.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(SOURCE_WITHIN_S):
                while True:
                    try:
                        await self._source.refresh([tp[0]])
                        await self._source.end_offset(tp)
                    except (BrokerUnreachable, KafkaProtocolError):
                        await asyncio.sleep(AGAIN_AFTER_S)
                    else:
                        return True
        return False

    async def position(
        self, partition: PartitionState, row: PartitionProgress, *, counts: bool = True
    ) -> Position | GapFound:
        """Return the position from which the copy goes on.

        `counts` is as for `locate`.

        Raises:
            RetriableError: A cluster does not answer or refuses a request, or the row of appends may still come.
            TransformUnavailable: Nothing evaluates the transform of the topic.
        """
        target, fence, policy = (
            await self.target_tail(partition, row),
            fence_for_row(row),
            self.policy(partition.topic),
        )
        source = await self.log_ends(partition.tp, row)
        match: MatchedPosition | ComparedCopy | TransformedMatch | str | None = None
        if isinstance(target, ReadBackTail) and target.is_whole and source.agreed > row.upstream:
            match = await self._compare(partition, row, target, source)
        counts = counts and not partition.counting_failed and not row.transform
        while isinstance(located := locate(row, source, target, fence, policy, counts=counts, match=match), NeedsMore):
            try:
                isolation = self._settings.data_plane.isolation_level
                ask = match_transformed if row.transform else match_logs
                match = await ask(self._source, self._target, partition, row, located.end, isolation=isolation)
            except TransformUnavailable:
                raise  # it says nothing about the copy, and no policy may decide anything by it
            except (NeedsDecision, ValueError) as exc:  # ValueError: records cannot be read
                match = str(exc)
        return self._accounted(partition, located)

    async def _compare(
        self, partition: PartitionState, row: PartitionProgress, tail: ReadBackTail, source: LogEnds
    ) -> ComparedCopy | None:
        """Return where the records of both logs place a copy without producer ids.

        Returns:
            None if the records contradict the row. The tail then has the contradiction.

        Raises:
            RetriableError: The source does not answer or refuses a request.
        """
        try:
            isolation = self._settings.data_plane.isolation_level
            return await compare_logs(self._source, partition, row, tail, source, isolation=isolation)
        except TransformUnavailable:
            raise
        except LogContradiction as found:
            tail.contradiction = found
        except (NeedsDecision, ValueError) as exc:  # records cannot be read
            tail.contradiction = LogContradiction(f"the source's records behind offset {row.upstream}: {exc}")
        return None

    def _accounted(self, partition: PartitionState, outcome: Position | GapFound) -> Position | GapFound:
        """Return what was found.

        Raises:
            NotReplicated: The row of records that the target holds may still come.
        """
        if not isinstance(outcome, GapFound):
            self._unaccounted.pop(partition, None)
        elif outcome.epoch >= 0:
            now = asyncio.get_running_loop().time()
            if now - self._unaccounted.setdefault(partition, now) < ROW_WITHIN_S:
                raise NotReplicated(f"{outcome.text}; waiting for the row that does")
        return outcome

    async def target_tail(
        self, partition: PartitionState, row: PartitionProgress, *, rests: bool = False
    ) -> TargetTail:
        """Return what the target says of the row's chain.

        If a topic was deleted and created again, the tail has a contradiction. `rests` is as for `recreated`.

        Raises:
            RetriableError: A cluster does not answer or refuses a request.
        """
        differs = await self.recreated(partition, row.source_topic_id, row.target_topic_id, rests=rests)
        if partition.routing.in_one_log and not row.transactional and differs is None:
            return await read_tail(self._target, partition, row)
        end = await self.log_end(partition)
        tail = TargetTail(row, log_end=end, shared=partition.has_foreign_writers, name=partition.target_name)
        if differs is not None:
            side, former_id, present_id = differs
            case = GapCase.SOURCE_RECREATED if side == "source" else GapCase.TARGET_RECREATED
            text = f"the {side} topic was deleted and created again (id {former_id} then, {present_id} now)"
            text = f"{text} since offset {row.upstream}; what it holds now is another log"
            tail.contradiction = LogContradiction(text, case)
        return tail

    async def log_end(self, partition: PartitionState) -> int:
        """Return the end of the log that shows how far the copy is; -1: no single log does.

        Raises:
            RetriableError: The target does not answer or refuses a request.
        """
        return await self._target.end_offset(partition.target_tp) if partition.routing.in_one_log else -1

    async def recreated(
        self, partition: PartitionState, source_id: str, target_id: str, *, rests: bool = False
    ) -> tuple[str, str, str] | None:
        """Return (side, former topic id, present one) if a topic was deleted and created again; None: it was not.

        The metadata of the clusters decides: what topic-sync wrote may be older than the log that would be read.

        Args:
            partition: The partition of the two topics.
            source_id: The former topic id on the source; "": not known.
            target_id: The former topic id on the target; "": not known.
            rests: Nothing is copied, so a source that does not answer says nothing.
        """
        for side, cluster, topic, former_id in (
            ("source", self._source, partition.topic, source_id),
            ("target", self._target, partition.target_topic, target_id),
        ):
            tp = (topic, partition.number)
            if former_id and cluster.topic_id(tp) not in ("", former_id):
                if rests and side == "source" and not await self.source_answers(tp):
                    continue
                await cluster.refresh([topic])  # our metadata may be the older one
                present_id = cluster.topic_id(tp)
                if present_id not in ("", former_id):
                    return side, former_id, present_id
        return None

    async def log_ends(self, tp: TopicPartition, row: PartitionProgress) -> LogEnds:
        """Return the ends of the source's log, and the offset up to which it is the log that was copied.

        Raises:
            RetriableError: The source does not answer or refuses a request.
        """
        start = await self._source.end_offset(tp, timestamp=EARLIEST)
        end = await self._source.end_offset(tp)
        if row.upstream < 0 or row.upstream_epoch < 0:
            return LogEnds(start, end, end)
        answered = await epoch_end(self._source, tp, row.upstream_epoch)
        evidence = EpochEvidence(row.upstream, row.upstream_epoch, start, end, answered)
        if evidence.needs_batch:
            evidence = evidence._replace(batch=await first_batch(self._source, tp, row.upstream, end))
        if evidence.contradicts:
            self._source.unsupported.add_case("offset_for_leader_epoch", UnsupportedCase.CONTRADICTS_LOG)
        search = evidence.search()
        while search.is_open:
            search.narrow(await first_batch(self._source, tp, search.middle, row.upstream + 1))
        return LogEnds(start, end, search.agreed)

    def policy(self, topic: str) -> Callable[[GapCase], str]:
        """Return the function that gives the configured word for each case in a topic.

        Heartbeats whose topic was created again do not halt. They are copied from the topic's start, because services
        of Lockstep create that topic.
        """
        plane = self._settings.data_plane
        by_key = {"lockstep.on.recreate": plane.on_recreate, "lockstep.on.doubt": plane.on_doubt}
        are_heartbeats = self._settings.policy.is_heartbeats_topic(topic)

        def word_for(case: GapCase) -> str:
            word = by_key.get(case.key, plane.on_gap).for_topic(topic)
            return "restart" if word == "halt" and are_heartbeats and case.is_recreated else word

        return word_for


async def first_offset(source: ClusterClient, settings: FlowSettings, tp: TopicPartition) -> int:
    """Return the upstream offset at which the copy of a partition begins of which nothing is known.

    `lockstep.start.timestamp` says it, or else `auto.offset.reset`. Raises KafkaProtocolError and BrokerUnreachable.
    """
    plane = settings.data_plane
    moment = plane.start_timestamp.for_topic(tp[0])
    if moment is None:
        return await source.end_offset(tp, timestamp=EARLIEST if plane.auto_offset_reset == "earliest" else LATEST)
    # The end is asked for first, so a record of that time that is appended between the two requests is copied.
    end = await source.end_offset(tp, timestamp=LATEST)
    offset = await source.end_offset(tp, timestamp=moment)
    return end if offset < 0 else offset


async def read_tail(target: ClusterClient, partition: PartitionState, row: PartitionProgress) -> TargetTail:
    """Return what the target holds of the row's chain, once that is settled or the wait for it is over.

    Raises KafkaProtocolError and BrokerUnreachable.
    """
    if row.read_back:
        return await read_back(target, partition, row)
    deadline, appended_to = asyncio.get_running_loop().time() + SETTLE_S, None
    others = await partition.provenance.own_producer_ids()
    while True:
        tail = TargetTail(
            row,
            others,
            log_end=await target.end_offset(partition.target_tp),
            shared=partition.has_foreign_writers,
            name=partition.target_name,
            alias=target.alias,
        )
        appended_to = await _read(target, partition.target_tp, tail, {row.producer_id, *others}, appended_to)
        present = await partition.provenance.own_producer_ids()
        if not present <= others:
            others |= present  # another slot has got a producer id meanwhile, and may have used it
        elif tail.is_settled or asyncio.get_running_loop().time() > deadline:
            return tail
        else:
            await asyncio.sleep(0.05)


async def _read(
    target: ClusterClient, tp: TopicPartition, tail: TargetTail, ids: Set[int], appended_to: int | None
) -> int | None:
    """Read the log into the tail, unless the leader's memory of the producers is enough.

    `appended_to` is where the leader's log ended when this was first asked, for a leader that says nothing of
    producers. The log has to be replicated up to there. What others append meanwhile does not matter.

    Returns:
        `appended_to` for the next call; None: the leader's memory is enough.
    """
    if tail.is_short:
        return appended_to
    producers = await active_producers(target, tp, ids)
    if producers is not None and tail.is_confirmed_by(producers):
        return None
    if appended_to is None or producers is not None:
        appended_to = await target.end_offset(tp, replica_id=DEBUGGING)
    tail.log_end = await target.end_offset(tp)
    offset = max(tail.reads_from, await target.end_offset(tp, timestamp=EARLIEST))
    try:
        async for batches, _ in log_between(target, tp, offset, tail.log_end):
            tail.add_batches(batches)
        tail.ends(producers, appended_to)
    except LogContradiction as found:
        tail.contradiction = found
    return appended_to
