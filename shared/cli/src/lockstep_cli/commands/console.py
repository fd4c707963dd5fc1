"""`lockstep console`: the flows of a file in a browser."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from lockstep_cli.command_group import CliCommand
from lockstep_cli.options import CONSOLE_PORT, file_argument, shown_flows_option
from lockstep_runtime.http.access import AccessPolicy
from lockstep_runtime.http.options import page_options

HELP = """\
Show the flows of FILE in a browser, and take decisions there: http://127.0.0.1:9405/

\b
Examples:
  lockstep console mm2.properties
  lockstep console mm2.properties --token-file token
  lockstep console mm2.properties --host '*' --tls-cert c.pem --tls-key k.pem --trust-header X-Forwarded-User

It follows what the services have written down on the target of each flow, and keeps nothing itself. It may be started
and killed at any time, and several may run. `lockstep run FILE --console` starts it beside the services.

It is read-only unless there is a token, or a proxy that names the user. With a token, reading needs it too; with
--anonymous-read only actions do. Each action says what it does and loses, and asks first. The event that answers it
names who asked.

A cluster that is away, a right that is missing and a flow that has never run are sentences on the page.
"""

EXIT_CODES = """\b
Exit codes:
  0  ended by Ctrl-C or SIGTERM
  1  crashed; the last line says why
  2  FILE, the options or the port cannot be used"""


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    options = (
        page_options("--host", "--http-host"),
        click.option(
            "--port",
            default=CONSOLE_PORT,
            show_default=True,
            type=click.IntRange(0, 65_535),
            envvar="LOCKSTEP_CONSOLE_PORT",
            help="Port of the console; 0 for a free one.",
        ),
        click.option(
            "--trust-header",
            metavar="NAME",
            help="A request with this header is from the user that it names, and may act. Only for a port that nobody"
            " but an authenticating proxy reaches.",
        ),
        click.option("--anonymous-read", is_flag=True, help="Everybody may read; the token is for actions only."),
        click.option(
            "--log-level",
            type=click.Choice(["debug", "info", "warning", "error"]),
            show_default="what the configuration says, else info",
            help="Say this and what is graver.",
        ),
        click.option(
            "--log-format",
            type=click.Choice(["text", "json"]),
            default="text",
            show_default=True,
            help="Lines for people, or one JSON object a line.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command(
    cls=CliCommand,
    name="console",
    short_help="Show flows in a browser, and decide there.",
    help=HELP,
    epilog=EXIT_CODES,
)
@file_argument
@shown_flows_option
@_options
def command(
    file: Path,
    flows: tuple[str, ...],
    access: AccessPolicy,
    port: int,
    trust_header: str | None,
    anonymous_read: bool,
    log_level: str | None,
    log_format: str,
) -> None:
    from lockstep_ops.exit_codes import CannotUse, Exit
    from lockstep_ops.installation import require_services
    from lockstep_ops.services import file_arguments

    try:
        if not file.exists():
            raise CannotUse(f"{file}: there is no such file")
        require_services(file, ["console"])
    except CannotUse as exc:
        click.echo(str(exc), err=True)
        raise SystemExit(int(Exit.USAGE)) from None
    values = {"--trust-header": trust_header, "--log-level": log_level}
    arguments = ["--config", str(file), "--host", access.host, "--port", str(port), "--log-format", log_format]
    arguments += [part for name in flows for part in ("--flow", name)]
    arguments += [*file_arguments(access), *(part for flag, value in values.items() if value for part in (flag, value))]
    arguments += ["--anonymous-read"] if anonymous_read else []
    # This process becomes the console: signals reach it, and nothing is left between it and the terminal.
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "lockstep_console", *arguments])  # noqa: S606  # no shell is needed
