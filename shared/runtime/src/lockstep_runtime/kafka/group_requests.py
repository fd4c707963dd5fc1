"""What is asked about consumer groups, and committing for them."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from functools import cached_property
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from lockstep_runtime.kafka.admin_requests import AdminRequests, authorized_operations
from lockstep_runtime.kafka.admin_types import GroupDescription, GroupOffset, Outcome
from lockstep_runtime.util.backoff import Backoff

GROUPS_AT_ONCE = 16
"""Requests about single groups in flight, unless `bound_groups` says otherwise: each group is asked about by itself."""

COORDINATOR_ANSWERS_S = 5.0
"""Seconds that one attempt takes at most. librdkafka asks three times, within half a second, which broker coordinates
a group. If none does yet, it asks no more and the request ends with its timeout. On a new cluster none does: brokers
create `__consumer_offsets` at the first question. Java's clients ask until their own timeout."""

NO_COORDINATOR_YET = {
    KafkaError._TIMED_OUT,
    KafkaError._WAIT_COORD,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}

Ask = Callable[[AdminClient, float], Mapping[str, Future[Any]]]
"""Sends an idempotent request about a group. Gets the client, and the seconds for one attempt."""


class GroupRequests(AdminRequests):
    @cached_property
    def _groups(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(GROUPS_AT_ONCE)

    async def _ask_coordinator(self, group: str, ask: Ask) -> Any:
        """What the group's coordinator answers. While there is none, it asks again, until the timeout of all requests.
        Raises KafkaException."""
        deadline, backoff = time.monotonic() + self._timeout, Backoff(0.1, 1.0)
        while True:
            left = deadline - time.monotonic()
            futures = ask(await self._connected(), min(left, COORDINATOR_ANSWERS_S))
            try:
                return await asyncio.wrap_future(futures[group])
            except KafkaException as exc:
                wait = backoff.next()
                if exc.args[0].code() not in NO_COORDINATOR_YET or time.monotonic() + wait >= deadline:
                    raise
            await asyncio.sleep(wait)

    def _begin(self, group: str, ask: Ask) -> Mapping[str, asyncio.Future[Any]]:
        return {group: asyncio.ensure_future(self._ask_coordinator(group, ask))}

    async def _request_description(self, name: str, *, operations: bool = False) -> Outcome[Any]:
        """As the library describes it; with what we may do there if `operations`."""
        futures = self._begin(
            name,
            lambda client, within: client.describe_consumer_groups(
                [name], include_authorized_operations=operations, request_timeout=within
            ),
        )
        return await self._many(futures, "describe", lambda name: f"group {name}", str)

    def bound_groups(self, bound: asyncio.Semaphore) -> None:
        """Ask about single groups within this bound from now on; several connections may share one."""
        self._groups = bound

    async def list_groups(self) -> dict[str, str]:
        """Consumer groups of every coordinator that answered, each with its type: Kafka's word in upper case (CLASSIC,
        CONSUMER), "" from older brokers. ClusterUnreachable only when none did."""
        result = await self._one(
            (await self._connected()).list_consumer_groups(request_timeout=self._timeout), "list", "groups"
        )
        if not result.valid and result.errors:
            # KafkaError, against the library's documentation: not the exception around it.
            raise await self._trouble(result.errors[0], "list", "groups")
        return {g.group_id: "" if getattr(g, "type", None) is None else g.type.name for g in result.valid}

    async def describe_groups(self, groups: Iterable[str]) -> Outcome[GroupDescription]:
        """State and member count of each group; one that does not exist is DEAD with no members."""
        whole: Outcome[GroupDescription] = Outcome()
        for one in await asyncio.gather(*(self._describe_group(name) for name in sorted(set(groups)))):
            whole.merge(one)
        return whole

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
        gone = {
            n: GroupDescription(n, "DEAD", 0)
            for n, t in outcome.failed.items()
            if t.code == KafkaError.GROUP_ID_NOT_FOUND
        }
        return Outcome({**done, **gone}, {n: t for n, t in outcome.failed.items() if n not in gone}, outcome.denied)

    async def group_operations(self, groups: Iterable[str]) -> Outcome[frozenset[str]]:
        """What we may do with each group, in Kafka's upper-case words, whether it exists or not."""
        whole: Outcome[frozenset[str]] = Outcome()
        for name in sorted(set(groups)):
            outcome = await self._request_description(name, operations=True)
            done = {group: authorized_operations(described) for group, described in outcome.done.items()}
            whole.merge(Outcome(done, outcome.failed, outcome.denied))
        return whole

    async def count_members(self, group: str) -> int:
        """Members of a group of any protocol, such as that of Connect's workers, which `describe_groups` refuses; 0
        where there is no such group."""
        found = await self._blocking(
            "describe", f"group {group}", (await self._connected()).list_groups, group=group, timeout=self._timeout
        )
        return sum(len(one.members) for one in found if one.id == group)

    async def group_offsets(self, group: str) -> dict[tuple[str, int], GroupOffset]:
        """What the group has committed; partitions without a commit are absent, and so is everything of an unknown
        group.
        """
        async with self._groups:
            futures = self._begin(
                group,
                lambda client, within: client.list_consumer_group_offsets(
                    [ConsumerGroupTopicPartitions(group)], request_timeout=within
                ),
            )
            answer = await self._one(futures[group], "list offsets of", f"group {group}")
        return {
            (tp.topic, tp.partition): GroupOffset(tp.offset, tp.metadata or "")
            for tp in answer.topic_partitions
            if tp.error is None and tp.offset >= 0
        }

    async def alter_group_offsets(
        self, group: str, offsets: Mapping[tuple[str, int], GroupOffset]
    ) -> Outcome[GroupOffset]:
        """Commit for a group, which the broker allows only while it has no members. Outcome keys: `topic/partition`."""
        if not offsets:
            return Outcome()
        # The metadata is copied only when it is given as keyword, and None is refused there.
        wanted = [TopicPartition(t, p, offset=o.offset, metadata=o.metadata) for (t, p), o in offsets.items()]
        async with self._groups:
            futures = self._begin(
                group,
                lambda client, within: client.alter_consumer_group_offsets(
                    [ConsumerGroupTopicPartitions(group, wanted)], request_timeout=within
                ),
            )
            answer = await self._one(futures[group], "alter offsets of", f"group {group}")
        outcome: Outcome[GroupOffset] = Outcome()
        for tp in answer.topic_partitions:
            key = f"{tp.topic}/{tp.partition}"
            if tp.error is None:
                outcome.done[key] = offsets[tp.topic, tp.partition]
            else:
                # The group may be committed for, but not in this topic.
                denied = tp.error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
                about = f"topic {tp.topic}" if denied else f"group {group}, {key}"
                self._sort(outcome, key, await self._trouble(tp.error, "alter offsets of", about))
        return outcome
