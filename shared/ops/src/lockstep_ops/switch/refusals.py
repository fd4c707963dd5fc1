"""Shows what speaks against a switch: a code for programs, and its sentence for people (no I/O, no clock)."""

from typing import Any, TypeAlias

from lockstep_ops.status.shown_reason import reason_as_json
from lockstep_ops.switch.switch_check import refusal
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.reasons.switch_reason import Blocker

Refusal: TypeAlias = Reason | Blocker
"""A reason of the command itself, or something that prevents a switch at any time."""


def format_refusal(one: Refusal) -> str:
    """Return the sentence that people read."""
    return refusal(one) if isinstance(one, Blocker) else format_sentence(one)


def refusal_as_json(one: Refusal) -> dict[str, Any]:
    """Return a refusal as JSON values: the code, its values, and the sentence."""
    if isinstance(one, Reason):
        return reason_as_json(one)
    body = {"code": one.reason.word, "details": dict(one.details), "text": refusal(one)}
    return {**body, "subject": one.subject, "cause": one.cause.to_json()}
