"""MirrorMaker 1's command line, as `lockstep legacy` and the services it starts take it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from lockstep_config.loader.mm1_files import LegacyFiles

F = TypeVar("F", bound=Callable[..., Any])

CONSUMER, PRODUCER = "consumer.config", "producer.config"

_OPTIONS = {
    "num.streams": ("N", "Slots that copy at once.  [default: the files' tasks.max, or 1]"),
    "include": (
        "REGEX",
        "Topics: Java regular expressions between commas; * is every topic.  [default: the files'"
        " topics, or every topic]",
    ),
    "whitelist": ("REGEX", "The older name of --include, which wins."),
    "abort.on.send.failure": (
        "true|false",
        "When the target refuses a record: end with exit code 3 (true), or put"
        " it into the quarantine topic and go on (false).  [default: true]",
    ),
    "offset.commit.interval.ms": (
        "MS",
        "How often the group's positions are committed on the source.  [default: 60000]",
    ),
    "name": ("NAME", "Distinguishes legacy flows with the same target and the same group.id."),
    "message.handler": ("CLASS", "Refused: it would change records, and Java classes cannot run here."),
    "consumer.rebalance.listener": ("CLASS", "Refused likewise."),
    "message.handler.args": ("TEXT", "Without effect."),
    "rebalance.listener.args": ("TEXT", "Without effect."),
}
"""Options by name, each with its metavar and help. Their values are checked with the whole configuration."""

NOT_MEANT = frozenset({"message.handler", "consumer.rebalance.listener", "message.handler.args",
                       "rebalance.listener.args", "new.consumer"})  # fmt: skip
"""Options that are hidden: they exist so that a message can explain them."""


def legacy_options(*, hidden: bool = False) -> Callable[[F], F]:
    """Return a decorator that adds the options to a click command. `mm1_files` reads their parameters."""

    def decorate(command: F) -> F:
        command = click.option(
            "--new.consumer", "new_consumer", is_flag=True, hidden=True, help="Without effect, as in MirrorMaker 1."
        )(command)
        for name, (metavar, help_text) in reversed(_OPTIONS.items()):
            command = click.option(
                f"--{name}", _parameter(name), metavar=metavar, help=help_text, hidden=hidden or name in NOT_MEANT
            )(command)
        for name, side in ((PRODUCER, "target"), (CONSUMER, "source")):
            command = click.option(
                f"--{name}",
                _parameter(name),
                metavar="FILE",
                type=click.Path(path_type=Path),
                help=f"MirrorMaker 1's {name.partition('.')[0]}.properties: where the {side} is.",
                hidden=hidden,
            )(command)
        return command

    return decorate


def mm1_files(parameters: Mapping[str, Any]) -> "LegacyFiles | None":
    """Return MirrorMaker 1's files and options from a command's parameters; None if none is given.

    Raises:
        click.UsageError: One of the two files is missing.
    """
    consumer, producer = (parameters.get(_parameter(name)) for name in (CONSUMER, PRODUCER))
    options = {name: value for name in _OPTIONS if (value := parameters.get(_parameter(name))) is not None}
    if consumer is None and producer is None and not options:
        return None
    if consumer is None or producer is None:
        missing = CONSUMER if consumer is None else PRODUCER
        raise click.UsageError(f"Missing option '--{missing}': name MirrorMaker 1's file; it says where a cluster is.")
    from lockstep_config.loader.mm1_files import LegacyFiles  # slow to import, and not needed for --help

    return LegacyFiles(consumer, producer, options)


def legacy_arguments(files: "LegacyFiles") -> list[str]:
    """Return the arguments that pass the files and options on to another process."""
    arguments = [f"--{CONSUMER}={files.consumer.resolve()}", f"--{PRODUCER}={files.producer.resolve()}"]
    return arguments + [f"--{name}={value}" for name, value in files.options.items()]


def _parameter(name: str) -> str:
    return name.replace(".", "_")


PARAMETERS = tuple(_parameter(name) for name in (CONSUMER, PRODUCER, "new.consumer", *_OPTIONS))
"""The parameters that `legacy_options` adds to a command."""
