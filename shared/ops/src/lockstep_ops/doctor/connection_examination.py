"""Examines the connection to one cluster: names, addresses, TLS handshake, login, and the brokers that it names."""

import asyncio
import contextlib
import ipaddress
import socket
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from lockstep_config.clients.librdkafka import read_protocol, uses_sasl, uses_tls
from lockstep_config.clients.principal import find_principal
from lockstep_config.clients.sasl import read_login
from lockstep_config.clients.tls import read_tls
from lockstep_config.credentials.certificate_expiry import connection_ends, first_end
from lockstep_config.flow.client_settings import LOCKSTEP, wire_connection
from lockstep_kafka.admin.address_probe import (
    AddressProbe,
    ClientSecurity,
    ServerKind,
    probe_address,
    silence_sentence,
)
from lockstep_kafka.admin.admin import OPENED, PROBE, find_connect_error
from lockstep_kafka.common.auth_errors import login_name, refused_login
from lockstep_kafka.session.broker_session import AdvertisedBroker, BrokerRequestFailed, BrokerSession, SessionRefused
from lockstep_kafka.session.request_probe import find_refused_requests
from lockstep_ops.doctor.checks.access_facts import (
    AccessFacts,
    AddressConnection,
    BrokerFacts,
    HostAddresses,
    LoginOutcome,
    ServedCertificate,
    StoreEnd,
    TlsFault,
)
from lockstep_ops.doctor.handshake import read_certificate
from lockstep_rules.clusters.cluster_capabilities import known_versions
from lockstep_state.kafka.kafka_apis import OF_BOTH, unfit_requests
from lockstep_state.kafka.kafka_requests import KafkaRequest
from lockstep_state.opening_step import OpeningStep

ROUND_TRIPS = 9

AT_ONCE = 8
"""The number of brokers to which it connects at a time."""

CLOSED_WITHIN_S = 1.0

CLIENT_ID = f"{LOCKSTEP}|doctor"


class ConnectionExamination:
    """An examination of the connection to one cluster, as clients with these connection properties make it.

    `session` is open after `examine` if the login succeeded: close it.

    Args:
        subject: The name of the cluster in findings.
        properties: The connection properties.
        within_s: The seconds of each attempt.
        required: The requests that the cluster must know.
        tried: The requests that it is asked to carry out, without a change (`request_probe.py`).
    """

    def __init__(
        self,
        subject: str,
        properties: Mapping[str, str],
        within_s: float,
        required: Collection[str] = OF_BOTH,
        tried: Collection[KafkaRequest] = (),
    ) -> None:
        self._properties = properties
        self._within = min(PROBE.total_seconds(), within_s)
        self._required = required
        self._tried = tried
        self.facts = AccessFacts(subject, read_protocol(properties))
        self.session: BrokerSession | None = None

    async def resolve(self) -> None:
        """Resolve the bootstrap servers."""
        hosts = await asyncio.gather(*(self._resolve(host, port) for host, port in self._servers()))
        self.facts = replace(self.facts, hosts=tuple(hosts))

    async def examine(self) -> None:
        """Examine names, connections, TLS, login and brokers, as far as the cluster allows."""
        await self.resolve()
        if not any(host.addresses for host in self.facts.hosts):
            return
        wanted = [(host, address) for host in self.facts.hosts for address in host.addresses]
        connections = await asyncio.gather(*(self._connect(host, address) for host, address in wanted))
        self.facts = replace(self.facts, connections=tuple(connections))
        servers = list(dict.fromkeys((reached.host, reached.port) for reached in connections if not reached.reason))
        if not servers:
            return
        if self.facts.has_tls and not await self._read_tls(servers):
            return
        await self._log_in(*servers[0])
        if self.session is not None:
            await self._read_brokers(self.session, servers)

    def give_up(self, reason: str) -> None:
        """Take it that no address answers, because the examination could not end."""
        hosts = self.facts.hosts or tuple(HostAddresses(host, port, reason=reason) for host, port in self._servers())
        connections = (
            AddressConnection(host.host, address, host.port, reason) for host in hosts for address in host.addresses
        )
        self.facts = AccessFacts(self.facts.alias, self.facts.protocol, hosts=hosts, connections=tuple(connections))

    def _servers(self) -> list[tuple[str, int]]:
        return [_server(entry) for entry in self._properties["bootstrap.servers"].split(",") if entry.strip()]

    async def close(self) -> None:
        """Close the connection if it is open."""
        await _close(self.session)

    async def _resolve(self, host: str, port: int) -> HostAddresses:
        with contextlib.suppress(ValueError):
            return HostAddresses(host, port, (str(ipaddress.ip_address(host)),), is_literal=True)
        try:
            async with asyncio.timeout(self._within):
                addresses = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except TimeoutError:
            return HostAddresses(host, port, reason=f"no answer within {self._within:g} s")
        except (OSError, UnicodeError) as exc:
            return HostAddresses(host, port, reason=getattr(exc, "strerror", None) or str(exc))
        return HostAddresses(host, port, tuple(dict.fromkeys(str(address[4][0]) for address in addresses)))

    async def _connect(self, host: HostAddresses, address: str) -> AddressConnection:
        began = time.perf_counter()
        reason = await find_connect_error(address, host.port, timedelta(seconds=self._within))
        return AddressConnection(host.host, address, host.port, reason or "", (time.perf_counter() - began) * 1e3)

    async def _read_tls(self, servers: Sequence[tuple[str, int]]) -> bool:
        """Read stores and certificates. Return whether a login can be tried.

        It can if the stores can be read, and some port speaks TLS.
        """
        try:
            ends = await asyncio.to_thread(connection_ends, self.facts.alias, [self._properties])
        except OSError as exc:
            self.facts = replace(self.facts, store_trouble=str(exc))
            return False
        tls = read_tls(self._properties)
        self.facts = replace(
            self.facts,
            checks_name=tls.check_hostname,
            store_ends=tuple(StoreEnd(end.use, first_end(end, time.time())) for end in ends),
        )
        await self._read_certificates(servers)
        if any(not certificate.fault for certificate in self.facts.certificates):
            return True
        without_tls = [await self._name_server(certificate) for certificate in self.facts.certificates]
        self.facts = replace(self.facts, certificates=tuple(without_tls))
        return False

    async def _name_server(self, certificate: ServedCertificate) -> ServedCertificate:
        """Return the facts of a port with a sentence about what answers there, if it speaks no TLS."""
        if certificate.fault is not TlsFault.PROTOCOL:
            return certificate
        probe = await self._probe(certificate.host, certificate.port)
        return replace(certificate, reason=probe.fault) if probe.fault else certificate

    async def _probe(self, host: str, port: int) -> AddressProbe:
        """Return what answers at an address, for a client with these properties."""
        tls, mechanism = read_tls(self._properties), self._mechanism
        client = ClientSecurity(
            uses_tls(self._properties), mechanism, tls.identity_file is not None or tls.chain_pem is not None
        )
        return await probe_address(host, port, min(OPENED, timedelta(seconds=self._within)), client)

    @property
    def _mechanism(self) -> str:
        """Return the SASL mechanism that is configured, or "" without a login."""
        properties = self._properties
        return properties.get("sasl.mechanism", "").strip().upper() if uses_sasl(properties) else ""

    async def _read_certificates(self, servers: Iterable[tuple[str, int]]) -> None:
        """Add the certificates that these ports serve."""
        tls, bound = read_tls(self._properties), asyncio.Semaphore(AT_ONCE)

        async def read(host: str, port: int) -> Any:
            async with bound:
                return await asyncio.to_thread(read_certificate, host, port, tls, self._within)

        certificates = await asyncio.gather(*(read(host, port) for host, port in servers))
        self.facts = replace(self.facts, certificates=(*self.facts.certificates, *certificates))

    async def _log_in(self, host: str, port: int) -> None:
        properties = self._properties
        mechanism = self._mechanism
        has_tokens = bool(mechanism) and read_login(properties).tokens is not None
        outcome = LoginOutcome(
            place=f"{host}:{port}",
            protocol=self.facts.protocol,
            mechanism="OAUTHBEARER" if has_tokens else mechanism,
            login=find_principal(properties) or "",
            step=OpeningStep.OPEN,
            has_tokens=has_tokens,
        )
        try:
            self.session = await self._open(host, port)
        except SessionRefused as exc:
            login = {"sasl.mechanism": mechanism, "sasl.username": outcome.login.removeprefix("User:")}
            reason = refused_login(exc.message, login_name(login) if mechanism else "")
            step = exc.step
            if step in (OpeningStep.CONNECTION, OpeningStep.VERSIONS, OpeningStep.MECHANISM):
                probe = await self._probe(host, port)
                is_silent = probe.server is ServerKind.SILENT
                reason = probe.fault or (silence_sentence(f"{host}:{port}", self._within) if is_silent else reason)
                step = OpeningStep.VERSIONS if probe.fault else step
            self.facts = replace(self.facts, login=replace(outcome, step=step, reason=reason, offered=exc.offered))
            return
        outcome = replace(
            outcome,
            offered=self.session.offered,
            is_broker=self.session.is_broker,
            login=find_principal(properties) or "",
        )
        self.facts = replace(self.facts, login=outcome)

    async def _open(self, host: str, port: int) -> BrokerSession:
        try:
            settings = wire_connection(self._properties, CLIENT_ID, self._within)
        except OSError as exc:
            raise SessionRefused(OpeningStep.CONNECTION, str(exc)) from exc
        return await BrokerSession.open(host, port, settings)

    async def _read_brokers(self, session: BrokerSession, servers: Sequence[tuple[str, int]]) -> None:
        """Read the brokers. The first of the servers has accepted the login, and certificates of all were read."""
        if not session.is_broker:
            return
        try:
            cluster_id, brokers = await session.metadata()
        except BrokerRequestFailed as exc:
            self.facts = replace(self.facts, brokers_trouble=str(exc))
            await self._name_refusal(*servers[0])
            return
        self.facts = replace(self.facts, refused=await self._find_refused(*servers[0]))
        bound = asyncio.Semaphore(AT_ONCE)
        facts = await asyncio.gather(*(self._read_broker(broker, bound) for broker in brokers))
        self.facts = replace(self.facts, cluster_id=cluster_id, brokers=tuple(facts))
        if uses_tls(self._properties):
            reached = ((broker.host, broker.port) for broker in facts if not broker.reason)
            await self._read_certificates(server for server in reached if server not in servers)

    async def _name_refusal(self, host: str, port: int) -> None:
        """Take it that no broker lets us in, if the port that was opened refuses every request of this protocol."""
        outcome = self.facts.login
        if outcome is not None and (fault := (await self._probe(host, port)).fault):
            self.facts = replace(self.facts, login=replace(outcome, step=OpeningStep.VERSIONS, reason=fault))
            await _close(self.session)
            self.session = None

    async def _find_refused(self, host: str, port: int) -> frozenset[KafkaRequest]:
        """Return the requests that the server which accepted the login announces and does not know all the same."""
        try:
            return await find_refused_requests(lambda: self._open(host, port), self._tried)
        except SessionRefused:
            return frozenset()  # the brokers are asked next, and say what is wrong

    async def _read_broker(self, broker: AdvertisedBroker, bound: asyncio.Semaphore) -> BrokerFacts:
        """Connect to the broker, and log in if it can be reached."""
        facts = BrokerFacts(broker.id, broker.host, broker.port)
        async with bound:
            if reason := await find_connect_error(broker.host, broker.port, timedelta(seconds=self._within)):
                return replace(facts, reason=reason)
            session = None
            try:
                session = await self._open(broker.host, broker.port)
                trips = await session.round_trips(ROUND_TRIPS)
            except (SessionRefused, BrokerRequestFailed) as exc:
                return replace(facts, trouble=refused_login(str(exc)))
            finally:
                await _close(session)
            unfit = unfit_requests(known_versions(session.versions, self.facts.refused), self._required)
            return replace(facts, unfit=unfit, round_trips_s=trips, versions=session.versions)


async def _close(session: BrokerSession | None) -> None:
    """Close a connection, and wait a little for its end. With TLS that depends on the broker."""
    closing = None if session is None else session.close()
    if closing is not None:
        await asyncio.wait({closing}, timeout=CLOSED_WITHIN_S)


def _server(entry: str) -> tuple[str, int]:
    """Return host and port of a bootstrap server. As in Kafka, `PLAINTEXT://host:port` is one too."""
    host, _, port = entry.strip().rpartition(":")
    return host.rpartition("://")[2].strip("[]"), int(port)
