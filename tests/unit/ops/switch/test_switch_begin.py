"""A switch that begins while another one does, or is under way."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lockstep_cli.commands import switch_session
from lockstep_cli.commands.switch import SwitchArguments
from lockstep_cli.commands.switch_session import SwitchSession
from lockstep_config import FlowSettings
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.errors import ClusterUnreachable, TopicMissing
from lockstep_ops.exit_codes import CannotUse
from lockstep_ops.switch import switch_log, switch_plan, switch_run
from lockstep_ops.switch.followed_flow import OppositeFlow
from lockstep_ops.switch.switch_log import SwitchLog, TakenOver
from lockstep_ops.switch.switch_options import SwitchOptions
from lockstep_ops.switch.switch_plan import SwitchPlan, begin, plan_switch
from lockstep_ops.switch.switch_steps import DONE, RUNNING, Step, Verb, with_step
from lockstep_ops.switch.switch_under_way import SwitchRefused, under_way_refusal
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import MirroredTopic, Row, Switch
from tests.support.shared_topic import SharedTopic

STEPS = tuple((str(step), "waiting", 0, 0, "") for step in (Step.GROUPS, Step.STOP, Step.REDIRECT))
ENDED = Switch(id="old", verb="failback", phase="done", operator="gone", steps=STEPS)


def new(name: str, **fields: Any) -> Switch:
    return replace(Switch(id=name, verb="switchover", steps=STEPS), **fields)


@pytest.fixture
def topic(settings: Callable[..., FlowSettings], monkeypatch: pytest.MonkeyPatch) -> SharedTopic:
    monkeypatch.setattr(switch_log, "WRITES_WITHIN_S", 0.2)
    shared = SharedTopic(settings(), monkeypatch)
    shared.write(ENDED)
    return shared


def last(log: SwitchLog) -> Switch:
    assert log.switch is not None
    return log.switch


async def test_switch_begins_after_one_that_has_ended(topic: SharedTopic) -> None:
    log = topic.log()
    began = await begin(log, None, new("x"))
    assert (began.id, began.operator) == ("x", log.operator)
    assert last(topic.log()).id == "x"


@pytest.mark.parametrize("phase", ["running", "aborting"])
async def test_switch_does_not_begin_while_another_one_runs(topic: SharedTopic, phase: str) -> None:
    first, second = topic.log(), topic.log()
    await first.write(replace(await begin(first, None, new("x")), phase=phase))
    count = len(topic.records)
    with pytest.raises(SwitchRefused, match="under way"):
        await begin(second, None, new("y"))
    assert len(topic.records) == count, "nothing was written"


@pytest.mark.parametrize("goes_on", [True, False])
async def test_of_two_that_begin_at_once_the_first_one_counts(topic: SharedTopic, goes_on: bool) -> None:
    """Both have seen that nothing is under way. If the first one writes no more, compaction would keep the row of the
    second one only."""
    first, second = topic.log(), topic.log()
    row = new("x", operator=first.operator)
    begun = with_step(row, Step.REDIRECT, RUNNING, 1)

    def goes() -> None:
        if goes_on:
            topic.write(begun)

    topic.around_append(second, lambda: topic.write(row if goes_on else begun), goes)
    with pytest.raises(SwitchRefused, match="under way"):
        await begin(second, None, new("y"))
    for log in (first, second, topic.log(), topic.log(compacted=True)):
        assert (last(log).id, last(log).steps) == ("x", begun.steps)
        assert last(log).operator == first.operator, "it may be at work, and goes on"
    assert (await first.write(with_step(begun, Step.REDIRECT, DONE, 2))).id == "x"


async def test_row_that_comes_before_it_is_restored_is_the_last_one(topic: SharedTopic) -> None:
    first, second = topic.log(), topic.log()
    row = new("x", operator=first.operator)
    begun, done = with_step(row, Step.REDIRECT, RUNNING, 1), with_step(row, Step.REDIRECT, DONE, 2)
    topic.write(begun)
    topic.around_append(second, lambda: topic.write(done))
    await second._restore(begun)
    assert last(topic.log(compacted=True)).steps == done.steps


async def test_of_three_that_begin_at_once_the_first_one_counts(topic: SharedTopic) -> None:
    first, second, third = topic.log(), topic.log(), topic.log()
    topic.write(new("x", operator=first.operator))
    topic.around_append(third, lambda: topic.write(new("y", operator=second.operator)))
    assert await third.begin(new("z")) is None
    for log in (first, second, third, topic.log(compacted=True)):
        assert last(log).id == "x"


async def test_switch_that_another_command_continues_at_once_is_taken_over(topic: SharedTopic) -> None:
    log = topic.log()
    topic.around_append(log, after=lambda: topic.write(new("x", operator="other")))
    with pytest.raises(TakenOver):
        await begin(log, None, new("x"))


@pytest.mark.parametrize("phase", ["running", "aborting", "done"])
async def test_switch_with_its_opposite_under_way_is_aborted(
    topic: SharedTopic, settings: Callable[..., FlowSettings], monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    """The way back began after the plan was made. Its row is on the other cluster."""

    async def rows(*_given: object) -> Mapping[str, Row]:
        back = new("back", phase=phase)
        return {back.key(): back}

    monkeypatch.setattr(switch_plan, "_rows_if_reachable", rows)
    log = topic.log()
    if phase == "done":
        assert (await begin(log, OppositeFlow(settings()), new("x"))).phase == "running"
        return
    with pytest.raises(SwitchRefused, match="under way"):
        await begin(log, OppositeFlow(settings()), new("x"))
    assert (last(log).id, last(log).phase) == ("x", "aborted")


@pytest.mark.parametrize(
    ("trouble", "answers"),
    [(ClusterUnreachable("A", "a:9092", "refused"), False), (TimeoutError(), False), (TopicMissing("A", "t"), True)],
)
async def test_opposite_flow_of_a_cluster_that_is_gone_is_asked_once(
    topic: SharedTopic,
    settings: Callable[..., FlowSettings],
    monkeypatch: pytest.MonkeyPatch,
    trouble: Exception,
    answers: bool,
) -> None:
    """Each question takes seconds, and applications wait for the failover."""
    asked = []

    async def follow(flow: OppositeFlow) -> object:
        asked.append(flow)
        raise trouble

    async def refusals(*_given: object) -> object:
        return [], (), None, ""

    async def is_open(*_given: object) -> None:
        return

    monkeypatch.setattr(Admin, "require_open", is_open)
    monkeypatch.setattr(OppositeFlow, "follow", follow)
    monkeypatch.setattr(switch_plan, "_refusals", refusals)
    topic.write(MirroredTopic(source_topic="t", target_topic="A.t", partitions=1))
    log, opposite = topic.log(), OppositeFlow(settings())
    plan = await plan_switch(log, opposite, SwitchOptions(verb=Verb.FAILOVER))
    assert plan.opposite is (opposite if answers else None)
    await begin(log, plan.opposite, plan.row)
    assert len(asked) == (2 if answers else 1)


@pytest.fixture
def without_topics(topic: SharedTopic, monkeypatch: pytest.MonkeyPatch) -> SwitchLog:
    """Return the log of a flow that has found all topics of its source, which are none."""

    async def nothing(*_given: object) -> None:
        return

    async def rows(*_given: object) -> dict[str, Row]:
        return {}

    async def no_refusal(*_given: object) -> object:
        return [], (), None, ""

    monkeypatch.setattr(switch_plan, "_require_all_found", nothing)
    monkeypatch.setattr(switch_plan, "_rows_if_reachable", rows)
    monkeypatch.setattr(switch_plan, "_refusals", no_refusal)
    return topic.log()


@pytest.mark.parametrize("verb", [Verb.SWITCHOVER, Verb.FAILOVER])
async def test_flow_without_topics_has_nothing_to_switch(
    without_topics: SwitchLog, settings: Callable[..., FlowSettings], verb: Verb
) -> None:
    with pytest.raises(SwitchRefused, match="there is no topic to switch"):
        await plan_switch(without_topics, OppositeFlow(settings()), SwitchOptions(verb=verb))


async def test_failback_of_a_flow_without_topics_turns_the_flows_round(
    without_topics: SwitchLog, settings: Callable[..., FlowSettings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a switchover nobody has written on B yet, so the flow back has no topic."""

    async def not_diverged(*_given: object) -> list[object]:
        return []

    monkeypatch.setattr(switch_plan, "_failback_refusals", not_diverged)
    monkeypatch.setattr(without_topics, "settings", replace(without_topics.settings, flow=Flow("B", "A")))
    plan = await plan_switch(without_topics, OppositeFlow(settings()), SwitchOptions(verb=Verb.FAILBACK))
    assert plan.refusals == ()
    assert plan.notes[0].startswith("B has no topic that B->A mirrors, so nothing was written there that could come")
    assert {Step.DIVERGED, Step.GROUPS, Step.REVERSE} <= {Step(name) for name, *_ in plan.row.steps}


# -- the question -----------------------------------------------------------------------------------------------------


@pytest.fixture
def session(
    file: Callable[..., Path],
    topic: SharedTopic,
    monkeypatch: pytest.MonkeyPatch,
    settings: Callable[..., FlowSettings],
) -> SwitchSession:
    """Of an operator who is asked, and says yes."""

    async def planned(log: SwitchLog, _opposite: object, options: SwitchOptions) -> SwitchPlan:
        if log.switch is not None and log.switch.phase == "running":
            raise SwitchRefused([under_way_refusal(log.switch)])
        return SwitchPlan(row=new(f"after {last(log).id}"), refusals=(), notes=())

    monkeypatch.setattr(switch_run, "plan_switch", planned)
    arguments = SwitchArguments(
        topics=(),
        cutoff=None,
        scheduled=None,
        drill=False,
        rewind_groups=False,
        allow_soon=False,
        allow_not_ready=False,
        allow_left_groups=False,
        force=False,
        dry_run=False,
        yes=False,
        continue_=False,
        abort=False,
        status=False,
        switch_id="",
        timeout=1.0,
        evidence=None,
        output="text",
    )
    made = SwitchSession(file(), settings(), None, arguments, arguments.options(Verb.SWITCHOVER))
    log = topic.log()
    monkeypatch.setattr(made, "_log", log)
    monkeypatch.setattr(made._run, "log", log)
    monkeypatch.setattr(made._run._switcher, "_log", log)
    return made


@pytest.mark.parametrize("phase", ["running", "done", ""])
async def test_switch_is_planned_again_after_the_question(
    session: SwitchSession, topic: SharedTopic, monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    began: list[Switch] = []

    def answered(_question: str) -> bool:
        if phase:
            topic.write(new("x", operator="other", phase=phase))
        return True

    async def carry_out(row: Switch) -> int:
        began.append(row)
        return 0

    monkeypatch.setattr(switch_session, "ask_yes_or_no", answered)
    monkeypatch.setattr(session, "_carry_out", carry_out)
    if phase == "running":
        with pytest.raises(SwitchRefused, match="under way"):
            await session._obey()
        assert not began
        return
    await session._obey()
    assert [row.id for row in began] == ["after x" if phase else "after old"]


@pytest.mark.parametrize(("phase", "code"), [("running", 1), ("aborting", 1), ("aborted", 0), ("done", 0)])
async def test_status_of_a_switch_under_way_is_trouble(
    session: SwitchSession, topic: SharedTopic, phase: str, code: int
) -> None:
    topic.write(new("x", operator="other", phase=phase))
    assert await session._show_last() == code


async def test_continued_switch_that_had_ended_has_its_code_and_its_files(
    session: SwitchSession, topic: SharedTopic, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)

    topic.write(new("x", operator="other", phase="done", late=5, began_ms=1_000))
    with pytest.raises(SwitchRefused, match="nothing to continue"):
        await session._continue()
    assert not list(tmp_path.glob("switchover-*")), "which switch is meant is not known"
    session._run._options = replace(session._options, id="x")
    assert await session._continue() == 1
    assert {path.suffix for path in tmp_path.glob("switchover-A-B-*")} == {".json", ".md"}


@pytest.mark.parametrize("folder", [".", "..", "/", "some/.."])
def test_evidence_that_is_a_folder_is_refused_before_anything_begins(session: SwitchSession, folder: str) -> None:
    with pytest.raises(CannotUse, match="is a folder"):
        replace(session._arguments, evidence=Path(folder), yes=True).check()


def test_force_is_refused_with_the_options_that_take_its_place(session: SwitchSession) -> None:
    with pytest.raises(CannotUse, match=r"--allow-soon: .*--allow-not-ready: .*--allow-left-groups: .*--allow-unknown"):
        replace(session._arguments, force=True, yes=True).check()


def test_id_without_a_switch_that_has_begun_is_refused(session: SwitchSession) -> None:
    with pytest.raises(CannotUse, match="--continue, --abort or --status"):
        replace(session._arguments, switch_id="x", yes=True).check()
