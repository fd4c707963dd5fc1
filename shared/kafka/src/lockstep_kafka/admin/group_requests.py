"""Admin requests about consumer groups, and offset commits for them."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Future
from functools import cached_property, partial
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from lockstep_kafka.admin.operation_requests import OperationRequests, said_operations
from lockstep_kafka.common.admin_types import GroupDescription, GroupOffset, Outcome
from lockstep_kafka.common.asyncio_util import retrieve_error
from lockstep_kafka.common.backoff import Backoff
from lockstep_kafka.groups.group_coordinators import COORDINATOR_MOVES, GroupCoordinators
from lockstep_state.offsets import TopicPartition

T = TypeVar("T")

GROUPS_AT_ONCE = 16
"""Default limit of requests about single groups in flight. Each group has a request of its own.

`bound_groups` changes it.
"""

COORDINATOR_ANSWERS_S = 5.0
"""Longest duration of one attempt to reach a group's coordinator, in seconds.

librdkafka asks three times, within half a second, which broker coordinates a group. If none does yet, it asks no more
and the request waits. On a new cluster none does: brokers create `__consumer_offsets` at the first FindCoordinator.
Java's clients ask until their own timeout.
"""

LIBRARY_TIMEOUT_S = 3600.0
"""librdkafka's own timeout of an attempt, which must not pass.

librdkafka frees a request that has timed out while it waits for a coordinator. When a broker comes back, librdkafka
uses the freed request all the same, and aborts the process (docs/internals/kafka-wire.md §7). So an attempt is given
up with its client, which ends all requests that wait in it.
"""

NO_COORDINATOR_YET = {
    KafkaError._TIMED_OUT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._WAIT_COORD,
    *COORDINATOR_MOVES,
}

DESCRIBES = "describe"
FETCHES_OFFSETS = "list offsets of"
COMMITS = "alter offsets of"
"""Operations on a group, each of which waits for the coordinator on its own."""

Ask = Callable[[AdminClient], Mapping[str, Future[Any]]]
"""A function that sends an idempotent request about a group, and returns futures by group."""


class GroupRequests(OperationRequests):
    _coordinating: AdminClient | None = None
    """A client for requests to coordinators only.

    It can be closed at once, because each wait for its answers has a limit.
    """

    @cached_property
    def _groups(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(GROUPS_AT_ONCE)

    @cached_property
    def _without_coordinator(self) -> set[tuple[str, str]]:
        """The groups and requests that had no coordinator for the whole timeout, and have had no answer since.

        A broker may answer one request about a group, and say of another one that it is not the coordinator.
        """
        return set()

    @property
    def _attempt_s(self) -> float:
        return min(self._timeout, COORDINATOR_ANSWERS_S)

    @cached_property
    def _coordinators(self) -> GroupCoordinators:
        return GroupCoordinators(self.properties, str(self._conf.get("client.id", "")), self._attempt_s)

    async def renew(self, conf: Mapping[str, Any], properties: Mapping[str, str]) -> None:
        await super().renew(conf, properties)
        self.__dict__.pop("_coordinators", None)
        if self._coordinating is not None:
            await self._end_client(self._coordinating)

    async def _coordinating_client(self) -> AdminClient:
        async with self._making:
            if self._coordinating is None:
                self._coordinating = await self._make_client()
            return self._coordinating

    async def _end_client(self, client: AdminClient) -> None:
        """Close a client with all requests that wait in it, unless another attempt has closed it."""
        if client is self._coordinating:
            self._coordinating = None
            await asyncio.to_thread(client.__exit__, None, None, None)  # closing waits for the client's threads

    def _poll(self) -> None:
        super()._poll()
        if self._coordinating is not None:
            self._coordinating.poll(0)

    async def _ask_coordinator(self, group: str, ask: Ask) -> Any:
        """Return the answer of the group's coordinator to a request of librdkafka.

        Raises:
            KafkaException: The coordinator refused the request, or did not answer within one attempt.
        """
        client = await self._coordinating_client()
        answer = asyncio.wrap_future(ask(client)[group])
        answer.add_done_callback(retrieve_error)  # the task that waits may be cancelled, and the answer comes later
        await asyncio.wait([answer], timeout=self._attempt_s)
        if answer.done():
            return answer.result()
        await self._end_client(client)
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no answer of the coordinator of {group}"))

    async def _until_answered(self, group: str, operation: str, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return the result of the attempt, which is repeated while the group has no coordinator.

        It is repeated until the timeout of all requests. While no broker answers at all, it is repeated for as long
        as a listing may take. If a group had no coordinator for so long, this request about it gets one attempt from
        then on, because rounds over all groups wait for each of them.

        Raises:
            KafkaException: The last attempt failed, or the error is not about a missing coordinator.
        """
        began, backoff = time.monotonic(), Backoff(0.1, 1.0)
        while True:
            try:
                result = await attempt()
            except KafkaException as exc:
                wait, code = backoff.next(), exc.args[0].code()
                limit_s = self._quick if code == KafkaError._ALL_BROKERS_DOWN else self._timeout
                if (group, operation) in self._without_coordinator:
                    limit_s = 0.0
                if code not in NO_COORDINATOR_YET or time.monotonic() + wait >= began + limit_s:
                    if code in COORDINATOR_MOVES:
                        self._without_coordinator.add((group, operation))
                    raise
            else:
                self._without_coordinator.discard((group, operation))
                return result
            await asyncio.sleep(wait)

    async def _request_description(self, name: str, *, operations: bool = False) -> Outcome[Any]:
        """Return librdkafka's description of a group, with our operations there if `operations` is true."""
        return await self._again_if_closed(partial(self._describe_once, operations=operations), name)

    async def _describe_once(self, name: str, *, operations: bool) -> Outcome[Any]:
        def describe(client: AdminClient) -> Mapping[str, Future[Any]]:
            return client.describe_consumer_groups(
                [name], include_authorized_operations=operations, request_timeout=LIBRARY_TIMEOUT_S
            )

        answer = asyncio.ensure_future(
            self._until_answered(name, DESCRIBES, lambda: self._ask_coordinator(name, describe))
        )
        return await self._collect({name: answer}, DESCRIBES, lambda name: f"group {name}", str)

    def bound_groups(self, at_once: int) -> None:
        """Set the limit of requests about single groups in flight."""
        self._groups = asyncio.Semaphore(at_once)

    async def list_groups(self) -> dict[str, str]:
        """Return the groups of every coordinator that answered, each with its type.

        The type is Kafka's word in upper case (CLASSIC, CONSUMER), or "" from older brokers.

        Raises:
            ClusterUnreachable: No coordinator answered.
        """
        result = await self._again_if_closed(self._list_groups, "groups")
        return {g.group_id: "" if getattr(g, "type", None) is None else g.type.name for g in result.valid}

    async def _list_groups(self, resource: str) -> Any:
        began = time.monotonic()
        request = (await self._connected()).list_consumer_groups(request_timeout=self._quick)
        result = await self._answer(request, "list", resource)
        if not result.valid and result.errors:
            # Against the library's documentation this is a KafkaError, and not the exception around it.
            raise await self._trouble(result.errors[0], "list", resource, began)
        return result

    async def describe_groups(self, groups: Iterable[str]) -> Outcome[GroupDescription]:
        """Return state and members of each group.

        One that does not exist is DEAD without members.
        """
        merged: Outcome[GroupDescription] = Outcome()
        for outcome in await asyncio.gather(*(self._describe_group(name) for name in sorted(set(groups)))):
            merged.merge(outcome)
        return merged

    async def _describe_group(self, name: str) -> Outcome[GroupDescription]:
        async with self._groups:
            outcome = await self._request_description(name)
        done = {
            name: GroupDescription(
                name,
                "" if d.state is None else d.state.name,
                len(d.members),
                tuple(sorted(f"{m.client_id} at {m.host.removeprefix('/')}" for m in d.members)),
            )
            for name, d in outcome.done.items()
        }
        absent = {
            n: GroupDescription(n, "DEAD", 0)
            for n, t in outcome.failed.items()
            if t.code == KafkaError.GROUP_ID_NOT_FOUND
        }
        return Outcome({**done, **absent}, {n: t for n, t in outcome.failed.items() if n not in absent}, outcome.denied)

    async def group_operations(self, groups: Iterable[str]) -> Outcome[frozenset[str]]:
        """Return the operations that we may do with each group, in Kafka's upper-case words.

        A group need not exist. It is absent if the brokers do not report operations.
        """
        merged: Outcome[frozenset[str]] = Outcome()
        for name in sorted(set(groups)):
            outcome = await self._request_description(name, operations=True)
            merged.merge(Outcome(failed=outcome.failed, denied=outcome.denied))
            for group, described in outcome.done.items():
                operations = said_operations(described)
                merged.done.update({} if operations is None else {group: operations})
        return merged

    async def count_members(self, group: str) -> int:
        """Return the number of members of a group of any protocol; 0 if the group does not exist.

        It also works for the groups of Connect's workers, which `describe_groups` refuses.
        """
        groups = await self._blocking(
            "describe", f"group {group}", (await self._connected()).list_groups, group=group, timeout=self._timeout
        )
        return sum(len(listed.members) for listed in groups if listed.id == group)

    async def group_offsets(self, group: str) -> dict[TopicPartition, GroupOffset]:
        """Return the offsets that the group has committed.

        Partitions without a commit are absent. An unknown group has no offsets.
        """
        async with self._groups:
            answer = asyncio.ensure_future(
                self._until_answered(group, FETCHES_OFFSETS, lambda: self._coordinators.fetch_offsets(group))
            )
            offsets: dict[TopicPartition, GroupOffset] = await self._answer(answer, FETCHES_OFFSETS, f"group {group}")
        return offsets

    async def alter_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, GroupOffset]
    ) -> Outcome[GroupOffset]:
        """Commit offsets for a group, which the broker allows only while the group has no members.

        The keys of the outcome are `topic/partition`.
        """
        if not offsets:
            return Outcome()
        began = time.monotonic()
        async with self._groups:
            answer = asyncio.ensure_future(
                self._until_answered(group, COMMITS, lambda: self._coordinators.commit_offsets(group, offsets))
            )
            refused: dict[TopicPartition, KafkaError] = await self._answer(answer, COMMITS, f"group {group}")
        outcome: Outcome[GroupOffset] = Outcome()
        for (topic, partition), offset in offsets.items():
            key = f"{topic}/{partition}"
            if (error := refused.get((topic, partition))) is None:
                outcome.done[key] = offset
            else:
                # Commits for the group are allowed, but not in this topic.
                denied = error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
                about = f"topic {topic}" if denied else f"group {group}, {key}"
                self._sort(outcome, key, await self._trouble(error, COMMITS, about, began))
        return outcome
