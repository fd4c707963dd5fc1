"""Partitions at rest whose end is searched again, once the source answers that alone knows it."""

import asyncio

import pytest

from lockstep_data_plane.slot import end_searches
from lockstep_data_plane.slot.desired_partitions import DesiredPartition
from lockstep_data_plane.slot.end_searches import ASKED_AT_ONCE, EndSearches
from lockstep_runtime.state.desired_state import DesiredPhase
from lockstep_state.offsets import TopicPartition

TP = ("t", 0)
PAUSED = DesiredPartition(DesiredPhase.PAUSED)


class Source:
    """Answers about some partitions, and notes what it was asked."""

    def __init__(self, *answered: TopicPartition) -> None:
        self.answered = set(answered)
        self.asked: list[TopicPartition] = []

    async def answers(self, tp: TopicPartition) -> bool:
        self.asked.append(tp)
        return tp in self.answered


async def repeated(searches: EndSearches, source: Source, changed: asyncio.Event, times: int = 1) -> None:
    """Let the source be asked so many times at least."""
    before = len(source.asked)
    task = asyncio.create_task(searches.retry_searches(source.answers, changed))
    async with asyncio.timeout(10.0):
        while len(source.asked) < before + times:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
    task.cancel()


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_searches, "ASKED_EVERY_S", 0.001)


async def test_search_of_a_paused_partition_is_repeated_when_its_source_is_back() -> None:
    now = 0.0
    searches, source, changed = EndSearches(lambda: now), Source(), asyncio.Event()
    searches.end(TP, PAUSED, needs_source=True)
    assert searches.was_searched(TP, PAUSED)
    now = 1_000.0
    await repeated(searches, source, changed)
    assert searches.was_searched(TP, PAUSED)
    assert not changed.is_set()
    source.answered.add(TP)
    await repeated(searches, source, changed)
    assert not searches.was_searched(TP, PAUSED)
    assert changed.is_set()
    searches.end(TP, PAUSED, needs_source=False)
    asked = len(source.asked)
    task = asyncio.create_task(searches.retry_searches(source.answers, changed))
    await asyncio.sleep(0.05)
    task.cancel()
    assert len(source.asked) == asked, "its end is known"


async def test_search_in_vain_is_repeated_later_each_time() -> None:
    now, waits = 0.0, []
    searches, source, changed = EndSearches(lambda: now), Source(TP), asyncio.Event()
    for _ in range(6):
        searches.end(TP, PAUSED, needs_source=True)
        began = now
        while searches._due() == []:
            now += 1.0
        waits.append(now - began)
        await repeated(searches, source, changed)
    assert waits == [10.0, 20.0, 40.0, 80.0, 160.0, 300.0]


async def test_partitions_without_an_answer_do_not_hide_others() -> None:
    now = 0.0
    many = [("t", number) for number in range(ASKED_AT_ONCE + 1)]
    searches, source, changed = EndSearches(lambda: now), Source(many[-1]), asyncio.Event()
    for tp in many:
        searches.end(tp, PAUSED, needs_source=True)
    now = 1_000.0
    await repeated(searches, source, changed, times=len(many))
    assert not searches.was_searched(many[-1], PAUSED)
    assert searches.was_searched(many[0], PAUSED)
