"""The name of the topic that `lockstep doctor --bandwidth` writes to, and which of them a killed run left. Pure."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lockstep_state.names import LOCKSTEP_PREFIX

PREFIX = f"{LOCKSTEP_PREFIX}doctor."
"""The prefix of scratch topics, which no flow mirrors."""

OLD_MS = 60_000
"""A run needs a few seconds. Of another host's run only the age is known, and clocks differ."""

_NAME = re.compile(rf"{re.escape(PREFIX)}(?P<host>[A-Za-z0-9_-]+)\.(?P<pid>\d+)\.(?P<at_ms>\d+)\.internal")
_UNFIT = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class ScratchRun:
    """The run that a scratch topic belongs to: its host, its process, and when it began in Unix milliseconds."""

    host: str
    pid: int
    at_ms: int

    @property
    def topic(self) -> str:
        """Return the name of the scratch topic of this run."""
        return f"{PREFIX}{_UNFIT.sub('-', self.host)[:64] or 'host'}.{self.pid}.{self.at_ms}.internal"


def leftover_topics(names: Iterable[str], own: ScratchRun, is_alive: Callable[[int], bool]) -> tuple[str, ...]:
    """Return the scratch topics whose run is over.

    A run is over if its process has ended on this host, or if it began more than a minute ago.

    Args:
        names: Topics of the cluster.
        own: The present run.
        is_alive: It tells whether a process of this host, by its id, runs.
    """
    host = own.topic.removeprefix(PREFIX).partition(".")[0]
    leftovers = []
    for name in names:
        match = _NAME.fullmatch(name)
        if match is None:
            continue
        has_ended = match["host"] == host and not is_alive(int(match["pid"]))
        if has_ended or abs(own.at_ms - int(match["at_ms"])) > OLD_MS:
            leftovers.append(name)
    return tuple(sorted(leftovers))
