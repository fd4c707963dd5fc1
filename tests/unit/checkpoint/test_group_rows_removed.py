"""The row of a group that is gone is removed after some days."""

from dataclasses import replace
from pathlib import Path

import pytest

from lockstep_checkpoint.group_report import GONE_KEPT
from lockstep_checkpoint.group_view import ReadingTime, TranslationState
from lockstep_kafka.common.errors import LeadershipLost
from lockstep_runtime.flow.context import Clock
from lockstep_runtime.state.leadership import leader_label
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import GroupStatus
from tests.support.reasons import reported
from tests.unit.checkpoint.test_groups_left_out import LeftOut, source_groups
from tests.unit.checkpoint.test_target_group_sync import Stage, ours

GONE = GroupStatus(
    group="orders", phase="waiting", cause=ReasonCode.GROUP_GONE.to_reason(), positions=(("A.t", 0, 5, 5),)
)
KEPT_MS = int(GONE_KEPT.total_seconds() * 1000)


class Later:
    """A stage at a time that a test sets."""

    def __init__(self, folder: Path) -> None:
        self.now = 1_000_000
        self.stage = Stage(folder, lines="topics = t\n")
        ctx = self.stage.ctx
        ctx.clock = replace(Clock(), wall_ms=lambda: self.now)
        ctx.state._clock_ms = lambda: self.now
        self.state = ctx.state

    async def round(self, *groups: str, failed: str = "") -> None:
        states = {group: TranslationState() for group in groups}
        await self.stage.report.on_source_read(
            states, {failed: reported("why")} if failed else {}, ours, ReadingTime(0.0, 0)
        )

    def keys_removed(self) -> list[bytes | None]:
        return [key for topic, key, value in self.stage.log.appended if topic == "state" and value is None]


async def test_row_of_a_gone_group_is_removed_after_some_days(tmp_path: Path) -> None:
    later = Later(tmp_path)
    await later.state.write(GONE)
    later.now += KEPT_MS - 1
    await later.round()
    assert later.keys_removed() == []
    later.now += 1
    await later.round()
    assert later.keys_removed() == [b"group/orders"]
    assert later.state.get(GroupStatus, "orders") is None
    assert later.stage.report.groups() == ()
    await later.round()
    assert len(later.keys_removed()) == 1


async def test_row_of_a_group_that_is_there_is_never_removed(tmp_path: Path) -> None:
    later = Later(tmp_path)
    await later.state.write_all([replace(GONE, group="bills"), replace(GONE, group="mail"), replace(GONE, reason="")])
    later.now += KEPT_MS
    await later.round("bills", "orders", failed="mail")
    assert later.keys_removed() == []
    assert {row.group: row.is_gone for row in later.state.all(GroupStatus)} == dict.fromkeys(
        ("bills", "mail", "orders"), False
    )


async def test_row_of_a_group_just_gone_is_kept_from_then_on(tmp_path: Path) -> None:
    later = Later(tmp_path)
    await later.round("orders")
    later.now += KEPT_MS
    await later.round()
    assert later.stage.row().is_gone
    later.now += KEPT_MS - 1
    await later.round()
    assert later.keys_removed() == []


async def test_row_of_a_group_that_comes_back_is_a_new_one(tmp_path: Path) -> None:
    later = Later(tmp_path)
    await later.state.write(GONE)
    later.now += KEPT_MS
    await later.round()
    await later.round("orders")
    assert not later.stage.row().is_gone
    assert [event.kind for event in later.stage.log.events()] == ["GroupFound"]


async def test_row_of_another_replicas_group_is_not_removed(tmp_path: Path) -> None:
    later = Later(tmp_path)
    await later.state.write(GONE)
    later.now += KEPT_MS
    later.stage.ctx.leadership.read_claim(leader_label("checkpoint", 0, divided=True), "two", 99)
    with pytest.raises(LeadershipLost):
        await later.round()
    assert later.keys_removed() == []


async def test_round_of_the_source_names_gone_groups_without_asking(tmp_path: Path) -> None:
    later, source = Later(tmp_path), LeftOut({})
    await later.state.write(GONE)
    read = await source_groups(later.stage, source).read(0.0, ours)
    assert source.asked == ["any"]
    assert read.requested == {"any", "orders"}
