"""Which commands a service takes, and which it refuses. What is carried out lies in Kafka: the integration tests."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lockstep_kafka.common.asyncio_util import cancelled
from lockstep_kafka.common.errors import LeadershipLost
from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.flow.command_handler import CommandHandler
from lockstep_runtime.flow.context import Answer, FlowContext
from lockstep_state.commands.command import Command
from lockstep_state.commands.command_vocabulary import Scope
from lockstep_state.events import Event
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence
from lockstep_state.rows.state_rows import DesiredState
from tests.support.flow_context import flow_context, read_row

SOURCE = "connector:MirrorSourceConnector"


class Scene:
    """The commands of a service, and what it was asked to carry out."""

    def __init__(self, folder: Path, service: str, *, divided: bool = False, lines: str = "") -> None:
        self.ctx: FlowContext = flow_context(folder, service, divided=divided, lines=lines)
        self.carried_out: list[tuple[str, str]] = []
        self.handler = CommandHandler(self.ctx, self._carry_out)

    async def _carry_out(self, command: Command, scope: Scope) -> Answer | None:
        self.carried_out.append((command.verb, str(scope)))
        return Answer("OffsetsListed", {"offsets": []})

    async def judged(self, verb: str, subject: str, **more: Any) -> tuple[str, str, Mapping[str, object]]:
        try:
            answer = await self.handler._answer(Command(id="c", verb=verb, subject=subject, **more))
        except ValueError as refused:
            return "CommandRefused", str(refused), {}
        return answer.kind, "", answer.detail

    def accepts(self, verb: str, subject: str = "", *, service: str = "", partition: int = 0) -> bool:
        command = Command(id=f"{verb} {subject} {service} {partition}", verb=verb, subject=subject, service=service)
        key, value = command.encode()
        before = self.handler._inbox.qsize()
        self.handler.receive_commands([Record("commands", partition, 0, key, value, 0)])
        return self.handler._inbox.qsize() > before


@pytest.mark.parametrize(
    ("service", "taken"),
    [
        ("topic-sync", {"pause", "refresh", "dance"}),
        ("acl-sync", {"refresh", "dance"}),
        ("data-plane", {"offsets-list", "refresh", "dance"}),
        ("heartbeat", {"dance"}),
    ],
)
def test_command_handler_accepts_verbs_of_its_service(tmp_path: Path, service: str, taken: set[str]) -> None:
    scene = Scene(tmp_path, service)
    assert {verb for verb in ("pause", "offsets-list", "refresh", "dance") if scene.accepts(verb, SOURCE)} == taken


def test_command_handler_accepts_any_verb_sent_to_its_service(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "heartbeat")
    assert scene.accepts("pause", "topic:orders", service="heartbeat")
    assert not scene.accepts("pause", "flow", service="checkpoint")


def test_command_about_a_group_is_for_the_service_that_divides_groups(tmp_path: Path) -> None:
    assert not Scene(tmp_path, "topic-sync").accepts("pause", "group:g", partition=3)
    assert Scene(tmp_path, "checkpoint", divided=True).accepts("pause", "group:g", partition=3)


@pytest.mark.parametrize(
    ("verb", "subject", "code", "text"),
    [
        ("dance", "", ReasonCode.COMMAND_REFUSED, "no command 'dance'"),
        ("pause", "colour:blue", ReasonCode.COMMAND_REFUSED, "write flow, connector:NAME"),
        ("stop", "topic:orders", ReasonCode.COMMAND_REFUSED, "stop is not for a topic"),
        ("stop-before", "flow", ReasonCode.COMMAND_REFUSED, "stop-before is not for a flow: only for connector, topic"),
        ("stop-before", "topic:orders", ReasonCode.TOPIC_NOT_MIRRORED, "no topic 'orders' of the source is mirrored"),
        ("stop-before", SOURCE, ReasonCode.COMMAND_REFUSED, "before_ms is no time"),
        ("offsets-list", SOURCE, ReasonCode.NOT_FOR_SERVICE, "is not for topic-sync, but for data-plane"),
        (
            "pause",
            "connector:MirrorHeartbeatConnector",
            ReasonCode.NOT_FOR_SERVICE,
            "is not for topic-sync, but for heartbeat",
        ),
        ("pause", "topic:orders", ReasonCode.TOPIC_NOT_MIRRORED, "no topic 'orders' of the source is mirrored"),
        ("pause", "slot:9", ReasonCode.NO_SLOT_YET, "no slot 9"),
        ("pause", "topic:" + "o" * 20_000, ReasonCode.TOPIC_NOT_MIRRORED, "no topic 'ooo"),
    ],
)
async def test_command_that_cannot_be_done_is_refused_with_code_and_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, subject: str, code: ReasonCode, text: str
) -> None:
    scene, causes = Scene(tmp_path, "topic-sync"), []

    async def keep(kind: str, subject: str = "", text: str = "", *, cause: Reason, **detail: Any) -> None:
        causes.append((kind, cause))

    monkeypatch.setattr(scene.ctx, "event", keep)
    await scene.handler._carry_out_and_answer(Command(id="c", verb=verb, subject=subject))
    [(kind, cause)] = causes
    assert (kind, cause.code) == ("CommandRefused", code.value)
    assert text in format_sentence(cause)
    assert len(format_sentence(cause)) < 10_500


@pytest.mark.parametrize("verb", ["offsets-alter", "offsets-reset"])
async def test_offsets_are_changed_only_while_the_connector_is_stopped(tmp_path: Path, verb: str) -> None:
    scene = Scene(tmp_path, "data-plane")
    for phase in ("running", "paused"):
        read_row(scene.ctx, DesiredState(scope=SOURCE, phase=phase))
        kind, reason, _ = await scene.judged(verb, SOURCE)
        assert (kind, "stop it first" in reason) == ("CommandRefused", True)
    assert (await scene.judged("offsets-list", SOURCE))[0] == "OffsetsListed"
    read_row(scene.ctx, DesiredState(scope=SOURCE, phase="stopped"))
    await scene.judged(verb, SOURCE)
    assert scene.carried_out == [("offsets-list", SOURCE), (verb, SOURCE)]


async def test_refresh_of_a_paused_connector_is_refused(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "acl-sync")
    read_row(scene.ctx, DesiredState(scope=SOURCE, phase="paused"))
    kind, reason, _ = await scene.judged("refresh", "")
    assert (kind, reason) == ("CommandRefused", "the MirrorSourceConnector is paused: resume it")
    read_row(scene.ctx, DesiredState(scope=SOURCE, phase="running"))
    assert (await scene.judged("refresh", ""))[0] == "Refreshed"


@pytest.mark.parametrize(
    ("service", "subject"),
    [("topic-sync", SOURCE), ("topic-sync", ""), ("checkpoint", "connector:MirrorCheckpointConnector")],
)
async def test_resume_of_a_phase_set_in_the_file_is_refused(tmp_path: Path, service: str, subject: str) -> None:
    scene = Scene(tmp_path, service, lines="A->B.lockstep.state = stopped\n")
    assert not scene.ctx.should_run
    kind, reason, _ = await scene.judged("resume", subject)
    assert kind == "CommandRefused"
    place = f"{tmp_path / 'mm2.properties'}:5: A->B.lockstep.state"
    assert f"Connector is stopped by {place}: the file says so, which no command changes" in reason
    assert (await scene.judged("refresh", ""))[1].endswith(f"Connector is stopped by {place}")


async def test_state_running_in_the_file_lets_commands_decide(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "topic-sync", lines="A->B.lockstep.state = running\n")
    assert scene.ctx.should_run
    read_row(scene.ctx, DesiredState(scope=SOURCE, phase="paused"))
    assert not scene.ctx.should_run


async def test_refresh_that_waits_for_its_rounds_holds_up_no_other_command(tmp_path: Path) -> None:
    """Its rounds may wait for a cluster that does not answer."""
    scene = Scene(tmp_path, "data-plane")

    async def wait() -> None:
        await asyncio.Event().wait()

    rounds = asyncio.ensure_future(scene.ctx.periodic.every("a round", timedelta(seconds=1), wait))
    await asyncio.sleep(0)
    assert scene.accepts("refresh", SOURCE)
    assert scene.accepts("offsets-list", SOURCE)
    with pytest.RaisesGroup(LeadershipLost):  # its answer: there is no topic of events
        await asyncio.wait_for(scene.handler.serve(), 5.0)
    assert scene.carried_out == [("offsets-list", SOURCE)]
    await cancelled([rounds])


async def test_sync_that_waits_for_the_source_holds_up_no_other_sync(tmp_path: Path) -> None:
    """A failover asks for the groups while those that a switchover asked for still wait for its dead source."""
    scene, begun = Scene(tmp_path, "checkpoint", divided=True), []

    async def carry_out(command: Command, _scope: Scope) -> Answer | None:
        begun.append(command.arguments["source"])
        if command.arguments["source"]:
            await asyncio.Event().wait()
        return Answer("GroupSyncEnded")

    handler = CommandHandler(scene.ctx, carry_out)
    for number, source in enumerate((True, True, False)):
        key, value = Command(id=f"c{number}", verb="sync-groups", subject="flow", arguments={"source": source}).encode()
        handler.receive_commands([Record("commands", number, 0, key, value, 0)])
    with pytest.RaisesGroup(LeadershipLost):  # its answer: there is no topic of events
        await asyncio.wait_for(handler.serve(), 5.0)
    assert begun == [True, True, False]


def as_of_a_newer_release(value: bytes) -> bytes:
    return value.replace(b'"version":1', b'"version":2')


async def test_command_of_a_newer_release_is_passed_over(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "heartbeat")
    key, value = Command(id="c9", verb="refresh", service="heartbeat").encode()
    scene.handler.receive_commands([Record("commands", 0, 0, key, as_of_a_newer_release(value), 0)])
    assert scene.handler._inbox.empty()
    assert scene.ctx.unreadable.counts == {"commands": 1}
    scene.handler.receive_commands([Record("commands", 0, 1, key, value, 0)])
    assert scene.handler._inbox.get_nowait().id == "c9"


def test_event_of_a_newer_release_is_passed_over(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "heartbeat")
    key, value = Event(kind="Refreshed", service="heartbeat", flow="A->B", answers="c1").encode()
    scene.handler.fold_answers([Record("events", 0, 0, key, as_of_a_newer_release(value), 0)])
    assert scene.ctx.unreadable.counts == {"events": 1}
    assert not scene.handler._answered


def test_command_handler_skips_malformed_records(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "heartbeat")
    for value in (b"nonsense", b"[]", b'{"id":"c","verb":"v","version":"x"}', None):
        scene.handler.receive_commands([Record("commands", 0, 0, b"", value, 0)])
        scene.handler.fold_answers([Record("events", 0, 0, b"", value, 0)])
    assert scene.handler._inbox.empty()


async def test_ends_of_copies_are_stored_with_the_desired_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, rows = Scene(tmp_path, "topic-sync"), list[DesiredState]()

    async def keep(row: DesiredState) -> None:
        rows.append(row)

    monkeypatch.setattr(scene.ctx.state, "write_if_changed", keep)
    ends = {"before_ms": 5, "ends": [["orders", 0, 7]]}
    kind, _, detail = await scene.judged("stop-before", SOURCE, arguments=ends)
    assert (kind, detail) == ("EndsSet", {"scope": SOURCE, "wanted": "stopped"})
    assert rows == [DesiredState(scope=SOURCE, phase="stopped", command="c", before_ms=5, ends=(("orders", 0, 7),))]


async def test_connector_that_copies_no_records_has_no_ends(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "checkpoint")
    subject, ends = "connector:MirrorCheckpointConnector", {"before_ms": 5, "ends": [["orders", 0, 7]]}
    kind, reason, _ = await scene.judged("stop-before", subject, arguments=ends)
    assert (kind, "copies no records" in reason) == ("CommandRefused", True)


@pytest.mark.parametrize(("by", "detail"), [("alice", {"by": "alice"}), ("", {})])
async def test_answer_says_who_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str, detail: Mapping[str, str]
) -> None:
    scene, answers = Scene(tmp_path, "topic-sync"), []

    async def keep(kind: str, subject: str = "", text: str = "", **fields: Any) -> None:
        answers.append((kind, {name: value for name, value in fields.items() if name == "by"}))

    monkeypatch.setattr(scene.ctx, "event", keep)
    await scene.handler._carry_out_and_answer(Command(id="c", verb="dance", by=by))
    assert answers == [("CommandRefused", detail)]
