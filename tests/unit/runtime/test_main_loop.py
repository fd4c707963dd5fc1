"""A main loop runs while it is wanted, begins anew when asked, and what it raises gets out."""

import asyncio
from pathlib import Path

import pytest

from lockstep_kafka.common.errors import ClusterUnreachable
from lockstep_runtime.flow.main_loop import MainLoop
from lockstep_state.rows.state_rows import Restarts, Row, Wanted
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

    def write(self, row: Row) -> None:
        read_row(self.ctx, row)

    async def until(self, said: list[str]) -> None:
        async with asyncio.timeout(5.0):
            while self.said != said:
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        assert self.said == said


async def test_main_loop_ends_when_paused_and_begins_when_resumed(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    going = asyncio.create_task(scene.work.run_forever())
    await scene.until(["begins"])
    scene.write(Wanted(scope=CONNECTOR, phase="paused"))
    await scene.until(["begins", "ends"])
    scene.write(Wanted(scope=CONNECTOR, phase="stopped"))
    await scene.until(["begins", "ends"])
    scene.write(Wanted(scope=CONNECTOR, phase="running"))
    await scene.until(["begins", "ends", "begins"])
    going.cancel()
    await scene.until(["begins", "ends", "begins", "ends"])


@pytest.mark.parametrize("phase", ["paused", "stopped"])
async def test_main_loop_that_is_not_to_run_forgets_its_failures(tmp_path: Path, phase: str) -> None:
    scene = Scene(tmp_path)
    going = asyncio.create_task(scene.work.run_forever())
    await scene.until(["begins"])
    troubles = scene.ctx.periodic.troubles
    troubles.began("beat", ClusterUnreachable("a", "a1:9092", "refused"))
    scene.write(Wanted(scope=CONNECTOR, restart="again"))
    await scene.until(["begins", "ends", "begins"])
    assert troubles.now
    scene.write(Wanted(scope=CONNECTOR, phase=phase))
    await scene.until(["begins", "ends", "begins", "ends"])
    assert not troubles.now
    going.cancel()


async def test_main_loop_paused_at_the_start_does_not_begin(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.write(Wanted(scope=CONNECTOR, phase="paused"))
    going = asyncio.create_task(scene.work.run_forever())
    await scene.until([])
    going.cancel()


async def test_main_loop_that_pauses_itself_ends_only_when_stopped(tmp_path: Path) -> None:
    scene = Scene(tmp_path, pauses_itself=True)
    going = asyncio.create_task(scene.work.run_forever())
    scene.write(Wanted(scope=CONNECTOR, phase="paused"))
    await scene.until(["begins"])
    scene.write(Wanted(scope=CONNECTOR, phase="stopped"))
    await scene.until(["begins", "ends"])
    going.cancel()


async def test_a_restart_is_one_new_begin_and_other_rows_are_none(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.write(Wanted(scope=CONNECTOR, restart="before"))
    going = asyncio.create_task(scene.work.run_forever())
    await scene.until(["begins"])
    scene.write(Wanted(scope=CONNECTOR, restart="c1"))
    scene.write(Wanted(scope=CONNECTOR, restart="c1", at_ms=5))
    scene.write(Wanted(scope="connector:MirrorSourceConnector", phase="stopped", restart="c2"))
    await scene.until(["begins", "ends", "begins"])
    going.cancel()


@pytest.mark.parametrize("failure", [ClusterUnreachable("B", "b:9092", "refused"), RuntimeError("a mistake of ours")])
async def test_main_loop_raises_its_error(tmp_path: Path, failure: Exception) -> None:
    scene = Scene(tmp_path)
    scene.raises.append(failure)
    with pytest.raises(type(failure), match=str(failure)):
        await asyncio.wait_for(scene.work.run_forever(), 5.0)


async def test_main_loop_raises_an_error_of_its_drain(tmp_path: Path) -> None:
    """Also when it ends because we stand down."""
    scene = Scene(tmp_path)

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
    scene.write(Wanted(scope=CONNECTOR, phase="paused"))
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        await asyncio.wait_for(going, 5.0)


async def test_main_loop_that_failed_too_often_waits_for_a_restart(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.write(Restarts(owner="heartbeat", count=4, phase="failed", asked=("",)))
    going = asyncio.create_task(scene.work.run_forever())
    await scene.until([])
    scene.write(Wanted(scope=CONNECTOR, phase="paused", restart="c1"))
    await scene.until([])
    scene.write(Wanted(scope=CONNECTOR, restart="c1"))
    await scene.until(["begins"])
    going.cancel()


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
    scene.write(Wanted(scope=CONNECTOR, phase="stopped"))
    going = asyncio.create_task(scene.work.run_forever())
    await scene.until(["rests"])
    scene.write(Wanted(scope="connector:MirrorSourceConnector", phase="stopped"))
    await scene.until(["rests"])
    scene.write(Wanted(scope=CONNECTOR, phase="running"))
    await scene.until(["rests", "is roused", "begins"])
    scene.write(Wanted(scope=CONNECTOR, phase="paused"))
    await scene.until(["rests", "is roused", "begins", "ends"])
    scene.write(Wanted(scope=CONNECTOR, phase="stopped"))
    await scene.until(["rests", "is roused", "begins", "ends", "rests"])
    going.cancel()
    await scene.until(["rests", "is roused", "begins", "ends", "rests", "is roused"])


async def test_main_loop_raises_an_error_of_its_rest_work(tmp_path: Path) -> None:
    scene = Resting(tmp_path)
    scene.write(Wanted(scope=CONNECTOR, phase="stopped"))
    scene.raises.append(ClusterUnreachable("B", "b:9092", "refused"))
    with pytest.raises(ClusterUnreachable):
        await asyncio.wait_for(scene.work.run_forever(), 5.0)
