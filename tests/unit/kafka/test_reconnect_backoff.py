"""The pauses between attempts to connect to a broker that is away."""

from hypothesis import example, given
from hypothesis import strategies as st

from lockstep_kafka.common.backoff import KeyedBackoff

A, B = ("a", 9092), ("b", 9092)
LONGEST_S = 1.0


def pauses_by_address() -> KeyedBackoff[tuple[str, int]]:
    return KeyedBackoff(0.05, LONGEST_S)


def test_an_address_that_refused_nothing_is_connected_to_at_once() -> None:
    assert pauses_by_address().wait_s(A, 5.0) == 0.0


def test_pauses_double_up_to_the_longest() -> None:
    reconnecting, now, pauses = pauses_by_address(), 100.0, []
    for _ in range(7):
        reconnecting.failed(A, now)
        pauses.append(round(reconnecting.wait_s(A, now), 3))
        now += pauses[-1]
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, LONGEST_S, LONGEST_S]


def test_reconnect_wait_is_reduced_by_the_time_passed() -> None:
    reconnecting = pauses_by_address()
    for _ in range(10):
        reconnecting.failed(A, 0.0)
    assert reconnecting.wait_s(A, 0.75 * LONGEST_S) == 0.25 * LONGEST_S
    assert reconnecting.wait_s(A, 10.0) == 0.0


def test_a_connection_ends_the_pauses_of_its_address_alone() -> None:
    reconnecting = pauses_by_address()
    for _ in range(5):
        reconnecting.failed(A, 0.0)
        reconnecting.failed(B, 0.0)
    reconnecting.succeeded(A)
    assert reconnecting.wait_s(A, 0.0) == 0.0
    assert reconnecting.wait_s(B, 0.0) > 0.0
    reconnecting.failed(A, 0.0)
    assert reconnecting.wait_s(A, 0.0) == 0.05


@given(st.lists(st.tuples(st.sampled_from((A, B)), st.booleans(), st.floats(0.0, 3.0))))
@example([(A, False, 2.0), *[(A, False, 0.0)] * 5, (A, False, 1.9999999999999996)])
def test_reconnect_wait_never_exceeds_the_longest_pause(attempts: list[tuple[tuple[str, int], bool, float]]) -> None:
    reconnecting, now = pauses_by_address(), 0.0
    for address, opened, passed in attempts:
        now += passed
        if opened:
            reconnecting.succeeded(address)
        else:
            reconnecting.failed(address, now)
        assert 0.0 <= reconnecting.wait_s(address, now) <= LONGEST_S
