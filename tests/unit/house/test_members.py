"""Every member of the workspace looks like the others, and the import law knows them all."""

import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
ROOT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
MEMBERS = sorted(file.parent for kind in ("services", "shared") for file in REPOSITORY.glob(f"{kind}/*/pyproject.toml"))


def _package(member: Path) -> Path:
    return member / "src" / f"lockstep_{member.name.replace('-', '_')}"


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_member_has_one_name_as_folder_distribution_and_import(member: Path) -> None:
    project = tomllib.loads((member / "pyproject.toml").read_text())["project"]
    assert project["name"] == f"lockstep-{member.name}"
    assert [entry.name for entry in (member / "src").iterdir() if entry.is_dir()] == [_package(member).name]


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_member_is_typed_and_has_a_docstring(member: Path) -> None:
    assert (_package(member) / "py.typed").exists()
    assert (_package(member) / "__init__.py").read_text().startswith('"""')


def test_the_import_law_covers_every_member() -> None:
    assert sorted(ROOT["tool"]["importlinter"]["root_packages"]) == sorted(_package(member).name for member in MEMBERS)


def test_the_type_checker_knows_every_member_by_its_import_name() -> None:
    named = [path.removeprefix("$MYPY_CONFIG_FILE_DIR/") for path in ROOT["tool"]["mypy"]["mypy_path"]]
    assert named == [str((member / "src").relative_to(REPOSITORY)) for member in MEMBERS]


def test_members_have_one_version_and_one_licence() -> None:
    stated = [ROOT["project"], *(tomllib.loads((m / "pyproject.toml").read_text())["project"] for m in MEMBERS)]
    assert {(one["version"], one["license"], one["requires-python"]) for one in stated} == {
        (ROOT["project"]["version"], "Apache-2.0", ">=3.11")
    }
