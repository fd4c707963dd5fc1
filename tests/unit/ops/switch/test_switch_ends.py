"""Step `ends` while topics and partitions appear on the source."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from lockstep_config import FlowSettings
from lockstep_ops.switch import source_ends
from lockstep_ops.switch.step_actions import StepActions
from lockstep_ops.switch.switch_clusters import NotFoundYet, StepFailed, SwitchClusters
from lockstep_ops.switch.switch_log import SwitchLog
from lockstep_ops.switch.switch_positions import known_ends
from lockstep_ops.work_progress import WorkProgress
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import MirroredTopic, Row, Switch
from tests.support.shared_topic import SharedTopic
from tests.support.takeover_rows import topic

ROW = Switch(id="1", verb="switchover", operator="us")
Happens = Callable[[], object]


class Source:
    """A cluster whose logs end at `ends`. `before_requests`: what happens before each request for the ends;
    `after_requests`: before each answer."""

    def __init__(self, ends: dict[TopicPartition, int]) -> None:
        self.ends = ends
        self.before_requests: list[Happens] = []
        self.after_requests: list[Happens] = []
        self.count = 0

    async def require_found(self, rows: Mapping[str, Row], _names: Iterable[str]) -> None:
        mirrored = {row.source_topic for row in rows.values() if isinstance(row, MirroredTopic)}
        for name, _ in self.ends:
            if name not in mirrored:
                raise NotFoundYet(f"topic {name} is not found yet")

    async def source_ends(self, topics: Iterable[MirroredTopic]) -> dict[TopicPartition, int]:
        self.count += 1
        if self.before_requests:
            self.before_requests.pop(0)()
        partitions = {(topic.source_topic, number) for topic in topics for number in range(topic.partitions)}
        names = {topic.source_topic for topic in topics}
        if any(name in names and (name, number) not in partitions for name, number in self.ends):
            raise NotFoundYet("a partition is not found yet")
        ends = {tp: self.ends[tp] for tp in partitions}
        if self.after_requests:
            self.after_requests.pop(0)()
        return ends

    async def ends_at(self, topics: Iterable[MirroredTopic], _moment_ms: int) -> dict[TopicPartition, int]:
        return await self.source_ends(topics)

    async def open_transactions(self, _topics: Iterable[MirroredTopic]) -> list[TopicPartition]:
        return []


class Scene:
    def __init__(self, state: SharedTopic, within_s: float) -> None:
        self.state = state
        self.source = Source({("t", 0): 5})
        self.finds(topic(partitions=1))
        self.log: SwitchLog = state.log()
        state.write(replace(ROW, operator=self.log.operator))
        clusters = cast(SwitchClusters, self.source)
        self.actions = StepActions(self.log, clusters, WorkProgress(""), within_s)

    def finds(self, row: MirroredTopic) -> None:
        """topic-sync writes the row of a topic."""
        self.state.write(row)

    def creates(self, tp: TopicPartition, end: int) -> None:
        self.source.ends[tp] = end

    async def ends(self, row: Switch = ROW) -> dict[TopicPartition, int]:
        await self.actions.read_ends(row)
        return known_ends(self.log.rows, "1")


@pytest.fixture
def scene(settings: Callable[..., FlowSettings], monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(source_ends, "STILL_S", 0.01)
    return Scene(SharedTopic(settings(), monkeypatch), 2.0)


NEW = topic(source_topic="u", target_topic="A.u", partitions=1)


async def test_ends_of_logs_that_stand_still_are_written(scene: Scene) -> None:
    assert await scene.ends() == {("t", 0): 5}
    assert scene.source.count == 2


GROWN = topic(partitions=2)


@pytest.mark.parametrize("checks", [0, 1], ids=["between two checks", "at the last check"])
@pytest.mark.parametrize(("tp", "row"), [(("u", 0), NEW), (("t", 1), GROWN)], ids=["topic", "partition"])
async def test_partition_found_while_ends_are_read_is_drained_too(
    scene: Scene, tp: TopicPartition, row: MirroredTopic, checks: int
) -> None:
    def appears() -> None:
        scene.creates(tp, 3)
        scene.finds(row)

    scene.source.after_requests = [*[lambda: None] * checks, appears]
    assert await scene.ends() == {("t", 0): 5, tp: 3}
    assert scene.source.count >= 3, "it stands still only after two checks"


@pytest.mark.parametrize(("tp", "row"), [(("u", 0), NEW), (("t", 1), GROWN)], ids=["topic", "partition"])
async def test_partition_that_is_found_late_is_waited_for(scene: Scene, tp: TopicPartition, row: MirroredTopic) -> None:
    """It was created after the first check, and topic-sync finds it later."""
    scene.source.after_requests = [lambda: scene.creates(tp, 3)]
    scene.source.before_requests = [lambda: None, lambda: None, lambda: scene.finds(row)]
    assert await scene.ends() == {("t", 0): 5, tp: 3}


@pytest.mark.parametrize("fields", [{"cutoff_ms": 1}, {"drill": True}], ids=["cutoff", "drill"])
async def test_topic_that_is_not_found_is_waited_for_in_each_way(scene: Scene, fields: dict[str, Any]) -> None:
    scene.creates(("u", 0), 3)
    counts: list[int] = []

    async def once(rows: Mapping[str, Row], _names: Iterable[str]) -> None:
        if not counts:
            counts.append(1)
            scene.finds(NEW)
            raise NotFoundYet("not found yet")

    scene.source.require_found = once  # type: ignore[method-assign]
    assert await scene.ends(replace(ROW, **fields)) == {("t", 0): 5, ("u", 0): 3}


@pytest.mark.parametrize("what", ["topic", "partition", "writer"])
async def test_what_does_not_stand_still_fails_the_step(scene: Scene, what: str) -> None:
    scene.actions._within_s = 0.1
    if what == "topic":
        scene.source.after_requests = [lambda: scene.creates(("u", 0), 3)]
    elif what == "partition":
        scene.source.after_requests = [lambda: scene.creates(("t", 1), 3)]
    else:
        scene.source.before_requests = [lambda: scene.creates(("t", 0), scene.source.ends["t", 0] + 1)] * 10_000
    with pytest.raises(StepFailed, match="still write" if what == "writer" else "not found yet"):
        await scene.ends()
