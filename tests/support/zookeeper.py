"""A Kafka of one broker that keeps its metadata in ZooKeeper, as all did before 3.3 and some do up to 3.9.

The ZooKeeper is a process of its own from the jars that this Kafka brings; it lives and ends with the broker's object,
also over the broker's restarts.
"""

import socket
import subprocess
from collections.abc import Mapping
from typing import ClassVar

from tests.support import kafka_jars
from tests.support.broker import Broker, BrokerDied
from tests.support.broker_settings import JVM, listening
from tests.support.eventually import NeverHappened, wait_until
from tests.support.java import find_java
from tests.support.ports import free_port
from tests.support.processes import kill, spawn, tail

ZOOKEEPER_WITHIN = 60.0  # seconds; usual is 1


class ZooKeeperBroker(Broker):
    """A `Broker` of a version that knows ZooKeeper. Its `cluster_id` is not the cluster's: ZooKeeper has that."""

    AUTHORIZER: ClassVar[Mapping[str, str]] = {
        **Broker.AUTHORIZER,
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    }

    _zookeeper: subprocess.Popen[bytes] | None = None
    _zookeeper_port = 0

    def launch(self) -> None:
        if self.running:
            return
        kafka_jars.fetch(kafka=self.kafka)
        self._write_settings()
        if self._zookeeper is None:
            self._start_zookeeper()
        self._process = spawn(self._command(), output=self.log)

    def close(self) -> None:
        self.kill()
        if self._zookeeper is not None:
            kill(self._zookeeper)
        super().close()

    def _write_settings(self) -> None:
        self._zookeeper_port = self._zookeeper_port or free_port()
        super()._write_settings()

    def _listeners(self) -> dict[str, str]:
        return {
            "broker.id": str(self.node),
            "zookeeper.connect": f"127.0.0.1:{self._zookeeper_port}",
            "zookeeper.session.timeout.ms": "6000",  # after a kill the broker waits for its former self's to end
            "inter.broker.listener.name": "PLAINTEXT",
            **listening(*self._addresses()),
            "log.dirs": str(self.folder / "data"),
        }

    def _start_zookeeper(self) -> None:
        settings, log = self.folder / "zookeeper.properties", self.folder / "zookeeper.log"
        settings.write_text(
            f"dataDir={self.folder / 'zookeeper'}\nclientPort={self._zookeeper_port}\nclientPortAddress=127.0.0.1\n"
            "admin.enableServer=false\nmaxClientCnxns=0\ntickTime=1000\n"
        )
        logging = (self.folder / "log4j.properties").as_uri()
        self._zookeeper = process = spawn(
            [
                *(str(find_java()), *JVM, "-Xmx128m", f"-Dlog4j.configuration={logging}"),
                *("-cp", kafka_jars.classpath(self.kafka)),
                *("org.apache.zookeeper.server.ZooKeeperServerMain", str(settings)),
            ],
            output=log,
        )

        def listens() -> bool:
            if process.poll() is not None:
                raise BrokerDied(f"the ZooKeeper of {self.alias} ended while it started:\n{tail(log)}")
            with socket.socket() as attempt:
                attempt.settimeout(1)
                return attempt.connect_ex(("127.0.0.1", self._zookeeper_port)) == 0

        try:
            wait_until(listens, within=ZOOKEEPER_WITHIN, every=0.02)
        except NeverHappened as late:
            raise BrokerDied(f"the ZooKeeper of {self.alias} does not listen:\n{tail(log)}") from late


class BrokerBefore24(ZooKeeperBroker):
    """A `Broker` of Kafka 2.1 to 2.3."""

    AUTHORIZER: ClassVar[Mapping[str, str]] = {
        **Broker.AUTHORIZER,
        "authorizer.class.name": "kafka.security.auth.SimpleAclAuthorizer",
    }
