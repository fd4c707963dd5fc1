"""The offset sync rule for runs emits what MM2's rule emits for each record (`mm2-behaviour.md` §3.1)."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_rules.offsets.offset_sync_rule import OffsetSyncRule
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset

Pair = tuple[int, int]


@dataclass
class RecordByRecord:
    """MM2's rule and its two maps, for one partition, as `mm2-behaviour.md` §3.1 has them."""

    lag_max: int
    prev_up: int = -1
    prev_down: int = -1
    last_sync_down: int = -1
    emitted: tuple[Pair, ...] = ()
    delayed: Pair | None = None

    def acknowledged(self, up: int, down: int) -> None:
        emit = (
            self.last_sync_down == -1
            or down - (self.last_sync_down + 1) >= self.lag_max
            or up - self.prev_up != 1
            or down < self.prev_down
        )
        if emit:
            self.last_sync_down = down
        self.prev_up, self.prev_down = up, down
        if emit:
            self.delayed = None
            self.emitted += ((up, down),)
        else:
            self.delayed = (up, down)


def all_of(rule: OffsetSyncRule, up: int, down: int, count: int = 1) -> tuple[Pair, ...]:
    return rule.acknowledged(UpstreamOffset(up), DownstreamOffset(down), count)


def one(rule: OffsetSyncRule, up: int, down: int, count: int = 1) -> Pair | None:
    """The newest sync of a run."""
    return next(reversed(all_of(rule, up, down, count)), None)


@st.composite
def runs(draw: st.DrawFn) -> list[tuple[int, int, int] | None]:
    """Runs that mostly follow each other, with gaps, rewinds and truncations; None is a flush."""
    up, down = draw(st.integers(0, 30)), draw(st.integers(0, 30))
    steps: list[tuple[int, int, int] | None] = []
    for _ in range(draw(st.integers(1, 12))):
        count = draw(st.integers(1, 40))
        steps.append((up, down, count))
        up = draw(st.one_of(st.just(up + count), st.integers(0, up + count + 20)))
        down = draw(st.one_of(st.just(down + count), st.integers(0, down + count + 20)))
        if draw(st.integers(0, 4)) == 0:
            steps.append(None)
    return steps


@given(st.integers(0, 15), runs())
def test_mm2_163_runs_give_the_same_syncs_as_records(lag_max: int, steps: list[tuple[int, int, int] | None]) -> None:
    rule, model = OffsetSyncRule(lag_max), RecordByRecord(lag_max)
    for step in steps:
        model.emitted = ()
        if step is None:
            assert rule.flush() == model.delayed
            model.delayed = None
            continue
        up, down, count = step
        for i in range(count):
            model.acknowledged(up + i, down + i)
        first_and_newest: tuple[Pair, ...] = tuple(dict.fromkeys(model.emitted[:1] + model.emitted[-1:]))
        assert all_of(rule, up, down, count) == first_and_newest
    assert rule.flush() == model.delayed


def test_mm2_140_the_golden_sequence() -> None:
    rule = OffsetSyncRule(50)
    sequence = [
        (0, 100, True),
        (2, 102, True),
        (3, 152, False),
        (4, 153, True),
        (5, 154, False),
        (6, 203, False),
        (7, 204, True),
        (2, 206, True),
        (3, 207, False),
        (4, 3, True),
        (5, 4, False),
    ]
    for up, down, due in sequence:
        assert one(rule, up, down) == ((up, down) if due else None), (up, down)


def test_mm2_141_lag_zero_emits_at_every_record() -> None:
    """Of a run, the last record is the newest."""
    rule = OffsetSyncRule(0)
    for offset in range(5):
        assert one(rule, offset, offset) == (offset, offset)
        assert rule.flush() is None
    assert one(rule, 5, 5, 1000) == (1004, 1004)


def test_mm2_161_first_acknowledgement_is_emitted_and_second_delayed() -> None:
    rule = OffsetSyncRule(50)
    assert rule.flush() is None
    assert one(rule, 7, 3) == (7, 3)
    assert one(rule, 8, 4) is None
    assert rule.flush() == (8, 4)
    assert rule.flush() is None


def test_offset_sync_supersedes_a_delayed_one() -> None:
    rule = OffsetSyncRule(50)
    assert one(rule, 0, 0, 2) == (0, 0)
    assert one(rule, 5, 2) == (5, 2)
    assert rule.flush() is None


def test_a_group_inside_the_first_run_has_a_sync_to_stand_on() -> None:
    rule = OffsetSyncRule(100)
    assert all_of(rule, 0, 0, 400) == ((0, 0), (303, 303))
    assert all_of(rule, 400, 400, 400) == ((404, 404), (707, 707))


def test_offset_sync_rule_is_constant_time_for_a_long_run() -> None:
    rule = OffsetSyncRule(99)
    assert one(rule, 0, 0, 10**15) == (10**15 - 100, 10**15 - 100)
    assert rule.flush() == (10**15 - 1, 10**15 - 1)


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match=r"offset\.lag\.max cannot be negative"):
        OffsetSyncRule(-1)
    with pytest.raises(ValueError, match="a run has at least one record"):
        one(OffsetSyncRule(0), 0, 0, 0)


@given(
    lag_max=st.integers(0, 12),
    batches=st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 20)), min_size=1, max_size=6), max_size=5),
)
def test_stretches_of_a_batch_give_the_oldest_and_newest_sync(
    lag_max: int, batches: list[list[tuple[int, int]]]
) -> None:
    whole, each = OffsetSyncRule(lag_max), OffsetSyncRule(lag_max)
    up = down = 40
    for number, gaps in enumerate(batches):
        stretches, begin, due = list[tuple[int, int, int]](), 0, list[Pair]()
        for gap, count in gaps:
            up += gap + (1 if stretches else 0)
            stretches.append((up, begin, count))
            due += all_of(each, up, down + begin, count)
            up, begin = up + count, begin + count
        assert whole.on_stretches(down, stretches) == (tuple(due) if len(due) <= 2 else (due[0], due[-1]))
        down += begin + number % 2
        if number == 2:
            assert whole.flush() == each.flush()
    assert whole.flush() == each.flush()
