"""Fetching raw batches from the source: several fetches under way, each on a connection of its own
(`fetch_connection.py`).

A shard holds the partitions that one broker leads and one connection fetches. Where a rack is set a partition may be
fetched from another replica than its leader (`preferred_replica.py`)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from lockstep_config.flow.model import FetchSettings
from lockstep_data_plane.common.window_sizing import partition_bytes
from lockstep_data_plane.core.machine import PartitionMachine
from lockstep_data_plane.fetch.fetch_connection import FetchConnection
from lockstep_data_plane.fetch.fetch_request import Delivery
from lockstep_data_plane.fetch.memory_budget import FetchBudget, MemoryBudget
from lockstep_data_plane.fetch.preferred_replica import PreferredReplicas
from lockstep_data_plane.wire.cluster import ClusterClient, PartitionLeader
from lockstep_data_plane.wire.connection import BrokerUnreachable, Connection
from lockstep_runtime.util.asyncio_util import cancelled

SHARDS = 2
"""Connections that fetch from one broker for one slot: while the answer of one is taken apart the other is being
filled."""


class Fetcher:
    """All fetches of a slot. `on_fetched` gets each delivery in order. `on_delivered` is called behind the last one of
    an answer. `on_trouble` gets each partition whose fetch failed as a whole. Such a partition is out of the fetch
    until it is attached again."""

    def __init__(
        self,
        cluster: ClusterClient,
        settings: FetchSettings,
        isolation: str,
        *,
        in_flight: MemoryBudget,
        has_room: Callable[[PartitionMachine], bool],
        on_fetched: Callable[[Delivery], None],
        on_delivered: Callable[[], None],
        on_trouble: Callable[[PartitionMachine, str], None],
        limited: bool = False,
    ) -> None:
        """`in_flight` decides by bytes how much is asked for, and of which partitions; `has_room` is any other such
        decision. `limited`: that decision may change by what others fetch."""
        self.cluster = cluster
        self.settings = settings
        self._in_flight = in_flight
        self._replicas = PreferredReplicas(settings.rack, settings.replica_lease_s)
        self.isolation = isolation
        self.has_room = has_room
        # With a rack some may have to go back to their leaders meanwhile.
        self.questions_last = not limited and not settings.rack
        self._on_fetched = on_fetched
        self._on_delivered = on_delivered
        self.on_trouble = on_trouble
        self._fetch_connections: dict[tuple[int, int], tuple[FetchConnection, asyncio.Task[None]]] = {}
        self._connections: dict[PartitionMachine, FetchConnection] = {}

    def deliver(self, deliveries: Iterable[Delivery]) -> None:
        """Hand over what one answer brought."""
        for delivery in deliveries:
            self._on_fetched(delivery)
        self._on_delivered()

    def attach(self, partition: PartitionMachine) -> None:
        """Begin to fetch the partition from its present leader. Raises BrokerUnreachable when there is none."""
        self._place_at_leader(partition)
        self._replicas.reset(partition.tp)

    def _place_at_leader(self, partition: PartitionMachine) -> None:
        leader = self.cluster.require_leader(partition.tp)
        self._place(partition, leader, leader.broker)

    def _place(self, partition: PartitionMachine, leader: PartitionLeader, broker: int) -> None:
        self.detach(partition)
        key = min(
            ((broker, index) for index in range(SHARDS)),
            key=lambda k: len(self._fetch_connections[k][0].partitions) if k in self._fetch_connections else 0,
        )
        if key not in self._fetch_connections:
            fetch_connection = FetchConnection(self, *key)
            self._fetch_connections[key] = (
                fetch_connection,
                asyncio.create_task(fetch_connection.run(), name=f"fetch from {key[0]}"),
            )
        self._put(partition, leader, self._fetch_connections[key][0])

    def _put(self, partition: PartitionMachine, leader: PartitionLeader, fetch_connection: FetchConnection) -> None:
        fetch_connection.partitions[partition] = leader
        self._connections[partition] = fetch_connection
        self._stir()
        fetch_connection.wake.set()

    def share_out(self, fetch_connection: FetchConnection, now: float) -> None:
        """Between two requests of a connection. One connection fetches single records that swarm into all connections
        of a broker, and what a quiet partition may bring. Where one connection has much to bring, all have as many
        partitions each.

        A swarming partition is asked for anew within milliseconds, and a connection without partitions begins at once.
        Only a partition that moves to a connection with silent partitions waits for the end of its request.
        """
        quiet, lasts, much = (
            fetch_connection.pacer.quiet(now),
            fetch_connection.pacer.lasts(now),
            fetch_connection.pacer.much,
        )
        if not (quiet or lasts or much):
            return
        others = [
            s
            for (broker, _), (s, _) in self._fetch_connections.items()
            if broker == fetch_connection.broker and s is not fetch_connection
        ]
        for other in others:
            surplus, first = 0, other.index < fetch_connection.index
            joins_swarm = lasts and first and other.pacer.lasts(now)
            busier = first or not other.pacer.quiet(now)
            joins_quietly = quiet and busier and bool(other.partitions) and not other.pacer.much
            if joins_swarm or joins_quietly:
                surplus = len(fetch_connection.partitions)
            elif much:
                surplus = max(0, len(fetch_connection.partitions) - len(other.partitions)) // 2
            for partition, leader in list(fetch_connection.partitions.items())[:surplus]:
                self.detach(partition)
                self._put(partition, leader, other)

    def detach(self, partition: PartitionMachine) -> None:
        """Fetch the partition no more."""
        fetch_connection = self._connections.pop(partition, None)
        if fetch_connection is not None:
            fetch_connection.partitions.pop(partition, None)
            self._stir()

    def _stir(self) -> None:
        for fetch_connection, _ in self._fetch_connections.values():
            fetch_connection.stirred()

    # -- other replicas than the leader --------------------------------------------------------------------------------

    def rack(self, partitions: Iterable[PartitionMachine]) -> str:
        """A fetch of these partitions as the present position requires. A partition that skips records of the target is
        read from its leader. It takes the source's end from the answer, and a follower's may lag."""
        if not self.settings.rack:
            return ""
        partitions = list(partitions)
        if any(p.records_to_skip for p in partitions):
            return ""
        return self._replicas.rack((p.tp for p in partitions), time.monotonic())

    def read_from(self, partition: PartitionMachine, broker: int) -> None:
        """The partition's leader would rather have us read from this broker."""
        tp = partition.tp
        leader = self.cluster.leader(tp)
        if leader is not None and partition in self._connections:
            self._replicas.named(tp, broker, time.monotonic())
            self._place(partition, leader, broker)

    def replica_failed(self, partition: PartitionMachine) -> None:
        """The replica cannot be read: its leader will say what is so."""
        self._replicas.on_failure(partition.tp, time.monotonic())
        self._to_leader(partition)

    def send_back(self, fetch_connection: FetchConnection, partitions: Iterable[PartitionMachine]) -> None:
        """Let those that a shard has read long enough from another replica ask their leaders again."""
        if not self.settings.rack:
            return
        now = time.monotonic()
        for partition in list(partitions):
            tp = partition.tp
            if (
                fetch_connection.partitions[partition].broker != fetch_connection.broker
                and self._replicas.replica_for(tp, now) != fetch_connection.broker
            ):
                self._to_leader(partition)

    def _to_leader(self, partition: PartitionMachine) -> None:
        try:
            self._place_at_leader(partition)
        except BrokerUnreachable as exc:
            self.on_trouble(partition, f"cluster {self.cluster.alias}: {exc}")

    # -- how much, and when --------------------------------------------------------------------------------------------

    def partition_bytes(self, connection: Connection) -> int:
        """How much to ask of one partition on this connection."""
        configured = self.settings.max_partition_bytes
        if not self.settings.grows:
            return configured
        return partition_bytes(configured, connection.round_trip_s, len(self._connections), self._in_flight.cap)

    def terms(self, connection: Connection | None) -> FetchBudget | None:
        """What may be asked for now on this connection, or on one of which nothing is known yet."""
        return self._in_flight.terms(
            connections=sum(
                1 for fetch_connection, _ in self._fetch_connections.values() if fetch_connection.partitions
            ),
            partitions=len(self._connections),
            each=self.settings.max_partition_bytes if connection is None else self.partition_bytes(connection),
            at_most=self.settings.max_bytes,
        )

    def may_bring(self, partition: PartitionMachine, terms: FetchBudget) -> bool:
        """Whether the partition may be asked for on these terms."""
        return self._in_flight.held_by(partition) < terms.below and self.has_room(partition)

    def expects(self, fetch_connection: FetchConnection, size: int) -> None:
        """So many bytes may come on the shard's connection, or have come and are not its partitions' yet."""
        if self._in_flight.expects(fetch_connection, size):
            self.wake_all()

    def holds(self, partition: PartitionMachine, size: int) -> None:
        """The partition holds so many bytes now."""
        if self._in_flight.holds(partition, size):
            self.wake_all()

    def wake_all(self) -> None:
        """There is room for more of everybody."""
        for fetch_connection, _ in self._fetch_connections.values():
            fetch_connection.wake.set()
            fetch_connection.roomier.set()

    def nudge(self, partition: PartitionMachine) -> None:
        """The partition may have room again."""
        fetch_connection = self._connections.get(partition)
        if fetch_connection is not None:
            fetch_connection.wake.set()

    def end_stuck(self) -> None:
        now = time.monotonic()
        for fetch_connection, _ in self._fetch_connections.values():
            fetch_connection.end_stuck(now)

    def crashed(self) -> BaseException | None:
        """A mistake of ours that ended a shard; the slot ends with it rather than standing still."""
        for _, task in self._fetch_connections.values():
            if task.done() and not task.cancelled() and (exc := task.exception()) is not None:
                return exc
        return None

    async def close(self) -> None:
        """End all fetches."""
        await cancelled(task for _, task in self._fetch_connections.values())
        self._fetch_connections.clear()
        self._connections.clear()
