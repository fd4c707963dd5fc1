"""A group on the target is moved forwards, while nobody is in it, and never otherwise (`mm2-behaviour.md` §3.7, nos.
51, 52)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_rules.groups.group_selection import GroupMembership
from lockstep_rules.groups.group_sync import (
    Ahead,
    GroupSync,
    TargetGroupState,
    find_unread,
    plan_group_sync,
    rewinds,
    with_writes,
)
from lockstep_state.codecs.mm2_codec import Checkpoint
from lockstep_state.offsets import DownstreamOffset, TopicPartition, UpstreamOffset
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.group_rows import AHEAD_ON_TARGET, REWOUND_ON_SOURCE
from lockstep_state.rows.state_rows import GroupStatus

ABSENT = TargetGroupState(GroupMembership.ABSENT)
ACTIVE = TargetGroupState(GroupMembership.ACTIVE)
TOPICS = {"A.orders": 4}


def empty(*offsets: int | None) -> TargetGroupState:
    """An EMPTY group with these offsets for partitions 0, 1 ... of A.orders."""
    return TargetGroupState(
        GroupMembership.EMPTY, {("A.orders", partition): offset for partition, offset in enumerate(offsets)}
    )


def checkpoints(*downstream: int) -> list[Checkpoint]:
    return [
        Checkpoint("billing", "A.orders", partition, UpstreamOffset(1000), DownstreamOffset(offset), "")
        for partition, offset in enumerate(downstream)
    ]


def written(sync: GroupSync) -> dict[int, int]:
    return {one.partition: int(one.downstream) for one in sync.writes}


class TestTwoLooks:
    def test_a_group_seen_for_the_first_time_is_left_alone(self) -> None:
        sync = plan_group_sync(checkpoints(5), None, ABSENT, TOPICS)
        assert sync == GroupSync(left_alone=ReasonCode.TARGET_GROUP_FIRST_READ.to_reason())

    def test_a_group_absent_twice_appears_with_every_checkpoint(self) -> None:
        assert written(plan_group_sync(checkpoints(5, 6), ABSENT, ABSENT, TOPICS)) == {0: 5, 1: 6}

    def test_a_group_with_members_is_left_alone(self) -> None:
        for before in (None, ABSENT, ACTIVE, empty(1)):
            assert plan_group_sync(checkpoints(5), before, ACTIVE, TOPICS).writes == ()

    def test_group_sync_skips_a_group_that_had_members_a_moment_ago(self) -> None:
        sync = plan_group_sync(checkpoints(5), ACTIVE, empty(3), TOPICS)
        assert sync == GroupSync(left_alone=ReasonCode.TARGET_GROUP_WAS_ACTIVE.to_reason())

    @pytest.mark.parametrize("before", [ABSENT, empty(), empty(2), empty(3, 1)])
    def test_group_sync_skips_a_group_whose_offsets_just_changed(self, before: TargetGroupState) -> None:
        sync = plan_group_sync(checkpoints(5), before, empty(3), TOPICS)
        assert sync == GroupSync(left_alone=ReasonCode.TARGET_GROUP_MOVED.to_reason())

    def test_mm2_051_a_quiet_empty_group_is_advanced(self) -> None:
        assert written(plan_group_sync(checkpoints(101, 51), empty(100, 50), empty(100, 50), TOPICS)) == {0: 101, 1: 51}


class TestForwardsOnly:
    def test_a_group_at_or_beyond_its_checkpoint_is_not_rewound(self) -> None:
        state = empty(101, 200)
        sync = plan_group_sync(checkpoints(101, 51), state, state, TOPICS)
        assert sync == GroupSync(ahead=(Ahead(("A.orders", 1), 200, 51, AHEAD_ON_TARGET),))

    def test_each_partition_decides_for_itself(self) -> None:
        state = empty(100, 200)
        assert written(plan_group_sync(checkpoints(101, 51), state, state, TOPICS)) == {0: 101}

    def test_mm2_052_a_partition_the_group_has_no_offset_for_is_written(self) -> None:
        assert written(plan_group_sync(checkpoints(5, 6), empty(5), empty(5), TOPICS)) == {1: 6}

    def test_mm2_052_an_offset_that_was_reset_away_is_written(self) -> None:
        assert written(plan_group_sync(checkpoints(5), empty(None), empty(None), TOPICS)) == {0: 5}

    def test_partitions_the_target_no_longer_has_do_not_stop_the_others(self) -> None:
        assert written(plan_group_sync(checkpoints(5, 6), ABSENT, ABSENT, {"A.orders": 1})) == {0: 5}
        assert plan_group_sync(checkpoints(5, 6), ABSENT, ABSENT, {}).writes == ()


P0 = ("A.orders", 0)


class TestBeyondItsPlace:
    """Consumers that move to the target skip records."""

    def test_group_sync_skips_a_group_ahead_on_the_target_even_with_follow(self) -> None:
        for follow in (False, True):
            sync = plan_group_sync(checkpoints(500), empty(990), empty(990), TOPICS, follow=follow)
            assert sync == GroupSync(ahead=(Ahead(P0, 990, 500, AHEAD_ON_TARGET),))

    def test_a_group_that_went_back_on_the_source_is_named_and_stays(self) -> None:
        sync = plan_group_sync(checkpoints(100), empty(900), empty(900), TOPICS, {P0: 900})
        assert sync == GroupSync(ahead=(Ahead(P0, 900, 100, REWOUND_ON_SOURCE),))
        assert str(sync.ahead[0]) == "A.orders-0 is rewound on source: its offset is 900, the translated offset is 100"

    def test_follow_resets_a_rewound_group(self) -> None:
        sync = plan_group_sync(checkpoints(100), empty(900), empty(900), TOPICS, {P0: 900}, follow=True)
        assert (written(sync), sync.ahead) == ({0: 100}, ())

    def test_follow_skips_a_group_that_moved_by_itself(self) -> None:
        for offsets in (901, 990):
            state = empty(offsets)
            sync = plan_group_sync(checkpoints(100), state, state, TOPICS, {P0: 900}, follow=True)
            assert (sync.writes, sync.ahead[0].state) == ((), AHEAD_ON_TARGET)

    @pytest.mark.parametrize("before", [None, ACTIVE, empty(899)])
    def test_follow_skips_a_group_not_seen_empty_and_unchanged_twice(self, before: TargetGroupState | None) -> None:
        sync = plan_group_sync(checkpoints(100), before, empty(900), TOPICS, {P0: 900}, follow=True)
        assert sync.writes == ()
        assert sync.ahead == (Ahead(P0, 900, 100, REWOUND_ON_SOURCE),)
        assert plan_group_sync(checkpoints(100), before, ACTIVE, TOPICS, {P0: 900}, follow=True).writes == ()

    def test_a_partition_that_the_target_has_no_more_skips_nothing(self) -> None:
        assert plan_group_sync(checkpoints(100), empty(900), empty(900), {}, {P0: 900}).ahead == ()


def at(upstream: int, downstream: int) -> dict[TopicPartition, Checkpoint]:
    return {P0: Checkpoint("billing", *P0, UpstreamOffset(upstream), DownstreamOffset(downstream), "")}


class TestRewinds:
    def test_a_checkpoint_further_back_on_the_source_is_one(self) -> None:
        assert rewinds({}, {P0: (900, 800)}, at(100, 90)) == {P0: 800}

    def test_rewinds_ignore_a_group_that_moved_on_or_stayed(self) -> None:
        for now in (at(900, 800), at(950, 850), {}):
            assert rewinds({}, {P0: (900, 800)}, now) == {}
        assert rewinds({}, {}, at(100, 90)) == {}

    def test_rewinds_keep_a_group_until_it_catches_up(self) -> None:
        known = rewinds({}, {P0: (900, 800)}, at(100, 90))
        assert rewinds(known, {P0: (100, 90)}, at(600, 590)) == {P0: 800}
        assert rewinds(known, {P0: (600, 590)}, at(300, 290)) == {P0: 800}, "the furthest place counts"
        assert rewinds(known, {P0: (600, 590)}, {}) == {P0: 800}, "checkpoints may just be read anew"
        assert rewinds(known, {P0: (600, 590)}, at(900, 800)) == {}


class TestAfterwards:
    def test_group_sync_does_not_take_its_own_write_as_a_foreign_change(self) -> None:
        sync = plan_group_sync(checkpoints(5), ABSENT, ABSENT, TOPICS)
        remembered = with_writes(ABSENT, sync.writes)
        assert remembered == empty(5)
        assert written(plan_group_sync(checkpoints(9), remembered, empty(5), TOPICS)) == {0: 9}

    def test_group_state_without_a_write_is_remembered_unchanged(self) -> None:
        assert with_writes(ABSENT, ()) == ABSENT
        assert with_writes(empty(3), ()) == empty(3)


OFFSETS = st.dictionaries(st.tuples(st.just("A.orders"), st.integers(0, 3)), st.integers(0, 20) | st.none(), max_size=4)
QUIET = st.just(ABSENT) | st.builds(TargetGroupState, st.just(GroupMembership.EMPTY), OFFSETS)
STATES = QUIET | st.just(ACTIVE)
CHECKPOINTS = st.lists(st.integers(0, 20), max_size=4).map(lambda offsets: checkpoints(*offsets))


@given(CHECKPOINTS, STATES | st.none(), STATES)
def test_no_write_ever_rewinds_or_touches_a_group_that_moves(
    wanted: list[Checkpoint], before: TargetGroupState | None, now: TargetGroupState
) -> None:
    for write in plan_group_sync(wanted, before, now, TOPICS).writes:
        assert before is not None
        assert GroupMembership.ACTIVE not in (before.membership, now.membership)
        assert before.offsets == now.offsets
        offset = now.offsets.get((write.topic, write.partition))
        assert offset is None or offset < write.downstream


@given(CHECKPOINTS, QUIET, st.dictionaries(st.tuples(st.just("A.orders"), st.integers(0, 3)), st.integers(0, 20)))
def test_each_partition_beyond_its_place_is_named_or_set_back(
    wanted: list[Checkpoint], state: TargetGroupState, rewound: dict[TopicPartition, int]
) -> None:
    beyond = {
        (one.topic, one.partition)
        for one in wanted
        if (state.offsets.get((one.topic, one.partition)) or 0) > one.downstream
    }
    kept = plan_group_sync(wanted, state, state, TOPICS, rewound)
    assert {one.tp for one in kept.ahead} == beyond
    followed = plan_group_sync(wanted, state, state, TOPICS, rewound, follow=True)
    back = {one.tp for one in kept.ahead if one.state == REWOUND_ON_SOURCE}
    assert {one.tp for one in followed.ahead} == beyond - back
    assert {(one.topic, one.partition) for one in followed.writes} & beyond == back
    assert all((state.offsets[where] or 0) <= rewound[where] for where in back)


@given(CHECKPOINTS, QUIET)
def test_syncing_twice_writes_nothing_more(wanted: list[Checkpoint], state: TargetGroupState) -> None:
    first = plan_group_sync(wanted, state, state, TOPICS)
    settled = with_writes(state, first.writes)
    assert plan_group_sync(wanted, settled, settled, TOPICS).writes == ()


# -- what the opposite flow has placed ---------------------------------------------------------------------------------

BACK = TargetGroupState(GroupMembership.EMPTY, {("orders", 0): 10})


def came_back(upstream: int, downstream: int) -> list[Checkpoint]:
    """The group reads `upstream` of A.orders on the source B next, which is `downstream` of orders on the target A."""
    return [Checkpoint("billing", "orders", 0, UpstreamOffset(upstream), DownstreamOffset(downstream), "")]


def placed(at: int, *, rewound: int = -1) -> GroupStatus:
    """What A->B has written of the group: it is at `at` of A.orders."""
    marks = () if rewound < 0 else (("A.orders", 0, rewound),)
    return GroupStatus(group="billing", phase="translated", positions=(("A.orders", 0, at, at),), rewound=marks)


def moved(row: GroupStatus, checkpoint: list[Checkpoint], now: TargetGroupState = BACK) -> dict[int, int]:
    unread = find_unread(row, checkpoint, {"orders": "A.orders"}.get)
    return written(plan_group_sync(checkpoint, now, now, {"orders": 1}, unread=unread))


@pytest.mark.parametrize("row", [placed(40), placed(10, rewound=40)])
def test_group_set_back_on_the_target_stays_if_nobody_read_elsewhere(row: GroupStatus) -> None:
    assert moved(row, came_back(40, 40)) == {}


def test_group_that_read_on_the_source_moves_on_the_target() -> None:
    assert moved(placed(40), came_back(41, 41)) == {0: 41}
    assert moved(placed(10, rewound=40), came_back(41, 41)) == {0: 41}


def test_group_without_an_offset_on_the_target_gets_its_place_back() -> None:
    gone = TargetGroupState(GroupMembership.EMPTY, {("orders", 0): None})
    assert moved(placed(40), came_back(40, 40), gone) == {0: 40}


def test_checkpoint_of_a_topic_of_the_source_itself_is_never_unread() -> None:
    own = [Checkpoint("billing", "B.orders", 0, UpstreamOffset(5), DownstreamOffset(5), "")]
    assert find_unread(placed(40), own, {"orders": "A.orders"}.get) == frozenset()
