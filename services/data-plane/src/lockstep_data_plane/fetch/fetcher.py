"""The fetches of raw batches from the source: how much, from which broker, and when.

Three objects decide. The `MemoryBudget` says how much may be in memory, the `FetchSizes` how much to ask of a
broker, and the `FetchSchedule` when to ask again. If a rack is set, a partition may be fetched from another replica
than its leader (`preferred_replica.py`).
"""

import asyncio
import time
from collections.abc import Iterable

from lockstep_config.flow.model import DataPlaneSettings
from lockstep_data_plane.core.events import Received
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.fetch.fetch_connection import FetchConnection
from lockstep_data_plane.fetch.fetch_request import FetchHandler, FetchResult
from lockstep_data_plane.fetch.fetch_schedule import TIGHT_WAIT_S, FetchSchedule
from lockstep_data_plane.fetch.fetch_sizes import FetchSizes
from lockstep_data_plane.fetch.memory_budget import FetchBudget, MemoryBudget
from lockstep_data_plane.fetch.preferred_replica import PreferredReplicas
from lockstep_kafka.common.asyncio_util import cancelled, set_within
from lockstep_kafka.messages.metadata_codec import PartitionLeader
from lockstep_kafka.wire.cluster import ClusterClient
from lockstep_kafka.wire.connection_errors import BrokerUnreachable


class Fetcher:
    """All fetches of a slot, over at most two connections to each broker. One instance belongs to one event loop."""

    def __init__(
        self,
        cluster: ClusterClient,
        plane: DataPlaneSettings,
        handler: FetchHandler,
    ) -> None:
        """Create the fetcher, which fetches nothing yet. `handler` gets what is fetched."""
        self.cluster = cluster
        self._settings = plane.fetch
        self._isolation = plane.isolation_level
        self.budget = MemoryBudget(plane.max_in_flight_bytes)
        self._sizes = FetchSizes(plane.fetch, self.budget)
        self.schedule = FetchSchedule(plane.fetch.max_wait_ms, plane.max_bytes_per_s)
        self._replicas = PreferredReplicas(plane.fetch.rack, plane.fetch.replica_lease_s)
        self._handler = handler
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

    def _move(self, partition: PartitionState, leader: PartitionLeader, to: FetchConnection) -> None:
        self.detach(partition)
        self._fetched_by[partition] = to
        to.put(partition, leader)

    def _connection_to(self, broker: int, index: int = 0) -> FetchConnection:
        found = self._connections.get((broker, index))
        if found is None:
            found = FetchConnection(broker, index, self.cluster, self._settings, self._isolation, self._on_result)
            self._connections[found.key] = found
            self._tasks.append(asyncio.create_task(self._fetch(found), name=f"fetch from {broker}"))
        return found

    def _share_partitions(self, fetch_connection: FetchConnection, now: float) -> None:
        """Give some partitions of a connection to the other one of its broker, between two requests."""
        broker, index = fetch_connection.key
        other = self._connections.get((broker, 1 - index))
        own, others = len(fetch_connection.partitions), len(other.partitions) if other else 0
        surplus = self._sizes.surplus(fetch_connection.key, own, others, now)
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
            self._replicas.named(partition.tp, broker, now)
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
                asked: asyncio.Future[object] | None = await self._ask_in_time(fetch_connection)
                while asked is not None:
                    asked = await self._next_after(asked, fetch_connection)
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

    async def _next_after(
        self, asked: asyncio.Future[object], fetch_connection: FetchConnection
    ) -> asyncio.Future[object] | None:
        """Ask again, and hand over what a large answer brought.

        The next request is sent as soon as a large answer is in. Only then are the batches judged, so the broker
        never waits for the slot. A small answer was handed over when it was read from the socket. Otherwise it would
        wait for the next request and a turn of the event loop, which take as long as the answer itself.

        Returns:
            The answer to come, or None if the next request has to wait.
        """
        asked_at = time.monotonic()
        await asked
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
                if limits is not None and (asked := self._ask(fetch_connection, limits)) is not None:
                    return asked
            topics = (p.topic for p in fetch_connection.partitions)
            await set_within(fetch_connection.wake, self.schedule.allowed_in_s(topics, now))

    def _ask(self, fetch_connection: FetchConnection, limits: FetchBudget) -> asyncio.Future[object] | None:
        """Ask for the partitions that have room, or return None if none has."""
        asked = fetch_connection.repeat(limits, lambda p: self._has_room(p, limits))
        if asked is None:
            self._end_replica_leases(fetch_connection)
            eligible = fetch_connection.eligible
            roomy = [p for p in eligible if self._has_room(p, limits)]
            if not roomy:
                return None
            asked = fetch_connection.ask(
                roomy,
                limits,
                wait_ms=self.schedule.wait_ms(leaves_out=len(roomy) < len(eligible)),
                rack=self._rack(roomy),
                # With a rack some may have to go back to their leaders meanwhile; a limit is shared with others.
                is_repeatable=not self._settings.rack and not self.schedule.rates.any,
            )
        self._reserve(fetch_connection, fetch_connection.asked_bytes)
        return asked

    def _limits(self, fetch_connection: FetchConnection) -> FetchBudget | None:
        return self._sizes.limits(
            fetch_connection.round_trip_s,
            connections=sum(1 for each in self._connections.values() if each.partitions),
            partitions=len(self._fetched_by),
        )

    def _has_room(self, partition: PartitionState, limits: FetchBudget) -> bool:
        """Return whether the partition may be asked for within these limits."""
        return (
            self.budget.held_by(partition) < limits.below
            and self._handler.may_fetch(partition)
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
