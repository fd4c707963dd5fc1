"""What Helm renders is valid, for many values: by its own lint, and strictly by the schemas of each kind."""

from pathlib import Path
from typing import Any

import pytest

from tests.chart.golden import WHOLE
from tests.chart.helm import CHART, NEEDS_TOOLS, SEEDS, rendered, run
from tests.support import spark_operator
from tests.support.kubelab import KIT

pytestmark = NEEDS_TOOLS

CI = sorted(CHART.glob("ci/*-values.yaml"))
EXECUTORS = {"dataPlane": {"executors": 2}}
OPERATED = {"dataPlane": {"executors": 2, "sparkApplication": {"enabled": True}}}
LOCK = CHART.parents[2] / "requirements.lock"
APPLICATION = CHART / "ci" / "spark-application-values.yaml"


@pytest.fixture(scope="session")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return where kubeconform finds them; the kit makes them from the built Kubernetes."""
    folder = tmp_path_factory.mktemp("schemas")
    crds = sorted(spark_operator.CRDS.glob("sparkapplications*.yaml")) if spark_operator.built() else []
    made = run("bash", KIT / "schemas", folder, *crds)
    assert made.returncode == 0, made.stderr
    return f"{folder}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"


def test_matrix_has_values() -> None:
    assert len(CI) >= 8


@pytest.mark.parametrize("values", [*CI, *WHOLE], ids=lambda file: file.stem)
def test_lint_finds_nothing(values: Path) -> None:
    ran = run("helm", "lint", "--strict", CHART, "-f", values)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_lint_without_values_finds_nothing() -> None:
    assert run("helm", "lint", "--strict", CHART).returncode == 0


def test_each_object_is_valid(tmp_path: Path, schemas: str) -> None:
    """Of all values at once: the tool names the file, and reads each schema once."""
    for values in [*(file for file in CI if file != APPLICATION), *SEEDS]:
        (tmp_path / f"{values.stem}.yaml").write_text(rendered(values).text)
    for values in [*(file for file in CI if file != APPLICATION), *WHOLE]:
        (tmp_path / f"{values.stem}-with-executors.yaml").write_text(rendered(values, EXECUTORS).text)
    assert_valid(tmp_path, schemas)


@pytest.mark.skipif(not spark_operator.built(), reason=spark_operator.WHY)
def test_each_spark_application_is_valid(tmp_path: Path, schemas: str) -> None:
    for values in [*CI, *WHOLE]:
        (tmp_path / f"{values.stem}.yaml").write_text(rendered(values, OPERATED).text)
    assert_valid(tmp_path, schemas)


def test_application_exists_for_each_driver_without_a_stateful_set() -> None:
    flows = [application["metadata"]["labels"]["lockstep/flow"] for application in applications()]
    assert sorted(flows) == ["a-to-t", "a-to-t", "c-to-t"]
    assert not rendered(APPLICATION).by_kind("StatefulSet")


def test_the_spark_of_an_application_is_the_locked_one() -> None:
    [version] = {application["spec"]["runtimeVersions"]["sparkVersion"] for application in applications()}
    assert f"\npyspark=={version} " in LOCK.read_text()


def test_application_name_changes_with_its_content() -> None:
    """The operator takes no notice of a changed one."""
    names = sorted(application["metadata"]["name"] for application in applications())
    assert sorted(resource["metadata"]["name"] for resource in applications()) == names
    for pair in (
        "images.tag=2",
        "settings.lockstep\\.max\\.in\\.flight\\.bytes=1048576",
        "common.extraArgs={--log-level=debug}",
    ):
        assert not {resource["metadata"]["name"] for resource in applications(pair)} & set(names), pair
    assert sorted(resource["metadata"]["name"] for resource in applications("services.topicSync.replicas=2")) == names


def applications(*sets: str) -> list[dict[str, Any]]:
    return list(rendered(APPLICATION, sets=sets).by_kind("SparkApplication").values())


def assert_valid(folder: Path, schemas: str) -> None:
    ran = run("kubeconform", "-strict", "-schema-location", schemas, "-summary", folder)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Invalid: 0, Errors: 0, Skipped: 0" in ran.stdout


def test_the_template_of_the_executors_pods_is_valid(schemas: str) -> None:
    config = rendered(next(seed for seed in SEEDS if seed.stem == "streams-9.9-whole"), EXECUTORS).config()
    (template,) = (text for name, text in config.items() if name.startswith("executor-"))
    ran = run("kubeconform", "-strict", "-schema-location", schemas, "-", stdin=template)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_suites_beside_the_chart_hold() -> None:
    ran = run("helm-unittest", "--strict", CHART)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Tests:" in ran.stdout
