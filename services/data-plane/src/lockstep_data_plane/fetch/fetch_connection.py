"""The fetches of one connection to one broker: a request, its answer, and the next request."""

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from lockstep_config.flow.model import FetchSettings
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.provenance import NO_PROVENANCE
from lockstep_data_plane.fetch.fetch_request import NOTHING, Delivery, FetchRequest, FetchResult
from lockstep_data_plane.fetch.memory_budget import FetchBudget
from lockstep_data_plane.record_batch.coalesce import scan_groups
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_kafka.messages.fetch_codec import (
    NOBODY,
    UNKNOWN,
    fetch_request,
    read_answer,
    read_error,
    read_session_id,
    topic_names,
)
from lockstep_kafka.messages.fetch_session import SESSION_LOST, FetchSession, SessionRequest, Wanted
from lockstep_kafka.messages.metadata_codec import PartitionLeader
from lockstep_kafka.wire.cluster import ClusterClient
from lockstep_kafka.wire.connection import Connection
from lockstep_kafka.wire.connection_errors import BrokerUnreachable
from lockstep_state.kafka.kafka_errors import KafkaErrorCode


class FetchConnection:
    """A connection to one broker and the partitions that are fetched over it.

    The broker leads these partitions, or is a replica that their leader named. One request is out at a time.
    """

    def __init__(
        self,
        broker: int,
        index: int,
        cluster: ClusterClient,
        settings: FetchSettings,
        isolation: str,
        on_result: "Callable[[FetchConnection, FetchResult], None]",
    ) -> None:
        """Call `on_result` with the result of an answer as soon as it is read from the socket."""
        self.key = self.broker, self.index = broker, index
        self._cluster = cluster
        self._settings = settings
        self._isolation = isolation
        self._on_result = on_result
        self.partitions: dict[PartitionState, PartitionLeader] = {}
        self.wake = asyncio.Event()
        """Set when a partition was added or may have room again."""
        self.more_room = asyncio.Event()
        """Set when the usual amount of memory is free again after there was less."""
        self.result = NOTHING
        """The result of the last answer."""
        self.asked_bytes = 0
        """The most bytes that the answer to the last request may bring."""
        self._asked_at = 0.0
        """When the request in flight was sent; 0 if there is none."""
        self._kept_s = 0.0
        """Seconds for which the broker may keep the request in flight."""
        self._connection: Connection | None = None
        self._session = FetchSession()
        self._turn = 0
        self._last: FetchRequest | None = None
        """The last request, if no partition was added or removed since and none had an error. It can then be sent
        again. To go through thousands of partitions for each answer would be most of the cost.
        """

    @property
    def round_trip_s(self) -> float:
        """The round-trip time in seconds; 0 if it is not known yet."""
        return 0.0 if self._connection is None else self._connection.round_trip_s

    @property
    def may_ask(self) -> bool:
        """Return whether there is an open connection that the broker does not throttle."""
        connection = self._connection
        return connection is not None and not connection.closed and not connection.throttled_for

    @property
    def eligible(self) -> list[PartitionState]:
        """The partitions whose phase lets them be fetched."""
        return [p for p in self.partitions if p.reads]

    def put(self, partition: PartitionState, leader: PartitionLeader) -> None:
        """Add the partition to the fetch, from the next request on."""
        self.partitions[partition] = leader
        self._last = None
        self.wake.set()

    def remove(self, partition: PartitionState) -> None:
        """Remove the partition from the fetch."""
        del self.partitions[partition]
        self._last = None

    async def connect(self) -> None:
        """Connect if needed, and wait until the broker's throttle time is over.

        Raises:
            BrokerUnreachable: The broker cannot be reached.
        """
        if self._connection is None or self._connection.closed or self._connection.is_doubtful:
            self._connection = await self._cluster.connection(self.broker, f"fetch-{self.index}")
            self._last = None
            self._session.lost()
        await self._connection.throttle_over()

    def end(self) -> None:
        """Forget the connection that was lost, and the answer with it."""
        self._connection, self._asked_at = None, 0.0

    def end_stuck(self, now: float) -> None:
        """Close the connection if its broker has been silent for too long.

        The fetch then fails as after any lost connection.
        """
        if self._connection is not None and self._cluster.timeouts.ends_fetch(self._asked_at, now, self._kept_s):
            self._connection.give_up()

    # -- the request ---------------------------------------------------------------------------------------------------

    def repeat(self, limits: FetchBudget, has_room: Callable[[PartitionState], bool]) -> asyncio.Future[Any] | None:
        """Send the last request again, from the present offsets of its partitions.

        A partition that has not moved is not named again, even if more of it may be in memory than before.

        Returns:
            The answer to come, or None if nothing was sent. A partition was added, removed or has no room, so a new
                request
            is needed.
        """
        last = self._last
        if last is None or not last.is_repeatable or last.each != limits.each or not all(map(has_room, last.moved)):
            return None
        plan = self._session.onward([self._wanted(p) for p in last.moved])
        if plan is None:
            return None
        last.moved = []
        return self._send(last, plan, limits, self._settings.max_wait_ms, "")

    def ask(
        self, roomy: Sequence[PartitionState], limits: FetchBudget, *, wait_ms: int, rack: str, is_repeatable: bool
    ) -> asyncio.Future[Any]:
        """Send a fetch request for the partitions `roomy`. The broker keeps it for at most `wait_ms`."""
        self._turn += 1
        begin = self._turn % len(roomy)  # the first partition of a fetch is never starved, so each is first in turn
        asked = (*roomy[begin:], *roomy[:begin])
        wanted = [self._wanted(p) for p in asked]
        self._last = request = FetchRequest(
            asked={p.tp: (p, p.incarnation) for p in asked},
            names=topic_names(wanted),
            by_id=all(leader.topic_id is not None for leader in self.partitions.values()),
            is_repeatable=is_repeatable and len(roomy) == len(self.partitions),
            each=limits.each,
        )
        return self._send(request, self._session.plan(wanted, limits.each), limits, wait_ms, rack)

    def _wanted(self, partition: PartitionState) -> Wanted:
        leader, before = self.partitions[partition], partition.fetched_epoch
        if before == leader.epoch and leader.broker == self.broker:
            # It appended that record itself, and keeps it as long as it leads (`kafka-wire.md` §2).
            before = UNKNOWN
        return partition.tp, leader, partition.fetch_from, before

    def _send(
        self, request: FetchRequest, plan: SessionRequest, limits: FetchBudget, wait_ms: int, rack: str
    ) -> asyncio.Future[Any]:
        if self._connection is None:
            raise BrokerUnreachable(f"broker {self.broker} is not connected")
        self.asked_bytes = min(limits.at_most, len(request.asked) * limits.each)
        encoded = fetch_request(
            self._connection.version("fetch"),
            plan.changed,
            self._settings,
            isolation=self._isolation,
            wait_ms=wait_ms,
            session=plan,
            rack=rack,
            partition_bytes=request.each,
            max_bytes=self.asked_bytes,
            by_id=request.by_id,
        )
        answer = self._connection.ask(encoded, partial(self._on_answer, request))
        self._asked_at, self._kept_s = time.monotonic(), wait_ms / 1e3
        return answer

    # -- the answer ----------------------------------------------------------------------------------------------------

    def _on_answer(self, request: FetchRequest, answer: Any) -> None:
        self._asked_at = 0.0
        self.result = self._parse_answer(request, answer)
        self._on_result(self, self.result)

    def _parse_answer(self, request: FetchRequest, answer: Any) -> FetchResult:
        if read_error(answer) in SESSION_LOST:
            self._session.lost()
            return NOTHING
        self._session.answered(read_session_id(answer))
        deliveries: list[Delivery] = []
        redirected: list[tuple[PartitionState, int | None]] = []
        # In a session an answer has only partitions with news: nothing here goes through all that was asked for.
        for fetched in read_answer(request.asked, answer, request.names):
            partition, incarnation = request.asked[fetched.tp]
            if partition.incarnation != incarnation:
                continue
            if fetched.read_from not in (NOBODY, self.broker):
                redirected.append((partition, fetched.read_from))
                continue
            batches: tuple[Batch, ...] = ()
            if fetched.records:
                try:
                    batches = tuple(scan_groups(fetched.records, any_producer=partition.provenance is NO_PROVENANCE))
                except ValueError:
                    fetched = fetched._replace(code=KafkaErrorCode.CORRUPT_MESSAGE)
            if fetched.code:
                self._last = None
            # A replica that knows a later leader has not failed: the partition resumes, and finds where its copy is.
            if fetched.code not in (KafkaErrorCode.NONE, KafkaErrorCode.FENCED_LEADER_EPOCH) and self._reads_replica(
                partition
            ):
                redirected.append((partition, None))
                continue
            if batches:
                request.moved.append(partition)
            deliveries.append(Delivery(partition, incarnation, fetched, batches))
        size = sum(len(delivery.fetched.records) for delivery in deliveries)
        return FetchResult(size, deliveries, redirected)

    def _reads_replica(self, partition: PartitionState) -> bool:
        leader = self.partitions.get(partition)
        return leader is not None and leader.broker != self.broker
