"""The quick start with Compose: it agrees with the images, with their commands and with the file that they mount."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pkgutil import resolve_name
from threading import Thread
from typing import Any

import click
import pytest
from click.testing import CliRunner

from lockstep_cli.__main__ import main
from lockstep_config import load
from lockstep_ops.services import plan_services
from lockstep_state import project_address
from tests.support import kafka_jars
from tests.support.deployments import COMPOSE, broker_settings, compose_services, listeners
from tests.unit.house.ci_scripts import script

FILE = COMPOSE / "mm2.properties"
MOUNTED = "/etc/lockstep/mm2.properties"
SERVICES = compose_services()
BROKERS = {name: service for name, service in SERVICES.items() if service["image"].startswith("apache/kafka:")}
OURS = {name: service for name, service in SERVICES.items() if name not in BROKERS}
RUNNING = {name: service for name, service in OURS.items() if "healthcheck" in service}
IMAGES = script("images")
REQUIREMENTS = IMAGES.requirements


def has_compose() -> bool:
    docker = shutil.which("docker")
    return docker is not None and not subprocess.run([docker, "compose", "version"], capture_output=True).returncode


@pytest.mark.skipif(not has_compose(), reason="docker compose is not here")
def test_compose_accepts_its_file() -> None:
    command = ["docker", "compose", "--file", str(COMPOSE / "compose.yaml"), "--profile", "cli", "config", "--quiet"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_images_are_those_of_this_version() -> None:
    version = IMAGES.sbom.version()
    names = {f"{project_address.IMAGES}/lockstep-{image}:{version}" for image in REQUIREMENTS.IMAGES}
    assert {service["image"] for service in OURS.values()} <= names
    for name, service in RUNNING.items():
        assert service["image"] == f"{project_address.IMAGES}/lockstep-{name}:{version}"


def test_each_image_is_built_from_its_target() -> None:
    dockerfile = (COMPOSE.parents[1] / "deploy" / "images" / "Dockerfile").read_text()
    for name, service in OURS.items():
        assert service["build"]["target"] == re.findall(r"/lockstep-([\w-]+):", service["image"])[0], name
        assert f" AS {service['build']['target']}\n" in dockerfile
        assert (COMPOSE / service["build"]["context"]).resolve() == COMPOSE.parents[1]
        assert (COMPOSE / service["build"]["context"] / service["build"]["dockerfile"]).exists()


def test_services_are_those_that_the_file_needs() -> None:
    assert set(RUNNING) == {plan.name for plan in plan_services(load(FILE, {}))}


def test_each_of_ours_mounts_the_file_and_writes_nothing_else() -> None:
    for name, service in OURS.items():
        assert service["volumes"] == [f"./{FILE.name}:{MOUNTED}:ro"], name
        assert service["read_only"], name
        assert [mount.partition(":")[0] for mount in service["tmpfs"]] == ["/tmp"], name
        assert service["cap_drop"] == ["ALL"], name


@pytest.mark.parametrize("name", RUNNING)
def test_command_of_a_service_accepts_arguments_and_variables(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command: click.Command = resolve_name(f"lockstep_{name.replace('-', '_')}.__main__:main")
    environment = RUNNING[name]["environment"]
    assert set(environment) <= {parameter.envvar for parameter in command.params}
    for variable, text in environment.items():
        monkeypatch.setenv(variable, text)
    given = command.make_context(name, list(RUNNING[name]["command"])).params
    assert (str(given["path"]), given["host"], given["port"]) == (MOUNTED, "0.0.0.0", 9404)


def test_pages_are_published_on_loopback_at_ports_of_their_own() -> None:
    published = [service["ports"] for service in RUNNING.values()]
    addresses = [mapping.rsplit(":", 1) for ports in published for mapping in ports]
    assert {inside for _, inside in addresses} == {"9404"}
    assert len({outside for outside, _ in addresses}) == len(RUNNING)
    assert all(outside.startswith("127.0.0.1:") for outside, _ in addresses)


def test_check_accepts_the_file_before_a_service_starts() -> None:
    arguments = [str(FILE) if word == MOUNTED else word for word in SERVICES["check"]["command"]]
    ran = CliRunner().invoke(main, arguments)
    assert ran.exit_code == 0, ran.output
    assert "A->B enabled" in ran.output
    for name, service in RUNNING.items():
        assert service["depends_on"] == {"check": {"condition": "service_completed_successfully"}}, name


@contextmanager
def answering(status: int) -> Iterator[tuple[int, list[str]]]:
    """A server that answers everything with `status`: its port, and the paths that it was asked for."""
    asked: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Prints nothing."""

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port, asked
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_health_check_passes_only_if_the_page_is_ready(status: int, code: int) -> None:
    (test,) = {tuple(service["healthcheck"]["test"]) for service in RUNNING.values()}
    assert test[:3] == ("CMD", "python", "-c")
    assert ":9404/ready" in test[3]
    with answering(status) as (port, asked):
        program = test[3].replace(":9404/", f":{port}/")
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=30)
    assert (ran.returncode, asked) == (code, ["/ready"])


def test_brokers_have_the_addresses_of_the_file() -> None:
    configuration = FILE.read_text()
    for name, broker in BROKERS.items():
        settings = broker_settings(broker["environment"])
        bound, advertised = listeners(settings["listeners"]), listeners(settings["advertised.listeners"])
        assert advertised["INSIDE"] == (name, bound["INSIDE"][1])
        assert f".bootstrap.servers = {name}:{bound['INSIDE'][1]}\n" in configuration
        host, port = advertised["OUTSIDE"]
        assert broker["ports"] == [f"127.0.0.1:{port}:{bound['OUTSIDE'][1]}"]
        assert host == "localhost"
    assert len(BROKERS) == 2


def test_brokers_are_of_the_tested_version() -> None:
    assert {broker["image"] for broker in BROKERS.values()} == {f"apache/kafka:{kafka_jars.VERSION}"}
