"""What any console says of a switch by its id, and that an unknown one ends no watch over silent consoles."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from lockstep_config import FlowSettings
from lockstep_console.actions import switch_runner
from lockstep_console.actions.command_outcome import DONE, RUNNING, UNFINISHED
from lockstep_console.actions.switch_runner import SwitchRunner, switch_outcome
from lockstep_console.flow_watches import FlowWatches
from lockstep_kafka.topics.topic_reader import Record
from lockstep_state.rows.state_rows import Switch
from tests.support.flow_file import file, settings
from tests.support.idle_console import idle_console

__all__ = ["file", "settings"]


def watches_of(settings: FlowSettings, row: Switch) -> FlowWatches:
    watches = FlowWatches([settings])
    watches.all[0].rows.apply([Record("state", 0, 1, *row.encode(), 7)])
    return watches


@pytest.mark.parametrize(
    ("phase", "console", "shown", "words"),
    [
        ("running", "console-2", RUNNING, "Console console-2 carries the failover out."),
        ("aborting", "console-2", RUNNING, "Console console-2 carries the failover out."),
        ("running", "", UNFINISHED, "a step failed, or a terminal goes on with it"),
        ("done", "console-2", DONE, "The failover is done."),
        ("aborted", "", DONE, "The failover is aborted."),
    ],
)
async def test_switch_of_another_console_is_known_by_its_row(
    settings: Callable[..., FlowSettings], phase: str, console: str, shown: str, words: str
) -> None:
    row = Switch(id="x", verb="failover", phase=phase, console=console, by="alice", began_ms=5, operator="o")
    watches = watches_of(settings(), row)
    outcome = switch_outcome(watches.both_ways(watches.all[0]), "A->B", "x")
    assert outcome is not None
    assert (outcome.phase, outcome.by, outcome.at_ms, outcome.verb) == (shown, "alice", 5, "failover")
    assert words in outcome.sentence
    assert switch_outcome(list(watches.all), "A->B", "y") is None


async def test_open_pages_are_told_of_a_switch_of_another_console_once_for_each_state(
    settings: Callable[..., FlowSettings],
) -> None:
    row = Switch(id="x", verb="failover", phase="running", console="other", operator="o")
    watches = watches_of(settings(), row)
    console = idle_console(watches)
    told: list[tuple[str, str, str]] = []

    class Page:
        def on_published(self, kind: str, flow: str, body: Mapping[str, Any]) -> None:
            told.append((kind, body["id"], body["phase"]))

    console.changes.add(Page())
    runner, watch = console.part(SwitchRunner), watches.all[0]
    for _ in range(2):
        runner._look(watch)
    watch.rows.apply([Record("state", 0, 2, *replace(row, phase="done").encode(), 7)])
    for _ in range(2):
        runner._look(watch)
    assert told == [("command", "x", RUNNING), ("command", "x", DONE)]


async def test_unknown_switch_of_a_silent_console_is_left_alone_and_others_are_taken_up(
    settings: Callable[..., FlowSettings], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    taken: list[str] = []
    monkeypatch.setattr(switch_runner, "TAKEN_UP_AFTER_S", 0.0)
    monkeypatch.setattr(SwitchRunner, "_take_up", lambda _, watch, row: taken.append(row.verb))
    for verb in ("teleport", "drain", "failback"):
        row = Switch(id="x", verb=verb, phase="running", console="gone", operator="o")
        watches = watches_of(settings(), row)
        idle_console(watches).part(SwitchRunner)._look(watches.all[0])
    assert taken == ["failback"]
    assert [each.message for each in caplog.records].count("switch not taken up") == 2
