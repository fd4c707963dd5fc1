"""Chart.yaml: what Helm and Artifact Hub show of the chart, compared with what it names."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from lockstep_state import project_address
from tests.support.source_modules import REPOSITORY
from tests.unit.house.ci_scripts import script

CHART = REPOSITORY / "deploy" / "helm" / "lockstep"
METADATA: dict[str, Any] = yaml.safe_load((CHART / "Chart.yaml").read_text())
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
IMAGES = script("images")
PROJECT = IMAGES.sbom.version()

HOME = project_address.REPOSITORY
_PATH = HOME.removeprefix("https://github.com/")
INTO_REPOSITORY = re.compile(
    rf"https://(?:github\.com/{_PATH}/(?:blob|tree)|raw\.githubusercontent\.com/{_PATH})/main/(\S+)"
)
CATEGORIES = {
    "ai-machine-learning",
    "database",
    "integration-delivery",
    "monitoring-logging",
    "networking",
    "security",
    "skip-prediction",
    "storage",
    "streaming-messaging",
}
"""Those of Artifact Hub. It ignores another one silently."""
KINDS = {"added", "changed", "deprecated", "fixed", "removed", "security"}
"""The kinds of change that Artifact Hub shows. It refuses a version of a package with another one."""


def annotation(name: str) -> Any:
    """A list inside an annotation."""
    return yaml.safe_load(METADATA["annotations"][f"artifacthub.io/{name}"])


def texts(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for value in node.values():
            yield from texts(value)
    elif isinstance(node, list):
        for value in node:
            yield from texts(value)
    else:
        yield str(node)


def test_chart_has_the_version_of_the_project() -> None:
    assert (METADATA["version"], METADATA["appVersion"]) == (PROJECT, PROJECT)


def test_chart_names_home_sources_icon_and_maintainers() -> None:
    assert METADATA["home"] == HOME
    assert HOME in METADATA["sources"]
    assert METADATA["icon"].endswith(".svg")
    assert [sorted(person) for person in METADATA["maintainers"]] == [["name", "url"]], "the project, and no person"
    assert len(METADATA["keywords"]) == len(set(METADATA["keywords"])) >= 5


def test_links_into_the_repository_lead_to_files() -> None:
    paths = [path for text in texts(METADATA) for path in INTO_REPOSITORY.findall(text)]
    assert len(paths) >= 6
    assert [path for path in paths if not (REPOSITORY / path).exists()] == []


def test_icon_is_an_image_that_needs_nothing_else() -> None:
    (path,) = INTO_REPOSITORY.findall(METADATA["icon"])
    text = (REPOSITORY / path).read_text()
    assert text.startswith("<svg ")
    assert text.endswith("</svg>\n")
    assert not re.search(r"<script|href=|url\(|<image", text)


def test_annotations_are_texts() -> None:
    """Helm refuses a chart with another type, and only when it is packaged."""
    assert {name: value for name, value in METADATA["annotations"].items() if not isinstance(value, str)} == {}


def test_artifact_hub_gets_licence_and_category() -> None:
    licence = re.search(r'^license = "([^"]+)"$', (REPOSITORY / "pyproject.toml").read_text(), re.MULTILINE)
    assert licence
    assert METADATA["annotations"]["artifacthub.io/license"] == licence[1]
    assert METADATA["annotations"]["artifacthub.io/category"] in CATEGORIES


def test_artifact_hub_gets_the_images_of_the_values() -> None:
    images = VALUES["images"]
    ours = {image["repository"] for image in images.values() if isinstance(image, dict)}
    assert ours == {f"lockstep-{name}" for name in IMAGES.requirements.IMAGES}
    named = {image["name"]: image["image"] for image in annotation("images")}
    assert named == {name: f"{images['registry']}/lockstep-{name}:{PROJECT}" for name in IMAGES.requirements.IMAGES}


@pytest.mark.parametrize("change", annotation("changes"), ids=lambda change: change["description"][:40])
def test_artifact_hub_knows_each_kind_of_change(change: dict[str, str]) -> None:
    assert sorted(change) == ["description", "kind"]
    assert change["kind"] in KINDS
    assert change["description"][0].isupper()
