"""A main loop runs while it is wanted, begins anew when asked, and what it raises gets out."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lockstep_kafka.common.asyncio_util import cancelled
from lockstep_kafka.common.errors import ClusterUnreachable
from lockstep_runtime.flow.main_loop import MainLoop
from lockstep_state.rows.state_rows import DesiredState, Restarts, Row
from tests.support.flow_context import flow_context, read_row

CONNECTOR = "connector:MirrorHeartbeatConnector"


class Scene:
    """A main loop that says when it begins and ends, and a state topic into which the test writes."""

    def __init__(self, folder: Path, *, pauses_itself: bool = False) -> None:
        self.ctx = flow_context(folder, "heartbeat", pauses_itself=pauses_itself)
        self.said: list[str] = []
        self.raises: list[Exception] = []
        self.work = MainLoop(self.ctx, self._run)

    async def _run(self) -> None:
        self.said.append("begins")
        try:
            while not self.raises:
                await asyncio.sleep(0.001)
            raise self.raises.pop()
        finally:
            self.said.append("ends")

    def want(self, phase: str, restart: str = "") -> None:
        self.write(DesiredState(scope=CONNECTOR, phase=phase, restart=restart))

    def write(self, row: Row) -> None:
        read_row(self.ctx, row)

    @asynccontextmanager
    async def going(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.work.run_forever())
        yield
        await cancelled([task])

    async def until(self, said: list[str]) -> None:
        async with asyncio.timeout(5.0):
            while self.said != said:
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        assert self.said == said


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


async def test_main_loop_ends_when_paused_and_begins_when_resumed(scene: Scene) -> None:
    async with scene.going():
        await scene.until(["begins"])
        scene.want("paused")
        await scene.until(["begins", "ends"])
        scene.want("stopped")
        await scene.until(["begins", "ends"])
        scene.want("running")
        await scene.until(["begins", "ends", "begins"])
    await scene.until(["begins", "ends", "begins", "ends"])


@pytest.mark.parametrize("phase", ["paused", "stopped"])
async def test_main_loop_that_is_not_to_run_forgets_its_failures(scene: Scene, phase: str) -> None:
    async with scene.going():
        await scene.until(["begins"])
        troubles = scene.ctx.periodic.troubles
        troubles.record_failure("beat", ClusterUnreachable("a", "a1:9092", "refused"))
        scene.want("running", restart="again")
        await scene.until(["begins", "ends", "begins"])
        assert troubles.now
        scene.want(phase)
        await scene.until(["begins", "ends", "begins", "ends"])
        assert not troubles.now


async def test_main_loop_paused_at_the_start_does_not_begin(scene: Scene) -> None:
    scene.want("paused")
    async with scene.going():
        await scene.until([])


async def test_main_loop_that_pauses_itself_ends_only_when_stopped(tmp_path: Path) -> None:
    scene = Scene(tmp_path, pauses_itself=True)
    async with scene.going():
        scene.want("paused")
        await scene.until(["begins"])
        scene.want("stopped")
        await scene.until(["begins", "ends"])


async def test_a_restart_is_one_new_begin_and_other_rows_are_none(scene: Scene) -> None:
    scene.want("running", restart="before")
    async with scene.going():
        await scene.until(["begins"])
        scene.want("running", restart="c1")
        scene.write(DesiredState(scope=CONNECTOR, restart="c1", at_ms=5))
        scene.write(DesiredState(scope="connector:MirrorSourceConnector", phase="stopped", restart="c2"))
        await scene.until(["begins", "ends", "begins"])


@pytest.mark.parametrize("failure", [ClusterUnreachable("B", "b:9092", "refused"), RuntimeError("a mistake of ours")])
async def test_main_loop_raises_its_error(scene: Scene, failure: Exception) -> None:
    scene.raises.append(failure)
    with pytest.raises(type(failure), match=str(failure)):
        await asyncio.wait_for(scene.work.run_forever(), 5.0)


async def test_main_loop_raises_an_error_of_its_drain(scene: Scene) -> None:
    """Also when it ends because we stand down."""

    async def drains_badly() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise RuntimeError("a mistake of ours")

    work = MainLoop(scene.ctx, drains_badly)
    going = asyncio.create_task(work.run_forever())
    await asyncio.sleep(0.01)
    going.cancel()
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        await going
    going = asyncio.create_task(work.run_forever())
    await asyncio.sleep(0.01)
    scene.want("paused")
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        await asyncio.wait_for(going, 5.0)


async def test_main_loop_that_failed_too_often_waits_for_a_restart(scene: Scene) -> None:
    scene.write(Restarts(owner="heartbeat", count=4, phase="failed", asked=("",)))
    async with scene.going():
        await scene.until([])
        scene.want("paused", restart="c1")
        await scene.until([])
        scene.want("running", restart="c1")
        await scene.until(["begins"])


class Resting(Scene):
    """One that has something to do while it is stopped."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.work = MainLoop(self.ctx, self._run, self._rest)

    async def _rest(self) -> None:
        self.said.append("rests")
        try:
            while not self.raises:
                await asyncio.sleep(0.001)
            raise self.raises.pop()
        finally:
            self.said.append("is roused")


async def test_main_loop_that_is_stopped_runs_its_rest_work(tmp_path: Path) -> None:
    scene = Resting(tmp_path)
    scene.want("stopped")
    async with scene.going():
        await scene.until(["rests"])
        scene.write(DesiredState(scope="connector:MirrorSourceConnector", phase="stopped"))
        await scene.until(["rests"])
        scene.want("running")
        await scene.until(["rests", "is roused", "begins"])
        scene.want("paused")
        await scene.until(["rests", "is roused", "begins", "ends"])
        scene.want("stopped")
        await scene.until(["rests", "is roused", "begins", "ends", "rests"])
    await scene.until(["rests", "is roused", "begins", "ends", "rests", "is roused"])


async def test_main_loop_raises_an_error_of_its_rest_work(tmp_path: Path) -> None:
    scene = Resting(tmp_path)
    scene.want("stopped")
    scene.raises.append(ClusterUnreachable("B", "b:9092", "refused"))
    with pytest.raises(ClusterUnreachable):
        await asyncio.wait_for(scene.work.run_forever(), 5.0)
