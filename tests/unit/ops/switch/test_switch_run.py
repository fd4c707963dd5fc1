"""A switch that a console carries out: its signs of life, and another console that takes it up."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep_config import FlowSettings
from lockstep_kafka.common.errors import ClusterUnreachable
from lockstep_ops.exit_codes import CannotUse
from lockstep_ops.switch import switch_run
from lockstep_ops.switch.switch_clusters import StepFailed
from lockstep_ops.switch.switch_log import TakenOver
from lockstep_ops.switch.switch_options import SwitchOptions
from lockstep_ops.switch.switch_run import SwitchRun, opposite_flow, progress_text, switch_flows
from lockstep_ops.switch.switch_steps import RUNNING, Step, Verb, with_step
from lockstep_ops.switch.switch_under_way import is_in_console
from lockstep_ops.work_progress import WorkProgress
from lockstep_state.rows.state_rows import Switch
from tests.support.shared_topic import SharedTopic

STEPS = tuple((str(step), "waiting", 0, 0, "") for step in (Step.GROUPS, Step.STOP))
BEGUN = with_step(Switch(id="s", verb="switchover", by="alice", steps=STEPS), Step.GROUPS, RUNNING, 1)


@pytest.fixture
def topic(settings: Callable[..., FlowSettings], monkeypatch: pytest.MonkeyPatch) -> SharedTopic:
    monkeypatch.setattr(switch_run, "SIGN_EVERY_S", 0.01)
    return SharedTopic(settings(), monkeypatch)


class Consoles:
    """Runs of consoles over one state topic, with a work of the test's own in place of the steps."""

    def __init__(self, topic: SharedTopic, settings: FlowSettings, patch: pytest.MonkeyPatch) -> None:
        self._topic, self._settings, self._patch = topic, settings, patch

    def run(self, console: str) -> SwitchRun:
        run = SwitchRun(self._settings, None, SwitchOptions(verb=Verb.SWITCHOVER, id="s"), console=console)
        self._patch.setattr(run, "log", self._topic.log(console=console))
        return run


@pytest.fixture
def consoles(topic: SharedTopic, settings: Callable[..., FlowSettings], monkeypatch: pytest.MonkeyPatch) -> Consoles:
    return Consoles(topic, settings(), monkeypatch)


def last(run: SwitchRun) -> Switch:
    assert run.log.switch is not None
    return run.log.switch


async def test_console_writes_the_row_and_the_progress_while_it_works(consoles: Consoles, topic: SharedTopic) -> None:
    run, reader = consoles.run("one"), consoles.run("two")
    row = await run.log.write(BEGUN)
    run.progress.text, run.progress.done, run.progress.total = "5 records behind", 1, 2

    async def work() -> Switch:
        before = len(topic.records)
        while len(topic.records) < before + 3:
            await asyncio.sleep(0.005)
        assert last(reader).progress == "5 records behind (50%)"
        return await run.log.write(replace(row, phase="done"))

    done = await run._with_signs(work())
    assert (done.phase, done.console, done.progress) == ("done", "one", "")
    assert last(reader) == last(run)
    count = len(topic.records)
    await asyncio.sleep(0.05)
    assert len(topic.records) == count, "it is silent once the work has ended"
    assert is_in_console(last(reader)) is False


async def test_terminal_writes_no_signs(consoles: Consoles, topic: SharedTopic) -> None:
    run = consoles.run("")
    row = await run.log.write(BEGUN)

    async def work() -> Switch:
        await asyncio.sleep(0.05)
        return row

    await run._with_signs(work())
    assert len(topic.records) == 1
    assert not is_in_console(last(run)), "nobody takes it up unasked"


async def test_failed_step_lets_the_switch_go(consoles: Consoles) -> None:
    run = consoles.run("one")
    await run.log.write(BEGUN)
    assert is_in_console(last(run))

    async def work() -> Switch:
        raise StepFailed("the disk is full")

    with pytest.raises(StepFailed, match="disk"):
        await run._with_signs(work())
    assert (last(run).console, last(run).phase) == ("", "running")
    assert not is_in_console(last(run)), "nobody takes it up unasked"


async def test_target_that_is_away_keeps_the_switch_for_the_next_console(
    consoles: Consoles, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = consoles.run("one")
    await run.log.write(BEGUN)

    async def refuses(*_: object) -> None:
        raise ClusterUnreachable("B", "b:9092", "no answer")

    monkeypatch.setattr(run.log, "append", refuses)

    async def work() -> Switch:
        await asyncio.sleep(0.03)  # signs fail meanwhile, and that ends nothing
        raise ClusterUnreachable("B", "b:9092", "no answer")

    with pytest.raises(ClusterUnreachable):
        await run._with_signs(work())
    assert is_in_console(last(run))


async def test_console_whose_switch_is_taken_over_stops_its_work_at_once(consoles: Consoles) -> None:
    first, second = consoles.run("one"), consoles.run("two")
    await first.log.write(BEGUN)
    was_cancelled = []

    async def work() -> Switch:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            was_cancelled.append(True)
            raise
        raise AssertionError("it waits for ever")

    working = asyncio.ensure_future(first._with_signs(work()))
    await asyncio.sleep(0.03)
    assert await second.take_up(last(second)) is not None
    with pytest.raises(TakenOver):
        await asyncio.wait_for(working, 1)
    assert was_cancelled == [True]


async def test_of_two_consoles_one_takes_the_switch_up(consoles: Consoles) -> None:
    silent = consoles.run("gone")
    await silent.log.write(BEGUN)
    seen = last(silent)
    first, second = consoles.run("one"), consoles.run("two")
    row = await first.take_up(seen)
    assert row is not None
    assert (row.id, row.by, row.console, row.steps) == ("s", "alice", "one", BEGUN.steps)
    assert await second.take_up(seen) is None, "it goes on already"
    with pytest.raises(TakenOver):
        await silent.log.write(BEGUN)
    await first.log.write(replace(row, phase="done"))
    assert last(second).phase == "done"


async def test_console_that_claims_at_the_same_moment_gives_way(
    consoles: Consoles, topic: SharedTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent, first, second = consoles.run("gone"), consoles.run("one"), consoles.run("two")
    await silent.log.write(BEGUN)
    seen = last(silent)
    # Both have read the same row. The second appends its claim behind that of the first.
    topic.around_append(
        first.log, after=lambda: topic.write(replace(seen, operator=second.log.operator, console="two"))
    )
    with pytest.raises(TakenOver):
        await first.take_up(seen)
    assert last(first).console == "two"


def test_progress_has_its_share_and_is_short() -> None:
    assert progress_text(WorkProgress("stopping")) == "stopping"
    assert progress_text(WorkProgress("copying", 1, 4)) == "copying (25%)"
    assert len(progress_text(WorkProgress("x" * 1_000))) == 200


def test_failback_moves_by_the_opposite_flow(settings: Callable[..., FlowSettings]) -> None:
    there = settings()
    assert opposite_flow(there, [there]) is None
    assert switch_flows(there, [there], Verb.SWITCHOVER, Path("f")) == (there, None)
    with pytest.raises(CannotUse, match="f has no flow B->A that copies back"):
        switch_flows(there, [there], Verb.FAILBACK, Path("f"))
