"""Group offsets beyond the source's log, and before the first record of a copy."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from lockstep_checkpoint.log_bounds import mark_beyond, read_begins
from lockstep_checkpoint.plan import KEEPS_CHECKPOINT, plan_checkpoints
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.errors import ClusterError
from lockstep_rules.filters import NameFilter
from lockstep_rules.groups.group_selection import CheckpointRule, Committed
from lockstep_rules.offsets.offset_sync_store import OffsetSyncStore
from lockstep_rules.offsets.offset_translator import OffsetTranslator
from lockstep_rules.offsets.run_translator import RunTranslator, TranslatedOffset
from lockstep_rules.policy import DefaultReplicationPolicy
from lockstep_state.names import Flow
from lockstep_state.offsets import DownstreamOffset, TopicPartition, UpstreamOffset
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress

RULE = CheckpointRule(Flow("A", "B"), DefaultReplicationPolicy(), NameFilter((".*",), ()))
TOPIC = MirroredTopic(source_topic="t", target_topic="A.t", source_topic_id="s", target_topic_id="d")
COPIED = PartitionProgress(
    topic="t",
    partition=0,
    upstream=99,
    downstream=99,
    producer_id=7,
    sequence=99,
    source_topic_id="s",
    target_topic_id="d",
    open_run=(0, 0, 100),
    source_end=100,
)
LATE = replace(COPIED, upstream=1079, open_run=(980, 0, 100), source_end=1080)
"""The source's log began at 980."""
FAR = 10**12


class Logs(Admin):
    """A cluster whose logs begin and end where a test wants."""

    def __init__(self, ends: dict[TopicPartition, int], begins: dict[TopicPartition, int] | None = None) -> None:
        super().__init__("A", {"bootstrap.servers": "127.0.0.1:1"})
        self.ends, self.begins = ends, begins or {}
        self.asked: list[set[TopicPartition]] = []

    async def end_offsets_or_troubles(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, ClusterError]]:
        self.asked.append(set(partitions))
        return {tp: self.ends[tp] for tp in self.asked[-1] if tp in self.ends}, {}

    async def begin_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        self.asked.append(set(partitions))
        return {tp: self.begins[tp] for tp in self.asked[-1] if tp in self.begins}


def exact(*rows: Any) -> RunTranslator:
    runs = RunTranslator()
    runs.load(rows)
    return runs


def at(offset: int, topic: str = "t") -> tuple[Committed, ...]:
    return (Committed(topic, 0, UpstreamOffset(offset)),)


def syncs() -> OffsetSyncStore:
    store = OffsetSyncStore(keep_only_newest=False)
    store.finish_reading()
    return store


async def planned(offset: int, source: Logs, runs: RunTranslator) -> TranslatedOffset:
    positions = await mark_beyond(source, {"g": at(offset)}, RULE, runs)
    translator = OffsetTranslator(runs, syncs())
    plan = plan_checkpoints("g", positions["g"], {}, RULE, translator.translate)
    ((_, place),) = plan.translated_offsets
    assert bool(plan.due) is (place.offset is not None)
    return place


# -- beyond the source's log -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [101, 151, FAR, 2**63 - 1])
async def test_offset_beyond_the_source_log_waits_and_is_not_written(offset: int) -> None:
    place = await planned(offset, Logs({("t", 0): 100}), exact(TOPIC, COPIED))
    assert place.reason == ReasonCode.BEYOND_SOURCE_END.to_reason(offset=offset, end=100)
    assert place.reason.code not in KEEPS_CHECKPOINT


@pytest.mark.parametrize(
    ("offset", "end", "translated", "behind"),
    [(0, None, 0, 0), (50, None, 50, 0), (100, None, 100, 0), (150, 150, 100, 50)],
)
async def test_offset_within_the_source_log_is_translated(
    offset: int, end: int | None, translated: int, behind: int
) -> None:
    """The source is asked for the log end only of an offset that is not copied yet."""
    source = Logs({} if end is None else {("t", 0): end})
    place = await planned(offset, source, exact(TOPIC, COPIED))
    assert (place.offset, place.behind) == (translated, behind)
    assert source.asked == ([] if end is None else [{("t", 0)}])


async def test_offset_whose_log_has_no_end_now_waits() -> None:
    place = await planned(FAR, Logs({}), exact(TOPIC, COPIED))
    assert place.reason == ReasonCode.SOURCE_END_UNKNOWN.to_reason(offset=FAR)


async def test_offset_of_a_topic_that_is_not_mirrored_asks_no_cluster() -> None:
    source, positions = Logs({}), {"g": at(FAR, "other")}
    rule = replace(RULE, topics=NameFilter(("t",), ()))
    assert await mark_beyond(source, positions, rule, exact(TOPIC, COPIED)) == positions
    assert source.asked == []


async def test_offset_by_syncs_alone_beyond_the_log_waits() -> None:
    """Without rows of the data plane, as after a takeover."""
    place = await planned(FAR, Logs({("t", 0): 100}), exact(TOPIC))
    assert place.offset is None


async def test_other_offsets_of_a_suspect_log_are_not_marked() -> None:
    source = Logs({("t", 0): 120})
    positions = {"far": at(FAR), "near": at(110), "old": at(3)}
    marked = await mark_beyond(source, positions, RULE, exact(TOPIC, COPIED))
    assert {group: every[0].log_end for group, every in marked.items()} == {"far": 120, "near": None, "old": None}


async def test_offset_within_the_log_of_a_new_topic_is_asked_anew() -> None:
    """What was copied of the former one says nothing."""
    source = Logs({("t", 0): 3})
    runs = exact(replace(TOPIC, source_topic_id="new"), COPIED)
    (marked,) = (await mark_beyond(source, {"g": at(50)}, RULE, runs))["g"]
    assert marked.log_end == 3


# -- before the first record of a copy ---------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0, 500, 979, 980])
def test_group_before_the_first_copied_record_is_at_it(offset: int) -> None:
    translator = OffsetTranslator(exact(TOPIC, LATE), syncs())
    assert translator.translate("t", 0, UpstreamOffset(offset)) == TranslatedOffset(DownstreamOffset(0))


KNOWN_FROM_200 = replace(LATE, downstream=299, open_run=(980, 200, 100))
"""Something is on the target before the first known run: 200 records, or nothing any more."""


@pytest.mark.parametrize(("begin", "place"), [(200, 200), (250, 250), (199, None), (0, None)])
async def test_group_before_the_first_known_record_follows_the_log_start(begin: int, place: int | None) -> None:
    runs, target = exact(TOPIC, KNOWN_FROM_200), Logs({}, {("A.t", 0): begin})
    begins = await read_begins(target, {"g": at(500)}, RULE, runs)
    assert begins == {("t", 0): begin}
    translated = OffsetTranslator(runs, syncs(), begins=begins).translate("t", 0, UpstreamOffset(500))
    assert (translated.offset, translated.exact) == (place, place is not None)


async def test_target_without_an_answer_leaves_the_place_unknown() -> None:
    runs = exact(TOPIC, KNOWN_FROM_200)
    begins = await read_begins(Logs({}), {"g": at(500)}, RULE, runs)
    translated = OffsetTranslator(runs, syncs(), begins=begins).translate("t", 0, UpstreamOffset(500))
    assert translated.reason.code == ReasonCode.NO_OFFSET_SYNC


async def test_group_within_the_copy_asks_the_target_nothing() -> None:
    target = Logs({})
    assert await read_begins(target, {"g": at(1000)}, RULE, exact(TOPIC, LATE)) == {}
    assert target.asked == []


async def test_round_translates_no_position_to_find_logs_that_begin_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of groups read the same partitions."""
    runs = exact(TOPIC, replace(LATE, downstream=1079, open_run=(980, 980, 100)))
    target = Logs({}, {("A.t", 0): 3})
    monkeypatch.setattr(runs, "translate", lambda *_: pytest.fail("a position was translated"))
    groups = {f"g-{number}": at(980 + number % 90) for number in range(1_000)}
    assert await read_begins(target, groups, RULE, runs) == {}
    assert target.asked == []
    assert await read_begins(target, groups | {"late": at(979)}, RULE, runs) == {("t", 0): 3}
