"""Topics of a flow on both clusters, their rows and their events, as topic-sync leaves them."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

from confluent_kafka.admin import (
    ConfigResource,
)

from lockstep_protocol.names import Flow, state_topic
from lockstep_protocol.rows.state_rows import MirroredTopic, decode_row
from tests.support import eventually
from tests.support.acls import GUARDS
from tests.support.broker import Broker
from tests.support.clusters import (
    admin,
    read_topic,
)
from tests.support.services import ServiceProcess, two_cluster_file

__all__ = [
    "FLOW",
    "FORCING",
    "MARK",
    "SOURCE",
    "TARGET",
    "client",
    "configs",
    "guarded_broker",
    "partitions",
    "row",
    "running_topic_sync",
    "two_flow_file",
    "wait_until",
]


MARK = uuid.uuid4().hex[:6]
SOURCE, TARGET = f"s{MARK}", f"t{MARK}"
FLOW = Flow(SOURCE, TARGET)
FORCING = Flow(f"f{MARK}", TARGET)
"""The source's defaults are set on the target."""

client = cache(admin)
wait_until = partial(eventually.wait_until, within=30.0, every=0.25)  # each look opens a consumer: not too often


def two_flow_file(folder: Path, a: Broker, b: Broker) -> Path:
    """Both flows, whose configs are compared every two seconds."""
    return two_cluster_file(
        folder,
        (SOURCE, a.bootstrap),
        (TARGET, b.bootstrap),
        f"clusters = {SOURCE}, {FORCING.source}, {TARGET}",
        f"{FORCING.source}.bootstrap.servers = {a.bootstrap}",
        f"{FLOW}.enabled = true",
        f"{FLOW}.topics = {MARK}-.*",
        f"{FLOW}.topics.exclude = .*-unwanted",
        f"{FORCING}.enabled = true",
        f"{FORCING}.topics = forced-{MARK}-.*",
        f"{FORCING}.use.defaults.from = source",
        "sync.topic.configs.interval.seconds = 2",
    )


@contextmanager
def running_topic_sync(file: Path) -> Iterator[ServiceProcess]:
    """The service of both flows, once it leads the first one."""
    with ServiceProcess("lockstep_topic_sync", file, str(FLOW), str(FORCING)) as process:
        process.hear("leading", flow=str(FLOW))
        yield process


@contextmanager
def guarded_broker() -> Iterator[Broker]:
    """Checks permissions, allows what no rule is about, makes topics that somebody asks for, and compacts soon."""
    own = {"auto.create.topics.enable": "true", "log.cleaner.max.compaction.lag.ms": "5000"}
    with Broker("guarded", properties=GUARDS | own) as broker:
        yield broker


def partitions(broker: Broker, topic: str) -> int:
    found = client(broker.bootstrap).list_topics(timeout=10).topics.get(topic)
    return 0 if found is None or found.error is not None else len(found.partitions)


def configs(broker: Broker, topic: str) -> dict[str, str]:
    """What is set on the topic itself."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    (future,) = client(broker.bootstrap).describe_configs([resource]).values()
    return {e.name: e.value for e in future.result(10).values() if e.source == 1}


def row(broker: Broker, topic: str, flow: Flow = FLOW) -> MirroredTopic | None:
    found = None
    for record in read_topic(broker.bootstrap, state_topic(flow)):
        decoded = decode_row(record.key or b"", record.value)
        if isinstance(decoded, MirroredTopic) and decoded.source_topic == topic:
            found = decoded
    return found
