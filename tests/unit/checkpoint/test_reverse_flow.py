"""Groups that were set back on the target are not moved while the reverse flow cannot be read."""

from pathlib import Path

import pytest

from lockstep_checkpoint.reverse_flow import ReverseFlow
from lockstep_checkpoint.target_group_sync import TargetGroupSync
from lockstep_state.codecs.mm2_codec import Checkpoint
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset
from lockstep_state.rows.state_rows import GroupStatus, MirroredTopic, Row
from tests.support.flow_context import state_record
from tests.unit.checkpoint.test_target_group_sync import GROUP, TP, Stage

ORIGINAL, COPY, FAR_COPY = ("orders", 0), ("A.orders", 0), ("A.C.orders", 0)
KEEPS_NAMES = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"


def checkpoints() -> list[Checkpoint]:
    return [Checkpoint(GROUP, *tp, UpstreamOffset(9), DownstreamOffset(9), "") for tp in (ORIGINAL, COPY, FAR_COPY)]


def reverse(folder: Path, lines: str = "") -> ReverseFlow:
    return ReverseFlow(Stage(folder, lines).ctx, "state")


@pytest.mark.parametrize(("lines", "unread"), [("", {ORIGINAL}), (KEEPS_NAMES, {ORIGINAL, COPY, FAR_COPY})])
def test_reverse_flow_not_read_leaves_its_originals_unread(tmp_path: Path, lines: str, unread: set[object]) -> None:
    assert reverse(tmp_path, lines).find_unread(GROUP, checkpoints(), None) == unread


def test_reverse_flow_without_facts_about_the_group_leaves_nothing_unread(tmp_path: Path) -> None:
    flow = reverse(tmp_path)
    assert flow.find_unread(GROUP, checkpoints(), None, failover=True) == frozenset()
    flow.is_missing = True  # it never ran
    assert flow.find_unread(GROUP, checkpoints(), None) == frozenset()
    flow.fold = flow.begin_fold()  # it has no row of the group
    assert flow.find_unread(GROUP, checkpoints(), None) == frozenset()


@pytest.mark.parametrize("failover", [False, True])
async def test_group_set_back_stays_while_the_reverse_flow_is_unread(tmp_path: Path, failover: bool) -> None:
    stage = Stage(tmp_path, KEEPS_NAMES)
    stage.sync = TargetGroupSync(stage.ctx, stage.report, stage.memory, ReverseFlow(stage.ctx, "state"))
    stage.target.offsets[GROUP] = {TP: 500}
    await stage.place(150_000)
    await stage.sync_now(failover=failover)
    assert stage.target.offsets[GROUP] == {TP: 150_000 if failover else 500}


async def test_group_without_an_offset_is_placed_without_the_reverse_flow(tmp_path: Path) -> None:
    stage = Stage(tmp_path, KEEPS_NAMES)
    stage.sync = TargetGroupSync(stage.ctx, stage.report, stage.memory, ReverseFlow(stage.ctx, "state"))
    await stage.place(150_000)
    await stage.sync_now()
    assert stage.target.writes == [(GROUP, TP, 150_000)]


# -- groups that the reverse flow sets back ---------------------------------------------------------------------------

MIRRORED = MirroredTopic(source_topic="A.t", target_topic="A.t")


def put(offset: int) -> GroupStatus:
    """The reverse flow has put the group there."""
    return GroupStatus(group=GROUP, phase="translated", positions=((*TP, offset, offset),))


class Reverse(ReverseFlow):
    """Rows of the reverse flow, as they come."""

    def __init__(self, stage: Stage, *rows: Row) -> None:
        super().__init__(stage.ctx, "state")
        self.now = stage.ctx.clock.monotonic
        self.load(*rows)
        stage.sync = TargetGroupSync(stage.ctx, stage.report, stage.memory, self)

    def load(self, *rows: Row) -> None:
        """Read the topic from its beginning."""
        fold = self.begin_fold()
        self.apply(fold, [state_record(row, offset) for offset, row in enumerate(rows)])
        self.fold = self.finish_fold(fold)

    def receive(self, row: Row, *, gone: bool = False) -> None:
        assert self.fold is not None
        self.apply(self.fold, [state_record(row, self.fold.rows.position + 1, gone=gone)])


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path, KEEPS_NAMES)
    made.target.offsets[GROUP] = {TP: 50}
    return made


async def synced_to(stage: Stage) -> int:
    await stage.sync_now()
    return stage.target.offsets[GROUP][TP]


@pytest.mark.parametrize("gone", [False, True])
async def test_group_set_back_after_it_was_read_stays_until_read_again(stage: Stage, gone: bool) -> None:
    """The checkpoint is from before the reverse flow set the group back on our source."""
    flow = Reverse(stage, MIRRORED, put(100))
    await stage.place(100, read_at=flow.now())
    flow.receive(put(50), gone=gone)
    assert await synced_to(stage) == 50
    await stage.place(100, read_at=flow.now())
    assert await synced_to(stage) == 100


async def test_group_put_further_after_it_was_read_is_moved(stage: Stage) -> None:
    flow = Reverse(stage, MIRRORED, put(40))
    await stage.place(100, read_at=flow.now())
    flow.receive(put(60))
    assert await synced_to(stage) == 100


async def test_group_read_before_the_rows_stays_until_read_again(stage: Stage) -> None:
    flow = Reverse(stage)
    await stage.place(100, read_at=flow.now())
    flow.load(MIRRORED, put(50))
    assert await synced_to(stage) == 50
    await stage.place(100, read_at=flow.now())
    assert await synced_to(stage) == 100


@pytest.mark.parametrize("failover", [False, True])
async def test_group_not_read_by_this_process_moves_in_a_failover_only(stage: Stage, failover: bool) -> None:
    Reverse(stage, MIRRORED, put(50))
    await stage.place(100, read_at=None)
    await stage.sync_now(failover=failover)
    assert stage.target.offsets[GROUP] == {TP: 100 if failover else 50}
