"""`lockstep version`, and a run whose services are not installed."""

from pathlib import Path

import pytest
import yaml

from lockstep_cli.commands.version import InstalledVersions, read_versions
from lockstep_ops.exit_codes import CannotUse
from lockstep_ops.installation import require_services
from lockstep_ops.services import SERVICES
from tests.support.command_line import lockstep
from tests.support.printed import printed

WHOLE = InstalledVersions("0.1.0", "3.11.7", "4.3.0", "17.0.15", "/usr/bin/java")


def lines(versions: InstalledVersions) -> list[str]:
    return [line.rstrip() for line in printed([versions.as_table()]).splitlines()]


def test_versions_as_text_have_a_line_each() -> None:
    assert lines(WHOLE) == [
        "lockstep  0.1.0",
        "Python    3.11.7",
        "Spark     4.3.0",
        "Java      17.0.15 at /usr/bin/java",
    ]


def test_versions_without_spark_and_java_say_so() -> None:
    bare = InstalledVersions("0.1.0", "3.11.7", "", "", "")
    assert lines(bare)[2:] == ["Spark     not installed", "Java      not found"]
    assert bare.as_json() == {"lockstep": "0.1.0", "python": "3.11.7", "spark": None, "java": None, "java_path": None}


def test_java_without_a_version_is_shown_with_its_path() -> None:
    assert lines(InstalledVersions("0", "3", "4", "", "/java"))[-1] == "Java      unknown version at /java"


def test_versions_are_those_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch()
    (tmp_path / "release").write_text('JAVA_VERSION="21.0.3"\n')
    versions = read_versions({"JAVA_HOME": str(tmp_path)})
    assert (versions.java, versions.java_path) == ("21.0.3", f"{tmp_path}/bin/java")
    assert read_versions({"PATH": ""}).java_path == ""
    answer = lockstep("version", "--output", "yaml", env={"JAVA_HOME": str(tmp_path)})
    assert answer.exit_code == 0
    assert yaml.safe_load(answer.output) == versions.as_json()


def test_run_without_a_service_names_it_and_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    require_services("mm2.properties", SERVICES)
    installed = {"lockstep_heartbeat", "lockstep_checkpoint"}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name if name in installed else None)
    require_services("mm2.properties", ["heartbeat"])
    with pytest.raises(CannotUse) as refused:
        require_services("mm2.properties", SERVICES)
    assert str(refused.value) == (
        "mm2.properties needs data-plane, topic-sync, acl-sync, which this Python does not have: "
        "install lockstep-kafka[all] from the requirements file of a release"
    )
