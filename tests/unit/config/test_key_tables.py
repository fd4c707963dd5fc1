"""Every property of MM2's connectors is known, with its default and where it may stand; and so is the page."""

import pytest

from lockstep_config.keys.ignored_keys import FAMILIES
from lockstep_config.keys.key_types import (
    ANYWHERE,
    CLUSTER_ONLY,
    CONNECTOR,
    FLOW_ONLY,
    TOP_ONLY,
    WORKER,
    KeyLevel,
    KeyStatus,
)
from lockstep_config.keys.mm2_keys import KEYS
from tools.docs.configuration import PAGE

from .conftest import LoadText, MistakesOf

MIRROR = "org.apache.kafka.connect.mirror."
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
CONFIGS_EXCLUDE = (
    "follower.replication.throttled.replicas, leader.replication.throttled.replicas, "
    "message.timestamp.difference.max.ms, log.message.timestamp.before.max.ms, log.message.timestamp.after.max.ms, "
    "message.timestamp.type, unclean.leader.election.enable, min.insync.replicas"
)

DEFAULTS = {
    # 5.1, common to the three connectors
    "enabled": ("false", CONNECTOR),
    "admin.timeout.ms": ("60000", CONNECTOR),
    "replication.policy.class": (MIRROR + "DefaultReplicationPolicy", CONNECTOR),
    "replication.policy.separator": (".", CONNECTOR),
    "source.cluster.alias": ("SOURCE", CONNECTOR),
    "target.cluster.alias": ("TARGET", CONNECTOR),
    "alias": ("", CLUSTER_ONLY),
    "replication.policy.internal.topic.separator.enabled": ("true", CONNECTOR),
    "forwarding.admin.class": ("org.apache.kafka.clients.admin.ForwardingAdmin", ANYWHERE),
    "config.providers": ("", TOP_ONLY),
    # 5.2, source
    "topics": (".*", CONNECTOR),
    "topics.exclude": (r"mm2.*\.internal, .*\.replica, __.*", CONNECTOR),
    "config.properties.exclude": (CONFIGS_EXCLUDE, CONNECTOR),
    "use.defaults.from": ("target", FLOW_ONLY),
    "topic.filter.class": (MIRROR + "DefaultTopicFilter", CONNECTOR),
    "config.property.filter.class": (MIRROR + "DefaultConfigPropertyFilter", CONNECTOR),
    "refresh.topics.enabled": ("true", CONNECTOR),
    "refresh.topics.interval.seconds": ("600", CONNECTOR),
    "sync.topic.configs.enabled": ("true", CONNECTOR),
    "sync.topic.configs.interval.seconds": ("600", CONNECTOR),
    "sync.topic.acls.enabled": ("true", CONNECTOR),
    "sync.topic.acls.interval.seconds": ("600", CONNECTOR),
    "replication.factor": ("2", CONNECTOR),
    "offset-syncs.topic.replication.factor": ("3", CONNECTOR),
    "offset-syncs.topic.location": ("source", CONNECTOR),
    "emit.offset-syncs.enabled": ("true", CONNECTOR),
    "offset.lag.max": ("100", CONNECTOR),
    "heartbeats.replication.enabled": ("true", CONNECTOR),
    "exactly.once.support": ("requested", FLOW_ONLY),
    "transaction.boundary": ("poll", FLOW_ONLY),
    # 5.3, checkpoint and heartbeat
    "groups": (".*", CONNECTOR),
    "groups.exclude": ("console-consumer-.*, connect-.*, __.*", CONNECTOR),
    "group.filter.class": (MIRROR + "DefaultGroupFilter", CONNECTOR),
    "refresh.groups.enabled": ("true", CONNECTOR),
    "refresh.groups.interval.seconds": ("600", CONNECTOR),
    "emit.checkpoints.enabled": ("true", CONNECTOR),
    "emit.checkpoints.interval.seconds": ("60", CONNECTOR),
    "sync.group.offsets.enabled": ("false", CONNECTOR),
    "sync.group.offsets.interval.seconds": ("60", CONNECTOR),
    "checkpoints.topic.replication.factor": ("3", CONNECTOR),
    "emit.heartbeats.enabled": ("true", CONNECTOR),
    "emit.heartbeats.interval.seconds": ("1", CONNECTOR),
    "heartbeats.topic.replication.factor": ("3", CONNECTOR),
    # 5.5, the worker on the target
    "offsets.storage.topic": ("", FLOW_ONLY),
    "offset.storage.topic": ("mm2-offsets.SOURCE.internal", WORKER),
    "offset.storage.replication.factor": ("3", WORKER),
    "offset.storage.partitions": ("25", WORKER),
    "offset.flush.interval.ms": ("60000", CLUSTER_ONLY),
    "exactly.once.source.support": ("disabled", CLUSTER_ONLY),
    "group.id": ("SOURCE-mm2", CLUSTER_ONLY),
    "key.converter": (BYTES, ANYWHERE),
    "value.converter": (BYTES, ANYWHERE),
    "header.converter": (BYTES, ANYWHERE),
}
UNUSED = (
    *("name", "connector.class", "connector.plugin.version", "metric.reporters", "consumer.poll.timeout.ms"),
    *("metric.names.formats", "task.assigned.partitions", "task.index", "add.source.alias.to.metrics"),
    *("use.incremental.alter.configs", "dedicated.mode.enable.internal.rest", "listeners", "admin.listeners"),
    *("tasks.max.enforce", "config.action.reload"),
)
BY_FAMILY = (
    *("topic.creation.default.replication.factor", "topic.creation.groups", "errors.retry.timeout", "errors.tolerance"),
    *("config.storage.topic", "config.storage.replication.factor", "status.storage.topic", "status.storage.partitions"),
    *("rest.advertised.host.name", "rest.advertised.port", "worker.sync.timeout.ms", "task.shutdown.graceful"),
    "key.converter.schemas.enable",
)
REMOVED = {
    "topics.blacklist": "topics.exclude",
    "groups.blacklist": "groups.exclude",
    "config.properties.blacklist": "config.properties.exclude",
}
CHANGE_DATA = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter",
}


@pytest.mark.parametrize("name", sorted(DEFAULTS))
def test_each_property_has_mm2s_default_and_its_places(name: str) -> None:
    default, scopes = DEFAULTS[name]
    key = KEYS[name]
    assert ((key.default or ""), key.levels) == (default, scopes)
    assert key.meaning


@pytest.mark.parametrize("name", UNUSED)
def test_key_without_effect_has_its_reason(name: str) -> None:
    assert KEYS[name].status is KeyStatus.WITHOUT_EFFECT
    assert KEYS[name].reason


@pytest.mark.parametrize("name", BY_FAMILY)
def test_families_take_the_rest(name: str) -> None:
    assert name not in KEYS
    assert any(name.startswith(family.prefix) and family.reason for family in FAMILIES)


@pytest.mark.parametrize("name", sorted(REMOVED))
def test_key_renamed_in_kafka_4_counts_with_a_note(name: str, load_text: LoadText) -> None:
    loaded = load_text(f"A->B.{name} = x\n")
    (note,) = loaded.notes
    assert note.message == (
        f"was renamed to {REMOVED[name]}, which counts where both are set. MirrorMaker ignores this line since 4.0, "
        f"and here it counts: write {REMOVED[name]}, or remove the line to have what MirrorMaker does"
    )


@pytest.mark.parametrize("name", ["use.incremental.alter.configs", "add.source.alias.to.metrics"])
def test_key_removed_in_kafka_4_has_its_reason(name: str, load_text: LoadText) -> None:
    (unused,) = load_text(f"{name} = true\n").unused
    assert unused.message.startswith("has no effect: removed in Kafka 4.0: ")


class TestWhatWouldChangeData:
    @pytest.mark.parametrize("scope", ["", "A->B.", "B."])
    @pytest.mark.parametrize("name", sorted(CHANGE_DATA))
    def test_change_data_key_is_refused_in_every_scope(self, name: str, scope: str, mistakes_of: MistakesOf) -> None:
        (mistake,) = mistakes_of(f"{scope}{name} = {CHANGE_DATA[name]}\n")
        assert mistake.startswith(f"5 {scope}{name}: is '{CHANGE_DATA[name]}', which is refused: ")

    @pytest.mark.parametrize("scope", ["", "A->B.", "B."])
    @pytest.mark.parametrize("name", ["transforms.mask.type", "predicates.p.type"])
    def test_change_data_parts_alone_have_no_effect(self, name: str, scope: str, load_text: LoadText) -> None:
        (unused,) = load_text(f"{scope}{name} = x\n").unused
        assert unused.key == f"{scope}{name}"

    @pytest.mark.parametrize(
        "prefix",
        [
            *("A.consumer", "B.producer", "A->B.consumer", "A->B.producer", "A->B.source.consumer"),
            *("A->B.target.producer", "A->B.producer.override"),
        ],
    )
    def test_interceptors_are_refused_for_every_client(self, prefix: str, mistakes_of: MistakesOf) -> None:
        (mistake,) = mistakes_of(f"{prefix}.interceptor.classes = com.example.Audit\n")
        assert mistake.startswith(f"5 {prefix}.interceptor.classes: is 'com.example.Audit', which is refused: ")

    @pytest.mark.parametrize("key", ["B.producer.key.serializer", "A->B.producer.override.value.serializer"])
    def test_class_that_changes_bytes_is_refused(self, key: str, mistakes_of: MistakesOf, load_text: LoadText) -> None:
        (mistake,) = mistakes_of(f"{key} = com.example.Avro\n")
        assert mistake.startswith(f"5 {key}: is 'com.example.Avro', which is refused: ")
        assert load_text(f"{key} = org.apache.kafka.common.serialization.ByteArraySerializer\n").unused == ()


class TestThePage:
    def test_every_key_is_on_it(self) -> None:
        page = PAGE.read_text(encoding="utf-8")
        assert [name for name in KEYS if f"`{name}`" not in page] == []

    def test_every_key_has_its_scopes(self) -> None:
        assert [name for name, key in KEYS.items() if not key.levels <= set(KeyLevel) or not key.levels] == []
