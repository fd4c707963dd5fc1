"""Values that YAML reads as something other than a text, or that are taken away with null."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.helm import CHART, NEEDS_PINNED_HELM, Objects, refused, rendered, run
from tests.chart.test_workloads import EVERYTHING, resource

pytestmark = NEEDS_PINNED_HELM

CI = {file.stem.removesuffix("-values"): file for file in CHART.glob("ci/*-values.yaml")}
FLOW: dict[str, Any] = {"from": "A", "to": "B", **EVERYTHING}


def pods(objects: Objects) -> list[dict[str, Any]]:
    """Return every pod template: of the workloads, the check, `helm test` and the executors."""
    templates = [workload["spec"]["template"] for workload in (*objects.workloads(), *objects.by_kind("Job").values())]
    templates += objects.by_kind("Pod").values()
    return templates + [yaml.safe_load(text) for name, text in objects.config().items() if name.startswith("executor-")]


def test_limits_that_are_null_are_not_written() -> None:
    nulls = ("common.terminationGracePeriodSeconds=null", "revisionHistoryLimit=null", "common.tmpSizeLimit=null")
    objects = rendered(resource(FLOW), sets=(*nulls, "dataPlane.executors=1", "check.timeoutSeconds=null"))
    assert all("revisionHistoryLimit" not in workload["spec"] for workload in objects.workloads())
    assert all("terminationGracePeriodSeconds" not in pod["spec"] for pod in pods(objects))
    assert None not in [
        volume.get("emptyDir") for template in pods(objects) for volume in template["spec"]["volumes"][:1]
    ]
    assert "activeDeadlineSeconds" not in objects.by_kind("Job")["my-mirror-check"]["spec"]


def test_jvm_options_that_are_numbers_have_no_exponent() -> None:
    jvm = {
        "-Xms": 536870912,
        "-XX": {"MaxDirectMemorySize": 268435456},
        "javaSystemProperties": [{"name": "a", "value": 20240101}, {"name": "b", "value": 0.5}],
    }
    text = rendered(resource(FLOW, jvmOptions=jvm)).config()["data-plane-a-to-b.properties"]
    options = "-Xms536870912 -XX:MaxDirectMemorySize=268435456 -Da=20240101 -Db=0.5"
    assert f"defaultJavaOptions={options}\n" in text


SLOTS = "A->B.lockstep.connector.source.tasks.max"


@pytest.mark.parametrize("key", [SLOTS, "A->B.tasks.max", "tasks.max"])
def test_slots_of_the_settings_replace_the_default_of_the_chart(key: str) -> None:
    objects = rendered(resource(FLOW), {"settings": {key: 8}, "dataPlane": {"executors": 3}})
    lines = objects.config()["data-plane-a-to-b.properties"].splitlines()
    assert [line for line in lines if "tasks.max" in line] == [f"{key}=8"]
    assert "lockstep.spark.conf.spark.executor.cores=3" in lines  # 8 that copy and 1 that compares, on 3


@pytest.mark.parametrize(
    ("settings", "connector", "cores"),
    [
        ({"A->B.tasks.max": 8}, {"tasksMax": 3}, 4),  # the resource's is the connector's own
        ({SLOTS: 8}, {"tasksMax": 3}, 9),
        ({"lockstep.verify.tasks.max": "4"}, {"tasksMax": 3}, 7),
        ({"lockstep.verify.tasks.max": 4}, {"config": {"lockstep.verify.tasks.max": 2}}, 4),
        ({"A->B.lockstep.verify.tasks.max": 4}, {"config": {"lockstep.verify.tasks.max": 2}}, 6),
        ({"tasks.max": "${env:SLOTS}", "lockstep.spark.conf.spark.executor.cores": 5}, {}, 5),
    ],
)
def test_cores_follow_the_slots_in_the_order_of_the_loader(
    settings: dict[str, Any], connector: dict[str, Any], cores: int
) -> None:
    flow = {**FLOW, "sourceConnector": connector}
    config = rendered(resource(flow), {"settings": settings, "dataPlane": {"executors": 1}}).config()
    assert f"spark.executor.cores={cores}" in config["data-plane-a-to-b.properties"]


def test_slots_that_cannot_be_counted_are_refused_for_executors() -> None:
    said = refused(resource(FLOW), {"settings": {"tasks.max": "${env:SLOTS}"}, "dataPlane": {"executors": 1}})
    assert "settings has tasks.max=${env:SLOTS}, of which the chart cannot tell how many cores" in said


def test_rack_of_the_settings_replaces_that_of_the_pods_node() -> None:
    settings = {"A->B.consumer.client.rack": "mine"}
    rack = rendered(resource(FLOW, rack={"topologyKey": "zone"}), {"settings": settings})
    lines = rack.config()["data-plane-a-to-b.properties"].splitlines()
    assert [line for line in lines if "client.rack" in line] == ["A->B.consumer.client.rack=mine"]


@pytest.mark.parametrize("name", ["v1", "executors"])
def test_every_pod_has_the_annotations_and_labels_of_pods(name: str) -> None:
    common = {"podAnnotations": {"mesh/inject": False}, "podLabels": {"mesh": "off"}}
    metadata = yaml.safe_load(CI[name].read_text())["metadata"] | {"annotations": {"contact": "me"}}
    values = {"metadata": metadata, "commonAnnotations": {"cost": 42}, "common": common}
    for pod in pods(rendered(CI[name], values)):
        assert {"mesh/inject": "false", "cost": "42", "contact": "me"}.items() <= pod["metadata"]["annotations"].items()
        assert pod["metadata"]["labels"]["mesh"] == "off"


def test_numbers_in_tags_labels_and_arguments_have_no_exponent() -> None:
    numbers = {"day": 20240101}
    values = {
        "metadata": {"name": "my-mirror", "labels": numbers, "annotations": {"since": 20240101}},
        "commonLabels": {"common": 20240101},
        "images": {"tag": 20240101, "cli": {"tag": 20250101}},
        "common": {"podLabels": numbers, "podAnnotations": numbers, "extraArgs": ["--x", 20240101]},
    }
    text = rendered(resource(FLOW), values).text
    assert "lockstep-topic-sync:20240101" in text
    assert "lockstep-cli:20250101" in text
    assert "e+07" not in text


DIGEST = f"sha256:{'0a' * 32}"
IMAGES = ("topicSync", "aclSync", "checkpoint", "heartbeat", "dataPlane", "cli")


def test_images_with_a_digest_are_named_by_it_in_every_pod() -> None:
    images = {name: {"digest": DIGEST, "tag": "1"} for name in IMAGES}
    objects = rendered(resource(FLOW), {"images": images, "dataPlane": {"executors": 1}})
    containers = [
        container
        for pod in pods(objects)
        for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ()))
    ]
    named = {container["image"] for container in containers if "image" in container}
    assert {image.partition("@")[0].rpartition("/")[2] for image in named} == {
        f"lockstep-{name}" for name in ("topic-sync", "acl-sync", "checkpoint", "heartbeat", "data-plane", "cli")
    }
    assert {image.partition("@")[2] for image in named} == {DIGEST}
    settings = objects.config()["data-plane-a-to-b.properties"]
    assert re.findall(r"spark\.kubernetes\.container\.image=.*@(.*)", settings) == [DIGEST]


def test_digest_of_another_form_is_refused() -> None:
    assert "digest" in refused(resource(FLOW), sets=("images.cli.digest=sha256:abc",))


def test_node_selectors_and_labels_of_alerts_are_texts() -> None:
    values = {
        "common": {"nodeSelector": {"rack": 12, "gpu": True, "day": 20240101}},
        "alerts": {
            "enabled": True,
            "ruleLabels": {"tier": 1},
            "rules": {"LockstepLagging": {"labels": {"page": True, "day": 20240101}}},
        },
        "dataPlane": {"executors": 1},
    }
    objects = rendered(resource(FLOW), values)
    for pod in pods(objects):
        assert pod["spec"]["nodeSelector"] == {"rack": "12", "gpu": "true", "day": "20240101"}
    (rule,) = objects.by_kind("PrometheusRule").values()
    rules = [alert for group in rule["spec"]["groups"] for alert in group["rules"] if "alert" in alert]
    assert all(alert["labels"]["tier"] == "1" for alert in rules)
    (lagging,) = (alert["labels"] for alert in rules if alert["alert"] == "LockstepLagging")
    assert lagging["page"] == "true"
    assert lagging["day"] == "20240101"


NUMERIC = resource(
    {"from": "A", "to": "B", **EVERYTHING},
    rack={"topologyKey": "zone"},
    logging={"type": "external", "valueFrom": {"configMapKeyRef": {"name": "888", "key": "log"}}},
)


TEXTS = {
    *("name", "namespace", "secretName", "serviceAccountName", "priorityClassName", "replacement", "interval"),
    *("app.kubernetes.io/instance", "app.kubernetes.io/name", "serviceName", "image", "mountPath", "subPath"),
}


def texts(node: Any, path: str = "") -> list[tuple[str, Any]]:
    """Return the values of TEXTS, and those of `matchNames`, with their places."""
    if isinstance(node, list):
        return [text for index, child in enumerate(node) for text in texts(child, f"{path}[{index}]")]
    if not isinstance(node, dict):
        return [(path, node)] if ".matchNames" in path else []
    own = [(f"{path}.{key}", value) for key, value in node.items() if key in TEXTS]
    return own + [inner for key, child in node.items() for inner in texts(child, f"{path}.{key}")]


def test_names_that_look_like_numbers_or_booleans_stay_texts(tmp_path: Path) -> None:
    tls = {"trustedCertificates": [{"secretName": "777", "certificate": "ca.crt"}]}
    clusters = [{**cluster, "tls": tls} for cluster in NUMERIC["spec"]["clusters"]]
    values = {
        **NUMERIC,
        "metadata": {"name": "2025"},
        "spec": {**NUMERIC["spec"], "clusters": clusters},
        "dataPlane": {"executors": 1},
        "common": {"priorityClassName": "404"},
        "extraConfigMaps": ["999"],
        "metrics": {"podMonitor": {"enabled": True, "interval": "15"}},
    }
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    for release, namespace in (("1234567", "404"), ("on", "no")):
        ran = run("helm", "template", release, CHART, "--namespace", namespace, "-f", file)
        assert ran.returncode == 0, ran.stderr
        for path, value in texts(list(yaml.safe_load_all(ran.stdout))):
            assert isinstance(value, str), path


def test_probe_that_is_null_or_empty_is_left_out() -> None:
    nulls = [f"common.readinessProbe.{key}=null" for key in ("periodSeconds", "timeoutSeconds", "failureThreshold")]
    objects = rendered(resource(FLOW), sets=("common.livenessProbe=null", "common.startupProbe=null", *nulls))
    (container,) = objects.workload("checkpoint")["spec"]["template"]["spec"]["containers"]
    assert not {"livenessProbe", "startupProbe"} & container.keys()
    assert container["readinessProbe"] == {"httpGet": {"path": "/ready", "port": "tcp-prometheus"}}


def test_alerts_whose_rules_are_null_are_those_of_the_file() -> None:
    nulls = tuple(f"alerts.{key}=null" for key in ("rules", "labels", "ruleLabels", "extraGroups", "namespace"))
    plain = rendered(resource(FLOW), sets=("alerts.enabled=true",)).by_kind("PrometheusRule")
    assert rendered(resource(FLOW), sets=("alerts.enabled=true", *nulls)).by_kind("PrometheusRule") == plain


def test_security_resources_and_labels_that_are_null_are_left_out() -> None:
    nulls = (
        *("common.securityContext=null", "common.podSecurityContext=null", "defaultResources.control=null"),
        *("defaultResources.dataPlane=null", "defaultResources.cli=null", "dashboards.label=null", "logFormat=null"),
    )
    rack = resource(FLOW, rack={"topologyKey": "zone"})
    objects = rendered(rack, sets=(*nulls, "dataPlane.executors=1", "dashboards.enabled=true", "dataPlane.slots=null"))
    for pod in pods(objects):
        assert not pod["spec"]["securityContext"]
        for container in [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]:
            assert not container["securityContext"]
            assert not container.get("resources")
            assert None not in container.get("args", [])
    assert "nil" not in str([manifest["metadata"] for manifest in objects.all])


def test_budget_without_a_limit_is_refused() -> None:
    said = refused(resource(FLOW, replicas=2), sets=("common.podDisruptionBudget.maxUnavailable=null",))
    assert "podDisruptionBudget of topicSync for A->B has neither maxUnavailable nor minAvailable" in said
    said = refused(
        resource(FLOW), {"services": {"checkpoint": {"replicas": 2, "podDisruptionBudget": {"maxUnavailable": None}}}}
    )
    assert "podDisruptionBudget of checkpoint for A->B has neither" in said


@pytest.mark.parametrize("name", ["config", "tmp", "logging", "rack", "kube-api", "secret-0", "configmap-1"])
def test_extra_volume_with_a_name_of_the_charts_own_is_refused(name: str) -> None:
    volumes = {"services": {"checkpoint": {"extraVolumes": [{"name": name, "emptyDir": {}}]}}}
    assert f'extraVolumes has the volume "{name}", which is one of the chart\'s own' in refused(resource(FLOW), volumes)


def test_volumes_with_one_name_are_refused() -> None:
    pod = {"volumes": [{"name": "mine", "emptyDir": {}}]}
    extra = {"common": {"extraVolumes": [{"name": "mine", "emptyDir": {}}]}}
    assert 'there are two volumes "mine"' in refused(resource(FLOW, template={"pod": pod}), extra)
    own = {"pod": {"volumes": [{"name": "tmp", "emptyDir": {}}]}}
    assert 'spec.template.pod.volumes has the volume "tmp"' in refused(resource(FLOW, template=own))


def test_pages_with_tls_and_a_token_are_probed_and_scraped_so() -> None:
    token = {"name": "LOCKSTEP_TOKEN", "valueFrom": {"secretKeyRef": {"name": "token", "key": "token"}}}
    env = [{"name": "LOCKSTEP_TLS_CERT", "value": "/tls/tls.crt"}, token]
    monitor = {
        "enabled": True,
        "tlsConfig": {"ca": {"secret": {"name": "ca", "key": "ca.crt"}}},
        "authorization": {"credentials": {"name": "token", "key": "token"}},
    }
    for kind, endpoints in (("PodMonitor", "podMetricsEndpoints"), ("ServiceMonitor", "endpoints")):
        metrics = {"scheme": "https", f"{kind[0].lower()}{kind[1:]}": monitor}
        objects = rendered(resource(FLOW), {"common": {"extraEnv": env}, "metrics": metrics})
        for workload in objects.workloads():
            (container,) = workload["spec"]["template"]["spec"]["containers"]
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                assert container[probe]["httpGet"]["scheme"] == "HTTPS"
        (monitoring,) = objects.by_kind(kind).values()
        (endpoint,) = monitoring["spec"][endpoints]
        assert endpoint["scheme"] == "https"
        assert endpoint["tlsConfig"] == monitor["tlsConfig"]
        assert endpoint["authorization"] == monitor["authorization"]


@pytest.mark.parametrize("common", [{"extraArgs": ["--tls-cert=/a"]}, {"extraEnv": [{"name": "LOCKSTEP_TLS_CERT"}]}])
def test_pages_with_tls_are_refused_while_probes_use_http(common: dict[str, Any]) -> None:
    assert "the pages of topicSync for A->B have TLS: set metrics.scheme to https" in refused(
        resource(FLOW), {"common": common}
    )


@pytest.mark.parametrize("common", [{"extraArgs": ["--token-file", "/a"]}, {"extraEnv": [{"name": "LOCKSTEP_TOKEN"}]}])
def test_pages_with_a_token_are_refused_to_a_monitor_without(common: dict[str, Any]) -> None:
    said = refused(resource(FLOW), {"common": common, "metrics": {"podMonitor": {"enabled": True}}})
    assert "the pages of topicSync for A->B require a token: set metrics.podMonitor.authorization" in said
    assert rendered(resource(FLOW), {"common": common})
