"""Single records are fetched a few at a time where they come by the thousand, and at once where they do not."""

import pytest

from lockstep_data_plane.fetch.small_batch_pacer import (
    FEW_BYTES,
    LASTS_S,
    MUCH_BYTES,
    PACE_S,
    QUIET_S,
    REST_FACTOR,
    SMALL_BATCH_CHECK_S,
    SWARM_PER_S,
    SmallBatchPacer,
    rest_s,
)


def after(
    pacer: SmallBatchPacer,
    per_s: float,
    *,
    size: int = 500,
    seconds: float = 10 * SMALL_BATCH_CHECK_S,
    begin: float = 0.0,
) -> bool:
    """Whether the next question waits after a while of so many batches a second, one in each answer of so many
    bytes."""
    answers = round(seconds * per_s)
    return [pacer.paced(1, size, begin + (number + 1) / per_s) for number in range(answers)][-1]


@pytest.mark.parametrize(
    ("per_s", "paced"), [(SWARM_PER_S / 10, False), (SWARM_PER_S * 0.9, False), (SWARM_PER_S * 1.1, True)]
)
def test_only_so_many_batches_a_second_wait_for_each_other(per_s: float, paced: bool) -> None:
    assert after(SmallBatchPacer(), per_s) is paced


def test_pacer_asks_at_once_after_a_large_or_an_empty_answer() -> None:
    often = SWARM_PER_S * 2
    assert after(SmallBatchPacer(), often, size=FEW_BYTES)
    assert not after(SmallBatchPacer(), often, size=FEW_BYTES + 1)
    assert not after(SmallBatchPacer(), often, size=0)


def test_a_swarm_that_is_over_is_forgotten() -> None:
    pacer = SmallBatchPacer()
    assert after(pacer, SWARM_PER_S * 2)
    assert not pacer.paced(1, 500, 10.0)


def test_pacer_pause_follows_the_answer_time_up_to_a_bound() -> None:
    for duration_s in (0.0002, 0.001, 0.0014):
        assert rest_s(duration_s) == REST_FACTOR * duration_s
    for duration_s in (0.002, 0.004, 0.005):
        assert duration_s + rest_s(duration_s) == pytest.approx(PACE_S)
    assert rest_s(PACE_S) == rest_s(1.0) == 0


def test_a_swarm_lasts_after_a_second_of_nothing_else() -> None:
    pacer, often, long = SmallBatchPacer(), SWARM_PER_S * 2, LASTS_S + 3 * SMALL_BATCH_CHECK_S
    after(pacer, often, seconds=LASTS_S / 2)
    assert not pacer.lasts(LASTS_S / 2)
    after(pacer, often, begin=LASTS_S / 2, seconds=long - LASTS_S / 2)
    assert pacer.lasts(long)
    assert not pacer.lasts(long + LASTS_S + SMALL_BATCH_CHECK_S)  # silent since


def test_a_swarm_that_paused_begins_anew() -> None:
    pacer, often, long = SmallBatchPacer(), SWARM_PER_S * 2, LASTS_S + 3 * SMALL_BATCH_CHECK_S
    after(pacer, often, seconds=long)
    after(pacer, SWARM_PER_S / 10, begin=long, seconds=5 * SMALL_BATCH_CHECK_S)
    after(pacer, often, begin=long + 5 * SMALL_BATCH_CHECK_S, seconds=LASTS_S / 2)
    assert not pacer.lasts(long + 5 * SMALL_BATCH_CHECK_S + LASTS_S / 2)


def test_pacer_with_many_large_batches_is_much_and_no_swarm() -> None:
    pacer, often, long = SmallBatchPacer(), SWARM_PER_S * 2, LASTS_S + 3 * SMALL_BATCH_CHECK_S
    after(pacer, often, size=round(MUCH_BYTES / SMALL_BATCH_CHECK_S) // often + 1, seconds=long)
    assert pacer.much
    assert not pacer.lasts(long)
    after(pacer, often, begin=long, seconds=long)
    assert not pacer.much


def test_pacer_detects_much_at_once_after_a_silence() -> None:
    pacer = SmallBatchPacer()
    pacer.paced(1, 0, 10.0)
    pacer.paced(1, MUCH_BYTES - 1, 20.0)
    assert not pacer.much
    pacer.paced(1, MUCH_BYTES - 1, 20.01)
    pacer.paced(1, 1, 20.02)
    assert pacer.much


def test_pacer_is_quiet_after_long_without_records_if_it_was_asked() -> None:
    pacer = SmallBatchPacer()
    assert not pacer.quiet(1000.0)
    pacer.paced(0, 0, 1000.0)
    assert not pacer.quiet(1000.0)
    assert pacer.quiet(1000.0 + QUIET_S)
    pacer.paced(1, 500, 1000.0 + QUIET_S)
    pacer.paced(0, 0, 1000.0 + QUIET_S + SMALL_BATCH_CHECK_S)
    assert not pacer.quiet(1000.0 + QUIET_S + SMALL_BATCH_CHECK_S)
    assert pacer.quiet(1000.0 + 2 * QUIET_S)
