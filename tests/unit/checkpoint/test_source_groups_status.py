"""The status row of checkpoint with the time up to which the source's groups were read."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep_checkpoint.app import CheckpointFlow
from lockstep_checkpoint.unanswered_reading import SILENT_AFTER_MS
from lockstep_kafka.common.asyncio_util import cancelled
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable, NotPermitted
from lockstep_runtime.flow.context import Clock
from lockstep_state.names import COMMANDS_PARTITIONS
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import GroupStatus, SourceGroupsStatus, decode_row
from tests.support.flow_context import leading
from tests.support.reasons import reported
from tests.unit.checkpoint.test_group_report import opened
from tests.unit.checkpoint.test_target_group_sync import Groups

DENIED = NotPermitted("A", "to list", "groups")
AWAY = ClusterUnreachable("A", "a:9092", "refused")
START_MS = 1_000_000


class Source(Groups):
    """A source that answers, refuses, or is silent, as a test says. `orders` falls to share 0."""

    def __init__(self) -> None:
        super().__init__("A")
        self.offsets = {"orders": {("t", 0): 5}}
        self.outcome: Exception | None = None
        self.asked_to_list = asyncio.Event()
        self.answers = True

    async def list_groups(self) -> dict[str, str]:
        self.asked_to_list.set()
        if not self.answers:
            await asyncio.Event().wait()
        if self.outcome is not None:
            raise self.outcome
        return await super().list_groups()


class SourceWithoutEnds(Source):
    """It answers all but the question where its logs end."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_for_ends = asyncio.Event()

    async def end_offsets_or_troubles(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, ClusterError]]:
        self.asked_for_ends.set()
        await asyncio.Event().wait()
        raise AssertionError


class Scene:
    """A process that leads some shares, at a time that a test sets."""

    def __init__(self, folder: Path, *shares: int) -> None:
        self.now = START_MS
        self.ctx = leading(folder, "checkpoint", *((share, 5) for share in shares), divided=True)
        self.ctx.clock = replace(Clock(), wall_ms=lambda: self.now)
        self.ctx.state._clock_ms = lambda: self.now
        self.log = opened(self.ctx)
        self.ctx.source = self.source = Source()
        self.flow = CheckpointFlow(self.ctx)
        self.flow._checkpoints._is_loaded.set()

        async def protocols() -> Mapping[str, str]:
            return {}

        async def no_trouble() -> None:
            return

        self.flow._groups._protocols = protocols
        self.flow._reader._verifications = ()
        self.flow._checkpoints.verify = no_trouble  # type: ignore[method-assign]  # it asks the target

    async def round(self, outcome: Exception | None = None) -> None:
        """What one round of the service does."""
        self.source.outcome = outcome
        with nullcontext() if outcome is None else pytest.raises(type(outcome)):  # the rounds want to know of it
            await self.flow._emit_all()

    async def begin_unanswered(self) -> "asyncio.Future[None]":
        """A round that waits for an answer until it is cancelled."""
        self.source.answers = False
        self.source.asked_to_list.clear()
        emission = asyncio.ensure_future(self.flow._emit_all())
        await self.source.asked_to_list.wait()
        return emission

    def rows(self) -> list[SourceGroupsStatus]:
        """All that was written of readings, in order."""
        rows = [decode_row(key or b"", value) for topic, key, value in self.log.appended if topic == "state"]
        return [row for row in rows if isinstance(row, SourceGroupsStatus)]

    def row(self, share: int = 0) -> SourceGroupsStatus:
        row = self.ctx.state.get(SourceGroupsStatus, str(share))
        assert row is not None
        return row


async def test_round_writes_down_when_its_reading_began(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0)
    await scene.round()
    assert (scene.row().phase, scene.row().read_ms) == ("read", START_MS)
    scene.now += 60_000
    await scene.round()
    assert scene.row().read_ms == START_MS + 60_000


async def test_round_of_groups_that_stand_writes_one_row_a_share(tmp_path: Path) -> None:
    scene = Scene(tmp_path, *range(COMMANDS_PARTITIONS))
    scene.source.offsets = {f"g-{number}": {("t", 0): 5} for number in range(100)}
    await scene.round()
    written = len(scene.log.appended)
    scene.now += 1_000
    await scene.round()
    assert len(scene.log.appended) - written == COMMANDS_PARTITIONS
    assert {row.read_ms for row in scene.ctx.state.all(GroupStatus)} == {START_MS}


async def test_row_of_a_group_that_moves_has_the_time_of_its_reading(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0)
    await scene.round()
    scene.now += 1_000
    scene.source.offsets["orders"]["t", 1] = 7
    await scene.round()
    [row] = scene.ctx.state.all(GroupStatus)
    assert row.read_ms == START_MS + 1_000


async def test_failing_group_keeps_the_moment_of_its_last_reading(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0)
    await scene.round()
    scene.now += 1_000
    await scene.flow._report.on_source_read({}, {"orders": reported("denied")}, lambda _: True, None)
    [row] = scene.ctx.state.all(GroupStatus)
    assert (row.phase, row.read_ms) == ("failing", START_MS)


async def test_round_that_is_refused_leaves_the_moment_and_has_a_reason(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0)
    await scene.round()
    scene.now += 1_000
    await scene.round(DENIED)
    assert (scene.row().phase, scene.row().reason, scene.row().read_ms) == ("failing", str(DENIED), START_MS)
    written = len(scene.rows())
    await scene.round(DENIED)
    assert len(scene.rows()) == written
    await scene.round()
    assert (scene.row().phase, scene.row().reason, scene.row().read_ms) == ("read", "", START_MS + 1_000)


async def test_round_without_an_answer_leaves_the_moment(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0)
    await scene.round(AWAY)
    assert scene.rows() == []
    await scene.round()
    scene.now += 1_000
    await scene.round(AWAY)
    assert [row.read_ms for row in scene.rows()] == [START_MS]


async def test_share_that_was_lost_meanwhile_is_left_to_its_leader(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0)
    emission = await scene.begin_unanswered()
    scene.ctx.leadership.assigned(())
    await scene.flow._report.record_reading({0}, scene.now)
    assert scene.rows() == []
    await cancelled([emission])


async def test_silence_of_the_source_begins_with_the_unanswered_reading(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0)
    await scene.round()
    scene.now += 60_000
    emission = await scene.begin_unanswered()
    for _ in range(10):
        scene.now += 3_000
        await scene.flow._reader.record_silence()
    assert (scene.row().read_ms, scene.row().unanswered_ms) == (START_MS, START_MS + 60_000)
    assert scene.row().at_ms == scene.now
    await cancelled([emission])


async def test_source_that_freezes_when_asked_for_its_ends_is_silent(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0)
    await scene.round()
    scene.now += 60_000
    source = SourceWithoutEnds()
    scene.ctx.source = scene.flow._groups._admin = source
    emission = asyncio.ensure_future(scene.flow._emit_all())
    await source.asked_for_ends.wait()
    scene.now += 4_000
    await scene.flow._reader.record_silence()
    assert (scene.row().read_ms, scene.row().unanswered_ms) == (START_MS, START_MS + 60_000)
    await cancelled([emission])


async def test_answer_after_a_silence_ends_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0)
    await scene.round()
    scene.now += 60_000
    await scene.round(AWAY)
    scene.now += 4_000
    await scene.flow._reader.record_silence()
    assert scene.row().unanswered_ms == START_MS + 60_000
    await scene.round()
    assert (scene.row().read_ms, scene.row().unanswered_ms) == (scene.now, 0)
    scene.now += 20_000
    await scene.flow._reader.record_silence()
    assert scene.row().unanswered_ms == 0


async def test_process_that_was_frozen_does_not_vouch_for_that_time(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0)
    await scene.round()
    scene.now += 1_000
    emission = await scene.begin_unanswered()
    scene.now += 300_000  # stopped, while the source worked on and died
    await scene.flow._reader.record_silence()
    assert scene.row().unanswered_ms == scene.now
    await cancelled([emission])


async def test_quick_restart_goes_on_with_the_silence(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0)
    await scene.round()
    emission = await scene.begin_unanswered()
    scene.now += 4_000
    await scene.flow._reader.record_silence()
    await cancelled([emission])
    for pause_ms, since_ms in ((SILENT_AFTER_MS, START_MS), (SILENT_AFTER_MS + 1, None)):
        scene.flow._reader.reset()
        scene.now = scene.row().at_ms + pause_ms - 3_000
        emission = await scene.begin_unanswered()
        asked_ms = scene.now
        scene.now += 3_000
        await scene.flow._reader.record_silence()
        assert scene.row().unanswered_ms == (asked_ms if since_ms is None else since_ms)
        await cancelled([emission])


async def test_command_about_one_share_writes_the_time_of_its_reading(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 0, 1)
    await scene.flow._emit({1}, lambda _: False)
    assert [(row.share, row.read_ms) for row in scene.rows()] == [(1, START_MS)]
