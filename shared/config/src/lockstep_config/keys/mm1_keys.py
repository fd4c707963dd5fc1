"""The words of MirrorMaker 1: the flow that takes its place, its lists of topics, and keys of its files.

The keys are those that no Kafka client of today knows, with the message about them. This module is pure.
"""

import hashlib
import re
from collections.abc import Mapping
from types import MappingProxyType

from lockstep_state.names import Flow

FLOW = Flow("source", "target")
EVERY_TOPIC = ".*"

FLOW_LINES: Mapping[str, str] = MappingProxyType(
    {
        "clusters": f"{FLOW.source}, {FLOW.target}",
        f"{FLOW}.enabled": "true",
        # Without this line the opposite pair of clusters would have heartbeats, as in an mm2.properties file.
        f"{Flow(FLOW.target, FLOW.source)}.emit.heartbeats.enabled": "false",
    }
)
"""The lines, by key, that every configuration of a MirrorMaker 1 has."""


def mm2_topics(text: str) -> str:
    """Return MirrorMaker 1's list of topics as a list of MM2's.

    Commas separate expressions; blanks and quotes around the list do not count. `*` alone is every topic, which
    MirrorMaker 1 itself refuses and Strimzi promises.
    """
    bare = text.strip().replace(" ", "").strip("\"'")
    if bare == "*":
        return EVERY_TOPIC
    return ", ".join(dict.fromkeys(element for element in bare.split(",") if element))


def mm1_names(name: str, flow: Flow) -> Mapping[str, str]:
    """Return the lines, by key, that name a legacy flow's progress after its group, or as the file says.

    Every such flow has the same aliases, so they cannot distinguish its progress on the target.
    """
    legal = re.sub(r"[^A-Za-z0-9_-]", "-", name)
    if legal != name:
        legal += f"-{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:8]}"
    return {
        f"{flow.target}.group.id": legal,
        f"{flow.target}.offset.storage.topic": f"mm2-offsets-{legal}.{flow.source}.internal",
    }


_ZOOKEEPER = (
    "belongs to the consumer with positions in ZooKeeper, which MirrorMaker 1 itself has not read since Kafka 2.0. Set "
    "bootstrap.servers of the source. The positions are those that group.id has committed there. Without any, "
    "auto.offset.reset says where to begin"
)
_OLD_PRODUCER = "belongs to the Scala producer, which Kafka 2.0 removed"


def _table(**groups: Mapping[str, str]) -> Mapping[str, Mapping[str, str]]:
    return MappingProxyType({side: MappingProxyType(dict(keys)) for side, keys in groups.items()})


def _all(names: str, reason: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), reason)


OLD_KEYS = _table(
    consumer=_all(
        "zookeeper.connect zookeeper.connection.timeout.ms zookeeper.session.timeout.ms zookeeper.sync.time.ms "
        "offsets.storage dual.commit.enabled offsets.channel.backoff.ms offsets.channel.socket.timeout.ms "
        "offsets.commit.max.retries rebalance.max.retries rebalance.backoff.ms refresh.leader.backoff.ms "
        "queued.max.message.chunks num.consumer.fetchers consumer.timeout.ms consumer.id socket.timeout.ms "
        "auto.commit.enable",
        _ZOOKEEPER,
    )
    | {
        "fetch.message.max.bytes": f"{_ZOOKEEPER}; max.partition.fetch.bytes took its place",
        "fetch.wait.max.ms": f"{_ZOOKEEPER}; fetch.max.wait.ms took its place",
        "socket.receive.buffer.bytes": f"{_ZOOKEEPER}; receive.buffer.bytes took its place",
    },
    producer=_all(
        "serializer.class key.serializer.class queue.buffering.max.ms queue.buffering.max.messages "
        "queue.enqueue.timeout.ms batch.num.messages message.send.max.retries topic.metadata.refresh.interval.ms "
        "compressed.topics",
        f"{_OLD_PRODUCER}: remove it",
    )
    | {
        "metadata.broker.list": f"{_OLD_PRODUCER}: write bootstrap.servers",
        "compression.codec": f"{_OLD_PRODUCER}: write compression.type",
        "request.required.acks": f"{_OLD_PRODUCER}: remove it; every replica has to acknowledge here",
    },
)
"""Keys that are refused, by file, then by key, with the sentence."""

INEFFECTIVE_KEYS = _table(
    consumer={},
    producer={
        "producer.type": "records go without waiting for one another, and count when they are acknowledged",
        "partitioner.ignore.keys": "lockstep.legacy.partitioning says how partitions are chosen",
    },
)
"""Keys that are accepted and change nothing, by file, then by key, with the reason."""

_PARTITIONERS = "org.apache.kafka.clients.producer."


def known_partitioner(name: str) -> bool:
    """Return whether this is the Java producer's own partitioner.

    `lockstep.legacy.partitioning=key` follows its rule.
    """
    return name.strip() in ("", f"{_PARTITIONERS}internals.DefaultPartitioner")
