"""Group offsets on the target are written at once for a command, otherwise by rounds."""

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lockstep_checkpoint.checkpoint_fold import WrittenCheckpoints
from lockstep_checkpoint.checkpoint_store import CheckpointStore
from lockstep_checkpoint.group_report import GroupReport
from lockstep_checkpoint.group_view import ReadingTime, TranslationState
from lockstep_checkpoint.source_groups import SourceGroups
from lockstep_checkpoint.target_group_sync import TargetGroupSync
from lockstep_config.flow.mirroring_rules import checkpoint_rule
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.admin_types import GroupDescription, GroupOffset, Outcome, TopicDescription
from lockstep_kafka.common.errors import ClusterError, NotPermitted
from lockstep_kafka.topics.control_topics import checkpoints_topic
from lockstep_rules.filters import NameFilter
from lockstep_runtime.flow.context import FlowContext
from lockstep_state.codecs.mm2_codec import Checkpoint
from lockstep_state.offsets import DownstreamOffset, TopicPartition, UpstreamOffset
from lockstep_state.rows.state_rows import GroupStatus
from tests.support.flow_context import leading
from tests.unit.checkpoint.test_group_report import opened

GROUP = "orders"
TP: TopicPartition = ("A.t", 0)
EVERY = {"orders", "bills"}


class Groups(Admin):
    """What a cluster knows of its groups, written by a test."""

    def __init__(self, alias: str) -> None:
        super().__init__(alias, {"bootstrap.servers": "127.0.0.1:1"})
        self.offsets: dict[str, dict[TopicPartition, int]] = {}
        self.members: dict[str, int] = {}
        self.writes: list[tuple[str, TopicPartition, int]] = []
        self.asked: list[str] = []
        self.partitions = {"A.t": 1}
        self.denied: dict[str, NotPermitted] = {}
        self.ends: dict[TopicPartition, int] = {}
        """The ends of its logs; those that are not here are far away."""
        self.no_ends: dict[TopicPartition, NotPermitted] = {}
        self.drifts = False
        """Each time it is asked, a client has committed something else."""

    async def describe_groups(self, groups: Iterable[str]) -> Outcome[GroupDescription]:
        count = {group: self.members.get(group, 0) for group in groups}
        return Outcome({name: GroupDescription(name, "STABLE" if n else "EMPTY", n) for name, n in count.items()})

    async def group_offsets(self, group: str) -> dict[TopicPartition, Any]:
        self.asked.append(group)
        if self.drifts:
            self.offsets.setdefault(group, {})[TP] = self.offsets.get(group, {}).get(TP, 0) + 1
        return {tp: GroupOffset(offset) for tp, offset in self.offsets.get(group, {}).items()}

    async def alter_group_offsets(self, group: str, offsets: Mapping[TopicPartition, GroupOffset]) -> Outcome[Any]:
        for tp, offset in offsets.items():
            self.writes.append((group, tp, offset.offset))
            self.offsets.setdefault(group, {})[tp] = offset.offset
        return Outcome()

    async def end_offsets_or_troubles(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, ClusterError]]:
        asked = set(partitions)
        troubles: dict[TopicPartition, ClusterError] = {w: t for w, t in self.no_ends.items() if w in asked}
        return {tp: self.ends.get(tp, 10**9) for tp in asked - troubles.keys()}, troubles

    async def topic_names(self) -> dict[str, int]:
        return {name: count for name, count in self.partitions.items() if name not in self.denied}

    async def topics(self, names: Iterable[str] | None = None) -> Outcome[TopicDescription]:
        asked = set(names or ())
        descriptions = {
            name: TopicDescription(name, "", n) for name, n in (await self.topic_names()).items() if name in asked
        }
        return Outcome(descriptions, {}, {name: trouble for name, trouble in self.denied.items() if name in asked})

    async def list_groups(self) -> dict[str, str]:
        return dict.fromkeys(self.offsets, "CLASSIC")


def checkpoint(offset: int, group: str = GROUP) -> Checkpoint:
    return Checkpoint(group, *TP, UpstreamOffset(offset), DownstreamOffset(offset), "")


class Stage:
    """The service's view of two groups at places on the target that were written down."""

    def __init__(self, folder: Path, lines: str = "") -> None:
        self.ctx: FlowContext = leading(folder, "checkpoint", *((n, 7) for n in range(8)), divided=True, lines=lines)
        self.target = Groups("B")
        self.ctx.target = self.target
        self.log = opened(self.ctx)
        self.memory = CheckpointStore(self.ctx, checkpoints_topic(self.ctx.settings))
        self.memory.fold = WrittenCheckpoints()
        self.report = GroupReport(self.ctx, lambda group: self.memory.written.for_group(group))
        self.sync = TargetGroupSync(self.ctx, self.report, self.memory)
        self._at = 0

    async def place(self, offset: int, *groups: str, read_at: float | None = 0.0) -> None:
        """The source was read, and the checkpoints are written."""
        for group in groups or (GROUP,):
            self._at += 1
            self.memory.written.record(self._at, checkpoint(offset, group))
        standing = {group: TranslationState() for group in groups or (GROUP,)}
        began = None if read_at is None else ReadingTime(read_at, 0)
        await self.report.on_source_read(standing, {}, lambda group: group in standing, began)

    async def sync_now(self, *, rewind: bool = False, failover: bool = False) -> None:
        await self.sync.sync_now(ours, rewind=rewind, failover=failover)

    def row(self, group: str = GROUP) -> GroupStatus:
        row = self.ctx.state.get(GroupStatus, group)
        assert row is not None
        return row


def ours(_: str) -> bool:
    return True


async def test_sync_of_a_round_needs_a_second_one(stage: Stage) -> None:
    await stage.place(100)
    await stage.sync.sync()
    assert (stage.target.asked, stage.target.writes) == ([GROUP], [])
    assert not stage.row().synced


async def test_sync_now_soon_after_a_round_moves_at_once(stage: Stage) -> None:
    await stage.place(100)
    await stage.sync.sync()
    await stage.sync.sync()  # too early for a round
    assert stage.target.writes == []
    await stage.sync_now()
    assert stage.target.writes == [(GROUP, TP, 100)]


async def test_sync_now_moves_a_group_on_with_its_source_once_each(stage: Stage) -> None:
    for offset in (100, 100, 150):
        await stage.place(offset)
        await stage.sync_now()
        assert (stage.row().synced, stage.row().held) == (True, "")
    assert [offset for _, _, offset in stage.target.writes] == [100, 150]


async def test_sync_now_of_one_share_leaves_the_others(stage: Stage) -> None:
    await stage.place(100, "orders", "bills")
    await stage.sync.sync_now(lambda group: group == "bills", rewind=False)
    assert [group for group, _, _ in stage.target.writes] == ["bills"]
    assert set(stage.target.asked) == {"bills"}
    assert (stage.row("bills").synced, stage.row("orders").synced) == (True, False)


async def test_sync_now_of_one_share_keeps_what_is_known(stage: Stage) -> None:
    """What an earlier comparison found of the groups of another share still counts."""
    await stage.place(100, "orders", "bills")
    for share in ("bills", "orders"):
        await stage.sync.sync_now(share.__eq__, rewind=False)
    asked = len(stage.target.asked)
    await stage.place(150, "orders", "bills")
    await stage.sync.sync_now("bills".__eq__, rewind=False)
    assert len(stage.target.asked) == asked + 1
    assert stage.target.writes[-1] == ("bills", TP, 150)


async def test_sync_now_of_an_active_group_leaves_it_alone_until_it_is_left(stage: Stage) -> None:
    stage.target.members[GROUP] = 1
    await stage.place(100)
    await stage.sync_now()
    assert stage.target.writes == []
    assert (stage.row().held, stage.row().synced) == ("in-use", False)
    assert stage.row().held_reason == "it has members on the target"
    stage.target.members.clear()
    await stage.sync_now()
    assert stage.target.writes == [(GROUP, TP, 100)]
    assert (stage.row().held, stage.row().synced) == ("", True)


async def test_sync_now_of_a_group_that_moves_holds_it(stage: Stage) -> None:
    stage.target.drifts = True
    await stage.place(100)
    await stage.sync_now()
    assert stage.target.writes == []
    assert stage.row().held == "in-use"
    assert "changed a moment ago" in stage.row().held_reason


@pytest.mark.parametrize("rewind", [False, True])
async def test_sync_now_never_moves_back_what_another_client_moved(stage: Stage, rewind: bool) -> None:
    stage.target.offsets[GROUP] = {TP: 120}
    await stage.place(100)
    await stage.sync_now(rewind=rewind)
    assert stage.target.writes == []
    assert stage.row().ahead == (("A.t", 0, 120, 100, "ahead-on-target"),)


@pytest.mark.parametrize("rewind", [False, True])
async def test_sync_now_with_rewind_sets_a_rewound_group_back(stage: Stage, rewind: bool) -> None:
    await stage.place(100)
    await stage.sync_now()
    await stage.place(40)
    await stage.sync_now(rewind=rewind)
    assert stage.target.offsets[GROUP] == {TP: 40 if rewind else 100}
    assert stage.row().ahead == (() if rewind else (("A.t", 0, 100, 40, "rewound-on-source"),))


async def test_sync_now_leaves_groups_the_filter_excludes(tmp_path: Path) -> None:
    stage = Stage(tmp_path, lines="groups = bills\n")
    await stage.place(100, "orders", "bills")
    await stage.sync_now()
    assert {group for group, _, _ in stage.target.writes} == {"bills"}


async def test_sync_now_after_a_reset_compares_anew(stage: Stage) -> None:
    await stage.place(100)
    await stage.sync_now()
    asked = len(stage.target.asked)
    stage.sync.reset()
    await stage.place(150)
    await stage.sync_now()
    assert len(stage.target.asked) == asked + 2
    assert stage.target.writes[-1] == (GROUP, TP, 150)


async def test_sync_now_beside_a_round_writes_once(stage: Stage) -> None:
    await stage.place(100)
    await asyncio.gather(stage.sync.sync(), stage.sync_now(), stage.sync_now())
    assert stage.target.writes == [(GROUP, TP, 100)]


# -- the source, by shares --------------------------------------------------------------------------------------------


async def no_protocols() -> Mapping[str, str]:
    return {}


def source_groups(folder: Path, source: Groups) -> SourceGroups:
    ctx = leading(folder, "checkpoint", (0, 7), divided=True, lines="topics = t\n")
    return SourceGroups(source, no_protocols, NameFilter((".*",)), checkpoint_rule(ctx.settings), None, ctx.state)


async def test_source_groups_of_one_share_ask_only_these_and_keep_the_others(tmp_path: Path) -> None:
    """A group of another share, whose last offset goes, is still asked in the next round."""
    source = Groups("A")
    source.offsets = {"orders": {("t", 0): 5}, "bills": {("t", 0): 5}}
    groups = source_groups(tmp_path, source)
    assert set((await groups.read(0.0, ours)).committed) == EVERY
    source.asked.clear()
    assert set((await groups.read(1.0, lambda group: group == "bills")).committed) == {"bills"}
    assert source.asked == ["bills"]
    assert set((await groups.read(2.0, ours)).committed) == EVERY


async def test_source_groups_forget_those_of_other_topics(tmp_path: Path) -> None:
    source = Groups("A")
    source.offsets = {"orders": {("u", 0): 5}}
    groups = source_groups(tmp_path, source)
    assert (await groups.read(0.0, ours)).committed == {}
    source.offsets["orders"][("t", 0)] = 1
    assert (await groups.read(1.0, ours)).committed == {}
    groups.forget_uninteresting()
    assert set((await groups.read(2.0, ours)).committed) == {"orders"}
