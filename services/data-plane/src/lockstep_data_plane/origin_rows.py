"""The `origin/*` rows in the state topics of a cluster, read when somebody needs to know them all.

A row is acknowledged before the first batch that bears its producer id. So whoever has fetched a batch and then reads
the state topics up to an end taken since has its row, or there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable

from lockstep_data_plane.batches.layout import CONTROL, Batch
from lockstep_data_plane.batches.rebuild import read
from lockstep_data_plane.cluster import NO_ERROR, UNKNOWN_TOPIC, Cluster, kafka_error
from lockstep_data_plane.reading import end_of, log_between
from lockstep_protocol.names import is_state_topic
from lockstep_protocol.state import MalformedRow, Origin, decode_row

__all__ = ["OriginRows", "rows_in", "state_topics"]

ORIGIN = f"{Origin.kind}/".encode()


class OriginRows:
    """The rows of some state topics, as far as they were read."""

    def __init__(self, cluster: Cluster, topics: Callable[[], Awaitable[Collection[str]]]) -> None:
        """`topics` names the topics there are at the moment."""
        self._cluster = cluster
        self._topics = topics
        self._read_up_to: dict[str, tuple[str, int]] = {}
        """Topic id and next offset of each topic."""
        self._reading = asyncio.Lock()
        self._begun = float("-inf")
        self.rows: list[Origin] = []
        """In the order of each topic's log."""

    async def read(self) -> None:
        """Read on, at least to where the topics end now; who asks while it is being read shares the next reading.
        Raises kafka_error and BrokerUnreachable; what was read until then is kept."""
        asked = asyncio.get_running_loop().time()
        async with self._reading:
            if self._begun > asked:
                return
            begun = asyncio.get_running_loop().time()
            topics = await self._topics()
            await self._cluster.refresh(topics)
            for topic in topics:
                await self._read(topic)
            self._begun = begun

    async def _read(self, topic: str) -> None:
        tp = (topic, 0)
        topic_id = self._cluster.topic_id(tp)
        start, end = await self._cluster.end_offset(tp, timestamp=-2), await self._cluster.end_offset(tp)
        known_id, at = self._read_up_to.get(topic, (topic_id, 0))
        at = max(start, at if known_id == topic_id and at <= end else 0)
        async for batches, _ in log_between(self._cluster, tp, at, end):
            self.rows += rows_in(batches)
            self._read_up_to[topic] = topic_id, end_of(batches[-1])


def rows_in(batches: Iterable[Batch]) -> list[Origin]:
    """The origin rows in some batches of a state topic. What is no row is passed over, as in every fold."""
    found = []
    for batch in batches:
        if batch.attributes & CONTROL:
            continue
        for record in read(batch):
            if record.key is None or not bytes(record.key).startswith(ORIGIN):
                continue
            try:
                row = decode_row(bytes(record.key), None if record.value is None else bytes(record.value))
            except MalformedRow:
                continue
            if isinstance(row, Origin):
                found.append(row)
    return found


async def state_topics(cluster: Cluster, expected: Collection[str]) -> list[str]:
    """The state topics of all flows into the cluster, of whatever file and instance. Raises BrokerUnreachable, and
    kafka_error where one of `expected` cannot be looked at: a listing leaves out what we may not describe, and a flow
    that sees no rows copies everything back."""
    names = await cluster.topic_names()
    await cluster.refresh(expected)
    for topic in expected:
        code = cluster.trouble(topic)
        if code not in (NO_ERROR, UNKNOWN_TOPIC):
            raise kafka_error(code, f"cluster {cluster.alias}: {topic}, which says where records came from")
    return sorted(name for name in names if is_state_topic(name))
