"""A command that reads its arguments and prints its help, and a group that lists its commands."""

import difflib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

FILE_VARIABLE = "LOCKSTEP_FILE"

COMMON = ("--timeout", "--output", "--settings", "--secrets-dir", "--logging-dir", "--unknown", "--help")
"""Options that most commands have. Help shows them last, in this order."""


class FileArgument(click.Argument):
    """The argument FILE. The file that `LOCKSTEP_FILE` names stands for it where it is left out.

    Args:
        takes_next: Whether a single text is the optional argument behind FILE: called with the text and the options.
        replaced_by: Parameters of which one stands for FILE.
    """

    def __init__(
        self,
        declarations: Sequence[str],
        *,
        takes_next: Callable[[str, Mapping[str, Any]], bool] | None = None,
        replaced_by: Collection[str] = (),
        **attributes: Any,
    ) -> None:
        super().__init__(declarations, **attributes)
        self._takes_next = takes_next
        self._replaced_by = replaced_by

    def is_left_out(self, texts: Sequence[str], places: int, options: Mapping[str, Any]) -> bool:
        """Return whether `texts`, which are for this number of arguments, begin behind FILE."""
        if len(texts) >= places or any(isinstance(options.get(name), str) for name in self._replaced_by):
            return False
        return not texts or self._takes_next is None or self._takes_next(texts[0], options)


class CliCommand(click.Command):
    """A command whose help ends with the common options, and whose FILE may be in the environment."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing and args and args[-1].startswith("-"):
            args = args[:-1]  # completion: without its value click would not see the arguments before it
        arguments = [param for param in self.params if isinstance(param, click.Argument)]
        file = os.environ.get(FILE_VARIABLE, "")
        if file and arguments and isinstance(arguments[0], FileArgument):
            options, _, _ = self.make_parser(ctx).parse_args(list(args))
            values = [options.get(str(argument.name)) for argument in arguments]
            texts = [value for value in values if isinstance(value, str)]
            if arguments[0].is_left_out(texts, len(arguments), options):
                if not ctx.resilient_parsing and not Path(file).exists():
                    raise click.UsageError(f"{FILE_VARIABLE} names {file}, and there is no such file.", ctx)
                args = [file, *args]
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter as exc:
            if isinstance(exc.param, FileArgument):
                raise click.UsageError(f"Missing argument 'FILE'. Name it, or set {FILE_VARIABLE}.", ctx) from exc
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        records: dict[str, tuple[str, str]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                records[param.opts[-1] if param.opts[-1] in COMMON else param.opts[0]] = record
        common = [records.pop(name) for name in COMMON if name in records]
        if any(isinstance(param, FileArgument) for param in self.params):
            common.insert(0, ("FILE", f"The configuration. It may be left out if {FILE_VARIABLE} names it."))
        for title, section in (("Options", [*records.values()]), ("Common to most commands", common)):
            if section:
                with formatter.section(title):
                    formatter.write_dl(section)


class CommandGroup(click.Group):
    """A group that lists its commands under headings, and names the nearest command for a misspelt one.

    Args:
        sections: The commands by the headings under which help lists them. Without it they have one list.
    """

    command_class = CliCommand
    group_class = type

    def __init__(
        self, *args: Any, sections: Mapping[str, Sequence[click.Command]] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._sections = {
            title: [str(command.name) for command in commands] for title, commands in (sections or {}).items()
        }
        for commands in (sections or {}).values():
            for command in commands:
                self.add_command(command)

    def list_commands(self, ctx: click.Context) -> list[str]:
        placed = [name for names in self._sections.values() for name in names]
        return [*placed, *(name for name in super().list_commands(ctx) if name not in placed)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not self._sections:
            super().format_commands(ctx, formatter)
            return
        width = max(map(len, self.commands))
        for title, names in self._sections.items():
            with formatter.section(title):
                rows = [(name.ljust(width), self.commands[name].get_short_help_str(formatter.width)) for name in names]
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as exc:
            name = args[0] if args else ""
            near = difflib.get_close_matches(name.lower(), self.list_commands(ctx), 1, 0.6)
            if name.startswith("-") or not near:
                raise
            raise click.UsageError(f"No such command {name!r}. Did you mean {near[0]!r}?", ctx) from exc
