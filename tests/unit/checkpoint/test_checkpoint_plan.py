"""Due checkpoints (`mm2-behaviour.md` §3.6, conformance nos. 33 to 40 and 49 to 57)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_checkpoint.plan import CheckpointPlan, beyond_log_end, is_more_recent, plan_checkpoints, split_by_log_end
from lockstep_rules.filters import NameFilter
from lockstep_rules.groups.group_selection import (
    CheckpointRule,
    Committed,
    consumes_mirrored,
    reverse_source_topic,
    target_topic,
)
from lockstep_rules.offsets.offset_sync_store import OffsetSyncStore
from lockstep_rules.offsets.offset_translator import OffsetTranslator
from lockstep_rules.offsets.run_translator import RunTranslator, TranslatedOffset
from lockstep_rules.policy import DefaultReplicationPolicy, IdentityReplicationPolicy
from lockstep_state.codecs.mm2_codec import Checkpoint, OffsetSync
from lockstep_state.names import Flow
from lockstep_state.offsets import DownstreamOffset, TopicPartition, UpstreamOffset
from lockstep_state.reasons.reason_catalogue import ReasonCode

FLOW = Flow("A", "B")
EVERYTHING = NameFilter((".*",), ())
RULE = CheckpointRule(FLOW, DefaultReplicationPolicy(), EVERYTHING)
GROUP = "billing"
Last = dict[TopicPartition, Checkpoint]


def store(*syncs: tuple[str, int, int, int]) -> OffsetSyncStore:
    """A started store after these syncs (topic, partition, upstream, downstream)."""
    plan = OffsetSyncStore(keep_only_newest=False)
    for at, (topic, partition, upstream, downstream) in enumerate(syncs):
        plan.fold(at, OffsetSync(topic, partition, UpstreamOffset(upstream), DownstreamOffset(downstream)))
    plan.finish_reading()
    return plan


def at(topic: str, partition: int, offset: int | None, metadata: str = "") -> Committed:
    return Committed(topic, partition, None if offset is None else UpstreamOffset(offset), metadata)


def checkpoint(upstream: int, downstream: int, topic: str = "A.orders", **more: Any) -> Checkpoint:
    partition, metadata = more.get("partition", 0), more.get("metadata", "")
    return Checkpoint(GROUP, topic, partition, UpstreamOffset(upstream), DownstreamOffset(downstream), metadata)


def planned(
    syncs: OffsetSyncStore,
    *committed: Committed,
    last: Mapping[TopicPartition, Checkpoint] | None = None,
    rule: CheckpointRule = RULE,
) -> CheckpointPlan:
    return plan_checkpoints(GROUP, committed, last or {}, rule, OffsetTranslator(RunTranslator(), syncs).translate)


class TestNames:
    @pytest.mark.parametrize(
        ("topic", "remote"),
        [("topic3", "source1.topic3"), ("target2.topic3", "topic3"), ("source6.topic7", "source1.source6.topic7")],
    )
    def test_mm2_049_topic_from_the_target_keeps_its_target_name(self, topic: str, remote: str) -> None:
        rule = CheckpointRule(Flow("source1", "target2"), DefaultReplicationPolicy(), EVERYTHING)
        assert target_topic(rule, topic) == remote

    def test_identity_keeps_every_name(self) -> None:
        rule = CheckpointRule(FLOW, IdentityReplicationPolicy(source_alias="A"), EVERYTHING)
        assert target_topic(rule, "orders") == "orders"
        assert target_topic(rule, "B.orders") == "B.orders"


class TestDue:
    @pytest.mark.parametrize(
        ("sync", "committed", "due"),
        [
            (("orders", 0, 3, 4), at("orders", 0, 10), checkpoint(10, 5)),  # past the sync
            (("orders", 0, 7, 11), at("orders", 0, 7), checkpoint(7, 11)),  # exactly at it
            (("orders", 5, 3, 4), at("orders", 5, 3, "from anna"), checkpoint(3, 4, partition=5, metadata="from anna")),
            (("orders", 0, 3, 4), at("orders", 0, None), None),
        ],
    )
    def test_mm2_050_054_offset_is_translated_by_the_nearest_sync(
        self, *, sync: tuple[str, int, int, int], committed: Committed, due: Checkpoint | None
    ) -> None:
        assert planned(store(sync), committed).due == (() if due is None else (due,))

    def test_a_topic_that_the_filter_refuses_gets_none(self) -> None:
        rule = CheckpointRule(FLOW, DefaultReplicationPolicy(), NameFilter(("orders",), ()))
        syncs = store(("orders", 0, 3, 4), ("payments", 0, 3, 4))
        plan = planned(syncs, at("payments", 0, 3), at("orders", 0, 3), rule=rule)
        assert [due.topic for due in plan.due] == ["A.orders"]
        assert [tp for tp, _ in plan.translated_offsets] == [("A.orders", 0)]
        by_remote_name = replace(rule, topics=NameFilter((r"A\.orders",), ()))
        assert planned(syncs, at("orders", 0, 3), rule=by_remote_name).due == (), "the name on the source counts"

    def test_mm2_053_partition_without_offset_sync_is_named_untranslated(self) -> None:
        plan = planned(store(("orders", 0, 3, 4)), at("orders", 1, 3))
        waits = TranslatedOffset(None, reason=ReasonCode.NO_OFFSET_SYNC.to_reason(), by_runs=False)
        assert (plan.due, plan.translated_offsets) == ((), ((("A.orders", 1), waits),))

    def test_offset_below_the_oldest_sync_is_named_untranslated(self) -> None:
        plan = planned(store(("orders", 0, 300, 400)), at("orders", 0, 299))
        assert plan.due == ()
        ((_, translated),) = plan.translated_offsets
        assert translated.reason == ReasonCode.OLDER_THAN_SYNCS.to_reason(offset=299)

    def test_checkpoint_of_other_partitions_is_due_without_a_sync_of_one(self) -> None:
        plan = planned(store(("orders", 0, 3, 4)), at("orders", 1, 3), at("orders", 0, 3))
        assert plan.due == (checkpoint(3, 4),)


class TestMoreRecent:
    @pytest.mark.parametrize(
        ("last", "new", "more_recent"),
        [
            (None, (10, 5), True),
            ((10, 5), (10, 5), False),
            ((10, 5), (11, 5), False),
            ((10, 5), (11, 6), True),
            ((10, 5), (11, 4), False),  # the store lost precision
            ((10, 5), (10, 6), True),  # a sync nearer to the group came in
            ((10, 5), (9, 4), True),  # the group was rewound on the source
            ((10, 5), (9, 5), True),
            ((10, 5), (9, 9), True),
        ],
    )
    def test_checkpoint_is_due_only_if_it_is_more_recent(
        self, *, last: tuple[int, int] | None, new: tuple[int, int], more_recent: bool
    ) -> None:
        assert is_more_recent(checkpoint(*new), None if last is None else checkpoint(*last)) is more_recent

    def test_mm2_055_checkpoint_that_went_back_waits_until_it_catches_up(self) -> None:
        """MirrorCheckpointTaskTest.testCheckpointRecordsMonotonicIfStoreRewinds."""
        last: Last = {}

        def round_(syncs: OffsetSyncStore, upstream: int) -> list[tuple[int, int]]:
            plan = planned(syncs, at("orders", 0, upstream), last=last)
            last.update({due.tp: due for due in plan.due})
            return [(due.upstream, due.downstream) for due in plan.due]

        dense = store(*(("orders", 0, offset, offset) for offset in range(0, 1001, 10)))
        sparse = store(("orders", 0, 500, 500), ("orders", 0, 1000, 1000))
        assert round_(dense, 990) == [(990, 990)]
        assert round_(sparse, 990) == []
        assert round_(sparse, 999) == []
        assert round_(sparse, 1001) == [(1001, 1001)]
        assert round_(sparse, 700) == [(700, 501)]  # rewound on the source: backwards is right

    def test_mm2_056_restart_continues_from_earlier_checkpoints(self) -> None:
        """MirrorCheckpointTaskTest.testCheckpointsTaskRestartUsesExistingCheckpoints."""
        first = store(("orders", 0, 100, 100), ("orders", 0, 200, 200), ("orders", 0, 300, 300))
        (loaded,) = planned(first, at("orders", 0, 250)).due
        assert (loaded.upstream, loaded.downstream) == (250, 201)
        last = {loaded.tp: loaded}
        restarted = store(*(("orders", 0, offset, offset) for offset in (175, 375)))
        assert planned(restarted, at("orders", 0, 250), last=last).due == ()
        assert planned(restarted, at("orders", 0, 370), last=last).due == ()
        assert planned(restarted, at("orders", 0, 400), last=last).due == (checkpoint(400, 376),)


class TestPlaces:
    """What a group's row says of its partitions."""

    @staticmethod
    def place(place: TranslatedOffset, *, last: Mapping[TopicPartition, Checkpoint] | None = None) -> CheckpointPlan:
        return plan_checkpoints(GROUP, [at("orders", 0, 100)], last or {}, RULE, lambda *_: place)

    def test_exact_place_is_reported_with_a_due_or_a_written_checkpoint(self) -> None:
        exact = TranslatedOffset(DownstreamOffset(90))
        for last in ({}, {("A.orders", 0): checkpoint(100, 90)}):
            assert self.place(exact, last=last).translated_offsets == ((("A.orders", 0), exact),)

    def test_checkpoint_beyond_the_exact_place_waits_with_its_reason(self) -> None:
        plan = self.place(TranslatedOffset(DownstreamOffset(40)), last={("A.orders", 0): checkpoint(90, 80)})
        ((_, place),) = plan.translated_offsets
        assert (plan.due, place.offset, place.exact) == ((), None, False)
        assert place.reason == ReasonCode.BEYOND_EXACT_OFFSET.to_reason(checkpoint=80, exact=40)

    @pytest.mark.parametrize(
        "place",
        [TranslatedOffset(DownstreamOffset(40), behind=50), TranslatedOffset(DownstreamOffset(40), by_runs=False)],
    )
    def test_checkpoint_beyond_an_inexact_place_may_be_right(self, place: TranslatedOffset) -> None:
        assert self.place(place, last={("A.orders", 0): checkpoint(90, 80)}).translated_offsets == (
            (("A.orders", 0), place),
        )

    def test_a_checkpoint_beyond_the_exact_place_goes_back_with_the_group(self) -> None:
        plan = self.place(TranslatedOffset(DownstreamOffset(40)), last={("A.orders", 0): checkpoint(101, 80)})
        assert plan.due == (checkpoint(100, 40),)


class TestLogEnds:
    def test_checkpoint_beyond_the_end_of_the_target_log_is_not_written(self) -> None:
        due = checkpoint(9, 5), checkpoint(9, 6, partition=1), checkpoint(9, 6, partition=2)
        kept, others = split_by_log_end(due, {("A.orders", 0): 5, ("A.orders", 1): 5})
        assert (kept, others) == (due[:1], due[1:])

    def test_checkpoint_beyond_the_log_end_waits_with_its_reason(self) -> None:
        ends = {("A.orders", 0): 5}
        assert beyond_log_end(checkpoint(9, 6), ends).reason == ReasonCode.BEYOND_TARGET_END.to_reason(offset=6, end=5)
        assert beyond_log_end(checkpoint(9, 6), {}).reason == ReasonCode.TARGET_END_UNKNOWN.to_reason()


class TestGroups:
    def test_mm2_040_a_group_counts_when_one_of_its_topics_passes(self) -> None:
        only = replace(RULE, topics=NameFilter(("orders",), ()))
        assert consumes_mirrored([at("payments", 0, 1), at("orders", 0, 1)], only)
        assert not consumes_mirrored([at("payments", 0, 1)], only)
        assert not consumes_mirrored([], only)

    def test_checkpoint_of_the_reverse_flow_counts_if_its_own_topic_passes(self) -> None:
        only = replace(RULE, topics=NameFilter(("orders",), ()))
        assert not only.counts("B.orders")
        assert replace(only, fails_back=True).counts("B.orders")
        assert not replace(only, fails_back=True).counts("B.payments")
        assert not replace(only, fails_back=True).counts("C.orders")

    def test_topic_from_the_target_is_known_by_its_name(self) -> None:
        assert reverse_source_topic(RULE, "B.orders") == "orders"
        assert reverse_source_topic(RULE, "orders") is None
        assert reverse_source_topic(RULE, "C.orders") is None
        assert reverse_source_topic(replace(RULE, policy=IdentityReplicationPolicy()), "orders") == "orders"


ROUNDS = st.lists(st.tuples(st.integers(0, 400), st.lists(st.integers(1, 60), max_size=5)), min_size=1, max_size=40)


@given(ROUNDS)
def test_checkpoints_only_go_back_when_the_group_does(rounds: list[tuple[int, list[int]]]) -> None:
    syncs = OffsetSyncStore(keep_only_newest=False)
    syncs.finish_reading()
    last: Last = {}
    position = newest = 0
    for upstream, steps in rounds:
        for step in steps:
            newest += step
            position += 1
            syncs.fold(position, OffsetSync("orders", 0, UpstreamOffset(newest), DownstreamOffset(newest)))
        for due in planned(syncs, at("orders", 0, upstream), last=last).due:
            before = last.get(due.tp)
            assert due.downstream <= due.upstream  # never beyond the group in a log copied one to one
            assert before is None or due.downstream > before.downstream or due.upstream < before.upstream
            last[due.tp] = due
        assert planned(syncs, at("orders", 0, upstream), last=last).due == ()
