"""doctor's checks of this machine."""

from dataclasses import replace
from pathlib import Path

import pytest

from lockstep_ops.doctor import machine_reader
from lockstep_ops.doctor.checks.check import Result
from lockstep_ops.doctor.checks.machine import MachineFacts, PodFacts, judge_machine
from lockstep_ops.doctor.machine_reader import read_machine, read_pod

GOOD = MachineFacts(
    python=(3, 12, 1),
    java="21 at /usr/bin/java",
    java_trouble="",
    spark="4.1.0",
    memory_bytes=8 << 30,
    memory_limit="",
    open_files=1_048_576,
)


def results(facts: MachineFacts, pod: PodFacts | None = None) -> dict[str, Result]:
    return {finding.check.code: finding.result for finding in judge_machine(facts, pod)}


def test_good_machine_has_good_lines_only() -> None:
    assert set(results(GOOD).values()) == {Result.OK}


@pytest.mark.parametrize(
    ("changed", "code", "result"),
    [
        ({"python": (3, 10, 4)}, "LD101", Result.FAILED),
        ({"python": (3, 14, 0)}, "LD101", Result.WARNING),
        ({"java_trouble": "there is none on PATH"}, "LD102", Result.FAILED),
        ({"spark": ""}, "LD103", Result.FAILED),
        ({"memory_bytes": 500 << 20}, "LD104", Result.WARNING),
        ({"memory_bytes": None}, "LD104", Result.UNKNOWN),
        ({"open_files": 256}, "LD105", Result.WARNING),
        ({"open_files": None}, "LD105", Result.UNKNOWN),
        ({"open_files": -1}, "LD105", Result.OK),
    ],
)
def test_one_fault_changes_its_line_only(changed: dict[str, object], code: str, result: Result) -> None:
    expected = results(GOOD) | {code: result}
    assert results(replace(GOOD, **changed)) == expected  # type: ignore[arg-type]  # names are fields


def test_pod_without_dns_is_a_warning_and_unreadable_files_fail() -> None:
    pod = PodFacts("10.96.0.10", "Name or service not known", 2, (("/mnt/a", "Permission denied"),))
    findings = {finding.check.code: finding for finding in judge_machine(GOOD, pod)}
    assert findings["LD106"].result is Result.WARNING
    assert findings["LD107"].result is Result.FAILED
    assert findings["LD107"].detail == "/mnt/a cannot be read: Permission denied"
    good = results(GOOD, PodFacts("10.96.0.10", "", 2, ()))
    assert (good["LD106"], good["LD107"]) == (Result.OK, Result.OK)


def test_this_machine_is_read_as_it_is() -> None:
    facts = read_machine({"PATH": "/nowhere"})
    assert facts.python >= (3, 11, 0)
    assert facts.spark
    assert "which needs Java, and there is none on PATH" in facts.java_trouble
    assert facts.memory_bytes


def test_limit_of_a_container_counts_where_it_is_lower(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("104857600\n")
    (tmp_path / "memory.current").write_text("52428800\n")
    facts = read_machine({}, tmp_path)
    assert facts.memory_bytes == 52_428_800
    assert facts.memory_limit == " of the container's 100.0 MiB"
    (tmp_path / "memory.max").write_text("max\n")
    assert read_machine({}, tmp_path).memory_limit == ""


async def test_pod_names_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_reader, "API_SERVER", "name.invalid")
    there, gone = tmp_path / "there", tmp_path / "gone"
    there.write_text("x")
    assert await read_pod({}, [there], 5.0) is None
    pod = await read_pod({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, [there, gone], 5.0)
    assert pod is not None
    assert pod.files == 2
    assert pod.unreadable == ((str(gone), "No such file or directory"),)
    assert pod.dns_trouble


async def test_pod_reads_the_folder_of_a_certificate_pattern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern depends on its folder too: another file in it would count."""
    monkeypatch.setattr(machine_reader, "API_SERVER", "name.invalid")
    file, folder, gone = tmp_path / "ca.crt", tmp_path, tmp_path / "gone"
    file.write_text("x")
    pod = await read_pod({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, [file, folder], 5.0)
    assert pod is not None
    assert (pod.files, pod.unreadable) == (1, ())
    monkeypatch.setattr(Path, "iterdir", lambda self: gone.open())
    pod = await read_pod({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, [file, folder], 5.0)
    assert pod is not None
    assert pod.unreadable == ((str(folder), "No such file or directory"),)
