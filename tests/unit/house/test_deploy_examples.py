"""The quick start on kind, and the examples for Argo CD, External Secrets and cert-manager: what they make is what the
values name. `tests/chart/test_examples.py` renders them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from lockstep_cli.__main__ import main
from tests.support import kafka_jars
from tests.support.certificates import Authority
from tests.support.deployments import (
    DEPLOY,
    EXAMPLES,
    KIND,
    broker_settings,
    compose_services,
    documents,
    kind_brokers,
    listeners,
)
from tests.unit.house.ci_scripts import script

NAMESPACE = "kafka"
VERSION = script("sbom").version()
SECRETS = EXAMPLES / "external-secrets"
CERTIFICATES = EXAMPLES / "cert-manager"
(APPLICATION,) = documents(EXAMPLES / "argo-cd" / "application.yaml")
(ARGO_CD,) = documents(EXAMPLES / "argo-cd" / "argocd-cm.yaml")
HEALTH = "resource.customizations.health.spark.apache.org_SparkApplication"
STATES = {
    "Submitted",
    "ScheduledToRestart",
    "DriverRequested",
    "DriverStarted",
    "DriverReady",
    "InitializedBelowThresholdExecutors",
    "RunningHealthy",
    "RunningWithBelowThresholdExecutors",
    "DriverStartTimedOut",
    "ExecutorsStartTimedOut",
    "DriverReadyTimedOut",
    "Succeeded",
    "Failed",
    "SchedulingFailure",
    "DriverEvicted",
    "ResourceReleased",
    "TerminatedWithoutReleaseResources",
}
"""Those of the Apache Spark operator."""
AS_CERT_MANAGER = ("tls.crt", "tls.key", "ca.crt")
"""The keys of a Secret that cert-manager writes."""


def check(file: Path, *more: str) -> Result:
    return CliRunner().invoke(main, ["config", "check", str(file), *more])


def named_keys(node: Any) -> Iterator[tuple[str, str]]:
    """Each key of a secret that a resource names, with the secret."""
    if isinstance(node, dict):
        if "secretName" in node:
            yield from ((node["secretName"], text) for name, text in node.items() if name != "secretName")
        for value in node.values():
            yield from named_keys(value)
    elif isinstance(node, list):
        for value in node:
            yield from named_keys(value)


def values(folder: Path) -> Any:
    (whole,) = documents(folder / "values.yaml")
    return whole


def test_kind_cluster_has_one_node() -> None:
    (cluster,) = documents(KIND / "cluster.yaml")
    assert (cluster["apiVersion"], cluster["kind"]) == ("kind.x-k8s.io/v1alpha4", "Cluster")
    assert set(cluster) == {"apiVersion", "kind", "name", "nodes"}
    assert cluster["nodes"] == [{"role": "control-plane"}]


def test_kind_values_can_be_used() -> None:
    ran = check(KIND / "values.yaml")
    assert ran.exit_code == 0, ran.output
    assert "eu->us enabled" in ran.output


def test_kind_values_name_the_brokers_beside_them() -> None:
    spec = values(KIND)["spec"]
    clusters = [spec["target"], *(mirror["source"] for mirror in spec["mirrors"])]
    assert {cluster["bootstrapServers"] for cluster in clusters} == {
        f"{name}.{NAMESPACE}.svc.cluster.local:9092" for name in kind_brokers()
    }


def test_kind_brokers_are_reached_by_their_services() -> None:
    objects = documents(KIND / "brokers.yaml")
    assert [item["metadata"]["name"] for item in objects if item["kind"] == "Namespace"] == [NAMESPACE]
    services = {item["metadata"]["name"]: item["spec"] for item in objects if item["kind"] == "Service"}
    pods = {item["metadata"]["name"]: item["spec"]["template"] for item in objects if item["kind"] == "Deployment"}
    assert len(services) == len(pods) == 2
    for name, environment in kind_brokers().items():
        settings = broker_settings(environment)
        (port,) = (exposed["port"] for exposed in services[name]["ports"])
        assert services[name]["selector"].items() <= pods[name]["metadata"]["labels"].items()
        assert listeners(settings["listeners"])["INSIDE"][1] == port
        assert listeners(settings["advertised.listeners"]) == {
            "INSIDE": (f"{name}.{NAMESPACE}.svc.cluster.local", port)
        }
        (container,) = pods[name]["spec"]["containers"]
        assert container["image"] == f"apache/kafka:{kafka_jars.VERSION}"


def test_broker_variables_are_in_capitals() -> None:
    """Kafka's image makes a setting of each variable, and a broker ignores a setting that it does not know."""
    texts = "".join(file.read_text("utf-8") for file in DEPLOY.rglob("*.yaml"))
    names = set(re.findall(r"\bKAFKA_\w+", texts))
    assert "KAFKA_NODE_ID" in names
    assert [name for name in names if name != name.upper()] == []


def test_kind_brokers_have_the_settings_of_those_of_compose() -> None:
    composed = [
        service["environment"]
        for service in compose_services().values()
        if service["image"].startswith("apache/kafka:")
    ]
    names = {name for environment in composed for name in environment}
    assert {name: names ^ set(environment) for name, environment in kind_brokers().items()} == {
        name: set() for name in kind_brokers()
    }


def test_brokers_name_listeners_that_they_have() -> None:
    composed = {
        name: service["environment"] for name, service in compose_services().items() if "environment" in service
    }
    brokers = {
        name: environment
        for name, environment in {**composed, **kind_brokers()}.items()
        if "KAFKA_NODE_ID" in environment
    }
    assert len(brokers) == 4
    for name, environment in brokers.items():
        settings = broker_settings(environment)
        bound = set(listeners(settings["listeners"]))
        protocols = {pair.partition(":")[0] for pair in settings["listener.security.protocol.map"].split(",")}
        named = {settings["controller.listener.names"], settings["inter.broker.listener.name"]}
        assert named <= bound == protocols, name
        assert settings["inter.broker.listener.name"] in listeners(settings["advertised.listeners"]), name


def test_external_secrets_make_the_keys_that_the_values_name() -> None:
    made = set()
    for secret in documents(SECRETS / "secrets.yaml"):
        assert (secret["apiVersion"], secret["kind"]) == ("external-secrets.io/v1", "ExternalSecret")
        assert secret["metadata"]["namespace"] == NAMESPACE
        assert secret["spec"]["target"]["deletionPolicy"] == "Retain", "a mirror outlives its store"
        made |= {(secret["spec"]["target"]["name"], entry["secretKey"]) for entry in secret["spec"]["data"]}
    assert made == set(named_keys(values(SECRETS)))


def test_values_with_external_secrets_can_be_used(tmp_path: Path) -> None:
    authority = Authority()
    texts = {"password": "s3cret", "ca.crt": authority.pem}
    for secret, key in named_keys(values(SECRETS)):
        (tmp_path / secret).mkdir(exist_ok=True)
        (tmp_path / secret / key).write_text(texts[key])
    ran = check(SECRETS / "values.yaml", "--secrets-dir", str(tmp_path))
    assert ran.exit_code == 0, ran.output
    (tmp_path / "eu-kafka" / "password").unlink()
    ran = check(SECRETS / "values.yaml", "--secrets-dir", str(tmp_path))
    assert ran.exit_code == 2
    assert "eu-kafka" in ran.output


def test_certificates_make_the_secrets_that_the_values_name() -> None:
    made = set()
    for certificate in documents(CERTIFICATES / "certificates.yaml"):
        assert (certificate["apiVersion"], certificate["kind"]) == ("cert-manager.io/v1", "Certificate")
        assert certificate["metadata"]["namespace"] == NAMESPACE
        spec = certificate["spec"]
        assert "client auth" in spec["usages"]
        assert spec["privateKey"]["encoding"] == "PKCS8", "Java's clients read no other, and the file goes back to them"
        made |= {(spec["secretName"], key) for key in AS_CERT_MANAGER}
    assert made == set(named_keys(values(CERTIFICATES)))


def test_values_with_certificates_can_be_used(tmp_path: Path) -> None:
    authority = Authority()
    for secret in {secret for secret, _ in named_keys(values(CERTIFICATES))}:
        client = authority.certify("lockstep")
        (tmp_path / secret).mkdir()
        texts = (client.chain_pem, client.key_pem(), authority.pem)
        for key, text in zip(AS_CERT_MANAGER, texts, strict=True):
            (tmp_path / secret / key).write_text(text)
    ran = check(CERTIFICATES / "values.yaml", "--secrets-dir", str(tmp_path))
    assert ran.exit_code == 0, ran.output
    other = authority.certify("lockstep")
    (tmp_path / "us-lockstep-tls" / "tls.key").write_text(other.key_pem())
    assert check(CERTIFICATES / "values.yaml", "--secrets-dir", str(tmp_path)).exit_code == 2, "another key's"


def test_argo_cd_installs_this_version_of_the_chart(tmp_path: Path) -> None:
    spec = APPLICATION["spec"]
    source = spec["source"]
    assert (APPLICATION["apiVersion"], APPLICATION["kind"]) == ("argoproj.io/v1alpha1", "Application")
    assert source["targetRevision"] == f"v{VERSION}"
    assert (EXAMPLES.parents[1] / source["path"] / "Chart.yaml").exists()
    assert "releaseName" not in source["helm"], "Argo CD sets the label app.kubernetes.io/instance"
    assert spec["syncPolicy"]["automated"]["prune"] is True
    file = tmp_path / "mirror.yaml"
    file.write_text(yaml.safe_dump(source["helm"]["valuesObject"]))
    ran = check(file)
    assert ran.exit_code == 0, ran.output


@pytest.fixture
def lua_health() -> dict[str, str]:
    return dict(re.findall(r'^  (\w+) = "(\w+)",$', ARGO_CD["data"][HEALTH], re.MULTILINE))


def test_argo_cd_has_a_health_for_each_state(lua_health: dict[str, str]) -> None:
    assert set(ARGO_CD["data"]) == {HEALTH}
    assert set(lua_health) == STATES
    assert set(lua_health.values()) <= {"Healthy", "Progressing", "Degraded"}


def test_argo_cd_calls_only_a_running_application_healthy(lua_health: dict[str, str]) -> None:
    assert [state for state, health in lua_health.items() if health == "Healthy"] == ["RunningHealthy"]
    # A driver of Lockstep never ends by itself.
    assert {lua_health[state] for state in ("Succeeded", "Failed", "ResourceReleased")} == {"Degraded"}
