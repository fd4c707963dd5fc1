"""The command line that all services share: `lockstep-topic-sync --config mm2.properties --flow 'A->B'`."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from lockstep_config import Configuration, ConfigurationError, FlowSettings, UnknownFlow, load
from lockstep_protocol.names import Flow
from lockstep_runtime import log as logs
from lockstep_runtime import memory
from lockstep_runtime.door import Door
from lockstep_runtime.door_options import door_options

__all__ = ["service_command"]

EPILOG = """\b
Pages on the port shown at start:
  /live     200 while the process moves
  /ready    200 once the target's control topics have been read
  /status   what it does in each flow, as JSON
  /metrics  for Prometheus
Only GET and HEAD, nothing else is there. They show no configuration and no secrets.
\b
Exit codes: 0 ended cleanly, 1 crashed (the last line says why), 2 cannot start (configuration, usage, port).
Clusters that cannot be reached end nothing: it says so once and keeps trying."""


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
    """The command of `service`. `about` is its help; `build` names the function `module:function` that makes a
    FlowService of a FlowContext, imported only when the service really starts; `needs` says which flows of a file it
    serves by default; `first` names a function of the chosen flows that is called before anything slow is loaded;
    `divided` and `pauses_itself` are those of `service.serve`."""

    @click.command(name=f"lockstep-{service}", help=about, epilog=EPILOG, context_settings={"max_content_width": 100})
    @click.option(
        "--config",
        "path",
        required=True,
        type=click.Path(path_type=Path, dir_okay=False),
        help="The mm2.properties file; the same for all services.",
    )
    @click.option(
        "--flow",
        "flows",
        multiple=True,
        type=FlowName(),
        help="Serve this flow, written 'A->B' with the quotes; repeat for more. Default: all that need it.",
    )
    @door_options("--host")
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
        default="info",
        show_default=True,
        type=click.Choice(["debug", "info", "warning", "error"]),
        help="debug also shows tracebacks and what the libraries say.",
    )
    @click.option(
        "--log-format",
        default="text",
        show_default=True,
        type=click.Choice(["text", "json"]),
        help="Lines for people, or one JSON object a line.",
    )
    def command(
        path: Path,
        flows: tuple[Flow, ...],
        host: str,
        tls_cert: Path | None,
        tls_key: Path | None,
        token_file: Path | None,
        port: int,
        instance: str,
        log_level: str,
        log_format: logs.LogFormat,
    ) -> None:
        logs.configure(service, log_level, log_format)
        memory.keep_little()
        configuration = _load(path)
        settings = _chosen(service, configuration, flows, needs)
        if first:
            _named(first)(settings)
        from lockstep_runtime.service import Place, serve  # Faust takes half a second: not for --help

        builder = _named(build)
        door = Door(host, port, tls_cert, tls_key, token_file, os.environ.get("LOCKSTEP_TOKEN", "").strip())
        place = Place(instance, door)
        code = serve(service, configuration, settings, builder, place, divided=divided, pauses_itself=pauses_itself)
        logging.shutdown()
        sys.stdout.flush()
        # A library's thread that waits for a broker which is gone must not keep the process from ending in time.
        os._exit(code)

    return command


def _named(function: str) -> Any:
    module, _, name = function.partition(":")
    return getattr(import_module(module), name)


def _load(path: Path) -> Configuration:
    try:
        return load(path, os.environ)
    except ConfigurationError as exc:
        click.echo(str(exc), err=True)
        raise SystemExit(2) from None


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
