"""Fields of a `KafkaMirrorMaker2`: the lines that they become, and the settings of these."""

from datetime import timedelta
from pathlib import Path

import pytest

from lockstep_config import load
from lockstep_state.names import Flow
from tests.support.mirror_maker_2_resources import ALL, V1, old
from tests.support.strimzi_resources import Resources

from .conftest import A_TO_B


def test_v1_has_one_target_and_a_source_in_each_mirror(resources: Resources) -> None:
    (settings,) = resources.load(V1).flows
    assert (settings.flow, settings.source.bootstrap, settings.target.bootstrap) == (A_TO_B, "a:9092", "b:9092")
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
    assert "topicsBlacklistPattern: has no effect: topicsExcludePattern counts" in resources.remarked(old(mirror))


def test_only_the_mirrors_run_and_only_their_connectors(resources: Resources) -> None:
    (settings,) = resources.load(old("sourceConnector: {}")).flows
    assert settings.flow == A_TO_B, "no other pair of clusters has heartbeats, unlike in an mm2.properties file"
    assert (settings.checkpoint.enabled, settings.heartbeat.enabled) == (False, False)
    (settings,) = resources.load(old("heartbeatConnector: {}")).flows
    assert (settings.enabled, settings.heartbeat.enabled) == (False, True)
    (settings,) = resources.load(old("checkpointConnector: {}")).flows
    assert (settings.enabled, settings.data_plane.enabled, settings.checkpoint.enabled) == (True, False, True)
    assert not settings.acl_sync.enabled
    assert "has no connector, so nothing runs" in resources.remarked(old("topicsPattern: x"))


def test_strimzi_target_may_have_two_sources(resources: Resources) -> None:
    text = V1 + '  - source: {alias: C, bootstrapServers: "c:9092"}\n    sourceConnector: {}\n'
    assert [settings.flow for settings in resources.load(text).flows] == [A_TO_B, Flow("C", "B")]


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
        *("ssl.truststore.location", "sasl.mechanism", "SASL.mechanism", "security.protocol", "listeners"),
        *("plugin.path", "rest.port", "bootstrap.servers", "consumer.interceptor.classes"),
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
    remarks = resources.remarked(old(source="consumer.fetch.max.bytes: 5, offset.storage.topic: x, topics: y"))
    assert (
        "consumer.fetch.max.bytes: has no effect: of a source's config only its connection counts: write it into "
        in (remarks)
    )
    assert "offset.storage.topic: has no effect: it is a setting of Kafka Connect, which has the target's" in remarks


def test_connector_key_in_a_worker_config_names_its_place(resources: Resources) -> None:
    remarks = resources.remarked(old(target="replication.factor: 1, consumer.fetch.max.bytes: 1"))
    assert "config.replication.factor: has no effect: Kafka Connect does not read it" in remarks
    assert "config.consumer.fetch.max.bytes: has no effect: MirrorMaker's clients are its connectors'" in remarks


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
    assert "restart-connector: has no effect: `lockstep restart FILE" in resources.remarked(live)
    listed = "apiVersion: v1\nkind: List\nitems:\n- " + live.rstrip("\n").replace("\n", "\n  ") + "\n"
    assert resources.entries(listed) == resources.entries(old())


def test_json_is_yaml_too(resources: Resources, tmp_path: Path) -> None:
    text = (
        '{"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaMirrorMaker2", "spec": {"target": {"alias": "B", '
        '"bootstrapServers": "b:1", "groupId": "g", "offsetStorageTopic": "o"}, "mirrors": [{"source": {"alias": "A", '
        '"bootstrapServers": "a:1"}, "sourceConnector": {}}]}}'
    )
    assert resources.load(text).flows[0].flow == A_TO_B


def test_file_kind_is_known_by_its_content(tmp_path: Path) -> None:
    for name in ("resource", "mirror.txt", "mm2.properties"):
        path = tmp_path / name
        path.write_text(old())
        assert load(path, {}).flows[0].flow == A_TO_B
    path.write_text("clusters = A, B\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nA->B.enabled=true\n")
    assert load(path, {}).flows[0].flow == A_TO_B


@pytest.mark.parametrize(
    ("kind", "traced"), [("tracing: {type: opentelemetry}", True), ("tracing: {type: jaeger}", False), ("", False)]
)
def test_tracing_is_switched_on_by_its_type(resources: Resources, kind: str, traced: bool) -> None:
    text = V1.replace("  replicas: 1\n", f"  replicas: 1\n  {kind}\n")
    (settings,) = resources.load(text).flows
    assert settings.tracing is traced
    assert ("write opentelemetry" in resources.remarked(text)) == ("jaeger" in kind)
    assert "spec.tracing: has no effect" not in resources.remarked(text)


@pytest.mark.parametrize("group", ["eventstreams.ibm.com", "ibmevents.ibm.com"])
@pytest.mark.parametrize("version", ["v1alpha1", "v1beta2"])
def test_ibms_operators_have_the_same_resource(resources: Resources, group: str, version: str) -> None:
    ibms = old().replace("kafka.strimzi.io/v1beta2", f"{group}/{version}")
    assert resources.entries(ibms) == resources.entries(old())
    restarting = ibms.replace("namespace: kafka", "annotations: {GROUP/restart-connector: x}".replace("GROUP", group))
    (remark,) = (remark for remark in resources.remarks(restarting) if "annotations" in remark)
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
    assert "services: is the Helm chart's" in resources.remarked(old() + values.splitlines()[0])
