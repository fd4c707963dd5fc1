"""Committed offsets of groups, fetched from their coordinators and committed there.

librdkafka's AdminClient ends the process if a coordinator refuses OffsetFetch, as it does while groups move between
brokers (librdkafka issue 5040; docs/internals/kafka-wire.md §7). It also cuts the metadata of commits at the first null
character, which some clients commit.
"""

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from lockstep_config.flow.client_settings import wire_connection
from lockstep_kafka.common.admin_types import GroupOffset
from lockstep_kafka.common.closed_requests import ClosedRequests
from lockstep_kafka.messages.coordinator_codec import GROUP_KEY, coordinator_request, read_coordinator
from lockstep_kafka.messages.message_versions import load_message
from lockstep_kafka.wire.cluster import bootstrap_addresses
from lockstep_kafka.wire.connection import Connection
from lockstep_kafka.wire.connection_errors import ConnectionClosedError, ProtocolUnfitError
from lockstep_kafka.wire.paused_opening import open_with_pause
from lockstep_state.offsets import TopicPartition

Address = tuple[str, int]

NO_GENERATION = -1
"""The generation in a commit from outside of the group."""

COORDINATOR_MOVES = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}

NO_ANSWER = (OSError, TimeoutError)

KEPT_S = 3600.0
"""Seconds for which the coordinator of a group is remembered at least, and twice as long at most.

Each request about the group starts this time again.
"""


class GroupCoordinators:
    """The coordinators of groups, with the requests to them.

    All requests that overlap share one connection to each broker. It is closed behind the last of them, so that no
    connection stays open and renewed credentials count. It is safe for concurrent use within one event loop.

    Args:
        properties: A client's Java properties.
        client_id: The client id for the brokers.
        attempt_s: Seconds that one attempt may take.
        clock: A monotonic clock.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        client_id: str,
        attempt_s: float,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._properties = properties
        self._client_id = client_id
        self._attempt_s = attempt_s
        self._asking = 0
        self._clock = clock
        self._addresses: dict[str, Address] = {}
        """Coordinators of groups that were asked about since `_turned_at`.

        Coordinators of other groups, from the time before, are in `_former`.
        """
        self._former: dict[str, Address] = {}
        self._turned_at = clock()
        self._silent: set[Address] = set()
        """Brokers that did not answer their last FindCoordinator."""
        self._connections: dict[Address, asyncio.Task[Connection]] = {}
        self._closes = ClosedRequests()

    async def fetch_offsets(self, group: str) -> dict[TopicPartition, GroupOffset]:
        """Return the offsets that the group has committed, in one attempt.

        The result is empty for an unknown group.

        Raises:
            KafkaException: The code is the coordinator's, _TIMED_OUT if no coordinator answered, or _ALL_BROKERS_DOWN
                if no broker did.
        """
        answer = await self._ask(
            group,
            "offset_fetch",
            lambda m: m.OffsetFetchRequest(group_id=group, topics=None),
        )
        if answer.error_code:
            raise self._refusal(group, int(answer.error_code))
        return {
            (str(topic.name), int(partition.partition_index)): GroupOffset(
                int(partition.committed_offset), partition.metadata or ""
            )
            for topic in answer.topics
            for partition in topic.partitions
            if not partition.error_code and partition.committed_offset >= 0
        }

    async def commit_offsets(
        self, group: str, offsets: Mapping[TopicPartition, GroupOffset]
    ) -> dict[TopicPartition, KafkaError]:
        """Commit offsets for a group without members, in one attempt.

        It is idempotent.

        Returns:
            The partitions that the coordinator refused, with its errors.

        Raises:
            KafkaException: As for `fetch_offsets`, and if the group has another coordinator.
        """
        by_topic: dict[str, list[tuple[int, GroupOffset]]] = {}
        for (topic, partition), committed in offsets.items():
            by_topic.setdefault(topic, []).append((partition, committed))

        def request(m: Any) -> Any:
            topics = tuple(
                m.OffsetCommitRequestTopic(
                    name=topic,
                    partitions=tuple(
                        m.OffsetCommitRequestPartition(
                            partition_index=number,
                            committed_offset=committed.offset,
                            committed_metadata=committed.metadata,
                        )
                        for number, committed in partitions
                    ),
                )
                for topic, partitions in by_topic.items()
            )
            return m.OffsetCommitRequest(  # with the retention that brokers have set
                group_id=group,
                generation_id_or_member_epoch=NO_GENERATION,
                member_id="",
                topics=topics,
            )

        answer = await self._ask(group, "offset_commit", request)
        codes = {
            (str(topic.name), int(partition.partition_index)): int(partition.error_code)
            for topic in answer.topics
            for partition in topic.partitions
            if partition.error_code
        }
        if moved := COORDINATOR_MOVES.intersection(codes.values()):
            raise self._refusal(group, min(moved))
        return {tp: KafkaError(code) for tp, code in codes.items()}

    def _refusal(self, group: str, code: int) -> KafkaException:
        if code in COORDINATOR_MOVES:
            self._pop_address(group)
        return KafkaException(KafkaError(code))

    async def _ask(self, group: str, api: str, request: Callable[[Any], Any]) -> Any:
        """Return the coordinator's answer to a request.

        Args:
            group: The group.
            api: The name of the request in `kafka_apis.APIS`.
            request: A function that makes the request with kio's module of the version.

        Raises:
            KafkaException: As for `fetch_offsets`, and with UNSUPPORTED_VERSION if brokers do not know the request, or
                close the connection at it again and again.
        """
        self._asking += 1
        began = inf
        try:
            async with asyncio.timeout(self._attempt_s):
                if (address := self._known_address(group)) is None:
                    address = self._addresses[group] = await self._find(group)
                connection = await self._connection(address)
                began = self._clock()
                answer = await connection.send(request(load_message(api, connection.version(api), "request")))
            self._closes.note_answer(api)
            return answer
        except ProtocolUnfitError as exc:
            raise KafkaException(KafkaError(KafkaError.UNSUPPORTED_VERSION)) from exc
        except NO_ANSWER as exc:
            self._forget(group)
            # Without a cause another group's request ended the connection.
            is_closed = isinstance(exc, ConnectionClosedError) and began != inf and exc.__cause__ is not None
            if is_closed and self._closes.closes_again(api, began, self._clock()):
                raise KafkaException(KafkaError(KafkaError.UNSUPPORTED_VERSION)) from exc
            reason = str(exc) or f"no answer of the coordinator of {group}"
            down = self._silent.issuperset(self._brokers())
            code = KafkaError._ALL_BROKERS_DOWN if down else KafkaError._TIMED_OUT
            raise KafkaException(KafkaError(code, reason)) from exc
        finally:
            self._asking -= 1
            if not self._asking:
                self._close(*self._connections)

    def _known_address(self, group: str) -> Address | None:
        now = self._clock()
        if now - self._turned_at >= KEPT_S:
            self._former, self._addresses, self._turned_at = self._addresses, {}, now
        if (address := self._pop_address(group)) is not None:
            self._addresses[group] = address
        return address

    def _pop_address(self, group: str) -> Address | None:
        former = self._former.pop(group, None)
        return self._addresses.pop(group, former)

    async def _find(self, group: str) -> Address:
        failed: Exception = OSError("no address of a broker")
        # A silent broker may take the whole attempt, so the next attempt begins with another one.
        for address in sorted(self._brokers(), key=self._silent.__contains__):
            try:
                connection = await self._connection(address)
                request = coordinator_request(connection.version("find_coordinator"), group, GROUP_KEY)
                answer = read_coordinator(await connection.send(request))
            except ProtocolUnfitError:
                raise
            except NO_ANSWER as exc:
                failed = exc
                self._mark_silent(address)
                continue
            except asyncio.CancelledError:  # also raised at the end of the attempt: the broker is silent
                self._mark_silent(address)
                raise
            self._silent.discard(address)
            if answer.error_code:
                raise KafkaException(KafkaError(int(answer.error_code)))
            return str(answer.host), int(answer.port)
        raise failed

    def _mark_silent(self, address: Address) -> None:
        self._silent.add(address)
        self._close(address)

    def _brokers(self) -> Iterable[Address]:
        """Return the brokers with a connection, then the bootstrap servers."""
        named = bootstrap_addresses(self._properties)
        random.shuffle(named)
        return dict.fromkeys([*self._connections, *named])

    async def _connection(self, address: Address) -> Connection:
        """Return the shared connection to a broker.

        A caller that gets an error, or no answer over it, closes it.
        """
        if address not in self._connections:
            self._connections[address] = asyncio.create_task(self._open(address))
        return await asyncio.shield(self._connections[address])

    async def _open(self, address: Address) -> Connection:
        # Reading key stores, and deriving their keys, takes long.
        settings = await asyncio.to_thread(wire_connection, self._properties, self._client_id, self._attempt_s)
        return await open_with_pause(*address, settings)

    def _forget(self, group: str) -> None:
        """Make the next attempt find the coordinator again, over another connection."""
        if (address := self._pop_address(group)) is not None:
            self._close(address)

    def _close(self, *addresses: Address) -> None:
        for address in addresses:
            if (opening := self._connections.pop(address, None)) is None:
                continue
            if opening.done():
                _close_opened(opening)
            else:  # no cancel: other tasks may wait for it
                opening.add_done_callback(_close_opened)


def _close_opened(opening: asyncio.Task[Connection]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
