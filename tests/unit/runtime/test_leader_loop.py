"""While a replica leads, its main loop and its commands run: neither ends without the other."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

from lockstep_kafka.common.errors import errors_in
from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.flow.command_handler import CommandHandler
from lockstep_runtime.flow.context import Answer, FlowContext
from lockstep_runtime.membership.leader_loop import LeaderLoop
from lockstep_state.commands.command import Command
from lockstep_state.commands.command_vocabulary import Scope
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.rows.state_rows import DesiredState, Row
from tests.support.eventually import eventually
from tests.support.flow_context import leading, read_row

SOURCE = "connector:MirrorSourceConnector"


class SlowRounds:
    """A service whose rounds do not end by themselves once `slow` is set."""

    wants: ClassVar[frozenset[type[Row]]] = frozenset()

    def __init__(self, ctx: FlowContext) -> None:
        self._ctx = ctx
        self.slow = False
        self.began = 0

    async def run(self) -> None:
        await self._ctx.periodic.every("work", self._ctx.settings.acl_sync.every, self._round)

    async def _round(self) -> None:
        self.began += 1
        if self.slow:
            await asyncio.Event().wait()

    async def command(self, command: Command, scope: Scope) -> Answer | None:
        return None

    def status(self) -> Mapping[str, Any]:
        return {}


class Scene:
    """A replica of acl-sync that leads. The test writes the state topic, and keeps the answers."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ctx = leading(folder, "acl-sync", (0, 5))
        self.service = SlowRounds(self.ctx)
        self.loop = LeaderLoop(self.ctx, self.service, "all")
        self.answers: list[tuple[str, str]] = []
        monkeypatch.setattr(self.ctx, "event", self._event)
        monkeypatch.setattr(self.loop, "_serve_commands", self._serve_commands)

    async def _event(self, kind: str, subject: str = "", text: str = "", **detail: Any) -> None:
        self.answers.append((kind, format_sentence(detail["cause"])))

    async def _serve_commands(self) -> None:
        self.loop._handler = CommandHandler(self.ctx, self.service.command)
        await self.loop._handler.serve()

    def send(self, number: int) -> None:
        key, value = Command(id=f"c{number}", verb="refresh").encode()
        self.loop.receive_commands([Record("commands", 0, number, key, value, 0)])

    async def refresh_meets(self, row: Row) -> None:
        """A refresh waits for a slow round when this row comes."""
        await eventually(lambda: self.service.began == 1)
        self.service.slow = True
        self.send(0)
        await eventually(lambda: self.service.began == 2)
        self.service.slow = False
        read_row(self.ctx, row)
        await eventually(lambda: len(self.answers) == 1)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (DesiredState(scope=SOURCE, phase="stopped"), "the MirrorSourceConnector is stopped: resume it"),
        (DesiredState(scope=SOURCE, phase="paused"), "the MirrorSourceConnector is paused: resume it"),
        (
            DesiredState(scope=SOURCE, restart="c9"),
            "the work of the MirrorSourceConnector ended before the refresh was done: refresh again",
        ),
    ],
)
async def test_refresh_that_a_command_interrupts_is_refused(scene: Scene, row: DesiredState, reason: str) -> None:
    acting = asyncio.create_task(scene.loop._run_while_leading())
    await scene.refresh_meets(row)
    assert scene.answers == [("CommandRefused", reason)]
    read_row(scene.ctx, DesiredState(scope=SOURCE, phase="running", restart=row.restart))
    await eventually(lambda: scene.service.began == 3)
    scene.send(1)
    await eventually(lambda: len(scene.answers) == 2)
    assert scene.answers[1] == ("Refreshed", "")
    acting.cancel()


async def test_refresh_is_not_answered_after_the_lead_is_lost(scene: Scene) -> None:
    """The next leader carries it out."""
    scene.loop._leading = asyncio.create_task(scene.loop._run_while_leading())
    await eventually(lambda: scene.service.began == 1)
    scene.service.slow = True
    scene.send(0)
    await eventually(lambda: scene.service.began == 2)
    scene.ctx.leadership.assigned(())
    await scene.loop.stand_down("another leads")
    await asyncio.sleep(0.01)
    assert scene.answers == []


@pytest.mark.parametrize(
    ("silent_s", "reason"),
    [
        (None, "the group's coordinator has not answered yet"),
        (0.0, "another replica leads now"),
        (37.0, "no answer of the group's coordinator on B for 37 s"),
    ],
)
async def test_standing_down_names_its_reason(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, silent_s: float | None, reason: str
) -> None:
    now = scene.ctx.clock.monotonic()
    scene.ctx.heartbeat_at = None if silent_s is None else now - silent_s
    logged: list[tuple[str, str]] = []
    monkeypatch.setattr(scene.ctx.log, "info", lambda message, text="", **_: logged.append((message, text)))
    scene.loop._leading = asyncio.create_task(asyncio.sleep(60))
    await scene.loop.stand_down(scene.loop._why_not_acting())
    assert logged == [("standing down", f"{scene.ctx.instance}: {reason}")]


@pytest.mark.parametrize("ends_as", [None, asyncio.CancelledError()])
@pytest.mark.parametrize("part", ["_serve_commands", "run_forever"])
async def test_lead_part_that_ends_by_itself_is_an_error(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, part: str, ends_as: BaseException | None
) -> None:
    """A task group goes on without a child that returned, or was cancelled from within."""

    async def ends() -> None:
        await asyncio.sleep(0)
        if ends_as is not None:
            raise ends_as

    monkeypatch.setattr(scene.loop if part == "_serve_commands" else scene.loop._main_loop, part, ends)
    with pytest.raises(BaseExceptionGroup) as raised:
        await asyncio.wait_for(scene.loop._run_while_leading(), 5.0)
    assert [type(error) for error in errors_in(raised.value)] == [RuntimeError]


class LateLoop(SlowRounds):
    """Its main loop does not end when it is cancelled, before it may."""

    def __init__(self, ctx: FlowContext) -> None:
        super().__init__(ctx)
        self.may_end = asyncio.Event()
        self.running = 0

    async def run(self) -> None:
        self.began += 1
        self.running += 1
        assert self.running == 1, "two main loops share what the service has"
        try:
            await asyncio.Event().wait()
        finally:
            while not self.may_end.is_set():
                with suppress(asyncio.CancelledError):
                    await self.may_end.wait()
            self.running -= 1


async def test_next_main_loop_begins_when_the_former_has_ended(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lockstep_runtime.membership.leader_loop.DRAIN", 0.05)
    monkeypatch.setattr("lockstep_runtime.membership.leader_loop.TICK", 0.02)
    service = LateLoop(scene.ctx)
    lead = LeaderLoop(scene.ctx, service, "all")
    monkeypatch.setattr(lead, "_serve_commands", asyncio.Event().wait)

    async def run() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(lead.run(tasks))

    keeping = asyncio.create_task(run())
    await eventually(lambda: service.began == 1)
    await lead.stand_down("another leads")
    scene.ctx.heartbeat_at = scene.ctx.clock.monotonic()
    lead.wake()
    await asyncio.sleep(0.2)
    assert service.began == 1
    service.may_end.set()
    scene.ctx.heartbeat_at = scene.ctx.clock.monotonic()
    await eventually(lambda: service.began == 2)
    keeping.cancel()
    await asyncio.wait([keeping])


async def test_main_loop_that_never_ends_ends_its_process(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []
    monkeypatch.setattr("lockstep_runtime.membership.leader_loop.DRAIN", 0.05)
    monkeypatch.setattr("lockstep_runtime.membership.leader_loop.ENDS_WITHIN", 0.2)
    monkeypatch.setattr("lockstep_runtime.membership.leader_loop.replace_process", lambda log, why: ended.append(why))
    service = LateLoop(scene.ctx)
    lead = LeaderLoop(scene.ctx, service, "all")
    monkeypatch.setattr(lead, "_serve_commands", asyncio.Event().wait)
    task = lead._leading = asyncio.create_task(lead._run_while_leading())
    await eventually(lambda: service.began == 1)
    await lead.stand_down("another leads")
    await eventually(lambda: len(ended) == 1)
    assert "did not end" in ended[0]
    service.may_end.set()
    await asyncio.wait([task])
