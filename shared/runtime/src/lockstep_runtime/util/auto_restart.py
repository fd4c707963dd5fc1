"""Limits of automatic restarts (`lockstep.auto.restart.*`, Strimzi's `autoRestart`).

Failures count while they follow one another: a start that then works for `WORKS_AFTER` seconds resets the count.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from lockstep_config.flow.connector_settings import AutoRestart, AutoRestarts
from lockstep_state.commands.command_vocabulary import Connector
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.rows.state_rows import Restarts

WORKS_AFTER = 600.0
"""Seconds of work after which a start counts as successful.

It is longer than the longest pause, and ten minutes as in MM2's own refresh.
"""

FAILED, RUNNING = "failed", "running"


def auto_restart_for(connector: Connector, settings: AutoRestarts) -> AutoRestart:
    """Return the limits of a connector, which hold for each of its slots too."""
    return {Connector.CHECKPOINT: settings.checkpoint, Connector.HEARTBEAT: settings.heartbeat}.get(
        connector, settings.source
    )


def is_unlimited(allowed: AutoRestart) -> bool:
    """Return whether nothing has to be counted."""
    return allowed.enabled and allowed.max_restarts is None


def count_failure(
    row: Restarts, allowed: AutoRestart, worked_s: float, cause: Reason, requested: tuple[str, ...]
) -> Restarts:
    """Return the row after one more failure.

    Args:
        row: The row so far.
        allowed: The limits.
        worked_s: Seconds for which the start had worked.
        cause: The reason of the failure.
        requested: The ids of restart commands by now (`DesiredStateView.restarts`).
    """
    failures = 1 + (row.count if worked_s < WORKS_AFTER and row.asked == requested else 0)
    limit = allowed.max_restarts if allowed.enabled else 0
    spent = limit is not None and failures > limit
    phase = FAILED if spent else RUNNING
    return replace(row, count=failures, phase=phase, cause=cause if spent else NO_REASON, asked=requested)


async def record_failure(
    write: Callable[[Restarts], Awaitable[object]],
    row: Restarts,
    allowed: AutoRestart,
    worked_s: float,
    cause: Reason,
    requested: tuple[str, ...],
) -> Restarts | None:
    """Write the row after one more failure, and return it if that was the last one that is allowed, otherwise None.

    `write` appends the row to the state topic. The other arguments are those of `count_failure`.
    """
    if is_unlimited(allowed):
        return None
    failed = count_failure(row, allowed, worked_s, cause, requested)
    await write(failed)
    return failed if is_spent(failed, requested) else None


def reset_count(row: Restarts, requested: tuple[str, ...]) -> Restarts:
    """Return the row of a start that an operator has asked for."""
    return replace(row, count=0, phase=RUNNING, cause=NO_REASON, asked=requested)


def is_spent(row: Restarts, requested: tuple[str, ...]) -> bool:
    """Return whether nothing is started before an operator asks for it."""
    return row.phase == FAILED and row.asked == requested
