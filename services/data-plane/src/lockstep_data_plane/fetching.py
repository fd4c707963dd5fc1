"""Fetching raw batches from the source: several fetches under way, each on a connection of its own.

A shard holds the partitions that one broker leads and one connection fetches. As soon as an answer is in, the next
question is out, and only then are the batches judged: so the broker never waits for us."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from aiokafka.errors import KafkaError

from lockstep_config.model import FetchSettings
from lockstep_data_plane.batches.layout import Batch, scan
from lockstep_data_plane.cluster import Cluster, Leader, TopicPartition
from lockstep_data_plane.connection import BrokerUnreachable, Connection, message
from lockstep_data_plane.fetch_session import SESSION_LOST, FetchSession, Plan
from lockstep_data_plane.partition import Partition, Phase

__all__ = ["SHARDS", "Delivery", "Fetched", "Fetching", "fetch_request", "read_answer"]

SHARDS = 2
"""Connections that fetch from one broker for one slot: while the answer of one is taken apart the other is being
filled."""

BY_TOPIC_ID = 13
READ_COMMITTED = {"read_uncommitted": 0, "read_committed": 1}
CORRUPT_MESSAGE = 2
PATIENCE_S = 40.0
"""How long a fetch may stay unanswered beyond what it asked the broker to wait."""

PACE_S = 0.003
"""How close the questions of one connection follow each other at most when answers come at once: single records then
come a few at a time, and leave the brokers, and us, time for other things."""

CROWDED_WAIT_MS = 10
"""A fetch that had to leave out partitions without room comes back soon, for they will have room again."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a fetch says of one partition."""

    tp: TopicPartition
    code: int
    high_watermark: int
    last_stable: int
    log_start: int
    aborted: tuple[tuple[int, int], ...]
    records: bytes


def fetch_request(
    connection: Connection,
    wanted: Sequence[tuple[TopicPartition, Leader, int]],
    settings: FetchSettings,
    *,
    isolation: str = "read_uncommitted",
    wait_ms: int | None = None,
    session: Plan | None = None,
) -> Any:
    """A fetch of these partitions from these offsets, by topic id where the broker knows ids: sessionless, or what a
    session has to say."""
    version = connection.version("fetch")
    m = message("fetch", version, "request")
    topics: dict[Any, list[Any]] = {}
    forgotten: dict[Any, list[int]] = {}
    for (topic, number), leader, offset in wanted:
        key = leader.topic_id if version >= BY_TOPIC_ID else topic
        topics.setdefault(key, []).append(
            m.FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=settings.max_partition_bytes)
        )
    for (topic, number), leader in session.forgotten if session is not None else ():
        forgotten.setdefault(leader.topic_id if version >= BY_TOPIC_ID else topic, []).append(number)
    name = "topic_id" if version >= BY_TOPIC_ID else "topic"
    return m.FetchRequest(
        max_wait=timedelta(milliseconds=settings.max_wait_ms if wait_ms is None else wait_ms),
        min_bytes=settings.min_bytes,
        max_bytes=settings.max_bytes,
        isolation_level=READ_COMMITTED[isolation],
        topics=tuple(m.FetchTopic(**{name: key, "partitions": tuple(parts)}) for key, parts in topics.items()),
        forgotten_topics_data=tuple(
            m.ForgottenTopic(**{name: key, "partitions": tuple(numbers)}) for key, numbers in forgotten.items()
        ),
        **({} if session is None else {"session_id": session.session_id, "session_epoch": session.epoch}),
        rack_id="",  # with one a leader may answer with the name of a follower, and no records (KIP-392)
    )


def read_answer(
    connection: Connection, wanted: Sequence[tuple[TopicPartition, Leader, int]], answer: Any
) -> Iterator[Fetched]:
    """What the answer says, partition by partition. An error of the whole answer is given to each partition asked
    for."""
    if answer.error_code != 0:
        for tp, _, _ in wanted:
            yield Fetched(tp, int(answer.error_code), -1, -1, -1, (), b"")
        return
    by_id = connection.version("fetch") >= BY_TOPIC_ID
    names = {leader.topic_id if by_id else tp[0]: tp[0] for tp, leader, _ in wanted}
    for topic in answer.responses:
        name = names.get(topic.topic_id if by_id else topic.topic)
        if name is None:
            continue
        for p in topic.partitions:
            yield Fetched(
                (name, int(p.partition_index)),
                int(p.error_code),
                int(p.high_watermark),
                int(p.last_stable_offset),
                int(p.log_start_offset),
                tuple((int(a.producer_id), int(a.first_offset)) for a in p.aborted_transactions or ()),
                p.records or b"",
            )


@dataclass(frozen=True, slots=True)
class Delivery:
    """Batches of one partition, fetched for one incarnation of it."""

    partition: Partition
    incarnation: int
    fetched: Fetched
    batches: tuple[Batch, ...]


class Shard:
    """Fetches for its partitions until it is cancelled."""

    def __init__(self, fetching: Fetching, broker: int, lane: str) -> None:
        self._fetching = fetching
        self.broker = broker
        self.lane = lane
        self.partitions: dict[Partition, Leader] = {}
        self.wake = asyncio.Event()
        self._asked_at = 0.0
        self._connection: Connection | None = None
        self._session = FetchSession()
        self._turn = 0

    async def run(self) -> None:
        """Fetch, deliver, and begin again. A lost connection or leader is reported for each partition concerned."""
        while True:
            if not any(self._fetching.has_room(p) for p in self._eligible()):
                self.wake.clear()
                await self.wake.wait()
                continue
            try:
                self._connection = await self._fetching.cluster.connection(self.broker, self.lane)
                await self._fetch_on(self._connection)
            except (BrokerUnreachable, KafkaError) as exc:
                for partition in list(self.partitions):
                    self._fetching.on_trouble(partition, f"cluster {self._fetching.cluster.alias}: {exc}")
                self.partitions.clear()

    async def _fetch_on(self, connection: Connection) -> None:
        self._session.lost()
        asked = self._ask(connection)
        while asked is not None:
            wanted, future = asked
            self._asked_at = asked_at = time.monotonic()
            answer = await future
            self._asked_at = 0.0
            deliveries = list(self._take_apart(connection, wanted, answer))
            # Answers that follow each other this fast bring a record or two each: better a few more in one.
            hasty = bool(deliveries) and time.monotonic() - asked_at < PACE_S
            asked = None if hasty else self._ask(connection)
            self._fetching.deliver(deliveries)
            if hasty:
                await asyncio.sleep(asked_at + PACE_S - time.monotonic())
            if asked is None:
                asked = self._ask(connection)

    def _eligible(self) -> list[Partition]:
        return [p for p in self.partitions if p.phase is Phase.COPYING]

    def _ask(
        self, connection: Connection
    ) -> tuple[list[tuple[Partition, int, Leader, int]], asyncio.Future[Any]] | None:
        eligible = self._eligible()
        roomy = [p for p in eligible if self._fetching.has_room(p)]
        if not roomy:
            return None
        self._turn += 1
        begin = self._turn % len(roomy)  # the first partition of a fetch is never starved, so each is first in turn
        wanted = [(p, p.incarnation, self.partitions[p], p.fetch_from) for p in (*roomy[begin:], *roomy[:begin])]
        wait_ms = None if len(roomy) == len(eligible) else CROWDED_WAIT_MS
        plan = self._session.plan([((p.topic, p.number), leader, offset) for p, _, leader, offset in wanted])
        request = fetch_request(
            connection,
            plan.changed,
            self._fetching.settings,
            isolation=self._fetching.isolation,
            wait_ms=wait_ms,
            session=plan,
        )
        return wanted, connection.ask(request)

    def _take_apart(
        self, connection: Connection, wanted: Sequence[tuple[Partition, int, Leader, int]], answer: Any
    ) -> Iterator[Delivery]:
        if answer.error_code in SESSION_LOST:
            self._session.lost()
            return
        self._session.answered(int(answer.session_id))
        asked = {(p.topic, p.number): (p, incarnation) for p, incarnation, _, _ in wanted}
        plain = [((p.topic, p.number), leader, offset) for p, _, leader, offset in wanted]
        for fetched in read_answer(connection, plain, answer):
            partition, incarnation = asked[fetched.tp]
            if partition.incarnation != incarnation:
                continue
            batches: tuple[Batch, ...] = ()
            if fetched.records:
                try:
                    batches = tuple(scan(fetched.records))
                except ValueError:
                    fetched = replace(fetched, code=CORRUPT_MESSAGE)
                for batch in batches:
                    partition.fetch_from = max(partition.fetch_from, batch.last_offset + 1)
            yield Delivery(partition, incarnation, fetched, batches)

    def end_stuck(self, now: float) -> None:
        """Close the connection when its broker has been silent for too long; the fetch then fails like any lost one."""
        if self._asked_at and now - self._asked_at > PATIENCE_S and self._connection is not None:
            self._connection.close()


class Fetching:
    """All fetches of a slot. `on_fetched` gets each delivery in order, `on_delivered` is called behind the last one
    of an answer, `on_trouble` each partition whose fetch failed as a whole; such a partition is out of the fetch
    until it is attached again."""

    def __init__(
        self,
        cluster: Cluster,
        settings: FetchSettings,
        isolation: str,
        *,
        has_room: Callable[[Partition], bool],
        on_fetched: Callable[[Delivery], None],
        on_delivered: Callable[[], None],
        on_trouble: Callable[[Partition, str], None],
    ) -> None:
        self.cluster = cluster
        self.settings = settings
        self.isolation = isolation
        self.has_room = has_room
        self._on_fetched = on_fetched
        self._on_delivered = on_delivered
        self.on_trouble = on_trouble
        self._shards: dict[tuple[int, int], tuple[Shard, asyncio.Task[None]]] = {}
        self._of: dict[Partition, Shard] = {}

    def deliver(self, deliveries: Iterable[Delivery]) -> None:
        """Hand over what one answer brought."""
        for delivery in deliveries:
            self._on_fetched(delivery)
        self._on_delivered()

    def attach(self, partition: Partition) -> None:
        """Begin to fetch the partition from its present leader. Raises BrokerUnreachable when there is none."""
        leader = self.cluster.leader((partition.topic, partition.number))
        if leader is None:
            raise BrokerUnreachable(f"{partition.topic}-{partition.number} has no leader", self.cluster.alias)
        self.detach(partition)
        key = min(
            ((leader.broker, index) for index in range(SHARDS)),
            key=lambda k: len(self._shards[k][0].partitions) if k in self._shards else 0,
        )
        if key not in self._shards:
            shard = Shard(self, key[0], f"fetch-{key[1]}")
            self._shards[key] = (shard, asyncio.create_task(shard.run(), name=f"fetch from {key[0]}"))
        shard = self._shards[key][0]
        shard.partitions[partition] = leader
        self._of[partition] = shard
        shard.wake.set()

    def detach(self, partition: Partition) -> None:
        """Fetch the partition no more."""
        shard = self._of.pop(partition, None)
        if shard is not None:
            shard.partitions.pop(partition, None)

    def nudge(self, partition: Partition) -> None:
        """The partition may have room again."""
        shard = self._of.get(partition)
        if shard is not None:
            shard.wake.set()

    def end_stuck(self) -> None:
        now = time.monotonic()
        for shard, _ in self._shards.values():
            shard.end_stuck(now)

    def crashed(self) -> BaseException | None:
        """A mistake of ours that ended a shard; the slot ends with it rather than standing still."""
        for _, task in self._shards.values():
            if task.done() and not task.cancelled() and (exc := task.exception()) is not None:
                return exc
        return None

    async def close(self) -> None:
        """End all fetches."""
        tasks = [task for _, task in self._shards.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._shards.clear()
        self._of.clear()
