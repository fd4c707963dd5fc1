"""Checks of missing rights. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Protocol

from lockstep_ops.doctor.checks import registry
from lockstep_ops.doctor.checks.check import CheckFinding


class MissingRight(Protocol):
    """A right that is missing, and the command that grants it."""

    @property
    def lacks(self) -> str:
        """The sentence about it."""

    @property
    def command(self) -> str:
        """The `kafka-acls` command."""


def judge_rights(flow: str, alias: str, missing: Iterable[MissingRight]) -> Iterator[CheckFinding]:
    """Yield one finding for each command that grants missing rights.

    Rights that one command grants are in one finding.
    """
    by_command: defaultdict[str, list[str]] = defaultdict(list)
    for remedy in missing:
        by_command[remedy.command].append(remedy.lacks)
    for command, lacks in by_command.items():
        more = f", and {len(lacks) - 1} more that the same command grants" if len(lacks) > 1 else ""
        yield registry.RIGHTS.failed(flow, f"{alias}: {lacks[0]}{more}", command)
