"""Secrets are nowhere but in the files they came from: a whole run, with failures, and then a look everywhere.

The services run at level debug, so that tracebacks and what libraries say are looked through as well."""

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from lockstep_state.names import Flow
from tests.support.broker import Broker, started
from tests.support.clusters import Record, admin, create_topic, produce, read_topic
from tests.support.eventually import wait_until
from tests.support.mirror import MirroredFlow
from tests.support.processes import end, spawn
from tests.support.proxy import Proxy
from tests.support.rotating import USER, WRITER, Authority, guarded, set_password
from tests.support.token_server import TokenServer

WITHIN = 180.0
DIRECT, FROM_FILE, FROM_ENVIRONMENT = "hunterDirect7f1c", "hunterFile93ae", "hunterEnvironment5b20"
WRONG, STATED_WRONGLY, OF_SPARK = "hunterWrong40dd", "hunterMistake11e8", "hunterSpark6a97"
OF_CLIENT, TOKEN = "hunterClient2b64", "hunterToken85c3"
SECRETS = (DIRECT, FROM_FILE, FROM_ENVIRONMENT, WRONG, STATED_WRONGLY, OF_SPARK, OF_CLIENT, TOKEN)
PROVIDERS = "org.apache.kafka.common.config.provider."
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


@dataclass
class Scene:
    """A run in a folder where all that it writes down lies."""

    brokers: tuple[Broker, Broker]
    folder: Path
    file: Path
    passwords: Path
    log: Path
    secrets: tuple[str, ...]
    run: psutil.Process
    environment: dict[str, str]

    @property
    def inputs(self) -> set[Path]:
        """Where secrets are meant to stand."""
        return {self.file, self.passwords, self.folder / "a.pem"}

    @property
    def flow(self) -> MirroredFlow:
        return MirroredFlow(Flow("A", "B"), self.brokers[0].bootstrap, self.brokers[1].bootstrap)

    def said(self, message: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [line for line in lines if line["message"].startswith(message)]

    def until_said(self, message: str) -> None:
        wait_until(lambda: self.said(message), within=WITHIN, every=0.5, what=message)

    def leaks(self, text: str) -> list[str]:
        """The secrets in it, each by its first letters."""
        return [secret[:12] for secret in self.secrets if secret in text]

    def of_files(self) -> dict[str, list[str]]:
        """Leaks in whatever lies in the folder now."""
        leaks = {}
        for path in self.folder.rglob("*"):
            if path in self.inputs or not path.is_file():
                continue
            try:
                text = path.read_bytes().decode("latin-1")
            except OSError:  # gone meanwhile
                continue
            leaks[str(path)] = self.leaks(text)
        return leaks

    def workers(self) -> list[psutil.Process]:
        """Spark's Python workers, in which the slots are."""
        found = []
        for process in self.run.children(recursive=True):
            with contextlib.suppress(psutil.Error):  # ended meanwhile
                if "pyspark.worker" in process.cmdline():
                    found.append(process)
        return found

    def of_processes(self) -> dict[str, list[str]]:
        leaks = {}
        for process in (self.run, *self.run.children(recursive=True)):
            try:
                arguments = " ".join(process.cmdline())
            except psutil.Error:  # ended meanwhile
                continue
            leaks[f"{process.pid} {arguments[:80]}"] = self.leaks(arguments)
        return leaks

    def of_pages(self) -> dict[str, list[str]]:
        """Of the services, and of Spark with its API."""
        leaks = {}
        for line in self.said("started"):
            if "address" in line:
                for page in ("live", "ready", "status", "metrics", ""):
                    leaks[f"{line['service']}/{page}"] = self.leaks(read(f"{line['address']}/{page}"))
        spark = self.said("spark ready")[0]["text"]
        for page in (
            "jobs/",
            "stages/",
            "storage/",
            "environment/",
            "executors/",
            "executors/threadDump/?executorId=driver",
        ):
            leaks[f"spark {page}"] = self.leaks(read(f"{spark}/{page}"))
        api = f"{spark}/api/v1/applications"
        (application,) = json.loads(read(api))
        for page in ("environment", "jobs", "stages", "allexecutors", "storage/rdd"):
            text = read(f"{api}/{application['id']}/{page}")
            assert json.loads(text) is not None
            leaks[f"spark api {page}"] = self.leaks(text)
        return leaks

    def of_topics(self) -> dict[str, list[str]]:
        """Of every record of every topic of both clusters, those that only tests write included."""
        leaks = {}
        for broker in self.brokers:
            for topic in admin(broker.bootstrap).list_topics(timeout=20).topics:
                if topic.startswith("__"):
                    continue
                whole = b"\n".join(
                    part or b""
                    for record in read_topic(broker.bootstrap, topic)
                    for part in (record.key, record.value, *(value for _, value in record.headers))
                )
                leaks[f"{broker.alias} {topic}"] = self.leaks(whole.decode("latin-1"))
        return leaks

    def of_commands(self) -> dict[str, list[str]]:
        leaks = {}
        for command in (["status"], ["status", "--json"], ["watch"], ["config", "show"], ["config", "check"]):
            leaks[" ".join(command)] = self.leaks(self.output(command, self.file))
        return leaks

    def output(self, command: list[str], file: Path, within: float = 25.0) -> str:
        """What it says within this time."""
        ran = subprocess.Popen(
            [sys.executable, "-m", "lockstep_cli", *command, str(file)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self.environment,
        )
        try:
            said, _ = ran.communicate(timeout=within)
        except subprocess.TimeoutExpired:  # `watch` goes on for ever
            ran.terminate()
            said, _ = ran.communicate(timeout=10.0)
        return said.decode()


def read(address: str) -> str:
    try:
        with urllib.request.urlopen(address, timeout=20.0) as answer:  # noqa: S310 - our own address
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return error.read().decode()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    folder = tmp_path / "run"
    folder.mkdir()
    authority = Authority(tmp_path, "ca")
    identities = {alias: authority.issue(USER).read_text() for alias in "AB"}
    (folder / "a.pem").write_text(identities["A"])
    (folder / "ca.pem").write_text(authority.certificate.read_text())
    passwords = folder / "passwords.properties"
    passwords.write_text(f"b={WRONG}\n")
    with ExitStack() as stack:
        brokers = [
            guarded(alias, stack.enter_context(Proxy()), authority.issue("broker"), authority.certificate)
            for alias in "AB"
        ]
        stack.enter_context(started(*brokers))
        set_password(brokers[0], DIRECT)
        set_password(brokers[1], FROM_FILE)
        set_password(brokers[1], FROM_ENVIRONMENT, WRITER)
        file = folder / "mm2.properties"
        tokens = stack.enter_context(TokenServer({"lockstep": "another secret"}))
        file.write_text(_text(brokers, folder, identities["B"], tokens))
        (folder / "tmp").mkdir()
        (folder / "events").mkdir()
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")},
            "TMPDIR": str(folder / "tmp"),
            "SPARK_LOCAL_DIRS": str(folder / "tmp"),
            "WRITER": FROM_ENVIRONMENT,
        }
        log = folder / "run.log"
        command = [sys.executable, "-m", "lockstep_cli", "run", str(file)]
        process = spawn([*command, "--log-format", "json", "--log-level", "debug"], output=log, environment=environment)
        stack.callback(end, process, within=15.0)
        keys = [text.split("-----")[2].split()[1] for text in identities.values()]
        yield Scene(
            (brokers[0], brokers[1]),
            folder,
            file,
            passwords,
            log,
            (*SECRETS, *keys),
            psutil.Process(process.pid),
            environment,
        )


def _text(brokers: list[Broker], folder: Path, inline: str, tokens: TokenServer) -> str:
    a, b = brokers
    assert a.proxy is not None
    assert b.proxy is not None
    key, certificate = inline.split("-----BEGIN CERTIFICATE-----")
    certificate = "-----BEGIN CERTIFICATE-----" + certificate

    def one_line(pem: str) -> str:
        return " ".join(pem.split("\n")).strip()

    factors = ("checkpoints.topic.", "heartbeats.topic.", "offset-syncs.topic.", "offset.storage.", "")
    return "\n".join(
        [
            "clusters = A, B, C",
            "config.providers = file, env",
            f"config.providers.file.class = {PROVIDERS}FileConfigProvider",
            f"config.providers.env.class = {PROVIDERS}EnvVarConfigProvider",
            "A->B.enabled = true",
            # A third cluster that gives us no token: only heartbeats would go there.
            "emit.heartbeats.enabled = false",
            "A->B.emit.heartbeats.enabled = true",
            "A->C.emit.heartbeats.enabled = true",
            f"C.bootstrap.servers = {b.proxy.bootstrap}",
            "C.sasl.mechanism = OAUTHBEARER",
            f"C.sasl.oauthbearer.token.endpoint.url = {tokens.url}",
            f'C.sasl.jaas.config = {OAUTH} clientId="lockstep" clientSecret="{OF_CLIENT}";',
            f'C.producer.sasl.jaas.config = {OAUTH} oauth.access.token="{TOKEN}";',
            "A->B.topics = secret-.*",
            "A->B.tasks.max = 1",
            "emit.checkpoints.interval.seconds = 1",
            *(f"{name}replication.factor = 1" for name in factors),
            "security.protocol = SASL_SSL",
            "sasl.mechanism = SCRAM-SHA-512",
            "ssl.truststore.type = PEM",
            f"ssl.truststore.location = {folder / 'ca.pem'}",
            f"A.bootstrap.servers = {a.proxy.bootstrap}",
            f"B.bootstrap.servers = {b.proxy.bootstrap}",
            "ssl.keystore.type = PEM",
            f"A.ssl.keystore.location = {folder / 'a.pem'}",
            f"B.ssl.keystore.key = {one_line(key)}",
            f"B.ssl.keystore.certificate.chain = {one_line(certificate)}",
            f'A.sasl.jaas.config = {SCRAM} username="{USER}" password="{DIRECT}";',
            f'B.sasl.jaas.config = {SCRAM} username="{USER}" password="${{file:{folder}/passwords.properties:b}}";',
            f'A->B.producer.override.sasl.jaas.config = {SCRAM} username="{WRITER}" password="${{env:WRITER}}";',
            f"lockstep.spark.conf.spark.authenticate.secret = {OF_SPARK}",
            "lockstep.spark.conf.spark.authenticate = true",
            "lockstep.spark.conf.spark.eventLog.enabled = true",
            "lockstep.spark.conf.spark.eventLog.compress = false",
            f"lockstep.spark.conf.spark.eventLog.dir = file://{folder / 'events'}",
            "",
        ]
    )


@pytest.mark.long  # half a minute
def test_secrets_are_found_nowhere(scene: Scene) -> None:
    scene.until_said("cluster unreachable")  # with the wrong password, and without a token
    scene.until_said("JVM started")  # until then a file has what Spark's JVM is not given otherwise
    leaks = {"early": scene.leaks(scene.log.read_text()), **scene.of_processes(), **scene.of_files()}
    scene.passwords.write_text(f"b={FROM_FILE}\n")  # taken up as the services run
    topic = create_topic(scene.brokers[0].bootstrap, "secret-orders")
    produce(scene.brokers[0].bootstrap, topic, [Record(b"k", b"v")] * 10)
    scene.flow.wait_mirrored(topic, within=WITHIN)
    scene.flow.wait_written_down(topic, within=WITHIN)

    whole = scene.file.read_text()
    scene.file.write_text(whole + f"A.sasl.jaas.config = {SCRAM} password={STATED_WRONGLY}\ntopcs = 1\n")
    leaks["refused"] = scene.leaks(refused := scene.output(["run"], scene.file))
    assert "topcs" in refused
    scene.until_said("changed configuration not taken up")
    scene.file.write_text(whole)

    for worker in scene.workers():
        worker.kill()  # the slot fails, and Spark says how
    scene.until_said("slot failed")
    assert scene.flow.ask("refresh", "flow").kind == "Refreshed"
    time.sleep(2.0)

    leaks |= scene.of_files() | scene.of_processes() | scene.of_pages() | scene.of_topics() | scene.of_commands()
    assert len([name for name in leaks if name.startswith("spark ")]) > 10
    assert any(name.startswith(str(scene.folder / "events")) for name in leaks)
    assert any("mm2-lockstep-state" in name for name in leaks)
    assert any("java" in name for name in leaks)
    assert {name: secrets for name, secrets in leaks.items() if secrets} == {}
