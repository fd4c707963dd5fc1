"""Shows what speaks against a switch: a code for programs, and its sentence for people (no I/O, no clock)."""

from typing import Any, TypeAlias

from lockstep_ops.status.shown_reason import reason_as_json
from lockstep_ops.switch.switch_check import allowance_for
from lockstep_ops.switch.switch_options import Allowance
from lockstep_rules.switch.switch_sentences import format_blocker
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.reasons.switch_reason import Blocker

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
