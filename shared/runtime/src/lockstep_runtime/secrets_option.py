"""`--secrets-dir`, which every command has that reads a configuration.

It is handed on as an environment variable, so that the processes which a command starts look in the same place.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from lockstep_config.providers import SECRETS_FOLDER, SECRETS_VARIABLE

__all__ = ["secrets_option"]


def _handed_on(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    if value is None or ctx.resilient_parsing:
        return value
    before = os.environ.get(SECRETS_VARIABLE)
    os.environ[SECRETS_VARIABLE] = str(value.absolute())

    def as_before() -> None:
        if before is None:
            os.environ.pop(SECRETS_VARIABLE, None)
        else:
            os.environ[SECRETS_VARIABLE] = before

    ctx.call_on_close(as_before)
    return value


secrets_option = click.option(
    "--secrets-dir",
    type=click.Path(path_type=Path, file_okay=False),
    envvar=SECRETS_VARIABLE,
    show_envvar=True,
    expose_value=False,
    callback=_handed_on,
    help=f"Folder of the secrets that a resource names, as SECRET/KEY in it. Default: {SECRETS_FOLDER}.",
)
