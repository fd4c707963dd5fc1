"""Names of earlier versions, of other clients, and of common mistakes, each with what to write instead.

Each replacement loads and does what was meant. If there is none, a note says why. This module is pure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class RenamedKey:
    """The keys to write in place of one, all of them in the same place, and a note.

    `matters` says that the key was meant to decide what is copied, or how safely.
    """

    keys: tuple[str, ...] = ()
    note: str = ""
    matters: bool = False


def _write(keys: str, names: str, note: str = "", *, matters: bool = False) -> dict[str, RenamedKey]:
    return dict.fromkeys(names.split(), RenamedKey(tuple(keys.split()), note, matters))


_ALL = "without that line every one is selected, as in MirrorMaker"
_FACTORS = " ".join(f"{topic}.topic.replication.factor" for topic in ("offset-syncs", "checkpoints", "heartbeats"))
_COMPACTED = "the topic is compacted: nothing in it is too old"
_PEM = "and {0}.type=PEM, where it is a file of certificates"

RENAMED_KEYS: Mapping[str, RenamedKey] = MappingProxyType(
    {
        # Selections.
        **_write(
            "topics",
            "topics.whitelist topic.whitelist whitelist include topics.include topics.included topics.allowlist "
            "topics.regex topic.regex topics.pattern topic.pattern topics.list topic.list include.topics "
            "topics.to.mirror topics.to.replicate topic.names topic.name topics.includes topics.whitelist.regex",
            _ALL,
            matters=True,
        ),
        **_write(
            "topics.exclude",
            "topic.blacklist blacklist exclude topics.excluded topics.denylist topics.blocklist topics.exclude.regex "
            "topics.exclude.pattern topics.blacklist.pattern topics.blacklist.regex topic.exclude.pattern "
            "topics.exclusion topics.excludes",
            matters=True,
        ),
        **_write(
            "groups",
            "groups.whitelist group.whitelist groups.include groups.included groups.allowlist groups.regex "
            "group.regex groups.pattern group.pattern groups.list consumer.groups consumer.groups.whitelist "
            "consumer.groups.include",
            _ALL,
            matters=True,
        ),
        **_write(
            "groups.exclude",
            "group.blacklist groups.excluded groups.denylist groups.blocklist groups.exclude.pattern "
            "groups.blacklist.pattern consumer.groups.exclude consumer.groups.blacklist groups.excludes",
            matters=True,
        ),
        **_write(
            "config.properties.exclude",
            "config.property.blacklist topic.config.exclude topic.configs.exclude config.exclude "
            "topic.config.properties.exclude config.properties.excluded",
            matters=True,
        ),
        **_write(
            "",
            "config.properties.whitelist config.properties.include config.properties.included",
            "all configs of a topic are copied but those in config.properties.exclude",
        ),
        # Names of topics.
        **_write(
            "replication.policy.class",
            "replication.policy replication.class policy.class replication.policy.classname",
            matters=True,
        ),
        **_write("replication.policy.separator", "replication.separator policy.separator", matters=True),
        **_write(
            "replication.policy.class",
            "rename.topics topics.rename",
            "org.apache.kafka.connect.mirror.IdentityReplicationPolicy keeps the names",
            matters=True,
        ),
        # Switches of flows and features.
        **_write("enabled", "replication.enabled mirror.enabled mirroring.enabled flow.enabled active"),
        **_write("emit.heartbeats.enabled", "emit.heartbeats heartbeats.enabled heartbeat.emit.enabled"),
        **_write("emit.checkpoints.enabled", "emit.checkpoints checkpoints.enabled checkpoint.emit.enabled"),
        **_write("refresh.topics.enabled", "refresh.topics topics.refresh.enabled"),
        **_write("refresh.groups.enabled", "refresh.groups refresh.consumer.groups groups.refresh.enabled"),
        **_write("refresh.groups.interval.seconds", "refresh.consumer.groups.interval.seconds"),
        **_write(
            "sync.topic.configs.enabled",
            "sync.topic.configs sync.configs.enabled sync.configs topic.configs.sync.enabled",
            matters=True,
        ),
        **_write(
            "sync.topic.acls.enabled",
            "sync.topic.acls sync.acls.enabled sync.acls acls.sync.enabled acl.sync.enabled",
            matters=True,
        ),
        **_write(
            "sync.group.offsets.enabled",
            "sync.consumer.group.offsets.enabled sync.topic.offsets.enabled sync.consumer.offsets.enabled "
            "sync.offsets.enabled sync.group.offsets sync.groups.enabled consumer.group.offset.sync.enabled "
            "sync.consumer.groups.enabled",
            matters=True,
        ),
        **_write("sync.group.offsets.interval.seconds", "sync.consumer.group.offsets.interval.seconds"),
        # Amounts, intervals and replication.
        **_write("tasks.max", "max.tasks task.count num.tasks tasks.count tasks num.streams"),
        **_write(_FACTORS, "internal.topic.replication.factor internal.topics.replication.factor"),
        **_write(
            "",
            "partitions num.partitions topic.partitions remote.topic.partitions default.partitions",
            "a topic on the target has as many partitions as on the source: remove it",
        ),
        **_write(
            "lockstep.delay",
            "lockstep.delay.ms lockstep.delay.seconds lockstep.delay.interval.seconds lockstep.delay.minutes",
            "a time with its unit, such as 10m",
            matters=True,
        ),
        **_write("replication.factor", "topic.replication.factor remote.topic.replication.factor"),
        **_write(
            "",
            "offset-syncs.topic offset-syncs.topic.name checkpoints.topic checkpoints.topic.name heartbeats.topic "
            "heartbeats.topic.name",
            "MirrorMaker names this topic itself (offset-syncs.topic.location says which cluster has that of offset "
            "syncs): remove it",
        ),
        **_write(
            "emit.heartbeats.interval.seconds",
            "heartbeat.interval.seconds heartbeats.interval.seconds emit.heartbeat.seconds",
        ),
        **_write(
            "emit.checkpoints.interval.seconds",
            "checkpoint.interval.seconds checkpoints.interval.seconds emit.checkpoint.seconds",
        ),
        **_write(
            "",
            "consumer.group.prefix group.prefix group.id.prefix",
            "MirrorMaker's consumers have no group that it could name, and groups keep their names on the target: "
            "remove it",
        ),
        **_write(
            "sasl.jaas.config",
            "java.security.auth.login.config",
            "a file of a JVM's logins is not read here: the value is what KafkaClient { } has in that file, in one "
            "line that ends with ;",
        ),
        **_write(
            "",
            "heartbeats.topic.retention.ms checkpoints.topic.retention.ms offset.syncs.topic.retention.ms",
            _COMPACTED,
        ),
        **_write(
            "",
            "heartbeats.topic.partitions checkpoints.topic.partitions offset.syncs.topic.partitions",
            "the topic has one partition",
        ),
        **{
            f"{key}.interval.ms": RenamedKey((f"{key}.interval.seconds",), "in seconds")
            for key in (
                *("refresh.topics", "refresh.groups", "sync.topic.configs", "sync.topic.acls"),
                *("sync.group.offsets", "emit.heartbeats", "emit.checkpoints"),
            )
        },
        **_write("", "readahead.queue.capacity", "it was proposed in KIP-382 and never came: nothing reads ahead"),
        # Connections, by names of other clients.
        **_write(
            "bootstrap.servers",
            "cluster.bootstrap.servers brokers "
            "broker.list brokers.list metadata.broker.list bootstrap.brokers bootstrap.url bootstrap",
            matters=True,
        ),
        **_write("", "zookeeper.connect zookeeper zk.connect", "ZooKeeper is not asked: bootstrap.servers says where"),
        **_write("sasl.mechanism", "sasl.mechanisms", matters=True),
        **_write(
            "ssl.truststore.location",
            "ssl.ca.location ssl.cafile ssl.ca.cert",
            _PEM.format("ssl.truststore"),
            matters=True,
        ),
        **_write(
            "ssl.keystore.location",
            "ssl.certificate.location ssl.certfile ssl.key.location ssl.keyfile",
            _PEM.format("ssl.keystore") + ", the key among them",
            matters=True,
        ),
        **_write(
            "",
            "sasl.username sasl.user sasl.password sasl.plain.username sasl.plain.password",
            'user and password are in sasl.jaas.config, as username="..." and password="..."',
            matters=True,
        ),
        **_write(
            "",
            "enable.ssl.certificate.verification ssl.verify ssl.check.hostname",
            "certificates are always checked: name those to trust in ssl.truststore.location; "
            "ssl.endpoint.identification.algorithm, set to nothing, leaves out the host's name",
        ),
    }
)
"""The replacements by the name as it is mostly written. `find_renamed` also finds other marks between its words."""


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


_PLAIN = MappingProxyType({_plain(name): renamed for name, renamed in RENAMED_KEYS.items()})


def find_renamed(name: str) -> RenamedKey | None:
    """Return the entry of an old name, whatever marks are between its words."""
    return _PLAIN.get(_plain(name))
