"""The command as it is met, without a broker."""

import json
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.support.command_line import lockstep

FILE = """clusters = A, B
A.bootstrap.servers = nowhere.invalid:9092
B.bootstrap.servers = 127.0.0.1:1
A->B.enabled = true
"""


doctor = partial(lockstep, "doctor")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE)
    return path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--flow", "A->C"], "A->C"),
        (["--category", "everything"], "'everything' is not one of"),
        (["--category", "names", "--bandwidth"], "--bandwidth and --canary-topic belong to the category flow"),
        (["--timeout", "0"], "--timeout"),
        (["--output", "xml"], "'xml' is not one of"),
    ],
)
def test_arguments_that_cannot_be_meant_end_with_code_2(file: Path, arguments: list[str], words: str) -> None:
    result = doctor(file, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr


def test_file_that_is_missing_ends_with_code_2(tmp_path: Path) -> None:
    result = doctor(tmp_path / "none.properties")
    assert result.exit_code == 2
    assert "there is no such file" in result.stderr


def test_machine_is_described_without_any_cluster(file: Path) -> None:
    body = json.loads(doctor(file, "--category", "machine", "--output", "json").stdout)
    (machine,) = body["categories"]
    assert (machine["name"], machine["checks"][0]["code"]) == ("machine", "LD101")


def test_categories_are_in_their_order_and_each_once(file: Path) -> None:
    result = doctor(file, "--category", "connection", "--category", "names", "--category", "names", "--output", "json")
    assert [category["name"] for category in json.loads(result.stdout)["categories"]] == ["names", "connection"]
    assert result.exit_code == 1


def test_yaml_has_what_json_has(file: Path) -> None:
    arguments = (file, "--category", "names", "--output")
    assert yaml.safe_load(doctor(*arguments, "yaml").stdout) == json.loads(doctor(*arguments, "json").stdout)


def test_help_has_an_example_the_marks_and_the_exit_codes() -> None:
    said = doctor("--help").output
    for words in ("lockstep doctor mm2.properties", "✗ failed", "4  nothing failed, and something could not be"):
        assert words in said
