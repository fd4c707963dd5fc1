"""How long a partition in trouble is left alone (`PartitionBackoff`)."""

from itertools import pairwise

import pytest

from lockstep_data_plane.slot.partition_task import PartitionBackoff
from lockstep_kafka.wire.connection_errors import BrokerUnreachable
from lockstep_state.errors import RetriableError

LONGEST_S = 30.0
AWAY, NO_LEADER = BrokerUnreachable("gone"), RetriableError("NOT_LEADER_OR_FOLLOWER")


def _after_an_outage(tries: int = 8) -> PartitionBackoff:
    pauses = PartitionBackoff()
    for _ in range(tries):
        pauses.delay_after_failed_resume(AWAY)
    pauses.resumed(0.0)
    return pauses


@pytest.mark.parametrize("trouble", [AWAY, NO_LEADER])
def test_backoff_before_resuming_doubles_up_to_its_maximum(trouble: Exception) -> None:
    pauses = PartitionBackoff()
    waits = [pauses.delay_after_failed_resume(trouble) for _ in range(8)]
    assert waits[0] <= 0.5
    assert all(later == min(2 * sooner, LONGEST_S) for sooner, later in pairwise(waits))
    assert waits[-1] == LONGEST_S


def test_an_outage_is_forgotten_by_the_copy_that_fails_behind_it() -> None:
    """A broker that is back may go once more: that it was away for long before is no reason to wait."""
    pauses = _after_an_outage()
    assert pauses.delay_after_failed_copy(0.1, no_progress=True) == PartitionBackoff().delay_after_failed_copy(
        0.1, no_progress=True
    )


def test_an_outage_is_forgotten_by_the_next() -> None:
    pauses = _after_an_outage()
    assert pauses.delay_after_failed_resume(AWAY) == PartitionBackoff().delay_after_failed_resume(AWAY)


def test_an_outage_is_forgotten_by_the_first_answer_behind_it() -> None:
    """Brokers that are back elect leaders first."""
    pauses = PartitionBackoff()
    for _ in range(8):
        pauses.delay_after_failed_resume(AWAY)
    assert pauses.delay_after_failed_resume(NO_LEADER) == PartitionBackoff().delay_after_failed_resume(NO_LEADER)


def test_backoff_before_copying_after_success_is_zero() -> None:
    pauses = _after_an_outage()
    assert pauses.delay_after_failed_copy(1.0, no_progress=False) == 0.0


def test_a_copy_that_fails_at_once_each_time_waits_longer_and_longer() -> None:
    """As where the target refuses every append, although its log can be read."""
    pauses, now, waits = PartitionBackoff(), 0.0, []
    for _ in range(9):
        pauses.resumed(now)
        waits.append(pauses.delay_after_failed_copy(now + 0.1, no_progress=True))
        now += 0.1 + waits[-1]
    assert waits[:3] == [0.5, 1.0, 2.0]
    assert waits[-1] == LONGEST_S
    pauses.resumed(now)
    assert pauses.delay_after_failed_copy(now + 0.1, no_progress=False) == 0.0
    pauses.resumed(now)
    assert pauses.delay_after_failed_copy(now + 0.1, no_progress=True) == waits[0]


def test_backoff_before_copying_of_an_idle_partition_does_not_grow() -> None:
    pauses, now = PartitionBackoff(), 0.0
    for _ in range(12):
        pauses.resumed(now)
        now += 86_400.0
        assert pauses.delay_after_failed_copy(now, no_progress=True) == 0.5
