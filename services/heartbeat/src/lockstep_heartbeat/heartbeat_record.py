"""The record of a flow's heartbeat, and the row of its state. Pure."""

from lockstep_state.codecs.mm2_codec import Heartbeat
from lockstep_state.names import Flow
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.rows.state_rows import FlowPulse

BEATING = "beating"
FAILING = "failing"


def make_heartbeat(flow: Flow, now_ms: int) -> Heartbeat:
    """Return the heartbeat of `flow` at `now_ms`, which is its record timestamp too (`mm2-behaviour.md` §1.5)."""
    return Heartbeat(flow.source, flow.target, now_ms)


def make_pulse(flow: Flow, row: FlowPulse | None, failure: Reason | None) -> FlowPulse | None:
    """Return the row to write after a heartbeat was acknowledged or failed; None while the phase stays."""
    phase = BEATING if failure is None else FAILING
    if row is not None and row.phase == phase:
        return None
    return FlowPulse(source=flow.source, target=flow.target, phase=phase, cause=failure or NO_REASON)
