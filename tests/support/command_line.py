"""The `lockstep` command in the process of a test."""

from typing import Any

from click.testing import CliRunner, Result

from lockstep_cli.__main__ import main


def lockstep(*arguments: object, **options: Any) -> Result:
    """Run `lockstep ARGUMENTS`. The options are those of click's runner: its environment, its standard input."""
    return CliRunner().invoke(main, [*map(str, arguments)], **options)
