"""The command line that all services share: `lockstep-topic-sync --config mm2.properties --flow 'A->B'`."""

import faulthandler
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import click

from lockstep_config import Configuration, ConfigurationError, FlowSettings, UnknownFlow, load
from lockstep_config.keys.connector_keys import ConnectorName, connector_name
from lockstep_config.keys.log_levels import CLIENTS
from lockstep_config.loader.mm1_files import LegacyFiles, load_legacy
from lockstep_protocol.commands.command_vocabulary import service_connector
from lockstep_protocol.names import Flow
from lockstep_runtime.http.access import AccessPolicy
from lockstep_runtime.http.options import page_options
from lockstep_runtime.service.config_options import REMARKS_PRINTED, beside_configuration
from lockstep_runtime.service.mm1_options import legacy_options, mm1_files
from lockstep_runtime.telemetry import log as logs
from lockstep_runtime.util import memory

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


class FlowName(click.ParamType):
    name = "SOURCE->TARGET"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Flow:
        if isinstance(value, Flow):
            return value
        try:
            return Flow.parse(str(value))
        except ValueError as exc:
            self.fail(str(exc), param, ctx)


def service_command(
    service: str,
    about: str,
    *,
    build: str,
    needs: Callable[[FlowSettings], bool],
    first: str = "",
    divided: bool = False,
    pauses_itself: bool = False,
) -> click.Command:
    """The command of `service`. `about` is its help. `build` names the class or function `module:name` that makes a
    FlowService of a FlowContext; it is imported only when the service really starts. `needs` says which flows of a file
    it serves by default. `first` names a function of the chosen flows that is called before anything slow is loaded.
    `divided` and `pauses_itself` are those of `service.Process`."""

    @click.command(name=f"lockstep-{service}", help=about, epilog=EPILOG, context_settings={"max_content_width": 100})
    @click.option(
        "--config",
        "path",
        type=click.Path(path_type=Path, dir_okay=False),
        help="The mm2.properties file, or Strimzi's resource as YAML; the same for all services. Required, but for a"
        " legacy flow, whose options are those of lockstep legacy.",
    )
    @beside_configuration
    @legacy_options(hidden=True)
    @click.option(
        "--flow",
        "flows",
        multiple=True,
        type=FlowName(),
        help="Serve this flow, written 'A->B' with the quotes; repeat for more. Default: all that need it.",
    )
    @page_options("--host")
    @click.option(
        "--port",
        default=0,
        envvar="LOCKSTEP_PORT",
        show_default=True,
        type=click.IntRange(0, 65535),
        help="Port of the pages; 0 takes a free one.",
    )
    @click.option(
        "--instance",
        default=socket.gethostname(),
        show_default="this host's name",
        help="Name of this replica: different for each replica of a flow, the same after a restart.",
    )
    @click.option(
        "--log-level",
        show_default="what the configuration says, else info",
        type=click.Choice(["debug", "info", "warning", "error"]),
        help="debug also shows tracebacks and what the libraries say.",
    )
    @click.option(REMARKS_PRINTED, "remarks_reported", is_flag=True, hidden=True)
    @click.option(
        "--log-format",
        default="text",
        show_default=True,
        type=click.Choice(["text", "json"]),
        help="Lines for people, or one JSON object a line.",
    )
    def command(
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
        logs.configure(service, log_level or "info", log_format)
        memory.keep_little()
        seen = partial(_seen, connector=connector_name(service_connector(service)))
        read = _reading(path, mm1_files(legacy))
        configuration = seen(_load(read))
        if log_level is None:
            levels = configuration.log
            logs.configure(service, levels.level(service), log_format, libraries=levels.by_service.get(CLIENTS))
        settings = _chosen(service, configuration, flows, needs)
        for remark in () if remarks_reported else (*configuration.notes, *configuration.unused):
            _log.warning("%s", remark)
        if first:
            resolve_name(first)(settings)
        # Faust takes half a second: not for --help.
        from lockstep_runtime.service.service import Instance, Process, serve

        builder = resolve_name(build)
        place = Instance(instance, replace(access, port=port))
        memory.collect_seldom()
        _dump_stacks()
        flags = {"divided": divided, "pauses_itself": pauses_itself}
        code = serve(lambda: Process(service, configuration, lambda: seen(read()), settings, builder, place, **flags))
        logging.shutdown()
        sys.stdout.flush()
        # A library's thread that waits for a broker which is gone must not keep the process from ending in time.
        os._exit(code)

    return command


def _dump_stacks() -> None:
    """If a signal ends the process, or SIGQUIT asks (as of a JVM), standard error has the stack of each thread."""
    faulthandler.enable()
    if hasattr(signal, "SIGQUIT"):
        faulthandler.register(signal.SIGQUIT, all_threads=True)


def _reading(path: Path | None, legacy: LegacyFiles | None) -> Callable[[], Configuration]:
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


def _seen(configuration: Configuration, connector: ConnectorName) -> Configuration:
    flows = tuple(settings.as_seen_by(connector) for settings in configuration.flows)
    return replace(configuration, flows=flows)


def _chosen(
    service: str, configuration: Configuration, flows: tuple[Flow, ...], needs: Callable[[FlowSettings], bool]
) -> list[FlowSettings]:
    try:
        chosen = [configuration.flow(flow) for flow in flows] or list(configuration.flows)
    except UnknownFlow as exc:
        click.echo(str(exc), err=True)
        raise SystemExit(2) from None
    needed = [settings for settings in chosen if needs(settings)]
    if not needed:
        asked = "none of the flows asked for needs it" if flows else "no flow in it needs it"
        click.echo(f"{service} has nothing to do with {configuration.path}: {asked}", err=True)
        raise SystemExit(2)
    return needed
