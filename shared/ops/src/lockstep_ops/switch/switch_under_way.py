"""The switch that `--continue`, `--abort` and `--status` are about (no I/O, no clock).

It is of the command's own verb, and has the id that is named.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from lockstep_ops.switch.refusals import Refusal, format_refusal
from lockstep_ops.switch.switch_options import SwitchOptions
from lockstep_ops.switch.switch_steps import UNDER_WAY, find_abort_refusal
from lockstep_state.names import Flow
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.refusal_catalogue import RefusalCode
from lockstep_state.rows.state_rows import Switch

TAKEN_UP_AFTER_S = 15.0
"""The seconds without a sign of life after which the console that carries a switch out counts as dead."""


class SwitchRefused(Exception):
    """The switch may not begin, continue or be aborted, and nothing was changed.

    Args:
        reasons: Codes of what speaks against it.
        may_end_soon: The reasons can be over in some seconds.
    """

    def __init__(self, reasons: Sequence[Refusal], *, may_end_soon: bool = False) -> None:
        super().__init__("; ".join(map(format_refusal, reasons)))
        self.reasons = tuple(reasons)
        self.may_end_soon = may_end_soon


def switch_to_continue(row: Switch | None, flow: Flow, options: SwitchOptions) -> Switch:
    """Return the row of the switch to continue, with what the command line allows beyond it.

    Args:
        row: The last switch by the flow.
        flow: The flow.
        options: The command line.

    Raises:
        SwitchRefused: The switch cannot be continued.
    """
    row = _named(row, flow, options, "continue")
    if row.phase == "aborting":
        raise SwitchRefused([RefusalCode.SWITCH_ABORTING.to_reason(flow=str(flow), verb=row.verb)])
    if row.phase != "running":
        raise SwitchRefused([RefusalCode.SWITCH_ENDED.to_reason(flow=str(flow), act="continue", **_last(row))])
    return replace(
        row,
        allowed_loss=max(row.allowed_loss, options.allowed_loss),
        allowed=_allowed(row, options),
        diverged=options.diverged or row.diverged,
        rewind_groups=row.rewind_groups or options.rewind_groups,
    )


def has_ended(row: Switch | None, options: SwitchOptions) -> bool:
    """Return whether the switch that the command line names by its id is done.

    Its own command, or another one, has ended it.
    """
    return row is not None and bool(options.id) and (row.id, row.verb, row.phase) == (options.id, options.verb, "done")


def switch_to_abort(row: Switch | None, flow: Flow, options: SwitchOptions) -> Switch:
    """Return the row of the switch to abort, with what the command line allows beyond it.

    Raises:
        SwitchRefused: The switch cannot be aborted.
    """
    row = _named(row, flow, options, "abort")
    if refusal := find_abort_refusal(row, flow):
        raise SwitchRefused([refusal])
    return replace(row, allowed=_allowed(row, options))


def _allowed(row: Switch, options: SwitchOptions) -> tuple[str, ...]:
    return tuple(sorted({*row.allowed, *options.allows}))


def switch_to_show(row: Switch | None, flow: Flow, options: SwitchOptions) -> Switch:
    """Return the row that `--status` shows: the switch with the named id, else the last one of any verb.

    Raises:
        SwitchRefused: There is no switch, or not with this id.
    """
    if row is None:
        raise SwitchRefused([RefusalCode.NO_SWITCH.to_reason(flow=str(flow))])
    if options.id and row.id != options.id:
        details = {"flow": str(flow), "asked": options.id, **_last(row)}
        raise SwitchRefused([RefusalCode.SWITCH_OF_ANOTHER_ID.to_reason(**details)])
    return row


def under_way_refusal(row: Switch) -> Reason:
    """Return the refusal because another switch is under way."""
    return RefusalCode.SWITCH_UNDER_WAY.to_reason(verb=row.verb, id=row.id)


def _named(row: Switch | None, flow: Flow, options: SwitchOptions, verb: str) -> Switch:
    """Return the row if it is of the verb and the id that the command names.

    Raises:
        SwitchRefused: It is not.
    """
    if row is None:
        raise SwitchRefused([RefusalCode.NO_SWITCH_TO.to_reason(flow=str(flow), act=verb)])
    if options.id and row.id != options.id:
        details = {"flow": str(flow), "act": verb, "asked": options.id, **_last(row)}
        raise SwitchRefused([RefusalCode.SWITCH_NOT_BEGUN.to_reason(**details)])
    if row.verb != options.verb:
        advice = f". Say lockstep {row.verb} --{verb}" if row.phase in UNDER_WAY else ""
        details = {"flow": str(flow), "act": verb, "asked": str(options.verb), "advice": advice, **_last(row)}
        raise SwitchRefused([RefusalCode.SWITCH_OF_ANOTHER_VERB.to_reason(**details)])
    return row


def _last(row: Switch) -> dict[str, str]:
    """Return the last switch with its id, its phase and its time, as details."""
    at_ms = row.ended_ms or row.began_ms
    moment = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds")
    word = "under way" if row.phase in UNDER_WAY else row.phase
    return {"verb": row.verb, "id": row.id, "phase": word, "since": moment}


def is_same_row(row: Switch, seen: Switch) -> bool:
    """Return whether the row is the one that was seen: nobody has written another one since."""
    return (row.id, row.operator, row.at_ms) == (seen.id, seen.operator, seen.at_ms)


def is_in_console(row: Switch | None) -> bool:
    """Return whether a console carries the switch out, so that another one takes it up if that one falls silent.

    The switch of a terminal is never taken up unasked, nor one whose step has failed.
    """
    return row is not None and row.phase in UNDER_WAY and row.console != ""
