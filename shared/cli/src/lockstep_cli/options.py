"""The arguments and options that several commands have."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lockstep_cli.command_group import FILE_VARIABLE, FileArgument
from lockstep_cli.completion import complete_flows
from lockstep_runtime.http.options import page_options
from lockstep_runtime.service.config_options import beside_configuration
from lockstep_runtime.service.mm1_options import PARAMETERS, legacy_options, mm1_files

if TYPE_CHECKING:
    from lockstep_config.loader.mm1_files import LegacyFiles
    from lockstep_config.text.properties import PropertiesText

F = TypeVar("F", bound=Callable[..., Any])


TakesNext = Callable[[str, Mapping[str, Any]], bool]


def file_argument(command: F) -> F:
    """Add FILE, and the options that belong to it: where its secrets are, and settings on top of it."""
    return file_before(None)(command)


def file_before(takes_next: TakesNext | None, **attributes: Any) -> Callable[[F], F]:
    """Return `file_argument` for a command with an optional argument behind FILE (`FileArgument`)."""

    def decorate(command: F) -> F:
        path = click.Path(path_type=Path)
        argument = click.argument("file", cls=FileArgument, type=path, takes_next=takes_next, **attributes)
        return argument(beside_configuration(command))

    return decorate


@dataclass(frozen=True, slots=True)
class ConfigurationFiles:
    """The files of a configuration: one, or MirrorMaker 1's two. Of two files `path` is the consumer's."""

    path: Path
    legacy: "LegacyFiles | None" = None

    def read(self, document: str = "") -> "PropertiesText":
        """Return the lines of the file, or those of the resource called `document` of several.

        Raises:
            ConfigurationError: The file cannot be read as a configuration.
        """
        from lockstep_config.loader.configuration import read, with_overrides
        from lockstep_config.loader.mm1_files import legacy_text

        if self.legacy is None:
            return read(self.path, os.environ, document)
        return with_overrides(legacy_text(self.legacy), os.environ)


def configuration_argument(takes_next: TakesNext | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add FILE, or the options of `lockstep legacy` in its place: the command takes `files`."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def wrapper(file: Path | None, **parameters: Any) -> Any:
            legacy = mm1_files({name: parameters.pop(name) for name in PARAMETERS})
            if (file is None) == (legacy is None):
                raise click.UsageError(
                    "Name FILE, or in its place the options of lockstep legacy. "
                    f"The variable {FILE_VARIABLE} may name FILE too."
                )
            path = file if legacy is None else legacy.consumer
            assert path is not None
            return command(files=ConfigurationFiles(path, legacy), **parameters)

        argument = file_before(takes_next, required=False, replaced_by=PARAMETERS)
        decorated: Callable[..., Any] = argument(legacy_options(hidden=True)(wrapper))
        return decorated

    return decorate


CONSOLE_PORT = 9405
"""The port of the console, unless another one is asked for."""

# The table of options: each has one meaning and one default rule in all commands.


class _OutputForm(click.Choice[str]):
    """A form of output. Of the name of a file it says what writes one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        suffix = Path(str(value)).suffix.lower().removeprefix(".")
        form = {"yml": "yaml", "txt": "text"}.get(suffix, suffix)
        if value not in self.choices and (form in self.choices or "/" in str(value)):
            form = form if form in self.choices else "json"
            self.fail(f"{value!r} is a file, but a form is wanted: write --output {form} > {value}", param, ctx)
        return super().convert(value, param, ctx)


def output_of(*more: str) -> Callable[[F], F]:
    """Return `--output`, with the forms that every command has and `more`."""
    return click.option(
        "--output",
        "-o",
        type=_OutputForm(["text", "json", "yaml", *more]),
        default="text",
        show_default=True,
        help=f"Text for people, JSON or YAML for programs{', or a page to keep' if more else ''}.",
    )


output_option = output_of()


def gather_options(name: str, kind: type[Any], *options: Callable[[Any], Any]) -> Callable[[Callable[..., Any]], Any]:
    """Make one value of several options.

    The command takes `name`, a dataclass `kind` with a field for each of them. It may have fields for some options that
    the command has anyhow.
    """

    def decorate(command: Callable[..., Any]) -> Any:
        @wraps(command)
        def wrapper(**parameters: Any) -> Any:
            value = kind(**{field.name: parameters.pop(field.name) for field in fields(kind)})
            return command(**{name: value}, **parameters)

        return reduce(lambda decorated, option: option(decorated), reversed(options), wrapper)

    return decorate


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of commands that run services in this terminal.

    They are where the pages are, `--log-level` and `--log-format`.
    """
    level = click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        show_default="what the configuration says, else info",
        help="Say this and what is graver.",
    )
    form = click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Lines for people, or one JSON object a line.",
    )
    port = click.option(
        "--port",
        "--http-port",
        "port",
        type=click.IntRange(0, 65_535),
        show_default="9404, or a free one where it is in use",
        envvar="LOCKSTEP_HTTP_PORT",
        help="Port of the pages of all services; 0 for a free one.",
    )
    return page_options("--host", "--http-host")(port(level(form(command))))


CLUSTERS_S, SERVICES_S, STEP_S = 10.0, 30.0, 300.0
"""The seconds within which clusters, services and steps of a switch have to answer.

A service may have to be taken over by another replica first. A step of a switch waits until records are copied.
"""


def timeout_option(default_s: float) -> Callable[[F], F]:
    """Return `--timeout`. Its default is that of the slowest answer that the command waits for."""
    return click.option(
        "--timeout",
        metavar="SECONDS",
        type=click.FloatRange(min=0.1),
        default=default_s,
        show_default=True,
        help="Seconds that each step waits for its answer at most.",
    )


answer_timeout_option = timeout_option(SERVICES_S)

dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")

yes_option = click.option("--yes", is_flag=True, help="Do it without asking.")

FLOW_HELP = "'A->B', with the quotes"


def _single_flow(ctx: click.Context, param: click.Parameter, names: tuple[str, ...]) -> str | None:
    if len(names) > 1:
        raise click.BadParameter(f"this command takes one flow, and {len(names)} are named.", ctx, param)
    return names[0] if names else None


flow_option = click.option(
    "--flow",
    multiple=True,
    callback=_single_flow,
    shell_complete=complete_flows,
    help=f"The flow: {FLOW_HELP}. Default: the only one that is enabled.",
)

shown_flows_option = click.option(
    "--flow",
    "flows",
    multiple=True,
    shell_complete=complete_flows,
    help=f"Only this flow: {FLOW_HELP}; repeat for more. Default: all that are enabled.",
)


def flow_options(command: F) -> F:
    """Add `--flow`, repeated, and `--all-flows`."""
    by_name = click.option(
        "--flow",
        "flows",
        multiple=True,
        shell_complete=complete_flows,
        help=f"The flow: {FLOW_HELP}; repeat for more. Default: the only one that is enabled.",
    )
    all_enabled = click.option("--all-flows", is_flag=True, help="All flows of FILE that are enabled.")
    return by_name(all_enabled(command))
