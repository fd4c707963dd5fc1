"""The rule that replaces a client of librdkafka without answers (no I/O, no clock).

Brokers that have just started can answer that there are none. librdkafka then forgets all brokers, and may never send
a request again (librdkafka issue 5301, since 2.10; docs/decisions/0040). Such a client gives the errors of a cluster
that is away, so the two cannot be distinguished.
"""


class ClientReset:
    """The count of unanswered requests of one caller, over all clients that it uses."""

    def __init__(self) -> None:
        self._times = 0

    def answered(self) -> None:
        """Note an answer: the cluster and the client work."""
        self._times = 0

    def is_due(self) -> bool:
        """Note a request without an answer, and return whether to use another client from now on.

        That is so at the second time in a row, at the fourth, and at each eighth, because the cluster may be away for
        long.
        """
        self._times += 1
        return self._times in (2, 4) or self._times % 8 == 0
