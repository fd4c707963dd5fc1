"""The clusters of a file, each read once: an answer counts for all flows."""

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Generic, TypeVar, cast

from lockstep_config import FlowSettings
from lockstep_config.credentials.permissions import Access, needed_access
from lockstep_config.flow import client_settings
from lockstep_kafka.admin.admin import PROBE, Admin
from lockstep_kafka.admin.request_pieces import together
from lockstep_kafka.admin.topic_requests import CHANGED_AT_ONCE
from lockstep_kafka.common.admin_types import GroupOffset, Outcome, TopicDescription
from lockstep_kafka.common.errors import NotPermitted, RequestRefused
from lockstep_kafka.groups.group_protocols import list_group_protocols
from lockstep_kafka.session.cluster_reader import ClusterReading, read_cluster_versions
from lockstep_kafka.session.log_sizes import read_log_sizes
from lockstep_state.acl_binding import AclBinding
from lockstep_state.offsets import TopicPartition
from lockstep_state.topic_config import TopicConfig

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

SIZES_WITHIN_S = 30.0
PROTOCOLS_WITHIN_S = 10.0


class KeptAnswers(Generic[K, T]):
    """Answers about many things. Each thing is asked about once, also if there is no answer."""

    def __init__(self) -> None:
        self._answers: dict[K, T] = {}
        self._asked: set[K] = set()

    async def answers(self, wanted: Iterable[K], ask: Callable[[Sequence[K]], Awaitable[Mapping[K, T]]]) -> dict[K, T]:
        """Return the answers about `wanted`, in that order.

        An error of `ask` is not kept: it is raised, and the next call asks again.
        """
        every = list(dict.fromkeys(wanted))
        new = [one for one in every if one not in self._asked]
        if new:
            self._answers |= await ask(new)
            self._asked |= set(new)
        return {one: self._answers[one] for one in every if one in self._answers}


class SharedCluster(Admin):
    """A cluster as the plan of a file asks it. An answer counts for all flows of the file."""

    def __init__(self, alias: str, conf: Mapping[str, Any], properties: Mapping[str, str], access: Access) -> None:
        super().__init__(alias, conf, access=access, properties=properties)
        self._kept: dict[Hashable, Any] = {}
        self._configs: dict[TopicConfig, TopicConfig] = {}

    async def _once(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the answer of `ask`, which is called once.

        An error of `ask` is not kept: it is raised, and the next call asks again.
        """
        if key not in self._kept:
            self._kept[key] = await ask()
        return cast(T, self._kept[key])

    def _answers(self, key: Hashable) -> KeptAnswers[Any, Any]:
        found = self._kept.setdefault(key, KeptAnswers[Any, Any]())
        assert isinstance(found, KeptAnswers)
        return found

    async def _outcome(
        self, key: Hashable, names: Iterable[str], ask: Callable[[Sequence[str]], Awaitable[Outcome[T]]]
    ) -> Outcome[T]:
        async def merged(new: Sequence[str]) -> Mapping[str, object]:
            outcome = await ask(new)
            return {**outcome.done, **outcome.failed, **outcome.denied}

        found: Outcome[T] = Outcome()
        for name, answer in (await self._answers(key).answers(names, merged)).items():
            match answer:
                case RequestRefused():
                    found.failed[name] = answer
                case NotPermitted():
                    found.denied[name] = answer
                case _:
                    found.done[name] = cast(T, answer)
        return found

    # -- the cluster ---------------------------------------------------------------------------------------------------

    async def probe(self, within: timedelta = PROBE) -> None:
        async def reach() -> None:
            await Admin.probe(self, within)

        await self._once("reached", reach)

    async def cluster_id(self) -> str:
        return await self._once("id", super().cluster_id)

    async def broker_count(self) -> int:
        return await self._once("brokers", super().broker_count)

    async def broker_configs(self) -> dict[str, str]:
        return await self._once("broker configs", super().broker_configs)

    async def cluster_operations(self) -> frozenset[str] | None:
        return await self._once("operations", super().cluster_operations)

    async def versions(self, client_id: str) -> ClusterReading:
        """Return what the cluster's brokers announce. Raises as `read_cluster_versions`."""

        async def read() -> ClusterReading:
            return await read_cluster_versions(self._properties, client_id, PROBE.total_seconds())

        return await self._once("versions", read)

    # -- topics --------------------------------------------------------------------------------------------------------

    async def topic_names(self) -> dict[str, int]:
        return await self._once("topic names", super().topic_names)

    async def topics(self, names: Iterable[str] | None = None) -> Outcome[TopicDescription]:
        wanted = await self.topic_names() if names is None else names
        return await self._outcome("topics", wanted, super().topics)

    async def config_pieces(self, topics: Iterable[str]) -> AsyncIterator[Outcome[tuple[TopicConfig, ...]]]:
        async def read(new: Sequence[str]) -> Outcome[tuple[TopicConfig, ...]]:
            found = await together(Admin.config_pieces(self, new))
            # Nearly all configs of all topics are alike: the same value is kept once.
            alike = self._configs.setdefault
            done = {name: tuple(alike(one, one) for one in configs) for name, configs in found.done.items()}
            return Outcome(done, found.failed, found.denied)

        wanted = list(dict.fromkeys(topics))
        for at in range(0, len(wanted), CHANGED_AT_ONCE):
            yield await self._outcome("configs", wanted[at : at + CHANGED_AT_ONCE], read)

    async def topic_operations(self, names: Iterable[str]) -> Outcome[frozenset[str]]:
        return await self._outcome("topic operations", names, super().topic_operations)

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], *, read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        async def read(new: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
            return await Admin.end_offsets(self, new, read_committed=read_committed)

        return await self._answers(("ends", read_committed)).answers(partitions, read)

    async def begin_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return await self._answers("beginnings").answers(partitions, super().begin_offsets)

    async def oldest_timestamps(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return await self._answers("oldest").answers(partitions, super().oldest_timestamps)

    async def log_sizes(self, partitions: Iterable[TopicPartition], client_id: str) -> dict[TopicPartition, int]:
        """Return the size of each partition on disk, in bytes.

        Raises:
            ClusterError: The cluster does not answer, or refuses.
        """

        async def read(new: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
            return await read_log_sizes(self.alias, self._properties, client_id, new, SIZES_WITHIN_S)

        return await self._answers("sizes").answers(partitions, read)

    # -- groups and ACLs -----------------------------------------------------------------------------------------------

    async def list_groups(self) -> dict[str, str]:
        return await self._once("groups", super().list_groups)

    async def group_protocols(self, client_id: str) -> Mapping[str, str]:
        """Return the groups as `list_group_protocols` does.

        Raises:
            ClusterUnreachable: The cluster does not answer.
        """

        async def read() -> Mapping[str, str]:
            return await list_group_protocols(self.alias, self._properties, client_id, PROTOCOLS_WITHIN_S)

        return await self._once("protocols", read)

    async def group_offsets(self, group: str) -> dict[TopicPartition, GroupOffset]:
        async def read() -> dict[TopicPartition, GroupOffset]:
            return await Admin.group_offsets(self, group)

        return await self._once(("offsets of a group", group), read)

    async def describe_acls(self, resource_type: str = "TOPIC") -> frozenset[AclBinding]:
        async def read() -> frozenset[AclBinding]:
            return await Admin.describe_acls(self, resource_type)

        return await self._once(("ACLs", resource_type), read)


class SharedClusters:
    """The clusters of some flows. Flows share a cluster if they reach it with the same settings."""

    def __init__(self, flows: Iterable[FlowSettings]) -> None:
        self._flows = tuple(flows)
        self._clusters: dict[tuple[str, frozenset[tuple[str, str]]], SharedCluster] = {}

    def source(self, settings: FlowSettings) -> SharedCluster:
        """Return the flow's source. Nothing is asked of the cluster yet; the same holds for `target`."""
        return self._cluster(
            settings.flow.source, settings.clients.source_admin, client_settings.source_admin(settings)
        )

    def target(self, settings: FlowSettings) -> SharedCluster:
        return self._cluster(
            settings.flow.target, settings.clients.target_admin, client_settings.target_admin(settings)
        )

    def _cluster(self, alias: str, properties: Mapping[str, str], conf: Mapping[str, Any]) -> SharedCluster:
        key = alias, frozenset((name, value) for name, value in properties.items() if name != "client.id")
        if key not in self._clusters:
            self._clusters[key] = SharedCluster(alias, conf, properties, self._access(alias))
        return self._clusters[key]

    def _access(self, alias: str) -> Access:
        """Return the access that all flows need on a cluster."""
        every = [needed_access(one, alias) for one in self._flows if alias in (one.flow.source, one.flow.target)]
        grants = dict.fromkeys(grant for access in every for grant in access.grants)
        return Access(every[0].login, every[0].bootstrap, tuple(grants))
