"""Passwords and certificates that change under `lockstep run`, with records coming in all the while."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.eventually import wait_until
from tests.support.rotating import Authority, set_password
from tests.support.rotation_scene import (
    PARTITIONS,
    SERVICES,
    TAKEN_UP_WITHIN,
    Scene,
    running,
    secrets,
    started_clusters,
    traffic,
)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"), "first")


@pytest.fixture
def scene(tmp_path: Path, authority: Authority) -> Iterator[Scene]:
    with started_clusters(tmp_path, authority) as clusters, running(clusters, tmp_path / "run.log") as one:
        yield one


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
    scene.until_said("control-services ended with exit code 2")
    scene.mount.replace({"passwords.properties": secrets("first-a", "first-b")})
    for service in (one for one in SERVICES if one != "data-plane"):
        scene.until_said(f"{service} is ready again")
    wait_until(lambda: scene.leading() == set(SERVICES), within=TAKEN_UP_WITHIN, every=0.5, what="all lead")
    now = scene.service_pids()
    assert {name for name in SERVICES if now[name] == scene.pids[name]} == {"data-plane"}
