"""A replica that stands by does not count as degraded for what it cannot retry any more."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from lockstep_kafka.common.errors import ClusterUnreachable, NotPermitted
from lockstep_runtime.flow.context import Clock
from lockstep_runtime.membership import flow_runner
from lockstep_runtime.membership.flow_runner import FORGETS_AFTER, FlowRunner
from tests.support.eventually import eventually
from tests.support.flow_context import leading

DENIED = NotPermitted("B", "to create", "topic x")
AWAY = ClusterUnreachable("B", "b:9092", "refused")


class Follower:
    trouble = ""


class Scene:
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.ticks = 0
        self.ctx = leading(folder, "topic-sync", (0, 5))
        self.ctx.clock = Clock(monotonic=lambda: self.now)
        self.ctx.heartbeat_at = self.now
        nothing: Any = None

        class Service:
            async def run(self) -> None: ...

        service: Any = Service()
        self.runner = FlowRunner(self.ctx, service, nothing)
        monkeypatch.setattr(flow_runner, "to_next_tick", self._tick)

    def _tick(self, _: float) -> float:
        self.ticks += 1
        return 0.001

    async def after(self, seconds: float) -> None:
        self.now += seconds
        ticks = self.ticks
        await eventually(lambda: self.ticks > ticks + 1)


async def test_replica_keeps_its_troubles_over_an_outage_of_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could not lead meanwhile, and joins its group again."""
    scene = Scene(tmp_path, monkeypatch)

    async def refused() -> None:
        raise AWAY

    monkeypatch.setattr(scene.ctx.target, "probe", refused)
    follower: Any = Follower()
    watching = asyncio.create_task(scene.runner._watch_target(follower))
    scene.ctx.periodic.troubles.record_failure("topic refresh", DENIED)
    await scene.after(1)
    follower.trouble = "no answer"
    await scene.after(2 * FORGETS_AFTER)
    follower.trouble = ""
    await scene.after(1)
    assert "topic refresh" in scene.ctx.periodic.troubles.now
    await scene.after(FORGETS_AFTER + 1)
    assert not scene.runner.degraded
    watching.cancel()


async def test_standby_replica_forgets_its_troubles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(tmp_path, monkeypatch)
    follower: Any = Follower()
    watching = asyncio.create_task(scene.runner._watch_target(follower))
    for name, trouble in (("topic refresh", DENIED), ("config sync", AWAY)):
        scene.ctx.periodic.troubles.record_failure(name, trouble)
    scene.ctx.heartbeat_at = scene.now + FORGETS_AFTER + 1
    await scene.after(FORGETS_AFTER + 1)
    assert scene.runner.degraded, "it leads"
    scene.ctx.leadership.assigned(())
    await scene.after(FORGETS_AFTER - 1)
    assert scene.runner.degraded, "it may lead again in a moment"
    await scene.after(2)
    assert not scene.runner.degraded
    watching.cancel()
