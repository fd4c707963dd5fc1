"""When a client that nobody answers is given up."""

from lockstep_kafka.librdkafka.client_reset import ClientReset


def test_client_reset_is_due_ever_less_often() -> None:
    unanswered = ClientReset()
    assert [n for n in range(1, 25) if unanswered.is_due()] == [2, 4, 8, 16, 24]


def test_an_answer_begins_it_anew() -> None:
    unanswered = ClientReset()
    assert not unanswered.is_due()
    unanswered.answered()
    assert [unanswered.is_due() for _ in range(3)] == [False, True, False]
