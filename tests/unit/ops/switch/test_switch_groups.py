"""Verdicts of a switch on groups, by their rows and by what both clusters say of them."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep_ops.switch.group_positions import GroupAtSource, GroupVerdict, Prospect, groups_text, judge_groups
from lockstep_ops.switch.switch_check import about_topics
from lockstep_ops.switch.switch_positions import groups_known_until
from lockstep_rules.groups.group_readings import GroupReadings
from lockstep_state.reasons.switch_reason import Blocker, SwitchReason
from lockstep_state.rows.state_rows import GroupStatus
from tests.support.source_groups import groups_read_at
from tests.support.takeover_rows import rows_of, topic

T = topic(partitions=2)
ENDS = {("t", 0): 10, ("t", 1): 5}
PLACES = (("A.t", 0, 10, 12), ("A.t", 1, 5, 5))
READ = GroupAtSource(ENDS)
AHEAD = ("A.t", 0, 20, 12, "ahead-on-target")
READ_MS = 1_700_000_003_000
BY_POSITION = "by its position of 2023-11-14T22:13:23.000+00:00"


def group(**fields: Any) -> GroupStatus:
    """At its exact place on the target, unless `fields` say otherwise."""
    fields_by_default = {"group": "g", "phase": "translated", "synced": True, "positions": PLACES, "exact": 2}
    return GroupStatus(**{**fields_by_default, **fields})


def judged(row: GroupStatus, source: GroupAtSource | None = READ, members: tuple[str, ...] = ()) -> GroupVerdict:
    """The verdict on the only group; without `source` that cluster is gone."""
    at_source = {} if source is None else {row.group: source}
    (verdict,) = judge_groups([row], at_source, {row.group: members} if members else {}, [T], ENDS)
    return verdict


UNREAD = GroupAtSource({("t", 0): 9, ("t", 1): 1}, ("app",))
NOT_MOVED = "it is not moved on the target yet"
ELSEWHERE = ("A.u", 0, "no run")
BEHIND = (("A.u", 0, 1_000), ("A.t", 0, 900), ("A.t", 1, 200))


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (group(), GroupVerdict("g", "exact", "", 0, 2)),
        (group(phase="failing", positions=()), GroupVerdict("g", "waiting", "it fails")),
        (group(phase="failing", reason="no right", positions=()), GroupVerdict("g", "waiting", "no right")),
        (
            group(waiting=(("A.u", 0, "elsewhere"), ("A.t", 1, "no run"))),
            GroupVerdict("g", "waiting", "A.t-1: no run", 0, 2),
        ),
        (group(positions=(), waiting=(("A.t", 0, "no run"),)), GroupVerdict("g", "waiting", "A.t-0: no run")),
        (group(waiting=(ELSEWHERE,)), GroupVerdict("g", "exact", "", 0, 2)),
        (
            group(waiting=(ELSEWHERE,), more_waiting=1, reason="u-0: no run"),
            GroupVerdict("g", "waiting", "u-0: no run", 0, 2, prospect=Prospect.SERVICES),
        ),
        (
            group(more_waiting=1),
            GroupVerdict("g", "waiting", "the place of 1 more partitions is not known", 0, 2, 0, Prospect.SERVICES),
        ),
        (group(behind=BEHIND), GroupVerdict("g", "behind", "at most 1,100 records are read again", 1_100, 2)),
    ],
)
def test_group_that_was_read_has_its_verdict(row: GroupStatus, verdict: GroupVerdict) -> None:
    assert judged(row) == verdict


@pytest.mark.parametrize(
    ("row", "source", "members", "state", "text"),
    [
        (group(held="refused"), READ, ("app",), "refused", "the target does not take it"),
        (group(held="refused", held_reason="share group"), READ, ("app",), "refused", "share group"),
        (group(), READ, ("app-1", "app-2"), "in-use", "on the target it has app-1, app-2"),
        (group(held="in-use", held_reason="a moment ago"), READ, (), "moving", "a moment ago"),
        (group(synced=False), READ, (), "moving", NOT_MOVED),
        (group(), UNREAD, (), "reading", "app has 4 records of t-1 to read on the source"),
        (group(), GroupAtSource({("t", 0): 9}, ()), (), "exact", ""),
        (group(), GroupAtSource({("t", 0): 10, ("t", 1): 5}, ("app",)), (), "exact", ""),
        (group(), GroupAtSource({("t", 0): 11, ("t", 1): 7}, ("app",)), (), "exact", ""),
        (group(), GroupAtSource(ENDS, (), has_moved=True), (), "moving", None),
        (group(), GroupAtSource({("t", 0): 1}, ("app",), has_moved=True), (), "reading", None),
        (group(more_behind=1), READ, (), "behind", None),
    ],
)
def test_group_is_judged_by_its_consumers_on_both_clusters(
    row: GroupStatus, source: GroupAtSource, members: tuple[str, ...], state: str, text: str | None
) -> None:
    verdict = judged(row, source, members)
    assert (verdict.state, verdict.read_again, verdict.partitions) == (state, 0, 2)
    assert text in (None, verdict.text)
    assert state != "reading" or verdict.prospect is Prospect.CONSUMERS


PLACED_IN_ONE = group(positions=PLACES[:1])


@pytest.mark.parametrize(
    ("row", "source", "members", "state"),
    [
        pytest.param(PLACED_IN_ONE, READ, (), "waiting", id="an offset and no place"),
        pytest.param(
            *(PLACED_IN_ONE, GroupAtSource({("t", 0): 10}, ("app",)), (), "reading"), id="unread and uncommitted logs"
        ),
        pytest.param(
            replace(PLACED_IN_ONE, ahead=(("A.u", 0, 9, 1, "ahead-on-target"),) * 50, more_ahead=1),
            *(None, (), "skips"),
            id="more ahead than listed",
        ),
        pytest.param(replace(PLACED_IN_ONE, ahead=(AHEAD,)), None, ("app",), "skips", id="works ahead"),
    ],
)
def test_group_in_doubt_cannot_move(
    row: GroupStatus, source: GroupAtSource | None, members: tuple[str, ...], state: str
) -> None:
    verdict = judged(row, source, members)
    assert (verdict.state, verdict.can_move) == (state, False)


def test_group_with_more_partitions_than_its_row_lists_counts_them_too() -> None:
    others = tuple(("A.u", number, "why") for number in range(50))
    waiting = group(phase="waiting", positions=(), waiting=others, more_waiting=1)
    assert (judged(waiting, None).state, judged(waiting, None).can_move) == ("waiting", False)
    blocker = Blocker(SwitchReason.GROUP_WAITING, "g")
    assert about_topics([blocker], rows_of(T, waiting), ["t"]) == (blocker,)
    behind = tuple(("A.u", number, 100) for number in range(50))
    verdict = judged(group(positions=PLACES[:1], behind=behind, more_behind=3, read_ms=1), None)
    assert (verdict.state, verdict.read_again) == ("behind", 300)


def test_group_of_a_lost_source_has_the_time_of_its_position() -> None:
    row = group(read_ms=READ_MS)
    assert judged(row, None) == GroupVerdict("g", "exact", BY_POSITION, 0, 2, READ_MS)
    behind = judged(replace(row, behind=(("A.t", 0, 7),)), None)
    assert behind == GroupVerdict("g", "behind", f"at most 7 records are read again, {BY_POSITION}", 7, 2, READ_MS)
    readings = GroupReadings.from_rows(groups_read_at(READ_MS + 5_000))
    (later,) = judge_groups([row], {}, {}, [T], ENDS, readings=readings)
    assert (later.state, later.known_ms) == ("exact", READ_MS + 5_000), "it was read again since, and has not moved"


def test_group_of_a_lost_source_without_a_time_is_never_exact() -> None:
    verdict = judged(group(), None)
    assert (verdict.state, verdict.known_ms, verdict.can_move) == ("unknown", 0, True)
    assert verdict.text == "when its position was read on the source is not known"


def test_group_of_other_topics_has_no_verdict() -> None:
    other = group(positions=(("A.u", 0, 1, 1),), waiting=(("A.v", 0, "why"),), behind=(("A.u", 0, 3),))
    assert judge_groups([other], {"g": GroupAtSource()}, {}, [T], ENDS) == []
    assert judge_groups([group()], {"g": GroupAtSource()}, {}, [], {}) == []


@pytest.mark.parametrize("how", ["ahead-on-target", "rewound-on-source"])
def test_group_beyond_its_place_skips(how: str) -> None:
    verdict = judged(group(ahead=(("A.u", 0, 9, 1, how), ("A.t", 0, 20, 12, how))))
    assert verdict.state == "skips"
    assert verdict.text == f"A.t-0 is {how.replace('-', ' ')}: its offset is 20, the translated offset is 12"
    assert judged(group(ahead=(("A.u", 0, 9, 1, how),))).state == "exact"


@pytest.mark.parametrize("state", ["exact", "behind", "in-use", "unknown", "reading", "moving", "waiting", "skips"])
def test_group_verdict_of_each_state_moves_or_does_not(state: str) -> None:
    assert GroupVerdict("g", state).can_move == (state in ("exact", "behind", "in-use", "unknown"))


WORST: list[tuple[dict[str, Any], str]] = [
    ({"held": "refused"}, "refused"),
    ({"ahead": (AHEAD,)}, "skips"),
    ({"waiting": (("A.t", 0, "why"),)}, "waiting"),
    ({"held": "in-use"}, "moving"),
    ({"behind": (("A.t", 0, 3),)}, "behind"),
]


@pytest.mark.parametrize("worse", range(len(WORST)))
@pytest.mark.parametrize("better", range(len(WORST)))
def test_group_with_two_troubles_has_the_worse(worse: int, better: int) -> None:
    fields, state = WORST[min(worse, better)]
    assert judged(group(**{**WORST[max(worse, better)][0], **fields})).state == state


lists = st.sampled_from(("A.t", "A.u"))


@settings(max_examples=50)
@given(
    st.builds(
        group,
        synced=st.booleans(),
        held=st.sampled_from(("", "in-use", "refused")),
        phase=st.sampled_from(("translated", "waiting", "failing")),
        waiting=st.lists(st.tuples(lists, st.integers(0, 1), st.just("why")), max_size=2).map(tuple),
        behind=st.lists(st.tuples(lists, st.integers(0, 1), st.integers(1, 9)), max_size=2).map(tuple),
        ahead=st.lists(st.tuples(lists, st.integers(0, 1), st.just(9), st.just(8), st.just("x")), max_size=2).map(
            tuple
        ),
        more_waiting=st.integers(0, 1),
        more_behind=st.integers(0, 1),
    ),
    st.booleans(),
)
def test_group_called_exact_has_no_trouble_at_all(row: GroupStatus, has_source: bool) -> None:
    verdict = judged(row, READ if has_source else None)
    listed = [*row.waiting, *row.behind, *row.ahead]
    if verdict.state == "exact":
        assert (row.synced, row.held, row.more_waiting, row.more_behind) == (True, "", 0, 0)
        assert row.phase != "failing"
        assert not [place for place in listed if place[0] == "A.t"]
    if verdict.state == "behind":
        assert not [place for place in (*row.waiting, *row.ahead) if place[0] == "A.t"]
        assert verdict.read_again == sum(records for name, _, records in row.behind if name == "A.t")


def test_groups_text_counts_states_the_most_first() -> None:
    verdicts = [GroupVerdict(str(n), "exact") for n in range(3)] + [GroupVerdict("x", "behind")]
    assert groups_text(verdicts) == "4 groups: 3 exact, 1 behind"
    assert groups_text(verdicts[-1:]) == "1 group: 1 behind"
    assert groups_text([]) == "0 groups"


def test_group_at_the_end_of_the_target_has_read_up_to_a_marker() -> None:
    """The source's log ends with the marker of a transaction, at which no consumer commits."""
    row = group(positions=(("A.t", 0, 9, 12), ("A.t", 1, 5, 6)))
    source = GroupAtSource({("t", 0): 9, ("t", 1): 5}, ("app",))
    ends = {("t", 0): 10, ("t", 1): 5}
    (reading,) = judge_groups([row], {"g": source}, {}, [T], ends)
    (read,) = judge_groups([row], {"g": source}, {}, [T], ends, {("A.t", 0): 12, ("A.t", 1): 6})
    assert (reading.state, read.state) == ("reading", "exact")


def test_groups_known_until_has_the_moment_and_what_it_means() -> None:
    means = "a group that appeared later is not known, and what a group committed later it reads again"
    assert groups_known_until(1_700_000_003_000, "A") == (
        f"The groups of A and their positions are known up to 2023-11-14T22:13:23.000+00:00: {means}"
    )
    assert groups_known_until(0, "A") == f"Up to which moment the groups of A were read is not known: {means}"
