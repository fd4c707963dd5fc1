"""The options of a switch on the command line (no I/O)."""

from dataclasses import dataclass
from enum import StrEnum

from lockstep_ops.switch.switch_steps import Verb
from lockstep_state.rows.state_rows import Switch


class Allowance(StrEnum):
    """The names of what a command refuses unless it is allowed.

    Each has an option of its own, so that one can be allowed alone.
    """

    SOON = "soon"
    NOT_READY = "not-ready"
    LEFT_GROUPS = "left-groups"
    UNKNOWN_LOSS = "unknown-loss"
    STALE_GROUPS = "stale-groups"
    SOURCE_GONE = "source-gone"

    @property
    def option(self) -> str:
        """Return the option on the command line."""
        return f"--allow-{self}"

    @property
    def meaning(self) -> str:
        """Return what is allowed, in the words of the help text."""
        return _MEANINGS[self]

    @property
    def verbs(self) -> frozenset[Verb]:
        """Return the commands that take it."""
        return _VERBS.get(self, frozenset(Verb))


_VERBS = {
    Allowance.UNKNOWN_LOSS: frozenset({Verb.FAILOVER}),
    Allowance.STALE_GROUPS: frozenset({Verb.FAILOVER}),
    Allowance.SOURCE_GONE: frozenset({Verb.SWITCHOVER, Verb.FAILBACK}),
}
"""The commands of those that not every command takes."""

_MEANINGS = {
    Allowance.SOON: "Begin within ten minutes of the last switch between these clusters.",
    Allowance.NOT_READY: "Begin although the flow is not ready. A failover begins although the source answers, too.",
    Allowance.LEFT_GROUPS: "Go on without groups that cannot move. The evidence names them.",
    Allowance.UNKNOWN_LOSS: "Of a failover: go on although the loss of some partitions is not known.",
    Allowance.STALE_GROUPS: "Of a failover: go on although groups were read too long ago. Newer ones do not move, and "
    "those that went on read records again.",
    Allowance.SOURCE_GONE: "With --continue, from step stop on: end the switch although its source does not answer any "
    "more. With --abort: leave the opposite flow as it is.",
}


def allows(row: Switch, allowance: Allowance) -> bool:
    """Return whether a switch may do that. `force` is of rows of earlier releases, and allowed everything."""
    return row.force or allowance in row.allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchOptions:
    """The options of a switch. `within_s` are the seconds that each step may wait."""

    verb: Verb
    id: str = ""
    """The switch to continue, abort or show. "": the last one."""
    topics: tuple[str, ...] = ()
    """Source topics. (): all that are mirrored."""
    cutoff_ms: int = 0
    drill: bool = False
    rewind_groups: bool = False
    diverged: str = ""
    allowed_loss: int = -1
    allows: frozenset[Allowance] = frozenset()
    within_s: float = 300.0
    by: str = ""
    """The name of the person who asks."""
