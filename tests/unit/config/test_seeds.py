"""The examples of the documents that people start from (`tests/seeds`), held against what these say in words."""

import shutil
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from lockstep_config import Configuration, ConfigurationError, load
from lockstep_config.flow.connector_settings import AutoRestart, StatedPhase
from lockstep_config.flow.model import LegacySettings
from lockstep_config.loader.mm1_files import LegacyFiles, load_legacy
from lockstep_rules.policy import IdentityReplicationPolicy
from lockstep_state.names import Flow
from tests.support.strimzi_resources import Resources, certificate_and_key

from .conftest import only

SEEDS = Path(__file__).parents[2] / "seeds"
FLOW = Flow("my-cluster-source", "my-cluster-target")
OF_OTHERS = ("cluster", "user")
"""Ends of the names of files that are for Strimzi's other operators."""

USERS = {
    "my-user-source": "source",
    "my-user-target": "target",
    "my-source-user": "user",
    "my-target-user": "user",
    "my-source-secret": "public",
    "my-target-secret": "public",
}
AUTHORITIES = (
    "my-cluster-source-cluster-ca-cert",
    "my-cluster-target-cluster-ca-cert",
    "my-source-cluster-cluster-ca-cert",
    "my-target-cluster-cluster-ca-cert",
    "my-source-cluster-ca-cert",
    "my-target-cluster-ca-cert",
)


@pytest.fixture
def resources(tmp_path: Path) -> Resources:
    made = Resources(tmp_path)
    certificate, key = certificate_and_key()
    for name, stem in USERS.items():
        made.secret(name, **{f"{stem}__crt": certificate, f"{stem}__key": key, "private__key": key})
    for name in AUTHORITIES:
        made.secret(name, ca__crt=certificate, ca__password="unused")
    return made


def seed(resources: Resources, name: str) -> Configuration:
    return load(SEEDS / f"{name}.yaml", resources.environment)


def test_every_resource_among_the_documents_loads(resources: Resources) -> None:
    names = [path.stem for path in sorted(SEEDS.glob("*.yaml")) if not path.stem.endswith(OF_OTHERS)]
    assert len(names) == 19
    for name in names:
        assert only(seed(resources, name)).enabled, name


@pytest.mark.parametrize("name", sorted(path.stem for path in SEEDS.glob("*.yaml") if path.stem.endswith(OF_OTHERS)))
def test_clusters_and_users_are_no_inputs_and_are_left_alone_beside_one(resources: Resources, name: str) -> None:
    with pytest.raises(ConfigurationError, match="but no KafkaMirrorMaker2 or KafkaMirrorMaker"):
        seed(resources, name)
    both = (SEEDS / f"{name}.yaml").read_text() + "---\n" + (SEEDS / "streams-9.9-minimal.yaml").read_text()
    loaded = resources.load(both)
    assert only(loaded).enabled
    assert [note.message for note in loaded.notes if "which is not read here" in note.message]


@pytest.mark.parametrize("name", ["strimzi-0.17-minimal", "strimzi-0.18-minimal", "streams-9.9-minimal"])
def test_a_minimal_configuration_with_defaults_left_unchanged(resources: Resources, name: str) -> None:
    settings = only(seed(resources, name))
    assert (settings.flow, settings.source.bootstrap, settings.target.bootstrap) == (
        FLOW,
        "my-cluster-source-kafka-bootstrap:9092",
        "my-cluster-target-kafka-bootstrap:9092",
    )
    assert settings.source.properties["security.protocol"] == "PLAINTEXT"
    assert settings.data_plane.enabled
    assert not settings.checkpoint.enabled, "only the source connector is there"
    assert not settings.heartbeat.enabled
    assert settings.policy.format_remote_topic("my-cluster-source", "t") == "my-cluster-source.t"
    assert settings.topics.matches("anything")
    assert settings.group_id == "mirrormaker2-cluster"
    assert settings.control.offset_storage_topic == "mirrormaker2-cluster-offsets"
    assert settings.control.progress_connector == f"{FLOW}.MirrorSourceConnector"


def test_patterns_select_topics_and_groups(resources: Resources) -> None:
    topics = only(seed(resources, "strimzi-0.17-topics-pattern")).topics
    assert topics.matches("orders")
    groups = only(seed(resources, "strimzi-0.17-groups-pattern")).groups
    assert [groups.matches(f"group{number}") for number in range(1, 5)] == [True, True, True, False]


@pytest.mark.parametrize("name", ["strimzi-0.17-tls", "strimzi-0.18-whole", "streams-9.9-whole"])
def test_tls_authentication_for_the_source_and_target_cluster(resources: Resources, name: str) -> None:
    settings = only(seed(resources, name))
    certificate, key = (text.rstrip("\n") for text in certificate_and_key())
    for cluster in (settings.source, settings.target):
        properties = cluster.properties
        assert properties["security.protocol"] == "SSL"
        assert properties["ssl.truststore.certificates"] == certificate
        assert properties["ssl.keystore.certificate.chain"] == certificate
        assert properties["ssl.keystore.key"] == key
    assert settings.control.storage_replication_factor == 1


def test_the_connectors_config_overrides_the_replication_factors(resources: Resources) -> None:
    settings = only(seed(resources, "strimzi-0.17-replication-factors"))
    assert settings.topic_sync.replication_factor == 1
    assert settings.data_plane.offset_syncs_replication_factor == 1
    assert settings.heartbeat.topic_replication_factor == 1
    assert settings.checkpoint.topic_replication_factor == 1


def test_the_whole_example_of_0_18(resources: Resources) -> None:
    settings = only(seed(resources, "strimzi-0.18-whole"))
    assert settings.rules.version == "3.0", "2.5.0 is older than the rules that are known"
    assert not settings.acl_sync.enabled, "the default is true, the example says false"
    assert settings.topics.matches("any")
    assert settings.groups.matches("group2")
    assert not settings.groups.matches("group4")
    assert settings.heartbeat.enabled
    assert settings.checkpoint.enabled


def test_the_whole_example_of_9_9(resources: Resources) -> None:
    loaded = seed(resources, "streams-9.9-whole")
    settings = only(loaded)
    assert settings.rules.version == "3.8"
    assert isinstance(settings.policy, IdentityReplicationPolicy), "the topic retains its original name"
    assert [name for name in ("topic1", "topic3", "topic4") if settings.topics.matches(name)] == ["topic1", "topic3"]
    assert settings.data_plane.tasks_max == 10
    assert settings.checkpoint.tasks_max is None
    assert settings.topic_sync.refresh_every == timedelta(seconds=60)
    assert not settings.acl_sync.enabled
    assert settings.checkpoint.sync_group_offsets
    assert settings.checkpoint.sync_group_offsets_every == timedelta(seconds=60)
    assert settings.checkpoint.emit_every == timedelta(seconds=60)
    assert settings.checkpoint.refresh_groups_every == timedelta(seconds=600)
    # "By default, the number of restarts is indefinite."
    assert settings.auto_restart.source == AutoRestart(enabled=True, max_restarts=None)
    assert settings.tracing
    (chart,) = [remark for remark in loaded.unused if "is the Helm chart's, as are" in remark.message]
    for name in ("readinessProbe", "livenessProbe", "jvmOptions", "image", "template"):
        assert f"spec.{name}" in chart.message
    assert chart.key == "spec.resources"


def test_seed_with_several_instances_has_its_topics_and_group(resources: Resources) -> None:
    settings = only(seed(resources, "streams-9.9.2-several-instances"))
    assert settings.group_id == "my-connect-cluster"
    assert settings.control.offset_storage_topic == "my-connect-cluster-offsets"


def test_each_connector_has_producers_and_consumers_of_its_own(resources: Resources) -> None:
    settings = only(seed(resources, "streams-9.9.4-producers-and-consumers"))
    assert settings.data_plane.tasks_max == 5
    assert settings.clients.source_consumer["fetch.max.bytes"] == "52428800"
    assert settings.clients.data_producer["batch.size"] == "327680"
    assert settings.clients.source_producer["request.timeout.ms"] == "30000", "it writes offset syncs"
    checkpoint, heartbeat = settings.as_seen_by("checkpoint"), settings.as_seen_by("heartbeat")
    assert checkpoint.clients.target_producer["request.timeout.ms"] == "30000"
    assert heartbeat.clients.target_producer["request.timeout.ms"] == "30000"
    assert "max.poll.interval.ms" not in heartbeat.clients.source_consumer
    assert checkpoint.clients.source_consumer["max.poll.interval.ms"] == "300000"


def test_the_number_of_tasks_is_each_connectors_own(resources: Resources) -> None:
    assert only(seed(resources, "streams-9.9.5-tasks-of-source")).data_plane.tasks_max == 10
    settings = only(seed(resources, "streams-9.9.5-tasks-of-checkpoint"))
    assert settings.checkpoint.tasks_max == 10
    assert not settings.data_plane.enabled, "there is no source connector"
    assert not settings.acl_sync.enabled


def test_the_mtls_example(resources: Resources) -> None:
    settings = only(seed(resources, "streams-9.9.7-mtls"))
    assert settings.flow == Flow("my-source-cluster", "my-target-cluster")
    # "-1 means it will use the default replication factor configured in the broker"
    assert settings.control.storage_replication_factor == -1
    assert settings.checkpoint.sync_group_offsets
    assert settings.source.properties["security.protocol"] == "SSL"


def test_a_connector_is_stopped_by_its_state(resources: Resources) -> None:
    settings = only(seed(resources, "streams-9.9.8-stopped"))
    path = SEEDS / "streams-9.9.8-stopped.yaml"
    said = f"{path}:21: spec.mirrors[0].sourceConnector.state"
    assert settings.states.source == StatedPhase(phase="stopped", key=said)
    assert settings.data_plane.tasks_max == 10


def test_mirror_maker_1_of_0_18(resources: Resources) -> None:
    loaded = seed(resources, "strimzi-0.18-mirror-maker")
    settings = only(loaded)
    assert settings.flow == Flow("source", "target")
    assert settings.source.bootstrap == "my-source-cluster-kafka-bootstrap:9092"
    assert [settings.topics.matches(name) for name in ("my-topic", "other-topic", "third")] == [True, True, False]
    assert settings.data_plane.tasks_max == 2, "the number of consumer streams"
    # "The offset auto-commit interval in milliseconds"; with abortOnSendFailure false, what fails is not the end.
    every = timedelta(milliseconds=120_000)
    assert settings.data_plane.legacy == LegacySettings(
        group="my-group", abort_on_send_failure=False, commit_every=every
    )
    assert settings.policy.format_remote_topic("source", "my-topic") == "my-topic"
    runs = (settings.checkpoint.enabled, settings.heartbeat.enabled, settings.acl_sync.enabled)
    assert runs == (False, False, False)
    assert settings.clients.source_consumer["receive.buffer.bytes"] == "32768"
    assert settings.data_plane.compression_type == "gzip"
    assert settings.target.properties["ssl.keystore.type"] == "PEM"
    unused_keys = {remark.key for remark in loaded.unused}
    assert {"spec.consumer.config.max.poll.records", "spec.producer.config.batch.size", "spec.metrics"} <= unused_keys


def test_the_properties_of_chapter_9(tmp_path: Path) -> None:
    _key_store(tmp_path / "user.cluster-1.p12", "my-keystore-password")
    _trust_store(tmp_path / "truststore.cluster-1.jks", "my-truststore-password", tmp_path / "ca.pem")
    for name in ("user.cluster-{}.p12", "truststore.cluster-{}.jks"):
        shutil.copy(tmp_path / name.format(1), tmp_path / name.format(2))
    path = SEEDS / "amq-streams-9.4-connect-mirror-maker.properties"
    forth, back = load(path, {"STORES": str(tmp_path)}).flows
    assert (forth.flow, back.flow) == (Flow("cluster-1", "cluster-2"), Flow("cluster-2", "cluster-1"))
    for settings in (forth, back):
        assert settings.enabled
        assert settings.topics.matches("any")
        assert settings.policy.format_remote_topic("cluster-1", "t") == "cluster-1-t"
        assert not settings.acl_sync.enabled
        assert settings.topic_sync.refresh_every == settings.checkpoint.refresh_groups_every == timedelta(seconds=60)
        assert settings.source.properties["security.protocol"] == "SSL"


def test_the_legacy_files_of_chapter_9() -> None:
    files = LegacyFiles(
        SEEDS / "amq-streams-9.5-consumer.properties",
        SEEDS / "amq-streams-9.5-producer.properties",
        {"num.streams": "2"},
    )
    settings = only(load_legacy(files, {}))
    assert settings.policy.format_remote_topic("source", "t") == "t"
    assert settings.data_plane.tasks_max == 2
    assert not settings.topic_sync.refresh_enabled
    assert not settings.checkpoint.enabled
    assert not settings.heartbeat.enabled
    assert not settings.topic_sync.sync_configs
    assert not settings.acl_sync.enabled


def _key_store(path: Path, password: str) -> None:
    store = f"-storetype pkcs12 -keystore {path} -storepass {password} -alias one"
    subprocess.run(f"keytool -genkeypair -keyalg EC -dname CN=test -validity 2 {store}".split(), check=True)


def _trust_store(path: Path, password: str, pem: Path) -> None:
    pem.write_text(certificate_and_key()[0])
    store = f"-storetype jks -keystore {path} -storepass {password}"
    made = f"keytool -importcert -noprompt -alias ca -file {pem} {store}"
    subprocess.run(made.split(), check=True, capture_output=True)
