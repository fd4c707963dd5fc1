"""Checkpoints that are not known to be right on the target are not committed."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from lockstep_checkpoint.group_view import ReadingTime, TranslationState
from lockstep_checkpoint.plan import KEEPS_CHECKPOINT, plan_checkpoints
from lockstep_config.flow.mirroring_rules import checkpoint_rule
from lockstep_kafka.common.errors import NotPermitted
from lockstep_rules.groups.group_selection import Committed
from lockstep_rules.offsets.run_translator import TranslatedOffset
from lockstep_state.offsets import DownstreamOffset, TopicPartition, UpstreamOffset
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence
from lockstep_state.rows.state_rows import GroupStatus, MirroredTopic
from tests.support.flow_context import read_row
from tests.unit.checkpoint.test_target_group_sync import GROUP, TP, Stage, checkpoint

LINES = "sync.group.offsets.enabled = true\ntopics = t\n"
BEYOND = ReasonCode.BEYOND_EXACT_OFFSET.to_reason(checkpoint=150_000, exact=50_000)
NO_SYNC = TranslatedOffset(None, reason=ReasonCode.NO_OFFSET_SYNC.to_reason())
EVERY_CODE = [*ReasonCode, "a-code-of-a-newer-release", ""]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, LINES)


async def translated(stage: Stage, place: TranslatedOffset, offset: int = 150_000) -> None:
    """The source was read: the group is at `offset`, and its checkpoint is the same offset."""
    await stage.place(offset)
    committed = [Committed("t", 0, UpstreamOffset(offset), "")]
    written = stage.memory.written.for_group(GROUP)
    plan = plan_checkpoints(GROUP, committed, written, checkpoint_rule(stage.ctx.settings), lambda *_: place)
    await stage.report.on_source_read(
        {GROUP: TranslationState(plan.translated_offsets)}, {}, lambda _: True, ReadingTime(0.0, 0)
    )


@pytest.mark.parametrize("present", [None, 150_000])
async def test_checkpoint_beyond_the_exact_place_is_not_committed(stage: Stage, present: int | None) -> None:
    """A group between the exact offset and the checkpoint is ahead."""
    if present is not None:
        stage.target.offsets[GROUP] = {TP: present}
    await translated(stage, TranslatedOffset(DownstreamOffset(50_000)))
    await stage.sync_now(rewind=True)
    assert stage.target.writes == []
    assert (stage.row().synced, stage.row().held_reason) == (False, f"A.t-0: {format_sentence(BEYOND)}")
    assert stage.row().ahead == (() if present is None else (("A.t", 0, present, 50_000, "ahead-on-target"),))


@pytest.mark.parametrize("code", EVERY_CODE)
async def test_checkpoint_that_waits_is_committed_by_known_codes_only(stage: Stage, code: str) -> None:
    """This process has read the source."""
    await translated(stage, TranslatedOffset(None, reason=Reason(code, (("text", "no offset sync yet"),))))
    await stage.sync_now()
    assert stage.target.writes == ([(GROUP, TP, 150_000)] if code in KEEPS_CHECKPOINT else [])
    assert stage.row().synced is (code in KEEPS_CHECKPOINT)


@pytest.mark.parametrize("text", ["no offset sync yet", "any other words", ""])
@pytest.mark.parametrize("code", EVERY_CODE)
async def test_checkpoint_after_a_restart_follows_the_code_of_its_row(stage: Stage, code: str, text: str) -> None:
    """The source is away, and an earlier process wrote the row, in words of another release."""
    stage.memory.written.record(1, checkpoint(150_000))
    causes = ((*TP, Reason(code)),) if code else ()
    await stage.ctx.state.write(GroupStatus(group=GROUP, phase="translated", waiting=((*TP, text),), causes=causes))
    await stage.sync_now()
    assert bool(stage.target.writes) is (code in KEEPS_CHECKPOINT)


def test_checkpoint_of_another_log_is_kept_by_no_code() -> None:
    another_log = {"target-recreated", "target-not-found", "topic-unknown", "beyond-target-end", "beyond-exact-offset"}
    assert not another_log & KEEPS_CHECKPOINT
    assert {"no-offset-sync", "source-recreated"} <= KEEPS_CHECKPOINT


async def test_checkpoint_beyond_the_log_is_not_committed(stage: Stage) -> None:
    stage.target.ends[TP] = 120
    await translated(stage, NO_SYNC)
    await stage.sync_now()
    assert stage.target.writes == []
    assert not stage.row().synced
    assert "offset 150000 is beyond the end of the target's log, which is 120" in stage.row().held_reason
    stage.target.ends[TP] = 150_000
    await stage.sync_now()
    assert stage.target.writes == [(GROUP, TP, 150_000)]
    assert (stage.row().synced, stage.row().held_reason) == (True, "")


EXACT = TranslatedOffset(DownstreamOffset(150_000))
DENIED = NotPermitted("B", "to describe", "topic A.t")


async def test_group_of_a_topic_that_is_gone_is_not_synced(stage: Stage) -> None:
    stage.target.partitions = {}
    await translated(stage, EXACT)
    await stage.sync_now()
    assert (stage.row().synced, stage.row().held) == (False, "")
    assert stage.row().held_reason == "A.t-0: topic A.t does not exist on cluster B"
    assert "GroupSynced" not in [event.kind for event in stage.log.events()]
    stage.target.partitions = {"A.t": 1}
    await stage.sync_now()
    assert (stage.row().synced, stage.row().held_reason) == (True, "")


@pytest.mark.parametrize(
    ("facts", "held", "reason"),
    [
        ({"partitions": {"A.t": 0}}, "", "topic A.t has no such partition on cluster B"),
        ({"denied": {"A.t": DENIED}}, "refused", str(DENIED)),
        ({"no_ends": {TP: DENIED}}, "", f"the end of the target's log is not known: {DENIED}"),
    ],
)
async def test_group_of_a_partition_that_cannot_be_read_is_not_synced(
    stage: Stage, facts: dict[str, Any], held: str, reason: str
) -> None:
    for name, value in facts.items():
        setattr(stage.target, name, value)
    await translated(stage, NO_SYNC if "no_ends" in facts else EXACT)
    await stage.sync_now()
    assert stage.target.writes == []
    assert (stage.row().synced, stage.row().held, stage.row().held_reason) == (False, held, f"A.t-0: {reason}")


async def test_group_that_left_a_deleted_topic_is_synced(stage: Stage) -> None:
    """The topic was deleted on both sides, and only its checkpoint is left."""
    stage.target.partitions = {}
    await stage.place(100)
    await stage.sync_now()
    assert stage.row().synced


@pytest.mark.parametrize(("phase", "synced"), [("mirrored", False), ("deleted", True)])
async def test_topic_gone_after_a_restart_counts_if_mirrored(stage: Stage, phase: str, synced: bool) -> None:
    """The source is away."""
    stage.target.partitions = {}
    stage.memory.written.record(1, checkpoint(100))
    await stage.ctx.state.write(GroupStatus(group=GROUP, phase="translated"))
    read_row(stage.ctx, MirroredTopic(source_topic="t", target_topic="A.t", phase=phase))
    await stage.sync_now()
    assert stage.row().synced is synced


async def test_group_that_goes_back_during_a_round_is_compared_in_the_next(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The round has its earlier checkpoint, by which nothing would be ahead, and would clear the mark of the rewind."""
    await stage.place(100, GROUP, "bills")
    stage.target.offsets[GROUP] = {TP: 100}
    await stage.sync_now()
    ask = stage.target.end_offsets_or_troubles
    stage.target.offsets["bills"] = {TP: 50}

    async def answered(partitions: Iterable[TopicPartition]) -> Any:
        await stage.place(10)
        return await ask(partitions)

    monkeypatch.setattr(stage.target, "end_offsets_or_troubles", answered)
    await stage.sync_now()
    assert stage.row().ahead == ((*TP, 100, 10, "rewound-on-source"),)
