"""What the body of a request for a switch, or for a verification, means, and what is refused."""

from typing import Any

import pytest

from lockstep_console.access import BY_TOKEN, Session
from lockstep_console.api.commands import acting_user
from lockstep_console.api.switches import switch_options
from lockstep_console.api.verifications import verify_arguments
from lockstep_console.route import RequestRefused
from lockstep_ops.switch.switch_options import Allowance
from lockstep_ops.switch.switch_steps import Verb


def test_body_becomes_the_options_of_the_command_line() -> None:
    body = {
        "verb": "failover",
        "topics": ["orders"],
        "allow": ["unknown-loss"],
        "allowed_loss": 0,
        "rewind_groups": True,
        "drill": True,
    }
    options = switch_options(body, "alice", 5)
    assert (options.verb, options.topics, options.by) == (Verb.FAILOVER, ("orders",), "alice")
    assert (options.allowed_loss, options.allows) == (0, frozenset({Allowance.UNKNOWN_LOSS}))
    assert (options.rewind_groups, options.drill, options.cutoff_ms) == (True, True, 0)


@pytest.mark.parametrize(
    ("cutoff", "at_ms"),
    [("", 0), ("now", 7), ("1700000000000", 1_700_000_000_000), ("2026-01-31T12:00:00Z", 1769860800000)],
)
def test_cutoff_is_a_time(cutoff: str, at_ms: int) -> None:
    assert switch_options({"verb": "switchover", "cutoff": cutoff}, "", 7).cutoff_ms == at_ms


@pytest.mark.parametrize(
    "body",
    [
        {"verb": "failover", "allowed_loss": 2**63},
        {"verb": "switchover", "cutoff": "99999999999999999999999"},
        {"verb": "switchover", "cutoff": "9999-12-31T23:59:59-23:59"},
    ],
)
def test_number_beyond_what_rows_have_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(RequestRefused):
        switch_options(body, "", 7)
    with pytest.raises(RequestRefused, match="64 bits"):
        verify_arguments({"max_bytes_per_s": 2**63}, "bytes")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({}, "verb is one of switchover, failover, failback"),
        ({"verb": "pause"}, "verb is one of"),
        ({"verb": "failover", "cutoff": "now"}, "Cutoff needs the source"),
        ({"verb": "switchover", "allowed_loss": 1}, "for a failover only"),
        ({"verb": "switchover", "allow": ["stale-groups"]}, "for a failover only"),
        ({"verb": "switchover", "allow": ["all"]}, "'all' is none"),
        ({"verb": "switchover", "diverged": "copy"}, "for a failback only"),
        ({"verb": "failback", "diverged": "leave", "topics": ["t"]}, "leave out topics"),
        ({"verb": "switchover", "topics": "orders"}, "topics in the body is no list"),
        ({"verb": "switchover", "topics": [1]}, "no list of texts"),
        ({"verb": "switchover", "drill": "yes"}, "drill in the body is no bool"),
        ({"verb": "failover", "allowed_loss": True}, "allowed_loss in the body is no int"),
        ({"verb": "switchover", "cutoff": "tomorrow"}, "Cutoff tomorrow"),
    ],
)
def test_options_that_do_not_fit_are_refused(body: dict[str, Any], text: str) -> None:
    with pytest.raises(RequestRefused, match=text):
        switch_options(body, "alice", 5)


def test_verification_has_the_depth_of_the_file_unless_it_names_one() -> None:
    assert verify_arguments({}, "crc") == {"depth": "crc", "topics": [], "max_bytes_per_s": 0, "again": False}
    assert verify_arguments({"depth": "record", "topics": ["o.*"], "again": True}, "crc")["depth"] == "record"


@pytest.mark.parametrize("body", [{"depth": "deep"}, {"max_bytes_per_s": -1}, {"topics": [""]}, {"again": 1}])
def test_verification_that_does_not_fit_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(RequestRefused):
        verify_arguments(body, "bytes")


def test_who_acts_with_the_token_is_called_so() -> None:
    assert acting_user(Session(BY_TOKEN, may_read=True, may_act=True)) == "console token"
    assert acting_user(Session("alice", may_read=True, may_act=True)) == "alice"
