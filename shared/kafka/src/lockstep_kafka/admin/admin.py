"""The administration of one cluster: asyncio around librdkafka's AdminClient.

Every method raises `ClusterUnreachable` when no broker answered. It raises `NotPermitted` when the call as a whole was
denied, and `RequestRefused` when the cluster refused it as a whole. If a call is about many resources, the result of
each is in the `Outcome`. Nothing is retried here: callers retry in rounds.
"""

import asyncio
import socket
import time
from collections.abc import Mapping
from datetime import timedelta
from math import inf
from typing import Any

from confluent_kafka.admin import AdminClient, ClusterMetadata, ConfigResource

from lockstep_config import FlowSettings
from lockstep_config.credentials.permissions import needed_access
from lockstep_kafka.admin.acl_requests import AclRequests
from lockstep_kafka.admin.address_probe import ClientSecurity, ServerKind, probe_address, silence_sentence
from lockstep_kafka.admin.group_requests import GroupRequests
from lockstep_kafka.admin.offset_requests import OffsetRequests
from lockstep_kafka.admin.topic_requests import TopicRequests
from lockstep_kafka.common.errors import ClusterUnreachable, NotPermitted, RequestUnsupported

PROBE = timedelta(seconds=5)
"""Longest duration of one attempt to reach the cluster.

MM2's admin.timeout.ms (a minute) is for requests, not for finding out whether brokers answer.
"""


OPENED = timedelta(seconds=1)
"""Longest duration of opening a connection, if the caller needs the result at once."""

REFUSED_AGAIN_S = 0.2
"""Seconds between two attempts to connect to servers that refuse connections."""


async def find_connect_error(host: str, port: int, within: timedelta) -> str | None:
    """Return the reason why no TCP connection can be opened to this address, or None if one can."""
    try:
        await _connect(host, port, within)
    except TimeoutError:
        return f"no connection within {within.total_seconds():g} s"
    except (OSError, UnicodeError) as exc:
        return _refusal(exc)
    return None


async def _connect(host: str, port: int, within: timedelta) -> None:
    """Open a TCP connection, and close it.

    Raises:
        TimeoutError: It was not open after `within`.
        OSError: It was refused, or the host name is unknown.
        UnicodeError: The host is not a valid name.
    """
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


class Admin(TopicRequests, OffsetRequests, AclRequests, GroupRequests):
    """The administration of one cluster: its topics, logs, ACLs, groups, and the cluster itself."""

    _has_answered = False
    """True once a broker has answered at the bootstrap addresses."""
    _refusal: ClusterUnreachable | None = None
    """The error of the last client that could not be made, at the time `_refused_at`; None if there was none."""
    _refused_at = -inf

    async def probe(self, within: timedelta = PROBE) -> None:
        """Wait until a broker answers.

        Raises:
            ClusterUnreachable: Raised at once if something other than a broker answers. Raised after half of `within`
                if every address accepts connections and says nothing. Otherwise raised after `within`, with
                librdkafka's error.
        """
        silent = [] if self._has_answered else await self._require_broker(within)
        within_s = within.total_seconds() / (2 if silent else 1)
        try:
            await self._brokers_metadata(within_s)
        except ClusterUnreachable as exc:
            if not silent:
                raise
            sentence = silence_sentence(", ".join(silent), within_s)
            raise ClusterUnreachable(self.alias, self.bootstrap, sentence) from exc
        self._has_answered = True

    async def _require_broker(self, within: timedelta) -> list[str]:
        """Return the bootstrap addresses if all of them accept connections and stay silent, or an empty list.

        Raises:
            ClusterUnreachable: No address belongs to a broker of the configured security protocol.
        """
        client, addresses = ClientSecurity.of_librdkafka(self._conf), self._addresses
        probing = (probe_address(host, port, min(OPENED, within), client) for host, port in addresses)
        probes = await asyncio.gather(*probing)
        if probes and all(probe.fault for probe in probes):
            faults = dict.fromkeys(probe.fault for probe in probes)
            raise ClusterUnreachable(self.alias, self.bootstrap, "; ".join(faults))
        is_silent = all(probe.server is ServerKind.SILENT for probe in probes)
        return [entry.strip() for entry in self.bootstrap.split(",") if entry.strip()] if is_silent else []

    async def require_open(self, within: timedelta = OPENED, for_s: float = 0.0) -> None:
        """Require within `for_s` seconds a bootstrap address that takes connections and has a known name.

        librdkafka would try again until its timeout is over.

        Raises:
            ClusterUnreachable: No address can be connected to. With `for_s` 0 it is raised at once.
        """
        began = time.monotonic()
        while refusals := await self._refusals(within):
            if time.monotonic() - began >= for_s:
                raise ClusterUnreachable(self.alias, self.bootstrap, "; ".join(refusals))
            await asyncio.sleep(REFUSED_AGAIN_S)

    async def _refusals(self, within: timedelta) -> list[str]:
        """Return why each bootstrap address refuses connections, each reason once; empty if one of them may answer."""
        attempts = (_connect(host, port, within) for host, port in self._addresses)
        results = await asyncio.gather(*attempts, return_exceptions=True)
        refusals = [
            result
            for result in results
            if isinstance(result, OSError | UnicodeError) and not isinstance(result, TimeoutError)
        ]
        return list(dict.fromkeys(map(_refusal, refusals))) if len(refusals) == len(results) else []

    @property
    def _addresses(self) -> list[tuple[str, int]]:
        """Return host and port of each bootstrap server."""
        entries = (entry.strip().rpartition("://")[2].rpartition(":") for entry in self.bootstrap.split(","))
        return [(host.strip("[]"), int(port)) for host, _, port in entries if port]

    async def _make_client(self) -> AdminClient:
        if self._refused_s < inf:
            await self._require_open_once()
        return await super()._make_client()

    async def _require_open_once(self) -> None:
        """Return unless the cluster refuses connections for `refused_s`. Raises as `require_open`.

        A request that waited while another one was refused does not wait once more.
        """
        if self._refusal is not None and time.monotonic() - self._refused_at <= self._refused_s:
            raise self._refusal.with_traceback(None)
        self._refusal = None
        try:
            await self.require_open(for_s=self._refused_s)
        except ClusterUnreachable as refusal:
            self._refusal, self._refused_at = refusal, time.monotonic()
            raise

    async def unreachable_brokers(self, within: timedelta = PROBE) -> dict[str, str]:
        """Return the reasons why brokers cannot be reached at their advertised addresses.

        Clients connect to a bootstrap address first and to the advertised addresses afterwards. The whole check takes
        `within` at most. It raises the same errors as `probe`.

        Returns:
            The reason for each broker that cannot be reached, by `broker N at HOST:PORT`.
        """
        ends_at = time.monotonic() + within.total_seconds()
        brokers = (await self._brokers_metadata(within.total_seconds())).brokers.values()
        remaining = timedelta(seconds=max(0.0, ends_at - time.monotonic()))
        reasons = await asyncio.gather(
            *(find_connect_error(str(broker.host), broker.port, remaining) for broker in brokers)
        )
        return {
            f"broker {broker.id} at {broker.host}:{broker.port}": reason
            for broker, reason in zip(brokers, reasons, strict=True)
            if reason is not None
        }

    async def cluster_id(self) -> str:
        """Return the cluster id.

        Two aliases with the same id are the same cluster.
        """
        return str((await self._reachable_metadata()).cluster_id)

    async def broker_count(self) -> int:
        """Return the number of brokers, including brokers that are down now but hold replicas.

        Such brokers are known from the replicas of the topics that we may describe. A broker that restarts counts, so
        topics that are created meanwhile do not get fewer replicas for good.
        """
        metadata = self._require_brokers(await self._metadata(self._quick))
        parts = (part for topic in metadata.topics.values() for part in topic.partitions.values())
        return len(metadata.brokers.keys() | {replica for part in parts for replica in part.replicas})

    async def live_broker_count(self) -> int:
        """Return how many brokers are up now."""
        return len(await self._brokers())

    async def cluster_operations(self) -> frozenset[str] | None:
        """Return the operations that we may do on the cluster resource, in Kafka's upper-case words.

        If the cluster has no authorizer, all operations are returned. None means that its brokers do not report them.
        """
        # A cluster that is just starting answers without brokers. librdkafka (2.16) then aborts the process. So such
        # a cluster is not asked, and other clusters are asked seldom.
        await self._reachable_metadata()
        try:
            described = await self._again_if_closed(self._describe_cluster, "the cluster")
        except RequestUnsupported:
            return None
        return await self.known_operations(described)

    async def _describe_cluster(self, resource: str) -> Any:
        request = (await self._connected()).describe_cluster(
            include_authorized_operations=True, request_timeout=self._timeout
        )
        return await self._answer(request, "describe", resource)

    async def _brokers(self) -> list[int]:
        """Return the ids of the brokers that are up now, at least one."""
        return list((await self._reachable_metadata()).brokers)

    async def _reachable_metadata(self) -> ClusterMetadata:
        """Return the metadata of a cluster of which at least one broker is up, with at most one topic if it has many.

        Raises:
            ClusterUnreachable: No broker answered, or no broker is up yet.
        """
        return self._require_brokers(await self._brokers_metadata(self._quick))

    def _require_brokers(self, metadata: ClusterMetadata) -> ClusterMetadata:
        if not metadata.brokers:
            raise ClusterUnreachable(self.alias, self.bootstrap, "none of its brokers is up yet")
        return metadata

    async def broker_config(self, name: str) -> str | None:
        """Return a config of one broker, or "" if it is unset.

        None means that we may not read broker configs, or that the broker does not know this one.
        """
        try:
            return (await self.broker_configs()).get(name)
        except (NotPermitted, RequestUnsupported):
            return None

    async def broker_configs(self) -> dict[str, str]:
        """Return every config of one broker; an unset one is "".

        Raises:
            NotPermitted: DescribeConfigs on the cluster is missing.
        """
        entries = await self._again_if_closed(self._describe_broker_configs, "the brokers")
        return {str(name): entry.value or "" for name, entry in entries.items()}

    async def _describe_broker_configs(self, subject: str) -> Any:
        resource = ConfigResource(ConfigResource.Type.BROKER, str((await self._brokers())[0]))
        (future,) = (await self._connected()).describe_configs([resource], request_timeout=self._timeout).values()
        return await self._answer(future, "describe configs of", subject)


def service_admin(settings: FlowSettings, alias: str, conf: Mapping[str, str]) -> Admin:
    """Return the administration of one cluster of a flow, with the settings that services use.

    Args:
        settings: The settings of the flow.
        alias: The cluster's alias in the flow.
        conf: librdkafka's settings.
    """
    clients = settings.clients
    properties = clients.source_admin if alias == settings.flow.source else clients.target_admin
    return Admin(alias, conf, settings.admin_timeout, needed_access(settings, alias), properties)
