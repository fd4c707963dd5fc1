"""What every command has: an example and its exit codes in its help, and output for programs where it prints facts."""

import re
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from lockstep_cli.__main__ import main

WITHOUT_FACTS = {"completion", "config convert", "legacy", "rack", "run"}
"""They print a script, a file or a log."""


def commands(group: click.Group, *before: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from commands(command, *before, name)
        else:
            yield " ".join((*before, name)), command


ALL = dict(commands(main))


def printed_help(path: str) -> str:
    answer = CliRunner().invoke(main, [*path.split(), "--help"])
    assert answer.exit_code == 0
    return answer.output


@pytest.mark.parametrize("path", ALL)
def test_help_of_every_command_has_an_example(path: str) -> None:
    lines = printed_help(path).partition("Options:")[0].splitlines()[2:]  # behind the usage, which is no example
    assert any(re.search(rf"^ +(?:.*\| )?lockstep {path} (?!\[)", f"{line} ") for line in lines)


@pytest.mark.parametrize("path", ALL)
def test_help_of_every_command_has_its_exit_codes(path: str) -> None:
    codes = re.findall(r"^ +(\d+)  +\S", printed_help(path).partition("Exit codes:")[2], re.M)
    assert codes[0] == "0"
    assert "2" in codes, "the arguments of any command can be wrong"


@pytest.mark.parametrize("path", sorted(ALL.keys() - WITHOUT_FACTS))
def test_command_that_prints_facts_has_them_for_programs(path: str) -> None:
    (output,) = (one for one in ALL[path].params if "--output" in one.opts)
    assert isinstance(output.type, click.Choice)
    assert list(output.type.choices)[:2] == ["text", "json"]
    if not path.startswith("verify "):  # its report is a page too
        assert list(output.type.choices) == ["text", "json", "yaml"]
