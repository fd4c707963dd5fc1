"""Several commands are asked with one producer, and their answers are heard by one reader."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from lockstep_config import FlowSettings
from lockstep_kafka.common.errors import ClusterUnreachable, NotPermitted, TopicMissing
from lockstep_kafka.topics.topic_reader import Record
from lockstep_ops import command_client
from lockstep_ops.command_client import ask_all
from lockstep_ops.command_request import CommandReply, command_request
from lockstep_state.commands.command_vocabulary import FLOW, SYNC_GROUPS
from lockstep_state.events import Event

ARGUMENTS = {"source": True, "rewind": False}


class Target:
    """The cluster and the services. `silent`: shares of the work that nobody answers for; `fails`: what the third
    command is answered with by the cluster."""

    def __init__(
        self, patch: pytest.MonkeyPatch, *, silent: Sequence[int] = (), fails: Exception | None = None
    ) -> None:
        self.opened: list[str] = []
        self.asked: list[int] = []
        self._silent, self._fails = silent, fails
        patch.setattr(command_client, "target_client", lambda _settings, **_given: self)
        patch.setattr(command_client, "target_follower", self._follower)
        patch.setattr(command_client, "producing", self._producing)
        patch.setattr(command_client, "ControlTopicLog", lambda _producer, _topic: self)
        patch.setattr(command_client, "count_replicas", self._count)

    async def probe(self, _within: object) -> None:
        """It answers."""

    def _follower(self, *arguments: Any, from_beginning: bool) -> "Target":
        assert not from_beginning
        self._hear = arguments[3]
        return self

    def start(self) -> None:
        self.opened.append("reader")

    def end(self) -> None:
        self.opened.append("reader ended")

    async def caught_up(self, *, silent_s: float) -> None:
        assert silent_s
        self.opened.append("caught up")

    async def failed(self) -> None:
        await asyncio.Event().wait()

    @asynccontextmanager
    async def _producing(self, *_given: object) -> AsyncIterator[object]:
        self.opened.append("producer")
        yield object()

    async def append(self, key: bytes, value: bytes, *, partition: int) -> int:
        assert "caught up" in self.opened, "every answer comes after this"
        self.asked.append(partition)
        if self._fails is not None and len(self.asked) == 3:
            raise self._fails
        if partition not in self._silent:
            command = self._commands[partition]
            event = Event(kind="GroupsSynced", service="checkpoint", flow="A->B", answers=command.id, detail={})
            self._hear([Record("events", 0, len(self.asked), *event.encode(), 0)])
        return partition

    async def _count(self, _target: object, _settings: object, services: Sequence[str]) -> dict[str, int]:
        return dict.fromkeys(services, 2)

    async def ask(self, settings: FlowSettings) -> list[CommandReply]:
        shares = range(4)
        questions = [
            command_request(settings, SYNC_GROUPS, FLOW, {"share": share, **ARGUMENTS}, commands_partition=share)
            for share in shares
        ]
        self._commands = [question.command for question in questions]
        replies = [CommandReply(question) for question in questions]
        await ask_all(settings, replies, 0.05)
        return replies


async def test_commands_of_a_flow_share_a_reader_and_a_producer(
    settings: Callable[..., FlowSettings], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Target(monkeypatch)
    replies = await target.ask(settings())
    assert target.opened == ["reader", "producer", "caught up", "reader ended"]
    assert target.asked == [0, 1, 2, 3]
    for reply in replies:
        assert (reply.missing, reply.trouble) == ((), "")
        assert {event.answers for event in reply.heard.values()} == {reply.request.command.id}


async def test_command_without_an_answer_has_the_replicas_that_run(
    settings: Callable[..., FlowSettings], monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = await Target(monkeypatch, silent=[2]).ask(settings())
    assert [reply.missing for reply in replies] == [(), (), ("checkpoint",), ()]
    assert [reply.members for reply in replies] == [{}, {}, {"checkpoint": 2}, {}]


@pytest.mark.parametrize(
    ("trouble", "denied", "words"),
    [
        (ClusterUnreachable("B", "b:9092", "refused"), False, "refused"),
        (TopicMissing("B", "events"), False, "the flow has never run"),
        (NotPermitted("B", "WRITE", "topic commands", None), True, "WRITE"),
    ],
)
async def test_trouble_is_of_the_commands_that_nobody_has_answered(
    settings: Callable[..., FlowSettings], monkeypatch: pytest.MonkeyPatch, trouble: Exception, denied: bool, words: str
) -> None:
    target = Target(monkeypatch, silent=[3], fails=trouble)
    replies = await target.ask(settings())
    assert [bool(reply.trouble) for reply in replies] == [False, False, True, True]
    assert [reply.denied for reply in replies] == [False, False, denied, denied]
    assert words in replies[2].trouble
    assert target.opened[-1] == "reader ended"


async def test_nothing_that_is_asked_needs_no_cluster(
    settings: Callable[..., FlowSettings], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Target(monkeypatch)
    await ask_all(settings(), [], 0.05)
    assert target.opened == []
