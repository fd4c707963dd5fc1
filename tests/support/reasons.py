"""Reasons for tests."""

from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode


def reported(text: str) -> Reason:
    """Return what a cluster or a service said."""
    return ReasonCode.REPORTED.to_reason(text=text)
