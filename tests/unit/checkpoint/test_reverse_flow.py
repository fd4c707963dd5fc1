"""Groups that were set back on the target stay so, also while the opposite flow cannot be read."""

from pathlib import Path

import pytest

from lockstep_checkpoint.reverse_flow import ReverseFlow
from lockstep_checkpoint.target_group_sync import TargetGroupSync
from lockstep_state.codecs.mm2_codec import Checkpoint
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset
from lockstep_state.rows.state_rows import GroupStatus, MirroredTopic, Row
from tests.support.flow_context import state_record
from tests.unit.checkpoint.test_target_group_sync import GROUP, PLACE, Stage, ours

ORIGINAL, COPY, FAR_COPY = ("orders", 0), ("A.orders", 0), ("A.C.orders", 0)
KEEPS_NAMES = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lockstep_checkpoint.target_group_sync.SECOND_CHECK_S", 0.0)


def checkpoints() -> list[Checkpoint]:
    return [
        Checkpoint(GROUP, *where, UpstreamOffset(9), DownstreamOffset(9), "") for where in (ORIGINAL, COPY, FAR_COPY)
    ]


def reverse(folder: Path, lines: str = "") -> ReverseFlow:
    return ReverseFlow(Stage(folder, lines).ctx, "state")


@pytest.mark.parametrize(("lines", "unread"), [("", {ORIGINAL}), (KEEPS_NAMES, {ORIGINAL, COPY, FAR_COPY})])
def test_opposite_flow_not_read_leaves_its_originals_unread(tmp_path: Path, lines: str, unread: set[object]) -> None:
    assert reverse(tmp_path, lines).unread(GROUP, checkpoints(), None) == unread


def test_opposite_flow_that_never_ran_leaves_nothing_unread(tmp_path: Path) -> None:
    flow = reverse(tmp_path)
    flow.is_missing = True
    assert flow.unread(GROUP, checkpoints(), None) == frozenset()


def test_opposite_flow_without_a_row_leaves_nothing_unread(tmp_path: Path) -> None:
    flow = reverse(tmp_path)
    flow.fold = flow.begin_fold()
    assert flow.unread(GROUP, checkpoints(), None) == frozenset()


def test_opposite_flow_not_read_leaves_nothing_unread_in_a_failover(tmp_path: Path) -> None:
    assert reverse(tmp_path).unread(GROUP, checkpoints(), None, failover=True) == frozenset()


@pytest.mark.parametrize("failover", [False, True])
async def test_group_set_back_stays_while_the_opposite_flow_is_unread(tmp_path: Path, failover: bool) -> None:
    stage = Stage(tmp_path, KEEPS_NAMES)
    stage.sync = TargetGroupSync(stage.ctx, stage.report, stage.memory, ReverseFlow(stage.ctx, "state"))
    stage.target.offsets[GROUP] = {PLACE: 500}
    await stage.place(150_000)
    await stage.sync.sync_now(ours, rewind=False, failover=failover)
    assert stage.target.offsets[GROUP] == {PLACE: 150_000 if failover else 500}


async def test_group_without_an_offset_is_placed_without_the_opposite_flow(tmp_path: Path) -> None:
    stage = Stage(tmp_path, KEEPS_NAMES)
    stage.sync = TargetGroupSync(stage.ctx, stage.report, stage.memory, ReverseFlow(stage.ctx, "state"))
    await stage.place(150_000)
    await stage.sync.sync_now(ours, rewind=False)
    assert stage.target.writes == [(GROUP, PLACE, 150_000)]


# -- groups that the opposite flow sets back ---------------------------------------------------------------------------

MIRRORED = MirroredTopic(source_topic="A.t", target_topic="A.t")


def put(at: int) -> GroupStatus:
    """The opposite flow has put the group there."""
    return GroupStatus(group=GROUP, phase="translated", positions=((*PLACE, at, at),))


class Opposite(ReverseFlow):
    """Rows of the opposite flow, as they come."""

    def __init__(self, stage: Stage, *rows: Row) -> None:
        super().__init__(stage.ctx, "state")
        self.now = stage.ctx.clock.monotonic
        self.load(*rows)
        stage.sync = TargetGroupSync(stage.ctx, stage.report, stage.memory, self)

    def load(self, *rows: Row) -> None:
        """Read the topic from its beginning."""
        fold = self.begin_fold()
        self.apply(fold, [state_record(row, at) for at, row in enumerate(rows)])
        self.fold = self.finish_fold(fold)

    def receive(self, row: Row, *, gone: bool = False) -> None:
        assert self.fold is not None
        self.apply(self.fold, [state_record(row, self.fold.rows.position + 1, gone=gone)])


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    found = Stage(tmp_path, KEEPS_NAMES)
    found.target.offsets[GROUP] = {PLACE: 50}
    return found


async def synced_to(stage: Stage) -> int:
    await stage.sync.sync_now(ours, rewind=False)
    return stage.target.offsets[GROUP][PLACE]


@pytest.mark.parametrize("gone", [False, True])
async def test_group_set_back_after_it_was_read_stays_until_read_again(stage: Stage, gone: bool) -> None:
    """The checkpoint is from before the opposite flow set the group back on our source."""
    opposite = Opposite(stage, MIRRORED, put(100))
    await stage.place(100, read_at=opposite.now())
    opposite.receive(put(50), gone=gone)
    assert await synced_to(stage) == 50
    await stage.place(100, read_at=opposite.now())
    assert await synced_to(stage) == 100


async def test_group_put_further_after_it_was_read_is_moved(stage: Stage) -> None:
    opposite = Opposite(stage, MIRRORED, put(40))
    await stage.place(100, read_at=opposite.now())
    opposite.receive(put(60))
    assert await synced_to(stage) == 100


async def test_group_read_before_the_rows_stays_until_read_again(stage: Stage) -> None:
    opposite = Opposite(stage)
    await stage.place(100, read_at=opposite.now())
    opposite.load(MIRRORED, put(50))
    assert await synced_to(stage) == 50
    await stage.place(100, read_at=opposite.now())
    assert await synced_to(stage) == 100


async def test_group_not_read_by_this_process_stays(stage: Stage) -> None:
    Opposite(stage, MIRRORED, put(50))
    await stage.place(100, read_at=None)
    assert await synced_to(stage) == 50


async def test_group_set_back_by_an_unread_source_moves_in_a_failover(stage: Stage) -> None:
    Opposite(stage, MIRRORED, put(50))
    await stage.place(100, read_at=None)
    await stage.sync.sync_now(ours, rewind=False, failover=True)
    assert stage.target.offsets[GROUP] == {PLACE: 100}
