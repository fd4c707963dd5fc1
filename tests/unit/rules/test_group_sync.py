"""Group offsets are written forwards only, to groups without members (`mm2-behaviour.md` §3.7, nos. 51, 52)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_rules.groups.group_selection import GroupMembership
from lockstep_rules.groups.group_sync import (
    Ahead,
    GroupSync,
    TargetGroupState,
    find_rewinds,
    find_unread,
    plan_group_sync,
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
    return {write.partition: int(write.downstream) for write in sync.writes}


class TestTwoReads:
    @pytest.mark.parametrize(
        ("before", "now", "reason"),
        [
            (None, ABSENT, ReasonCode.TARGET_GROUP_FIRST_READ),
            (ACTIVE, empty(3), ReasonCode.TARGET_GROUP_WAS_ACTIVE),
            *((before, empty(3), ReasonCode.TARGET_GROUP_MOVED) for before in (ABSENT, empty(), empty(2), empty(3, 1))),
        ],
    )
    def test_group_not_read_twice_without_members_is_left_alone(
        self, before: TargetGroupState | None, now: TargetGroupState, reason: ReasonCode
    ) -> None:
        assert plan_group_sync(checkpoints(5), before, now, TOPICS) == GroupSync(left_alone=reason.to_reason())

    @pytest.mark.parametrize("before", [None, ABSENT, ACTIVE, empty(1)])
    def test_group_with_members_is_not_written(self, before: TargetGroupState | None) -> None:
        assert plan_group_sync(checkpoints(5), before, ACTIVE, TOPICS).writes == ()


class TestForwardsOnly:
    @pytest.mark.parametrize(
        ("downstream", "state", "topics", "writes"),
        [
            pytest.param((5, 6), ABSENT, TOPICS, {0: 5, 1: 6}, id="absent"),
            pytest.param((101, 51), empty(100, 50), TOPICS, {0: 101, 1: 51}, id="mm2-051, empty"),
            pytest.param((101, 51), empty(100, 200), TOPICS, {0: 101}, id="one partition ahead"),
            pytest.param((5, 6), empty(5), TOPICS, {1: 6}, id="mm2-052, no offset"),
            pytest.param((5,), empty(None), TOPICS, {0: 5}, id="mm2-052, offset was deleted"),
            pytest.param((5, 6), ABSENT, {"A.orders": 1}, {0: 5}, id="partition not on the target"),
            pytest.param((5, 6), ABSENT, {}, {}, id="topic not on the target"),
        ],
    )
    def test_mm2_051_052_each_partition_behind_its_checkpoint_is_written(
        self, downstream: tuple[int, ...], state: TargetGroupState, topics: dict[str, int], writes: dict[int, int]
    ) -> None:
        assert written(plan_group_sync(checkpoints(*downstream), state, state, topics)) == writes

    def test_a_group_at_or_beyond_its_checkpoint_is_not_rewound(self) -> None:
        state = empty(101, 200)
        sync = plan_group_sync(checkpoints(101, 51), state, state, TOPICS)
        assert sync == GroupSync(ahead=(Ahead(("A.orders", 1), 200, 51, AHEAD_ON_TARGET),))


P0 = ("A.orders", 0)


class TestAhead:
    """The group's offset is beyond its checkpoint: consumers that move to the target would skip records."""

    @pytest.mark.parametrize(
        ("offset", "downstream", "rewound", "follow", "state"),
        [
            (990, 500, {}, False, AHEAD_ON_TARGET),
            (990, 500, {}, True, AHEAD_ON_TARGET),
            (900, 100, {P0: 900}, False, REWOUND_ON_SOURCE),
            (901, 100, {P0: 900}, True, AHEAD_ON_TARGET),
            (990, 100, {P0: 900}, True, AHEAD_ON_TARGET),
        ],
    )
    def test_group_ahead_of_its_checkpoint_is_reported_and_not_written(
        self, offset: int, downstream: int, rewound: dict[TopicPartition, int], follow: bool, state: str
    ) -> None:
        sync = plan_group_sync(checkpoints(downstream), empty(offset), empty(offset), TOPICS, rewound, follow=follow)
        assert sync == GroupSync(ahead=(Ahead(P0, offset, downstream, state),))

    def test_ahead_is_a_sentence_with_both_offsets(self) -> None:
        ahead = Ahead(P0, 900, 100, REWOUND_ON_SOURCE)
        assert str(ahead) == "A.orders-0 is rewound on source: its offset is 900, the translated offset is 100"

    def test_follow_resets_a_rewound_group(self) -> None:
        sync = plan_group_sync(checkpoints(100), empty(900), empty(900), TOPICS, {P0: 900}, follow=True)
        assert (written(sync), sync.ahead) == ({0: 100}, ())

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


@pytest.mark.parametrize(
    ("rewound", "before", "now", "after"),
    [
        pytest.param({}, {P0: (900, 800)}, at(100, 90), {P0: 800}, id="back on the source"),
        *(pytest.param({}, {P0: (900, 800)}, now, {}) for now in (at(900, 800), at(950, 850), {})),
        pytest.param({}, {}, at(100, 90), {}, id="first checkpoint"),
        pytest.param({P0: 800}, {P0: (100, 90)}, at(600, 590), {P0: 800}, id="not caught up"),
        pytest.param({P0: 800}, {P0: (600, 590)}, at(300, 290), {P0: 800}, id="the furthest offset counts"),
        pytest.param({P0: 800}, {P0: (600, 590)}, {}, {P0: 800}, id="checkpoints not read yet"),
        pytest.param({P0: 800}, {P0: (600, 590)}, at(900, 800), {}, id="caught up"),
    ],
)
def test_rewinds_keep_a_partition_until_it_catches_up(
    rewound: dict[TopicPartition, int],
    before: dict[TopicPartition, tuple[int, int]],
    now: dict[TopicPartition, Checkpoint],
    after: dict[TopicPartition, int],
) -> None:
    assert find_rewinds(rewound, before, now) == after


class TestOwnWrites:
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
        (offset.topic, offset.partition)
        for offset in wanted
        if (state.offsets.get((offset.topic, offset.partition)) or 0) > offset.downstream
    }
    kept = plan_group_sync(wanted, state, state, TOPICS, rewound)
    assert {partition.tp for partition in kept.ahead} == beyond
    followed = plan_group_sync(wanted, state, state, TOPICS, rewound, follow=True)
    back = {partition.tp for partition in kept.ahead if partition.state == REWOUND_ON_SOURCE}
    assert {partition.tp for partition in followed.ahead} == beyond - back
    assert {(write.topic, write.partition) for write in followed.writes} & beyond == back
    assert all((state.offsets[tp] or 0) <= rewound[tp] for tp in back)


@given(CHECKPOINTS, QUIET)
def test_syncing_twice_writes_nothing_more(wanted: list[Checkpoint], state: TargetGroupState) -> None:
    first = plan_group_sync(wanted, state, state, TOPICS)
    settled = with_writes(state, first.writes)
    assert plan_group_sync(wanted, settled, settled, TOPICS).writes == ()


# -- what the reverse flow has written ---------------------------------------------------------------------------------

AT_10 = TargetGroupState(GroupMembership.EMPTY, {("orders", 0): 10})
NO_OFFSET = TargetGroupState(GroupMembership.EMPTY, {("orders", 0): None})


def status(offset: int, *, rewound: int = -1) -> GroupStatus:
    """The row of the reverse flow A->B: the group is at `offset` of A.orders."""
    marks = () if rewound < 0 else (("A.orders", 0, rewound),)
    return GroupStatus(group="billing", phase="translated", positions=(("A.orders", 0, offset, offset),), rewound=marks)


@pytest.mark.parametrize(
    ("row", "offset", "now", "writes"),
    [
        pytest.param(status(40), 40, AT_10, {}, id="set back on the target"),
        pytest.param(status(10, rewound=40), 40, AT_10, {}, id="set back, and rewound"),
        pytest.param(status(40), 41, AT_10, {0: 41}, id="has read on the source"),
        pytest.param(status(10, rewound=40), 41, AT_10, {0: 41}, id="rewound, and has read on the source"),
        pytest.param(status(40), 40, NO_OFFSET, {0: 40}, id="no offset on the target"),
    ],
)
def test_group_moves_on_the_target_only_after_it_read_on_the_source(
    row: GroupStatus, offset: int, now: TargetGroupState, writes: dict[int, int]
) -> None:
    """The group's offset on the source B is `offset` of A.orders, which is the same of orders on the target A."""
    back = [Checkpoint("billing", "orders", 0, UpstreamOffset(offset), DownstreamOffset(offset), "")]
    unread = find_unread(row, back, {"orders": "A.orders"}.get)
    assert written(plan_group_sync(back, now, now, {"orders": 1}, unread=unread)) == writes


def test_checkpoint_of_a_topic_of_the_source_itself_is_never_unread() -> None:
    own = [Checkpoint("billing", "B.orders", 0, UpstreamOffset(5), DownstreamOffset(5), "")]
    assert find_unread(status(40), own, {"orders": "A.orders"}.get) == frozenset()
