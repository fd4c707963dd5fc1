"""Heartbeat records and the interval of a flow."""

from lockstep_heartbeat.heartbeat_record import make_heartbeat, make_pulse
from lockstep_state.codecs.mm2_codec import encode_heartbeat
from lockstep_state.names import Flow
from tests.support.reasons import reported

FLOW = Flow("A", "B")


def test_mm2_080_a_heartbeat_is_mm2s_to_the_byte() -> None:
    key, value = encode_heartbeat(make_heartbeat(FLOW, 1234567890))
    assert (key.hex(), value.hex()) == ("000141000142", "000000000000499602d2")


def test_the_pulse_is_written_when_its_phase_changes_and_only_then() -> None:
    beating = make_pulse(FLOW, None, None)
    assert beating is not None
    assert (beating.key(), beating.phase, beating.reason) == ("flow/A->B", "beating", "")
    assert make_pulse(FLOW, beating, None) is None
    failing = make_pulse(FLOW, beating, reported("not permitted"))
    assert failing is not None
    assert (failing.phase, failing.reason) == ("failing", "not permitted")
    assert make_pulse(FLOW, failing, reported("another reason")) is None
    assert make_pulse(FLOW, failing, None) == beating
    first = make_pulse(FLOW, None, reported("away"))
    assert first is not None
    assert first.phase == "failing"
