"""What the commands' arguments have in common."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lockstep_runtime.http.options import page_options
from lockstep_runtime.service.config_options import beside_configuration
from lockstep_runtime.service.mm1_options import PARAMETERS, legacy_options, mm1_files

if TYPE_CHECKING:
    from lockstep_config.loader.mm1_files import LegacyFiles
    from lockstep_config.text.properties import PropertiesText

F = TypeVar("F", bound=Callable[..., Any])


def file_argument(command: F) -> F:
    """FILE, and what belongs to it: its secrets, settings on top."""
    return click.argument("file", type=click.Path(path_type=Path))(beside_configuration(command))


@dataclass(frozen=True, slots=True)
class Given:
    """A configuration by what names it: a file, or MirrorMaker 1's two; then `path` is the consumer's."""

    path: Path
    legacy: "LegacyFiles | None" = None

    def read(self, document: str = "") -> "PropertiesText":
        """Its lines; of several resources, those of the one called `document`. Raises ConfigurationError."""
        from lockstep_config.loader.configuration import read, with_overrides
        from lockstep_config.loader.mm1_files import legacy_text

        if self.legacy is None:
            return read(self.path, os.environ, document)
        return with_overrides(legacy_text(self.legacy), os.environ)


def configuration_argument(command: F) -> Callable[..., Any]:
    """FILE, or the options of `lockstep legacy` in its place: the command takes `given`."""

    @wraps(command)
    def taking(file: Path | None, **parameters: Any) -> Any:
        legacy = mm1_files({name: parameters.pop(name) for name in PARAMETERS})
        if (file is None) == (legacy is None):
            raise click.UsageError("Name FILE, or in its place the options of lockstep legacy.")
        path = file if legacy is None else legacy.consumer
        assert path is not None
        return command(given=Given(path, legacy), **parameters)

    argument = click.argument("file", required=False, type=click.Path(path_type=Path))
    return argument(beside_configuration(legacy_options(hidden=True)(taking)))


output_option = click.option(
    "--output",
    "-o",
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    show_default=True,
    help="For people, or JSON or YAML for programs.",
)


def echo_json(body: Any) -> None:
    """What `--output json` prints."""
    click.echo(json.dumps(body, indent=2, ensure_ascii=False))


def echo_body(body: Any, output: str) -> None:
    """What `--output json` or `--output yaml` prints."""
    if output == "json":
        echo_json(body)
        return
    from lockstep_config.strimzi.printing import plain_yaml

    click.echo(plain_yaml(json.loads(json.dumps(body))), nl=False)


def gathered(name: str, kind: type[Any], *options: Callable[[Any], Any]) -> Callable[[Callable[..., Any]], Any]:
    """Options that make one value. The command takes `name`, a dataclass with a field for each of them, and perhaps for
    some that the command has anyhow."""

    def decorate(command: Callable[..., Any]) -> Any:
        @wraps(command)
        def taking(**parameters: Any) -> Any:
            value = kind(**{one.name: parameters.pop(one.name) for one in fields(kind)})
            return command(**{name: value}, **parameters)

        made = taking
        for option in reversed(options):
            made = option(made)
        return made

    return decorate


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of commands that run services in this terminal: where their pages are, `--log-level`, `--log-format`."""
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
        "--http-port",
        "port",
        type=click.IntRange(0, 65_535),
        show_default="9404, or a free one where it is in use",
        envvar="LOCKSTEP_HTTP_PORT",
        help="Port of the pages of all services; 0 for a free one.",
    )
    return page_options("--http-host")(port(level(form(command))))


def timeout_option(seconds: float, about: str) -> Callable[[F], F]:
    """`--timeout`, `seconds` where nothing is said."""
    number = click.FloatRange(min=0.1)
    return click.option("--timeout", type=number, default=seconds, show_default=True, help=f"Seconds {about}.")


answer_timeout_option = timeout_option(30.0, "to wait for answers; a take-over between replicas needs up to 10")

flow_option = click.option("--flow", help="The flow, written 'A->B' with the quotes. Default: the only one enabled.")


def flow_options(command: F) -> F:
    """`--flow`, repeated, and `--all-flows`."""
    named = click.option(
        "--flow",
        "flows",
        multiple=True,
        help="The flow, written 'A->B' with the quotes; repeat for more. Default: the only one that is enabled.",
    )
    every = click.option("--all-flows", is_flag=True, help="All flows of FILE that are enabled.")
    return named(every(command))
