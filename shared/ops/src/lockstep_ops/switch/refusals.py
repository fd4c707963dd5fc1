"""Shows what speaks against a switch: a code for programs, and its sentence for people (no I/O, no clock)."""

from collections.abc import Iterable
from typing import Any, TypeAlias

from lockstep_ops.formatting import utc_moment
from lockstep_ops.status.shown_reason import reason_as_json
from lockstep_ops.switch.switch_check import allowance_for
from lockstep_ops.switch.switch_options import Allowance
from lockstep_rules.switch.switch_sentences import format_blocker
from lockstep_state.names import Flow
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.reasons.switch_reason import Blocker
from lockstep_state.rows.state_rows import Switch

Refusal: TypeAlias = Reason | Blocker
"""A reason of the command itself, or something that prevents a switch at any time."""


def format_refusal(refusal: Refusal) -> str:
    """Return the sentence that people read. That of a blocker names its option, if it has one of its own."""
    if isinstance(refusal, Reason):
        return format_sentence(refusal)
    allowance = allowance_for(refusal)
    option = "" if allowance is Allowance.NOT_READY else f". Say {allowance.option} to go on all the same"
    return f"{format_blocker(refusal)} ({refusal.reason.word}){option}"


def refusal_as_json(refusal: Refusal) -> dict[str, Any]:
    """Return a refusal as JSON values: the code, its values, and the sentence."""
    if isinstance(refusal, Reason):
        return reason_as_json(refusal)
    body = {"code": refusal.reason.word, "details": dict(refusal.details), "text": format_refusal(refusal)}
    return {**body, "subject": refusal.subject, "cause": refusal.cause.to_json()}


def refusals_as_json(flow: Flow, verb: str, refusals: Iterable[Refusal], row: Switch | None) -> dict[str, Any]:
    """Return the refusals of a switch as JSON values.

    With `row`, the planned switch, they have the times up to which records and groups of the source are known.
    """
    body: dict[str, Any] = {
        "flow": str(flow),
        "verb": str(verb),
        "refusals": [refusal_as_json(refusal) for refusal in refusals],
    }
    if row is not None:
        body["source_known_until"] = utc_moment(row.source_known_ms) if row.source_known_ms else None
        body["groups_known_until"] = utc_moment(row.groups_known_ms) if row.groups_known_ms else None
    return body
