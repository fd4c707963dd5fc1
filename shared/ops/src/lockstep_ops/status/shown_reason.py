"""A reason as programs read it (no I/O, no clock)."""

from typing import Any

from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import format_sentence


def reason_as_json(reason: Reason) -> dict[str, Any]:
    """Return the code, the values of its sentence, and the sentence."""
    return {**reason.to_json(), "text": format_sentence(reason)}
