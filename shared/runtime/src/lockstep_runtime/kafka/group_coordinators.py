"""The committed offsets of groups, as their coordinators know them. They are asked with aiokafka's connections.

librdkafka's AdminClient ends the process if a coordinator refuses the question, as it does while groups move between
brokers (librdkafka issue 5040; docs/internals/kafka-wire.md §7).
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from aiokafka.conn import collect_hosts
from aiokafka.errors import KafkaError as LibraryError
from aiokafka.protocol.commit import OffsetFetchRequest
from aiokafka.protocol.coordination import FindCoordinatorRequest
from confluent_kafka import KafkaError, KafkaException

from lockstep_config.clients.token_source import TokenUnavailable
from lockstep_protocol.offsets import TopicPartition
from lockstep_runtime.kafka.admin_types import GroupOffset
from lockstep_runtime.kafka.aiokafka_client import client_arguments
from lockstep_runtime.kafka.sasl_session import SessionConnection, open_session

Address = tuple[str, int]

GROUP = 0
"""The kind of key in FindCoordinator."""

NO_ANSWER = (LibraryError, OSError, EOFError, TimeoutError, TokenUnavailable)


class GroupCoordinators:
    """Finds the coordinator of each group and asks it. `properties` are a client's Java properties.

    All questions that overlap share one connection to each broker. It is closed behind the last of them, so that
    nothing is left open and renewed credentials count. Safe for concurrent use within one event loop."""

    def __init__(self, properties: Mapping[str, str], client_id: str, attempt_s: float) -> None:
        self._properties = properties
        self._client_id = client_id
        self._attempt_s = attempt_s
        self._asking = 0
        self._addresses: dict[str, Address] = {}
        self._connections: dict[Address, asyncio.Task[SessionConnection]] = {}

    async def fetch_offsets(self, group: str) -> dict[TopicPartition, GroupOffset]:
        """What the group has committed, in one attempt. Empty for an unknown group. Raises KafkaException, with
        _TIMED_OUT if no coordinator answered."""
        self._asking += 1
        try:
            async with asyncio.timeout(self._attempt_s):
                answer = await self._ask(group)
        except NO_ANSWER as exc:
            self._forget(group)
            why = str(exc) or f"no answer of the coordinator of {group}"
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, why)) from exc
        finally:
            self._asking -= 1
            if not self._asking:
                self._close(*self._connections)
        if answer.error_code:
            self._addresses.pop(group, None)
            raise KafkaException(KafkaError(answer.error_code))
        return {
            (topic, partition): GroupOffset(offset, metadata or "")
            for topic, partitions in answer.topics
            for partition, offset, metadata, code in partitions
            if not code and offset >= 0
        }

    async def _ask(self, group: str) -> Any:
        if group not in self._addresses:
            self._addresses[group] = await self._find(group)
        connection = await self._connection(self._addresses[group])
        return await connection.send(OffsetFetchRequest(group, None))

    async def _find(self, group: str) -> Address:
        failed: Exception = OSError("no address of a broker")
        for address in self._brokers():
            try:
                answer = await (await self._connection(address)).send(FindCoordinatorRequest(group, GROUP))
            except NO_ANSWER as exc:
                failed = exc
                self._close(address)
                continue
            except asyncio.CancelledError:  # also at the end of the attempt: it does not answer
                self._close(address)
                raise
            if answer.error_code:
                raise KafkaException(KafkaError(answer.error_code))
            return answer.host, answer.port
        raise failed

    def _brokers(self) -> Iterable[Address]:
        """Those with a connection, then those that the properties name."""
        named = [(host, port) for host, port, _ in collect_hosts(self._properties["bootstrap.servers"])]
        return dict.fromkeys([*self._connections, *named])

    async def _connection(self, address: Address) -> SessionConnection:
        if address not in self._connections:
            self._connections[address] = asyncio.create_task(self._open(address))
        opening = self._connections[address]
        try:
            return await asyncio.shield(opening)
        except NO_ANSWER:
            if self._connections.get(address) is opening:
                del self._connections[address]
            raise

    async def _open(self, address: Address) -> SessionConnection:
        # It reads stores, and derives their keys.
        settings = await asyncio.to_thread(client_arguments, self._properties, self._client_id, self._attempt_s)
        del settings["bootstrap_servers"]
        return await open_session(*address, **settings)

    def _forget(self, group: str) -> None:
        """The next attempt finds the coordinator anew, over another connection."""
        if (address := self._addresses.pop(group, None)) is not None:
            self._close(address)

    def _close(self, *addresses: Address) -> None:
        for address in addresses:
            if (opening := self._connections.pop(address, None)) is None:
                continue
            if opening.done():
                _close_opened(opening)
            else:  # others may wait for it: cancelled, it would cancel them
                opening.add_done_callback(_close_opened)


def _close_opened(opening: asyncio.Task[SessionConnection]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
