"""The set-up's download holds to its list: a failed download is tried again, a wrong file is refused by name."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support import kafka_jars
from tests.support.kafka_jars import CURRENT, OLDER, JarsUnavailable, Kafka, WrongChecksum

JAR = b"PK\x05\x06" + b"\0" * 18  # the smallest archive there is
PATH = "/org/example/thing/1.0/thing-1.0.jar"


class Repository(ThreadingHTTPServer):
    """A Maven repository of one jar that refuses its first `failures` downloads."""

    daemon_threads = True
    failures = 0
    served = 0
    kafka: Kafka
    """What is to be fetched from it."""


class _Answers(BaseHTTPRequestHandler):
    server: Repository

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        if self.path != PATH:
            return self.send_error(404)
        if self.command == "GET":
            self.server.served += 1
        if self.server.failures:
            self.server.failures -= 1
            return self.send_error(503)
        self.send_response(200)
        self.send_header("Content-Length", str(len(JAR)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(JAR)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing to the terminal."""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    with Repository(("127.0.0.1", 0), _Answers) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        monkeypatch.setenv("LOCKSTEP_MAVEN_URL", f"http://127.0.0.1:{server.server_address[1]}/")
        server.kafka = Kafka("1.0", tmp_path / "jars.sha256", tmp_path / "cache")
        monkeypatch.setattr(kafka_jars, "PAUSE_SECONDS", 0.0)
        _list(server, JAR)
        yield server
        server.shutdown()


def _list(repository: Repository, content: bytes) -> None:
    repository.kafka.listed.write_text(f"{hashlib.sha256(content).hexdigest()}  org.example:thing:1.0\n")


def test_a_listed_jar_is_fetched_once(repository: Repository) -> None:
    kafka_jars.fetch(kafka=repository.kafka)
    kafka_jars.fetch(kafka=repository.kafka)
    assert kafka_jars.classpath(repository.kafka) == str(repository.kafka.cache / "jars" / "thing-1.0.jar")
    assert Path(kafka_jars.classpath(repository.kafka)).read_bytes() == JAR
    assert repository.served == 1


def test_a_failed_download_is_tried_again(repository: Repository) -> None:
    repository.failures = 3
    lines_printed: list[str] = []
    kafka_jars.fetch(lines_printed.append, repository.kafka)
    assert Path(kafka_jars.classpath(repository.kafka)).exists()
    assert any("again in" in line for line in lines_printed)


def test_a_jar_that_cannot_be_had_is_named(repository: Repository) -> None:
    repository.failures = 1_000
    with pytest.raises(JarsUnavailable, match=r"thing-1\.0\.jar"):
        kafka_jars.fetch(kafka=repository.kafka)


def test_a_wrong_checksum_names_the_jar_and_removes_it(repository: Repository) -> None:
    _list(repository, b"another file")
    with pytest.raises(WrongChecksum, match=r"thing-1\.0\.jar"):
        kafka_jars.fetch(kafka=repository.kafka)
    assert not (repository.kafka.cache / "jars" / "thing-1.0.jar").exists()
    _list(repository, JAR)
    kafka_jars.fetch(kafka=repository.kafka)


@pytest.mark.parametrize("kafka", [CURRENT, *OLDER.values()], ids=str)
def test_each_list_names_what_its_kafka_needs(kafka: Kafka) -> None:
    jars = kafka_jars.read_list(kafka.listed.read_text())
    named = {jar.artifact for jar in jars}
    mirror_maker = {"connect-mirror", "connect-mirror-client", "connect-runtime", "log4j-slf4j-impl"}
    assert {kafka.core} | (mirror_maker if kafka is CURRENT else {"slf4j-reload4j", "zookeeper"}) <= named
    assert all(len(jar.sha256) == 64 for jar in jars)
    assert {jar.version for jar in jars if jar.group == "org.apache.kafka"} == {kafka.version}
