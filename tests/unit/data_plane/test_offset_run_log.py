"""When runs end, what is due to be written, and that thinning keeps to its bound."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lockstep_data_plane.core.offset_run_log import CHUNK, COARSEST, EXACT, KEPT, RING, OffsetRunLog, thin_runs
from lockstep_rules.offsets.offset_runs import Run, RunMap, decode_runs
from lockstep_state.rows.state_rows import OffsetRuns
from tests.support.offset_truth import FIRST, Copied, Stretch, exact_places, read, translated

Shape = tuple[int, int, int, int]
"""(how many, records each, upstream offsets passed over after each, downstream offsets of others after each)"""

shapes = st.lists(
    st.tuples(st.integers(1, 1800), st.sampled_from((1, 1, 3)), st.integers(1, 3), st.sampled_from((0, 0, 0, 1))),
    min_size=1,
    max_size=4,
)


def stretches_of(*shapes: Shape) -> Iterator[Stretch]:
    up = down = 0
    for times, count, passed_over, foreign in shapes:
        for _ in range(times):
            yield up, down, count
            up += count + passed_over
            down += count + foreign


def begun(lag_max: int = 100) -> OffsetRunLog:
    return OffsetRunLog(lag_max).continued(FIRST)


def rows(log: OffsetRunLog) -> list[OffsetRuns]:
    """What is due, and now written."""
    due = log.due()
    log.mark_written(due)
    return due


class TestOpenAndEnd:
    def test_run_opens_at_the_first_record_and_grows_without_a_row(self) -> None:
        log = begun()
        for up in range(0, 1000, 10):
            log.add_run(up, up + 7, 10)
            assert log.due() == []
        assert log.open_run == (0, 7, 1000)

    @pytest.mark.parametrize(
        ("what", "following"),
        [
            ("a gap or marker upstream", (11, 17, 3)),
            ("somebody else's record downstream", (10, 18, 3)),
            ("both", (12, 19, 3)),
        ],
    )
    def test_run_ends_where_the_next_record_does_not_follow(self, what: str, following: Stretch) -> None:
        log = begun()
        log.add_run(0, 7, 10)
        log.add_run(*following)
        assert log.open_run == following, what
        (row,) = rows(log)
        assert list(decode_runs(row)) == [Run(0, 7, 10)]
        assert log.due() == []

    @pytest.mark.parametrize(
        ("slot_spans", "open_run"),
        [
            pytest.param([(0, 0, 10), (0, 0, 10), (4, 4, 4), (5, 5, 8)], (0, 0, 13), id="it has them"),
            pytest.param([(0, 5, 10), (20, 3, 4)], (0, 5, 10), id="before the downstream end"),
        ],
    )
    def test_run_log_ignores_records(self, slot_spans: list[Stretch], open_run: Stretch) -> None:
        log = begun()
        for stretch in slot_spans:
            log.add_run(*stretch)
        assert (log.open_run, log.due()) == (open_run, [])

    def test_a_row_is_due_until_it_is_written_and_not_before_it_changes(self) -> None:
        log = begun()
        for stretch in stretches_of((3, 1, 1, 0)):
            log.add_run(*stretch)
        first = log.due()
        assert first == log.due() != []
        log.add_run(6, 3, 1)  # ends another run before the first ones are acknowledged
        log.mark_written(first)
        (row,) = rows(log)
        assert (row.edition, len(row.runs)) == (first[0].edition, 3)
        assert log.due() == []


def test_chunks_fill_one_after_the_other() -> None:
    log = begun()
    for stretch in stretches_of((CHUNK * 2 + 1, 1, 1, 0)):
        log.add_run(*stretch)
    assert [(row.chunk, row.edition, len(row.runs)) for row in rows(log)] == [(0, 0, CHUNK), (1, 0, CHUNK)]
    log.add_run(5000, 5000, 1)
    assert [(row.chunk, len(row.runs)) for row in rows(log)] == [(2, 1)]


def test_run_log_with_full_chunks_thins_and_writes_thinned_chunks_first() -> None:
    partition = Copied(lag_max=5)
    partition.copies(list(stretches_of((CHUNK * RING + 1, 1, 1, 0))))
    partition.writes()
    assert {row.chunk for row in partition.present().values() if isinstance(row, OffsetRuns)} == set(range(RING))
    partition.copies([(20_000, 20_000, 1), (20_002, 20_001, 1)])
    due = partition.runs.due()
    # Every sixth run is left of the older half: 342 of 2,048.
    assert [(row.chunk, row.edition, len(row.runs)) for row in due] == [(0, 1, 256), (1, 1, 86), (2, 1, 2)]
    partition.writes()
    assert read(reversed(partition.log)) == read(partition.log), "an earlier edition does not come back"


@settings(max_examples=8)
@given(shapes, st.sampled_from((0, 10, 100)), st.integers(0, 4), st.data())
@example([(6000, 1, 1, 0)], 0, 0, None)
@example([(2100, 10, 1, 1)] * 2, 100, 3, None)
def test_thinned_runs_keep_to_the_bound(
    of_shapes: list[Shape], lag_max: int, deaths: int, data: st.DataObject | None
) -> None:
    """Whatever dies in between: never too far, the newest exact, and before them as near as is promised."""
    slot_spans = list(stretches_of(*of_shapes))
    partition = Copied(lag_max=lag_max)
    for part in range(deaths + 1):
        size = len(slot_spans) // (deaths + 1) + 1
        partition.copies(slot_spans[part * size : (part + 1) * size])
        partition.writes(only_runs=bool(part % 2))
        if part < deaths:
            partition.dies_and_goes_on()
    partition.writes()
    run_map = RunMap.build(partition.progress, ()).fold_progress(partition.log[-1])  # type: ignore[arg-type]  # progress is last
    for row in partition.present().values():
        run_map = run_map.fold(row) if isinstance(row, OffsetRuns) else run_map
    assert sum(len(runs) for _, runs in run_map.chunks.values()) <= CHUNK * RING
    check_bound(slot_spans, run_map, lag_max)
    if data is not None:
        seen = read(data.draw(st.lists(st.sampled_from(partition.log), max_size=20)))
        places = exact_places(slot_spans)
        assert all(t is None or t.downstream <= places[p] for p, t in translated(seen, places))


def check_bound(slot_spans: list[Stretch], run_map: RunMap, lag_max: int) -> None:
    places = exact_places(slot_spans)
    end = slot_spans[-1][1] + slot_spans[-1][2]
    exact_from = slot_spans[-EXACT][0] if len(slot_spans) > EXACT else 0
    for position, translation in translated(run_map, places):
        assert translation is not None, "what could be translated once always can be"
        error, distance = places[position] - translation.downstream, end - places[position]
        assert 0 <= error <= translation.reread or translation.behind
        assert error <= max(lag_max, distance // COARSEST)
        assert position < exact_from or error == 0


def tail_heavy(fraction: int) -> list[Run]:
    """Runs that lie as badly as can be: each a hair too far from the one before the last to leave one out."""
    end, at = 2**62, 2
    runs: list[Run] = []
    while at < end and len(runs) < CHUNK * RING // 2:
        runs.append(Run(end - at, end - at, 1))
        at += max(1, at // (2 * fraction))
    return runs[::-1]


@pytest.mark.parametrize("fraction", [1, 4, 8, 16, 64, 1024])
@pytest.mark.parametrize("lag_max", [0, 100])
def test_thinning_always_makes_room(fraction: int, lag_max: int) -> None:
    runs = tail_heavy(fraction)
    end = 2**62
    kept = thin_runs(runs, Run(end - 1, end - 1, 1), end, lag_max)
    assert len(kept) <= KEPT
    assert kept[0] == runs[0]
    assert set(kept) <= set(runs)
    for a, b in pairwise([*kept, Run(end - 1, end - 1, 1)]):
        left_out = any(a.upstream < run.upstream < b.upstream for run in runs)
        assert not left_out or b.downstream - a.downstream_end <= max(lag_max, (end - b.downstream) // COARSEST)


def test_small_holes_are_made_first() -> None:
    """Where holes of up to offset.lag.max are enough, none is larger, however old."""
    runs = [Run(*stretch) for stretch in stretches_of((2048, 10, 1, 0))]
    kept = thin_runs(runs, Run(10**9, 10**9, 1), 10**9 + 1, 100)
    assert {b.downstream - a.downstream_end for a, b in pairwise(kept)} <= {100, 0}
    assert len(kept) == 2048 // 11 + 2, "ten are left out after each"


def test_run_log_of_two_slots_at_once_is_kept_by_the_next() -> None:
    """Each is right; their chunks overlap in the topic, the next slot groups them anew."""
    slot_spans = list(stretches_of((700, 3, 1, 0)))
    both = [Copied(), Copied()]
    both[0].copies(slot_spans[:600])
    both[1].runs.add_run(*slot_spans[300])  # it was told of nothing before
    both[1].copies(slot_spans[300:])
    for partition in both:
        partition.writes()
    mixed = [both[0].present()["runs/t/0/1"], both[1].present()["runs/t/0/0"]]
    rows = [row for row in mixed if isinstance(row, OffsetRuns)]
    log = OffsetRunLog(100).continued(both[1].progress, rows)
    run_map = RunMap.build(both[1].progress, log.due())
    places = exact_places(slot_spans)
    wanted = slot_spans[256:556]
    assert [run for run in run_map.runs if run.upstream <= wanted[-1][0]] == [Run(*stretch) for stretch in wanted]
    assert all(t is None or t.downstream <= places[p] for p, t in translated(run_map, places))
