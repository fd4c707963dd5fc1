"""Both logs of a partition held against its row, before anything is appended (`kafka-wire.md` §2, lines 2 to 9)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from lockstep_config import FlowSettings
from lockstep_data_plane.core.content_match import AmbiguousMatch
from lockstep_data_plane.core.gap_policy import FoundGap, GapCase
from lockstep_data_plane.core.machine import PartitionMachine
from lockstep_data_plane.core.provenance import appended_since
from lockstep_data_plane.core.target_tail import InDoubt, LastAppend, TargetShort, Unaccounted
from lockstep_data_plane.record_batch.rebuild import CorruptRecordError
from lockstep_data_plane.resume.content_matcher import match_logs
from lockstep_data_plane.resume.sequence_recovery import NotReplicated, committed_end, find_last_append
from lockstep_data_plane.wire.cluster import ClusterClient
from lockstep_protocol.offsets import TopicPartition
from lockstep_protocol.rows.state_rows import PartitionProgress

__all__ = ["LogReconciler"]

ROW_WITHIN_S = 30.0
"""How long a row may take to reach us of whose appends the target's log already knows."""


class LogReconciler:
    """Where partitions of one slot stand. Changes nothing."""

    def __init__(self, settings: FlowSettings, source: ClusterClient, target: ClusterClient) -> None:
        self._settings = settings
        self._source = source
        self._target = target
        self._unaccounted: dict[PartitionMachine, float] = {}

    async def reconcile(
        self, partition: PartitionMachine, row: PartitionProgress
    ) -> tuple[PartitionProgress, LastAppend] | FoundGap:
        """The row to go on from with our chain's end, or why the copy cannot simply go on. Raises
        RetriableError."""
        tp = partition.tp
        append_sequence = await self.find_last_append(partition, row)
        start = await self._source.end_offset(tp, timestamp=-2)
        end = await self._source.end_offset(tp)
        if isinstance(append_sequence, FoundGap):
            return replace(append_sequence, start=start, end=end)
        here = _found(row, start=start, end=end)
        agreed = await self._agreed(tp, row, end)
        if agreed < here.wanted:
            text = f"the source's log is the one that was copied up to offset {agreed} only, not up to {row.upstream}"
            return replace(here, case=GapCase.SOURCE_TRUNCATED, text=f"{text}: it was truncated", agreed=agreed)
        beyond = appended_since(row, append_sequence.sequence, append_sequence.others)
        if beyond and (start > here.wanted or partition.misnumbered):
            return await self._aligned(partition, row, append_sequence, here, beyond)
        if start > here.wanted:
            return _first_missing(here)
        if (
            partition.has_foreign_writers and not beyond
        ):  # what was read and holds nothing of ours need not be read again
            row = replace(row, downstream=max(row.downstream, append_sequence.read_to))
            append_sequence = replace(append_sequence, downstream=row.downstream)
        return row, append_sequence

    async def find_last_append(self, partition: PartitionMachine, row: PartitionProgress) -> LastAppend | FoundGap:
        """Where our chain ends in the target's log, or why that cannot be said; the source is not asked. Raises what
        passes."""
        target_tp, here = partition.target_tp, _found(row)
        differs = await self.recreated(partition, row.source_topic_id, row.target_topic_id)
        if differs is not None:
            side, then, now = differs
            case = GapCase.SOURCE_RECREATED if side == "source" else GapCase.TARGET_RECREATED
            text = f"the {side} topic was deleted and created again (id {then} then, {now} now)"
            return replace(
                here, case=case, text=f"{text} since offset {row.upstream}; what it holds now is another log"
            )
        try:
            if not partition.in_one_log:
                append_sequence = LastAppend(-1, -1)
            elif row.transactional:
                append_sequence = await committed_end(self._target, target_tp, row)
            else:
                shared = partition.has_foreign_writers
                append_sequence = await find_last_append(
                    self._target, target_tp, row, partition.provenance.ours, shared=shared
                )
        except Unaccounted as exc:
            return replace(here, text=str(exc), epoch=self._awaited(partition, exc))
        except TargetShort as exc:
            return replace(here, case=GapCase.TARGET_TRUNCATED, text=str(exc))
        except InDoubt as exc:
            return replace(here, text=str(exc))
        self._unaccounted.pop(partition, None)
        return append_sequence

    async def log_end(self, partition: PartitionMachine) -> int:
        """The last offset of the log that tells how far the copy is; -1 where none does. Raises what passes."""
        return await self._target.end_offset(partition.target_tp) - 1 if partition.in_one_log else -1

    async def is_what_was_copied(self, partition: PartitionMachine, row: PartitionProgress) -> bool:
        """Whether the source's log still is, up to the row's progress, the one that was copied. Raises what passes."""
        tp = partition.tp
        return await self._agreed(tp, row, await self._source.end_offset(tp)) > row.upstream

    def _awaited(self, partition: PartitionMachine, found: Unaccounted) -> int:
        """The epoch, once the row that tells of it has been waited for long enough. Raises NotReplicated before."""
        now = asyncio.get_running_loop().time()
        since = self._unaccounted.setdefault(partition, now)
        if now - since < ROW_WITHIN_S:
            raise NotReplicated(f"{found}; waiting for the row that does")
        return found.epoch

    async def _agreed(self, tp: TopicPartition, row: PartitionProgress, end: int) -> int:
        """Up to where the source's log still is the one that was copied."""
        if row.upstream < 0 or row.upstream_epoch < 0:
            return end
        parted = await self._source.epoch_end(tp, row.upstream_epoch)
        return end if parted < 0 else min(parted, end)

    async def _aligned(
        self,
        partition: PartitionMachine,
        row: PartitionProgress,
        append_sequence: LastAppend,
        here: FoundGap,
        beyond: int,
    ) -> tuple[PartitionProgress, LastAppend] | FoundGap:
        """The source has lost records that the target has already: counting does not tell, the records do."""
        try:
            aligned = await match_logs(
                self._source,
                self._target,
                partition.tp,
                partition.target_tp,
                row,
                append_sequence,
                isolation=self._settings.data_plane.isolation_level,
                traces=partition.provenance,
                tombstones_kept_ms=partition.limits.tombstones_kept_ms,
            )
        except (AmbiguousMatch, CorruptRecordError) as exc:
            return replace(here, text=f"the target holds {beyond} records beyond the last progress written; {exc}")
        if aligned.upstream < 0 and here.start > here.wanted + beyond:
            # Everything of ours is gone from the source, and at least so much behind it that is not there.
            return _first_missing(replace(here, wanted=here.wanted + beyond))
        row = replace(
            row,
            upstream=aligned.next - 1,
            upstream_epoch=-1,
            downstream=append_sequence.downstream,
            sequence=append_sequence.sequence,
            others=append_sequence.others,
        )
        return row, append_sequence

    async def recreated(
        self, partition: PartitionMachine, source_id: str, target_id: str
    ) -> tuple[str, str, str] | None:
        """(side, id then, id now) where a topic is another one than it was. The clusters' own metadata decides: what
        topic-sync wrote may be older than the log that would be read."""
        for side, cluster, topic, then in (
            ("source", self._source, partition.topic, source_id),
            ("target", self._target, partition.target_topic, target_id),
        ):
            tp = (topic, partition.number)
            if then and cluster.topic_id(tp) not in ("", then):
                await cluster.refresh([topic])  # ours may be the older view
                now = cluster.topic_id(tp)
                if now not in ("", then):
                    return side, then, now
        return None


def _found(row: PartitionProgress, start: int = -1, end: int = -1) -> FoundGap:
    return FoundGap(
        case=GapCase.DOUBT, text="", wanted=row.upstream + 1, start=start, end=end, epoch=row.producer_epoch
    )


def _first_missing(here: FoundGap) -> FoundGap:
    text = (
        f"the source's log begins at {here.start}, offsets {here.wanted} to {here.start - 1} were removed before they"
    )
    return replace(here, case=GapCase.RECORDS_GONE, text=f"{text} were copied")
