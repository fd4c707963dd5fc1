"""The flow by which applications had moved away, while they come back: it is resumed for a while, and rests again."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from lockstep_config import FlowSettings
from lockstep_ops.switch.diverged_records import DivergedRecords
from lockstep_ops.switch.failback_actions import ForwardFlow, undecided
from lockstep_ops.switch.followed_flow import OppositeFlow
from lockstep_ops.switch.switch_log import SwitchLog
from lockstep_ops.switch.switch_steps import Step
from lockstep_ops.switch.switcher import Switcher
from lockstep_ops.work_progress import WorkProgress
from lockstep_state.commands.command_vocabulary import FLOW, Scope
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.reasons.refusal_catalogue import RefusalCode
from lockstep_state.rows.state_rows import Switch
from tests.support.shared_topic import SharedTopic

ONE = {"topics": ("t", "u"), "opposite_paused": ("t",)}


class Commands:
    """In the place of both clusters: what the services of a flow are asked."""

    def __init__(self, *_given: object) -> None:
        self.asked: list[str] = []

    async def command(self, verb: str, scope: Scope = FLOW, **_arguments: object) -> None:
        self.asked.append(f"{verb} {scope}")

    async def command_each(self, verb: str, scopes: Iterable[Scope]) -> None:
        for scope in scopes:
            await self.command(verb, scope)


def row(was: str, **fields: Any) -> Switch:
    return Switch(id="x", verb="failback", diverged="copy", opposite_was=was, **fields)


@pytest.mark.parametrize(
    ("was", "fields", "asked"),
    [
        ("stopped", {}, [f"stop {FLOW}"]),
        ("paused", {}, [f"pause {FLOW}"]),
        ("running", {}, []),
        ("running", ONE, ["pause topic:t"]),
        ("running", {"topics": ("t",)}, []),
    ],
)
async def test_flow_is_paused_or_stopped_as_before_the_switch(
    settings: Callable[..., FlowSettings], monkeypatch: pytest.MonkeyPatch, was: str, fields: dict[str, Any], asked: Any
) -> None:
    commands: Any = Commands()
    log = SharedTopic(settings(), monkeypatch).log()
    flow = ForwardFlow(OppositeFlow(settings()), commands, log, ())
    await flow.rest(row(was, **fields))
    assert commands.asked == asked

    async def nothing() -> dict[Any, int]:
        return {}

    commands.asked.clear()
    monkeypatch.setattr(flow, "diverged", nothing)
    assert "has nothing" in await flow.settle(row(was, **fields), WorkProgress(""), 1.0)
    assert commands.asked == asked, "a command that ended half-way had resumed it"


@pytest.mark.parametrize(
    ("topics", "asked"), [((), [f"resume {FLOW}"]), (("t", "u"), ["resume topic:t", "resume topic:u"])]
)
async def test_way_back_resumes_what_the_switch_is_about(
    settings: Callable[..., FlowSettings], monkeypatch: pytest.MonkeyPatch, topics: tuple[str, ...], asked: list[str]
) -> None:
    log: SwitchLog = SharedTopic(settings(), monkeypatch).log()
    switcher = Switcher(log, OppositeFlow(settings()), WorkProgress(""), lambda _: None, 1.0)
    commands: Any = Commands()

    async def caught_up() -> str:
        return "up to date"

    monkeypatch.setattr(switcher, "_clusters", commands)
    monkeypatch.setattr(switcher._actions, "catch_up", caught_up)
    await switcher._perform(Step.RETURN, row("running", topics=topics))
    assert commands.asked == asked


COUNTS = {("t", 0): 5, ("t", 1): 15}


@pytest.mark.parametrize(
    ("diverged", "code", "number"),
    [
        (DivergedRecords(COUNTS), RefusalCode.DIVERGED, "has 20 records that"),
        (DivergedRecords(COUNTS, frozenset({("t", 0)})), RefusalCode.DIVERGED_AT_MOST, "has at most 20 records that"),
        (DivergedRecords({("t", 0): 1}), RefusalCode.DIVERGED, "has 1 record that"),
    ],
)
def test_undecided_records_are_counted_once(
    settings: Callable[..., FlowSettings], diverged: DivergedRecords, code: RefusalCode, number: str
) -> None:
    reason = undecided(settings(), diverged)
    sentence = format_sentence(reason)
    assert (reason.code, reason.detail("count")) == (code, diverged.total)
    assert number in sentence
    assert sentence.split(". Say")[0].count("record") == 1
