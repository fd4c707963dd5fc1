"""The flags by which pages are bound, encrypted and guarded: the same for a service and for `lockstep run`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from lockstep_runtime.door import Door

__all__ = ["door_of", "door_options"]

C = TypeVar("C", bound=Callable[..., Any])

FILE = click.Path(path_type=Path, dir_okay=False)


def door_options(host: str) -> Callable[[C], C]:
    """Adds `--HOST`, `--tls-cert`, `--tls-key` and `--token-file`, each with its environment variable; the first is
    called `host`."""
    options = [
        click.option(
            host,
            "host",
            default="127.0.0.1",
            show_default=True,
            envvar="LOCKSTEP_HOST",
            help="Address of the pages; 0.0.0.0 for every one of this machine.",
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
            help="Show /status and /metrics only to who sends the token in this file (Authorization: Bearer ...). "
            "LOCKSTEP_TOKEN gives the token itself. /live and /ready stay open.",
        ),
    ]

    def add(command: C) -> C:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def door_of(host: str, port: int, tls_cert: Path | None, tls_key: Path | None, token_file: Path | None) -> Door:
    """The door that the options and LOCKSTEP_TOKEN describe."""
    return Door(host, port, tls_cert, tls_key, token_file, os.environ.get("LOCKSTEP_TOKEN", "").strip())
