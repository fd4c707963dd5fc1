"""What `make release` writes: notes, checksums, requirements, and archives that are the same whenever they are made."""

import io
import re
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from lockstep_state import project_address
from tests.support.source_modules import REPOSITORY
from tests.unit.house.ci_scripts import script

RELEASE = script("release")
REQUIREMENTS = RELEASE.requirements
REPOSITORY_AT = project_address.REPOSITORY
VERSION = RELEASE.sbom.version()
WHEEL = "-py3-none-any.whl"
CHANGELOG = """# Changelog

Words.

## [0.2.0] - 2027-01-05

### Added

- A [command](docs/reference/commands.md#all), of [MM2](https://kafka.apache.org/).

## [0.1.0] - unreleased

The first release.

## [0.0.1]
"""


def test_notes_are_the_section_of_the_version() -> None:
    assert RELEASE.notes(CHANGELOG, "0.1.0") == "The first release.\n"
    assert RELEASE.notes(CHANGELOG, "0.2.0").startswith(
        "### Added\n\n- A command, of [MM2](https://kafka.apache.org/)."
    )
    with pytest.raises(RELEASE.NotReleasable, match=re.escape("CHANGELOG.md has no section [0.3.0]")):
        RELEASE.notes(CHANGELOG, "0.3.0")


def test_links_of_notes_begin_with_the_pages() -> None:
    text = RELEASE.notes(CHANGELOG, "0.2.0", "https://host/repo/blob/v0.2.0/")
    assert "[command](https://host/repo/blob/v0.2.0/docs/reference/commands.md#all)" in text
    assert "[MM2](https://kafka.apache.org/)" in text


def test_changelog_has_notes_for_this_version() -> None:
    text = RELEASE.notes((REPOSITORY / "CHANGELOG.md").read_text(), VERSION)
    assert "### Added" in text
    assert "](docs/" not in text


@pytest.mark.parametrize(
    ("tag", "version", "words"),
    [
        ("v0.2.0", "0.2.0", ""),
        ("0.2.0", "0.2.0", "its tag is v0.2.0"),
        ("v0.2.1", "0.2.0", "tag v0.2.1 is not of version 0.2.0"),
        ("v0.1.0", "0.1.0", "CHANGELOG.md has 'unreleased' behind [0.1.0]"),
        ("v0.0.1", "0.0.1", "CHANGELOG.md has 'no date' behind [0.0.1]"),
        ("v0.3.0", "0.3.0", "CHANGELOG.md has no section [0.3.0]"),
    ],
)
def test_tag_is_refused_unless_version_and_date_are_there(tag: str, version: str, words: str) -> None:
    if not words:
        RELEASE.check_tag(tag, version, CHANGELOG)
        return
    with pytest.raises(RELEASE.NotReleasable, match=re.escape(words)):
        RELEASE.check_tag(tag, version, CHANGELOG)


def test_requirements_pin_own_archives_before_their_part_of_the_lock() -> None:
    every = {
        "x": {
            "name": "x",
            "version": "0.1.0",
            "dependencies": ["x-cli==0.1.0"],
            "optional-dependencies": {"console": []},
        },
        "x-cli": {"name": "x-cli", "version": "0.1.0", "dependencies": ["six>=1"]},
        "x-client": {"name": "x-client", "version": "0.1.0", "dependencies": []},
    }
    lock = "# Written by make lock\nattrs==1 \\\n    --hash=sha256:dd\nsix==1.17.0 \\\n    --hash=sha256:cc\n"
    archives = {"x": ["bb", "aa"], "x-cli": ["ee"], "x-client": ["ff"]}
    assert REQUIREMENTS.installation("command", "x", every, lock, archives) == (
        "x==0.1.0 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n"
        "x-cli==0.1.0 \\\n    --hash=sha256:ee\n"
        "six==1.17.0 \\\n    --hash=sha256:cc\n"
    )
    assert REQUIREMENTS.installation("client", "x", every, lock, archives) == (
        "x-client==0.1.0 \\\n    --hash=sha256:ff\n"
    )


def test_choices_have_the_distributions_that_they_say() -> None:
    every = REQUIREMENTS.projects()
    choices = {choice: REQUIREMENTS.distributions(choice, RELEASE.ROOT, every) for choice in REQUIREMENTS.CHOICES}
    assert choices["all"] == every.keys()
    assert choices["client"] == {f"{RELEASE.ROOT}-{name}" for name in ("client", "rules", "state")}
    assert choices["all"] - choices["control"] == {f"{RELEASE.ROOT}-{name}" for name in ("client", "data-plane")}
    assert choices["control"] - choices["command"] == {f"{RELEASE.ROOT}-{name}" for name in REQUIREMENTS.CONTROL}


@pytest.mark.parametrize("address", [REPOSITORY_AT, f"{REPOSITORY_AT}/", REPOSITORY_AT.replace("lockstep", "Lockstep")])
def test_release_of_the_stated_repository_is_accepted(address: str) -> None:
    RELEASE.check_repository(address)


def test_release_of_a_fork_that_states_another_address_is_refused() -> None:
    with pytest.raises(RELEASE.NotReleasable, match=re.escape("project_address.py, run make docs, and commit both")):
        RELEASE.check_repository("https://github.com/somebody/lockstep")


def test_chart_is_pushed_beside_the_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helm = tmp_path / "helm"
    helm.write_text(
        '#!/bin/sh\necho "$@" >> "$(dirname "$0")/asked"\necho denied >&2\nexit "$(cat "$(dirname "$0")/code")"\n'
    )
    helm.chmod(0o755)
    (tmp_path / "code").write_text("0")
    monkeypatch.setattr(RELEASE, "RELEASE", tmp_path)
    monkeypatch.setattr(RELEASE, "REPOSITORY", tmp_path)
    with pytest.raises(RELEASE.NotReleasable, match=r"there is no lockstep-0\.1\.0\.tgz"):
        RELEASE.push_chart(str(helm), "0.1.0")
    (tmp_path / "lockstep-0.1.0.tgz").write_text("")
    RELEASE.push_chart(str(helm), "0.1.0")
    assert (
        tmp_path / "asked"
    ).read_text() == f"push {tmp_path}/lockstep-0.1.0.tgz oci://{project_address.IMAGES}/charts\n"
    (tmp_path / "code").write_text("1")
    with pytest.raises(RELEASE.NotReleasable, match="was not pushed: denied"):
        RELEASE.push_chart(str(helm), "0.1.0")


def test_checksums_are_what_sha256sum_reads(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).write_text(name)
    text = RELEASE.sums({name: RELEASE.digest(tmp_path / name) for name in ("b", "a")})
    assert [line[-1] for line in text.splitlines()] == ["a", "b"]
    command = ["sha256sum", "--check", "--strict", "-"]
    assert subprocess.run(command, cwd=tmp_path, input=text, text=True, capture_output=True).returncode == 0
    (tmp_path / "a").write_text("other")
    assert subprocess.run(command, cwd=tmp_path, input=text, text=True, capture_output=True).returncode == 1


def test_another_version_replaces_each_mention_of_the_old() -> None:
    files = [folder / "pyproject.toml" for folder in RELEASE.folders()]
    assert len(files) == 15
    for file in files:
        text = RELEASE.with_version(file.read_text(), VERSION, "9.8.7")
        project = tomllib.loads(text)["project"]
        own = re.findall(r'"lockstep[^"]*==([^"]*)"', text)
        assert {project["version"], *own} == {"9.8.7"}, file
        assert RELEASE.with_version(text, "9.8.7", VERSION) == file.read_text()


def test_pages_and_manifests_state_no_version_but_the_own_one() -> None:
    files = {file for pattern in RELEASE.STATED for file in RELEASE.REPOSITORY.glob(pattern)}
    texts = {file: RELEASE.with_stated_version(file.read_text(), VERSION, "9.8.7") for file in files}
    assert not [file for file, text in texts.items() if VERSION in text]
    chart = yaml.safe_load(texts[RELEASE.CHART / "Chart.yaml"])
    assert (chart["version"], chart["appVersion"]) == ("9.8.7", "9.8.7")
    stating = {file.relative_to(RELEASE.REPOSITORY).as_posix() for file, text in texts.items() if "9.8.7" in text}
    assert {"deploy/compose/compose.yaml", "deploy/examples/argo-cd/application.yaml"} < stating


@pytest.mark.parametrize(
    ("text", "with_another"),
    [
        ("lockstep-cli:0.1.0\n", "lockstep-cli:9.8.7\n"),
        ("v0.1.0, lockstep-0.1.0.tgz", "v9.8.7, lockstep-9.8.7.tgz"),
        ("10.1.0 0.1.0.5 0.1.01", "10.1.0 0.1.0.5 0.1.01"),
    ],
)
def test_stated_version_is_a_whole_one(text: str, with_another: str) -> None:
    assert RELEASE.with_stated_version(text, "0.1.0", "9.8.7") == with_another


def archive(changed_at: int, owner: str, names: list[str]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as writing:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uname, member.mode = len(name), changed_at, owner, 0o644
            writing.addfile(member, io.BytesIO(name.encode()))
    return made.getvalue()


def test_chart_has_the_same_bytes_whenever_it_is_packaged() -> None:
    fixed = RELEASE.with_fixed_times(archive(1, "one", ["lockstep/a", "lockstep/b"]))
    assert fixed == RELEASE.with_fixed_times(archive(2, "two", ["lockstep/b", "lockstep/a"]))
    with tarfile.open(fileobj=io.BytesIO(fixed)) as read:
        content = {member.name: read.extractfile(member) for member in read}
        assert {name: file.read() for name, file in content.items() if file} == {
            "lockstep/a": b"lockstep/a",
            "lockstep/b": b"lockstep/b",
        }


def test_wheel_has_the_same_bytes_and_what_it_needs(tmp_path: Path) -> None:
    for number in ("1", "2"):
        RELEASE.build(REPOSITORY / "services" / "heartbeat", tmp_path / number, kinds=["wheel", "sdist"])
    first, second = (sorted((tmp_path / number).iterdir()) for number in ("1", "2"))
    assert [file.name for file in first] == [f"lockstep_kafka_heartbeat-{VERSION}{end}" for end in (WHEEL, ".tar.gz")]
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in second]
    with zipfile.ZipFile(first[0]) as wheel:
        about = f"lockstep_kafka_heartbeat-{VERSION}.dist-info"
        assert wheel.read(f"{about}/licenses/LICENSE") == (REPOSITORY / "LICENSE").read_bytes()
        assert "lockstep_heartbeat/py.typed" in wheel.namelist()
        metadata = wheel.read(f"{about}/METADATA").decode()
    needed = re.findall(r"^Requires-Dist: (lockstep.*)$", metadata, re.MULTILINE)
    assert needed == [f"lockstep-kafka-{name}=={VERSION}" for name in ("config", "kafka", "rules", "runtime", "state")]
