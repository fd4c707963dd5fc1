"""The flags by which HTTP pages are bound, encrypted and guarded, the same for a service and for `lockstep run`."""

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from lockstep_runtime.http.access import AccessPolicy

FILE = click.Path(path_type=Path, dir_okay=False)


def page_options(*host: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options `host`, `--tls-cert`, `--tls-key` and `--token-file`, each with its environment variable.

    The command gets an `access` argument for a free port, made of these options and LOCKSTEP_TOKEN.

    Args:
        host: The names of the host option.
    """
    options = [
        click.option(
            *host,
            "host",
            default="127.0.0.1",
            show_default=True,
            envvar="LOCKSTEP_HOST",
            help="Address of the pages; * for every one of this machine, IPv4 and IPv6; 0.0.0.0 for IPv4 alone.",
        ),
        click.option(
            "--tls-cert",
            type=FILE,
            envvar="LOCKSTEP_TLS_CERT",
            help="Serve the pages over TLS with this certificate (PEM, with its chain); read again when it changes.",
        ),
        click.option("--tls-key", type=FILE, envvar="LOCKSTEP_TLS_KEY", help="Its private key (PEM, not encrypted)."),
        click.option(
            "--token-file",
            type=FILE,
            envvar="LOCKSTEP_TOKEN_FILE",
            help="Require the token in this file for /status and /metrics (Authorization: Bearer ...). "
            "LOCKSTEP_TOKEN gives the token itself. /live and /ready stay open.",
        ),
    ]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_access(
            *, host: str, tls_cert: Path | None, tls_key: Path | None, token_file: Path | None, **parameters: Any
        ) -> Any:
            token = os.environ.get("LOCKSTEP_TOKEN", "").strip()
            return command(access=AccessPolicy(host, 0, tls_cert, tls_key, token_file, token), **parameters)

        guarded: Callable[..., Any] = with_access
        for option in reversed(options):
            guarded = option(guarded)
        return guarded

    return decorate
