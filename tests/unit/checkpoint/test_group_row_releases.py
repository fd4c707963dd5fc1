"""Group rows of earlier and later releases: a process without the source commits only what their codes permit."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lockstep_checkpoint.group_view import ReadingTime, TranslationState
from lockstep_checkpoint.plan import KEEPS_CHECKPOINT
from lockstep_rules.offsets.run_translator import TranslatedOffset
from lockstep_rules.switch.switch_readiness import SwitchFacts, SwitchLimits, SwitchPartition, find_blockers, is_ready
from lockstep_state.codecs.mm2_codec import Checkpoint
from lockstep_state.offsets import DownstreamOffset, TopicPartition, UpstreamOffset
from lockstep_state.reasons import reason_catalogue
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence
from lockstep_state.rows.state_rows import GroupStatus, decode_row
from tests.support.reasons import reported
from tests.support.source_modules import REPOSITORY
from tests.unit.checkpoint.test_target_group_sync import GROUP, Stage

LINES = "sync.group.offsets.enabled = true\n"
OLD = Path(__file__).parent / "old" / "group_rows.jsonl"
"""Rows as the code wrote them that had no codes. They never change."""
BEFORE = "2b69b9b2"
"""The last commit of that code."""
SIXTY = [("A.t", number) for number in range(60)]
RECREATED = TranslatedOffset(None, reason=ReasonCode.TARGET_RECREATED.to_reason())
NO_SYNC = TranslatedOffset(None, reason=ReasonCode.NO_OFFSET_SYNC.to_reason())
EXACT = TranslatedOffset(DownstreamOffset(500))


def old_rows() -> dict[str, GroupStatus]:
    rows = {}
    for line in OLD.read_text("utf-8").splitlines():
        kept = json.loads(line)
        row = decode_row(kept["key"].encode(), json.dumps(kept["value"]).encode())
        assert isinstance(row, GroupStatus)
        rows[kept["case"]] = row
    return rows


def fresh(folder: Path, partitions: Iterable[TopicPartition], group: str = GROUP) -> Stage:
    """Return a process that has read nothing yet. The group has a checkpoint in each partition."""
    folder.mkdir(exist_ok=True)
    stage = Stage(folder, LINES)
    for number, (topic, partition) in enumerate(partitions):
        stage.target.partitions[topic] = max(partition + 1, stage.target.partitions.get(topic, 0))
        place = Checkpoint(group, topic, partition, UpstreamOffset(500), DownstreamOffset(500), "")
        stage.memory.written.record(number, place)
    return stage


async def written_by(stage: Stage, places: Iterable[tuple[TopicPartition, TranslatedOffset]]) -> GroupStatus:
    """Return the row that a process writes once it has read the source."""
    await stage.report.on_source_read({GROUP: TranslationState(tuple(places))}, {}, lambda _: True, ReadingTime(0.0, 0))
    return stage.row()


async def committed_with(folder: Path, row: GroupStatus) -> set[TopicPartition]:
    """Return what a fresh process commits that has only the row: the source is away."""
    stage = fresh(folder, [(topic, number) for topic, number, *_ in row.positions], row.group)
    await stage.ctx.state.write(row)
    await stage.sync_now(failover=True)
    return {tp for _, tp, _ in stage.target.writes}


def ready_with(row: GroupStatus) -> bool:
    facts = SwitchFacts(partitions=(SwitchPartition("t", 0, "copying", 0, 0),), groups=(replace(row, synced=True),))
    return is_ready(find_blockers(facts, SwitchLimits(max_lag_ms=10_000, syncs_groups=True)))


async def test_group_of_60_partitions_on_a_new_topic_is_committed_by_no_process(tmp_path: Path) -> None:
    running = fresh(tmp_path / "running", SIXTY)
    row = await written_by(running, [(tp, RECREATED) for tp in SIXTY])
    await running.sync_now()
    assert running.target.writes == []
    assert (len(row.waiting), len(row.causes), row.more_waiting) == (50, 50, 10)
    assert await committed_with(tmp_path / "fresh", row) == set()
    assert not ready_with(row)


async def test_group_whose_sentences_changed_in_an_upgrade_is_not_committed(tmp_path: Path) -> None:
    row = await written_by(fresh(tmp_path / "running", SIXTY[:3]), [(tp, RECREATED) for tp in SIXTY[:3]])
    reworded = replace(row, waiting=tuple((topic, number, "it is a new one") for topic, number, _ in row.waiting))
    assert await committed_with(tmp_path / "fresh", reworded) == set()
    assert not ready_with(reworded)


async def test_list_that_was_cut_hides_no_partition_that_is_wrong(tmp_path: Path) -> None:
    """The wrong ones are listed first. Of the others the row does not say which wait."""
    places = [*((tp, NO_SYNC) for tp in SIXTY[:54]), *((tp, RECREATED) for tp in SIXTY[54:])]
    row = await written_by(fresh(tmp_path / "running", SIXTY), places)
    listed = {(topic, number) for topic, number, _ in row.waiting}
    assert listed >= set(SIXTY[54:])
    assert await committed_with(tmp_path / "fresh", row) == listed - set(SIXTY[54:])


async def test_list_that_is_whole_leaves_the_other_partitions_committed(tmp_path: Path) -> None:
    places = [*((tp, RECREATED) for tp in SIXTY[:45]), *((tp, EXACT) for tp in SIXTY[45:])]
    row = await written_by(fresh(tmp_path / "running", SIXTY), places)
    assert await committed_with(tmp_path / "fresh", row) == set(SIXTY[45:])


@pytest.mark.parametrize(
    "change",
    [
        {"phase": "a phase of a newer release"},
        {"cause": Reason("a-code-of-a-newer-release")},
        {"phase": "waiting", "cause": Reason("a-code-of-a-newer-release")},
        {"phase": "waiting", "reason": "a text alone"},
        {"phase": "failing", "cause": Reason("a-code-of-a-newer-release")},
        {"more_waiting": 1},
        {"waiting": (("A.t", 0, "text"),), "causes": (("A.t", 0, Reason("a-code-of-a-newer-release")),)},
    ],
)
async def test_row_that_is_not_understood_commits_nothing(tmp_path: Path, change: dict[str, Any]) -> None:
    row = GroupStatus(group=GROUP, phase="translated", synced=True, positions=(("A.t", 0, 500, 500),), exact=1)
    assert await committed_with(tmp_path / "understood", row) == {("A.t", 0)}
    assert ready_with(row)
    assert await committed_with(tmp_path / "not", replace(row, **change)) == set()
    assert not ready_with(replace(row, **change))


@pytest.mark.parametrize("case", ["gone", "failing"])
async def test_row_that_is_not_understood_stays_so_if_the_source_fails(tmp_path: Path, case: str) -> None:
    """Two processes one after the other have only the row, and the first one was refused by the source."""
    row = old_rows()[case]
    stage = fresh(tmp_path / "first", [("A.orders", 0)], row.group)
    await stage.ctx.state.write(row)
    await stage.report.on_source_read({}, {row.group: reported("denied")}, lambda _: True, ReadingTime(0.0, 0))
    again = stage.ctx.state.get(GroupStatus, row.group)
    assert again is not None
    assert again.phase == "failing"
    assert await committed_with(tmp_path / "second", again) == set()


# -- an earlier release wrote the row ----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", sorted(old_rows().keys() - {"exact"}))
async def test_row_of_an_earlier_release_with_a_reason_commits_nothing(tmp_path: Path, case: str) -> None:
    row = old_rows()[case]
    assert await committed_with(tmp_path, row) == set()
    assert not ready_with(row)
    assert not row.is_gone
    reasons = [reason for _, _, reason in row.waits] or [row.stated_cause]
    assert {reason.code for reason in reasons} == {ReasonCode.UNKNOWN}
    assert all(map(format_sentence, reasons)), "its text is shown"


async def test_row_of_an_earlier_release_without_a_reason_is_committed(tmp_path: Path) -> None:
    row = old_rows()["exact"]
    assert await committed_with(tmp_path, row) == {("A.orders", 0), ("A.orders", 1)}
    assert ready_with(row)


# -- an earlier release reads the row ----------------------------------------------------------------------------------


def is_withheld_by_an_earlier_release(text: str) -> bool:
    """Return the answer of `misplaces_checkpoint` at `BEFORE` for the text of a partition."""
    return (
        text.startswith("the topic was created anew on the target")
        or "is beyond the end of the target's log" in text
        or "beyond the exact offset" in text
    )


def row_for(code: ReasonCode) -> GroupStatus:
    """Return a row as this release writes it, with one partition that waits."""
    reason = code.to_reason(offset=500, end=7, checkpoint=500, exact=400, text="text", count=1)
    text = format_sentence(reason)
    waits = {"waiting": (("A.t", 0, text),), "causes": (("A.t", 0, reason),), "reason": f"A.t-0: {text}"}
    return GroupStatus(group=GROUP, phase="translated", positions=(("A.t", 0, 500, 500),), **waits, cause=reason)  # type: ignore[arg-type] # by name


WRONG_SINCE_BEFORE = [
    ReasonCode.TARGET_RECREATED,
    ReasonCode.OPPOSITE_TARGET_RECREATED,
    ReasonCode.BEYOND_TARGET_END,
    ReasonCode.BEYOND_EXACT_OFFSET,
]
"""Codes of what the earlier release knew not to commit. While it can run beside this one, their sentences keep the
words that it looks for."""


def test_sentence_of_a_wrong_checkpoint_has_the_earlier_words() -> None:
    assert not KEEPS_CHECKPOINT & set(WRONG_SINCE_BEFORE)
    for code in WRONG_SINCE_BEFORE:
        assert is_withheld_by_an_earlier_release(row_for(code).waiting[0][2])
    assert reason_catalogue.ReasonCode.GROUP_GONE.sentence == old_rows()["gone"].reason


READS = """
import json, sys
from lockstep_checkpoint.group_view import GroupView
from lockstep_protocol.rows.state_rows import decode_row
for line in sys.stdin:
    key, value = json.loads(line)
    row = decode_row(key.encode(), value.encode())
    view = GroupView.from_row(row, syncs=True)
    again = decode_row(*view.row(row.group, {}).encode())
    print(json.dumps({"gone": row.is_gone, "withheld": sorted(map(list, view.misplaced)), "again": again.group}))
"""


@pytest.mark.long
def test_code_of_before_reads_what_this_one_writes(tmp_path: Path) -> None:
    """It does not crash, and commits no more than it would have by a row of its own."""
    archive = subprocess.run(["git", "archive", BEFORE, "shared", "services"], cwd=REPOSITORY, capture_output=True)
    if archive.returncode:
        pytest.skip(f"the history that is here does not reach back to {BEFORE}")
    subprocess.run(["tar", "-x", "-C", str(tmp_path)], input=archive.stdout, check=True)
    sources = ":".join(map(str, sorted(tmp_path.glob("*/*/src"))))
    gone = GroupStatus(
        group=GROUP, phase="waiting", reason=ReasonCode.GROUP_GONE.sentence, cause=ReasonCode.GROUP_GONE.to_reason()
    )
    rows = [*map(row_for, ReasonCode), gone]
    lines = "".join(json.dumps([part.decode() for part in row.encode()]) + "\n" for row in rows)
    environment = {**os.environ, "PYTHONPATH": sources}
    answer = subprocess.run(
        [sys.executable, "-c", READS], input=lines, env=environment, capture_output=True, text=True, check=True
    )
    read = [json.loads(line) for line in answer.stdout.splitlines()]
    assert [answer_line["gone"] for answer_line in read] == [False] * len(ReasonCode) + [True]
    withheld = {code for code, row in zip(ReasonCode, read, strict=False) if row["withheld"]}
    assert withheld == set(WRONG_SINCE_BEFORE)
