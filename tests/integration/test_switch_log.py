"""The row of a switch in the state topic, written by two commands at once."""

import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep_ops.switch.switch_log import SwitchLog, TakenOver
from lockstep_ops.switch.switch_steps import DONE, RUNNING, Step, with_step
from lockstep_state.names import Flow, state_topic
from lockstep_state.rows.switch_rows import Switch
from tests.support.broker import Broker
from tests.support.clusters import create_topic
from tests.support.mirror_permissions import settings_of
from tests.support.services import two_cluster_file

STEPS = tuple((str(step), "waiting", 0, 0, "") for step in (Step.GROUPS, Step.STOP))


@pytest.fixture
async def logs(tmp_path: Path, broker_a: Broker, broker_b: Broker) -> AsyncIterator[tuple[SwitchLog, SwitchLog]]:
    """Of two commands for one flow; the first has begun a switch."""
    mark = uuid.uuid4().hex[:6]
    flow = Flow(f"a{mark}", f"b{mark}")
    clusters = (flow.source, broker_a.bootstrap), (flow.target, broker_b.bootstrap)
    settings = settings_of(two_cluster_file(tmp_path, *clusters, f"{flow}.enabled = true"), flow)
    create_topic(broker_b.bootstrap, state_topic(flow), configs={"cleanup.policy": "compact"})
    async with AsyncExitStack() as stack:
        first, second = [await stack.enter_async_context(SwitchLog(settings).following()) for _ in range(2)]
        await first.write(with_step(Switch(id="one", verb="switchover", steps=STEPS), Step.GROUPS, RUNNING, 1))
        await second.catch_up_now()
        yield first, second


def last_row(log: SwitchLog) -> Switch:
    assert log.switch is not None
    return log.switch


def write_between(first: SwitchLog, second: SwitchLog, row: Switch, patch: pytest.MonkeyPatch) -> None:
    """The first command appends `row` after the second has read, and before what the second appends."""
    append_all = second._topic.append_all

    async def late(*given: object, **named: object) -> object:
        patch.undo()
        await first.write(row)
        return await append_all(*given, **named)  # type: ignore[arg-type]  # passed on as it came

    patch.setattr(second._topic, "append_all", late)


async def test_claim_keeps_steps_that_were_done_before_it(logs: tuple[SwitchLog, SwitchLog]) -> None:
    first, second = logs
    claimed = await second.claim(lambda: replace(last_row(second), force=True))
    assert claimed.operator == second.operator
    assert claimed.steps == last_row(second).steps
    with pytest.raises(TakenOver):
        await first.write(last_row(first))


@pytest.mark.parametrize("phase", ["running", "done"])
async def test_claim_undoes_no_row_that_came_just_before_it(
    logs: tuple[SwitchLog, SwitchLog], monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    first, second = logs
    newer = replace(with_step(last_row(first), Step.GROUPS, DONE, 2), phase=phase)
    write_between(first, second, newer, monkeypatch)
    claimed = await second.claim(lambda: replace(last_row(second), force=True))
    assert (claimed.phase, claimed.steps, claimed.force) == (phase, newer.steps, True)
    with pytest.raises(TakenOver):
        await first.write(last_row(first))
