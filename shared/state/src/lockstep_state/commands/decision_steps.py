"""The commands of which a decision about a halted partition consists, by their ids. Pure.

A decision stops the source connector, alters an offset, and lets the connector be as it was. The id of each command is
that of the decision, a dot, and its step: `ID.stop-running`. The row of the connector's desired state keeps the id of
the command that has stopped it, so an unfinished decision is found by that row alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from lockstep_state.commands.command_vocabulary import PAUSE, RESUME, Connector, Scope
from lockstep_state.rows.row import Row
from lockstep_state.rows.state_rows import DesiredState

SOURCE = Scope.for_connector(Connector.SOURCE)
"""The scope that a decision stops."""

SOURCE_KEY = DesiredState.key_of(str(SOURCE))
"""The key of the row of its desired state."""

ALTER = "alter"
TAKEN_UP = "taken-up"
"""The step that finishes a decision whose console has ended. Every console gives it the same id: it is done once."""

_STOP = "stop-"

VERB_BACK: Mapping[str, str] = {"running": RESUME, "paused": PAUSE}
"""The verb that lets the connector be as it was, by its phase before the decision."""


@dataclass(frozen=True, slots=True)
class UnfinishedDecision:
    """A decision for which the source connector is stopped now: its id, the phase before it, and since when."""

    id: str
    before: str
    since_ms: int

    @property
    def verb_back(self) -> str:
        """Return the verb that lets the connector be as it was before."""
        return VERB_BACK[self.before]


def step_id(decision: str, step: str) -> str:
    """Return the id of one of the commands that something consists of."""
    return f"{decision}.{step}"


def stop_step(before: str) -> str:
    """Return the step that stops a connector, which was `before`."""
    return f"{_STOP}{before}"


def find_unfinished(rows: Mapping[str, Row]) -> UnfinishedDecision | None:
    """Return the decision for which the source connector is stopped, or None if an operator or nobody has stopped it.

    Args:
        rows: The rows by key.
    """
    return unfinished_in(rows.get(SOURCE_KEY))


def unfinished_in(row: Row | None) -> UnfinishedDecision | None:
    """Return the same from the row of the source connector's desired state, if there is one."""
    if not isinstance(row, DesiredState) or row.phase != "stopped":
        return None
    identity, _, step = row.command.partition(".")
    before = step.removeprefix(_STOP)
    if step == before or before not in VERB_BACK:
        return None
    return UnfinishedDecision(identity, before, row.at_ms)
