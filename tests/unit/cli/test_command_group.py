"""The groups of commands in help, options that come last, and `LOCKSTEP_FILE` in the place of FILE."""

from pathlib import Path

import pytest

from lockstep_cli.__main__ import SECTIONS, main
from tests.support.command_line import lockstep
from tests.unit.golden.sources import FILE


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that can be used, beside the folder in which commands run."""
    monkeypatch.delenv("LOCKSTEP_FILE", raising=False)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mm2.properties"
    path.write_text(FILE, encoding="utf-8")
    return path


def run(*arguments: str) -> tuple[int, str]:
    answer = lockstep(*arguments)
    return answer.exit_code, answer.output


def test_every_command_is_under_one_heading_of_the_help() -> None:
    names = [command.name for commands in SECTIONS.values() for command in commands]
    assert sorted(map(str, names)) == sorted(main.commands)
    shown = run("--help")[1]
    assert [shown.index(f"\n{title}:\n") for title in SECTIONS] == sorted(
        shown.index(f"\n{title}:\n") for title in SECTIONS
    )


def test_options_that_most_commands_have_come_last() -> None:
    own, common = run("status", "--help")[1].split("Common to most commands:")
    assert "--partitions" in own
    for option in ("FILE", "--timeout", "--output", "--secrets-dir", "--unknown", "--help"):
        assert f" {option}" in common, option


@pytest.mark.parametrize(
    ("variable", "arguments", "said"),
    [
        ("mm2.properties", ("pause", "--dry-run"), "pause flow"),
        ("mm2.properties", ("pause", "topic:t", "--dry-run"), "pause topic:t"),
        ("missing", ("pause", "mm2.properties", "--dry-run"), "pause flow"),
        ("missing", ("pause", "mm2.properties", "topic:t", "--dry-run"), "pause topic:t"),
        ("mm2.properties", ("config", "check"), "A->B enabled"),
        ("mm2.properties", ("config", "show", "A->B"), "A->B"),
        ("missing", ("config", "show", "mm2.properties"), "A->B"),
        ("missing", ("config", "check", "--consumer.config", "c", "--producer.config", "p"), "c: there is no such"),
        ("mm2.properties", ("offsets", "reset", "--dry-run"), "offsets-reset"),
        ("missing", ("offsets", "alter", "mm2.properties", "--topic", "t", "--partition", "0", "--offset", "5",
                     "--dry-run"), "offsets-alter"),
        ("mm2.properties", ("verify", "show", "t-x", "5"), "names no partition"),
        ("mm2.properties", ("verify", "--follow"), "--follow shows what"),
        ("missing", ("pause", "--dry-run"), "LOCKSTEP_FILE names missing, and there is no such file."),
        ("", ("pause", "--dry-run"), "Missing argument 'FILE'. Name it, or set LOCKSTEP_FILE."),
    ],
)  # fmt: skip
def test_file_of_the_environment_stands_for_one_that_is_left_out(
    variable: str, arguments: tuple[str, ...], said: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_FILE", variable)
    assert said in run(*arguments)[1]


def test_command_for_one_flow_refuses_two(file: Path) -> None:
    code, said = run("takeover", str(file), "--flow", "A->B", "--flow", "B->A", "--dry-run")
    assert code == 2
    assert "this command takes one flow, and 2 are named" in said
