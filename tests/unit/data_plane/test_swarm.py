"""Single records are fetched a few at a time where they come by the hundreds, and at once where they do not."""

import pytest

from lockstep_data_plane.swarm import FEW_BYTES, SWARM_LOOK_S, SWARM_PER_S, Swarm


def brought(per_s: float, *, size: int = 500) -> bool:
    """Whether the next question waits after a while of so many batches a second, one in each answer of so many
    bytes."""
    swarm, answers = Swarm(), round(10 * SWARM_LOOK_S * per_s)
    return [swarm.paced(1, size, (number + 1) / per_s) for number in range(answers)][-1]


@pytest.mark.parametrize(
    ("per_s", "paced"), [(SWARM_PER_S / 10, False), (SWARM_PER_S * 0.9, False), (SWARM_PER_S * 1.1, True)]
)
def test_only_so_many_batches_a_second_wait_for_each_other(per_s: float, paced: bool) -> None:
    assert brought(per_s) is paced


def test_an_answer_with_much_or_with_nothing_is_followed_by_the_next_question_at_once() -> None:
    often = SWARM_PER_S * 2
    assert brought(often, size=FEW_BYTES)
    assert not brought(often, size=FEW_BYTES + 1)
    assert not brought(often, size=0)


def test_a_swarm_that_is_over_is_forgotten() -> None:
    swarm = Swarm()
    assert [swarm.paced(10, 500, (number + 1) / SWARM_PER_S) for number in range(SWARM_PER_S)][-1]
    assert not swarm.paced(1, 500, 10.0)
