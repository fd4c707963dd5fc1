"""Refusals of a switch have a code beside their text, for programs."""

from lockstep_ops.switch.refusals import format_refusal, refusal_as_json
from lockstep_ops.switch.switch_under_way import SwitchRefused
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.reasons.refusal_catalogue import RefusalCode
from lockstep_state.reasons.switch_reason import Blocker, SwitchReason

SOON = RefusalCode.SWITCH_TOO_SOON.to_reason(ago_s=7)
BEHIND = Blocker.with_details(
    SwitchReason.SERVICE_FAILING, "checkpoint", {"phase": "failed"}, cause=ReasonCode.NO_REPLICA.to_reason()
)


def test_refusal_of_a_reason_as_json_has_code_details_and_text() -> None:
    assert refusal_as_json(SOON) == {
        "code": "switch-too-soon",
        "details": {"ago_s": 7},
        "text": "a switch ended 7 s ago, and a second one within ten minutes is refused without --allow-soon",
    }


def test_refusal_of_a_blocker_as_json_has_code_subject_and_cause() -> None:
    body = refusal_as_json(BEHIND)
    assert (body["code"], body["subject"], body["cause"]["code"]) == ("service-failing", "checkpoint", "no-replica")
    assert body["details"] == {"phase": "failed"}
    assert body["text"] == format_refusal(BEHIND)
    assert "(service-failing)" in body["text"]


def test_switch_refused_keeps_codes_and_shows_sentences() -> None:
    refused = SwitchRefused([SOON, BEHIND])
    assert refused.reasons == (SOON, BEHIND)
    assert str(refused) == f"{format_refusal(SOON)}; {format_refusal(BEHIND)}"
