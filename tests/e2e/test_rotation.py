"""Passwords and certificates that change under `lockstep run`, with records coming in all the while."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from tests.support.broker import started
from tests.support.eventually import wait_until
from tests.support.processes import end, spawn
from tests.support.proxy import Proxy
from tests.support.rotating import USER, Authority, Mount, guarded, set_password
from tests.support.rotation_scene import (
    PARTITIONS,
    SERVICES,
    TAKEN_UP_WITHIN,
    Clusters,
    Scene,
    secrets,
    settings_text,
    traffic,
)


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
