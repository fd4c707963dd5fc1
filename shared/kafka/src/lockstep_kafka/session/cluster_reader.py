"""The requests that a cluster knows, asked of every broker at its advertised address."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from lockstep_config.flow.client_settings import wire_connection
from lockstep_kafka.session.broker_session import BrokerSession, SessionRefused
from lockstep_kafka.session.request_probe import find_refused_requests
from lockstep_kafka.wire.cluster import bootstrap_addresses
from lockstep_rules.clusters.cluster_capabilities import known_versions, shared_versions
from lockstep_rules.clusters.cluster_kind import ApiVersions, guess_cluster_kind
from lockstep_state.kafka.kafka_requests import KafkaRequest as Request

ASKED_AT_MOST = 16
"""Largest number of brokers of a cluster that are asked. Brokers of one cluster seldom differ."""


@dataclass(frozen=True, slots=True)
class ClusterReading:
    """The request versions that the brokers of one cluster announce."""

    cluster_id: str
    kind: str
    """The guessed kind of cluster, for people."""
    announced: ApiVersions
    """Versions that every broker announces that was asked."""
    refused: frozenset[Request] = frozenset()
    """Requests that were tried, and that a broker announces and does not know all the same."""

    @property
    def versions(self) -> ApiVersions:
        """Return the versions that every broker knows that was asked."""
        return known_versions(self.announced, self.refused)


async def read_cluster_versions(
    properties: Mapping[str, str], client_id: str, timeout_s: float, tried: Collection[Request] = ()
) -> ClusterReading:
    """Ask the first bootstrap server that answers, then the brokers that it names.

    Args:
        properties: Java properties of a client.
        client_id: The client id for the brokers.
        timeout_s: Seconds that each connection and each answer may take.
        tried: Requests that the first of the brokers is asked to carry out (`request_probe.py`).

    Raises:
        SessionRefused: No bootstrap server lets us in, or one of the brokers does not.
        BrokerRequestFailed: A broker does not say which brokers there are.
        OSError: Certificates cannot be read.
    """
    arguments = await _arguments(properties, client_id, timeout_s)
    servers = bootstrap_addresses(properties)
    session = await _open_first(servers, arguments)
    try:
        cluster_id, brokers = await session.metadata()
        announced = [session.versions]
    finally:
        session.close()
    addresses = [(broker.host, broker.port) for broker in brokers[:ASKED_AT_MOST]]
    announced += await asyncio.gather(*(_read_versions(host, port, arguments) for host, port in addresses))
    versions = shared_versions(announced)
    hosts = [host for host, _ in (*servers, *addresses)]
    host, port = (addresses or servers)[0]
    refused = await find_refused_requests(partial(BrokerSession.open, host, port, arguments), tried)
    return ClusterReading(cluster_id, guess_cluster_kind(versions, cluster_id, hosts), versions, refused)


async def says_cluster_operations(properties: Mapping[str, str], client_id: str, timeout_s: float) -> bool:
    """Return whether the first bootstrap server that answers reports what a client may do on the cluster.

    A report of no operation counts too.

    Raises:
        SessionRefused: No bootstrap server lets us in.
        BrokerRequestFailed: The server did not answer the request.
        OSError: Certificates cannot be read.
    """
    arguments = await _arguments(properties, client_id, timeout_s)
    session = await _open_first(bootstrap_addresses(properties), arguments)
    try:
        return await session.says_cluster_operations()
    finally:
        session.close()


async def _arguments(properties: Mapping[str, str], client_id: str, timeout_s: float) -> dict[str, Any]:
    return await asyncio.to_thread(wire_connection, properties, client_id, timeout_s)


async def _open_first(servers: list[tuple[str, int]], arguments: Mapping[str, Any]) -> BrokerSession:
    for number, (host, port) in enumerate(servers, start=1):
        try:
            return await BrokerSession.open(host, port, arguments)
        except SessionRefused:
            if number == len(servers):
                raise
    raise ValueError("no bootstrap server is named")


async def _read_versions(host: str, port: int, arguments: Mapping[str, Any]) -> ApiVersions:
    session = await BrokerSession.open(host, port, arguments)
    session.close()
    return session.versions
