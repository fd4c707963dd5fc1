"""The brokers of a bench: with the threads, heap and collector of Kafka's defaults and start script."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.broker import Broker, Quorum, started
from tests.support.clusters import wait_for_brokers
from tests.support.secured import Secured, SecuredBroker
from tools.bench.clusters import Clusters
from tools.bench.distance import Distance

BROKER_SETTINGS = {
    "background.threads": "10",
    "log.cleaner.backoff.ms": "15000",
    "log.segment.delete.delay.ms": "1000",  # the copies of earlier runs must not fill the disk
    "num.io.threads": "8",
    "num.network.threads": "3",
}
BROKER_JVM = ["-server", "-XX:TieredStopAtLevel=4", "-XX:-UseSerialGC", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
BROKER_JVM += ["-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"]
BROKER_HEAP = "1g"
"""All of it from the beginning, as the start script has it."""
SMALL_HEAP = "512m"  # three of them share the machine with everybody

REPLICAS, IN_SYNC = 3, 2


@contextmanager
def two_clusters(source_afar: Distance, target_afar: Distance) -> Iterator[Clusters]:
    """Two clusters of one broker each, also to be reached from a distance; their data is removed at the end."""
    with two_brokers(source_afar, target_afar) as pair:
        yield _clusters_of(*pair)


@contextmanager
def two_brokers(
    source_afar: Distance | None = None, target_afar: Distance | None = None
) -> Iterator[tuple[Broker, Broker]]:
    """Such clusters as the brokers that they are, for who ends them."""
    source, target = (
        Broker(alias, properties=BROKER_SETTINGS, heap=BROKER_HEAP, jvm=_jvm(BROKER_HEAP), behind=behind)
        for alias, behind in (("A", source_afar), ("B", target_afar))
    )
    with started(source, target):
        yield source, target


def _jvm(heap: str) -> list[str]:
    return [*BROKER_JVM, f"-Xms{heap}"]


def _clusters_of(source: Broker, target: Broker) -> Clusters:
    return Clusters(source.bootstrap, target.bootstrap, (source.pid, target.pid))


@contextmanager
def three_brokers() -> Iterator[str]:
    """The bootstrap addresses of a cluster of three brokers, where every topic has three replicas of which two must
    have what was acknowledged; its data is removed at the end. Raises BrokerDied, NeverHappened."""
    quorum = Quorum.with_nodes(REPLICAS)
    settings = {**BROKER_SETTINGS, "default.replication.factor": str(REPLICAS), "min.insync.replicas": str(IN_SYNC)}
    brokers = [
        Broker(f"B{node}", properties=settings, heap=SMALL_HEAP, jvm=_jvm(SMALL_HEAP), quorum=quorum, node=node)
        for node in quorum.controllers
    ]
    with started(*brokers):
        bootstrap = ",".join(broker.bootstrap for broker in brokers)
        wait_for_brokers(bootstrap, REPLICAS)
        yield bootstrap


@contextmanager
def tls_clusters() -> Iterator[tuple[Clusters, Mapping[str, str]]]:
    """Two clusters as those of `two_clusters`, to be reached without TLS as `Clusters` says, and with TLS by these
    lines of a file; their data is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="lockstep-tls-") as folder:
        secured = Secured.made(Path(folder))
        pair = [
            SecuredBroker(alias, secured, properties=BROKER_SETTINGS, heap=BROKER_HEAP, jvm=_jvm(BROKER_HEAP))
            for alias in ("A", "B")
        ]
        lines = {f"{each.alias}.{key}": value for each in pair for key, value in each.properties("TLS").items()}
        with secured.tokens, started(*pair):
            yield _clusters_of(*pair), lines
