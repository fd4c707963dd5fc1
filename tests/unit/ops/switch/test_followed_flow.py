"""The rows of the opposite flow are read once, and followed while a command works."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from lockstep_config import FlowSettings
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable, TopicMissing
from lockstep_ops.switch.followed_flow import FollowedFlow, OppositeFlow

GONE = ClusterUnreachable("A", "a:9092", "refused")


class Reading:
    """What is done to the state topic, in order. `troubles`: each is raised once by the next request."""

    def __init__(self, troubles: Sequence[Exception] = ()) -> None:
        self.troubles = list(troubles)
        self.done: list[str] = []

    def _do(self, action: str) -> None:
        self.done.append(action)
        if self.troubles:
            raise self.troubles.pop(0)

    @asynccontextmanager
    async def following(self, flow: FollowedFlow) -> AsyncIterator[FollowedFlow]:
        await asyncio.sleep(0)  # others ask meanwhile
        self._do("read")
        try:
            yield flow
        finally:
            self.done.append("end")

    async def catch_up_now(self, _flow: FollowedFlow) -> None:
        self._do("catch up")


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Reading:
    requests = Reading()
    monkeypatch.setattr(FollowedFlow, "following", lambda flow: requests.following(flow))
    monkeypatch.setattr(FollowedFlow, "catch_up_now", lambda flow: requests.catch_up_now(flow))
    return requests


async def test_opposite_flow_is_read_once_and_caught_up_with_later(
    settings: Callable[..., FlowSettings], reading: Reading
) -> None:
    async with OppositeFlow(settings()) as opposite:
        assert reading.done == [], "a failover may do without"
        first, second = await asyncio.gather(opposite.follow(), opposite.follow())
        assert first is second is await opposite.follow()
        assert reading.done == ["read", "catch up", "catch up"]
    assert reading.done[-1] == "end"


@pytest.mark.parametrize("trouble", [TopicMissing("A", "t"), GONE])
async def test_opposite_flow_that_was_not_read_is_read_when_asked_again(
    settings: Callable[..., FlowSettings], reading: Reading, trouble: ClusterError
) -> None:
    reading.troubles = [trouble]
    async with OppositeFlow(settings()) as opposite:
        with pytest.raises(type(trouble)):
            await opposite.follow()
        await opposite.follow()
        assert reading.done == ["read", "read"]


async def test_opposite_flow_whose_reading_has_ended_is_read_anew(
    settings: Callable[..., FlowSettings], reading: Reading
) -> None:
    """A follower that has ended for good brings nothing more."""
    async with OppositeFlow(settings()) as opposite:
        before = await opposite.follow()
        reading.troubles = [GONE]
        with pytest.raises(ClusterUnreachable):
            await opposite.follow()
        assert await opposite.follow() is not before
        assert reading.done == ["read", "catch up", "end", "read"]
    assert reading.done[-1] == "end"


async def test_opposite_flow_that_was_given_up_holds_nobody_up(
    settings: Callable[..., FlowSettings], monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def for_ever(flow: FollowedFlow) -> AsyncIterator[FollowedFlow]:
        await asyncio.Event().wait()
        yield flow

    monkeypatch.setattr(FollowedFlow, "following", for_ever)
    async with OppositeFlow(settings()) as opposite:
        for _ in range(2):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await opposite.follow()
