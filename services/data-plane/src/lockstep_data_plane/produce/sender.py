"""Idempotent producing of ready batches: which request carries which flight, and what each answer means.

Each partition of the target keeps to one lane (a connection to its leader), so its flights arrive in order. A request
carries at most one batch of a partition."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

from lockstep_data_plane.common.window_sizing import requests_ahead, window
from lockstep_data_plane.core.append_sequence import InFlightBatch
from lockstep_data_plane.core.mirror_partition import MirrorPartition
from lockstep_data_plane.core.phases import Phase
from lockstep_data_plane.core.target_partition import TargetPartition
from lockstep_data_plane.wire.cluster import Cluster, PartitionLeader
from lockstep_data_plane.wire.connection import BrokerUnreachable, Connection
from lockstep_data_plane.wire.frame_protocol import EncodedRequest
from lockstep_data_plane.wire.produce_codec import PRODUCE_BY_TOPIC_ID, ProduceAnswer, produce_answer, produce_request
from lockstep_protocol.errors import RetriableError

__all__ = ["NoProduceAnswer", "ProduceConnection", "Sender", "connection_index"]

LANES = 2
"""Connections to each target broker: the broker answers one request of a connection at a time, so their waits
overlap."""

SHARED = 8
"""Partitions that one of them gets before the next is used: their batches share requests, and where batches are small
a request costs more than what is in it."""

REQUEST_BYTES = 8 * 1024 * 1024
"""Where a request stops growing; well below a broker's `socket.request.max.bytes` (100 MiB)."""


class NoProduceAnswer(RetriableError, ConnectionError):
    """The connection ended before the answer: nobody knows whether the batch was appended."""


OnAnswer = Callable[[MirrorPartition, InFlightBatch, ProduceAnswer | NoProduceAnswer], None]


class ProduceConnection:
    """One connection to a target broker and the partitions that use it."""

    def __init__(self, connection: Connection, timeout: timedelta, on_answer: OnAnswer) -> None:
        self.connection = connection
        self._timeout = timeout
        self._on_answer = on_answer
        self._by_id = connection.version("produce") >= PRODUCE_BY_TOPIC_ID
        self._ready: dict[TargetPartition, PartitionLeader] = {}
        self._sent: deque[tuple[float, int]] = deque()
        self._under_way = 0
        self._took_s = 0.0
        self._waking: asyncio.TimerHandle | None = None

    def ready(self, outlet: TargetPartition, leader: PartitionLeader) -> None:
        """Something may be waiting for that partition of the target; `pump` sends it."""
        self._ready[outlet] = leader

    def remove(self, outlet: TargetPartition) -> None:
        """What goes there uses this lane no more."""
        self._ready.pop(outlet, None)

    def pump(self) -> None:
        """Send as long as there is something to send, the lane has room, and the broker wants us to."""
        ahead = requests_ahead(self.connection.round_trip_s)
        while self._ready and self.connection.unanswered < ahead:
            if (seconds := self.connection.throttled_for) > 0:
                if self._waking is None:
                    self._waking = asyncio.get_running_loop().call_later(seconds, self._wake)
                return
            picked = self._pick()
            if not picked:
                return
            try:
                future = self.connection.ask(self._request(picked))
            except BrokerUnreachable as exc:
                lost = NoProduceAnswer(str(exc))
                for outlet, flight, _ in picked:
                    self._on_answer(outlet.partition, flight, lost)
                continue
            size = sum(len(flight.data) for _, flight, _ in picked)
            self._sent.append((time.monotonic(), size))
            self._under_way += size
            future.add_done_callback(partial(self._answered, picked))

    def _wake(self) -> None:
        self._waking = None
        self.pump()

    def _pick(self) -> list[tuple[TargetPartition, InFlightBatch, PartitionLeader]]:
        picked: list[tuple[TargetPartition, InFlightBatch, PartitionLeader]] = []
        size = 0
        for outlet, leader in list(self._ready.items()):
            partition = outlet.partition
            if size >= REQUEST_BYTES:
                break
            if picked and partition.transactions is not picked[0][0].partition.transactions:
                break  # a request bears one transactional id
            del self._ready[outlet]
            if partition.phase not in (Phase.COPYING, Phase.DRAINING) or not outlet.may_launch(self._window(size)):
                continue
            flight = outlet.launch()
            picked.append((outlet, flight, leader))
            size += len(flight.data)
            if outlet.may_launch(self._window(size)):
                self._ready[outlet] = leader  # at the end: each partition has its turn
        return picked

    def _window(self, picked: int = 0) -> int:
        """With so many bytes picked that are not on their way yet."""
        return window(self.connection.round_trip_s, self._under_way + picked, self._took_s)

    def _request(self, picked: Sequence[tuple[TargetPartition, InFlightBatch, PartitionLeader]]) -> EncodedRequest:
        transactions = picked[0][0].partition.transactions
        return produce_request(
            self.connection.version("produce"),
            [(outlet.target_tp, leader, flight.data) for outlet, flight, leader in picked],
            self._timeout,
            transactions.transactional_id if transactions is not None else None,
        )

    def _answered(
        self, picked: Sequence[tuple[TargetPartition, InFlightBatch, PartitionLeader]], future: asyncio.Future[Any]
    ) -> None:
        sent_at, size = self._sent.popleft()
        self._took_s = time.monotonic() - sent_at
        self._under_way -= size
        if future.cancelled() or future.exception() is not None:
            cause = "cancelled" if future.cancelled() else str(future.exception())
            for outlet, flight, _ in picked:
                self._on_answer(outlet.partition, flight, NoProduceAnswer(cause))
            return
        answers: dict[tuple[Any, int], Any] = {}
        for topic in future.result().responses:
            key = topic.topic_id if self._by_id else topic.name
            for p in topic.partition_responses:
                answers[key, int(p.index)] = p
        for outlet, flight, leader in picked:
            topic, number = outlet.target_tp
            found = answers.get((leader.topic_id if self._by_id else topic, number))
            said = (
                NoProduceAnswer("the broker's answer does not mention the batch")
                if found is None
                else produce_answer(found)
            )
            self._on_answer(outlet.partition, flight, said)
            if outlet.may_launch(self._window()):
                self._ready[outlet] = leader
        self.pump()

    def stuck(self, now: float, patience_s: float) -> bool:
        """Whether the oldest unanswered request has waited too long; the caller closes the connection then."""
        return bool(self._sent) and now - max(self._sent[0][0], self.connection.resting_until) > patience_s


def connection_index(taken: Sequence[int], *, alone: bool) -> int:
    """Which of the connections to a broker a partition takes, where so many partitions have taken each; `alone`: it
    shares no request with others, only the waiting for answers."""
    for index, partitions in enumerate(taken):
        if partitions < SHARED and not alone:
            return index
    return min(range(len(taken)), key=taken.__getitem__)


class Sender:
    """The lanes to a target cluster."""

    def __init__(self, cluster: Cluster, on_answer: OnAnswer) -> None:
        self._cluster = cluster
        self._on_answer = on_answer
        self._lanes: dict[tuple[int, int], ProduceConnection] = {}
        self._of: dict[TargetPartition, tuple[ProduceConnection, PartitionLeader]] = {}
        self._reopening: dict[TargetPartition, asyncio.Task[None]] = {}
        self._indexes: dict[MirrorPartition, dict[int, int]] = {}

    async def attach(self, partition: MirrorPartition, *, alone: bool = False) -> None:
        """Give each of its outlets a lane to the present leader there; `alone`: nothing else may be in its requests.
        Raises BrokerUnreachable where there is none."""
        for outlet in partition.outlets:
            await self._attach(outlet, alone=alone)

    async def _attach(self, outlet: TargetPartition, *, alone: bool) -> None:
        leader = self._cluster.leader_of(outlet.target_tp)
        known = self._of.get(outlet)
        index = self._index(outlet.partition, leader.broker, alone=alone)
        if known is not None and not known[0].connection.closed and known[1] == leader:
            return
        key = (leader.broker, index)
        lane = self._lanes.get(key)
        if lane is None or lane.connection.closed:
            connection = await self._cluster.connection(leader.broker, f"produce-{index}")
            lane = self._lanes.get(key)  # somebody else may have opened it meanwhile
            if lane is None or lane.connection is not connection:
                lane = self._lanes[key] = ProduceConnection(
                    connection, self._cluster.patience.replicas, self._on_answer
                )
        if known is not None:
            known[0].remove(outlet)
        self._of[outlet] = (lane, leader)

    def _index(self, partition: MirrorPartition, broker: int, *, alone: bool) -> int:
        """All that a partition appends on one broker takes the same lane: a broker that still asks the coordinator
        whether a transaction has a partition (KIP-890) refuses what another request brings for it meanwhile."""
        places = self._indexes.setdefault(partition, {})
        if broker not in places:
            taken = Counter(others.get(broker) for others in self._indexes.values())
            places[broker] = connection_index([taken[index] for index in range(LANES)], alone=alone)
        return places[broker]

    def detach(self, partition: MirrorPartition) -> None:
        """The partition leaves this slot, or its outlets are about to be others."""
        for outlet in partition.outlets:
            self._detach(outlet)
        self._indexes.pop(partition, None)

    def _detach(self, outlet: TargetPartition) -> None:
        known = self._of.pop(outlet, None)
        if known is not None:
            known[0].remove(outlet)

    def ready(self, partition: MirrorPartition) -> None:
        """Something was queued for the partition; `pump` sends it."""
        for outlet in partition.outlets:
            attached = self._of.get(outlet)
            if attached is None:
                continue
            if not attached[0].connection.closed or outlet.unanswered:
                attached[0].ready(outlet, attached[1])
            elif outlet not in self._reopening:  # brokers close what is idle: no harm where nothing was on its way
                self._reopening[outlet] = asyncio.create_task(self._reopen(outlet))

    async def _reopen(self, outlet: TargetPartition) -> None:
        with suppress(BrokerUnreachable):  # sending on the closed connection says the same to those who decide
            await self._attach(outlet, alone=outlet.partition.transactions is not None)
        del self._reopening[outlet]
        if outlet.partition.phase not in (Phase.COPYING, Phase.DRAINING):
            self.detach(outlet.partition)  # it left meanwhile
        elif outlet in self._of:
            lane, leader = self._of[outlet]
            lane.ready(outlet, leader)
            lane.pump()

    def pump(self) -> None:
        """Send what can be sent, now; what is ready together goes together."""
        for lane in list(self._lanes.values()):
            lane.pump()

    def end_stuck(self) -> None:
        """Close lanes whose broker has not answered in time. Their flights then count as unanswered."""
        now = time.monotonic()
        for lane in self._lanes.values():
            if not lane.connection.closed and lane.stuck(now, self._cluster.patience.request_s):
                lane.connection.close()
