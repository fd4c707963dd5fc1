"""One cluster's administration: asyncio around librdkafka's AdminClient.

Every method raises `ClusterUnreachable` when no broker answered. It raises `NotPermitted` when the call as a whole was
denied, and `RequestRefused` when the cluster refused it as a whole. If a call is about many resources, the result of
each is in the `Outcome`. Nothing is retried here: callers retry in rounds.
"""

import asyncio
import socket
import time
from collections.abc import Mapping
from datetime import timedelta

from confluent_kafka.admin import ClusterMetadata, ConfigResource

from lockstep_config import FlowSettings
from lockstep_config.credentials.permissions import needed_access
from lockstep_kafka.admin.acl_requests import AclRequests
from lockstep_kafka.admin.first_answer import Answerer, read_first_answer, silence_sentence
from lockstep_kafka.admin.group_requests import GroupRequests
from lockstep_kafka.admin.topic_requests import TopicRequests
from lockstep_kafka.common.errors import ClusterUnreachable, NotPermitted, RequestUnsupported

PROBE = timedelta(seconds=5)
"""How long one attempt to reach the cluster takes at most. MM2's admin.timeout.ms (a minute) is for requests, not for
finding out.
"""


OPENED = timedelta(seconds=1)
"""How long a connection may take to be opened, or refused, where that is to be known at once."""


async def connects(host: str, port: int, within: timedelta) -> str | None:
    """Why no connection can be opened there; None: one can."""
    try:
        await _connect(host, port, within)
    except TimeoutError:
        return f"no connection within {within.total_seconds():g} s"
    except (OSError, UnicodeError) as exc:
        return _refusal(exc)
    return None


async def _connect(host: str, port: int, within: timedelta) -> None:
    """Open a connection, and close it. Raises TimeoutError, OSError, and UnicodeError for what is no name."""
    async with asyncio.timeout(within.total_seconds()):
        _, writer = await asyncio.open_connection(host, port)
    writer.close()


def _refusal(exc: OSError | UnicodeError) -> str:
    match exc:
        case socket.gaierror():
            return f"the name cannot be resolved: {exc.strerror}"
        case UnicodeError():
            return f"the name cannot be resolved: {exc}"
        case ConnectionRefusedError():
            return "connection refused"
    return exc.strerror or str(exc)


class Admin(TopicRequests, AclRequests, GroupRequests):
    """Administers one cluster: topics, ACLs, groups, and the cluster itself."""

    _has_answered = False
    """Brokers were at the addresses."""

    async def probe(self, within: timedelta = PROBE) -> None:
        """Return when a broker answers.

        Raises:
            ClusterUnreachable: At once if something else than a broker answers. Else after `within`, with what
                librdkafka complained of.
        """
        silent = [] if self._has_answered else await self._require_broker(within)
        try:
            await self._metadata(within.total_seconds())
        except ClusterUnreachable as exc:
            if not silent:
                raise
            why = silence_sentence(", ".join(silent), within.total_seconds())
            raise ClusterUnreachable(self.alias, self.bootstrap, why) from exc
        self._has_answered = True

    async def _require_broker(self, within: timedelta) -> list[str]:
        """Return the bootstrap addresses, if none of them answers anything. Raises ClusterUnreachable if all of them
        show that they are no brokers of our protocol.
        """
        uses_tls = str(self._conf.get("security.protocol", "")).upper() in ("SSL", "SASL_SSL")
        addresses = [entry.strip().rpartition(":") for entry in self.bootstrap.split(",") if entry.strip()]
        asked = (
            read_first_answer(host.rpartition("://")[2].strip("[]"), int(port), min(OPENED, within), uses_tls=uses_tls)
            for host, _, port in addresses
        )
        answers = await asyncio.gather(*asked)
        if answers and all(answer.fault for answer in answers):
            faults = dict.fromkeys(answer.fault for answer in answers)
            raise ClusterUnreachable(self.alias, self.bootstrap, "; ".join(faults))
        is_silent = all(answer.answerer is Answerer.SILENT for answer in answers)
        return ["".join(address) for address in addresses] if is_silent else []

    async def require_open(self, within: timedelta = OPENED) -> None:
        """Return unless every bootstrap address refuses connections, or its name is unknown. librdkafka would try
        again until its time is over. Raises ClusterUnreachable at once.
        """
        addresses = [entry.strip().rpartition(":") for entry in self.bootstrap.split(",") if entry.strip()]
        asked = (_connect(host.strip("[]"), int(port), within) for host, _, port in addresses)
        results = await asyncio.gather(*asked, return_exceptions=True)
        refusals = [
            result
            for result in results
            if isinstance(result, OSError | UnicodeError) and not isinstance(result, TimeoutError)
        ]
        if refusals and len(refusals) == len(results):
            raise ClusterUnreachable(self.alias, self.bootstrap, "; ".join(dict.fromkeys(map(_refusal, refusals))))

    async def unreachable_brokers(self, within: timedelta = PROBE) -> dict[str, str]:
        """Why brokers cannot be connected to where the cluster says they are, by `broker N at HOST:PORT`. Clients reach
        the bootstrap address first and these afterwards. All of it takes `within` at most. Raises as `probe`.
        """
        ends_at = time.monotonic() + within.total_seconds()
        brokers_answered = (await self._metadata(within.total_seconds())).brokers.values()
        left = timedelta(seconds=max(0.0, ends_at - time.monotonic()))
        found = await asyncio.gather(*(connects(str(one.host), one.port, left) for one in brokers_answered))
        return {
            f"broker {one.id} at {one.host}:{one.port}": why
            for one, why in zip(brokers_answered, found, strict=True)
            if why is not None
        }

    async def cluster_id(self) -> str:
        """The cluster's own id: two aliases with the same one are the same cluster."""
        return str((await self._up()).cluster_id)

    async def broker_count(self) -> int:
        """Brokers of the cluster: those that are up now, and those that have a replica of a topic that we may describe.
        A broker that restarts is one of them, so topics made meanwhile do not get fewer replicas for good.
        """
        metadata = await self._up()
        parts = (part for topic in metadata.topics.values() for part in topic.partitions.values())
        return len(metadata.brokers.keys() | {replica for part in parts for replica in part.replicas})

    async def live_broker_count(self) -> int:
        """Return how many brokers are up now."""
        return len(await self._brokers())

    async def cluster_operations(self) -> frozenset[str] | None:
        """Return what we may do on the cluster resource, in Kafka's upper-case words; everything if the cluster has no
        authorizer. None: its brokers do not say so.
        """
        # librdkafka (2.16) takes an answer without brokers, as a cluster that is just starting gives it, for one
        # without an error, and aborts the process. Such a cluster is not asked, and no other more often than need be.
        await self._up()
        asked = (await self._connected()).describe_cluster(
            include_authorized_operations=True, request_timeout=self._timeout
        )
        try:
            described = await self._one(asked, "describe", "the cluster")
        except RequestUnsupported:
            return None
        return await self.known_operations(described)

    async def _brokers(self) -> list[int]:
        """Ids of those that are up now, at least one."""
        return list((await self._up()).brokers)

    async def _up(self) -> ClusterMetadata:
        """Of a cluster of which at least one broker is up."""
        metadata = await self._metadata(self._quick)
        if not metadata.brokers:
            raise ClusterUnreachable(self.alias, self.bootstrap, "none of its brokers is up yet")
        return metadata

    async def broker_config(self, name: str) -> str | None:
        """Return a config of one broker, "" where it is unset. None: we may not ask, or no broker knows it."""
        try:
            return (await self.broker_configs()).get(name)
        except (NotPermitted, RequestUnsupported):
            return None

    async def broker_configs(self) -> dict[str, str]:
        """Every config of one broker, "" where it is unset. Raises NotPermitted too: it needs DescribeConfigs on the
        cluster.
        """
        resource = ConfigResource(ConfigResource.Type.BROKER, str((await self._brokers())[0]))
        (future,) = (await self._connected()).describe_configs([resource], request_timeout=self._timeout).values()
        entries = await self._one(future, "describe configs of", "the brokers")
        return {str(name): entry.value or "" for name, entry in entries.items()}


def service_admin(settings: FlowSettings, alias: str, conf: Mapping[str, str]) -> Admin:
    """Return the administration of one cluster of a flow, as a service has it. `conf`: librdkafka's settings."""
    clients = settings.clients
    properties = clients.source_admin if alias == settings.flow.source else clients.target_admin
    return Admin(alias, conf, settings.admin_timeout, needed_access(settings, alias), properties)
