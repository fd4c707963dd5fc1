"""The fetches of raw batches from the source: how much, from which broker, and when.

A `FetchConnection` has the fetches of one connection to one broker: a request, its answer, and the next request. The
`Fetcher` has all of them, and decides which connection fetches a partition.

Four objects decide. The `MemoryBudget` says how much may be in memory, the `FetchSizes` how much to ask of a
broker, and the `FetchSchedule` when to ask again. The `FetchLimits` say up to which offset (`lockstep.delay`). If a
rack is set, a partition may be fetched from another replica than its leader (`preferred_replica.py`).
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol

from lockstep_config.flow.model import DataPlaneSettings, FetchSettings
from lockstep_data_plane.core.events import Received
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.provenance import NO_PROVENANCE
from lockstep_data_plane.fetch.fetch_limits import NO_LIMIT, FetchLimits
from lockstep_data_plane.fetch.fetch_schedule import SMALL_BYTES, TIGHT_WAIT_S, FetchSchedule
from lockstep_data_plane.fetch.fetch_sizes import FetchSizes
from lockstep_data_plane.fetch.memory_budget import FetchBudget, MemoryBudget
from lockstep_data_plane.fetch.preferred_replica import PreferredReplicas
from lockstep_data_plane.record_batch.layout import Batch, scan_groups, size_before
from lockstep_kafka.common.asyncio_util import cancelled, set_within
from lockstep_kafka.messages.fetch_codec import (
    NOBODY,
    UNKNOWN,
    FetchedPartition,
    fetch_request,
    read_error,
    read_response,
    read_session_id,
    topic_names,
)
from lockstep_kafka.messages.fetch_session import SESSION_LOST, FetchPosition, FetchSession, SessionRequest
from lockstep_kafka.messages.metadata_codec import PartitionLeader
from lockstep_kafka.wire.cluster import ClusterClient
from lockstep_kafka.wire.connection import Connection
from lockstep_kafka.wire.connection_errors import BrokerUnreachable
from lockstep_state.kafka.kafka_errors import KafkaErrorCode
from lockstep_state.offsets import TopicPartition


class Delivery(NamedTuple):
    """Batches of one partition, fetched for one incarnation of it."""

    partition: PartitionState
    incarnation: int
    fetched: FetchedPartition
    batches: tuple[Batch, ...]


class FetchHandler(Protocol):
    """The receiver of what is fetched (`slot/slot_loop.py`)."""

    def may_fetch(self, partition: PartitionState) -> bool:
        """Return whether the partition may be fetched now. Its memory is judged elsewhere."""

    def on_fetched(self, delivery: Delivery) -> None:
        """Take what was fetched of one partition. Deliveries of a partition come in order."""

    def on_delivered(self) -> None:
        """Note that all deliveries of an answer have come."""

    def on_fetch_lost(self, partition: PartitionState, reason: str) -> None:
        """Note that the partition's fetch failed as a whole. It is not fetched until it is attached again."""


class FetchResult(NamedTuple):
    """The size in bytes and the deliveries of an answer, and the partitions to read from another broker.

    `redirected` has the replica that the leader named. None there means that a replica cannot be read and the leader
    is asked. `cut` has the partitions of which more came than their limits let through, with these limits.
    """

    size: int = 0
    deliveries: Sequence[Delivery] = ()
    redirected: Sequence[tuple[PartitionState, int | None]] = ()
    cut: Sequence[tuple[PartitionState, int]] = ()

    @property
    def batches(self) -> int:
        """The number of batches."""
        return sum(batch.batches for delivery in self.deliveries for batch in delivery.batches)

    @property
    def is_small(self) -> bool:
        """Return whether the answer is small, so that it is delivered before the next request."""
        return self.size <= SMALL_BYTES


NOTHING = FetchResult()


@dataclass(slots=True)
class FetchRequest:
    """A request for at most `max_partition_bytes` bytes of each partition in its present incarnation.

    `moved` has the partitions of which batches have come since. If `is_repeatable`, the request has all partitions of
    its connection, and the next request differs only by those that moved.
    """

    partitions: dict[TopicPartition, tuple[PartitionState, int]]
    names: Mapping[Any, str]
    by_id: bool
    is_repeatable: bool
    max_partition_bytes: int
    moved: list[PartitionState] = field(default_factory=list)


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
        limits: FetchLimits,
        on_result: "Callable[[FetchConnection, FetchResult], None]",
    ) -> None:
        """Call `on_result` with the result of an answer as soon as it is read from the socket."""
        self.key = self.broker, self.index = broker, index
        self._cluster = cluster
        self._settings = settings
        self._isolation = isolation
        self._limits = limits
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
        self._requests = 0
        self._last_request: FetchRequest | None = None
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
        self._last_request = None
        self.wake.set()

    def remove(self, partition: PartitionState) -> None:
        """Remove the partition from the fetch."""
        del self.partitions[partition]
        self._last_request = None

    async def connect(self) -> None:
        """Connect if needed, and wait until the broker's throttle time is over.

        Raises:
            BrokerUnreachable: The broker cannot be reached.
        """
        if self._connection is None or self._connection.closed or self._connection.is_doubtful:
            self._connection = await self._cluster.connection(self.broker, f"fetch-{self.index}")
            self._last_request = None
            self._session.reset()
        await self._connection.wait_unthrottled()

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

    def repeat_request(
        self, limits: FetchBudget, has_room: Callable[[PartitionState], bool]
    ) -> asyncio.Future[Any] | None:
        """Send the last request again, from the present offsets of its partitions.

        A partition that has not moved is not named again, even if more of it may be in memory than before.

        Returns:
            The answer to come, or None if nothing was sent. A partition was added, removed or has no room, so a new
            request is needed.
        """
        request = self._last_request
        if (
            request is None
            or not request.is_repeatable
            or request.max_partition_bytes != limits.max_partition_bytes
            or not all(map(has_room, request.moved))
        ):
            return None
        plan = self._session.plan_moved([self._position(p) for p in request.moved])
        if plan is None:
            return None
        request.moved = []
        return self._send(request, plan, limits, self._settings.max_wait_ms, "")

    def send(
        self, roomy: Sequence[PartitionState], limits: FetchBudget, *, wait_ms: int, rack: str, is_repeatable: bool
    ) -> asyncio.Future[Any]:
        """Send a fetch request for the partitions `roomy`. The broker keeps it for at most `wait_ms`."""
        self._requests += 1
        begin = self._requests % len(roomy)  # the first partition of a fetch is never starved, so each is first in turn
        rotated = (*roomy[begin:], *roomy[:begin])
        positions = [self._position(p) for p in rotated]
        self._last_request = request = FetchRequest(
            partitions={p.tp: (p, p.incarnation) for p in rotated},
            names=topic_names(positions),
            by_id=all(leader.topic_id is not None for leader in self.partitions.values()),
            is_repeatable=is_repeatable and len(roomy) == len(self.partitions),
            max_partition_bytes=limits.max_partition_bytes,
        )
        return self._send(request, self._session.plan(positions, limits.max_partition_bytes), limits, wait_ms, rack)

    def _position(self, partition: PartitionState) -> FetchPosition:
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
        self.asked_bytes = min(limits.max_bytes, len(request.partitions) * limits.max_partition_bytes)
        encoded = fetch_request(
            self._connection.version("fetch"),
            plan.changed,
            self._settings,
            isolation=self._isolation,
            wait_ms=wait_ms,
            session=plan,
            rack=rack,
            partition_bytes=request.max_partition_bytes,
            max_bytes=self.asked_bytes,
            by_id=request.by_id,
        )
        answer = self._connection.send(encoded, partial(self._on_answer, request))
        self._asked_at, self._kept_s = time.monotonic(), wait_ms / 1e3
        return answer

    # -- the answer ----------------------------------------------------------------------------------------------------

    def _on_answer(self, request: FetchRequest, answer: Any) -> None:
        self._asked_at = 0.0
        self.result = self._parse_answer(request, answer)
        self._on_result(self, self.result)

    def _parse_answer(self, request: FetchRequest, answer: Any) -> FetchResult:
        if read_error(answer) in SESSION_LOST:
            self._session.reset()
            return NOTHING
        self._session.answered(read_session_id(answer))
        deliveries: list[Delivery] = []
        redirected: list[tuple[PartitionState, int | None]] = []
        cut: list[tuple[PartitionState, int]] = []
        # In a session an answer has only partitions with news: nothing here goes through all that was asked for.
        for fetched in read_response(request.partitions, answer, request.names):
            partition, incarnation = request.partitions[fetched.tp]
            if partition.incarnation != incarnation:
                continue
            if fetched.read_from not in (NOBODY, self.broker):
                redirected.append((partition, fetched.read_from))
                continue
            batches: tuple[Batch, ...] = ()
            if fetched.records and (limit := self._limits.find(partition)) < NO_LIMIT:
                size = size_before(fetched.records, limit)
                if size < len(fetched.records):
                    fetched = fetched._replace(records=fetched.records[:size])
                    cut.append((partition, limit))
                    self._last_request = None
            if fetched.records:
                try:
                    batches = tuple(scan_groups(fetched.records, any_producer=partition.provenance is NO_PROVENANCE))
                except ValueError:
                    fetched = fetched._replace(code=KafkaErrorCode.CORRUPT_MESSAGE)
            if fetched.code:
                self._last_request = None
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
        return FetchResult(size, deliveries, redirected, cut)

    def _reads_replica(self, partition: PartitionState) -> bool:
        leader = self.partitions.get(partition)
        return leader is not None and leader.broker != self.broker


class Fetcher:
    """All fetches of a slot, over at most two connections to each broker. One instance belongs to one event loop."""

    def __init__(
        self,
        cluster: ClusterClient,
        plane: DataPlaneSettings,
        handler: FetchHandler,
        limits: FetchLimits | None = None,
    ) -> None:
        """Create the fetcher, which fetches nothing yet.

        Args:
            cluster: The source.
            plane: The settings of the data plane.
            handler: It gets what is fetched.
            limits: The offsets up to which partitions are fetched; None: there are no limits.
        """
        self.cluster = cluster
        self._settings = plane.fetch
        self._isolation = plane.isolation_level
        self.budget = MemoryBudget(plane.max_in_flight_bytes)
        self._sizes = FetchSizes(plane.fetch, self.budget)
        self.schedule = FetchSchedule(plane.fetch.max_wait_ms, plane.max_bytes_per_s)
        self._replicas = PreferredReplicas(plane.fetch.rack, plane.fetch.replica_lease_s)
        self._handler = handler
        self.limits = limits or FetchLimits()
        self._connections: dict[tuple[int, int], FetchConnection] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._fetched_by: dict[PartitionState, FetchConnection] = {}
        self._undelivered: dict[PartitionState, int] = {}
        """The bytes of partitions that have come and are not handed over yet."""

    # -- which connection fetches a partition --------------------------------------------------------------------------

    def attach(self, partition: PartitionState) -> None:
        """Begin to fetch the partition from its present leader.

        Raises:
            BrokerUnreachable: The partition has no leader.
        """
        self._attach_to_leader(partition)
        self._replicas.reset(partition.tp)

    def detach(self, partition: PartitionState) -> None:
        """Stop fetching the partition."""
        fetch_connection = self._fetched_by.pop(partition, None)
        if fetch_connection is not None:
            fetch_connection.remove(partition)

    def _attach_to_leader(self, partition: PartitionState) -> None:
        leader = self.cluster.require_leader(partition.tp)
        self._move(partition, leader, self._connection_to(leader.broker))

    def _move(self, partition: PartitionState, leader: PartitionLeader, destination: FetchConnection) -> None:
        self.detach(partition)
        self._fetched_by[partition] = destination
        destination.put(partition, leader)

    def _connection_to(self, broker: int, index: int = 0) -> FetchConnection:
        fetch_connection = self._connections.get((broker, index))
        if fetch_connection is None:
            fetch_connection = FetchConnection(
                broker, index, self.cluster, self._settings, self._isolation, self.limits, self._on_result
            )
            self._connections[fetch_connection.key] = fetch_connection
            self._tasks.append(asyncio.create_task(self._fetch(fetch_connection), name=f"fetch from {broker}"))
        return fetch_connection

    def _share_partitions(self, fetch_connection: FetchConnection, now: float) -> None:
        """Give some partitions of a connection to the other one of its broker, between two requests."""
        broker, index = fetch_connection.key
        sibling = self._connections.get((broker, 1 - index))
        own, siblings = len(fetch_connection.partitions), len(sibling.partitions) if sibling else 0
        surplus = self._sizes.count_to_give(fetch_connection.key, own, siblings, now)
        for partition, leader in list(fetch_connection.partitions.items())[:surplus]:
            self._move(partition, leader, self._connection_to(broker, 1 - index))

    # -- other replicas than the leader --------------------------------------------------------------------------------

    def _rack(self, partitions: Iterable[PartitionState]) -> str:
        """Return the rack that a fetch of these partitions names.

        A partition that counts past records of the target is read from its leader. It takes the source's end from the
        answer, and a follower's end may lag.
        """
        if not self._settings.rack or any(p.records_to_skip for p in partitions):
            return ""
        return self._replicas.rack((p.tp for p in partitions), time.monotonic())

    def _redirect(self, partition: PartitionState, broker: int | None) -> None:
        """Fetch the partition from the broker that its leader named.

        If `broker` is None, the replica cannot be read, so the leader is asked.
        """
        leader, now = self.cluster.leader(partition.tp), time.monotonic()
        if broker is None:
            self._replicas.on_failure(partition.tp, now)
            self._send_to_leader(partition)
        elif leader is not None and partition in self._fetched_by:
            self._replicas.set_preferred(partition.tp, broker, now)
            self._move(partition, leader, self._connection_to(broker))

    def _end_replica_leases(self, fetch_connection: FetchConnection) -> None:
        """Send partitions back to their leaders that were read long enough from another replica."""
        if not self._settings.rack:
            return
        now, broker = time.monotonic(), fetch_connection.broker
        for partition, leader in list(fetch_connection.partitions.items()):
            if leader.broker != broker and self._replicas.replica_for(partition.tp, now) != broker:
                self._send_to_leader(partition)

    def _send_to_leader(self, partition: PartitionState) -> None:
        try:
            self._attach_to_leader(partition)
        except BrokerUnreachable as exc:
            self._handler.on_fetch_lost(partition, f"cluster {self.cluster.alias}: {exc}")

    # -- one connection ------------------------------------------------------------------------------------------------

    async def _fetch(self, fetch_connection: FetchConnection) -> None:
        """Fetch and deliver in a loop. A lost connection or leader is reported for each partition concerned."""
        while True:
            try:
                response: asyncio.Future[object] | None = await self._ask_in_time(fetch_connection)
                while response is not None:
                    response = await self._request_next(response, fetch_connection)
            except BrokerUnreachable as exc:
                lost = list(fetch_connection.partitions.items())
                fetch_connection.end()
                self._reserve(fetch_connection, 0)
                for partition, leader in lost:
                    self.detach(partition)
                    if leader.broker == fetch_connection.broker:
                        self._handler.on_fetch_lost(partition, f"cluster {self.cluster.alias}: {exc}")
                    else:
                        self._redirect(partition, None)

    async def _request_next(
        self, response: asyncio.Future[object], fetch_connection: FetchConnection
    ) -> asyncio.Future[object] | None:
        """Ask again, and hand over what a large answer brought.

        The next request is sent as soon as a large answer is in. Only then are the batches judged, so the broker
        never waits for the slot. A small answer was handed over when it was read from the socket. Otherwise it would
        wait for the next request and a turn of the event loop, which take as long as the answer itself.

        Returns:
            The answer to come, or None if the next request has to wait.
        """
        asked_at = time.monotonic()
        await response
        now, result = time.monotonic(), fetch_connection.result
        self._sizes.on_fetched(fetch_connection.key, result.size, now)
        pause_s = self.schedule.pause_s(fetch_connection.key, result.batches, result.size, asked_at, now)
        self._share_partitions(fetch_connection, now)
        if result.is_small and pause_s:
            await asyncio.sleep(pause_s)
            return None
        try:
            limits = self._limits(fetch_connection) if fetch_connection.may_ask else None
            return None if limits is None or limits.is_tight else self._ask(fetch_connection, limits)
        finally:
            if not result.is_small:
                self._deliver(result)

    async def _ask_in_time(self, fetch_connection: FetchConnection) -> asyncio.Future[object]:
        """Ask as soon as there are partitions with room and the broker does not throttle.

        If most of the memory is taken, it waits up to `TIGHT_WAIT_S` for more before it asks.
        """
        while True:
            fetch_connection.wake.clear()
            now = time.monotonic()
            if fetch_connection.partitions:
                await fetch_connection.connect()
                limits = self._limits(fetch_connection)
                if limits is not None and limits.is_tight:
                    fetch_connection.more_room.clear()
                    await set_within(fetch_connection.more_room, TIGHT_WAIT_S)
                    limits = self._limits(fetch_connection)
                now = time.monotonic()
                if limits is not None and (response := self._ask(fetch_connection, limits)) is not None:
                    return response
            topics = (p.topic for p in fetch_connection.partitions)
            await set_within(fetch_connection.wake, self.schedule.allowed_in_s(topics, now))

    def _ask(self, fetch_connection: FetchConnection, limits: FetchBudget) -> asyncio.Future[object] | None:
        """Ask for the partitions that have room, or return None if none has."""
        response = fetch_connection.repeat_request(limits, lambda p: self._has_room(p, limits))
        if response is None:
            self._end_replica_leases(fetch_connection)
            eligible = [p for p in fetch_connection.eligible if self.limits.allows(p)]
            roomy = [p for p in eligible if self._has_room(p, limits)]
            if not roomy:
                return None
            response = fetch_connection.send(
                roomy,
                limits,
                wait_ms=self.schedule.wait_ms(leaves_out=len(roomy) < len(eligible)),
                rack=self._rack(roomy),
                # With a rack some may have to go back to their leaders meanwhile; a limit is shared with others.
                is_repeatable=not self._settings.rack and not self.schedule.rates.any,
            )
        self._reserve(fetch_connection, fetch_connection.asked_bytes)
        return response

    def _limits(self, fetch_connection: FetchConnection) -> FetchBudget | None:
        return self._sizes.limits(
            fetch_connection.round_trip_s,
            connections=sum(1 for connection in self._connections.values() if connection.partitions),
            partitions=len(self._fetched_by),
        )

    def _has_room(self, partition: PartitionState, limits: FetchBudget) -> bool:
        """Return whether the partition may be asked for within these limits."""
        return (
            self.budget.held_by(partition) < limits.below
            and self._handler.may_fetch(partition)
            and self.limits.allows(partition)
            and self.schedule.allows(partition.topic, time.monotonic())
        )

    def _on_result(self, fetch_connection: FetchConnection, result: FetchResult) -> None:
        for partition, broker in result.redirected:
            self._redirect(partition, broker)
        is_small, rates = result.is_small, self.schedule.rates
        for delivery in result.deliveries:
            size = len(delivery.fetched.records)
            if rates.any:
                rates.on_fetched(delivery.partition.topic, size, time.monotonic())
            if delivery.batches:
                last = delivery.batches[-1]
                delivery.partition.step(Received(last.last_offset + 1, last.leader_epoch))
            if not is_small:
                self._undelivered[delivery.partition] = size
                self.set_held(delivery.partition, self.budget.held_by(delivery.partition))  # and these bytes
        for partition, limit in result.cut:
            self.limits.on_cut(partition, limit)
        if is_small:
            self._deliver(result)
        self._reserve(fetch_connection, 0)

    def _deliver(self, result: FetchResult) -> None:
        for delivery in result.deliveries:
            if size := self._undelivered.pop(delivery.partition, 0):
                self.set_held(delivery.partition, self.budget.held_by(delivery.partition) - size)
            self._handler.on_fetched(delivery)
        self._handler.on_delivered()

    # -- memory --------------------------------------------------------------------------------------------------------

    def set_held(self, partition: PartitionState, size: int) -> None:
        """Note how many delivered bytes the partition holds. Connections that may have room again are woken."""
        roomier = self.budget.set_held(partition, size + self._undelivered.get(partition, 0))
        if roomier:
            self.wake()
        fetch_connection = self._fetched_by.get(partition)
        if fetch_connection is not None and self.budget.may_take(partition, len(self._fetched_by)):
            fetch_connection.wake.set()

    def _reserve(self, fetch_connection: FetchConnection, size: int) -> None:
        """Note how many bytes may come on the connection."""
        if self.budget.reserve(fetch_connection, size):
            self.wake()

    def wake(self) -> None:
        """Let every connection check whether it may ask for more now."""
        for fetch_connection in self._connections.values():
            fetch_connection.wake.set()
            fetch_connection.more_room.set()

    # -- to be called every now and then, and at the end ---------------------------------------------------------------

    def end_stuck(self) -> None:
        """Close connections whose broker has not answered in time."""
        for fetch_connection in self._connections.values():
            fetch_connection.end_stuck(time.monotonic())

    def crashed(self) -> BaseException | None:
        """Return the programming error that ended a connection's task, or None.

        The slot ends with it, so that no partition stalls.
        """
        done = (task for task in self._tasks if task.done() and not task.cancelled())
        return next((exc for task in done if (exc := task.exception()) is not None), None)

    async def close(self) -> None:
        """End all fetches."""
        await cancelled(self._tasks)
        self._connections.clear()
        self._fetched_by.clear()
