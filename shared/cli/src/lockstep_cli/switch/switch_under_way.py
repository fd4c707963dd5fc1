"""The switch that `--continue`, `--abort` and `--status` are about: of the command's own verb, and of the id that is
named (no I/O, no clock)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from lockstep_cli.switch.switch_options import SwitchOptions
from lockstep_cli.switch.switch_steps import UNDER_WAY, cannot_abort
from lockstep_protocol.names import Flow
from lockstep_protocol.rows.state_rows import Switch


class SwitchRefused(Exception):
    """The switch may not begin, continue or be aborted, and nothing was changed. `reasons` are sentences. `may_pass`:
    they can be over in some seconds."""

    def __init__(self, reasons: Sequence[str], *, may_pass: bool = False) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = tuple(reasons)
        self.may_pass = may_pass


def continued(row: Switch | None, flow: Flow, options: SwitchOptions) -> Switch:
    """Return the row of the switch that is to go on, with what the command line allows beyond it. `row`: the last
    switch by the flow. Raises SwitchRefused."""
    row = _named(row, flow, options, "continue")
    if row.phase == "aborting":
        raise SwitchRefused([f"{flow}: the {row.verb} is being taken back: --abort goes on with that"])
    if row.phase != "running":
        raise SwitchRefused([f"{flow}: there is nothing to continue: {_last(row)}"])
    return replace(
        row,
        allowed_loss=max(row.allowed_loss, options.allowed_loss),
        allowed=tuple(sorted({*row.allowed, *options.allows})),
        diverged=options.diverged or row.diverged,
        rewind_groups=row.rewind_groups or options.rewind_groups,
    )


def has_ended(row: Switch | None, options: SwitchOptions) -> bool:
    """Return whether the switch that the command line names by its id is done. Its own command, or another one, has
    ended it."""
    return row is not None and bool(options.id) and (row.id, row.verb, row.phase) == (options.id, options.verb, "done")


def aborted(row: Switch | None, flow: Flow, options: SwitchOptions) -> Switch:
    """Return the row of the switch that is to be taken back. Raises SwitchRefused where it cannot be."""
    row = _named(row, flow, options, "abort")
    if refusal := cannot_abort(row):
        raise SwitchRefused([f"{flow}: {refusal}"])
    return row


def shown(row: Switch | None, flow: Flow, options: SwitchOptions) -> Switch:
    """Return the row that `--status` shows: the switch with the id that is named, else the last one of any verb.
    Raises SwitchRefused."""
    if row is None:
        raise SwitchRefused([f"{flow}: no switch has begun"])
    if options.id and row.id != options.id:
        raise SwitchRefused([f"{flow}: the last switch is not {options.id}: {_last(row)}"])
    return row


def running(row: Switch) -> str:
    """Return that a switch is under way, as a sentence."""
    return (
        f"a {row.verb} is under way ({row.id}): see it with lockstep {row.verb} --status, go on with --continue, or "
        "take it back with --abort"
    )


def _named(row: Switch | None, flow: Flow, options: SwitchOptions, verb: str) -> Switch:
    """Return the row if it is of the verb and the id that the command names. Raises SwitchRefused."""
    if row is None:
        raise SwitchRefused([f"{flow}: there is nothing to {verb}: no switch has begun"])
    if options.id and row.id != options.id:
        raise SwitchRefused([f"{flow}: there is nothing to {verb}: {options.id} has not begun. {_last(row, True)}"])
    if row.verb != options.verb:
        text = f"{flow}: there is no {options.verb} to {verb}: {_last(row)}"
        if row.phase in UNDER_WAY:
            text += f". Say lockstep {row.verb} --{verb}"
        raise SwitchRefused([text])
    return row


def _last(row: Switch, begins: bool = False) -> str:
    """Return the last switch with its id, its phase and its time, as (the end of) a sentence."""
    at_ms = row.ended_ms or row.began_ms
    moment = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds")
    word = "under way" if row.phase in UNDER_WAY else row.phase
    return f"{'The' if begins else 'the'} last switch is the {row.verb} {row.id}, {word} since {moment}"
