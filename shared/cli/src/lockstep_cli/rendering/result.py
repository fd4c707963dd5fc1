"""The result of a command: lines and tables for people, or a JSON or YAML document for programs."""

import json
import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import RenderableType


def document(body: Any, output: str, *, in_stream: bool = False) -> str:
    """Return a value as `--output json` or `--output yaml` prints it.

    In a stream of documents JSON is one line, and YAML begins with `---`.
    """
    if output == "json":
        return json.dumps(body, indent=None if in_stream else 2, ensure_ascii=False) + "\n"
    from lockstep_config.strimzi.printing import plain_yaml

    return ("---\n" if in_stream else "") + plain_yaml(json.loads(json.dumps(body)))


def print_document(body: Any, output: str, *, in_stream: bool = False) -> None:
    """Print a value for programs. With the output `text` nothing is printed."""
    if output != "text":
        click.echo(document(body, output, in_stream=in_stream), nl=False)


def print_parts(parts: "Iterable[RenderableType]", *, stderr: bool = False, wraps_lines: bool = False) -> None:
    """Print lines and tables for people. A `str` is printed as it is.

    Args:
        parts: The lines and tables, in their order.
        stderr: Whether they go to standard error.
        wraps_lines: Whether a line that is wider than the terminal goes on below its beginning. Otherwise the terminal
            breaks it, so that a command in it can be copied.
    """
    screen = None
    for part in parts:
        if isinstance(part, str):
            click.echo(part, err=stderr)
            continue
        if screen is None:
            from lockstep_cli.rendering.console import console

            screen = console(stderr=stderr)
        screen.print(part, soft_wrap=not (wraps_lines and screen.is_terminal))


def discard_output() -> None:
    """Drop what is printed from now on, as nobody reads it. Else Python would fail again when it flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_result(
    output: str,
    parts: "Iterable[RenderableType]",
    body: Callable[[], Any],
    *,
    wraps_lines: bool = False,
    in_stream: bool = False,
) -> None:
    """Print the parts for people (`print_parts`) if the output is `text`, else the body for programs (`document`)."""
    if output == "text":
        print_parts(parts, wraps_lines=wraps_lines)
    else:
        print_document(body(), output, in_stream=in_stream)
