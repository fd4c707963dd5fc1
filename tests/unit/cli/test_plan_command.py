"""The command, as far as it answers without a cluster."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import lockstep

File = Callable[..., Path]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--flow", "C->A"), "runs no flow C->A"),
        (("--flow", "nonsense"), "'nonsense' is not a flow"),
        (("--rate", "fast"), "'fast' is no rate: write it as 50MB/s"),
        (("--rate", "5MB/s", "--measure"), "--rate and --measure exclude each other"),
        (("--against", "other", "--out", "plan.json"), "--out writes a plan of FILE: use it without --against"),
        (("--output", "xml"), "'xml' is not one of"),
    ],
)
def test_bad_arguments_end_with_one_sentence(file: File, arguments: tuple[str, ...], words: str) -> None:
    answer = lockstep("plan", file(), *arguments)
    assert answer.exit_code == 2
    assert words in answer.output
    assert "Traceback" not in answer.output


def test_missing_file_ends_with_one_sentence() -> None:
    answer = lockstep("plan", "nowhere.properties")
    assert answer.exit_code == 2
    assert "nowhere.properties" in answer.output


def test_detailed_exit_code_of_an_error_is_one(file: File) -> None:
    answer = lockstep("plan", file(), "--flow", "C->A", "--detailed-exitcode")
    assert answer.exit_code == 1
    assert "runs no flow C->A" in answer.output


def test_unreachable_cluster_is_named(file: File) -> None:
    answer = lockstep("plan", file(), "--timeout", "0.5")
    assert answer.exit_code == 3
    assert "cannot be reached" in answer.output


def test_run_refuses_a_missing_plan(file: File) -> None:
    answer = lockstep("run", file(), "--plan", "nowhere.json")
    assert answer.exit_code == 2
    assert "nowhere.json cannot be read" in answer.output
