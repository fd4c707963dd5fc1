"""The loaded model as a value; the sample files; what has no effect; the table of keys."""

import pickle
from dataclasses import FrozenInstanceError
from datetime import timedelta
from pathlib import Path

import pytest

from lockstep_config import load
from lockstep_config.keys.client_keys import CLIENT, CONNECTION
from lockstep_config.keys.key_types import KeyLevel, KeyStatus
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_config.text.secrets import is_secret, mask_value
from lockstep_rules.policy import IdentityReplicationPolicy
from lockstep_state.names import Flow

from .conftest import A_TO_B, LoadText, patterns

FILES = Path(__file__).parent / "files"
ENVIRONMENT = {"EU_PASSWORD": "kept-from-everyone"}


def test_the_active_active_sample_loads_as_its_comments_say() -> None:
    loaded = load(FILES / "active_active.properties", ENVIRONMENT)
    assert list(loaded.clusters) == ["eu-west", "us-east"]
    assert loaded.clusters["eu-west"].bootstrap == (
        "kafka-1.eu.example.com:9092,kafka-2.eu.example.com:9092,kafka-3.eu.example.com:9092"
    )
    forth = loaded.flow(Flow("eu-west", "us-east"))
    back = loaded.flow(Flow("us-east", "eu-west"))
    assert forth.topics.matches("orders.created")
    assert not forth.topics.matches("ordersXcreated")
    assert forth.topics.matches("customers-12")
    assert not forth.topics.matches("clicks")
    assert back.topics.matches("clicks")
    assert (forth.checkpoint.sync_group_offsets, back.checkpoint.sync_group_offsets) == (False, True)
    assert back.checkpoint.sync_group_offsets_every == timedelta(seconds=10)
    assert forth.topic_sync.refresh_every == timedelta(seconds=30)
    assert (forth.data_plane.tasks_max, forth.data_plane.compression_type) == (4, "lz4")
    assert (forth.data_plane.fetch.min_bytes, back.data_plane.fetch.min_bytes) == (1_000_000, 1)
    assert forth.control.storage_replication_factor == 2
    assert [f"{unused.line} {unused.key}" for unused in loaded.unused] == [
        "42 config.storage.replication.factor",
        "43 status.storage.replication.factor",
        "46 eu-west.consumer.max.poll.records",
        "51 us-east.producer.batch.size",
        "52 us-east.producer.linger.ms",
        "57 dedicated.mode.enable.internal.rest",
    ]
    assert loaded.notes == ()


def test_the_smallest_sample_loads_without_a_remark() -> None:
    loaded = load(FILES / "one_way.properties", {})
    assert (loaded.unused, loaded.notes) == ((), ())
    assert [(str(settings.flow), settings.enabled) for settings in loaded.flows] == [
        ("primary->backup", True),
        ("backup->primary", False),
    ]


def test_the_migration_sample_keeps_names_and_runs_one_flow() -> None:
    loaded = load(FILES / "identity_migration.properties", {})
    (settings,) = loaded.flows
    assert settings.policy == IdentityReplicationPolicy("old", ".", True)
    assert settings.policy.format_remote_topic("old", "t") == "t"
    assert settings.group_id == "migration-2"
    assert settings.control.offset_storage_topic == "migration-offsets"
    assert settings.data_plane.offset_syncs_location == "target"
    assert settings.data_plane.isolation_level == "read_committed"
    assert settings.data_plane.auto_offset_reset == "latest"


@pytest.mark.parametrize("name", ["active_active", "one_way", "identity_migration"])
def test_a_configuration_travels_to_workers_and_arrives_equal(name: str) -> None:
    loaded = load(FILES / f"{name}.properties", ENVIRONMENT)
    arrived = pickle.loads(pickle.dumps(loaded))  # noqa: S301 our own bytes
    assert arrived == loaded
    assert arrived.flows[0].topics.matches("orders.x") == loaded.flows[0].topics.matches("orders.x")


def test_a_configuration_cannot_be_changed_and_can_be_a_key() -> None:
    loaded = load(FILES / "one_way.properties", {})
    with pytest.raises(FrozenInstanceError):
        loaded.flows[0].enabled = False  # type: ignore[misc]  # that it cannot be is the point
    assert {loaded.flows[0]: 1}[load(FILES / "one_way.properties", {}).flows[0]] == 1


def test_secrets_are_in_no_representation() -> None:
    loaded = load(FILES / "active_active.properties", ENVIRONMENT)
    assert "kept-from-everyone" in loaded.clusters["eu-west"].properties["sasl.jaas.config"]
    assert "kept-from-everyone" not in repr(loaded)
    assert "kept-from-everyone" not in str([*loaded.unused, *loaded.notes])


SECRETS = (
    *("A.ssl.keystore.password", "ssl.key.password", "A.sasl.jaas.config", "ssl.keystore.key", "aws.access.key"),
    *("A->B.source.consumer.sasl.oauthbearer.client.credentials.client.secret", "some.token", "basic.auth.user"),
)
NO_SECRETS = (
    *("topics", "ssl.keystore.location", "ssl.truststore.type", "key.converter", "A.bootstrap.servers"),
    *("sasl.oauthbearer.token.endpoint.url", "sasl.mechanism"),
)


@pytest.mark.parametrize("key", [*SECRETS, *NO_SECRETS])
def test_value_is_masked_where_its_key_is_a_secrets(key: str) -> None:
    assert is_secret(key) is (key in SECRETS)
    assert mask_value(key, "value") == ("********" if key in SECRETS else "value")
    assert mask_value(key, "") == ""


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (
            "consumer.fetch.min.bytes = 1",
            "MirrorMaker drops it at the top of the file: write ALIAS.consumer.fetch.min.bytes",
        ),
        ("source.consumer.client.rack = x", "MirrorMaker drops it at the top of the file"),
        ("target.cluster.bootstrap.servers = x:1", "MirrorMaker drops it at the top of the file"),
        ("use.defaults.from = source", "MirrorMaker does not read it here: write SOURCE->TARGET.use.defaults.from"),
        ("group.id = mine", "MirrorMaker does not read it here: write ALIAS.group.id"),
        ("A.topics = x", "MirrorMaker does not read it here: write topics or SOURCE->TARGET.topics"),
        ("A->B.group.id = x", "MirrorMaker does not read it here: write ALIAS.group.id"),
        (
            "A->B.security.protocol = SSL",
            "MirrorMaker connects to clusters, not to flows: write ALIAS.security.protocol",
        ),
        ("A->B.source.cluster.bootstrap.servers = z:1", "A.bootstrap.servers counts, as in MirrorMaker"),
        ("offset.flush.interval.ms = 5", "MirrorMaker does not read it here: write ALIAS.offset.flush.interval.ms"),
        ("metric.reporters = x", "metrics are on each service's page"),
        ("A.consumer.key.deserializer = com.example.Avro", "records are read as bytes whatever it says"),
        ("A.consumer.max.poll.records = 5", "whole batches are fetched, not single records"),
        ("B.producer.acks = 1", "the order and safety of what is written is Lockstep's own: acks=all, idempotent"),
        (
            "errors.tolerance = all",
            "nothing is skipped unseen here: a partition whose record is refused halts, or goes on with "
            "lockstep.on.refused=quarantine",
        ),
        ("transforms.mask.type = x", "no transform is named by `transforms`"),
        ("A.ssl.provider = SunJSSE", "it names a part of Java"),
        ("A->B.consumer.override.client.rack = x", "MirrorMaker does not read it"),
        ("add.source.alias.to.metrics = true", "removed in Kafka 4.0: metrics always name the source"),
    ],
)
def test_a_known_key_without_effect_is_listed_once_with_the_reason(load_text: LoadText, line: str, reason: str) -> None:
    loaded = load_text(line + "\n")
    (unused,) = loaded.unused
    assert (unused.line, unused.key) == (5, line.partition(" ")[0])
    assert unused.message.startswith(f"has no effect: {reason}")


@pytest.mark.parametrize(
    "line",
    [
        "transforms =",
        "key.converter = org.apache.kafka.connect.converters.ByteArrayConverter",
        "replication.policy.class = org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
        "topic.filter.class = org.apache.kafka.connect.mirror.DefaultTopicFilter",
        "A->B.use.defaults.from = source",
        "A->B.consumer.client.rack = x",
        "A->B.producer.override.compression.type = none",
    ],
)
def test_key_that_states_fixed_behaviour_loads_without_a_note(load_text: LoadText, line: str) -> None:
    loaded = load_text(line + "\n")
    assert (loaded.unused, loaded.notes) == ((), ())


def test_an_old_name_still_counts_where_the_new_one_is_not_set(load_text: LoadText) -> None:
    loaded = load_text("topics.blacklist = a\n")
    assert patterns(loaded.flow(A_TO_B).topics).exclude == ("a",)
    (note,) = loaded.notes
    assert note.message.startswith(
        "was renamed to topics.exclude, which counts where both are set. MirrorMaker ignores"
    )
    both = load_text("A->B.topics.blacklist = a\ntopics.exclude = b\n")
    assert patterns(both.flow(A_TO_B).topics).exclude == ("b",)


def test_no_topics_are_none(load_text: LoadText) -> None:
    assert not load_text("topics =\n").flow(A_TO_B).topics.matches("")


def test_the_name_of_the_instance_is_none_where_it_is_mm2s_own(load_text: LoadText) -> None:
    assert load_text("B.group.id = A-mm2\n").flow(A_TO_B).group_id is None
    assert load_text("B.group.id = two\n").flow(A_TO_B).group_id == "two"


def test_key_table_has_a_reason_for_every_key_without_effect() -> None:
    for key in KEYS.values():
        assert key.meaning
        assert key.levels
        assert (key.status is KeyStatus.USED) != bool(key.reason), key.name
    for clients in CLIENT.values():
        for client_key in clients.values():
            assert (client_key.status is KeyStatus.USED) != bool(client_key.reason), client_key.name
            assert client_key.name not in CONNECTION


def test_key_table_defaults_are_valid_values(load_text: LoadText) -> None:
    lines = [
        f"{name} = {key.default}".replace("\\", "\\\\")
        for name, key in KEYS.items()
        if KeyLevel.TOP in key.levels and key.default is not None and key.default not in KEYS
    ]
    loaded = load_text("\n".join(line for line in lines if not line.startswith(("enabled", "offset.storage.topic"))))
    assert loaded.flow(A_TO_B).topics == load_text().flow(A_TO_B).topics
    assert not loaded.unused


def test_an_empty_separator_is_usual_beside_a_policy_that_keeps_names(load_text: LoadText) -> None:
    policy = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    lines = f"replication.policy.separator =\nreplication.policy.class = {policy}\n"
    settings = load_text(lines).flow(A_TO_B)
    assert settings.offset_syncs_topic == "mm2-offset-syncsBinternal"
