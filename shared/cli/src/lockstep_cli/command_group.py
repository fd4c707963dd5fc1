"""A group of commands that knows which one a misspelt name was meant to be."""

import difflib

import click


class CommandGroup(click.Group):
    """Commands by their names. An unknown name is refused with the nearest one; a group in it does the same."""

    group_class = type

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
