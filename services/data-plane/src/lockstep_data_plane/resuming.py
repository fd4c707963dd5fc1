"""Where a partition goes on, looked up on both clusters: leaders, topic ids, both logs' ends, our chain's end
(`wire.md` §2)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from lockstep_config import FlowSettings
from lockstep_data_plane.begin import first_row, read_progress
from lockstep_data_plane.cluster import Cluster, TopicPartition
from lockstep_data_plane.ledger import Ledger
from lockstep_data_plane.partition import Partition
from lockstep_data_plane.resume import ChainEnd, chain_end
from lockstep_protocol.state import MirroredTopic, PartitionProgress
from lockstep_runtime.errors import ClusterTrouble

__all__ = ["Halt", "Resuming"]


class Halt(RuntimeError):
    """The partition must not go on until somebody decides; the message says why and what to do."""


class Resuming:
    """What a slot's partitions have to know before they copy. Nothing here changes a log, but the row of a new
    chain."""

    def __init__(
        self,
        settings: FlowSettings,
        producer_id: int,
        source: Cluster,
        target: Cluster,
        ledger: Ledger,
        rows: Mapping[TopicPartition, PartitionProgress],
        waiting: Callable[[], Iterable[Partition]],
    ) -> None:
        """`waiting`: the partitions that are about to resume, whose metadata is asked for together."""
        self._settings = settings
        self._producer_id = producer_id
        self._source = source
        self._target = target
        self._ledger = ledger
        self._rows = rows
        self._waiting = waiting
        self._progress: Mapping[TopicPartition, int] | None = None
        self._reading_progress = asyncio.Lock()
        self._refreshing = asyncio.Lock()
        self._refreshed_at = 0.0

    async def look(self, partition: Partition, topic: MirroredTopic) -> tuple[PartitionProgress, ChainEnd]:
        """The row to go on from and where our chain ends now. Raises Halt and InDoubt (somebody has to decide), and
        what passes: BrokerUnreachable, kafka_error, NotReplicated, ClusterTrouble."""
        tp = (partition.topic, partition.number)
        await self._metadata(partition)
        row = self._rows.get(tp)
        if partition.incarnation:
            row = replace(partition.row(), phase="copying", reason="")
        if row is None or row.producer_id != self._producer_id:
            row = await self._begin(partition, topic, row)
        if not partition.incarnation:
            partition.know(row)
        await self._same_topics(partition, row)
        await self._source_reaches(tp, row)
        return row, await chain_end(self._target, (partition.target_topic, partition.number), row)

    async def _begin(
        self, partition: Partition, topic: MirroredTopic, former: PartitionProgress | None
    ) -> PartitionProgress:
        """A new chain, written down and acknowledged before its first append: from then on every append can be
        accounted for."""
        tp = (partition.topic, partition.number)
        differs = await self._recreated(partition, topic.source_topic_id, topic.target_topic_id)
        if differs is not None:
            raise ClusterTrouble("", f"the {differs[0]} topic was created again a moment ago; topic-sync has to see it")
        async with self._reading_progress:
            if self._progress is None:
                self._progress = await read_progress(self._settings)
        known = former.upstream if former is not None else self._progress.get(tp)
        row = await first_row(self._source, self._target, self._settings, tp, partition.target_topic, known)
        row = replace(
            row,
            producer_id=self._producer_id,
            source_topic_id=topic.source_topic_id,
            target_topic_id=topic.target_topic_id,
        )
        await self._ledger.write(row)
        return row

    async def _same_topics(self, partition: Partition, row: PartitionProgress) -> None:
        differs = await self._recreated(partition, row.source_topic_id, row.target_topic_id)
        if differs is not None:
            side, then, now = differs
            raise Halt(
                f"the {side} topic was deleted and created again (id {then} then, {now} now) "
                f"since offset {row.upstream}; what it holds now is another log, "
                "so nothing is copied until somebody decides"
            )

    async def _recreated(self, partition: Partition, source_id: str, target_id: str) -> tuple[str, str, str] | None:
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

    async def _source_reaches(self, tp: TopicPartition, row: PartitionProgress) -> None:
        start = await self._source.end_offset(tp, timestamp=-2)
        end = await self._source.end_offset(tp)
        wanted = row.upstream + 1
        if wanted < start:
            raise Halt(
                f"gap: the source's log begins at {start}, "
                f"offsets {wanted} to {start - 1} were removed before they were copied"
            )
        if wanted > end:
            raise Halt(
                f"the source's log ends at {end}, but everything up to {row.upstream} was copied: it was truncated"
            )

    async def _metadata(self, partition: Partition) -> None:
        """Leaders of both sides, asked for again only if that was before this partition came to need them."""
        since = asyncio.get_running_loop().time()
        known = self._source.leader((partition.topic, partition.number)) is not None
        if partition.incarnation == 0 and known and self._target.leader((partition.target_topic, partition.number)):
            return
        async with self._refreshing:
            if self._refreshed_at >= since:
                return
            begun = asyncio.get_running_loop().time()
            resuming = list(self._waiting())
            await self._source.refresh(p.topic for p in resuming)
            await self._target.refresh(p.target_topic for p in resuming)
            self._refreshed_at = begun
