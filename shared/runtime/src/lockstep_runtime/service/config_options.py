"""`--secrets-dir`, `--settings`, `--logging-dir` and `--unknown`, for every command that reads a configuration.

They are passed on as environment variables, so that the processes which a command starts use the same files.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from lockstep_config.keys.log_levels import LOGGING_VARIABLE
from lockstep_config.loader.settings_file import SETTINGS_VARIABLE, UNKNOWN_VARIABLE
from lockstep_config.text.config_providers import SECRETS_FOLDER, SECRETS_VARIABLE

REMARKS_PRINTED = "--remarks-told"
"""A flag for a process whose configuration was remarked on by the process that starts it."""

F = TypeVar("F", bound=Callable[..., Any])


def beside_configuration(command: F) -> F:
    """Add the four options; the command itself sees none of them."""
    folder = click.Path(path_type=Path, file_okay=False)
    kind: click.ParamType
    for name, kind, variable, help_text in (
        (
            "--unknown",
            click.Choice(["error", "warn"]),
            UNKNOWN_VARIABLE,
            "What each key is that neither MirrorMaker nor Lockstep knows. Default: what lockstep.unknown.keys says,"
            " else an error only where it is a slip of the pen from a key that decides what is copied.",
        ),
        (
            "--logging-dir",
            folder,
            LOGGING_VARIABLE,
            "Folder of the ConfigMap that a resource's spec.logging names, as NAME/KEY in it. Default: that of the"
            " secrets.",
        ),
        (
            "--settings",
            click.Path(path_type=Path, dir_okay=False),
            SETTINGS_VARIABLE,
            "An mm2.properties of settings that count on top of the configuration, as those of lockstep.spark, for"
            " which a resource has no place.",
        ),
        (
            "--secrets-dir",
            folder,
            SECRETS_VARIABLE,
            f"Folder of the secrets that a resource names, as SECRET/KEY in it. Default: {SECRETS_FOLDER}.",
        ),
    ):
        command = click.option(
            name,
            type=kind,
            envvar=variable,
            show_envvar=True,
            expose_value=False,
            callback=_pass_on(variable),
            help=help_text,
        )(command)
    return command


def _pass_on(variable: str) -> Callable[[click.Context, click.Parameter, Path | str | None], Path | str | None]:
    def set_variable(ctx: click.Context, param: click.Parameter, value: Path | str | None) -> Path | str | None:
        if value is None or ctx.resilient_parsing:
            return value
        before = os.environ.get(variable)
        os.environ[variable] = str(value.absolute()) if isinstance(value, Path) else value

        def restore() -> None:
            if before is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = before

        ctx.call_on_close(restore)
        return value

    return set_variable
