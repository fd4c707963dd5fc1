"""The command `lockstep-console`."""

import asyncio
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from lockstep_config import Configuration, FlowSettings, UnknownFlow
from lockstep_runtime.http.access import AccessPolicy, PagesUnusable
from lockstep_runtime.service.cli import WIDE, end_with, load_for_process, process_options
from lockstep_runtime.telemetry.log import LogFormat
from lockstep_runtime.util import memory
from lockstep_state.names import Flow

ABOUT = """Show the flows of a file in a browser, and take decisions there.

The console follows the topics in which the services of each flow write down what is so. It keeps nothing itself: it
may be killed and started at any time, and several may run. Without --token-file and --trust-header it is read-only,
and everybody who reaches the port may read it.

\b
  lockstep-console --config mm2.properties --port 9405
  lockstep-console --config mm2.properties --port 9405 --token-file token
  lockstep-console --config mm2.properties --flow 'A->B' --host '*' --trust-header X-Forwarded-User"""

EPILOG = """\b
On the port shown at start:
  /         the console
  /api/v1   what it shows, as JSON; /api/v1/openapi.json describes it
  /live     200 while the process moves
  /ready    200 once each flow was read, or it is known why it cannot be
  /status   what the console does, as JSON
  /metrics  for Prometheus
\b
Exit codes: 0 ended cleanly, 1 crashed (the last line says why), 2 cannot start (configuration, usage, port).
Clusters that cannot be reached end nothing: the console says so and keeps trying."""


@click.command(name="lockstep-console", help=ABOUT, epilog=EPILOG, context_settings=WIDE)
@process_options
@click.option(
    "--trust-header",
    "trusted_header",
    default="",
    metavar="NAME",
    help="A request with this header is from the user that it names, and may act. Only for a port that nobody but an"
    " authenticating proxy reaches. Such as X-Forwarded-User.",
)
@click.option(
    "--anonymous-read", is_flag=True, help="Everybody may read. The token, or the user's header, is for actions only."
)
def main(
    *,
    path: Path | None,
    flows: tuple[Flow, ...],
    access: AccessPolicy,
    port: int,
    instance: str,
    log_level: str | None,
    remarks_reported: bool,
    log_format: LogFormat,
    trusted_header: str,
    anonymous_read: bool,
    **legacy: Any,
) -> None:
    """Run the console until a signal."""
    configuration, _ = load_for_process("console", path, log_level, log_format, legacy)
    shown = _select_flows(configuration, flows)
    try:
        access.check()
    except PagesUnusable as exc:
        click.echo(str(exc), err=True)
        raise SystemExit(2) from None
    with memory.without_default_certificates():
        from lockstep_console.access import ConsoleAccess  # aiohttp and librdkafka take long: not for --help
        from lockstep_console.console import ConsoleIdentity
        from lockstep_console.process import ConsoleProcess, run_until_stopped

    if not remarks_reported:
        for remark in (*configuration.notes, *configuration.unused):
            logging.getLogger("lockstep.console").warning("%s", remark)

    identity = ConsoleIdentity(instance, configuration.path)
    del configuration  # it may have a hundred times as many flows: each two clusters are one
    memory.trim_heap()

    def work() -> int:
        process = ConsoleProcess(
            shown,
            identity,
            ConsoleAccess(replace(access, port=port), trusted_header, anonymous_read),
        )
        return asyncio.run(run_until_stopped(process))

    end_with(work)


def _select_flows(configuration: Configuration, flows: tuple[Flow, ...]) -> tuple[FlowSettings, ...]:
    """Return the flows that are named, else all that are enabled."""
    try:
        shown = tuple(configuration.flow(flow) for flow in dict.fromkeys(flows)) or tuple(
            settings for settings in configuration.flows if settings.enabled
        )
    except UnknownFlow as exc:
        click.echo(str(exc), err=True)
        raise SystemExit(2) from None
    if not shown:
        click.echo(f"{configuration.path}: no flow is enabled; set SOURCE->TARGET.enabled = true", err=True)
        raise SystemExit(2)
    return shown


if __name__ == "__main__":
    main()
