"""When a client of librdkafka without answers is given up for another one (no I/O, no clock).

Brokers that have just started can answer that there are none. librdkafka then forgets all that it knows, and may never
ask anybody again (librdkafka issue 5301, since 2.10; docs/decisions/0040). Such a client gives the errors of a cluster
that is away, so the two cannot be distinguished.
"""


class ClientReset:
    """Of one caller, with any client it asks with."""

    def __init__(self) -> None:
        self._times = 0

    def answered(self) -> None:
        """The cluster is there, and the client too."""
        self._times = 0

    def is_due(self) -> bool:
        """A request had no answer once more. Returns whether to ask with another client from now on. That is so at the
        second time in a row, the fourth and each eighth, for the cluster may be away for long.
        """
        self._times += 1
        return self._times in (2, 4) or self._times % 8 == 0
