"""Kafka clusters as subprocesses, mostly of one node, for tests, the demo and the bench.

A `Broker` is a KRaft node that is broker and controller at once, started by its JVM directly. What makes it start
within 1.5 s: the feature levels that `StorageTool` would write are taken from a copy made once per checkout (one JVM
less), and a class-data archive halves the JVM's own work. Both lie in the cache beside the jars.

The settings suit tests: small coordinators, no auto-created topics, a cleaner that looks twice a second, and nothing is
deleted for its age unless the topic says so (tests write old timestamps). Everything is bound to 127.0.0.1 unless asked
otherwise, the data lies in a temporary folder, and no process outlives us (`tests.support.processes`).
"""

import atexit
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Protocol, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.support import kafka_jars
from tests.support.broker_settings import JVM, LOCAL, LOGGING, LOGGING_BEFORE_4, SETTINGS, kafka_uuid, listening
from tests.support.eventually import NeverHappened, wait_until
from tests.support.java import archive_name, find_java
from tests.support.ports import free_port
from tests.support.processes import end, kill, spawn, tail
from tests.support.proxy import Proxy

STARTED_WITHIN = 120.0  # seconds; usual is 1.5, but the cores may be busy with something else
STOPPED_WITHIN = 20.0


class BrokerDied(Exception):
    """The broker ended, or did not become ready in time; the message ends with the last lines of its log."""


class Forwarder(Protocol):
    """Whatever carries connections to a broker: it listens on `port` of 127.0.0.1."""

    port: int

    def forward_to(self, host: str, port: int) -> None:
        """Lead connections to this address."""


@dataclass(frozen=True, slots=True)
class Quorum:
    """The nodes of one cluster: each is told it, and its own number. `controllers`: the port of each node."""

    cluster_id: str
    controllers: Mapping[int, int]

    @classmethod
    def with_nodes(cls, nodes: int) -> Self:
        """Return a new cluster of so many nodes, numbered from 1."""
        return cls(kafka_uuid(), {node: free_port() for node in range(1, nodes + 1)})


class Broker:
    """One Kafka cluster of one node. Use it as a context manager, or `start()` and `close()`.

    With a `quorum` of several it is node `node` of it: `started` takes all of them, none is ready alone.

    `kafka` is its version. `properties` are added to server.properties (they win). With `authorizer` ACLs can be
    created and listed. `behind` a proxy the broker has a second listener whose advertised address is the proxy's:
    clients that bootstrap from `proxy.bootstrap` stay behind it, clients that use `bootstrap` do not. With a `host` it
    listens on every address of this machine and tells clients that name, which has to lead here from where they are.
    """

    LOGGERS: ClassVar[Mapping[str, str]] = {}
    """Levels of single loggers, from Kafka 4 on; all others have `log_level`."""

    AUTHORIZER: ClassVar[Mapping[str, str]] = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",  # every client is anonymous: ACLs are kept and listed, and deny us nothing
    }

    def __init__(
        self,
        alias: str = "broker",
        *,
        kafka: kafka_jars.Kafka = kafka_jars.CURRENT,
        properties: Mapping[str, str] | None = None,
        authorizer: bool = False,
        behind: Forwarder | None = None,
        heap: str = "384m",
        jvm: Sequence[str] = (),
        log_level: str = "warn",
        quorum: Quorum | None = None,
        node: int = 1,
        host: str | None = None,
    ) -> None:
        self.alias = alias
        self._host = host
        self.kafka = kafka
        self.node = node
        self._quorum = quorum or Quorum.with_nodes(1)
        self.cluster_id = self._quorum.cluster_id
        self.folder = Path(tempfile.mkdtemp(prefix=f"lockstep-broker-{alias}-"))
        self.log = self.folder / "broker.log"
        self.proxy = behind if isinstance(behind, Proxy) else None
        self._forwarder = behind
        self.port = free_port()
        self._proxied_port = free_port()
        self._properties = {**SETTINGS, **(self.AUTHORIZER if authorizer else {}), **(properties or {})}
        self._jvm = [*JVM, f"-Xmx{heap}", *jvm]
        self._log_level = log_level
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def bootstrap(self) -> str:
        """Return where clients connect, past the proxy if there is one. The same after every restart."""
        return f"{self._host or LOCAL}:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Start, or start again with the same data and ports. Return once clients are served. Raises BrokerDied."""
        self.launch()
        self.wait_ready()
        return self

    def launch(self) -> None:
        """Start the process without waiting; `wait_ready` must follow. Idempotent while it runs."""
        if self.running:
            return
        prepare(kafka=self.kafka)
        self._format()
        self._process = spawn(self._command(), output=self.log)

    def wait_ready(self, within: float = STARTED_WITHIN) -> None:
        """Wait until the broker answers a metadata request with itself in it."""
        admin: list[AdminClient] = []

        def served() -> bool:
            if not self.running:
                raise BrokerDied(f"broker {self.alias} ended while it started:\n{tail(self.log)}")
            if not admin:
                with socket.socket() as attempt:
                    attempt.settimeout(1)
                    if attempt.connect_ex(("127.0.0.1", self.port)) != 0:
                        return False
                admin.append(AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0}))
            try:
                return bool(admin[0].list_topics(timeout=1).brokers)
            except KafkaException:
                return False

        try:
            wait_until(served, within=within, every=0.02)
        except NeverHappened as late:
            raise BrokerDied(f"broker {self.alias} is not ready after {within:g} s:\n{tail(self.log)}") from late

    def stop(self) -> None:
        """Shut down in order (SIGTERM; SIGKILL after 20 s). Data and ports are kept for the next start()."""
        if self._process is not None:
            end(self._process, within=STOPPED_WITHIN)

    def kill(self) -> None:
        """End it as a power failure would (SIGKILL). Data and ports are kept for the next start()."""
        if self._process is not None:
            kill(self._process)

    def restart(self) -> None:
        """Stop it, and start it again."""
        self.stop()
        self.start()

    def rebuild(self) -> None:
        """Start another cluster in its place: at the same address, empty, with an id of its own."""
        self.kill()
        shutil.rmtree(self.folder / "data")
        self.cluster_id = kafka_uuid()
        self.start()

    def suspend(self) -> None:
        """Freeze it (SIGSTOP): connections stay open and nothing is answered until resume()."""
        assert self._process is not None, "not started"
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a suspended broker go on."""
        assert self._process is not None, "not started"
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End it at once and remove its data. Idempotent."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        atexit.unregister(self.close)

    def _format(self) -> None:
        data = self.folder / "data"
        self._write_settings()
        if not data.exists():
            data.mkdir()
            shutil.copy(_features(self.kafka), data / "bootstrap.checkpoint")
            (data / "meta.properties").write_text(
                f"version=1\ncluster.id={self.cluster_id}\nnode.id={self.node}\ndirectory.id={kafka_uuid()}\n"
            )

    def _write_settings(self) -> None:
        (self.folder / "server.properties").write_text(
            "".join(f"{key}={value}\n" for key, value in (self._listeners() | self._properties).items())
        )
        template = LOGGING if self.kafka.major >= 4 else LOGGING_BEFORE_4
        own = "".join(
            f"logger.{n}.name={name}\nlogger.{n}.level={to}\n" for n, (name, to) in enumerate(self.LOGGERS.items())
        )
        (self.folder / "log4j.properties").write_text(template.format(level=self._log_level) + own)

    def _command(self) -> list[str]:
        archive, logging = _archive(self.kafka), self.folder / "log4j.properties"
        shared = (f"-XX:SharedArchiveFile={archive}", "-Xshare:auto") if archive.exists() else ()
        named = "log4j2.configurationFile" if self.kafka.major >= 4 else "log4j.configuration"
        return [
            *(str(find_java()), *self._jvm, *shared, f"-D{named}={logging.as_uri()}"),
            f"-Djava.io.tmpdir={self.folder}",  # a killed JVM leaves the libraries that it unpacked
            *("-cp", kafka_jars.classpath(self.kafka), "kafka.Kafka", str(self.folder / "server.properties")),
        ]

    def _listeners(self) -> dict[str, str]:
        controllers = self._quorum.controllers
        listen, advertise = self._addresses()
        return {
            "process.roles": "broker,controller",
            "node.id": str(self.node),
            "controller.quorum.voters": ",".join(f"{node}@127.0.0.1:{port}" for node, port in controllers.items()),
            "controller.listener.names": "CONTROLLER",
            **listening(listen | {"CONTROLLER": controllers[self.node]}, advertise, self._host),
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": str(self.folder / "data"),
        }

    def _addresses(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return the ports of the client listeners, and those that they advertise."""
        listen, advertise = {"PLAINTEXT": self.port}, {"PLAINTEXT": self.port}
        if self._forwarder is not None:
            listen["PROXIED"] = self._proxied_port
            advertise["PROXIED"] = self._forwarder.port
            self._forwarder.forward_to("127.0.0.1", self._proxied_port)
        return listen, advertise


@contextmanager
def started(*brokers: Broker) -> Iterator[None]:
    """Start several at once, for two take little longer than one; close them at the end."""
    try:
        for broker in brokers:
            broker.launch()
        for broker in brokers:
            broker.wait_ready()
        yield
    finally:
        for broker in brokers:
            broker.close()


@contextmanager
def two_brokers() -> Iterator[tuple[Broker, Broker]]:
    """Yield A and B, for tests that want them for themselves: they may end them, or leave much on them."""
    a, b = Broker("A"), Broker("B")
    with started(a, b):
        yield a, b


def prepare(report: kafka_jars.Report = lambda line: None, kafka: kafka_jars.Kafka = kafka_jars.CURRENT) -> None:
    """Put the jars, the feature levels and the class-data archive into the cache (the last two take about 8 s, once).
    An older Kafka goes without the archive."""
    kafka_jars.fetch(report, kafka)
    archived = kafka is not kafka_jars.CURRENT or _archive(kafka).exists()
    if _features(kafka).exists() and archived:
        return
    with kafka_jars.locked(kafka):
        if not _features(kafka).exists():
            report("Kafka: formatting a first log directory")
            _write_features(kafka)
        if not archived and not _archive(kafka).exists():
            report("Kafka: writing the class-data archive")
            _write_archive()


def _features(kafka: kafka_jars.Kafka) -> Path:
    return kafka.cache / "bootstrap.checkpoint"


def _archive(kafka: kafka_jars.Kafka) -> Path:
    return kafka.cache / f"broker-{archive_name(find_java())}"


def _write_features(kafka: kafka_jars.Kafka) -> None:
    with tempfile.TemporaryDirectory(prefix="lockstep-format-") as folder:
        settings = Path(folder, "server.properties")
        settings.write_text(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:1\n"
            "listeners=PLAINTEXT://127.0.0.1:2,CONTROLLER://127.0.0.1:1\ncontroller.listener.names=CONTROLLER\n"
            f"log.dirs={folder}/data\n"
        )
        tool = ["kafka.tools.StorageTool", "format", "-t", kafka_uuid(), "-c", str(settings)]
        subprocess.run(
            [find_java(), *JVM, "-cp", kafka_jars.classpath(kafka), *tool],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        shutil.copy(f"{folder}/data/bootstrap.checkpoint", _features(kafka))


def _write_archive() -> None:
    """Run a broker once to its readiness and let its JVM write down the classes it loaded."""
    finished = _archive(kafka_jars.CURRENT)
    unfinished = finished.with_suffix(".new")
    warm = Broker("archive", jvm=[f"-XX:ArchiveClassesAtExit={unfinished}"])
    try:
        warm._format()
        warm._process = spawn(warm._command(), output=warm.log)
        warm.wait_ready()
        warm.stop()
        unfinished.rename(finished)
    finally:
        warm.close()


if __name__ == "__main__":
    try:
        prepare(kafka_jars.say)
    except kafka_jars.JarsUnavailable as unavailable:
        sys.exit(f"setup: {unavailable}")
