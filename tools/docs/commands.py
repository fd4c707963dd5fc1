"""The tables of commands in `commands.md`, from the declared verbs and from the commands of the command line."""

from collections.abc import Iterator, Mapping

import click

from lockstep_cli.__main__ import main
from lockstep_state.commands.command_vocabulary import SCOPE_FORMS, VERBS
from tools.docs.pages import DOCS, code, grouped, table

PAGE = DOCS / "reference" / "commands.md"


def blocks() -> Mapping[str, str]:
    """Return the table of the command line's commands, and that of the verbs, which share a row with one subject."""
    verbs = grouped((code(SCOPE_FORMS[kind][0] for kind in verb.scopes), verb) for verb in VERBS.values())
    rows = (
        (code(each.verb for each in alike), subjects, code(each.answer for each in alike))
        for subjects, alike in verbs.items()
    )
    return {
        "commands: all": table("command | what it does", _commands("lockstep", main)),
        "commands: verbs": table("verb | subjects | event that answers it", rows),
    }


def _commands(name: str, group: click.Group) -> Iterator[tuple[str, str]]:
    for sub, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from _commands(f"{name} {sub}", command)
        elif not command.hidden:
            yield f"`{name} {sub}`", command.get_short_help_str(limit=200)
