"""Lockstep on two clusters with logins and TLS, whose credentials are replaced while it runs."""

import json
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from cryptography.x509 import load_pem_x509_certificates

from lockstep_state.names import Flow
from tests.support.broker import Broker, started
from tests.support.clusters import (
    Record,
    commit_offset,
    committed_offset,
    create_topic,
    end_offsets,
    produce,
    read_topic,
)
from tests.support.eventually import wait_until
from tests.support.metrics import read_page, values
from tests.support.mirror import MirroredFlow
from tests.support.processes import end, spawn, tail
from tests.support.proxy import Proxy
from tests.support.rotating import USER, Authority, Mount, guarded, set_password
from tests.support.runs import service_pids
from tests.support.topic_comparison import compare
from tests.support.traffic import Traffic

FLOW = Flow("A", "B")
SERVICES = ("data-plane", "topic-sync", "acl-sync", "checkpoint", "heartbeat")
TAKEN_UP_WITHIN = 180.0
PARTITIONS = 3
PROVIDER = "org.apache.kafka.common.config.provider.FileConfigProvider"


@dataclass
class Scene:
    """Two clusters, what is mounted for their clients, and the run between them."""

    a: Broker
    b: Broker
    mount: Mount
    log: Path
    run: psutil.Process
    pids: dict[str, int] = field(default_factory=dict)
    topics: list[str] = field(default_factory=list)

    @property
    def brokers(self) -> tuple[Broker, Broker]:
        return self.a, self.b

    @property
    def flow(self) -> MirroredFlow:
        return MirroredFlow(FLOW, self.a.bootstrap, self.b.bootstrap)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def said(self, message: str, service: str = "", since: int = 0) -> list[dict[str, Any]]:
        return [
            line
            for line in self.lines()[since:]
            if line["message"].startswith(message) and service in ("", line["service"])
        ]

    def alive(self) -> bool:
        assert self.run.is_running(), tail(self.log)
        return True

    def until_said(self, message: str) -> None:
        wait_until(
            lambda: self.alive() and self.said(message), within=TAKEN_UP_WITHIN, every=0.5, what=f"{message!r} is said"
        )

    def service_pids(self) -> dict[str, int]:
        return service_pids(self.run)

    def addresses(self) -> dict[str, str]:
        return {line["service"]: line["address"] for line in self.said("started") if "address" in line}

    def configurations(self) -> dict[str, dict[str, Any]]:
        return {name: page(address)["configuration"] for name, address in self.addresses().items()}

    def renewals(self) -> dict[str, int]:
        return {name: configuration["credentials_renewed_ms"] for name, configuration in self.configurations().items()}

    def until_taken_up(self, before: Mapping[str, int]) -> None:
        """Wait until every service has read its configuration again since `before`."""

        def all_did() -> bool:
            now = self.renewals()
            return self.alive() and all(now[name] > before[name] for name in SERVICES)

        wait_until(all_did, within=TAKEN_UP_WITHIN, every=0.5, what="all services took it up")

    def cut(self) -> None:
        """End every connection that was made before."""
        for broker in self.brokers:
            assert broker.proxy is not None
            broker.proxy.cut()

    def until_it_goes_on(self) -> None:
        """Wait until each topic so far is copied on, from now on."""
        for topic in self.topics:
            before = end_offsets(self.b.bootstrap, f"A.{topic}")

            def grown(topic: str = topic, before: Mapping[int, int] = before) -> bool:
                now = end_offsets(self.b.bootstrap, f"A.{topic}")
                return self.alive() and all(now[number] > before[number] for number in before)

            wait_until(grown, within=TAKEN_UP_WITHIN, every=0.5, what=f"the copy of {topic} goes on")

    def until_all_work(self, mark: str) -> None:
        """Wait until every service works: a command is answered, a new topic is mirrored, the flow beats, a group is
        checkpointed."""
        topic = create_topic(self.a.bootstrap, f"rotate-{mark}")
        produce(self.a.bootstrap, topic, [Record(b"k", b"%d" % number) for number in range(10)])
        group = f"group-{mark}"
        commit_offset(self.a.bootstrap, group, topic, 0, 7)
        heard = self.beats()
        assert self.flow.ask("refresh", "flow").kind == "Refreshed"
        self.flow.wait_mirrored(topic, within=TAKEN_UP_WITHIN)

        def checkpointed() -> bool:
            return committed_offset(self.b.bootstrap, group, f"A.{topic}", 0) == 7

        wait_until(checkpointed, within=TAKEN_UP_WITHIN, every=0.5, what=f"{group} stands on the target")
        wait_until(lambda: self.beats() > heard, within=TAKEN_UP_WITHIN, every=0.5, what="heartbeats go on")
        wait_until(lambda: self.leading() == set(SERVICES), within=TAKEN_UP_WITHIN, every=0.5, what="all lead")

    def leading(self) -> set[str]:
        """Return the services that act in the flow now."""
        return {name for name, address in self.addresses().items() if page(address)["flows"][str(FLOW)]["acting"]}

    def beats(self) -> int:
        return sum(end_offsets(self.b.bootstrap, "heartbeats").values())

    def until_pages_tell_end_of(self, certificate: Path) -> None:
        """Wait until each service's page says when the certificate ends that it shows to both clusters."""
        (ends,) = {
            loaded.not_valid_after_utc.timestamp() for loaded in load_pem_x509_certificates(certificate.read_bytes())
        }
        name = "lockstep_certificate_expires_timestamp_seconds"

        def all_pages_have_it() -> bool:
            pages = [read_page(text(f"{address}/metrics")) for address in self.addresses().values()]
            return all(values(page, name, use="keystore") == [ends, ends] for page in pages)

        wait_until(
            all_pages_have_it, within=TAKEN_UP_WITHIN, every=0.5, what="every page tells when the certificate ends"
        )

    def check_copies(self) -> None:
        """Check that nothing is lost, nothing is doubled, and the order is kept."""
        for topic in self.topics:
            self.flow.wait_written_down(topic, within=TAKEN_UP_WITHIN)
            comparison = compare(read_topic(self.a.bootstrap, topic), read_topic(self.b.bootstrap, f"A.{topic}"))
            assert comparison.equal, comparison
            assert comparison.compared > 500

    def check_nothing_restarted(self) -> None:
        assert self.service_pids() == self.pids
        for service in SERVICES:
            assert len(self.said("started", service)) == 1
            assert not self.said("crashed", service)


def text(address: str) -> str:
    with urllib.request.urlopen(address, timeout=10.0) as answer:  # noqa: S310 - our own address
        read: bytes = answer.read()
    return read.decode()


def page(address: str) -> dict[str, Any]:
    """Return a service's /status."""
    status: dict[str, Any] = json.loads(text(f"{address}/status"))
    return status


def secrets(a: str, b: str) -> str:
    return f"a={a}\nb={b}\n"


@dataclass
class Clusters:
    """Both, and what is mounted for their clients."""

    a: Broker
    b: Broker
    mount: Mount
    file: Path


@contextmanager
def started_clusters(folder: Path, authority: Authority) -> Iterator[Clusters]:
    """Yield two clusters behind proxies, whose certificates and clients' credentials are of this authority."""
    trusted = folder / "trusted.pem"
    trusted.write_text(authority.certificate.read_text())
    mount = Mount(
        folder / "secret",
        {
            "passwords.properties": secrets("first-a", "first-b"),
            "ca.pem": authority.certificate.read_text(),
            "user.pem": authority.issue(USER).read_text(),
        },
    )
    with ExitStack() as stack:
        brokers = []
        for alias in "AB":
            identity = folder / f"{alias}.pem"
            identity.write_text(authority.issue("broker").read_text())
            brokers.append(guarded(alias, stack.enter_context(Proxy()), identity, trusted))
        stack.enter_context(started(*brokers))
        for broker, password in zip(brokers, ("first-a", "first-b"), strict=True):
            set_password(broker, password)
        file = folder / "mm2.properties"
        file.write_text(settings_text(brokers, mount))
        yield Clusters(brokers[0], brokers[1], mount, file)


@contextmanager
def running(clusters: Clusters, log: Path) -> Iterator[Scene]:
    """Yield `lockstep run` between them, once every service leads."""
    command = [sys.executable, "-m", "lockstep_cli", "run", str(clusters.file), "--log-format", "json"]
    process = spawn(command, output=log)
    try:
        running_scene = Scene(clusters.a, clusters.b, clusters.mount, log, psutil.Process(process.pid))
        wait_until(
            lambda: running_scene.alive() and running_scene.said("ready: "),
            within=240.0,
            every=0.5,
            what="the run is ready",
        )
        wait_until(lambda: running_scene.leading() == set(SERVICES), within=120.0, every=0.5, what="all lead")
        running_scene.pids = running_scene.service_pids()
        assert set(running_scene.pids) == set(SERVICES)
        yield running_scene
    finally:
        end(process)


def settings_text(brokers: list[Broker], mount: Mount) -> str:
    lines = [
        "clusters = A, B",
        "config.providers = file",
        f"config.providers.file.class = {PROVIDER}",
        "A->B.enabled = true",
        "A->B.topics = rotate-.*",
        "A->B.tasks.max = 2",
        "A->B.sync.group.offsets.enabled = true",
        "B->A.emit.heartbeats.enabled = false",
        "emit.checkpoints.interval.seconds = 1",
        "sync.group.offsets.interval.seconds = 1",
        "refresh.groups.interval.seconds = 1",
        *(
            f"{topic}.replication.factor = 1"
            for topic in ("checkpoints.topic", "heartbeats.topic", "offset-syncs.topic", "offset.storage")
        ),
        "replication.factor = 1",
        "security.protocol = SASL_SSL",
        "sasl.mechanism = SCRAM-SHA-512",
        "ssl.truststore.type = PEM",
        f"ssl.truststore.location = {mount.file('ca.pem')}",
        "ssl.keystore.type = PEM",
        f"ssl.keystore.location = {mount.file('user.pem')}",
    ]
    for broker in brokers:
        assert broker.proxy is not None
        password = f"${{file:{mount.file('passwords.properties')}:{broker.alias.lower()}}}"
        lines += [
            f"{broker.alias}.bootstrap.servers = {broker.proxy.bootstrap}",
            f"{broker.alias}.sasl.jaas.config = org.apache.kafka.common.security.scram.ScramLoginModule required "
            f'username="{USER}" password="{password}";',
        ]
    return "\n".join(lines) + "\n"


def traffic(scene: Scene, mark: str) -> Traffic:
    topic = create_topic(scene.a.bootstrap, f"rotate-traffic-{mark}", partitions=PARTITIONS)
    scene.topics.append(topic)
    return Traffic(scene.a.bootstrap, topic, partitions=PARTITIONS, rate=300.0)
