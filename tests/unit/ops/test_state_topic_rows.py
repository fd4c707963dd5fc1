"""The state topic is not waited for without an end."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from lockstep_config import FlowSettings
from lockstep_kafka.common.errors import ClusterUnreachable
from lockstep_ops.status import flow_report, state_topic_rows
from lockstep_ops.status.state_topic_rows import SILENT_S, StateTopicRows


class Silent:
    """A follower of a topic without a leader."""

    def __init__(self, asked: list[float]) -> None:
        self._asked = asked
        self.reads = False

    def start(self) -> None:
        self.reads = True

    def end(self) -> None:
        self.reads = False

    async def caught_up(self, *, silent_s: float) -> None:
        self._asked.append(silent_s)
        raise ClusterUnreachable("B", "b:9092", "no leader")

    async def replay(self, *, silent_s: float) -> None:
        await self.caught_up(silent_s=silent_s)


class Answers:
    async def probe(self, _within: timedelta | None = None) -> None:
        pass


@pytest.fixture
def asked() -> list[float]:
    """For how long each follower was waited for."""
    return []


@pytest.fixture(autouse=True)
def follower(monkeypatch: pytest.MonkeyPatch, asked: list[float]) -> Silent:
    silent = Silent(asked)
    monkeypatch.setattr(state_topic_rows, "target_client", lambda _settings, **_given: Answers())
    monkeypatch.setattr(state_topic_rows, "target_follower", lambda *_given, **_named: silent)
    return silent


async def test_rows_of_a_silent_topic_are_waited_for_in_bounds(
    settings: Callable[..., FlowSettings], asked: list[float], follower: Silent
) -> None:
    with pytest.raises(ClusterUnreachable):
        await StateTopicRows(settings(), "status").replay()
    with pytest.raises(ClusterUnreachable):
        async with StateTopicRows(settings(), "switch", silent_s=3.0).following():
            pass
    assert asked == [SILENT_S, 3.0]
    assert not follower.reads


async def test_status_waits_as_long_as_its_timeout(settings: Callable[..., FlowSettings], asked: list[float]) -> None:
    with pytest.raises(ClusterUnreachable):
        await flow_report.read_rows(settings(), 2.0)
    assert asked == [2.0]
