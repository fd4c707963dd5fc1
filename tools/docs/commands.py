"""The tables of commands in `commands.md`, from the declared verbs and from the commands of the command line:
`python -m tools.docs.commands` writes them anew.

They are between the lines that name them; the text around them is written by hand."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import click

from lockstep_cli.__main__ import main
from lockstep_state.commands.command_vocabulary import SCOPE_FORMS, VERBS, ControlCommand

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "commands.md"
BLOCK = re.compile(r"(<!-- commands: ([a-z]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def filled(page: str) -> str:
    """The page with its tables as the commands are now. Raises KeyError for a table of nobody."""
    return BLOCK.sub(lambda block: f"{block[1]}\n" + "\n".join(TABLES[block[2]]()) + "\n\n", page)


def _all() -> Iterator[str]:
    yield "| command | what it does |\n|---|---|"
    yield from _of_group("lockstep", main)


def _of_group(name: str, group: click.Group) -> Iterator[str]:
    for sub, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from _of_group(f"{name} {sub}", command)
        elif not command.hidden:
            yield f"| `{name} {sub}` | {command.get_short_help_str(limit=200)} |"


def _verbs() -> Iterator[str]:
    yield "| verb | subjects | event that answers it |\n|---|---|---|"
    rows: dict[str, list[ControlCommand]] = {}
    for verb in VERBS.values():
        rows.setdefault(_subjects(verb), []).append(verb)
    for subjects, verbs in rows.items():
        names, answers = (", ".join(f"`{name}`" for name in column) for column in zip(*map(_named, verbs), strict=True))
        yield f"| {names} | {subjects} | {answers} |"


def _named(verb: ControlCommand) -> tuple[str, str]:
    return verb.verb, verb.answer


def _subjects(verb: ControlCommand) -> str:
    return ", ".join(f"`{SCOPE_FORMS[kind][0]}`" for kind in verb.scopes)


TABLES: Mapping[str, Callable[[], Iterator[str]]] = {"all": _all, "verbs": _verbs}

if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
