"""The quick start on kind and the examples render, are valid, and mount the secrets that their other files make."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.helm import CHART, NEEDS_HELM, NEEDS_TOOLS, Objects, rendered, run
from tests.support import spark_operator
from tests.support.deployments import EXAMPLES, KIND, documents
from tests.support.kubelab import KIT

pytestmark = NEEDS_HELM

SECRETS = EXAMPLES / "external-secrets"
CERTIFICATES = EXAMPLES / "cert-manager"
(APPLICATION,) = documents(EXAMPLES / "argo-cd" / "application.yaml")
(ARGO_CD,) = documents(EXAMPLES / "argo-cd" / "argocd-cm.yaml")
FILES = [folder / "values.yaml" for folder in (KIND, SECRETS, CERTIFICATES)]
OPERATED = {"dataPlane": {"executors": 1, "sparkApplication": {"enabled": True}}}


def mounted_secrets(objects: Objects) -> set[str]:
    """Return the secrets that the pods of all workloads mount."""
    pods = [workload["spec"]["template"]["spec"] for workload in objects.workloads()]
    assert pods
    return {volume["secret"]["secretName"] for pod in pods for volume in pod["volumes"] if "secret" in volume}


def application(**more: Any) -> Objects:
    """Return what Argo CD renders for its Application."""
    return rendered({**APPLICATION["spec"]["source"]["helm"]["valuesObject"], **more})


@pytest.mark.parametrize("values", FILES, ids=lambda file: file.parent.name)
def test_lint_of_an_example_finds_nothing(values: Path) -> None:
    ran = run("helm", "lint", "--strict", CHART, "-f", values)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@NEEDS_TOOLS
def test_each_object_of_the_examples_is_valid(tmp_path: Path) -> None:
    schemas, objects = tmp_path / "schemas", tmp_path / "objects"
    objects.mkdir()
    made = run("bash", KIT / "schemas", schemas)
    assert made.returncode == 0, made.stderr
    for values in FILES:
        (objects / f"{values.parent.name}.yaml").write_text(rendered(values).text)
    (objects / "argo-cd.yaml").write_text(application().text)
    (objects / "brokers.yaml").write_text((KIND / "brokers.yaml").read_text())
    (objects / "argocd-cm.yaml").write_text(yaml.safe_dump(ARGO_CD))
    location = f"{schemas}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"
    ran = run("kubeconform", "-strict", "-schema-location", location, "-summary", objects)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Invalid: 0, Errors: 0, Skipped: 0" in ran.stdout


def test_quick_start_on_kind_has_every_service_and_no_secret() -> None:
    objects = rendered(KIND / "values.yaml")
    services = {workload["metadata"]["labels"]["app.kubernetes.io/component"] for workload in objects.workloads()}
    assert services == {"topic-sync", "checkpoint", "heartbeat", "data-plane"}
    assert mounted_secrets(objects) == set()


def test_pods_mount_what_the_external_secrets_make() -> None:
    made = {document["spec"]["target"]["name"] for document in documents(SECRETS / "secrets.yaml")}
    assert mounted_secrets(rendered(SECRETS / "values.yaml")) == made


def test_pods_mount_what_the_certificates_make() -> None:
    made = {document["spec"]["secretName"] for document in documents(CERTIFICATES / "certificates.yaml")}
    assert mounted_secrets(rendered(CERTIFICATES / "values.yaml")) == made


def test_argo_cd_runs_the_check_before_a_sync() -> None:
    (job,) = application().by_kind("Job").values()
    assert "pre-install" in job["metadata"]["annotations"]["helm.sh/hook"]
    assert "before-hook-creation" in job["metadata"]["annotations"]["helm.sh/hook-delete-policy"]


def test_argo_cd_renders_the_same_each_time() -> None:
    """Else it never calls the Application synced."""
    values = APPLICATION["spec"]["source"]["helm"]["valuesObject"]
    once = rendered(values).text
    assert rendered(values, sets=("check.timeoutSeconds=300",)).text == once


def test_argo_cd_has_the_health_of_what_an_operator_runs() -> None:
    (resource,) = application(**OPERATED).by_kind("SparkApplication").values()
    group = resource["apiVersion"].partition("/")[0]
    assert set(ARGO_CD["data"]) == {f"resource.customizations.health.{group}_{resource['kind']}"}


@pytest.mark.skipif(not spark_operator.built(), reason=spark_operator.WHY)
def test_argo_cd_knows_each_state_of_the_operator() -> None:
    (file,) = spark_operator.CRDS.glob("sparkapplications*.yaml")
    (health,) = ARGO_CD["data"].values()
    states: set[str] = set()
    for version in yaml.safe_load(file.read_text())["spec"]["versions"]:
        status = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
        states |= set(status["currentState"]["properties"]["currentStateSummary"]["enum"])
    assert states
    assert [state for state in states if f"{state} = " not in health] == []
