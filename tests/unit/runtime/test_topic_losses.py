"""Control topics that were deleted: each loss is found once, whichever session finds it."""

from pathlib import Path
from typing import Any

import pytest

from lockstep_runtime.flow.context import Clock
from lockstep_runtime.membership.topic_losses import KIND, TRIED_AGAIN_S, TURN_S, TopicIds, TopicLosses
from lockstep_state.events import Event
from tests.support.flow_context import leading


@pytest.mark.parametrize(
    ("former", "ids", "lost"),
    [
        ({}, {"t": "1"}, []),
        ({"t": "1"}, {"t": "1"}, []),
        ({"t": "1"}, {}, []),
        ({"t": "1"}, {"t": "2"}, [("t", "2")]),
        ({"t": "1", "u": "3"}, {"t": "2", "u": "3"}, [("t", "2")]),
        ({"t": ""}, {"t": "2"}, []),
        ({"t": "1"}, {"t": ""}, []),
    ],
)
def test_topic_with_another_id_was_lost(
    former: dict[str, str], ids: dict[str, str], lost: list[tuple[str, str]]
) -> None:
    topics = TopicIds()
    assert topics.observe("B", former) == []
    assert topics.observe("B", ids) == lost
    assert topics.observe("B", ids) == [], "once"


def test_topic_without_an_id_was_lost_if_it_was_missing_or_created() -> None:
    topics = TopicIds()
    assert topics.observe("B", {"t": "", "u": ""}) == []
    assert topics.observe("B", {"u": ""}, missing=["t", "new"]) == []
    assert topics.observe("B", {"t": "", "u": "", "new": ""}) == [("t", "")]
    assert topics.observe("B", {"t": "", "u": ""}, created=["u", "newer"]) == [("u", "")]


def test_id_that_was_unknown_for_a_while_is_compared_with_the_one_before() -> None:
    topics = TopicIds()
    topics.observe("B", {"t": "1"})
    topics.observe("B", {"t": ""})
    assert topics.observe("B", {"t": "2"}) == [("t", "2")]


def test_topics_of_another_cluster_are_not_lost_ones() -> None:
    topics = TopicIds()
    topics.observe("A", {"t": "1"})
    topics.observe("B", {"t": "1"})
    topics.forget("B")
    assert topics.observe("B", {"t": "2"}) == []
    assert topics.observe("A", {"t": "2"}) == [("t", "2")]


class Scene:
    """The losses of one service that leads, the events topic, and a clock."""

    def __init__(self, folder: Path, service: str, events: list[Event], monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.events, self.refuses = 1_000.0, events, False
        self.ctx = leading(folder, service, (0, 5))
        self.ctx.clock = Clock(wall_ms=lambda: round(self.now * 1000), monotonic=lambda: self.now)
        self.losses = TopicLosses(self.ctx)
        monkeypatch.setattr(self.ctx, "event", self._event)
        monkeypatch.setattr(self.losses, "_read_events", self._read)

    async def report(self) -> None:
        self.ctx.heartbeat_at = self.now
        await self.losses.report()

    async def _event(self, kind: str, subject: str, _: str, **detail: Any) -> None:
        if not self.refuses:
            event = Event(
                kind=kind, service="s", flow="A->B", subject=subject, at_ms=round(self.now * 1000), detail=detail
            )
            self.events.append(event)

    async def _read(self) -> list[Event]:
        return list(self.events)


async def test_event_that_was_not_written_is_written_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(tmp_path, "topic-sync", [], monkeypatch)
    for topic_id in ("1", "2"):
        scene.losses.observe("B", {"events": topic_id})
    scene.refuses = True
    await scene.report()
    scene.refuses = False
    await scene.report()
    assert scene.events == [], "the first may still be under way"
    for _ in range(3):
        scene.now += TRIED_AGAIN_S
        await scene.report()
    assert [(event.kind, event.subject, event.detail) for event in scene.events] == [
        (KIND, "events", {"cluster": "B", "topic_id": "2"})
    ]


@pytest.mark.parametrize("topic_id", ["2", ""])
async def test_several_services_report_a_loss_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, topic_id: str
) -> None:
    events: list[Event] = []
    scenes = [Scene(tmp_path, name, events, monkeypatch) for name in ("heartbeat", "topic-sync", "data-plane")]
    for scene in scenes:
        scene.losses.observe("B", {"t": topic_id and "1"})
        scene.losses.observe("B", {}, missing=["t"])
        scene.losses.observe("B", {"t": topic_id})
    for _ in range(10):
        for scene in scenes:
            await scene.report()
            scene.now += TURN_S
    assert [(event.subject, event.detail["topic_id"]) for event in events] == [("t", topic_id)]


async def test_loss_is_reported_by_a_later_service_if_the_first_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path, "heartbeat", [], monkeypatch)
    scene.losses.observe("B", {"t": "1"})
    scene.losses.observe("B", {"t": "2"})
    await scene.report()
    assert not scene.events
    scene.now += 5 * TURN_S
    await scene.report()
    assert len(scene.events) == 1
