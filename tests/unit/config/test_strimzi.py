"""What each field of a `KafkaMirrorMaker2` becomes: the lines, and the settings that come of them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from lockstep_config import load
from lockstep_config.flow.connector_settings import AutoRestart
from lockstep_protocol.names import Flow
from tests.support.strimzi_resources import Resources

OLD = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata: {name: mirror, namespace: kafka}
spec:
  connectCluster: B
  clusters:
  - alias: A
    bootstrapServers: a:9092
    config: {{{source}}}
  - alias: B
    bootstrapServers: b:9092
    config: {{{target}}}
  mirrors:
  - sourceCluster: A
    targetCluster: B
    {mirror}
"""
V1 = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata: {name: mirror}
spec:
  replicas: 1
  target:
    alias: B
    bootstrapServers: b:9092
    groupId: my-group
    configStorageTopic: my-configs
    offsetStorageTopic: my-offsets
    statusStorageTopic: my-status
  mirrors:
  - source: {alias: A, bootstrapServers: "a:9092"}
    sourceConnector: {}
    checkpointConnector: {}
"""
ALL = "sourceConnector: {}\n    checkpointConnector: {}\n    heartbeatConnector: {}"
AB = Flow("A", "B")


def old(mirror: str = ALL, source: str = "", target: str = "") -> str:
    text = OLD.replace("{name: mirror, namespace: kafka}", "{{name: mirror, namespace: kafka}}")
    return text.format(mirror=mirror, source=source, target=target)


@pytest.fixture
def resources(tmp_path: Path) -> Resources:
    return Resources(tmp_path)


def test_v1_has_one_target_and_a_source_in_each_mirror(resources: Resources) -> None:
    (settings,) = resources.load(V1).flows
    assert (settings.flow, settings.source.bootstrap, settings.target.bootstrap) == (AB, "a:9092", "b:9092")
    assert settings.group_id == "my-group"
    assert settings.control.offset_storage_topic == "my-offsets"
    assert (settings.data_plane.enabled, settings.checkpoint.enabled, settings.heartbeat.enabled) == (True, True, False)
    assert settings.control.progress_connector == "A->B.MirrorSourceConnector"


def test_v1_and_v1beta2_of_the_same_mirror_are_the_same_lines(resources: Resources) -> None:
    was = old(
        "sourceConnector: {}\n    checkpointConnector: {}",
        target="group.id: my-group, offset.storage.topic: my-offsets",
    )
    now = resources.entries(V1)
    assert {
        key: value for key, value in now.items() if "config.storage" not in key and "status.storage" not in key
    } == (resources.entries(was))


def test_v1beta2_accepts_the_layout_of_v1(resources: Resources) -> None:
    assert resources.entries(V1.replace("/v1\n", "/v1beta2\n")) == resources.entries(V1)


def test_v1_may_have_heartbeats_which_its_api_has_no_more(resources: Resources) -> None:
    (settings,) = resources.load(V1 + "    heartbeatConnector: {}\n").flows
    assert settings.heartbeat.enabled


def test_v1alpha1_has_the_old_names(resources: Resources) -> None:
    text = old("topicsBlacklistPattern: x.*\n    groupsBlacklistPattern: g.*\n    " + ALL).replace(
        "v1beta2", "v1alpha1"
    )
    (settings,) = resources.load(text).flows
    assert (settings.topics.matches("xy"), settings.groups.matches("gg"), settings.groups.matches("h")) == (
        False,
        False,
        True,
    )


def test_strimzi_newer_exclude_pattern_overrides_the_older(resources: Resources) -> None:
    mirror = "topicsExcludePattern: x\n    topicsBlacklistPattern: y\n    sourceConnector: {}"
    (settings,) = resources.load(old(mirror)).flows
    assert [settings.topics.matches(name) for name in ("x", "y")] == [False, True]
    assert any(
        "topicsBlacklistPattern: has no effect: topicsExcludePattern counts" in one
        for one in resources.remarks(old(mirror))
    )


def test_only_the_mirrors_run_and_only_their_connectors(resources: Resources) -> None:
    (settings,) = resources.load(old("sourceConnector: {}")).flows
    assert settings.flow == AB, "no other pair of clusters has heartbeats, unlike in an mm2.properties file"
    assert (settings.checkpoint.enabled, settings.heartbeat.enabled) == (False, False)
    (settings,) = resources.load(old("heartbeatConnector: {}")).flows
    assert (settings.enabled, settings.heartbeat.enabled) == (False, True)
    (settings,) = resources.load(old("checkpointConnector: {}")).flows
    assert (settings.enabled, settings.data_plane.enabled, settings.checkpoint.enabled) == (True, False, True)
    assert not settings.acl_sync.enabled
    assert any("has no connector, so nothing runs" in one for one in resources.remarks(old("topicsPattern: x")))


def test_strimzi_target_may_have_two_sources(resources: Resources) -> None:
    text = V1 + '  - source: {alias: C, bootstrapServers: "c:9092"}\n    sourceConnector: {}\n'
    assert [settings.flow for settings in resources.load(text).flows] == [AB, Flow("C", "B")]


def test_the_targets_config_is_the_connect_workers(resources: Resources) -> None:
    target = (
        "offset.storage.replication.factor: -1, exactly.once.source.support: enabled, producer.compression.type: zstd, "
        "offset.flush.interval.ms: 500, ssl.protocol: TLSv1.3"
    )
    (settings,) = resources.load(old(target=target)).flows
    assert settings.control.storage_replication_factor == -1
    assert settings.data_plane.exactly_once
    assert settings.data_plane.compression_type == "zstd"
    assert settings.data_plane.offset_flush_every == timedelta(milliseconds=500)
    assert settings.target.properties["ssl.protocol"] == "TLSv1.3", "an exception that Strimzi makes"


@pytest.mark.parametrize(
    "key",
    [
        "ssl.truststore.location",
        "sasl.mechanism",
        "SASL.mechanism",
        "security.protocol",
        "listeners",
        "plugin.path",
        "rest.port",
        "bootstrap.servers",
        "consumer.interceptor.classes",
        "producer.interceptor.classes",
    ],
)
def test_strimzi_reserved_key_is_ignored_with_a_note(resources: Resources, key: str) -> None:
    remarks = resources.remarks(old(target=f"{key}: x"))
    assert f"12 spec.clusters[1].config.{key}: is ignored, as Strimzi does" in " ".join(remarks)
    assert resources.load(old(target=f"{key}: x")).clusters["B"].bootstrap == "b:9092"


def test_a_sources_config_is_its_connections_above_the_other_fields(resources: Resources) -> None:
    (settings,) = resources.load(old(source="ssl.protocol: TLSv1.3, security.protocol: SSL")).flows
    assert settings.source.properties["ssl.protocol"] == "TLSv1.3"
    assert settings.source.properties["security.protocol"] == "SSL"
    remarks = " ".join(resources.remarks(old(source="consumer.fetch.max.bytes: 5, offset.storage.topic: x, topics: y")))
    assert (
        "consumer.fetch.max.bytes: has no effect: of a source's config only its connection counts: write it into "
        in (remarks)
    )
    assert "offset.storage.topic: has no effect: it is a setting of Kafka Connect, which has the target's" in remarks


def test_connector_key_in_a_worker_config_names_its_place(resources: Resources) -> None:
    remarks = " ".join(resources.remarks(old(target="replication.factor: 1, consumer.fetch.max.bytes: 1")))
    assert "config.replication.factor: has no effect: Kafka Connect does not read it" in remarks
    assert "config.consumer.fetch.max.bytes: has no effect: MirrorMaker's clients are its connectors'" in remarks


def test_key_in_the_wrong_connector_names_the_right_one(resources: Resources) -> None:
    mirror = "sourceConnector: {config: {sync.group.offsets.enabled: true}}\n    checkpointConnector: {}"
    (settings,) = resources.load(old(mirror)).flows
    assert not settings.checkpoint.sync_group_offsets, "MirrorMaker does not read it there either"
    assert any("write it into checkpointConnector.config" in one for one in resources.remarks(old(mirror)))


def test_strimzi_reserved_connector_key_is_ignored_with_a_note(resources: Resources) -> None:
    remarks = resources.remarks(old("sourceConnector: {config: {tasks.max: 3, name: x, connector.class: y}}"))
    assert sum("is ignored, as Strimzi does: it sets it itself" in one for one in remarks) == 3
    assert any("write tasksMax" in one for one in remarks)


def test_values_are_texts_as_connect_has_them(resources: Resources) -> None:
    mirror = 'sourceConnector: {config: {a: 1, b: true, c: yes, d: "x", e: 1.50, f: "  y"}}'
    entries = resources.entries(old(mirror))
    assert [entries[f"A->B.{key}"] for key in "abcdef"] == ["1", "true", "true", "x", "1.50", "  y"]


def test_auto_restart_and_tasks_are_each_connectors_own(resources: Resources) -> None:
    mirror = (
        "sourceConnector: {tasksMax: 4, autoRestart: {maxRestarts: 5}}\n"
        "    checkpointConnector: {tasksMax: 2, autoRestart: {enabled: false, maxRestarts: 3}}\n"
        "    heartbeatConnector: {tasksMax: 2, autoRestart: {maxRestarts: 0}}"
    )
    (settings,) = resources.load(old(mirror)).flows
    assert (settings.data_plane.tasks_max, settings.checkpoint.tasks_max) == (4, 2)
    assert settings.auto_restart.source == AutoRestart(enabled=True, max_restarts=5)
    assert settings.auto_restart.checkpoint == AutoRestart(enabled=False)
    assert settings.auto_restart.heartbeat == AutoRestart(enabled=False)
    assert any("heartbeats need one task" in one for one in resources.remarks(old(mirror)))


@pytest.mark.parametrize(
    ("said", "phase"),
    [
        ("state: paused", "paused"),
        ("state: stopped", "stopped"),
        ("state: running", None),
        ("pause: true", "paused"),
        ("pause: false", None),
        ("pause: true, state: running", None),
        ("pause: false, state: stopped", "stopped"),
        ("", None),
    ],
)
def test_pause_true_is_state_paused_and_state_counts(resources: Resources, said: str, phase: str | None) -> None:
    (settings,) = resources.load(old(f"sourceConnector: {{{said}}}\n    checkpointConnector: {{}}")).flows
    stated = settings.states.source
    assert (stated.phase if stated else None) == phase
    assert settings.states.checkpoint is None
    if stated:
        assert f"{resources.file}:16: spec.mirrors[0].sourceConnector." in stated.key
    assert any(
        "pause: has no effect: state counts" in one for one in resources.remarks(old(f"sourceConnector: {{{said}}}"))
    ) == ("pause:" in said and "state:" in said)


def test_strimzi_setting_common_to_connectors_is_read_once(resources: Resources) -> None:
    policy = "config: {replication.policy.separator: _, admin.timeout.ms: 5000}"
    entries = resources.entries(
        old("\n    ".join(f"{name}Connector: {{{policy}}}" for name in ("source", "checkpoint", "heartbeat")))
    )
    assert entries["A->B.replication.policy.separator"] == "_"
    assert entries["A->B.admin.timeout.ms"] == "5000"
    assert not [key for key in entries if "lockstep.connector" in key]


def test_a_connector_may_be_disabled_by_its_config_as_in_mirror_maker(resources: Resources) -> None:
    off = "config: {enabled: false}"
    (settings,) = resources.load(old(f"sourceConnector: {{{off}}}\n    checkpointConnector: {{}}")).flows
    assert (settings.enabled, settings.data_plane.enabled, settings.checkpoint.enabled) == (True, False, True)
    mirror = f"sourceConnector: {{}}\n    heartbeatConnector: {{{off}}}"
    assert resources.load(old(mirror)).flows[0].heartbeat.enabled
    assert any("heartbeats do not depend on it" in one for one in resources.remarks(old(mirror)))


def test_connector_setting_applies_to_its_connector_only(resources: Resources) -> None:
    mirror = "sourceConnector: {}\n    checkpointConnector: {config: {admin.timeout.ms: 2000}}"
    (settings,) = resources.load(old(mirror)).flows
    assert settings.admin_timeout == timedelta(seconds=60)
    assert settings.as_seen_by("checkpoint").admin_timeout == timedelta(seconds=2)


def test_strimzi_setting_may_differ_between_connectors(resources: Resources) -> None:
    mirror = (
        "sourceConnector: {config: {admin.timeout.ms: 1000}}\n"
        "    checkpointConnector: {config: {admin.timeout.ms: 2000, consumer.fetch.min.bytes: 7}}"
    )
    (settings,) = resources.load(old(mirror)).flows
    assert settings.admin_timeout == timedelta(seconds=1)
    assert settings.as_seen_by("checkpoint").admin_timeout == timedelta(seconds=2)
    assert settings.as_seen_by("checkpoint").clients.source_consumer["fetch.min.bytes"] == "7"
    assert "fetch.min.bytes" not in settings.clients.source_consumer
    assert settings.as_seen_by("heartbeat") is settings


def test_connection_property_of_a_connector_overrides_its_cluster(resources: Resources) -> None:
    mirror = "sourceConnector: {config: {consumer.ssl.protocol: TLSv1.3, target.producer.client.id: me}}"
    (settings,) = resources.load(old(mirror, source="ssl.protocol: TLSv1.2")).flows
    assert settings.clients.source_consumer["ssl.protocol"] == "TLSv1.3"
    assert settings.clients.source_admin["ssl.protocol"] == "TLSv1.2"
    assert settings.clients.target_producer["client.id"] == "me"


@pytest.mark.parametrize(
    ("version", "rules"), [("3.8.0", "3.8"), ("2.4.0", "3.0"), ("9.1", "4.4"), ("4.3.1", "4.3"), ('"4.2"', "4.2")]
)
def test_the_version_is_that_of_the_rules(resources: Resources, version: str, rules: str) -> None:
    text = old().replace("  connectCluster", f"  version: {version}\n  connectCluster")
    (settings,) = resources.load(text).flows
    assert settings.rules.version == rules


def test_connect_may_be_another_name_of_the_targets_servers(resources: Resources) -> None:
    text = (
        old()
        .replace("connectCluster: B", "connectCluster: C")
        .replace("  mirrors:", "  - {alias: C, bootstrapServers: 'b:9092', config: {group.id: of-c}}\n  mirrors:")
    )
    (settings,) = resources.load(text).flows
    assert settings.group_id == "of-c"
    assert list(resources.load(text).clusters) == ["A", "B"]


def test_a_live_resource_is_taken_as_kubectl_prints_it(resources: Resources) -> None:
    live = old().replace(
        "metadata: {name: mirror, namespace: kafka}",
        """metadata:
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: |
      {"apiVersion":"kafka.strimzi.io/v1beta2","kind":"KafkaMirrorMaker2"}
    strimzi.io/restart-connector: A->B.MirrorSourceConnector
  creationTimestamp: "2026-01-01T00:00:00Z"
  generation: 3
  managedFields:
  - apiVersion: kafka.strimzi.io/v1beta2
    fieldsV1: {f:spec: {.: {}}}
    manager: kubectl
  name: mirror
  namespace: kafka
  resourceVersion: "12345"
  uid: 0a0a0a""",
    )
    live += "status:\n  conditions:\n  - {type: Ready, status: 'True'}\n  connectors:\n  - {name: x, tasks: []}\n  url: http://x\n"
    assert resources.entries(live) == resources.entries(old())
    assert any("restart-connector: has no effect: `lockstep restart FILE" in one for one in resources.remarks(live))
    listed = "apiVersion: v1\nkind: List\nitems:\n- " + live.rstrip("\n").replace("\n", "\n  ") + "\n"
    assert resources.entries(listed) == resources.entries(old())


def test_json_is_yaml_too(resources: Resources, tmp_path: Path) -> None:
    text = (
        '{"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaMirrorMaker2", "spec": {"target": {"alias": "B", '
        '"bootstrapServers": "b:1", "groupId": "g", "offsetStorageTopic": "o"}, "mirrors": [{"source": {"alias": "A", '
        '"bootstrapServers": "a:1"}, "sourceConnector": {}}]}}'
    )
    assert resources.load(text).flows[0].flow == AB


def test_file_kind_is_known_by_its_content(tmp_path: Path) -> None:
    for name in ("resource", "mirror.txt", "mm2.properties"):
        path = tmp_path / name
        path.write_text(old())
        assert load(path, {}).flows[0].flow == AB
    path.write_text("clusters = A, B\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nA->B.enabled=true\n")
    assert load(path, {}).flows[0].flow == AB


@pytest.mark.parametrize(
    ("kind", "traced"), [("tracing: {type: opentelemetry}", True), ("tracing: {type: jaeger}", False), ("", False)]
)
def test_tracing_is_switched_on_by_its_type(resources: Resources, kind: str, traced: bool) -> None:
    text = V1.replace("  replicas: 1\n", f"  replicas: 1\n  {kind}\n")
    (settings,) = resources.load(text).flows
    assert settings.tracing is traced
    assert any("write opentelemetry" in one for one in resources.remarks(text)) == ("jaeger" in kind)
    assert any("spec.tracing: has no effect" in one for one in resources.remarks(text)) is False


@pytest.mark.parametrize("group", ["eventstreams.ibm.com", "ibmevents.ibm.com"])
@pytest.mark.parametrize("version", ["v1alpha1", "v1beta2"])
def test_ibms_operators_have_the_same_resource(resources: Resources, group: str, version: str) -> None:
    ibms = old().replace("kafka.strimzi.io/v1beta2", f"{group}/{version}")
    assert resources.entries(ibms) == resources.entries(old())
    restarting = ibms.replace("namespace: kafka", "annotations: {GROUP/restart-connector: x}".replace("GROUP", group))
    (remark,) = (one for one in resources.remarks(restarting) if "annotations" in one)
    assert remark.endswith("has no effect: `lockstep restart FILE connector:NAME` does this")


def test_ibms_first_version_has_the_fields_of_before_v1beta2(resources: Resources) -> None:
    ibms = old(f"topicsExcludePattern: x\n    {ALL}").replace(
        "kafka.strimzi.io/v1beta2", "eventstreams.ibm.com/v1beta1"
    )
    (mistake,) = resources.mistakes(ibms)
    assert (
        "topicsExcludePattern: is a field of v1 and v1beta2, not of v1alpha1: write topicsBlacklistPattern" in mistake
    )


def test_a_values_file_of_the_chart_means_the_same_here(resources: Resources) -> None:
    values = 'services: {checkpoint: {replicas: 2}}\nsettings: {"A->B.offset.lag.max": 7, A.client.id: "${env:ID}"}\n'
    entries = resources.entries(old("sourceConnector: {config: {offset.lag.max: 5}}") + values)
    assert (entries["A->B.offset.lag.max"], entries["A.client.id"]) == ("7", "${env:ID}")
    assert "config.providers.env.class" in entries
    assert any("services: is the Helm chart's" in one for one in resources.remarks(old() + values.splitlines()[0]))
