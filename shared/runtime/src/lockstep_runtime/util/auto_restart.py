"""How often what failed is started again (`lockstep.auto.restart.*`, Strimzi's `autoRestart`). Pure.

Failures count while they follow one another: a start that then works for `WORKS_AFTER` seconds begins anew at none.
"""

from dataclasses import replace

from lockstep_config.flow.connector_settings import AutoRestart, AutoRestarts
from lockstep_state.commands.command_vocabulary import Connector
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.rows.state_rows import Restarts

WORKS_AFTER = 600.0
"""Seconds after which a start counts as one that worked: longer than the longest back-off, ten minutes as in MM2's
own refresh."""

FAILED, RUNNING = "failed", "running"


def auto_restart_for(connector: Connector, settings: AutoRestarts) -> AutoRestart:
    """What holds for a connector, and for each of its slots."""
    return {Connector.CHECKPOINT: settings.checkpoint, Connector.HEARTBEAT: settings.heartbeat}.get(
        connector, settings.source
    )


def is_unlimited(allowed: AutoRestart) -> bool:
    """Whether nothing has to be counted."""
    return allowed.enabled and allowed.max_restarts is None


def count_failure(
    known: Restarts, allowed: AutoRestart, worked_s: float, cause: Reason, asked: tuple[str, ...]
) -> Restarts:
    """The row after one more failure, of a start that had worked for `worked_s` seconds. `asked`: the restarts asked
    for by now (`DesiredStateView.restarts`)."""
    failures = 1 + (known.count if worked_s < WORKS_AFTER and known.asked == asked else 0)
    limit = allowed.max_restarts if allowed.enabled else 0
    spent = limit is not None and failures > limit
    phase = FAILED if spent else RUNNING
    return replace(known, count=failures, phase=phase, cause=cause if spent else NO_REASON, asked=asked)


def reset_count(known: Restarts, asked: tuple[str, ...]) -> Restarts:
    """The row when it begins because somebody asked."""
    return replace(known, count=0, phase=RUNNING, cause=NO_REASON, asked=asked)


def is_spent(row: Restarts, asked: tuple[str, ...]) -> bool:
    """Whether nothing is started before somebody asks for it."""
    return row.phase == FAILED and row.asked == asked
