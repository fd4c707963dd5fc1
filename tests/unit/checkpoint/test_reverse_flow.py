"""Groups that were set back on the target stay so, also while the opposite flow cannot be read."""

from pathlib import Path

import pytest

from lockstep_checkpoint.reverse_flow import ReverseFlow
from lockstep_checkpoint.target_group_sync import TargetGroupSync
from lockstep_protocol.mm2_codec import Checkpoint
from lockstep_protocol.offsets import DownstreamOffset, UpstreamOffset
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
    assert reverse(tmp_path, lines).unread(GROUP, checkpoints()) == unread


def test_opposite_flow_that_never_ran_leaves_nothing_unread(tmp_path: Path) -> None:
    flow = reverse(tmp_path)
    flow.is_missing = True
    assert flow.unread(GROUP, checkpoints()) == frozenset()


def test_opposite_flow_without_a_row_leaves_nothing_unread(tmp_path: Path) -> None:
    flow = reverse(tmp_path)
    flow.fold = flow.begin_fold()
    assert flow.unread(GROUP, checkpoints()) == frozenset()


def test_opposite_flow_not_read_leaves_nothing_unread_in_a_failover(tmp_path: Path) -> None:
    assert reverse(tmp_path).unread(GROUP, checkpoints(), failover=True) == frozenset()


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
