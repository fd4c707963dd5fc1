"""What Helm renders is valid, for many values: by its own lint, and strictly by the schemas of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chart.golden import WHOLE
from tests.chart.helm import CHART, NEEDS_TOOLS, SEEDS, rendered, run
from tests.kubelab.tools import KIT

pytestmark = NEEDS_TOOLS

CI = sorted(CHART.glob("ci/*-values.yaml"))
EXECUTORS = {"dataPlane": {"executors": 2}}


@pytest.fixture(scope="session")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where kubeconform finds them; the kit makes them from the built Kubernetes."""
    folder = tmp_path_factory.mktemp("schemas")
    made = run("bash", KIT / "schemas", folder)
    assert made.returncode == 0, made.stderr
    return f"{folder}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"


def test_there_are_values_for_the_matrix() -> None:
    assert len(CI) >= 8


@pytest.mark.parametrize("values", [*CI, *WHOLE], ids=lambda file: file.stem)
def test_lint_finds_nothing(values: Path) -> None:
    ran = run("helm", "lint", "--strict", CHART, "-f", values)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_lint_without_values_finds_nothing() -> None:
    assert run("helm", "lint", "--strict", CHART).returncode == 0


def test_each_object_is_valid(tmp_path: Path, schemas: str) -> None:
    """Of all values at once: the tool names the file, and reads each schema once."""
    for values in [*CI, *SEEDS]:
        (tmp_path / f"{values.stem}.yaml").write_text(rendered(values).text)
    for values in [*CI, *WHOLE]:
        (tmp_path / f"{values.stem}-with-executors.yaml").write_text(rendered(values, EXECUTORS).text)
    ran = run("kubeconform", "-strict", "-schema-location", schemas, "-summary", tmp_path)
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
