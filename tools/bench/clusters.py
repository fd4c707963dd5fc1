"""The brokers of a bench, with the threads, heap and collector of Kafka's defaults, and their topics between runs."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from tests.support.broker import Broker, Quorum, started
from tests.support.clusters import create_topic, wait_for_brokers
from tests.support.eventually import wait_until
from tests.support.secured import Secured, SecuredBroker
from tests.support.wire import Connection
from tools.bench.distance import Distance
from tools.bench.wire import ends_if_led

BROKER_SETTINGS = {
    "background.threads": "10",
    "log.cleaner.backoff.ms": "15000",
    "log.segment.delete.delay.ms": "1000",  # the copies of earlier runs must not fill the disk
    "num.io.threads": "8",
    "num.network.threads": "3",
}
BROKER_JVM = (
    *("-server", "-XX:TieredStopAtLevel=4", "-XX:-UseSerialGC", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
)
BROKER_HEAP = "1g"
"""All of it from the beginning, as the start script has it."""
SMALL_HEAP = "512m"  # three of them share the machine with everybody
REPLICAS, IN_SYNC = 3, 2

ADMIN_S = 30.0
CLEAN_WITHIN_S = 60.0
BROKER_OWN = "__"  # __consumer_offsets, __transaction_state, __cluster_metadata
PASSED_OVER = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.GROUP_ID_NOT_FOUND, KafkaError.NON_EMPTY_GROUP)
"""What is already gone, or still has members, is seen at the next look."""


@dataclass(frozen=True, slots=True)
class Clusters:
    """Bootstrap addresses of the source cluster A and the target cluster B, of one broker each but for one part.

    Attributes:
        brokers: The ids of the brokers' processes; none where what they use is not looked at.
    """

    source: str
    target: str
    brokers: Sequence[int] = ()

    def begin_anew(self, keep: Sequence[str] = ()) -> None:
        """Delete every topic but those named on the source, and every group. Returns when they are gone.

        So each system starts without progress, offset syncs or Connect configuration of the one before it. Raises
        NeverHappened.
        """
        for bootstrap in (self.source, self.target):
            _clean(bootstrap, keep if bootstrap == self.source else ())

    def create(self, bootstrap: str, topic: str, partitions: int, configs: Mapping[str, str] | None = None) -> None:
        """Create a topic and wait until the first broker leads each partition. Raises KafkaException, NeverHappened."""
        create_topic(bootstrap, topic, partitions=partitions, configs=configs)
        with Connection(bootstrap) as broker:
            wait_until(
                lambda: None not in ends_if_led(broker, topic, partitions),
                within=CLEAN_WITHIN_S,
                what=f"every partition of {topic} led",
            )


def _clean(bootstrap: str, keep: Sequence[str]) -> None:
    # Quiet: what it would say of a broker that ends before it is no news, and every refusal is raised anyway.
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def clean() -> bool:
        names = admin.list_topics(timeout=ADMIN_S).topics
        topics = [name for name in names if not name.startswith(BROKER_OWN) and name not in keep]
        groups = [group.group_id for group in admin.list_consumer_groups().result(ADMIN_S).valid]
        if topics:
            _settle(admin.delete_topics(topics, operation_timeout=ADMIN_S))
        if groups:
            _settle(admin.delete_consumer_groups(groups))
        return not topics and not groups

    what = f"topics and groups of the run before gone from {bootstrap}"
    wait_until(clean, within=CLEAN_WITHIN_S, every=0.2, what=what)


def _settle(futures: Mapping[Any, Future[Any]]) -> None:
    for done in futures.values():
        try:
            done.result(ADMIN_S)
        except KafkaException as refused:
            if refused.args[0].code() not in PASSED_OVER:
                raise


def _options(heap: str = BROKER_HEAP) -> dict[str, Any]:
    return {"properties": BROKER_SETTINGS, "heap": heap, "jvm": [*BROKER_JVM, f"-Xms{heap}"]}


def _clusters_of(source: Broker, target: Broker) -> Clusters:
    return Clusters(source.bootstrap, target.bootstrap, (source.pid, target.pid))


@contextmanager
def two_clusters(source_afar: Distance, target_afar: Distance) -> Iterator[Clusters]:
    """Start two clusters of one broker each, also to be reached from a distance; their data is removed at the end."""
    with two_brokers(source_afar, target_afar) as pair:
        yield _clusters_of(*pair)


@contextmanager
def two_brokers(
    source_afar: Distance | None = None, target_afar: Distance | None = None
) -> Iterator[tuple[Broker, Broker]]:
    """Start such clusters as the brokers that they are, for who ends them."""
    source, target = (
        Broker(alias, **_options(), behind=behind) for alias, behind in (("A", source_afar), ("B", target_afar))
    )
    with started(source, target):
        yield source, target


@contextmanager
def three_brokers() -> Iterator[str]:
    """Start a cluster of three brokers and yield its addresses. Topics have three replicas, of which two must have what
    was acknowledged. Raises BrokerDied, NeverHappened."""
    quorum, options = Quorum.with_nodes(REPLICAS), _options(SMALL_HEAP)
    options["properties"] = {
        **BROKER_SETTINGS,
        "default.replication.factor": str(REPLICAS),
        "min.insync.replicas": str(IN_SYNC),
    }
    brokers = [Broker(f"B{node}", **options, quorum=quorum, node=node) for node in quorum.controllers]
    with started(*brokers):
        bootstrap = ",".join(broker.bootstrap for broker in brokers)
        wait_for_brokers(bootstrap, REPLICAS)
        yield bootstrap


@contextmanager
def tls_clusters() -> Iterator[tuple[Clusters, Mapping[str, str]]]:
    """Start two clusters as those of `two_clusters`, and yield them with the lines of a file that reach them by TLS."""
    with tempfile.TemporaryDirectory(prefix="lockstep-tls-") as folder:
        secured = Secured.made(Path(folder))
        pair = [SecuredBroker(alias, secured, **_options()) for alias in ("A", "B")]
        lines = {f"{broker.alias}.{key}": value for broker in pair for key, value in broker.properties("TLS").items()}
        with secured.tokens, started(*pair):
            yield _clusters_of(*pair), lines
