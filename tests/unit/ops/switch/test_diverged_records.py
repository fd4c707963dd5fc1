"""Records that only one cluster has are counted once the slots of the way back have said where they are."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from lockstep_config import FlowSettings
from lockstep_ops.switch import diverged_records
from lockstep_ops.switch.diverged_records import WRITTEN_DOWN_MS, CopiesUnknown, DivergedRecords, find_diverged
from lockstep_ops.switch.switch_log import SwitchLog
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import Assignment, PartitionProgress, Row, SlotStatus
from tests.support.shared_topic import SharedTopic
from tests.support.takeover_rows import rows_of, topic

P0, P1 = ("t", 0), ("t", 1)
SAME = topic(source_topic="t", target_topic="t", partitions=2)
FORTH = [
    PartitionProgress(topic="t", partition=number, upstream=9, downstream=9, sequence=9, open_run=(0, 0, 10))
    for number in (0, 1)
]
"""The flow forth has copied ten records of each partition."""


def copied(until: int, partition: int = 0, **fields: object) -> PartitionProgress:
    """The way back has appended offsets 10 to `until` of the partition there."""
    row = PartitionProgress(
        topic="t",
        partition=partition,
        phase="copying",
        upstream=until - 10,
        downstream=until - 1,
        sequence=until - 11,
        open_run=(0, 10, until - 10),
        producer_id=4,
    )
    return replace(row, **fields)  # type: ignore[arg-type]  # fields of the row


def speaks(at_ms: int, slot: int = 0, **fields: object) -> SlotStatus:
    row = SlotStatus(slot=slot, phase="started", run="r1", resuming=0, generation=1, at_ms=at_ms)
    return replace(row, **fields)  # type: ignore[arg-type]  # fields of the row


FIRST, SECOND = speaks(2_000), speaks(2_000 + WRITTEN_DOWN_MS)


class WayBack:
    """The state topic of the flow back. `later`: what comes, one after the other, while the command waits; `last`: what
    is found when it reads up to the end."""

    def __init__(self, settings: FlowSettings, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(diverged_records, "WRITTEN_DOWN_S", 0.0)
        patch.setattr(diverged_records, "VOUCHED_WITHIN_S", 0.2)
        self._topic = SharedTopic(settings, patch)
        self.log: SwitchLog = self._topic.log()
        self.later: list[Row] = []
        self.last: list[Row] = []
        self.reads = 0
        patch.setattr(self.log, "catch_up_now", self._catch_up_now)
        for row in (SAME, Assignment(slot=0, partitions=(P0,), generation=1), speaks(1_000)):
            self.write(row)

    def write(self, *rows: Row) -> None:
        for row in rows:
            self._topic.write(row)

    async def _catch_up_now(self) -> None:
        self.reads += 1
        self.write(*self.last)

    async def _speak(self) -> None:
        for row in self.later:
            await asyncio.sleep(0.01)
            self.write(row)

    async def find(self, ends: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        diverged = await self.find_records(ends)
        assert not diverged.at_most
        return diverged.counts

    async def find_records(self, ends: Mapping[TopicPartition, int]) -> DivergedRecords:
        speaking = asyncio.ensure_future(self._speak())
        try:
            return await find_diverged(ends, rows_of(SAME, *FORTH), self.log)
        finally:
            speaking.cancel()


@pytest.fixture
def back(settings: Callable[..., FlowSettings], monkeypatch: pytest.MonkeyPatch) -> WayBack:
    return WayBack(settings(), monkeypatch)


async def unknown(back: WayBack, ends: Mapping[TopicPartition, int]) -> CopiesUnknown:
    with pytest.raises(CopiesUnknown) as caught:
        await back.find(ends)
    return caught.value


@pytest.mark.parametrize("end", [5, 10, 20])
async def test_log_that_has_nothing_more_needs_no_word_of_a_slot(back: WayBack, end: int) -> None:
    back.write(copied(20))
    assert await back.find({P0: end}) == {}
    assert back.reads == 0, "nothing is waited for"


@pytest.mark.parametrize(
    ("row", "later", "last", "counts"),
    [
        pytest.param(copied(20), [FIRST, SECOND], [copied(84)], {}, id="copies that come into a row"),
        pytest.param(copied(20), [FIRST, SECOND], [copied(50)], {P0: 34}, id="beyond the row of a live slot"),
        # Its row has the end of the log as the target has it.
        pytest.param(copied(20, phase="stopped", located=True), [], [], {P0: 64}, id="a way back that ended"),
        # The slot was killed, and the next one has found all of it.
        pytest.param(copied(20), [], [copied(84)], {}, id="a silent slot whose row has it"),
    ],
)
async def test_records_are_diverged_that_the_row_of_a_slot_does_not_have(
    back: WayBack, row: PartitionProgress, later: list[Row], last: list[Row], counts: dict[TopicPartition, int]
) -> None:
    back.write(row)
    back.later, back.last = later, last
    assert await back.find({P0: 84}) == counts


@pytest.mark.parametrize(
    "later",
    [
        (),
        (FIRST,),
        (speaks(1_000), speaks(1_000)),
        (FIRST, replace(SECOND, at_ms=SECOND.at_ms - 1)),
        (FIRST, replace(SECOND, run="r2")),
        (FIRST, replace(SECOND, resuming=1)),
        (replace(FIRST, resuming=-1), replace(SECOND, resuming=-1)),
        (replace(FIRST, generation=0), replace(SECOND, generation=0)),
        (FIRST, replace(SECOND, phase="failed")),
        (replace(FIRST, slot=7), replace(SECOND, slot=7)),
    ],
    ids=["silent", "once", "before", "too-soon", "restarted", "resumes", "unsaid", "stale", "failed", "another"],
)
async def test_slot_that_does_not_vouch_leaves_its_tail_unknown(back: WayBack, later: tuple[SlotStatus, ...]) -> None:
    back.write(copied(20))
    back.later = list(later)
    trouble = await unknown(back, {P0: 84})
    assert trouble.counted.counts == {}
    assert "64 records" in str(trouble)
    assert "t-0" in str(trouble)
    assert "is not known" in str(trouble)


async def test_tail_that_a_live_slot_still_counts_is_unknown(back: WayBack) -> None:
    """It found its copies in the log after a restart, and counts past them."""
    back.write(copied(20, uncounted=64))
    back.later = [FIRST, SECOND]
    assert (await unknown(back, {P0: 84})).counted.counts == {}
    back.later = [*(replace(row, at_ms=row.at_ms + 9_000) for row in (FIRST, SECOND)), copied(84)]
    assert await back.find({P0: 84}) == {}


async def test_tail_that_a_slot_counts_leaves_its_other_partitions_known(back: WayBack) -> None:
    back.write(copied(20, phase="halted", uncounted=64), copied(20, partition=1))
    back.write(Assignment(slot=0, partitions=(P0, P1), generation=1))
    back.later = [FIRST, SECOND]
    assert (await unknown(back, {P0: 84, P1: 30})).counted.counts == {P1: 10}


@pytest.mark.parametrize("generation", [1, 3, 4, 5])
async def test_slot_speaks_for_the_assignment_it_has_taken_up(back: WayBack, generation: int) -> None:
    back.write(copied(20), Assignment(slot=0, partitions=(P0,), generation=4))
    back.later = [replace(row, generation=generation) for row in (FIRST, SECOND)]
    if generation < 4:
        assert (await unknown(back, {P0: 84})).counted.counts == {}
    else:
        assert await back.find({P0: 84}) == {P0: 64}


async def test_assignment_that_comes_meanwhile_needs_its_own_word(back: WayBack) -> None:
    """Another slot has taken the partition over, and resumes it."""
    back.write(copied(20))
    moved = Assignment(slot=0, partitions=(), generation=2), Assignment(slot=1, partitions=(P0,), generation=2)
    back.later = [FIRST, *moved, SECOND]
    assert (await unknown(back, {P0: 84})).counted.counts == {}
    back.later = [replace(row, slot=1, generation=2, at_ms=row.at_ms + 9_000) for row in (FIRST, SECOND)]
    assert await back.find({P0: 84}) == {P0: 64}


async def test_partition_without_a_slot_is_unknown(back: WayBack) -> None:
    back.write(copied(20), Assignment(slot=0, partitions=(P0,), generation=1, ending=True))
    back.later = [FIRST, SECOND]
    assert (await unknown(back, {P0: 84})).counted.counts == {}


async def test_one_silent_slot_leaves_what_others_copy_known(back: WayBack) -> None:
    back.write(copied(20), copied(20, partition=1), Assignment(slot=1, partitions=(P1,), generation=1))
    back.later = [FIRST, SECOND]
    trouble = await unknown(back, {P0: 30, P1: 84})
    assert trouble.counted.counts == {P0: 10}
    assert "t-1" in str(trouble)
    assert "t-0" not in str(trouble)
    back.later = [replace(row, slot=1, at_ms=row.at_ms + 9_000) for row in (FIRST, SECOND)]
    back.later += [replace(row, at_ms=row.at_ms + 9_000) for row in (FIRST, SECOND)]
    assert await back.find({P0: 30, P1: 84}) == {P0: 10, P1: 64}


async def test_records_of_before_the_first_copy_are_diverged(back: WayBack) -> None:
    """The way back has no row of the partition: it appends nothing before there is one."""
    assert await back.find({P0: 84}) == {P0: 74}


@pytest.mark.parametrize(
    ("row", "is_exact"),
    [
        (copied(50), True),
        (copied(50, sequence=24, others=((7, 14),)), True),
        (copied(50, sequence=44), False),
        (copied(50, sequence=24, others=((7, 15),)), False),
        (copied(50, open_run=()), False),
        (copied(50, producer_epoch=1), False),
        (copied(50, left_epoch=0), False),
        (copied(50, transactional=True), False),
    ],
    ids=["all", "others", "found-again", "others-found-again", "no-run", "epoch", "own-id-left", "transactions"],
)
async def test_copies_that_no_run_may_name_make_the_number_a_bound(
    back: WayBack, row: PartitionProgress, is_exact: bool
) -> None:
    back.write(row)
    back.later = [FIRST, SECOND]
    diverged = await back.find_records({P0: 84})
    assert diverged.counts[P0] >= 34
    assert (diverged.at_most == frozenset(), "at most" not in diverged.text) == (is_exact, is_exact)


async def test_copies_in_a_topic_that_was_created_again_are_none(back: WayBack) -> None:
    """The runs tell of the log that was deleted."""
    back.write(replace(SAME, source_topic_id="s", target_topic_id="new"))
    back.write(copied(50, target_topic_id="old", phase="halted", located=True))
    assert (await back.find_records({P0: 84})).counts == {P0: 74}


async def test_records_that_retention_has_removed_are_not_diverged(back: WayBack) -> None:
    back.write(copied(20, phase="stopped", located=True))
    diverged = await find_diverged({P0: 84}, rows_of(SAME, *FORTH), back.log, {P0: 80})
    assert diverged.counts == {P0: 4}
