"""What holds for every object, or for a whole release at once."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.helm import CHART, NAMESPACE, NEEDS_PINNED_HELM, RELEASE, Objects, refused, rendered
from tests.chart.test_workloads import EVERYTHING, resource

pytestmark = NEEDS_PINNED_HELM

CI = {file.stem.removesuffix("-values"): file for file in CHART.glob("ci/*-values.yaml")}

RULES = """
groups:
  - name: one
    rules:
      - alert: Lagging
        expr: max(lag) > 300
        for: 5m
        labels: {severity: warning}
        annotations: {summary: "{{ $labels.flow }} is {{ $value }} behind"}
      - record: flow:lag
        expr: max by (flow) (lag)
  - name: two
    rules:
      - alert: Stuck
        expr: stuck > 0
        labels: {severity: critical}
"""


@pytest.fixture
def watched(tmp_path: Path) -> Path:
    """Return the chart with rules and a dashboard of the test's own."""
    chart = tmp_path / "lockstep"
    shutil.copytree(CHART, chart, ignore=shutil.ignore_patterns("rules", "dashboards", "tests", "ci"))
    shutil.copytree(CHART / "templates", chart / "templates", dirs_exist_ok=True)
    (chart / "rules").mkdir()
    (chart / "rules" / "lockstep.rules.yaml").write_text(RULES)
    (chart / "dashboards").mkdir()
    (chart / "dashboards" / "flows.json").write_text('{"title": "Flows", "legend": "{{pod}}"}\n')
    return chart


def pod_of(workload: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = workload["spec"].get("template", workload)
    return pod


@pytest.mark.parametrize("name", ["v1", "executors", "everything", "alpha", "mirror-maker-1"])
def test_every_object_has_the_labels_and_annotations_of_the_resource(name: str) -> None:
    given = yaml.safe_load(CI[name].read_text())
    values = {"metadata": {**given["metadata"], "labels": {"team": "data"}, "annotations": {"contact": "me"}}}
    objects = rendered(CI[name], values)
    own = [
        manifest
        for manifest in objects.all
        if manifest["metadata"]["name"] not in (f"{RELEASE}-extra", f"{RELEASE}-more")
    ]
    assert len(own) > 5
    for labelled in [*own, *(pod_of(workload) for workload in objects.workloads())]:
        assert labelled["metadata"]["labels"]["team"] == "data"
        assert labelled["metadata"]["annotations"]["contact"] == "me"
        assert labelled["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"


def test_labels_and_annotations_of_others_are_not_copied() -> None:
    metadata = {
        "name": "my-mirror",
        "labels": {"strimzi.io/cluster": "x", "app.kubernetes.io/name": "kafka", "app.kubernetes.io/part-of": "mine"},
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
            "meta.helm.sh/release-name": "another",
            "strimzi.io/pause-reconciliation": "true",
        },
    }
    for manifest in rendered(CI["minimal"], {"metadata": metadata}).all:
        labels, annotations = manifest["metadata"]["labels"], manifest["metadata"].get("annotations", {})
        assert "strimzi.io/cluster" not in labels
        assert labels["app.kubernetes.io/name"] == "lockstep"
        assert labels["app.kubernetes.io/part-of"] == "mine"
        assert not annotations.keys() & metadata["annotations"].keys()  # type: ignore[attr-defined]  # a mapping


@pytest.mark.parametrize("name", CI)
def test_every_pod_is_restricted_and_has_a_token_only_if_needed(name: str) -> None:
    objects = rendered(CI[name])
    pods = [pod_of(workload) for workload in [*objects.workloads(), *objects.by_kind("Pod").values()]]
    for text in (text for file, text in objects.config().items() if file.startswith("executor-")):
        pods.append(yaml.safe_load(text))
    for pod in pods:
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in [*spec.get("initContainers", []), *spec["containers"]]:
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"] is True
            assert security["allowPrivilegeEscalation"] is False
            assert security["capabilities"] == {"drop": ["ALL"]}
            mounted = {mount["name"] for mount in container["volumeMounts"]}
            assert "tmp" in mounted
            if "kube-api" in mounted:
                assert container["name"] in ("rack", "data-plane")


@pytest.mark.parametrize("name", CI)
def test_every_volume_that_is_mounted_is_there_and_no_path_twice(name: str) -> None:
    objects = rendered(CI[name])
    pods = [pod_of(workload) for workload in [*objects.workloads(), *objects.by_kind("Pod").values()]]
    for pod in pods:
        volumes = [volume["name"] for volume in pod["spec"]["volumes"]]
        assert len(volumes) == len(set(volumes))
        for container in [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]:
            mounts = container["volumeMounts"]
            assert {mount_of_container["name"] for mount_of_container in mounts} <= set(volumes)
            paths = [mount["mountPath"] for mount in mounts]
            assert len(paths) == len(set(paths))
            names = [variable["name"] for variable in container["env"]]
            assert len(names) == len(set(names))
            keys = {
                mount_of_container.get("subPath")
                for mount_of_container in mounts
                if mount_of_container["name"] == "config"
            }
            assert keys <= objects.config().keys()


@pytest.mark.parametrize("name", CI)
def test_port_names_are_valid_in_kubernetes(name: str) -> None:
    """Which their schemas do not say: at most 15 characters."""
    objects = rendered(CI[name])
    containers = [container for workload in objects.workloads() for container in pod_of(workload)["spec"]["containers"]]
    ports = [port["name"] for container in containers for port in container["ports"]]
    served = [
        port["targetPort"] for service in objects.by_kind("Service").values() for port in service["spec"]["ports"]
    ]
    assert set(served) <= set(ports)
    assert all(len(port) <= 15 for port in ports)


@pytest.mark.parametrize("name", CI)
def test_selectors_find_the_pods_they_are_for(name: str) -> None:
    objects = rendered(CI[name])
    for workload in objects.workloads():
        wanted, labels = workload["spec"]["selector"]["matchLabels"], pod_of(workload)["metadata"]["labels"]
        assert wanted.items() <= labels.items()
        others = [other for other in objects.workloads() if other is not workload]
        assert not any(wanted.items() <= pod_of(other)["metadata"]["labels"].items() for other in others)


def checksums(objects: Objects) -> dict[tuple[str, str], str]:
    return {
        (
            workload["metadata"]["labels"]["app.kubernetes.io/component"],
            workload["metadata"]["annotations"]["lockstep/flow"],
        ): pod_of(workload)["metadata"]["annotations"]["checksum/config"]
        for workload in objects.workloads()
    }


def changed(before: Objects, after: Objects) -> set[tuple[str, str]]:
    old, new = checksums(before), checksums(after)
    assert old.keys() == new.keys()
    return {key for key in old if old[key] != new[key]}


def test_a_change_starts_anew_what_it_is_about_and_nothing_else() -> None:
    mirror = {"from": "A", "to": "B", **EVERYTHING}
    other = {"from": "C", "to": "B", "sourceConnector": {}}
    before = rendered(resource(mirror, other))
    topics = rendered(resource({**mirror, "topicsPattern": "orders.*"}, other))
    assert changed(before, topics) == {("topic-sync", "A->B"), ("acl-sync", "A->B"), ("checkpoint", "A->B")}
    groups = rendered(resource({**mirror, "groupsPattern": "orders.*"}, other))
    assert changed(before, groups) == {("acl-sync", "A->B"), ("checkpoint", "A->B")}
    tasks = rendered(resource(mirror, {**other, "sourceConnector": {"tasksMax": 7}}))
    assert changed(before, tasks) == {(service, "C->B") for service in ("topic-sync", "acl-sync", "data-plane")}
    # Which names the other flow's topics have is about everybody: copies must not go round.
    policy = {"config": {"replication.policy.separator": "-"}}
    assert changed(before, rendered(resource(mirror, {**other, "sourceConnector": policy}))) == set(checksums(before))
    pods = rendered(resource(mirror, other, replicas=2, template={"pod": {"priorityClassName": "high"}}))
    assert changed(before, pods) == set()
    jvm = rendered(resource(mirror, other, jvmOptions={"-Xmx": "1g"}))
    assert changed(before, jvm) == {("data-plane", "A->B"), ("data-plane", "C->B")}
    rack = rendered(resource(mirror, other, rack={"topologyKey": "zone"}))
    assert changed(before, rack) == {("data-plane", "A->B"), ("data-plane", "C->B")}
    settings = rendered(resource(mirror, other), {"settings": {"A->B.lockstep.on.gap": "skip"}})
    assert changed(before, settings) == set(checksums(before))


def test_alerts_are_the_files_but_for_what_the_values_change(watched: Path) -> None:
    values = {
        "alerts": {
            "enabled": True,
            "labels": {"release": "prometheus"},
            "ruleLabels": {"team": "data"},
            "rules": {"Lagging": {"expr": "max(lag) > 900", "for": "10m", "labels": {"severity": "page"}}},
            "extraGroups": [{"name": "mine", "rules": [{"alert": "Mine", "expr": "vector(1)"}]}],
        }
    }
    (rule,) = rendered(CI["minimal"], values, chart=watched).by_kind("PrometheusRule").values()
    assert rule["metadata"]["labels"]["release"] == "prometheus"
    flows, services, mine = rule["spec"]["groups"]
    assert flows["rules"] == [
        {
            "alert": "Lagging",
            "expr": "max(lag) > 900",
            "for": "10m",
            "labels": {"severity": "page", "team": "data"},
            "annotations": {"summary": "{{ $labels.flow }} is {{ $value }} behind"},
        },
        {"record": "flow:lag", "expr": "max by (flow) (lag)"},
    ]
    assert services["rules"][0]["labels"] == {"severity": "critical", "team": "data"}
    assert mine["name"] == "mine"
    off = {"alerts": {"enabled": True, "rules": {"Stuck": {"enabled": False}}}}
    (rule,) = rendered(CI["minimal"], off, chart=watched).by_kind("PrometheusRule").values()
    assert [group["name"] for group in rule["spec"]["groups"]] == ["one"]
    assert rendered(CI["minimal"], chart=watched).by_kind("PrometheusRule") == {}
    wrong = {"alerts": {"enabled": True, "rules": {"Laging": {}}}}
    said = refused(CI["minimal"], wrong, chart=watched)
    assert 'alerts.rules has "Laging", which is no alert: known are Lagging, Stuck' in said


def test_dashboards_are_config_maps_by_strimzis_value_names(watched: Path) -> None:
    shown = {"enabled": True, "namespace": "grafana", "annotations": {"folder": "Kafka"}, "extraLabels": {"a": "b"}}
    objects = rendered(CI["minimal"], {"dashboards": {**shown, "label": "dash", "labelValue": "yes"}}, chart=watched)
    config_map = objects.by_kind("ConfigMap")["minimal-dashboard-flows"]
    assert config_map["metadata"]["namespace"] == "grafana"
    assert {"dash": "yes", "a": "b"}.items() <= config_map["metadata"]["labels"].items()
    assert config_map["metadata"]["annotations"] == {"folder": "Kafka"}
    assert config_map["data"]["flows.json"].strip() == '{"title": "Flows", "legend": "{{pod}}"}'
    plain = rendered(CI["minimal"], {"dashboards": {"enabled": True}}, chart=watched)
    labels = plain.by_kind("ConfigMap")["minimal-dashboard-flows"]["metadata"]["labels"]
    assert labels["grafana_dashboard"] == "1"
    assert set(rendered(CI["minimal"], chart=watched).by_kind("ConfigMap")) == {"minimal-check", "minimal-config"}


def test_executors_have_the_drivers_security_secrets_and_place() -> None:
    given = yaml.safe_load(CI["v1"].read_text())
    objects = rendered(CI["v1"], {"dataPlane": {"executors": 2}})
    driver = pod_of(objects.workload("data-plane", "A->B"))["spec"]
    executor = yaml.safe_load(objects.config()["executor-a-to-b.yaml"])
    for field in ("securityContext", "affinity", "tolerations", "priorityClassName", "hostAliases", "dnsConfig"):
        assert executor["spec"][field] == driver[field]
    (container,), (drivers,) = executor["spec"]["containers"], driver["containers"]
    assert container["securityContext"] == drivers["securityContext"]
    of_secrets = [mount for mount in drivers["volumeMounts"] if mount["name"].startswith(("secret-", "extra-"))]
    assert len(of_secrets) == 5
    assert all(mount in container["volumeMounts"] for mount in of_secrets)
    assert [variable for variable in container["env"] if variable["name"] == "OTEL_SERVICE_NAME"]
    assert executor["metadata"]["labels"]["from"] == "template"
    assert executor["metadata"]["labels"]["app.kubernetes.io/component"] == "executor"
    assert given["spec"]["replicas"] == 2
    assert objects.workload("data-plane", "A->B")["spec"]["replicas"] == 1


def test_a_release_without_a_name_of_the_resource_has_its_own() -> None:
    objects = rendered(CI["minimal"], {"metadata": None, "settings": None, "flows": None})
    assert {manifest["metadata"]["name"].split("-")[0] for manifest in objects.all} == {RELEASE}
    assert all(listed["metadata"].get("namespace", NAMESPACE) == NAMESPACE for listed in objects.all)


def test_resource_values_are_not_rendered_as_templates() -> None:
    pod = {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "{{ 1 }}"}}]}
    container = {"env": [{"name": "A", "value": "{{ .Release.Name }}"}, {"name": "B", "value": "{{"}]}
    values = resource({"from": "A", "to": "B", **EVERYTHING}, template={"pod": pod, "connectContainer": container})
    ours = {"common": {"extraEnv": [{"name": "C", "value": "{{ .Release.Name }}"}, {"name": "B", "value": "mine"}]}}
    spec = pod_of(rendered(values, ours).workload("checkpoint"))["spec"]
    variables = {variable["name"]: variable.get("value") for variable in spec["containers"][0]["env"]}
    assert variables == {"POD_NAME": None, "A": "{{ .Release.Name }}", "B": "mine", "C": RELEASE}
    assert {"name": "v", "emptyDir": {"sizeLimit": "{{ 1 }}"}} in spec["volumes"]


def test_a_name_that_begins_with_a_digit_is_no_name_of_a_service() -> None:
    values = {"metadata": {"name": "2nd"}, "metrics": {"serviceMonitor": {"enabled": True}}}
    objects = rendered(CI["minimal"], values)
    assert sorted(objects.by_kind("Service")) == ["mirror-2nd-data-plane", "mirror-2nd-metrics"]
    assert objects.workload("data-plane")["spec"]["serviceName"] == "mirror-2nd-data-plane"
    assert list(objects.by_kind("StatefulSet")) == ["2nd-data-plane-a-to-b"]
