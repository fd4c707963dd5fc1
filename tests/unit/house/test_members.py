"""Every member of the workspace looks like the others, and the import law knows them all."""

import tomllib
from collections import Counter
from pathlib import Path

import pytest

from tests.support.source_modules import REPOSITORY

PREFIX = "lockstep-kafka"
"""Of all distributions. The one that pins the others is named so. On PyPI, `lockstep` belongs to another project."""
MODULES_AT_MOST = 20
"""In one folder, without `__init__.py`."""
ROOT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
MEMBERS = sorted(file.parent for kind in ("services", "shared") for file in REPOSITORY.glob(f"{kind}/*/pyproject.toml"))


def _package(member: Path) -> Path:
    return member / "src" / f"lockstep_{member.name.replace('-', '_')}"


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_member_has_one_name_as_folder_distribution_and_import(member: Path) -> None:
    project = tomllib.loads((member / "pyproject.toml").read_text())["project"]
    assert project["name"] == f"{PREFIX}-{member.name}"
    assert [entry.name for entry in (member / "src").iterdir() if entry.is_dir()] == [_package(member).name]


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_member_is_typed_and_has_a_docstring(member: Path) -> None:
    assert (_package(member) / "py.typed").exists()
    assert (_package(member) / "__init__.py").read_text().startswith('"""')


def test_the_import_law_covers_every_member() -> None:
    assert sorted(ROOT["tool"]["importlinter"]["root_packages"]) == sorted(_package(member).name for member in MEMBERS)


def test_the_layers_of_the_project_have_every_member() -> None:
    (project,) = (
        contract
        for contract in ROOT["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers" and "containers" not in contract
    )
    layers = [member for layer in project["layers"] for member in layer.split(" | ")]
    assert sorted(layers) == sorted(_package(member).name for member in MEMBERS)


def test_no_folder_has_more_than_20_modules() -> None:
    """A reader takes in so many names at once. Sub-packages are by subject."""
    folders = Counter(file.parent for member in MEMBERS for file in _package(member).rglob("*.py"))
    modules = {folder: count - (folder / "__init__.py").exists() for folder, count in folders.items()}
    assert len(modules) > 50
    assert {
        str(folder.relative_to(REPOSITORY)) for folder, count in modules.items() if count > MODULES_AT_MOST
    } == set()


def test_the_type_checker_knows_every_member_by_its_import_name() -> None:
    named = [path.removeprefix("$MYPY_CONFIG_FILE_DIR/") for path in ROOT["tool"]["mypy"]["mypy_path"]]
    assert named == [str((member / "src").relative_to(REPOSITORY)) for member in MEMBERS]


def test_members_have_one_version_and_one_licence() -> None:
    stated = [ROOT["project"], *(tomllib.loads((m / "pyproject.toml").read_text())["project"] for m in MEMBERS)]
    assert {(project["version"], project["license"], project["requires-python"]) for project in stated} == {
        (ROOT["project"]["version"], "Apache-2.0", ">=3.11")
    }


def _names(requirements: list[str]) -> set[str]:
    """Names with their extras, of requirements that are all pinned to this version."""
    assert all(requirement.endswith(f"=={ROOT['project']['version']}") for requirement in requirements), requirements
    return {r.partition("==")[0] for r in requirements}


def test_members_are_pinned_to_one_another() -> None:
    for member in MEMBERS:
        asked = tomllib.loads((member / "pyproject.toml").read_text())["project"].get("dependencies", [])
        assert _names([name for name in asked if name.startswith("lockstep")]) <= {
            f"{PREFIX}-{m.name}" for m in MEMBERS
        }


def test_lockstep_with_all_has_every_member_and_their_extras() -> None:
    extras = ROOT["project"]["optional-dependencies"]
    (everything,) = _names(extras["all"])
    assert set(everything.removeprefix(f"{PREFIX}[").rstrip("]").split(",")) == extras.keys() - {"all"}
    asked = set().union(_names(ROOT["project"]["dependencies"]), *(_names(extras[extra]) for extra in extras))
    needed_by_others = ("state", "rules", "config", "kafka", "runtime", "ops")
    common = {f"{PREFIX}-{name}" for name in needed_by_others}
    assert {name for name in asked if "[" not in name} == {f"{PREFIX}-{member.name}" for member in MEMBERS} - common
    own = {member.name: tomllib.loads((member / "pyproject.toml").read_text())["project"] for member in MEMBERS}
    assert asked - {everything} >= {
        f"{PREFIX}-{name}[{extra}]"
        for name, project in own.items()
        for extra in project.get("optional-dependencies", {})
    }


def test_lockstep_alone_and_its_control_services_have_no_spark() -> None:
    extras = ROOT["project"]["optional-dependencies"]
    assert [extra for extra, asked in extras.items() if f"{PREFIX}-data-plane" in _names(asked)] == ["data-plane"]
    assert _names(extras["control"]) == {f"{PREFIX}-{service.name}" for service in MEMBERS if _is_control(service)}


def _is_control(member: Path) -> bool:
    return member.parent.name == "services" and member.name not in ("console", "data-plane")


def test_distribution_of_the_root_has_the_prefix_as_its_name() -> None:
    assert ROOT["project"]["name"] == PREFIX


def test_lockstep_installs_the_command_itself() -> None:
    """pipx and uv offer the commands of the distribution that is named, not those of what it needs."""
    cli = tomllib.loads((REPOSITORY / "shared" / "cli" / "pyproject.toml").read_text())
    assert ROOT["project"]["scripts"] == cli["project"]["scripts"]
