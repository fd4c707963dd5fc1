"""Reasons for tests."""

from lockstep_protocol.reason import Reason
from lockstep_protocol.reason_catalogue import ReasonCode


def reported(text: str) -> Reason:
    """Return what a cluster or a service said."""
    return ReasonCode.REPORTED.to_reason(text=text)
