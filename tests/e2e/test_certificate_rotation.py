"""Certificates and authorities are replaced while Lockstep runs, at the services and at slots on other hosts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.unleased import Unleased
from tests.support.clusters import create_topic, read_topic
from tests.support.eventually import wait_until
from tests.support.mirror import MirroredFlow
from tests.support.rotating import USER, Authority
from tests.support.rotation_scene import (
    FLOW,
    PARTITIONS,
    TAKEN_UP_WITHIN,
    Clusters,
    Scene,
    running,
    started_clusters,
    traffic,
)
from tests.support.services import ServiceProcess
from tests.support.topic_comparison import compare
from tests.support.traffic import Traffic


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"), "first")


@pytest.fixture
def clusters(tmp_path: Path, authority: Authority) -> Iterator[Clusters]:
    with started_clusters(tmp_path, authority) as both:
        yield both


@pytest.fixture
def scene(clusters: Clusters, tmp_path: Path) -> Iterator[Scene]:
    with running(clusters, tmp_path / "run.log") as one:
        yield one


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
