"""A group that a listing leaves out is gone only if its coordinator confirms it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from lockstep_checkpoint.group_view import ReadingTime, TranslationState
from lockstep_checkpoint.source_groups import SourceGroups, topics_on_source
from lockstep_config.flow.mirroring_rules import checkpoint_rule
from lockstep_kafka.common.admin_types import Outcome
from lockstep_kafka.common.errors import NotPermitted
from lockstep_rules.filters import NameFilter
from lockstep_rules.groups.group_selection import CheckpointRule
from lockstep_rules.policy import DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy
from lockstep_state.names import Flow
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import GroupStatus
from tests.unit.checkpoint.test_target_group_sync import Groups, Stage, no_protocols, ours

ROW = GroupStatus(group="orders", phase="translated", synced=True, positions=(("A.t", 0, 5, 5),), exact=1)
DENIED = NotPermitted("A", "to describe", "topic t")


class LeftOut(Groups):
    """A source on which some coordinators do not answer a listing, and some topics may not be described."""

    def __init__(self, offsets: dict[str, dict[TopicPartition, int]]) -> None:
        super().__init__("A")
        self.offsets = offsets
        self.left_out: set[str] = set()
        self.denied: dict[str, NotPermitted] = {}

    async def list_groups(self) -> dict[str, str]:
        return dict.fromkeys(self.offsets.keys() - self.left_out, "CLASSIC") | {"any": "CLASSIC"}

    async def topics(self, names: Iterable[str] | None = None) -> Outcome[Any]:
        return Outcome({}, {}, {name: self.denied[name] for name in names or () if name in self.denied})


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, lines="topics = t\n")


def source_groups(stage: Stage, source: Groups, only: str = ".*") -> SourceGroups:
    rule = checkpoint_rule(stage.ctx.settings)
    return SourceGroups(source, no_protocols, NameFilter((only,)), rule, None, stage.ctx.state)


async def test_group_left_out_of_a_listing_is_asked_after_a_restart(stage: Stage) -> None:
    source = LeftOut({"orders": {("t", 0): 5}})
    source.left_out = {"orders"}
    await stage.ctx.state.write(ROW)
    read = await source_groups(stage, source).read(0.0, ours)
    assert set(read.committed) == {"orders"}


async def test_group_that_its_coordinator_does_not_know_is_gone(stage: Stage) -> None:
    source = LeftOut({})
    await stage.ctx.state.write(ROW)
    read = await source_groups(stage, source).read(0.0, ours)
    assert "orders" in source.asked
    assert not read.committed
    assert not read.failed
    assert read.requested == {"orders", "any"}
    await stage.report.on_source_read({}, {}, read.requested.__contains__, ReadingTime(0.0, 0))
    assert stage.row().is_gone
    source.asked.clear()
    await source_groups(stage, source).read(0.0, ours)
    assert source.asked == ["any"]


async def test_group_of_topics_that_are_denied_fails_after_a_restart(stage: Stage) -> None:
    source = LeftOut({"orders": {}})
    source.denied = {"t": DENIED}
    await stage.ctx.state.write(ROW)
    groups = source_groups(stage, source)
    assert (await groups.read(0.0, ours)).failed == {"orders": DENIED}
    assert (await groups.read(1.0, ours)).failed == {"orders": DENIED}
    source.denied = {}
    assert (await groups.read(2.0, ours)).failed == {}


async def test_group_with_a_row_is_asked_though_it_was_of_no_interest(stage: Stage) -> None:
    """Another replica had it meanwhile, and wrote its row."""
    source = LeftOut({"orders": {("u", 0): 5}})
    groups = source_groups(stage, source)
    assert (await groups.read(0.0, ours)).committed == {}
    source.offsets["orders"]["t", 0] = 1
    await stage.ctx.state.write(ROW)
    assert set((await groups.read(1.0, ours)).committed) == {"orders"}


async def test_group_that_the_filter_excludes_now_is_not_asked(stage: Stage) -> None:
    source = LeftOut({"orders": {("t", 0): 5}})
    await stage.ctx.state.write(ROW)
    read = await source_groups(stage, source, only="bills").read(0.0, ours)
    assert source.asked == []
    assert "orders" in read.requested


async def test_group_of_a_share_gained_in_a_round_is_not_gone(stage: Stage) -> None:
    source = LeftOut({"orders": {("t", 0): 5}})
    await stage.ctx.state.write(ROW)
    owned: set[str] = set()
    groups = source_groups(stage, source)
    groups._committed = _gaining(groups._committed, owned)  # type: ignore[method-assign]
    read = await groups.read(0.0, lambda group: group == "any" or group in owned)
    assert owned == {"orders"}
    await stage.report.on_source_read({}, {}, read.requested.__contains__, ReadingTime(0.0, 0))
    assert not stage.row().is_gone


def _gaining(ask: Any, owned: set[str]) -> Any:
    async def committed(group: str) -> Any:
        owned.add("orders")
        return await ask(group)

    return committed


async def test_group_gone_is_written_only_for_groups_of_the_round(stage: Stage) -> None:
    await stage.ctx.state.write(ROW)
    await stage.report.on_source_read({"bills": TranslationState()}, {}, {"bills"}.__contains__, ReadingTime(0.0, 0))
    assert not stage.row().is_gone


def rule(policy: ReplicationPolicy, topics: str = ".*", *, fails_back: bool = False) -> CheckpointRule:
    return CheckpointRule(Flow("A", "B"), policy, NameFilter((topics,)), fails_back=fails_back)


@pytest.mark.parametrize(
    ("row", "rule", "topics"),
    [
        ({"waiting": (("A.t", 0, "no"),), "behind": (("A.u", 1, 4),)}, rule(DefaultReplicationPolicy()), {"t", "u"}),
        ({"waiting": (("A.t", 0, "no"),), "behind": (("A.u", 1, 4),)}, rule(DefaultReplicationPolicy(), "t"), {"t"}),
        ({"positions": (("t", 0, 1, 1),)}, rule(IdentityReplicationPolicy("A")), {"t"}),
        ({}, rule(DefaultReplicationPolicy()), set()),
        # Copies that come back.
        ({"positions": (("t", 0, 1, 1),)}, rule(DefaultReplicationPolicy(), "t", fails_back=True), {"B.t"}),
        ({"positions": (("t", 0, 1, 1),)}, rule(DefaultReplicationPolicy(), "t"), set()),
    ],
)
def test_topics_on_source_are_those_the_row_is_about(
    row: dict[str, Any], rule: CheckpointRule, topics: set[str]
) -> None:
    assert topics_on_source([GroupStatus(group="g", phase="waiting", **row)], [], rule) == {"g": topics}


def test_topics_on_source_of_an_alias_with_the_separator_are_known() -> None:
    """Names do not lead back there; topic-sync's rows do."""
    dotted = CheckpointRule(Flow("site.a", "B"), DefaultReplicationPolicy(), NameFilter((".*",)))
    row = GroupStatus(group="g", phase="translated", positions=(("site.a.t", 0, 1, 1),))
    assert topics_on_source([row], ["t", "u"], dotted) == {"g": {"t"}}
