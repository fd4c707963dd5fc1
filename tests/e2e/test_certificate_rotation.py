"""Certificates and authorities are replaced while Lockstep runs, at the services and at slots on other hosts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from tests.faults.unleased import Unleased
from tests.support.broker import started
from tests.support.clusters import (
    compare,
    create_topic,
    read_topic,
)
from tests.support.eventually import wait_until
from tests.support.mirror import MirroredFlow
from tests.support.processes import end, spawn
from tests.support.proxy import Proxy
from tests.support.rotating import USER, Authority, Mount, guarded, set_password
from tests.support.rotation_scene import (
    FLOW,
    PARTITIONS,
    SERVICES,
    TAKEN_UP_WITHIN,
    Clusters,
    Scene,
    secrets,
    settings_text,
    traffic,
)
from tests.support.services import ServiceProcess
from tests.support.traffic import Traffic


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"), "first")


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
        file.write_text(settings_text(brokers, mount))
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
