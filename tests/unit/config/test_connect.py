"""Connectors on a Kafka Connect of one's own: each form in which they are kept, and what they become."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lockstep_config import Configuration, ConfigurationError, load
from lockstep_config.loader.settings_file import SETTINGS_VARIABLE

from .conftest import A_TO_B, only

MIRROR = "org.apache.kafka.connect.mirror."
IDENTITY = f"{MIRROR}IdentityReplicationPolicy"


def config(kind: str, **more: Any) -> dict[str, Any]:
    """The config of a `Mirror{kind}Connector`; `__` in a key is a dot, None takes one away."""
    stated = {
        "connector.class": f"{MIRROR}Mirror{kind}Connector",
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": "a:9092",
        "target.cluster.bootstrap.servers": "b:9092",
        "replication.policy.class": IDENTITY,
    } | {key.replace("__", "."): value for key, value in more.items()}
    return {key: value for key, value in stated.items() if value is not None}


SOURCE: dict[str, Any] = {"name": "mm2-source", "config": config("Source", tasks__max="3", topics="orders.*")}
CHECKPOINT: dict[str, Any] = {
    "name": "mm2-cp",
    "config": config("Checkpoint", sync__group__offsets__enabled=True, groups="g.*"),
}
HEARTBEAT: dict[str, Any] = {"name": "mm2-hb", "config": config("Heartbeat", emit__heartbeats__interval__seconds="7")}
ALL = [SOURCE, CHECKPOINT, HEARTBEAT]


def kafka_connector(name: str, connector_config: dict[str, Any], **spec: Any) -> dict[str, Any]:
    own_config = {key: value for key, value in connector_config.items() if key not in ("connector.class", "tasks.max")}
    return {
        "apiVersion": "kafka.strimzi.io/v1beta2",
        "kind": "KafkaConnector",
        "metadata": {"name": name, "labels": {"strimzi.io/cluster": "connect"}},
        "spec": {"class": connector_config["connector.class"], "config": own_config, **spec},
    }


KAFKA_CONNECT: dict[str, Any] = {
    "apiVersion": "kafka.strimzi.io/v1beta2",
    "kind": "KafkaConnect",
    "metadata": {"name": "connect"},
    "spec": {"bootstrapServers": "b:9092", "config": {"offset.storage.topic": "offsets", "key.converter": "x"}},
}


def joined(*documents: Any) -> str:
    """As `cat` puts files together."""
    return "\n".join(json.dumps(document, indent=2) for document in documents)


def yaml(*documents: Any) -> str:
    return "\n---\n".join(json.dumps(document, indent=1) for document in documents)


Loaded = Callable[..., Configuration]


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    """Loads a text; `offsets` is the topic that a file of settings names."""

    def load_it(text: Any, name: str = "mirror.json", offsets: str = "connect-offsets") -> Configuration:
        file, settings = tmp_path / name, tmp_path / "more.properties"
        file.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
        settings.write_text(f"B.offset.storage.topic = {offsets}\n" if offsets else "", encoding="utf-8")
        return load(file, {SETTINGS_VARIABLE: str(settings)})

    return load_it


@pytest.fixture
def mistakes(loaded: Loaded) -> Callable[..., list[str]]:
    def read_connect(text: Any, name: str = "mirror.json", offsets: str = "connect-offsets") -> list[str]:
        with pytest.raises(ConfigurationError) as raised:
            loaded(text, name, offsets)
        return [f"{problem.line} {problem.key}: {problem.message}" for problem in raised.value.problems]

    return read_connect


FORMS: dict[str, tuple[str, Any]] = {
    "a list": ("m.json", ALL),
    "files put together": ("m.json", joined(*ALL)),
    "without a suffix": ("mirror", "\n" + joined(*ALL)),
    "GET /connectors?expand=info": (
        "m.json",
        {
            "s3": {"info": {"name": "s3", "config": {"connector.class": "S3Sink", "name": "s3"}}},
            **{item["name"]: {"info": {**item, "tasks": [], "type": "source"}} for item in ALL},
        },
    ),
    "maps as PUT takes them": ("m.json", [{**item["config"], "name": item["name"]} for item in ALL]),
    "short class names": (
        "m.json",
        joined(*({**item, "config": {**item["config"], "connector.class": name}} for item, name in zip(
            ALL, ("MirrorSourceConnector", "MirrorCheckpoint", "MirrorHeartbeatConnector"), strict=True))),
    ),
    "KafkaConnectors": (
        "m.yaml",
        yaml(
            KAFKA_CONNECT,
            kafka_connector("mm2-source", SOURCE["config"], tasksMax=3),
            kafka_connector("mm2-cp", CHECKPOINT["config"]),
            kafka_connector("mm2-hb", HEARTBEAT["config"]),
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_connectors_of_one_flow_in_every_form(loaded: Loaded, form: str) -> None:
    name, text = FORMS[form]
    configuration = loaded(text, name)
    (settings,) = configuration.flows
    assert (settings.flow, settings.enabled) == (A_TO_B, True)
    assert {alias: cluster.bootstrap for alias, cluster in configuration.clusters.items()} == {
        "A": "a:9092",
        "B": "b:9092",
    }
    assert settings.control.progress_connector == "mm2-source"
    assert settings.control.offset_storage_topic == "connect-offsets"
    assert settings.data_plane.tasks_max == 3
    assert settings.topics.matches("orders-1")
    assert not settings.topics.matches("other")
    assert settings.groups.matches("g1")
    assert not settings.groups.matches("other")
    assert settings.policy.format_remote_topic("A", "orders") == "orders"
    assert settings.checkpoint.sync_group_offsets
    assert settings.heartbeat.enabled
    assert settings.heartbeat.every.total_seconds() == 7
    assert not any("is MirrorS" in note.message for note in configuration.notes)


def test_a_connector_that_is_absent_does_not_run(loaded: Loaded) -> None:
    settings = only(loaded(SOURCE))
    assert settings.data_plane.enabled
    assert (settings.checkpoint.enabled, settings.heartbeat.enabled) == (False, False)
    settings = only(loaded(HEARTBEAT))
    assert (settings.enabled, settings.heartbeat.enabled) == (False, True)


def test_the_properties_file_of_one_connector_is_read_too(loaded: Loaded) -> None:
    lines = {**SOURCE["config"], "name": "mm2-source"}
    settings = only(loaded("".join(f"{key}={value}\n" for key, value in lines.items()), "source.properties"))
    assert (settings.flow, settings.control.progress_connector) == (A_TO_B, "mm2-source")


def test_kafka_connect_resource_gives_the_offset_storage_topic(loaded: Loaded) -> None:
    text = yaml(KAFKA_CONNECT, kafka_connector("c", SOURCE["config"], state="stopped"))
    settings = only(loaded(text, "m.yaml", offsets=""))
    assert settings.control.offset_storage_topic == "offsets"
    assert settings.states.source is not None
    assert settings.states.source.phase == "stopped"
    without = {**KAFKA_CONNECT, "spec": {"bootstrapServers": "b:9092"}}
    settings = only(loaded(yaml(kafka_connector("c", SOURCE["config"]), without), "m.yaml", offsets=""))
    assert settings.control.offset_storage_topic == "connect-cluster-offsets"


def test_connector_without_offset_storage_topic_is_refused(mistakes: Callable[..., list[str]]) -> None:
    (said,) = mistakes(ALL, offsets="")
    assert said.startswith("0 B.offset.storage.topic: is missing: name the topic in which Kafka Connect's workers keep")
    assert "the progress of mm2-source" in said
    assert "--settings" in said
    stranger = {**KAFKA_CONNECT, "metadata": {"name": "another"}}
    (said,) = mistakes(yaml(stranger, kafka_connector("c", SOURCE["config"])), "m.yaml", offsets="")
    assert said.startswith("0 B.offset.storage.topic: is missing")


def test_a_topic_of_the_connectors_own_counts_before_the_workers(loaded: Loaded) -> None:
    own = {"name": "c", "config": config("Source", offsets__storage__topic="own-offsets")}
    assert only(loaded(own, offsets="")).control.offset_storage_topic == "own-offsets"


def test_connectors_of_two_flows_in_one_file(loaded: Loaded) -> None:
    back = config(
        "Source",
        source__cluster__alias="B",
        target__cluster__alias="A",
        source__cluster__bootstrap__servers="b:9092",
        target__cluster__bootstrap__servers="a:9092",
        replication__policy__class=None,
        offsets__storage__topic="there",
    )
    forth = {"name": "there", "config": config("Source", replication__policy__class=None)}
    configuration = loaded([forth, {"name": "back", "config": back}])
    assert [str(settings.flow) for settings in configuration.flows] == ["A->B", "B->A"]
    assert [settings.control.progress_connector for settings in configuration.flows] == ["there", "back"]


def test_a_connection_that_differs_is_the_connectors_own(loaded: Loaded) -> None:
    said = {"source.cluster.security.protocol": "SSL"}
    checkpoint = {"name": "cp", "config": {**CHECKPOINT["config"], **said}}
    settings = only(loaded([{"name": "s", "config": {**SOURCE["config"], **said}}, CHECKPOINT]))
    assert settings.source.properties["security.protocol"] == "SSL"  # the checkpoint connector leaves it out
    plain = {"name": "s", "config": {**SOURCE["config"], "source.cluster.security.protocol": "PLAINTEXT"}}
    settings = only(loaded([plain, checkpoint]))
    assert settings.source.properties["security.protocol"] == "PLAINTEXT"
    assert settings.checkpoint_connector is not None
    assert settings.checkpoint_connector.clients.source_consumer["security.protocol"] == "SSL"


def test_connector_key_ignored_by_mm2_has_no_effect(loaded: Loaded) -> None:
    more = config("Source", source__cluster__max__poll__records="9", source__cluster__receive__buffer__bytes="9")
    unused = loaded({"name": "x", "config": more}).unused
    assert [remark.key for remark in unused] == [
        "config.source.cluster.max.poll.records",
        "config.source.cluster.receive.buffer.bytes",
    ]
    assert "MirrorMaker reads only the connection there: write source.consumer.max.poll.records" in unused[0].message


def test_a_line_of_an_mm2_properties_that_changes_nothing_has_no_effect(loaded: Loaded) -> None:
    more = {
        "clusters": "A,B",
        "A->B.enabled": "true",
        "A->B.topics": ".*",
        "A->B.groups": "mine",
        "B->A.emit.heartbeats.enabled": "true",
    }
    unused = [
        remark.key for remark in loaded({"name": "x", "config": {**config("Source", topics=None), **more}}).unused
    ]
    assert sorted(unused) == sorted(f"config.{key}" for key in more)


WRONG: dict[str, tuple[Any, str]] = {
    "nothing of ours": ({"name": "x", "config": {"connector.class": "S3Sink"}}, "0 : is JSON, but no connector of"),
    "some other JSON": ({"a": [1, 2]}, "0 : is JSON, but no connector of MirrorMaker 2"),
    "an empty list": ([], "0 : is JSON, but no connector of MirrorMaker 2"),
    "a text": ("hello", "1 : is no JSON: "),
    "a comma too many": ('{\n "name": "x",\n}', "3 : is no JSON: a comma is before the end"),
    "a comma too few": ('{"a": 1\n "b": 2}', "2 : is no JSON: a comma or '}' is missing"),
    "an end too early": ('{"a": [1', "1 : is no JSON: it ends too early"),
    "single quotes": ("{'a': 1}", "1 : is no JSON: a key is missing: write it in double quotes"),
    "no number": ('{"a": NaN}', "1 : is no JSON: 'NaN' is neither a number nor true"),
    "too deep": ("[" * 1000, "1 : is no JSON: it is nested more than"),
    "a comment": ('{"a": 1, // one\n "b": 2}', "1 : is no JSON: a key is missing"),
    "no name": (SOURCE["config"], "config.name: is missing".removeprefix("config.")),
    "an alias that no topic can have": (
        {"name": "x", "config": config("Source", source__cluster__alias="a b")},
        "1 config.source.cluster.alias: is 'a b': an alias may hold letters, digits, '.', '_' and '-' only",
    ),
    "names alone": (["mm2-source", "mm2-checkpoint"], "is no resource: it takes apiVersion, kind, metadata and"),
    "a class misspelt": (
        {"name": "x", "config": {"connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConector"}},
        "has the connector.class 'org.apache.kafka.connect.mirror.MirrorSourceConector'; did you mean MirrorSource",
    ),
    "a class misspelt beside others": (
        [SOURCE, {"name": "x", "config": {"connector.class": "MirorCheckpointConnector"}}],
        "connector.class: is 'MirorCheckpointConnector', which there is not; did you mean MirrorCheckpointConnector?",
    ),
    "a class of the same name": (
        {"name": "x", "config": {"connector.class": "com.example.MirrorSourceConnector"}},
        "0 : is JSON, but no connector of MirrorMaker 2",
    ),
    "a line of an mm2.properties": (
        {"name": "x", "config": {**config("Source", topics=None), "A->B.topics": "orders"}},
        "config.A->B.topics: is a line of an mm2.properties, which no connector reads: write topics, or remove it",
    ),
    "one alias": (
        {"name": "x", "config": config("Source", source__cluster__alias="target", target__cluster__alias="target")},
        "config.target.cluster.alias: is 'target', as source.cluster.alias is",
    ),
    "aliases that are no names of clusters": (
        [
            {"name": "x", "config": config("Source", source__cluster__alias="")},
            {"name": "y", "config": config("Checkpoint", source__cluster__alias="a.b")},
        ],
        "[1].config.source.cluster.alias: is another one than of the MirrorSourceConnector 'x' in line 1",
    ),
    "two of one": ([SOURCE, {**SOURCE, "name": "y"}], "is a second MirrorSourceConnector of A->B, after the Mirror"),
    "one alias for two clusters": (
        [SOURCE, {**HEARTBEAT, "config": config("Heartbeat", source__cluster__bootstrap__servers="z:1")}],
        "is another cluster than [0].config.source.cluster.bootstrap.servers in line 1, but both are 'A'",
    ),
    "records that go elsewhere": (
        {"name": "x", "config": config("Source", producer__override__bootstrap__servers="z:1")},
        "is another cluster than target.cluster.bootstrap.servers, b:9092",
    ),
    "a mapping among settings": (
        {"name": "x", "config": config("Source", topics={"a": 1})},
        "config.topics: is a mapp",
    ),
    "beside a resource": (
        [SOURCE, {"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaMirrorMaker2", "spec": {}}],
        "1 kind: is there beside the MirrorSourceConnector 'mm2-source' in line 1: keep one of the two",
    ),
    "transforms": (
        {"name": "x", "config": config("Source", transforms="t")},
        "config.transforms: names 't', but there is no transforms.t.type",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_connector_mistake_is_named(mistakes: Callable[..., list[str]], case: str) -> None:
    connector, said = WRONG[case]
    sentences = mistakes(connector)
    assert any(said in sentence for sentence in sentences), sentences


def test_lines_are_those_of_the_file(mistakes: Callable[..., list[str]]) -> None:
    text = joined(SOURCE, {"name": "cp", "config": config("Checkpoint", emit__checkpoints__interval__seconds="soon")})
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "soon" in line)
    (said,) = mistakes(text)
    assert said == f"{line} config.emit.checkpoints.interval.seconds: is 'soon', which is no whole number"


def test_a_resource_as_kubectl_prints_it_in_json(loaded: Loaded) -> None:
    resource = {
        "apiVersion": "kafka.strimzi.io/v1beta2",
        "kind": "KafkaMirrorMaker2",
        "metadata": {"name": "m"},
        "spec": {
            "connectCluster": "B",
            "clusters": [{"alias": "A", "bootstrapServers": "a:1"}, {"alias": "B", "bootstrapServers": "b:1"}],
            "mirrors": [{"sourceCluster": "A", "targetCluster": "B", "sourceConnector": {}}],
        },
    }
    for name in ("m.json", "m"):
        assert only(loaded(json.dumps(resource, indent="\t"), name)).flow == A_TO_B
    listed = {"apiVersion": "v1", "kind": "List", "items": [resource]}
    assert only(loaded(listed)).flow == A_TO_B
