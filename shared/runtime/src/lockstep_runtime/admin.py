"""One cluster's administration: asyncio around librdkafka's AdminClient.

Every method raises `ClusterUnreachable` when no broker answered, `NotPermitted` when the call as a whole was denied and
`RequestRefused` when the cluster refused it as a whole. Where a call is about many resources, what became of each is
in the
`Outcome`. Nothing is retried here: whoever calls does so in rounds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from typing import Any, TypeVar

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka import IsolationLevel as ConfluentIsolation
from confluent_kafka.admin import AclBinding as ConfluentAcl
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)
from confluent_kafka.admin import NewTopic as ConfluentNewTopic

from lockstep_runtime.described import (
    AclBinding,
    GroupDescription,
    GroupListing,
    GroupOffset,
    NewTopic,
    TopicConfig,
    TopicDescription,
)
from lockstep_runtime.errors import ClusterTrouble, ClusterUnreachable, NotPermitted, RequestRefused
from lockstep_runtime.outcome import Outcome
from lockstep_runtime.retry import Verdict, classify

__all__ = ["Admin"]

T = TypeVar("T")
R = TypeVar("R")

DESCRIBED_AT_ONCE = 500
"""Topics a describe request: large clusters have 10,000s, and a request that names them all makes one very large
answer.
"""

QUICK = 10.0
"""Seconds a listing may take at most: it is what notices that a cluster is gone, and a minute would be late."""

GROUPS_AT_ONCE = 16
"""Requests about single groups in flight (librdkafka takes one group a call)."""

PROBE = timedelta(seconds=5)
"""How long one attempt to reach the cluster takes at most. MM2's admin.timeout.ms (a minute) is for requests, not for
finding out.
"""


class Admin:
    """Administers the cluster `alias`. `timeout` bounds every request. Safe for concurrent use within one event
    loop.
    """

    def __init__(self, alias: str, conf: Mapping[str, str], timeout: timedelta = timedelta(seconds=60)) -> None:
        self.alias = alias
        self.bootstrap = conf.get("bootstrap.servers", "")
        self._timeout = timeout.total_seconds()
        self._quick = min(self._timeout, QUICK)
        self._complaints: deque[str] = deque(maxlen=8)
        # log_level 0: librdkafka would write each reconnect to stderr; error_cb hears the same and we say it once.
        self._conf: dict[str, Any] = {**conf, "log_level": 0, "error_cb": self._complain}
        self._groups = asyncio.Semaphore(GROUPS_AT_ONCE)

    @cached_property
    def _client(self) -> AdminClient:
        """Made when first needed: it connects at once, and some services never ask one of their clusters."""
        return AdminClient(self._conf)

    def _complain(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._complaints.append(error.str())

    # -- the cluster ---------------------------------------------------------------------------------------------------

    async def probe(self, within: timedelta = PROBE) -> None:
        """Return when a broker answers. Raises ClusterUnreachable after `within`, with what librdkafka complained
        of.
        """
        await self._blocking(
            "reach", "the cluster", self._client.list_topics, topic=None, timeout=within.total_seconds()
        )

    async def cluster_id(self) -> str:
        """The cluster's own id: two aliases with the same one are the same cluster."""
        described = await self._one(
            self._client.describe_cluster(request_timeout=self._quick), "describe", "the cluster"
        )
        return str(described.cluster_id)

    async def broker_count(self) -> int:
        """Brokers that are up now."""
        described = await self._one(
            self._client.describe_cluster(request_timeout=self._quick), "describe", "the cluster"
        )
        return len(described.nodes)

    async def cluster_operations(self) -> frozenset[str]:
        """What we may do on the cluster resource, in Kafka's upper-case words; everything where nobody checks."""
        described = await self._one(
            self._client.describe_cluster(include_authorized_operations=True, request_timeout=self._timeout),
            "describe",
            "the cluster",
        )
        return frozenset(operation.name for operation in described.authorized_operations or ())

    async def broker_config(self, name: str) -> str | None:
        """A config of one broker, "" where it is unset; None where we may not ask, or no broker knows it."""
        described = await self._one(
            self._client.describe_cluster(request_timeout=self._quick), "describe", "the cluster"
        )
        resource = ConfigResource(ConfigResource.Type.BROKER, str(described.nodes[0].id))
        (future,) = self._client.describe_configs([resource], request_timeout=self._timeout).values()
        try:
            entries = await self._one(future, "describe configs of", "the brokers")
        except NotPermitted:
            return None
        return (entries[name].value or "") if name in entries else None

    # -- topics --------------------------------------------------------------------------------------------------------

    async def topic_names(self) -> dict[str, int]:
        """Every topic we may describe, with its partition count. One Metadata request: cheap enough for every
        second.
        """
        metadata = await self._blocking("list", "topics", self._client.list_topics, topic=None, timeout=self._quick)
        # A topic in deletion is still listed, with an error and no partitions.
        return {name: len(t.partitions) for name, t in metadata.topics.items() if t.error is None and t.partitions}

    async def topics(self, names: Iterable[str] | None = None) -> dict[str, TopicDescription]:
        """The topics called `names` (None: all) that exist and that we may describe, with their topic ids."""
        wanted = sorted(await self.topic_names() if names is None else set(names))
        found: dict[str, TopicDescription] = {}
        for at in range(0, len(wanted), DESCRIBED_AT_ONCE):
            part = wanted[at : at + DESCRIBED_AT_ONCE]
            futures = self._client.describe_topics(TopicCollection(part), request_timeout=self._timeout)
            outcome = await self._many(futures, "describe", lambda name: f"topic {name}", lambda name: str(name))
            for name, topic in outcome.done.items():
                replicas = len(topic.partitions[0].replicas) if topic.partitions else 0
                topic_id = _as_kafka_prints(topic.topic_id)
                found[name] = TopicDescription(name, topic_id, len(topic.partitions), replicas, topic.is_internal)
            for trouble in outcome.failed.values():
                # An invalid name (too long, say) is that of a topic that cannot exist.
                if trouble.code not in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_EXCEPTION):
                    raise trouble
        return found

    async def create_topics(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> Outcome[None]:
        """Create each topic. One that exists already is in `failed` with code TOPIC_ALREADY_EXISTS: see `existed`."""
        if not topics:
            return Outcome()
        new = [
            ConfluentNewTopic(
                t.name, num_partitions=t.partitions, replication_factor=t.replication_factor, config=t.configs
            )
            for t in topics
        ]
        futures = self._client.create_topics(
            new, operation_timeout=self._timeout, request_timeout=self._timeout, validate_only=validate_only
        )
        return await self._many(futures, "create", lambda name: f"topic {name}", str)

    @staticmethod
    def existed(trouble: ClusterTrouble) -> bool:
        """Whether a create was refused only because the topic is there already."""
        return isinstance(trouble, RequestRefused) and trouble.code == KafkaError.TOPIC_ALREADY_EXISTS

    @staticmethod
    def refused_configs(trouble: ClusterTrouble) -> bool:
        """Whether a topic was refused for its configs: a key that the brokers do not know, a value that they do not
        allow. Brokers say INVALID_REQUEST for a bad value where configs are altered."""
        return isinstance(trouble, RequestRefused) and trouble.code in (
            KafkaError.INVALID_CONFIG,
            KafkaError.INVALID_REQUEST,
        )

    async def create_partitions(self, totals: Mapping[str, int]) -> Outcome[None]:
        """Grow each topic to the given total. Refused (INVALID_PARTITIONS) when it has as many already."""
        if not totals:
            return Outcome()
        futures = self._client.create_partitions(
            [NewPartitions(name, total) for name, total in totals.items()],
            operation_timeout=self._timeout,
            request_timeout=self._timeout,
        )
        return await self._many(futures, "add partitions to", lambda name: f"topic {name}", str)

    async def describe_configs(self, topics: Iterable[str]) -> Outcome[tuple[TopicConfig, ...]]:
        """Every effective config of each topic."""
        resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in topics]
        if not resources:
            return Outcome()
        futures = self._client.describe_configs(resources, request_timeout=self._timeout)
        outcome = await self._many(futures, "describe configs of", lambda r: f"topic {r.name}", lambda r: str(r.name))
        done = {
            name: tuple(
                TopicConfig(e.name, e.value, int(e.source), bool(e.is_read_only), bool(e.is_sensitive))
                for e in sorted(entries.values(), key=lambda e: str(e.name))
            )
            for name, entries in outcome.done.items()
        }
        return Outcome(done, outcome.failed, outcome.denied)

    async def alter_configs(self, changes: Mapping[str, Mapping[str, str | None]]) -> Outcome[None]:
        """Set each named config of each topic, None removes it; all others stay (IncrementalAlterConfigs, KIP-339)."""
        resources = []
        for name, wanted in changes.items():
            resource = ConfigResource(ConfigResource.Type.TOPIC, name)
            for key, value in wanted.items():
                operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
                resource.add_incremental_config(ConfigEntry(key, value or "", incremental_operation=operation))
            resources.append(resource)
        if not resources:
            return Outcome()
        futures = self._client.incremental_alter_configs(resources, request_timeout=self._timeout)
        return await self._many(futures, "alter configs of", lambda r: f"topic {r.name}", lambda r: str(r.name))

    async def end_offsets(
        self, partitions: Iterable[tuple[str, int]], *, read_committed: bool = False
    ) -> dict[tuple[str, int], int]:
        """The end of each partition's log (the next offset; under read_committed the last stable one). Absent: not
        answered.
        """
        spec: Any = OffsetSpec  # its constructors lack annotations
        wanted = {TopicPartition(t, p): spec.latest() for t, p in partitions}
        if not wanted:
            return {}
        level = ConfluentIsolation.READ_COMMITTED if read_committed else ConfluentIsolation.READ_UNCOMMITTED
        futures = self._client.list_offsets(wanted, isolation_level=level, request_timeout=self._timeout)
        outcome = await self._many(
            futures, "list offsets of", lambda tp: f"topic {tp.topic}", lambda tp: f"{tp.topic}/{tp.partition}"
        )
        ends = {}
        for key, result in outcome.done.items():
            topic, _, partition = key.rpartition("/")
            ends[topic, int(partition)] = int(result.offset)
        return ends

    # -- ACLs ----------------------------------------------------------------------------------------------------------

    async def describe_acls(self, resource_type: str = "TOPIC") -> tuple[AclBinding, ...]:
        """All bindings of a resource type, any pattern.

        librdkafka 2.16 drops the error of the whole answer: where there is no authorizer, or DESCRIBE on the cluster is
        denied, this is empty. `broker_config` and `cluster_operations` tell.
        """
        anything: Any = None  # matches every name, principal and host, which the annotations forget
        everything = AclBindingFilter(
            ResourceType[resource_type],
            anything,
            ResourcePatternType.ANY,
            anything,
            anything,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        future = self._client.describe_acls(everything, request_timeout=self._timeout)
        bindings = await self._one(future, "describe ACLs of", f"{resource_type.lower()} resources")
        return tuple(
            sorted(
                AclBinding(
                    b.restype.name,
                    b.name,
                    b.resource_pattern_type.name,
                    b.principal,
                    b.host,
                    b.operation.name,
                    b.permission_type.name,
                )
                for b in bindings
            )
        )

    async def create_acls(self, bindings: Sequence[AclBinding]) -> Outcome[AclBinding]:
        """Add each binding (adding one that exists is success). Keys of the outcome: `acl_key` of the binding."""
        if not bindings:
            return Outcome()
        ours = {
            ConfluentAcl(
                ResourceType[b.resource_type],
                b.name,
                ResourcePatternType[b.pattern_type],
                b.principal,
                b.host,
                AclOperation[b.operation],
                AclPermissionType[b.permission],
            ): b
            for b in bindings
        }
        futures = self._client.create_acls(list(ours), request_timeout=self._timeout)
        outcome = await self._many(
            futures, "create an ACL for", lambda a: f"topic {a.name}", lambda a: self.acl_key(ours[a])
        )
        by_key = {self.acl_key(b): b for b in bindings}
        return Outcome({key: by_key[key] for key in outcome.done}, outcome.failed, outcome.denied)

    @staticmethod
    def acl_key(b: AclBinding) -> str:
        """A binding in one line, as logs and outcomes name it."""
        return f"{b.permission} {b.operation} {b.resource_type}:{b.pattern_type}:{b.name} {b.principal} from {b.host}"

    # -- groups --------------------------------------------------------------------------------------------------------

    async def list_groups(self) -> tuple[GroupListing, ...]:
        """Consumer groups of every coordinator that answered. ClusterUnreachable only when none did."""
        result = await self._one(self._client.list_consumer_groups(request_timeout=self._timeout), "list", "groups")
        if not result.valid and result.errors:
            raise self._trouble(result.errors[0].args[0], "list", "groups")
        return tuple(
            GroupListing(
                g.group_id,
                "" if g.state is None else g.state.name,
                bool(g.is_simple_consumer_group),
                "" if getattr(g, "type", None) is None else g.type.name,
            )
            for g in result.valid
        )

    async def describe_groups(self, groups: Iterable[str]) -> Outcome[GroupDescription]:
        """State and member count of each group; one that does not exist is DEAD with no members."""
        names = sorted(set(groups))
        if not names:
            return Outcome()
        futures = self._client.describe_consumer_groups(names, request_timeout=self._timeout)
        outcome = await self._many(futures, "describe", lambda name: f"group {name}", str)
        done = {
            name: GroupDescription(name, "" if d.state is None else d.state.name, len(d.members))
            for name, d in outcome.done.items()
        }
        gone = {
            n: GroupDescription(n, "DEAD", 0)
            for n, t in outcome.failed.items()
            if t.code == KafkaError.GROUP_ID_NOT_FOUND
        }
        return Outcome({**done, **gone}, {n: t for n, t in outcome.failed.items() if n not in gone}, outcome.denied)

    async def group_offsets(self, group: str) -> dict[tuple[str, int], GroupOffset]:
        """What the group has committed; partitions without a commit are absent, and so is everything of an unknown
        group.
        """
        async with self._groups:
            futures = self._client.list_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group)], request_timeout=self._timeout
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
            futures = self._client.alter_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group, wanted)], request_timeout=self._timeout
            )
            answer = await self._one(futures[group], "alter offsets of", f"group {group}")
        outcome: Outcome[GroupOffset] = Outcome()
        for tp in answer.topic_partitions:
            key = f"{tp.topic}/{tp.partition}"
            if tp.error is None:
                outcome.done[key] = offsets[tp.topic, tp.partition]
            else:
                self._sort(outcome, key, self._trouble(tp.error, "alter offsets of", f"group {group}, {key}"))
        return outcome

    # -- from librdkafka's words to ours -------------------------------------------------------------------------------

    async def _blocking(self, operation: str, resource: str, call: Callable[..., R], **kwargs: Any) -> R:
        try:
            return await asyncio.to_thread(call, **kwargs)
        except KafkaException as exc:
            raise self._trouble(exc.args[0], operation, resource) from exc

    async def _one(self, future: Any, operation: str, resource: str) -> Any:
        try:
            return await asyncio.wrap_future(future)
        except KafkaException as exc:
            raise self._trouble(exc.args[0], operation, resource) from exc

    async def _many(
        self, futures: Mapping[Any, Any], operation: str, resource: Callable[[Any], str], key: Callable[[Any], str]
    ) -> Outcome[Any]:
        outcome: Outcome[Any] = Outcome()
        for subject, future in futures.items():
            try:
                outcome.done[key(subject)] = await asyncio.wrap_future(future)
            except KafkaException as exc:
                self._sort(outcome, key(subject), self._trouble(exc.args[0], operation, resource(subject)))
        return outcome

    @staticmethod
    def _sort(outcome: Outcome[Any], key: str, trouble: ClusterTrouble) -> None:
        if isinstance(trouble, NotPermitted):
            outcome.denied[key] = trouble
        elif isinstance(trouble, RequestRefused):
            outcome.failed[key] = trouble
        else:
            raise trouble  # no broker answered: there is nothing to say about single resources

    def _trouble(self, error: KafkaError, operation: str, resource: str) -> ClusterTrouble:
        self._client.poll(0)  # lets error_cb hear what happened on the wire
        verdict = classify(error.code())
        if verdict is Verdict.UNREACHABLE:
            why = self._complaints[-1] if self._complaints else error.str()
            self._complaints.clear()
            return ClusterUnreachable(self.alias, self.bootstrap, why)
        if verdict is Verdict.DENIED:
            return NotPermitted(self.alias, f"to {operation}", resource)
        return RequestRefused(self.alias, operation, resource, error.code(), error.str())


NO_TOPIC_ID = "A" * 22


def _as_kafka_prints(topic_id: object) -> str:
    """librdkafka writes base64 with + and /, Kafka's own tools with - and _."""
    text = "" if topic_id is None else str(topic_id).rstrip("=").replace("+", "-").replace("/", "_")
    return "" if text == NO_TOPIC_ID else text
