"""Every property of MM2 and of Lockstep: type, default, meaning, where it is allowed, what becomes of it here.

One table drives validation, the nearest known key in a message, and the documentation. Client properties (behind
`consumer.`, `producer.`, `admin.`) and connection properties have tables of their own in `client_keys`. Defaults are
those of MM2's code, written as in the file (`mm2-behaviour.md` §5).
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from lockstep_config.keys.ignored_keys import BYTES_UNTOUCHED, KEYS_WITHOUT_EFFECT
from lockstep_config.keys.key_types import (
    ALIAS_KEYS,
    ALIAS_OF_CLUSTER,
    ANYWHERE,
    CLUSTER_ONLY,
    CONNECTOR,
    FLOW_ONLY,
    MAXIMUM,
    TOP_ONLY,
    WORKER,
    Key,
    KeyLevel,
    KeyStatus,
    ValueKind,
    flag,
    interval,
    replication,
)
from lockstep_config.keys.lockstep_keys import LOCKSTEP_KEYS
from lockstep_config.keys.transform_keys import find_transform_key
from lockstep_config.text.values import progress_topic
from lockstep_rules import filters

BYTES_ONLY = "org.apache.kafka.connect.converters.ByteArrayConverter"
MIRROR = "org.apache.kafka.connect.mirror."
DEFAULT_POLICY = MIRROR + "DefaultReplicationPolicy"
IDENTITY_POLICIES = (
    MIRROR + "IdentityReplicationPolicy",
    MIRROR + "LegacyReplicationPolicy",
    "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy",
    "org.apache.kafka.mirror.LegacyReplicationPolicy",
)
"""Policies that keep names. All behave alike (`mm2-behaviour.md` §2.1).

They are Kafka's, the name that it had in KIP-382, Strimzi's older equivalent, and KIP-382's as in Red Hat's
documentation.
"""


def _patterns(name: str, default: Sequence[str], meaning: str) -> Key:
    return Key(name=name, kind=ValueKind.PATTERNS, default=", ".join(default), meaning=meaning)


def _only(
    name: str, choices: tuple[str, ...], meaning: str, reason: str, levels: frozenset[KeyLevel] = CONNECTOR
) -> Key:
    return Key(
        name=name,
        kind=ValueKind.CLASS,
        default=choices[0] if choices else None,
        meaning=meaning,
        levels=levels,
        status=KeyStatus.REFUSED,
        reason=reason,
        choices=choices,
    )


def _renamed(name: str, to: str) -> Key:
    return Key(
        name=name, kind=ValueKind.PATTERNS, meaning=f"removed in Kafka 4.0: {to}", levels=CONNECTOR, renamed_to=to
    )


NO_CLASSES = "Java classes cannot run here; only the ones that ship with MirrorMaker are known"

_FLOW_KEYS = (
    flag("enabled", "false", "replicate this flow"),
    Key(
        name="tasks.max",
        kind=ValueKind.INTEGER,
        minimum=1,
        maximum=MAXIMUM,
        meaning="upper limit of slots that copy at once; unset: one per core (MirrorMaker: 1)",
    ),
    interval("admin.timeout.ms", "60000", "limit of one administrative call, milliseconds"),
    Key(
        name="replication.policy.class",
        kind=ValueKind.CLASS,
        default=DEFAULT_POLICY,
        choices=(DEFAULT_POLICY, *IDENTITY_POLICIES),
        status=KeyStatus.REFUSED,
        meaning="how remote topics are named",
        reason=NO_CLASSES,
    ),
    Key(
        name="replication.policy.separator",
        default=".",
        meaning="what separates the alias and the topic in a remote topic's name",
    ),
    Key(
        name=ALIAS_KEYS[0],
        default="SOURCE",
        meaning="what the source is called in names of topics, heartbeats and progress; may be empty",
    ),
    Key(
        name=ALIAS_KEYS[1],
        default="TARGET",
        meaning="what the target is called in the offset syncs' name, in heartbeats, and by cycle detection; may be "
        "empty",
    ),
    Key(
        name=ALIAS_OF_CLUSTER,
        levels=CLUSTER_ONLY,
        meaning=f"as {ALIAS_KEYS[0]} of the flows from this cluster, and {ALIAS_KEYS[1]} of those to it",
    ),
    flag(
        "replication.policy.internal.topic.separator.enabled", "true", "use the separator in internal topics' names too"
    ),
)

_SOURCE_KEYS = (
    _patterns("topics", filters.DEFAULT_TOPICS, "topics to replicate"),
    _patterns("topics.exclude", filters.DEFAULT_TOPICS_EXCLUDE, "topics not to replicate; wins over `topics`"),
    _patterns("config.properties.exclude", filters.DEFAULT_CONFIG_PROPERTIES_EXCLUDE, "topic configs not to replicate"),
    Key(
        name="use.defaults.from",
        default="target",
        choices=("source", "target"),
        levels=FLOW_ONLY,
        meaning="whose default a topic config takes that the source topic does not set",
    ),
    flag("refresh.topics.enabled", "true", "look for new topics and partitions"),
    interval(
        "refresh.topics.interval.seconds",
        "600",
        "longest time until a new topic is seen, seconds; usually it is far shorter",
    ),
    flag("sync.topic.configs.enabled", "true", "keep topic configs in step"),
    interval("sync.topic.configs.interval.seconds", "600", "how often topic configs are compared, seconds"),
    flag("sync.topic.acls.enabled", "true", "keep the ACLs of topics in step"),
    interval("sync.topic.acls.interval.seconds", "600", "how often ACLs are compared, seconds"),
    replication("replication.factor", "2", "replicas of new remote topics"),
    replication("offset-syncs.topic.replication.factor", "3", "replicas of the offset-syncs topic"),
    Key(
        name="offset-syncs.topic.location",
        default="source",
        choices=("source", "target"),
        meaning="the cluster that holds the offset-syncs topic",
    ),
    flag("emit.offset-syncs.enabled", "true", "write offset syncs; without them there are no checkpoints"),
    Key(
        name="offset.lag.max",
        kind=ValueKind.INTEGER,
        default="100",
        minimum=0,
        meaning="how far a translated offset may lag behind, records; 0: a sync for every record",
    ),
    flag("heartbeats.replication.enabled", "true", "replicate heartbeats topics even where the filter leaves them out"),
)

_CHECKPOINT_AND_HEARTBEAT_KEYS = (
    _patterns("groups", filters.DEFAULT_GROUPS, "consumer groups whose positions are translated"),
    _patterns("groups.exclude", filters.DEFAULT_GROUPS_EXCLUDE, "groups left out; wins over `groups`"),
    flag("refresh.groups.enabled", "true", "look for new groups"),
    interval("refresh.groups.interval.seconds", "600", "longest time until a new group is seen, seconds"),
    flag("emit.checkpoints.enabled", "true", "write checkpoints"),
    interval("emit.checkpoints.interval.seconds", "60", "how often checkpoints are written, seconds"),
    flag("sync.group.offsets.enabled", "false", "write translated positions to the target's own groups"),
    interval(
        "sync.group.offsets.interval.seconds", "60", "how often positions are written to the target's groups, seconds"
    ),
    replication("checkpoints.topic.replication.factor", "3", "replicas of the checkpoints topic"),
    flag("emit.heartbeats.enabled", "true", "write heartbeats; does not depend on `enabled`"),
    interval("emit.heartbeats.interval.seconds", "1", "how often a heartbeat is written, seconds"),
    replication("heartbeats.topic.replication.factor", "3", "replicas of the heartbeats topic"),
)

_WORKER_KEYS = (
    Key(
        name="group.id",
        levels=CLUSTER_ONLY,
        default="SOURCE-mm2",
        meaning="name of one of several instances on the same target: our topics, groups and ids carry it",
    ),
    Key(
        name="offset.storage.topic",
        parse=progress_topic,
        levels=WORKER,
        default="mm2-offsets.SOURCE.internal",
        meaning="topic with the progress",
    ),
    Key(
        name="offsets.storage.topic",
        parse=progress_topic,
        levels=FLOW_ONLY,
        meaning="topic with the progress of this flow alone; it goes before offset.storage.topic",
    ),
    replication("offset.storage.replication.factor", "3", "replicas of the progress topic, and of ours", WORKER),
    Key(
        name="offset.storage.partitions",
        kind=ValueKind.INTEGER,
        default="25",
        levels=WORKER,
        minimum=-1,
        maximum=MAXIMUM,
        meaning="partitions of the progress topic",
    ),
    Key(
        name="offset.flush.interval.ms",
        kind=ValueKind.INTEGER,
        default="60000",
        levels=CLUSTER_ONLY,
        minimum=1,
        meaning="how often progress is written, milliseconds; never less often than each second here",
    ),
    Key(
        name="exactly.once.source.support",
        default="disabled",
        choices=("disabled", "preparing", "enabled"),
        levels=CLUSTER_ONLY,
        meaning="enabled: records and progress go to this target in transactions; restarts are exact without, too",
    ),
    Key(
        name="exactly.once.support",
        levels=FLOW_ONLY,
        default="requested",
        choices=("requested", "required"),
        meaning="required: the flow does not start unless its target has exactly.once.source.support=enabled and its "
        "source is read with isolation.level=read_committed",
    ),
    Key(
        name="transaction.boundary",
        levels=FLOW_ONLY,
        default="poll",
        choices=("poll", "interval"),
        meaning="when a transaction ends. poll: as soon as what was fetched is appended, and at times while records "
        "wait. interval: at an interval. connector is for connectors that define boundaries, which "
        "MirrorMaker's do not",
    ),
    Key(
        name="transaction.boundary.interval.ms",
        levels=FLOW_ONLY,
        kind=ValueKind.INTEGER,
        default="offset.flush.interval.ms",
        minimum=1,
        meaning="with transaction.boundary=interval: how long a transaction stays open, milliseconds",
    ),
    _only("key.converter", (BYTES_ONLY,), "converter of keys", BYTES_UNTOUCHED, ANYWHERE),
    _only("value.converter", (BYTES_ONLY,), "converter of values", BYTES_UNTOUCHED, ANYWHERE),
    _only("header.converter", (BYTES_ONLY,), "converter of headers", BYTES_UNTOUCHED, ANYWHERE),
)

_REFUSED_KEYS = (
    Key(
        name="transforms",
        kind=ValueKind.LIST,
        default="",
        meaning="names of single message transforms. Of Connect's, RegexRouter becomes `lockstep.rename`, Filter "
        "`lockstep.filter`, InsertHeader and DropHeaders `lockstep.headers`",
    ),
    Key(
        name="predicates",
        kind=ValueKind.LIST,
        default="",
        meaning="names of predicates of transforms. HasHeaderKey, RecordIsTombstone and TopicNameMatches are known",
    ),
    _only("topic.filter.class", (MIRROR + "DefaultTopicFilter",), "filter of topics", NO_CLASSES),
    _only("group.filter.class", (MIRROR + "DefaultGroupFilter",), "filter of groups", NO_CLASSES),
    _only(
        "config.property.filter.class", (MIRROR + "DefaultConfigPropertyFilter",), "filter of topic configs", NO_CLASSES
    ),
    _only(
        "forwarding.admin.class",
        ("org.apache.kafka.clients.admin.ForwardingAdmin",),
        "creates and alters topics",
        NO_CLASSES,
        ANYWHERE,
    ),
)

_TOP_KEYS = (
    Key(name="clusters", kind=ValueKind.LIST, levels=TOP_ONLY, meaning="aliases of the clusters, required"),
    Key(
        name="config.providers",
        kind=ValueKind.LIST,
        default="",
        levels=TOP_ONLY,
        meaning="names that `${name:...}` may use",
    ),
)

_REMOVED_KEYS = (
    _renamed("topics.blacklist", "topics.exclude"),
    _renamed("groups.blacklist", "groups.exclude"),
    _renamed("config.properties.blacklist", "config.properties.exclude"),
)


KEYS: Mapping[str, Key] = MappingProxyType(
    {
        key.name: key
        for key in (
            *_FLOW_KEYS,
            *_SOURCE_KEYS,
            *_CHECKPOINT_AND_HEARTBEAT_KEYS,
            *_WORKER_KEYS,
            *_REFUSED_KEYS,
            *_TOP_KEYS,
            *KEYS_WITHOUT_EFFECT,
            *_REMOVED_KEYS,
            *LOCKSTEP_KEYS,
        )
    }
)
"""The properties by name, without any prefix."""


def find_key(name: str) -> Key | None:
    """Return the property of this name, without any prefix; that of a transform has the transform's name in it."""
    return KEYS.get(name) or find_transform_key(name)
