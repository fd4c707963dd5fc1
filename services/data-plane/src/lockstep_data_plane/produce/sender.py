"""Idempotent appends of ready batches: which request carries which batch, and what each answer means.

Each partition of the target keeps to one connection to its leader, so its batches arrive in order. A request
carries at most one batch of a partition.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

from lockstep_data_plane.core.append_sequence import FAR_S, FAR_WINDOW, WINDOW, InFlightBatch, window_size
from lockstep_data_plane.core.effects import Append
from lockstep_data_plane.core.events import ConnectionReady
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_kafka.messages.message_versions import EncodedRequest
from lockstep_kafka.messages.metadata_codec import PartitionLeader
from lockstep_kafka.messages.produce_codec import (
    NO_ERROR,
    PRODUCE_BY_TOPIC_ID,
    ProduceAnswer,
    produce_answer,
    produce_request,
)
from lockstep_kafka.messages.request_size import SMALL_BYTES, USUAL_BYTES, RequestSize
from lockstep_kafka.wire.cluster import ClusterClient
from lockstep_kafka.wire.connection import Connection
from lockstep_kafka.wire.connection_errors import BrokerUnreachable
from lockstep_kafka.wire.error_codes import BACK_PRESSURE
from lockstep_state.errors import RetriableError
from lockstep_state.offsets import TopicPartition

CONNECTIONS = 2
"""Connections to each target broker. A broker answers one request of a connection at a time, so two connections
overlap their waits.
"""

SHARED = 8
"""Partitions that one connection gets before the next is used. Their batches share requests: if batches are small, a
request costs more than the batches in it.
"""

AHEAD = 5
"""Unanswered requests of a connection to a near broker at most: a broker answers one of a connection at a time."""

BACK_PRESSURE_S = 1.0
"""Seconds for which nothing is sent on a connection after an answer that a limit is exceeded. A partition that makes
no progress waits longer each time.
"""


def requests_ahead(round_trip_s: float) -> int:
    """Return how many requests a producing connection may have unanswered.

    A request may carry a single batch, and a partition's next one waits until its window allows it. So a far broker
    gets one request for each batch of the window.
    """
    return FAR_WINDOW if round_trip_s >= FAR_S else AHEAD


class NoProduceAnswer(RetriableError, ConnectionError):
    """The connection ended before the answer, so it is unknown whether the batch was appended."""


NOT_MENTIONED = NoProduceAnswer("the broker's answer does not mention the batch")


class TargetPartition(NamedTuple):
    """A partition of the target that a partition of the source is appended to. Its appends are in order."""

    partition: PartitionState
    number: int

    @property
    def target_tp(self) -> TopicPartition:
        return self.partition.target_topic, self.number


Picked = tuple[TargetPartition, InFlightBatch, PartitionLeader]
"""A batch of a request, the partition of the target that it goes to, and the leader that it is sent to."""

AnsweredBatch = tuple[PartitionState, InFlightBatch, ProduceAnswer | NoProduceAnswer]
OnAnswers = Callable[[Sequence[AnsweredBatch]], None]
"""Called with the outcome of all batches of a request."""


@dataclass(slots=True, eq=False)
class _SentRequest:
    """A request of `size` bytes that has no answer yet."""

    picked: Sequence[Picked]
    size: int
    sent_at: float
    answer: asyncio.Future[Any] | None = None


class ProduceConnection:
    """One connection to a target broker and the partitions that use it."""

    def __init__(
        self, connection: Connection, timeout: timedelta, on_answers: OnAnswers, request_size: RequestSize
    ) -> None:
        self.connection = connection
        self._timeout = timeout
        self._on_answers = on_answers
        self._request_size = request_size
        self._opened_after = request_size.closings
        self._ready: dict[TargetPartition, PartitionLeader] = {}
        self._sent: deque[_SentRequest] = deque()
        self._under_way = 0
        self._duration_s = 0.0
        self._waking: asyncio.TimerHandle | None = None
        self._has_ended = False
        """True once the end of the connection was noted, or it was given up. The latter says nothing about request
        sizes.
        """

    def mark_ready(self, target_partition: TargetPartition, leader: PartitionLeader) -> None:
        """Note that a batch may be waiting for that partition of the target. `pump` sends it."""
        self._ready[target_partition] = leader

    def remove(self, target_partition: TargetPartition) -> None:
        """Remove a partition of the target, whose batches do not use this connection any more."""
        self._ready.pop(target_partition, None)

    def pump(self) -> None:
        """Send as long as batches wait, the connection has room, and the broker does not throttle."""
        ahead = requests_ahead(self.connection.round_trip_s)
        while self._ready and self.connection.unanswered < ahead:
            if (seconds := self.connection.throttled_for) > 0:
                if self._waking is None:
                    self._waking = asyncio.get_running_loop().call_later(seconds, self._wake)
                return
            picked, size = self._pick()
            if not picked:
                return
            request = _SentRequest(picked, size, time.monotonic())
            try:
                request.answer = self.connection.send(self._request(picked), partial(self._answered, request))
            except BrokerUnreachable as exc:
                self._lost(request, str(exc))
                continue
            self._sent.append(request)
            self._under_way += size
            request.answer.add_done_callback(self._ended)

    def _wake(self) -> None:
        self._waking = None
        self.pump()

    def _pick(self) -> tuple[list[Picked], int]:
        """Return the batches of the next request and their size in bytes."""
        picked: list[Picked] = []
        size, at_most, transactional_id = 0, self._window(), None
        for target_partition, leader in list(self._ready.items()):
            partition, number = target_partition
            if size >= USUAL_BYTES:
                break
            if picked and self._request_size.is_small and not partition.may_launch(number, at_most, SMALL_BYTES - size):
                if partition.may_launch(number, at_most):
                    break  # it begins the next request
                continue
            if picked and partition.transactional_id != transactional_id:
                break  # a request has one transactional id
            del self._ready[target_partition]
            for append in partition.step(ConnectionReady(number, at_most)):
                if not isinstance(append, Append):
                    continue
                if not picked:
                    transactional_id = partition.transactional_id
                picked.append((target_partition, append.batch, leader))
                size += len(append.batch.outgoing.data)
                if at_most > WINDOW:
                    at_most = self._window(size)
                if append.has_more:
                    self._ready[target_partition] = leader  # at the end: each partition has its turn
        return picked, size

    def _window(self, picked: int = 0) -> int:
        """Return the window for batches in flight, with `picked` bytes that are not sent yet."""
        return window_size(self.connection.round_trip_s, self._under_way + picked, self._duration_s)

    def _request(self, picked: Sequence[Picked]) -> EncodedRequest:
        return produce_request(
            self.connection.version("produce"),
            [(target_partition.target_tp, leader, sent.data) for target_partition, sent, leader in picked],
            self._timeout,
            picked[0][0].partition.transactional_id,
        )

    def _answered(self, request: _SentRequest, answer: Any) -> None:
        """Process an answer as soon as it is read, since a turn of the event loop costs as much as a batch."""
        self._remove_sent(request)
        self._request_size.answered(request.size)
        key: Any
        by_id = int(answer.__version__) >= PRODUCE_BY_TOPIC_ID
        by_topic: dict[Any, dict[int, Any]] = {}
        for topic in answer.responses:
            numbers = by_topic.setdefault(topic.topic_id if by_id else topic.name, {})
            for p in topic.partition_responses:
                numbers[int(p.index)] = p
        answered: list[AnsweredBatch] = []
        is_pressed = False
        key, numbers = self, {}
        for (partition, number), sent, leader in request.picked:
            called = leader.topic_id if by_id else partition.target_topic
            if called is not key:  # ids are slow keys, and neighbours have the same one
                key, numbers = called, by_topic.get(called, {})
            response = numbers.get(number)
            answered.append((partition, sent, NOT_MENTIONED if response is None else produce_answer(response)))
            if response is not None and response.error_code is not NO_ERROR and response.error_code in BACK_PRESSURE:
                is_pressed = True
        if is_pressed:
            self.connection.pause_requests(BACK_PRESSURE_S)
        self._on_answers(answered)
        at_most = self._window()
        for target_partition, _, leader in request.picked:
            partition, number = target_partition
            if partition.may_launch(number, at_most):
                self._ready[target_partition] = leader
        self.pump()
        if request.answer is not None:  # nothing is left to do, in a turn of its own
            request.answer.remove_done_callback(self._ended)

    def _ended(self, future: asyncio.Future[Any]) -> None:
        """Report the batches of a request whose connection ended before the answer.

        An exception from processing an answer that was read is raised.
        """
        request = next((sent for sent in self._sent if sent.answer is future), None)
        if request is None:
            future.result()
            return
        if self.connection.closed and not self._has_ended:
            self._has_ended = True
            self._request_size.closed(request.size, self._opened_after)
        self._remove_sent(request)
        self._lost(request, "cancelled" if future.cancelled() else str(future.exception()))
        if self.connection.closed:
            self.pump()  # what waits for its turn is lost too, and would wait here for ever

    def _remove_sent(self, request: _SentRequest) -> None:
        self._sent.remove(request)
        self._duration_s = time.monotonic() - request.sent_at
        self._under_way -= request.size

    def _lost(self, request: _SentRequest, cause: str) -> None:
        lost = NoProduceAnswer(cause)
        self._on_answers([(target_partition.partition, sent, lost) for target_partition, sent, _ in request.picked])

    def is_stuck(self, now: float, patience_s: float) -> bool:
        """Return whether the oldest unanswered request has waited too long.

        The caller gives the connection up then.
        """
        return bool(self._sent) and now - max(self._sent[0].sent_at, self.connection.resting_until) > patience_s

    def give_up(self) -> None:
        """Close the connection, since its broker does not answer."""
        self._has_ended = True
        self.connection.give_up()


def _is_usable(connection: Connection) -> bool:
    """Return whether a request may go out now.

    A connection that was silent for long is tested first, or opened again.
    """
    return not (connection.closed or connection.is_doubtful)


def connection_index(used: Sequence[int], *, alone: bool) -> int:
    """Return the connection to a broker that a partition gets.

    Args:
        used: The number of partitions of each connection.
        alone: The partition shares no request with others, only the waiting for answers.
    """
    for index, partitions in enumerate(used):
        if partitions < SHARED and not alone:
            return index
    return min(range(len(used)), key=used.__getitem__)


class Sender:
    """The produce connections to a target cluster."""

    def __init__(self, cluster: ClusterClient, on_answers: OnAnswers) -> None:
        self._cluster = cluster
        self._on_answers = on_answers
        self._produce_connections: dict[tuple[int, int], ProduceConnection] = {}
        self._attached: dict[TargetPartition, tuple[ProduceConnection, PartitionLeader]] = {}
        self._reopening: dict[TargetPartition, asyncio.Task[None]] = {}
        self._indexes: dict[PartitionState, dict[int, int]] = {}
        self._targets: dict[PartitionState, tuple[TargetPartition, ...]] = {}

    async def attach(self, partition: PartitionState, *, alone: bool = False) -> None:
        """Give each target partition of `partition` a connection to its present leader.

        Args:
            partition: The partition of the source.
            alone: Nothing else may be in its requests.

        Raises:
            BrokerUnreachable: A target partition has no leader, or the leader cannot be reached.
        """
        self._targets[partition] = tuple(TargetPartition(partition, number) for number in partition.routing.numbers)
        for target_partition in self._targets[partition]:
            await self._attach(target_partition, alone=alone)

    async def _attach(self, target_partition: TargetPartition, *, alone: bool) -> None:
        leader = self._cluster.require_leader(target_partition.target_tp)
        attached = self._attached.get(target_partition)
        index = self._index(target_partition.partition, leader.broker, alone=alone)
        if attached is not None and _is_usable(attached[0].connection) and attached[1] == leader:
            return
        key = (leader.broker, index)
        produce_connection = self._produce_connections.get(key)
        if produce_connection is None or not _is_usable(produce_connection.connection):
            connection = await self._cluster.connection(leader.broker, f"produce-{index}")
            produce_connection = self._produce_connections.get(key)  # another task may have opened it meanwhile
            if produce_connection is None or produce_connection.connection is not connection:
                produce_connection = self._produce_connections[key] = ProduceConnection(
                    connection, self._cluster.timeouts.replicas, self._on_answers, self._cluster.request_size
                )
        if attached is not None:
            attached[0].remove(target_partition)
        self._attached[target_partition] = (produce_connection, leader)

    def _index(self, partition: PartitionState, broker: int, *, alone: bool) -> int:
        """Return the connection of a partition on one broker, the same for all its appends.

        While a broker asks the coordinator whether a transaction has a partition (KIP-890), it refuses what another
        request brings for this partition.
        """
        indexes = self._indexes.setdefault(partition, {})
        if broker not in indexes:
            used = Counter(indexes_by_broker.get(broker) for indexes_by_broker in self._indexes.values())
            indexes[broker] = connection_index([used[index] for index in range(CONNECTIONS)], alone=alone)
        return indexes[broker]

    def detach(self, partition: PartitionState) -> None:
        """Remove a partition that leaves this slot or is about to go to other partitions of the target."""
        for target_partition in self._targets.pop(partition, ()):
            if (attached := self._attached.pop(target_partition, None)) is not None:
                attached[0].remove(target_partition)
        self._indexes.pop(partition, None)

    def mark_ready(self, partition: PartitionState) -> None:
        """Note that a batch was queued for the partition. `pump` sends it."""
        for target_partition in self._targets.get(partition, ()):
            attached = self._attached.get(target_partition)
            if attached is None:
                continue
            if _is_usable(attached[0].connection) or partition.routing.appends_to(target_partition.number).unanswered:
                attached[0].mark_ready(target_partition, attached[1])
            elif target_partition not in self._reopening:
                # Brokers close what is idle, firewalls forget it: no harm if nothing was on its way.
                self._reopening[target_partition] = asyncio.create_task(self._reopen(target_partition))

    async def _reopen(self, target_partition: TargetPartition) -> None:
        with suppress(BrokerUnreachable):  # sending on the closed connection says the same to those who decide
            await self._attach(target_partition, alone=target_partition.partition.transactional_id is not None)
        del self._reopening[target_partition]
        partition = target_partition.partition
        if partition not in self._targets:  # it left meanwhile
            self._attached.pop(target_partition, None)
            self._indexes.pop(partition, None)
        elif partition.sends and target_partition in self._attached:
            produce_connection, leader = self._attached[target_partition]
            produce_connection.mark_ready(target_partition, leader)
            produce_connection.pump()

    def pump(self) -> None:
        """Send now what can be sent. What is ready together goes together."""
        for produce_connection in list(self._produce_connections.values()):
            produce_connection.pump()

    def end_stuck(self) -> None:
        """Close connections whose broker has not answered in time. Their batches then count as unanswered."""
        now = time.monotonic()
        for produce_connection in self._produce_connections.values():
            if not produce_connection.connection.closed and produce_connection.is_stuck(
                now, self._cluster.timeouts.data_request_s
            ):
                produce_connection.give_up()
