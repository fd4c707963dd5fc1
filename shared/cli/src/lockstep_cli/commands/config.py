"""`lockstep config check|show|convert`: what a configuration says, before anything runs."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lockstep_cli.command_group import CommandGroup
from lockstep_cli.command_runner import asynchronous
from lockstep_cli.completion import complete_flows
from lockstep_cli.options import ConfigurationFiles, configuration_argument, output_option, shown_flows_option
from lockstep_cli.rendering.result import print_document, print_parts, print_result
from lockstep_ops.exit_codes import CannotUse, Exit
from lockstep_ops.formatting import count_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType

    from lockstep_config import Problem
    from lockstep_config.report.effective import Setting, View

RESOURCE = Path("resource")
"""The word that --to takes instead of a file. A file of that name is ./resource."""
EXIT_CODES = """\b
Exit codes:
  0  FILE can be used
  2  it cannot: each mistake is on standard error, with its line
"""
CONVERT_EXIT_CODES = """\b
Exit codes:
  0  the output means the same; files and variables that FILE refers to may be missing here
  2  FILE has mistakes, each on standard error, with its line. The output has them too
"""


@click.group(name="config", cls=CommandGroup, short_help="Check, show or convert a configuration.")
def command() -> None:
    """What a configuration file says, before anything runs. No cluster is asked.

    \b
      lockstep config check mm2.properties      every mistake at once, and what has no effect
      lockstep config show mm2.properties       what counts in the end, and which line says so
      lockstep config convert FILE > mm2.properties
      lockstep config convert FILE --to resource --document NAME > values.yaml

    In the place of FILE they take MirrorMaker 1's files, with the options of lockstep legacy:

    \b
      lockstep config convert --consumer.config C --producer.config P --include 'orders.*' > mm2.properties
    """


@command.command(short_help="Check a file, and name every mistake.", epilog=EXIT_CODES)
@configuration_argument()
@click.option("--alone", is_flag=True, help="Look at FILE alone: what it refers to may not be there yet.")
@output_option
@asynchronous
async def check(files: ConfigurationFiles, alone: bool, output: str) -> int:
    """Read FILE as `lockstep run` would and name everything that is wrong with it, each with file, line and key. Then
    name what deserves a second look, and which keys have no effect here and why.

    References such as ${file:...} and ${env:...} are resolved, certificates are loaded, Python classes imported: what
    would fail at the start fails here. With --alone none of these is read: each line with one is named, not judged.

    \b
      lockstep config check mm2.properties && lockstep run mm2.properties
    """
    from lockstep_config import ConfigurationError
    from lockstep_config.loader.configuration import build_configuration

    file = files.path
    mistakes: tuple[Problem, ...] = ()
    flows: list[str] = []
    way_out = ""
    try:
        loaded = build_configuration(files.read(), file, os.environ, alone=alone)
        notes, unused = loaded.notes, loaded.unused
        flows = [str(settings.flow) for settings in loaded.flows if settings.enabled]
    except ConfigurationError as exc:
        mistakes, notes, unused, way_out = exc.problems, exc.notes, exc.unused, exc.way_out
    if output != "text":
        body = {"file": str(file), "usable": not mistakes, "flows": flows}
        problems = {"mistakes": mistakes, "notes": notes, "without_effect": unused}
        print_document({**body, **{name: _problems_as_json(group) for name, group in problems.items()}}, output)
    else:
        print_parts(map(str, mistakes), stderr=True)
        print_parts(map(str, (*notes, *unused)))
        click.echo(_verdict(file, mistakes, flows, alone), err=bool(mistakes))
        if way_out:
            click.echo(way_out, err=True)
    return Exit.USAGE if mistakes else Exit.FINE


@command.command(short_help="Show the settings that count, each with its line.", epilog=EXIT_CODES)
@configuration_argument(takes_next=lambda text, _: "->" in text)
@click.argument("flow", required=False, shell_complete=complete_flows)
@shown_flows_option
@click.option("--all", "everything", is_flag=True, help="Defaults too, not only what FILE states.")
@output_option
@asynchronous
async def show(
    files: ConfigurationFiles, flow: str | None, flows: tuple[str, ...], everything: bool, output: str
) -> int:
    """Show the effective settings of FLOW (written 'A->B' with the quotes), or of all flows of FILE that are enabled.
    Each value has the file, the line and the key that it comes from.

    What several lines say is decided as MirrorMaker 2 decides it. Secrets are never shown; what a config provider
    brings is shown as the reference to it. JSON always has the defaults.

    \b
    Examples:
      lockstep config show mm2.properties
      lockstep config show mm2.properties 'A->B' --all
      lockstep config show mm2.properties --output json | jq '.flows[].settings[] | select(.origin)'
    """
    from lockstep_cli.flow_selection import select_flows
    from lockstep_config.loader.configuration import build_with_layers
    from lockstep_config.report.effective import view

    file = files.path
    text = files.read()
    loaded, layers = build_with_layers(text, file, os.environ)
    enabled = [settings for settings in loaded.flows if settings.enabled]
    names = [*([flow] if flow else []), *flows]
    selected = select_flows(loaded, names) if names else enabled or loaded.flows
    effective = view(text, layers, file, selected)
    print_result(output, _as_tables(file, effective, everything), lambda: _view_as_json(file, effective))
    return Exit.FINE


@command.command(short_help="Write a file as mm2.properties, or as a resource.", epilog=CONVERT_EXIT_CODES)
@configuration_argument()
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    help="A new file to write, or the word resource. Default: mm2.properties to standard output.",
)
@click.option(
    "--document",
    default="",
    metavar="NAME",
    help="Of several resources in FILE, the one called NAME or NAMESPACE/NAME.",
)
@click.option("--with-secrets", is_flag=True, help="Also where secrets are written out, which stops it else.")
@asynchronous
async def convert(files: ConfigurationFiles, to: Path | None, document: str, with_secrets: bool) -> int:
    """Write FILE, in any form, as an mm2.properties file that means the same; a comment above each line says where it
    came from. References such as ${file:...} stay references.

    \b
      lockstep config convert mirror.yaml --to mm2.properties
      lockstep config check mm2.properties

    With --to resource it prints the KafkaMirrorMaker2 or KafkaMirrorMaker of FILE alone, without the documents beside
    it. Helm needs that: of a values file it reads the first document and leaves out the others without a word.

    \b
      lockstep config convert mirrors.yaml --to resource --document eu-to-us > values.yaml

    A secret that is written out in FILE stops it, for it would be in the output. Put it into a file of its own and
    refer to it, or say --with-secrets (a file is then readable by you alone).
    """
    from lockstep_config import ConfigurationError
    from lockstep_config.loader.configuration import build_configuration
    from lockstep_config.text.properties_writer import as_properties, plain_secrets

    file = files.path
    text = files.read(document)
    if text.problems:
        raise ConfigurationError(text.problems)
    if not with_secrets and (plain := plain_secrets(text.entries, file)):
        raise ConfigurationError(plain)
    resource = _resource(files, document) if to == RESOURCE else ""
    written = resource or as_properties(text.entries, file)
    if to is None or resource:
        click.echo(written, nl=False)
    else:
        _write(to, written, private=with_secrets)
    try:
        build_configuration(text, file, os.environ)
    except ConfigurationError as exc:
        # Perhaps its secrets are elsewhere, so it is written all the same.
        click.echo(f"{file} cannot be used as it is here, nor can the output:\n{exc}", err=True)
        try:
            build_configuration(text, file, os.environ, alone=True)
        except ConfigurationError:
            return Exit.USAGE
    return Exit.FINE


def _resource(files: ConfigurationFiles, document: str) -> str:
    """Return the one resource of a file whose lines were read already, as YAML.

    Raises:
        ConfigurationError: The file has no resource.
    """
    from lockstep_config import ConfigurationError, Problem
    from lockstep_config.loader.configuration import read_config_file
    from lockstep_config.strimzi.printing import as_yaml
    from lockstep_config.strimzi.recognised import is_resource
    from lockstep_config.strimzi.resource import find_resource

    data = read_config_file(files.path)
    resource = find_resource(data, files.path, document) if is_resource(data, files.path) else None
    if files.legacy is not None or resource is None:
        message = "holds no KafkaMirrorMaker2 and no KafkaMirrorMaker, so there is no resource to print"
        raise ConfigurationError([Problem(files.path, 0, "", message)])
    return as_yaml(resource)


def _write(to: Path, text: str, *, private: bool) -> None:
    try:
        opened = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
    except OSError as exc:
        exists = isinstance(exc, FileExistsError)
        reason = "is there already: remove it, or name another" if exists else f"cannot be written: {exc.strerror}"
        raise CannotUse(f"{to} {reason}") from exc
    with os.fdopen(opened, "w", encoding="ascii") as stream:
        stream.write(text)


def _verdict(file: Path, mistakes: "tuple[Problem, ...]", flows: list[str], alone: bool) -> str:
    if mistakes:
        return f"{file} cannot be used: {count_text(len(mistakes), 'mistake')}"
    limit = " as far as it shows alone" if alone else ""
    return f"{file} can be used{limit}: " + (f"{', '.join(flows)} enabled" if flows else "no flow is enabled")


def _problems_as_json(problems: "Iterable[Problem]") -> list[dict[str, Any]]:
    return [
        {**_place_as_json(problem.file, problem.line, problem.key), "message": problem.message} for problem in problems
    ]


def _place_as_json(file: Path | None, line: int, key: str) -> dict[str, Any]:
    return {"file": str(file), "line": line or None, "key": key}


def _settings_as_json(settings: "Iterable[Setting]") -> list[dict[str, Any]]:
    return [
        {
            "key": setting.key,
            "value": setting.value,
            "origin": _place_as_json(setting.file, setting.line, setting.stated) if setting.stated else None,
        }
        for setting in settings
    ]


def _view_as_json(file: Path, view: "View") -> dict[str, Any]:
    return {
        "file": str(file),
        "settings": _settings_as_json(view.file),
        "clusters": {alias: _settings_as_json(settings) for alias, settings in view.clusters.items()},
        "flows": [
            {
                "flow": str(flow.flow),
                "enabled": flow.enabled,
                "settings": _settings_as_json(flow.settings),
                "clients": {client: _settings_as_json(settings) for client, settings in flow.clients.items()},
            }
            for flow in view.flows
        ],
    }


def _as_tables(file: Path, view: "View", everything: bool) -> "Iterable[RenderableType]":
    from lockstep_cli.rendering.settings import settings_table

    yield settings_table(file, str(file), view.file)
    for alias, cluster_settings in view.clusters.items():
        yield settings_table(file, f"cluster {alias}", cluster_settings)
    for flow in view.flows:
        settings = [setting for setting in flow.settings if everything or setting.stated]
        yield settings_table(file, f"{flow.flow}" + ("" if flow.enabled else " (heartbeats only)"), settings)
        for client, client_settings in flow.clients.items():
            alias = flow.flow.source if client.startswith("source") else flow.flow.target
            own = [setting for setting in client_settings if setting not in view.clusters[alias]]
            if own:
                yield settings_table(file, f"{flow.flow}, {client} on {alias}", own)
