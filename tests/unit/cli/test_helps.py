"""What every command has: an example and its exit codes in its help, and output for programs where it prints facts."""

import re
from collections.abc import Iterator

import click
import pytest

from lockstep_cli.__main__ import main
from tests.support.command_line import lockstep

WITHOUT_FACTS = {"completion", "config convert", "console", "legacy", "rack", "run"}
"""They print a script, a file or a log. The console shows its facts on its pages."""


def commands(command: click.Command, *path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield the commands of a group and of the groups in it, each with its path."""
    if isinstance(command, click.Group):
        for name, member in sorted(command.commands.items()):
            yield from commands(member, *path, name)
    else:
        yield " ".join(path), command


ALL = dict(commands(main))


def printed_help(path: str) -> str:
    answer = lockstep(*path.split(), "--help")
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
    (output,) = (param for param in ALL[path].params if "--output" in param.opts)
    assert output.opts == ["--output", "-o"]
    assert isinstance(output.type, click.Choice)
    # A report of verify is a page too.
    assert [*output.type.choices] in (["text", "json", "yaml"], ["text", "json", "yaml", "markdown"])


@pytest.mark.parametrize("path", ALL)
def test_short_output_option_is_never_a_path(path: str) -> None:
    options = {name: param for param in ALL[path].params for name in param.opts}
    assert options.get("-o") is options.get("--output")
    assert "--output" in options or not options.keys() & {"--json", "--yaml", "--format"}
