"""The commands in the blocks of the pages about troubles can be copied: they name a flow where a file with several
flows needs it."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from lockstep_cli.__main__ import main
from tests.support.source_modules import REPOSITORY

PAGES = sorted((REPOSITORY / "docs" / "troubleshoot").glob("*.md"))
BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(lockstep [^`]*\bFILE\b[^`]*)`")


def commands(text: str) -> Iterator[list[str]]:
    """The words of each `lockstep` command in the blocks of a page, without its remark, and of those about FILE within
    its sentences."""
    for block in (*BLOCK.findall(text), *INLINE.findall(BLOCK.sub("", text))):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["lockstep"]:
                yield words[1:]


def found(words: list[str]) -> click.Command:
    command: click.Command = main
    for word in words:
        if not isinstance(command, click.Group):
            break
        commands = command.commands
        command = commands[word] if word in commands else commands["run"]
    return command


def needs_a_flow(command: click.Command) -> bool:
    """Whether it refuses a file with several flows unless `--flow` says which one."""
    options = {name: option for option in command.params for name in option.opts}
    flow = options.get("--flow")
    return isinstance(flow, click.Option) and ("--all-flows" in options or flow.callback is not None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_name_a_flow_if_they_need_one(page: Path) -> None:
    lacking = [" ".join(words) for words in commands(page.read_text("utf-8")) if needs_a_flow(found(words))]
    assert [text for text in lacking if "--flow" not in text] == []


def test_commands_that_need_a_flow_are_found() -> None:
    text = "```sh\nlockstep verify FILE --again  # again\nlockstep status FILE\n  ls\nlockstep stop FILE\n```\n"
    text += "then `lockstep restart FILE slot:N`, not `lockstep pause`\n"
    wanted = ["verify FILE --again", "status FILE", "stop FILE", "restart FILE slot:N"]
    assert [" ".join(words) for words in commands(text)] == wanted
    assert [needs_a_flow(found(words)) for words in commands(text)] == [True, False, True, True]
    assert [needs_a_flow(found([name])) for name in ("watch", "doctor", "probe", "refresh", "switchover")] == [
        False,
        False,
        False,
        True,
        True,
    ]
    assert needs_a_flow(found(["offsets", "alter", "FILE"]))
