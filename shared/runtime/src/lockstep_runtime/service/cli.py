"""The command line that all services share: `lockstep-topic-sync --config mm2.properties --flow 'A->B'`."""

import faulthandler
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NoReturn

import click

from lockstep_config import Configuration, ConfigurationError, FlowSettings, UnknownFlow, load
from lockstep_config.keys.connector_keys import connector_name
from lockstep_config.keys.log_levels import CLIENTS
from lockstep_config.loader.mm1_files import LegacyFiles, load_legacy
from lockstep_runtime.http.access import AccessPolicy
from lockstep_runtime.http.options import page_options
from lockstep_runtime.service.config_options import REMARKS_PRINTED, beside_configuration
from lockstep_runtime.service.definition import ServiceDefinition
from lockstep_runtime.service.mm1_options import legacy_options, mm1_files
from lockstep_runtime.telemetry import log as logs
from lockstep_runtime.util import memory
from lockstep_state.commands.command_vocabulary import service_connector
from lockstep_state.names import Flow

_log = logging.getLogger(__name__)

EPILOG = """\b
Pages on the port shown at start:
  /live     200 while the process moves
  /ready    200 once the target's control topics have been read
  /status   what it does in each flow, as JSON
  /metrics  for Prometheus
Only GET and HEAD, nothing else is there. They show no configuration and no secrets.
\b
Exit codes: 0 ended cleanly, 1 crashed (the last line says why), 2 cannot start (configuration, usage, port),
3 a record was refused, and lockstep.legacy.abort.on.send.failure asks to end then.
Clusters that cannot be reached end nothing: it says so once and keeps trying.
On SIGQUIT (kill -QUIT) it writes the stack of each of its threads to standard error."""


WIDE = {"max_content_width": 100}
"""click's settings for the help of a process."""


class FlowName(click.ParamType):
    """The type of an option that names a flow."""

    name = "SOURCE->TARGET"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Flow:
        if isinstance(value, Flow):
            return value
        try:
            return Flow.parse(str(value))
        except ValueError as exc:
            self.fail(str(exc), param, ctx)


def service_command(service: ServiceDefinition, help_text: str) -> click.Command:
    """Return the command of one service in a process of its own, with `help_text` as its help."""

    @click.command(name=f"lockstep-{service.name}", help=help_text, epilog=EPILOG, context_settings=WIDE)
    @process_options
    def command(**arguments: Any) -> None:
        run_process(service.name, [service], **arguments)

    return command


def process_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that `run_process` takes."""
    options = (
        click.option(
            "--config",
            "path",
            type=click.Path(path_type=Path, dir_okay=False),
            help="The mm2.properties file, or Strimzi's resource as YAML; the same for all services. Required, but for"
            " a legacy flow, whose options are those of lockstep legacy.",
        ),
        beside_configuration,
        legacy_options(hidden=True),
        click.option(
            "--flow",
            "flows",
            multiple=True,
            type=FlowName(),
            help="Serve this flow, written 'A->B' with the quotes; repeat for more. Default: all that need it.",
        ),
        page_options("--host"),
        click.option(
            "--port",
            default=0,
            envvar="LOCKSTEP_PORT",
            show_default=True,
            type=click.IntRange(0, 65535),
            help="Port of the pages; 0 takes a free one.",
        ),
        click.option(
            "--instance",
            default=socket.gethostname(),
            show_default="this host's name",
            help="Name of this replica: different for each replica of a flow, the same after a restart.",
        ),
        click.option(
            "--log-level",
            show_default="what the configuration says, else info",
            type=click.Choice(["debug", "info", "warning", "error"]),
            help="debug also shows tracebacks and what the libraries say.",
        ),
        click.option(REMARKS_PRINTED, "remarks_reported", is_flag=True, hidden=True),
        click.option(
            "--log-format",
            default="text",
            show_default=True,
            type=click.Choice(["text", "json"]),
            help="Lines for people, or one JSON object a line.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def run_process(
    process: str,
    services: Sequence[ServiceDefinition],
    *,
    path: Path | None,
    flows: tuple[Flow, ...],
    access: AccessPolicy,
    port: int,
    instance: str,
    log_level: str | None,
    remarks_reported: bool,
    log_format: logs.LogFormat,
    **legacy: Any,
) -> None:
    """Run the services until a signal, then end this process with their exit code.

    Each service serves those flows that need it. `process` is the name of the process in the log.

    Raises:
        SystemExit: Code 2: the configuration cannot be used, or a service has nothing to do.
    """
    configuration, read = load_for_process(process, path, log_level, log_format, legacy)
    selections = [_select_flows(service, configuration, flows) for service in services]
    for remark in () if remarks_reported else (*configuration.notes, *configuration.unused):
        _log.warning("%s", remark)
    for service, (_, settings) in zip(services, selections, strict=True):
        if service.first:
            resolve_name(service.first)(settings)
    with memory.without_default_certificates():
        # To import Faust takes half a second: not for --help.
        from lockstep_runtime.service.service import Instance, Process, serve

    identity = Instance(instance, replace(access, port=port))
    factories = [
        partial(
            Process,
            service,
            configured,
            partial(_reload, service, read),
            settings,
            resolve_name(service.build),
            identity,
        )
        for service, (configured, settings) in zip(services, selections, strict=True)
    ]
    end_with(partial(serve, process, factories))


def load_for_process(
    process: str,
    path: Path | None,
    log_level: str | None,
    log_format: logs.LogFormat,
    legacy: Mapping[str, Any],
) -> tuple[Configuration, Callable[[], Configuration]]:
    """Return the configuration of a process, and what reads it again. The log is as the command line says from now on.

    Args:
        process: The name of the process in the log.
        path: The file, or None if `legacy` names MirrorMaker 1's two.
        log_level: The level of the log. None: that of the configuration.
        log_format: The form of the log.
        legacy: The options of `lockstep legacy`.

    Raises:
        SystemExit: Code 2: the configuration cannot be used.
    """
    logs.configure(process, log_level or "info", log_format)
    memory.tune_malloc_for_service()
    read = _reader(path, mm1_files(legacy))
    configuration = _load(read)
    if log_level is None:
        levels = configuration.log
        logs.configure(process, levels.level(process), log_format, libraries=levels.by_service.get(CLIENTS))
    return configuration, read


def end_with(work: Callable[[], int]) -> NoReturn:
    """Do the work of this process, and end it with the exit code that the work returns."""
    memory.freeze_gc()
    _dump_stacks()
    code = work()
    logging.shutdown()
    sys.stdout.flush()
    # A library's thread that waits for a broker which is gone must not keep the process from ending in time.
    os._exit(code)


def _dump_stacks() -> None:
    """Write the stack of each thread to standard error if a signal ends the process, or on SIGQUIT (as a JVM does)."""
    faulthandler.enable()
    if hasattr(signal, "SIGQUIT"):
        faulthandler.register(signal.SIGQUIT, all_threads=True)


def _reader(path: Path | None, legacy: LegacyFiles | None) -> Callable[[], Configuration]:
    if path is not None and legacy is not None:
        raise click.UsageError("--config and MirrorMaker 1's files are two configurations: name one of them.")
    if legacy is not None:
        return partial(load_legacy, legacy, os.environ)
    if path is None:
        raise click.UsageError("Missing option '--config'.")
    return partial(load, path, os.environ)


def _load(read: Callable[[], Configuration]) -> Configuration:
    try:
        return read()
    except ConfigurationError as exc:
        click.echo(str(exc), err=True)
        raise SystemExit(2) from None


def _select_flows(
    service: ServiceDefinition, configuration: Configuration, flows: tuple[Flow, ...]
) -> tuple[Configuration, list[FlowSettings]]:
    """Return the configuration as the service reads it, and the flows in it that the service is to serve."""
    configured = _for_service(service, configuration)
    try:
        chosen = [configured.flow(flow) for flow in flows] or list(configured.flows)
    except UnknownFlow as exc:
        click.echo(str(exc), err=True)
        raise SystemExit(2) from None
    needed = [settings for settings in chosen if settings.needs(service.name)]
    if not needed:
        cause = "none of the flows asked for needs it" if flows else "no flow in it needs it"
        click.echo(f"{service.name} has nothing to do with {configuration.path}: {cause}", err=True)
        raise SystemExit(2)
    return configured, needed


def _for_service(service: ServiceDefinition, configuration: Configuration) -> Configuration:
    connector = connector_name(service_connector(service.name))
    return replace(configuration, flows=tuple(settings.as_seen_by(connector) for settings in configuration.flows))


def _reload(service: ServiceDefinition, read: Callable[[], Configuration]) -> Configuration:
    return _for_service(service, read())
