"""A snapshot of one cluster: each fact is asked for once, and remembered. Nothing is changed on the cluster."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Generic, TypeVar, cast

from lockstep_config import FlowSettings
from lockstep_config.credentials.permissions import EVERY, Access, Grant, Remedy, needed_access
from lockstep_config.flow import client_settings
from lockstep_kafka.admin.acl_reader import AclsUnsupported, NoAuthorizer, OAuthRules, read_acls
from lockstep_kafka.admin.admin import PROBE, Admin
from lockstep_kafka.admin.request_pieces import merge_outcomes
from lockstep_kafka.admin.topic_creation import Creation, create_fitting_topics
from lockstep_kafka.common.admin_types import GroupDescription, GroupOffset, NewTopic, Outcome, TopicDescription
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable, NotPermitted, RequestRefused
from lockstep_kafka.groups.group_protocols import list_group_protocols
from lockstep_kafka.session.batch_heads import BatchHead, read_batch_heads
from lockstep_kafka.session.broker_session import BrokerRequestFailed, BrokerSession, SessionRefused
from lockstep_kafka.session.cluster_reader import ClusterReading, read_cluster_versions
from lockstep_kafka.session.log_sizes import read_log_sizes
from lockstep_kafka.topics.control_topic_faults import ControlTopicFaults, read_faults
from lockstep_kafka.topics.control_topics import ControlTopic
from lockstep_ops.clusters import REFUSED_S, cluster_roles, source_client, target_client
from lockstep_ops.permission_check import HeldPermissions, missing_permissions, named_groups, topics_for
from lockstep_rules.clusters.client_quotas import ClientQuota
from lockstep_rules.clusters.cluster_capabilities import Role, capabilities_of
from lockstep_state.acl_binding import AclBinding
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence
from lockstep_state.topic_config import TopicConfig

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

SIZES_WITHIN_S = 30.0
PROTOCOLS_WITHIN_S = 10.0
HEADS_WITHIN_S = 3.0

NO_TOPIC = "lockstep-no-topic"
"""The name of a topic that is on no cluster."""

LogOffsetMap = dict[TopicPartition, int]
"""Offsets by partition. A partition whose leader did not answer is absent."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The reason why a cluster does not give a fact. Its text is the sentence of the reason.

    `is_denied` is true if we lack a permission.
    """

    reason: Reason
    is_denied: bool = False

    def __str__(self) -> str:
        return format_sentence(self.reason)


async def or_unknown(fact: Awaitable[T]) -> T | Unknown:
    """Return the fact, or why the cluster does not give it.

    Raises:
        ClusterUnreachable: The cluster does not answer at all.
    """
    try:
        return await fact
    except ClusterUnreachable:
        raise
    except ClusterError as exc:
        return Unknown(exc.to_reason(), isinstance(exc, NotPermitted))


async def _or_unknown_of_brokers(fact: Awaitable[T]) -> T | Unknown:
    """Return a fact that single brokers are asked for, or why one of them does not give it."""
    try:
        return await or_unknown(fact)
    except ClusterUnreachable as exc:
        return Unknown(exc.to_reason())
    except (SessionRefused, BrokerRequestFailed, OSError) as exc:
        return Unknown(_reported(exc), isinstance(exc, BrokerRequestFailed) and exc.is_denied)


def _reported(trouble: object) -> Reason:
    return ReasonCode.REPORTED.to_reason(text=str(trouble))


class KeptAnswers(Generic[K, T]):
    """Answers about many things. Each thing is asked about once, also if there is no answer."""

    def __init__(self) -> None:
        self._answers: dict[K, T] = {}
        self._asked: set[K] = set()

    async def answers(self, wanted: Iterable[K], ask: Callable[[Sequence[K]], Awaitable[Mapping[K, T]]]) -> dict[K, T]:
        """Return the answers about `wanted`, in that order.

        An error of `ask` is not kept: it is raised, and the next call asks again.
        """
        keys = list(dict.fromkeys(wanted))
        new_keys = [key for key in keys if key not in self._asked]
        if new_keys:
            self._answers |= await ask(new_keys)
            self._asked |= set(new_keys)
        return {key: self._answers[key] for key in keys if key in self._answers}


class ClusterSnapshot:
    """The facts of one cluster, each as it was when it was first asked for.

    A snapshot is for one reading, such as one plan. A command that must know how something is now takes a new one, or
    asks the cluster, as `SwitchClusters` does. A method raises ClusterError if the cluster does not answer or refuses,
    and the next call asks again. Facts that a command can do without are `Unknown` instead.

    Args:
        admin: The client of the cluster. What changes the cluster, or waits for a change, uses it directly.
        client_id: The client id on connections of our own, for requests that librdkafka does not have.
        roles: The roles of the cluster in the flows.
    """

    def __init__(self, admin: Admin, client_id: str = "", roles: frozenset[Role] = frozenset()) -> None:
        self.admin = admin
        self.alias = admin.alias
        self._client_id = client_id
        self._roles = roles
        self._kept: dict[Hashable, Any] = {}
        self._configs: dict[TopicConfig, TopicConfig] = {}

    async def _read_once(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        if key not in self._kept:
            self._kept[key] = await ask()
        return cast(T, self._kept[key])

    def _answers(self, key: Hashable) -> KeptAnswers[Any, Any]:
        return cast(KeptAnswers[Any, Any], self._kept.setdefault(key, KeptAnswers[Any, Any]()))

    async def _outcome(
        self, key: Hashable, names: Iterable[str], ask: Callable[[Sequence[str]], Awaitable[Outcome[T]]]
    ) -> Outcome[T]:
        async def ask_merged(new_names: Sequence[str]) -> Mapping[str, object]:
            outcome = await ask(new_names)
            return {**outcome.done, **outcome.troubles()}

        answers = await self._answers(key).answers(names, ask_merged)
        failed = {name: answer for name, answer in answers.items() if isinstance(answer, RequestRefused)}
        denied = {name: answer for name, answer in answers.items() if isinstance(answer, NotPermitted)}
        done = {name: answer for name, answer in answers.items() if name not in failed and name not in denied}
        return Outcome(done, failed, denied)

    # -- the cluster ---------------------------------------------------------------------------------------------------

    async def probe(self, within: timedelta = PROBE) -> None:
        """Wait until a broker answers. Raises as `Admin.probe`."""
        await self._read_once("reached", lambda: self.admin.probe(within))

    async def cluster_id(self) -> str:
        return await self._read_once("id", self.admin.cluster_id)

    async def broker_count(self) -> int:
        """Return the number of brokers, as `Admin.broker_count` does."""
        return await self._read_once("brokers", self.admin.broker_count)

    async def broker_configs(self) -> Mapping[str, str] | Unknown:
        """Return every config of one broker; an unset one is ""."""
        return await self._read_once("broker configs", lambda: _or_unknown_of_brokers(self.admin.broker_configs()))

    async def versions(self) -> ClusterReading | Unknown:
        """Return the request versions that the brokers know, and the kind of cluster that they point to.

        Requests of a cluster in its roles are tried, as brokers may announce what they do not know.
        """
        tried = [capability.request for capability in capabilities_of(self._roles)]
        arguments = self.admin.properties, self._client_id, PROBE.total_seconds(), tried
        return await self._read_once("versions", lambda: _or_unknown_of_brokers(read_cluster_versions(*arguments)))

    async def quotas(self, session: BrokerSession | None) -> tuple[ClientQuota, ...] | Unknown:
        """Return every client quota, which are asked for on this connection."""
        if session is None:
            return Unknown(_reported("there is no connection to ask on"))
        return await self._read_once("quotas", lambda: _or_unknown_of_brokers(session.quotas()))

    # -- rights --------------------------------------------------------------------------------------------------------

    async def missing_rights(self, grants: Sequence[Grant], every: Sequence[str]) -> tuple[Remedy, ...]:
        """Return which rights we lack, each with the command that grants it.

        Nothing can be said of topics that we may describe and that do not exist, nor of transactional ids.

        Args:
            grants: The rights that are needed.
            every: Topics that `*` stands for.
        """
        topics = await self._topic_operations(topics_for(grants, await self.topic_names(), every))
        groups = await self.admin.group_operations(named_groups(grants))
        hidden = dict.fromkeys(topics.denied, frozenset[str]())
        held = HeldPermissions(await self._cluster_operations(), topics.done | hidden, groups.done)
        remedies = [
            *(
                self.admin.access.remedy(missing.grant.resource, missing.grant.name, missing.grant.operation)
                for missing in missing_permissions(grants, held, every)
            ),
            *(denied.remedy or Remedy(str(denied), "") for denied in groups.denied.values()),
        ]
        return tuple(dict.fromkeys(remedies))

    async def unknown_rights(self) -> str:
        """Return a sentence if the brokers do not say what we may do, else "".

        With a sentence no right is missing as far as anybody can know.
        """
        if await self._cluster_operations() is not None:
            return ""
        return f"rights on {self.alias} are not checked: its brokers do not say what a client may do"

    async def hidden_topics(self) -> Remedy | None:
        """Return why a flow of which this is the source selects no topic, or None if all topics are listed.

        Brokers list only topics that we may describe. They refuse any other one by its name, also one that does not
        exist.
        """
        if not (await self._topic_operations([NO_TOPIC])).denied:
            return None
        shown = "no topic that passes topics and topics.exclude" if await self.topic_names() else "no topic"
        remedy = self.admin.access.remedy("topic", EVERY, "Read")
        return Remedy(f"{self.alias} shows {shown}. It has none, or {remedy.lacks}", remedy.command)

    async def _cluster_operations(self) -> frozenset[str] | None:
        return await self._read_once("operations", self.admin.cluster_operations)

    async def _topic_operations(self, names: Iterable[str]) -> Outcome[frozenset[str]]:
        return await self._outcome("topic operations", names, self.admin.topic_operations)

    # -- topics --------------------------------------------------------------------------------------------------------

    async def topic_names(self) -> dict[str, int]:
        """Return every topic that we may describe, with its partition count."""
        return await self._read_once("topic names", self.admin.topic_names)

    async def topics(self, names: Iterable[str]) -> Outcome[TopicDescription]:
        """Return these topics. One that does not exist is absent."""
        return await self._outcome("topics", names, self.admin.topics)

    async def topic_configs(self, topics: Iterable[str]) -> Outcome[tuple[TopicConfig, ...]]:
        """Return the effective configs of each topic. One that does not exist is absent."""

        async def read(new_topics: Sequence[str]) -> Outcome[tuple[TopicConfig, ...]]:
            outcome = await merge_outcomes(self.admin.config_pieces(new_topics))
            # Nearly all configs of all topics are alike: the same value is kept once.
            alike = self._configs.setdefault
            done = {name: tuple(alike(config, config) for config in configs) for name, configs in outcome.done.items()}
            return Outcome(done, outcome.failed, outcome.denied)

        return await self._outcome("configs", topics, read)

    async def control_topic_faults(self, topics: Iterable[ControlTopic]) -> ControlTopicFaults:
        """Return the faults of those control topics that exist."""
        return await read_faults(self.admin, topics)

    async def try_creation(self, topics: Sequence[NewTopic], kept: Collection[str] = ()) -> Creation:
        """Return what a creation of these topics would give, as `create_fitting_topics` does. Nothing is created."""
        return await create_fitting_topics(self.admin, topics, kept=kept, validate_only=True)

    # -- logs ----------------------------------------------------------------------------------------------------------

    async def log_bounds(
        self, partitions: Iterable[TopicPartition], *, read_committed: bool = False
    ) -> tuple[LogOffsetMap, LogOffsetMap]:
        """Return the log start offsets, and the log end offsets or with `read_committed` the last stable offsets."""
        partitions, read_ends = list(partitions), partial(self.admin.end_offsets, read_committed=read_committed)
        starts, ends = await asyncio.gather(
            self._answers("log starts").answers(partitions, self.admin.begin_offsets),
            self._answers(("log ends", read_committed)).answers(partitions, read_ends),
        )
        return starts, ends

    async def offsets_since(self, partitions: Iterable[TopicPartition], moment_ms: int) -> LogOffsetMap:
        """Return the offset of each partition's first record of this time (Unix ms) or later; -1 if there is none."""
        read = partial(self.admin.offsets_since, moment_ms=moment_ms)
        return await self._answers(("offsets since", moment_ms)).answers(partitions, read)

    async def oldest_timestamps(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the timestamp of each partition's first record, in Unix milliseconds."""
        return await self._answers("oldest").answers(partitions, self.admin.oldest_timestamps)

    async def log_sizes(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int] | Unknown:
        """Return the size of each partition on disk, in bytes."""
        connection = self.alias, self.admin.properties, self._client_id
        read = partial(read_log_sizes, *connection, timeout_s=SIZES_WITHIN_S)
        return await _or_unknown_of_brokers(self._answers("log sizes").answers(partitions, read))

    async def batch_heads(
        self, offsets: Mapping[TopicPartition, int], properties: Mapping[str, str], client_id: str
    ) -> dict[TopicPartition, tuple[BatchHead, ...]] | Unknown:
        """Return headers of the batches from these offsets on, which a consumer with these properties reads."""
        arguments = self.alias, properties, client_id, offsets, HEADS_WITHIN_S
        return await _or_unknown_of_brokers(read_batch_heads(*arguments))

    # -- groups and ACLs -----------------------------------------------------------------------------------------------

    async def list_groups(self) -> dict[str, str]:
        """Return the groups, each with its type, as `Admin.list_groups` does."""
        return await self._read_once("groups", self.admin.list_groups)

    async def group_protocols(self) -> Mapping[str, str] | Unknown:
        """Return the protocol type of each group, as `list_group_protocols` does."""
        arguments = self.alias, self.admin.properties, self._client_id, PROTOCOLS_WITHIN_S
        return await self._read_once("protocols", lambda: _or_unknown_of_brokers(list_group_protocols(*arguments)))

    async def describe_groups(self, groups: Iterable[str]) -> Outcome[GroupDescription]:
        """Return state and members of each group. One that does not exist is DEAD without members."""
        return await self._outcome("group descriptions", groups, self.admin.describe_groups)

    async def group_offsets(self, group: str) -> dict[TopicPartition, GroupOffset]:
        """Return the offsets that the group has committed. An unknown group has none."""
        return await self._read_once(("offsets of a group", group), lambda: self.admin.group_offsets(group))

    async def count_members(self, group: str) -> int:
        """Return the number of members of a group of any protocol; 0 if the group does not exist."""
        return await self._read_once(("members of a group", group), lambda: self.admin.count_members(group))

    async def acls(self, resources: frozenset[str]) -> frozenset[AclBinding] | Unknown:
        """Return every ACL binding of these resource types, such as TOPIC and GROUP."""

        async def read() -> frozenset[AclBinding] | Unknown:
            try:
                return await or_unknown(read_acls(self.admin, resources))
            except (AclsUnsupported, NoAuthorizer, OAuthRules) as exc:
                return Unknown(exc.reason)

        return await self._read_once(("ACLs", resources), read)


class ClusterSnapshots:
    """The snapshots of the clusters of some flows. Flows share one if they reach the cluster with the same settings.

    Args:
        flows: The flows.
        role: The part of the client ids that names the command.
    """

    def __init__(self, flows: Iterable[FlowSettings], role: str) -> None:
        self._flows = tuple(flows)
        self._role = role
        self._snapshots: dict[tuple[str, frozenset[tuple[str, str]]], ClusterSnapshot] = {}

    def source(self, settings: FlowSettings) -> ClusterSnapshot:
        """Return the snapshot of the flow's source. Nothing is asked of the cluster yet, nor by `target`."""
        return self._snapshot(settings, settings.clients.source_admin, partial(source_client, refused_s=REFUSED_S))

    def target(self, settings: FlowSettings) -> ClusterSnapshot:
        """Return the snapshot of the flow's target."""
        return self._snapshot(settings, settings.clients.target_admin, partial(target_client, refused_s=REFUSED_S))

    def _snapshot(
        self, settings: FlowSettings, properties: Mapping[str, str], client: Callable[[FlowSettings], Admin]
    ) -> ClusterSnapshot:
        admin = client(settings)
        key = admin.alias, frozenset((name, value) for name, value in properties.items() if name != "client.id")
        if key not in self._snapshots:
            admin.access = self._access(admin.alias)
            client_id = client_settings.client_id(settings, self._role, properties)
            self._snapshots[key] = ClusterSnapshot(admin, client_id, cluster_roles(self._flows, admin.alias))
        return self._snapshots[key]

    def _access(self, alias: str) -> Access:
        """Return the access that all flows need on a cluster."""
        accesses = [needed_access(flow, alias) for flow in self._flows if alias in (flow.flow.source, flow.flow.target)]
        grants = dict.fromkeys(grant for access in accesses for grant in access.grants)
        return Access(accesses[0].login, accesses[0].bootstrap, tuple(grants))
