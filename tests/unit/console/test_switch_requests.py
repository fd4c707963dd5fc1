"""What the body of a request for a switch, or for a verification, means, and what is refused."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import ClientSession

from lockstep_cli.commands.switch import COMMANDS
from lockstep_config import FlowSettings
from lockstep_console.access import BY_TOKEN, Session
from lockstep_console.actions.command_outcome import CommandOutcome
from lockstep_console.actions.switch_runner import SwitchRunner
from lockstep_console.api.commands import acting_user
from lockstep_console.api.switches import switch_options
from lockstep_console.api.verifications import verify_arguments
from lockstep_console.flow_watch import FlowWatch
from lockstep_console.flow_watches import FlowWatches
from lockstep_console.route import RequestRefused
from lockstep_kafka.topics.topic_reader import Record
from lockstep_ops.switch.switch_options import Allowance, SwitchOptions
from lockstep_ops.switch.switch_steps import Verb
from lockstep_runtime.http.access import AccessPolicy
from lockstep_state.rows.state_rows import Switch
from tests.support.flow_file import file, settings
from tests.support.idle_console import idle_console, served
from tests.support.pages import got

__all__ = ["file", "settings"]


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
        ({"verb": "failover", "allow": ["source-gone"]}, "Source-gone is for a switchover and a failback only"),
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


@pytest.mark.parametrize("allowance", Allowance)
def test_command_line_and_console_take_the_same_allowances(allowance: Allowance) -> None:
    commands = {command.name: {name for option in command.params for name in option.opts} for command in COMMANDS}
    assert {name for name, options in commands.items() if allowance.option in options} == allowance.verbs
    for verb in Verb:
        body = {"verb": str(verb), "allow": [str(allowance)]}
        if verb in allowance.verbs:
            assert switch_options(body, "", 5).allows == {allowance}
        else:
            with pytest.raises(RequestRefused, match=f"{allowance}".capitalize()):
                switch_options(body, "", 5)


async def test_allowances_have_the_words_of_the_command_line() -> None:
    async with served(idle_console(FlowWatches([]))) as address:
        status, text = await got(address, "/api/v1/switch-allowances")
    shown = {each["name"]: each for each in json.loads(text)["allowances"]}
    helps = {
        option.opts[0]: option.help for command in COMMANDS for option in command.params if hasattr(option, "help")
    }
    assert status == 200
    assert {each["meaning"] for each in shown.values()} == {helps[each.option] for each in Allowance}
    assert shown["source-gone"]["verbs"] == ["switchover", "failback"]


@pytest.mark.parametrize("act", ["continue", "abort"])
async def test_switch_under_way_is_allowed_to_do_without_its_source(
    settings: Callable[..., FlowSettings], monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    watches = FlowWatches([settings()])
    row = Switch(id="x", verb="switchover", phase="running", operator="o")
    watches.all[0].rows.apply([Record("state", 0, 1, *row.encode(), 7)])
    console = idle_console(watches, AccessPolicy(token="secret"))
    asked: list[SwitchOptions] = []

    def take(_: SwitchRunner, watch: FlowWatch, row: Switch, options: SwitchOptions) -> CommandOutcome:
        asked.append(options)
        return CommandOutcome(id="1", flow=watch.name, verb=row.verb, subject="flow", by="", at_ms=1)

    monkeypatch.setattr(SwitchRunner, "go_on" if act == "continue" else "abort", take)
    acts = {"Authorization": "Bearer secret", "Content-Type": "application/json", "X-Lockstep-Request": "1"}
    async with served(console) as address, ClientSession(address, headers=acts) as client:
        path = f"/api/v1/flows/{quote('A->B', safe='')}/switches/x/{act}"
        answer = await client.post(path, json={"allow": ["source-gone"]})
        assert answer.status == 202, await answer.text()
        assert (await client.post(path, json={"allow": ["stale-groups"]})).status == 400
    assert [options.allows for options in asked] == [{Allowance.SOURCE_GONE}]


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
