"""The lag is never less than the records that the target lacks, whatever happens to either log."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep_rules.offsets.lag import NOT_ASKED, LogRange, count_behind, is_of_another_log, why_unknown
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress
from tests.support.reasons import reported

TOPIC = MirroredTopic(
    source_topic="t", target_topic="A.t", source_topic_id="s1", target_topic_id="t1", partitions=1, target_partitions=1
)
ROW = PartitionProgress(
    topic="t", partition=0, upstream=99, downstream=99, source_topic_id="s1", target_topic_id="t1", source_end=100
)


@dataclass(frozen=True)
class World:
    """Both logs as they are, the last row that was written, and what the row's writer knew."""

    row: PartitionProgress | None
    topic: MirroredTopic
    source: LogRange
    target: frozenset[int]
    """Offsets of the source's present log whose records the target's present log holds."""
    target_end: int

    @property
    def lacking(self) -> int:
        return len(set(range(self.source.start, self.source.end)) - self.target)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A copy for a while, and then an incident that the data plane has noticed or not."""
    start = draw(st.integers(0, 5))
    end = start + draw(st.integers(0, 20))
    copied = draw(st.integers(start, end))  # the next offset to copy
    written = draw(st.integers(start, copied))  # the row may be older than the log
    has_row = draw(st.booleans())
    row = replace(ROW, upstream=written - 1, downstream=written - start - 1, phase=draw(st.sampled_from(PHASES)))
    row = replace(row, source_end=draw(st.integers(written, end)))
    row = replace(row, lag_records=max(0, row.source_end - written))
    world = World(
        row if has_row else None, TOPIC, LogRange(start, end), frozenset(range(start, copied)), copied - start
    )
    if not has_row:
        return replace(world, target=frozenset(), target_end=0)
    happened = draw(st.sampled_from(HAPPENINGS))
    seen = draw(st.booleans())
    topic, case = TOPIC, ""
    if happened == "source re-created":
        again = draw(st.integers(0, 30))
        world, topic = (
            replace(world, source=LogRange(0, again), target=frozenset()),
            replace(TOPIC, source_topic_id="s2"),
        )
        case = "source-recreated"
    elif happened == "target re-created":
        world, topic = replace(world, target=frozenset(), target_end=0), replace(TOPIC, target_topic_id="t2")
        case = "target-recreated"
    elif happened == "target truncated":
        kept = draw(st.integers(0, copied - start))
        world = replace(world, target=frozenset(range(start, start + kept)), target_end=kept)
        case = "target-truncated"
    elif happened == "source truncated":
        agreed = draw(st.integers(start, end))
        regrown = agreed + draw(st.integers(0, 20))
        world = replace(world, source=LogRange(start, regrown), target=frozenset(range(start, min(agreed, copied))))
        case = "source-truncated"
        seen = seen or regrown >= written > agreed  # who fetches finds that out; before, no offset tells
    elif happened == "records gone":
        world, case = replace(world, source=LogRange(draw(st.integers(start, end)), end)), "records-gone"
    elif happened == "in doubt":
        world, case, seen = replace(world, target=frozenset(), target_end=draw(st.integers(0, 40))), "in-doubt", True
    elif happened == "refused":
        case = "refused"
    if seen and case:
        row = replace(row, phase="halted", case=case, cause=reported("x"))
    # The ids are the clusters' own: a reader knows them before the data plane does.
    return replace(world, row=row, topic=topic)


PHASES = ("copying", "paused", "stopped")
HAPPENINGS = (
    "nothing",
    "source re-created",
    "target re-created",
    "target truncated",
    "source truncated",
    "records gone",
    "in doubt",
    "refused",
)


@settings(max_examples=1500)
@given(worlds(), st.booleans(), st.booleans(), st.booleans())
def test_lag_is_never_less_than_what_a_reader_lacks(
    world: World, source_known: bool, target_known: bool, silent: bool
) -> None:
    source = world.source if source_known else None
    end = world.target_end if target_known else None
    lag = count_behind(world.row, world.topic, source, end, silent=silent)
    reason = why_unknown(world.row, world.topic, source, end, silent=silent)
    assert (lag is None) == bool(reason)
    assert lag is None or lag >= world.lacking
    assert source_known or lag is None


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_lag_of_a_copy_without_trouble_is_exact(start: int, copied: int, missing: int) -> None:
    row = replace(ROW, upstream=start + copied - 1, downstream=copied - 1)
    assert count_behind(row, TOPIC, LogRange(start, start + copied + missing), copied) == missing


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
def test_lag_after_a_kill_is_exact_or_unknown(start: int, reported: int, more: int, missing: int) -> None:
    """The row says less than the target's log has, and nobody writes another one."""
    row = replace(ROW, upstream=start + reported - 1, downstream=reported - 1)
    source = LogRange(start, start + reported + more + missing)
    assert count_behind(row, TOPIC, source, reported + more, silent=True) == (None if more else missing)
    rests = replace(row, phase="stopped", located=True)
    assert count_behind(rests, TOPIC, source, reported + more, silent=True) == more + missing, "it was looked at"


@pytest.mark.parametrize(
    ("changes", "source", "target_end", "lag"),
    [
        ({}, LogRange(0, 100), 100, 0),
        ({}, LogRange(0, 150), 100, 50),
        ({}, LogRange(0, 150), NOT_ASKED, 50),
        ({}, LogRange(0, 150), None, None),
        ({}, None, 100, None),
        ({}, LogRange(0, 150), 99, None),
        ({}, LogRange(0, 99), 100, None),
        ({"phase": "halted", "case": "refused"}, LogRange(0, 150), 100, 50),
        ({"phase": "halted", "case": "records-gone"}, LogRange(120, 150), 100, 50),
        ({"phase": "halted", "case": "source-recreated"}, LogRange(0, 150), 100, 150),
        ({"phase": "halted", "case": "target-recreated"}, LogRange(20, 150), 0, 130),
        ({"phase": "halted", "case": "target-truncated"}, LogRange(0, 100), 100, None),
        ({"phase": "halted", "case": "source-truncated"}, LogRange(0, 100), 100, None),
        ({"phase": "halted", "case": "in-doubt"}, LogRange(0, 100), 100, None),
        ({"source_topic_id": "s0"}, LogRange(0, 7), 100, 7),
        ({"target_topic_id": "t0"}, LogRange(0, 100), 0, 100),
        ({"source_topic_id": "", "target_topic_id": ""}, LogRange(0, 100), 100, 0),
        ({"begins": "reset", "upstream": -1, "phase": "stopped"}, LogRange(40, 100), 100, 60),
        ({"begins": "altered", "upstream": 49, "phase": "stopped"}, LogRange(40, 100), 100, 50),
    ],
)
def test_lag_of_a_row_counts_records_behind(
    changes: dict[str, str], source: LogRange | None, target_end: int | None, lag: int | None
) -> None:
    assert count_behind(replace(ROW, **changes), TOPIC, source, target_end) == lag  # type: ignore[arg-type]  # by name


def test_lag_of_a_partition_not_begun_is_all_records() -> None:
    assert count_behind(None, TOPIC, LogRange(50, 200_050)) == 200_000
    assert count_behind(None, None, LogRange(0, 5)) == 5
    assert count_behind(None, TOPIC, None) is None
    assert count_behind(None, TOPIC, LogRange(5, 5)) == 0


def test_a_row_of_no_known_topic_is_taken_as_it_is() -> None:
    assert not is_of_another_log(ROW, None)
    assert count_behind(ROW, None, LogRange(0, 150)) == 50
