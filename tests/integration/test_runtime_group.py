"""A service whose place in its group is lost though its process lives on."""

import asyncio
import threading
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lockstep_config import load
from lockstep_runtime.membership import faust_membership
from lockstep_runtime.membership.faust_membership import FaustMembership
from lockstep_runtime.membership.flow_runner import FlowRunner
from lockstep_runtime.membership.group_watch import GroupLost
from lockstep_state.names import COMMANDS_PARTITIONS, Flow, commands_topic
from tests.support import eventually, threads
from tests.support.broker import Broker
from tests.support.clusters import create_topic, delete_topic
from tests.support.flow_context import flow_context
from tests.support.services import ServiceProcess

SETTLED_S = 15.0
AT_REST_S = 3.0
HELD_UP_S = 20.0

wait_until = partial(eventually.wait_until, every=0.5)


def test_member_without_partitions_of_an_unknown_topic_leads_soon_after(
    file: Path, flow: Flow, broker_b: Broker
) -> None:
    commands = commands_topic(flow)
    with ServiceProcess("lockstep_heartbeat", file, str(flow)) as service:
        service.hear("leading")
        delete_topic(broker_b.bootstrap, commands)
        wait_until(lambda: not service.status(str(flow))["partitions"], within=60.0, what="it is given nothing")
        time.sleep(AT_REST_S)
        create_topic(broker_b.bootstrap, commands, partitions=COMMANDS_PARTITIONS)
        wait_until(lambda: service.status(str(flow))["acting"], within=60.0, what="it acts again")
        assert service.status(str(flow))["restarts"] == 0


@pytest.mark.long
@pytest.mark.timeout(400)
def test_member_without_group_heartbeats_joins_again_and_leads_again(file: Path, flow: Flow) -> None:
    with ServiceProcess("lockstep_heartbeat", file, str(flow)) as service:

        def acts() -> bool:
            return bool(service.status(str(flow))["acting"])

        wait_until(acts, within=60.0, what="it acts")
        (consumer,) = wait_until(lambda: threads.polling(service.pid), what="the consumer's thread")
        with threads.held(consumer):
            wait_until(lambda: not acts(), what="it stands down")
            wait_until(acts, within=150.0, what="it acts again, while the consumer of before hangs")
            assert "nothing heard of our group" in service.text()
        # The consumer of before goes on now, with the same name in the group.
        settled = time.monotonic() + SETTLED_S
        while time.monotonic() < settled:
            wait_until(acts, within=60.0, what="it acts, with the consumer of before awake")
            time.sleep(0.5)
        assert acts()


@pytest.fixture
def member(file: Path, flow: Flow, broker_b: Broker, tmp_path: Path) -> FaustMembership:
    create_topic(broker_b.bootstrap, commands_topic(flow), partitions=COMMANDS_PARTITIONS)
    settings = load(file, {}).flow(flow)
    ctx = flow_context(tmp_path, "heartbeat")
    ctx.flow, ctx.settings = flow, settings
    nobody: Any = SimpleNamespace(run=None)
    return FaustMembership(FlowRunner(ctx, nobody, nobody))


@pytest.mark.timeout(60)
async def test_member_that_leaves_is_not_held_up_by_a_running_task(member: FaustMembership) -> None:
    """Neither by what Faust waits for in our loop, nor by its consumer's thread."""
    over = threading.Event()

    async def stays() -> None:
        while not over.is_set():
            try:
                await asyncio.sleep(0.1)
            except asyncio.CancelledError:
                continue

    await member.join()
    await eventually.eventually(lambda: bool(member._runner.ctx.leadership.held), what="its share is given")
    member._app.add_future(stays())
    asyncio.run_coroutine_threadsafe(stays(), member._app.consumer._thread.thread_loop)
    lets_go = threading.Timer(HELD_UP_S, over.set)
    lets_go.start()
    await member.leave()
    assert not over.is_set()
    lets_go.cancel()
    over.set()


@pytest.mark.timeout(60)
async def test_group_join_without_an_answer_is_tried_again(
    member: FaustMembership, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def start() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(faust_membership, "JOIN", 0.5)
    monkeypatch.setattr(member._app, "start", start)
    with pytest.raises(GroupLost, match="TimeoutError: not done within 0 s"):
        await member.join()
    await member.leave()
