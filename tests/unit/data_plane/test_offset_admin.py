"""Slots are kept, or offsets are changed: never both."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep_data_plane.admin import offset_admin
from lockstep_data_plane.admin.offset_admin import OffsetAdmin
from lockstep_rules.offsets.decided_place import DecidedPlace
from lockstep_state.commands.command import Command
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import DesiredState, MirroredTopic, PartitionProgress, SlotStatus
from tests.support.flow_context import flow_context, read_row
from tests.support.reasons import reported

LIST = Command(id="c0", verb="offsets-list", subject="connector:MirrorSourceConnector")
RESET = Command(id="c1", verb="offsets-reset", subject="connector:MirrorSourceConnector")
STOPPED = DesiredState(scope="connector:MirrorSourceConnector", phase="stopped")


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_admin, "ENDED_WITHIN_S", 0.05)
    monkeypatch.setattr(offset_admin, "FREE_WITHIN_S", 0.05)
    monkeypatch.setattr(offset_admin, "CHECK_INTERVAL_S", 0.01)


@pytest.mark.usefixtures("soon")
async def test_offset_change_while_slots_run_is_refused_with_the_reason(tmp_path: Path) -> None:
    ctx = flow_context(tmp_path, "data-plane")
    read_row(ctx, STOPPED)
    admin = OffsetAdmin(ctx)
    async with admin.copying():
        with pytest.raises(ValueError, match="the slots did not come to an end"):
            await admin.carry_out(RESET)
        with pytest.raises(TimeoutError, match="of before"):
            async with admin.copying():
                pass
    async with asyncio.timeout(1), admin.copying():
        pass


@pytest.mark.usefixtures("soon")
async def test_offset_change_that_waits_is_seen_by_the_slot_keeper(tmp_path: Path) -> None:
    ctx = flow_context(tmp_path, "data-plane")
    read_row(ctx, STOPPED)
    admin = OffsetAdmin(ctx)
    async with admin.copying():
        assert not admin.awaited
        change = asyncio.create_task(admin.carry_out(RESET))
        await asyncio.sleep(0.02)
        assert admin.awaited
        with pytest.raises(ValueError, match="the slots did not come to an end"):
            await change
        assert not admin.awaited


@pytest.mark.usefixtures("soon")
async def test_offset_change_with_a_live_slot_or_resumed_connector_is_refused(tmp_path: Path) -> None:
    ctx = flow_context(tmp_path, "data-plane")
    admin = OffsetAdmin(ctx)
    with pytest.raises(ValueError, match="resumed meanwhile: stop it first"):
        await admin.carry_out(RESET)
    read_row(ctx, STOPPED)
    read_row(ctx, SlotStatus(slot=2, phase="started", run="r", at_ms=ctx.clock.wall_ms()))
    with pytest.raises(ValueError, match="slot 2 has not ended"):
        await admin.carry_out(RESET)
    assert await admin.carry_out(Command(id="c2", verb="dance")) is None


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (PartitionProgress(topic="t", partition=0, upstream=9, producer_id=1), "was not asked within 0 s"),
        (PartitionProgress(topic="t", partition=0, phase="halted", cause=reported("truncated")), "others: truncated"),
    ],
)
async def test_an_offset_that_the_target_was_not_asked_about_is_not_listed(
    tmp_path: Path, row: PartitionProgress, sentence: str
) -> None:
    ctx = flow_context(tmp_path, "data-plane")
    for each in (STOPPED, MirroredTopic(source_topic="t", target_topic="A.t"), row):
        read_row(ctx, each)
    with pytest.raises(ValueError, match=sentence):
        await OffsetAdmin(ctx).carry_out(LIST)


ALTER = Command(
    id="c3",
    verb="offsets-alter",
    subject="connector:MirrorSourceConnector",
    arguments={
        "offsets": [{"partition": {"cluster": "A", "topic": "t", "partition": 0}, "offset": {"offset": 89}}],
        "decided": {"topic": "t", "partition": 0, "before": 50, "begins": ""},
    },
)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    "row",
    [
        PartitionProgress(topic="t", partition=0, upstream=50, phase="halted"),
        PartitionProgress(topic="t", partition=0, upstream=49, phase="halted", begins="altered"),
    ],
)
async def test_decision_about_a_place_that_the_copy_has_left_alters_nothing(
    tmp_path: Path, row: PartitionProgress
) -> None:
    ctx = flow_context(tmp_path, "data-plane")
    for each in (STOPPED, row):
        read_row(ctx, each)
    with pytest.raises(ValueError, match="has gone on, or somebody else has decided"):
        await OffsetAdmin(ctx).carry_out(ALTER)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("decided", [5, {}, {"topic": "t", "partition": True, "before": 1, "begins": ""}])
async def test_place_of_a_decision_that_is_none_alters_nothing(tmp_path: Path, decided: object) -> None:
    ctx = flow_context(tmp_path, "data-plane")
    read_row(ctx, STOPPED)
    command = replace(ALTER, arguments={**ALTER.arguments, "decided": decided})
    with pytest.raises(ValueError, match="decided is an object"):
        await OffsetAdmin(ctx).carry_out(command)


def test_place_of_a_halted_partition_is_left_only_by_going_on_or_by_a_decision() -> None:
    halted = PartitionProgress(topic="t", partition=0, upstream=49, phase="halted")
    place = DecidedPlace.of(halted)
    assert DecidedPlace.from_json(place.to_json()) == place
    assert not place.is_left(replace(halted, producer_epoch=3, slot=-1))
    assert place.is_left(replace(halted, upstream=50))
    assert place.is_left(replace(halted, begins="reset"))
    refused = replace(halted, cause=ReasonCode.COPY_CUT.to_reason(case="records-gone", wanted=60))
    assert not DecidedPlace.of(refused).is_left(replace(refused, upstream=59))
    assert DecidedPlace.of(refused).is_left(replace(refused, upstream=60))
