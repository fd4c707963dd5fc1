"""`exit-codes.md` has every code that a command's help has, with the commands that are exceptions."""

import re
from collections.abc import Iterator
from pathlib import Path

import click

from lockstep_cli.__main__ import main
from lockstep_ops.exit_codes import INTERRUPTED, TERMINATED, Exit

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "exit-codes.md"
COMMANDS = PAGE.read_text("utf-8").partition("## Commands\n")[2].partition("\n## ")[0]
ROWS = {int(code): text for code, text in re.findall(r"^\| (\d+) \| (.*) \|$", COMMANDS, re.MULTILINE)}
SECTIONS_OF_THEIR_OWN = ("run", "legacy", "plan")


def commands(group: click.Group = main, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{prefix}{name} ")
        elif name not in SECTIONS_OF_THEIR_OWN:
            yield f"{prefix}{name}", command


def codes(command: click.Command) -> dict[int, str]:
    """The codes that its help names, with their meaning."""
    codes = re.findall(r"^  (\d+) +(.*)$", command.epilog or "", re.MULTILINE)
    return {int(code): text for code, text in codes}


def test_exit_codes_page_has_every_code() -> None:
    named = {code for _, command in commands() for code in codes(command)}
    assert ROWS.keys() == {*Exit, INTERRUPTED, TERMINATED}
    assert named <= ROWS.keys()


def test_exit_codes_page_names_commands_that_check_incompletely() -> None:
    """Code 4 is of few commands."""
    those = {name.split()[0] for name, command in commands() if Exit.NOT_VERIFIED in codes(command)}
    assert those == {"doctor", "verify", "transform"}
    assert {name for name in those if f"`{name}`" not in ROWS[Exit.NOT_VERIFIED]} == set()


def test_exit_codes_page_names_commands_that_report_an_absent_cluster() -> None:
    """They ask clusters, and end with 1 in place of 3, because that is what they check."""
    asking = {
        name: codes(command) for name, command in commands() if any("--timeout" in p.opts for p in command.params)
    }
    those = {name for name, codes in asking.items() if codes and Exit.NO_ANSWER not in codes}
    assert those == {"doctor"}
    assert {name for name in those if f"`{name}`" not in ROWS[Exit.NO_ANSWER]} == set()
