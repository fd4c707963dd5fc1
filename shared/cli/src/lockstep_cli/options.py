"""What the commands' arguments have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from lockstep_runtime.secrets_option import secrets_option

__all__ = [
    "answer_timeout_option",
    "file_argument",
    "flow_option",
    "flow_options",
    "output_option",
    "run_options",
    "timeout_option",
]

F = TypeVar("F", bound=Callable[..., Any])


def file_argument(command: F) -> F:
    """FILE, and where its secrets are."""
    return click.argument("file", type=click.Path(path_type=Path))(secrets_option(command))


output_option = click.option(
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people, or JSON for programs.",
)


def run_options(command: F) -> F:
    """Those of whoever runs services in this terminal: `--http-host`, `--log-level`, `--log-format`."""
    host = click.option(
        "--http-host", default="127.0.0.1", show_default=True, help="Where /live /ready /status /metrics listen."
    )
    level = click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        default="info",
        show_default=True,
        help="Say this and what is graver.",
    )
    form = click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Lines for people, or one JSON object a line.",
    )
    return host(level(form(command)))


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
