"""Passwords and certificates that change under `lockstep run`, with records coming in all the while."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from cryptography.x509 import load_pem_x509_certificates

from lockstep_protocol.names import Flow
from tests.faults.unleased import Unleased
from tests.support.broker import Broker, started
from tests.support.clusters import (
    Record,
    commit_offset,
    committed_offset,
    compare,
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
from tests.support.services import ServiceProcess
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
        found: dict[str, int] = {}
        for child in self.run.children():
            command = " ".join(child.cmdline())
            found |= {name: child.pid for name in SERVICES if f"lockstep_{name.replace('-', '_')} " in command}
        return found

    def addresses(self) -> dict[str, str]:
        return {line["service"]: line["address"] for line in self.said("started") if "address" in line}

    def configurations(self) -> dict[str, dict[str, Any]]:
        return {name: page(at)["configuration"] for name, at in self.addresses().items()}

    def renewals(self) -> dict[str, int]:
        return {name: one["credentials_renewed_ms"] for name, one in self.configurations().items()}

    def until_taken_up(self, before: Mapping[str, int]) -> None:
        """By every service, since `before`."""

        def all_did() -> bool:
            now = self.renewals()
            return self.alive() and all(now[name] > before[name] for name in SERVICES)

        wait_until(all_did, within=TAKEN_UP_WITHIN, every=0.5, what="all services took it up")

    def cut(self) -> None:
        """Ends every connection that was made before."""
        for broker in self.brokers:
            assert broker.proxy is not None
            broker.proxy.cut()

    def until_it_goes_on(self) -> None:
        """Each topic so far is copied on, from now on."""
        for topic in self.topics:
            before = end_offsets(self.b.bootstrap, f"A.{topic}")

            def grown(topic: str = topic, before: Mapping[int, int] = before) -> bool:
                now = end_offsets(self.b.bootstrap, f"A.{topic}")
                return self.alive() and all(now[number] > before[number] for number in before)

            wait_until(grown, within=TAKEN_UP_WITHIN, every=0.5, what=f"the copy of {topic} goes on")

    def until_all_work(self, mark: str) -> None:
        """Every service does what it is for: a command is answered, a new topic is mirrored, the flow beats, a group is
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
        """The services that act in the flow now."""
        return {name for name, at in self.addresses().items() if page(at)["flows"][str(FLOW)]["acting"]}

    def beats(self) -> int:
        return sum(end_offsets(self.b.bootstrap, "heartbeats").values())

    def until_pages_tell_end_of(self, certificate: Path) -> None:
        """Each service's page says when the certificate ends that it shows to both clusters."""
        (ends,) = {one.not_valid_after_utc.timestamp() for one in load_pem_x509_certificates(certificate.read_bytes())}
        name = "lockstep_certificate_expires_timestamp_seconds"

        def told() -> bool:
            pages = [read_page(text(f"{at}/metrics")) for at in self.addresses().values()]
            return all(values(page, name, use="keystore") == [ends, ends] for page in pages)

        wait_until(told, within=TAKEN_UP_WITHIN, every=0.5, what="every page tells when the certificate ends")

    def check_copies(self) -> None:
        """Nothing is lost, nothing is doubled, the order is kept."""
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
    """A service's /status."""
    found: dict[str, Any] = json.loads(text(f"{address}/status"))
    return found


def secrets(a: str, b: str) -> str:
    return f"a={a}\nb={b}\n"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"), "first")


@dataclass
class Clusters:
    """Both, and what is mounted for their clients."""

    a: Broker
    b: Broker
    mount: Mount
    file: Path


@pytest.fixture
def clusters(tmp_path: Path, authority: Authority) -> Iterator[Clusters]:
    trusted = tmp_path / "trusted.pem"
    trusted.write_text(authority.certificate.read_text())
    mount = Mount(
        tmp_path / "secret",
        {
            "passwords.properties": secrets("first-a", "first-b"),
            "ca.pem": authority.certificate.read_text(),
            "user.pem": authority.issue(USER).read_text(),
        },
    )
    with ExitStack() as stack:
        brokers = []
        for alias in "AB":
            identity = tmp_path / f"{alias}.pem"
            identity.write_text(authority.issue("broker").read_text())
            brokers.append(guarded(alias, stack.enter_context(Proxy()), identity, trusted))
        stack.enter_context(started(*brokers))
        for broker, password in zip(brokers, ("first-a", "first-b"), strict=True):
            set_password(broker, password)
        file = tmp_path / "mm2.properties"
        file.write_text(_text(brokers, mount))
        yield Clusters(brokers[0], brokers[1], mount, file)


@pytest.fixture
def scene(clusters: Clusters, tmp_path: Path) -> Iterator[Scene]:
    log = tmp_path / "run.log"
    command = [sys.executable, "-m", "lockstep_cli", "run", str(clusters.file), "--log-format", "json"]
    process = spawn(command, output=log)
    try:
        found = Scene(clusters.a, clusters.b, clusters.mount, log, psutil.Process(process.pid))
        wait_until(lambda: found.alive() and found.said("ready: "), within=240.0, every=0.5, what="the run is ready")
        wait_until(lambda: found.leading() == set(SERVICES), within=120.0, every=0.5, what="all lead")
        found.pids = found.service_pids()
        assert set(found.pids) == set(SERVICES)
        yield found
    finally:
        end(process, within=15.0)


def _text(brokers: list[Broker], mount: Mount) -> str:
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


@pytest.mark.long  # about a minute
@pytest.mark.timeout(600)
def test_a_password_is_replaced_broker_first_and_file_first(scene: Scene) -> None:
    with traffic(scene, "passwords"):
        scene.flow.wait_mirrored(scene.topics[0], partitions=PARTITIONS)
        scene.until_it_goes_on()

        before = scene.renewals()
        for broker, password in zip(scene.brokers, ("second-a", "second-b"), strict=True):
            set_password(broker, password)
        scene.cut()  # from here on the former one opens nothing
        scene.mount.replace({"passwords.properties": secrets("second-a", "second-b")})
        scene.until_taken_up(before)
        scene.until_it_goes_on()
        scene.cut()
        scene.until_it_goes_on()
        scene.until_all_work("broker-first")

        before, since = scene.renewals(), len(scene.lines())
        scene.mount.replace({"passwords.properties": secrets("third-a", "third-b")})
        wait_until(
            lambda: {line["service"] for line in scene.said("credentials not taken up", since=since)} == set(SERVICES),
            within=TAKEN_UP_WITHIN,
            every=0.5,
            what="each service says that it waits",
        )
        assert scene.renewals() == before
        scene.until_it_goes_on()  # as the one that it was
        for broker, password in zip(scene.brokers, ("third-a", "third-b"), strict=True):
            set_password(broker, password)
        scene.until_taken_up(before)
        scene.until_it_goes_on()
        scene.cut()
        scene.until_it_goes_on()
        scene.until_all_work("file-first")
    scene.check_copies()
    scene.check_nothing_restarted()


@pytest.mark.long  # half a minute
def test_a_service_that_crashes_while_a_secret_is_half_written_comes_back(scene: Scene) -> None:
    scene.mount.replace({"passwords.properties": "a=first-a\n"})  # the rest is still to come
    psutil.Process(scene.pids["heartbeat"]).kill()
    scene.until_said("heartbeat ended with exit code 2")
    scene.mount.replace({"passwords.properties": secrets("first-a", "first-b")})
    scene.until_said("heartbeat is ready again")
    wait_until(lambda: scene.leading() == set(SERVICES), within=TAKEN_UP_WITHIN, every=0.5, what="all lead")
    now = scene.service_pids()
    assert {name for name in SERVICES if now[name] != scene.pids[name]} == {"heartbeat"}


@pytest.mark.long  # about a minute
@pytest.mark.timeout(600)
def test_a_client_certificate_and_an_authority_are_replaced(scene: Scene, authority: Authority, tmp_path: Path) -> None:
    second = Authority(tmp_path, "second")
    both = authority.certificate.read_text() + second.certificate.read_text()
    with traffic(scene, "certificates"):
        scene.flow.wait_mirrored(scene.topics[0], partitions=PARTITIONS)
        scene.until_it_goes_on()

        # As it is done: everybody trusts both, then everybody is somebody by the new one, then the old one goes.
        (tmp_path / "trusted.pem").write_text(both)
        before = scene.renewals()
        scene.mount.replace({"ca.pem": both})
        scene.until_taken_up(before)
        for broker in scene.brokers:
            broker.restart()
        scene.until_it_goes_on()

        before = scene.renewals()
        renewed = second.issue(USER)
        scene.mount.replace({"user.pem": renewed.read_text()})
        scene.until_taken_up(before)
        scene.until_it_goes_on()
        scene.until_pages_tell_end_of(renewed)

        (tmp_path / "trusted.pem").write_text(second.certificate.read_text())
        for broker in scene.brokers:
            (tmp_path / f"{broker.alias}.pem").write_text(second.issue("broker").read_text())
            broker.restart()
        scene.until_it_goes_on()
        scene.until_all_work("certificates")
    scene.check_copies()
    scene.check_nothing_restarted()


@pytest.mark.long  # half a minute
def test_slot_renews_credentials_replaced_on_its_own_host(
    clusters: Clusters, authority: Authority, tmp_path: Path
) -> None:
    """One that no driver tells anything: as on another host, where files are replaced after the driver's."""
    flow = MirroredFlow(FLOW, clusters.a.bootstrap, clusters.b.bootstrap)
    second = Authority(tmp_path, "second")
    topic = create_topic(clusters.a.bootstrap, "rotate-traffic-slot", partitions=PARTITIONS)
    with ServiceProcess("lockstep_topic_sync", clusters.file, str(FLOW)) as topic_sync:
        topic_sync.wait_ready()  # then the control topics are there
        flow.wait_mirrored(topic, partitions=PARTITIONS)
    (tmp_path / "trusted.pem").write_text(authority.certificate.read_text() + second.certificate.read_text())
    for broker in (clusters.a, clusters.b):
        broker.restart()
    with Unleased(clusters.file, flow, topic, PARTITIONS, 1) as slots:
        with Traffic(clusters.a.bootstrap, topic, partitions=PARTITIONS, rate=300.0):
            flow.wait_for_more(topic, 300, within=TAKEN_UP_WITHIN)
            clusters.mount.replace({"user.pem": second.issue(USER).read_text()})
            log = tmp_path / "slot-0.log"
            wait_until(
                lambda: "certificates changed" in log.read_text(),
                within=TAKEN_UP_WITHIN,
                every=0.5,
                what="the slot sees it",
            )
            flow.wait_for_more(topic, 300, within=TAKEN_UP_WITHIN)
            (tmp_path / "trusted.pem").write_text(second.certificate.read_text())
            for broker in (clusters.a, clusters.b):
                broker.restart()
            flow.wait_for_more(topic, 300, within=TAKEN_UP_WITHIN)
        flow.wait_written_down(topic, within=TAKEN_UP_WITHIN)
        slots.check()
    comparison = compare(read_topic(clusters.a.bootstrap, topic), read_topic(clusters.b.bootstrap, f"A.{topic}"))
    assert comparison.equal, comparison
