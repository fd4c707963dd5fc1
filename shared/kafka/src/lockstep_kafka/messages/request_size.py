"""The largest size of a request to a cluster, found from its closed connections (no I/O).

Azure Event Hubs closes the connection on requests above 1,046,528 bytes, without an error.
"""

USUAL_BYTES = 8 * 1024 * 1024
"""Bytes at which a request stops growing. It is well below a broker's `socket.request.max.bytes` (100 MiB)."""

SMALL_BYTES = 1_000_000
"""Largest size of a request's batches together if larger requests are not answered.

The rest of a request is some hundred bytes for each partition.
"""

LARGE_BYTES = 1_100_000
"""A request with more bytes than this shows that the cluster accepts large ones.

Event Hubs accepts some above `SMALL_BYTES`.
"""

CLOSED_TIMES = 2
"""Number of connections that have to end at a large request, each opened after the former one had ended.

One alone may be a broker that stops, which ends all of its connections.
"""


class RequestSize:
    """The limit for requests to one cluster.

    Each `size` is that of the batches in a request.
    """

    def __init__(self) -> None:
        self.closings = 0
        """Number of connections that have ended at a large request so far."""
        self._large_pass = False
        self._is_unreported = False
        self.is_small = False
        """True while requests are kept below `SMALL_BYTES`, because larger ones were never answered."""

    def answered(self, size: int) -> None:
        """Note that a request was answered.

        A cluster that answers a large one accepts them all.
        """
        if size > LARGE_BYTES:
            self._large_pass = True

    def closed(self, size: int, opened_after: int) -> None:
        """Note that the broker ended the connection while a request was the oldest without an answer.

        Args:
            size: The size of that request.
            opened_after: The `closings` when the connection was opened.
        """
        if size <= SMALL_BYTES or self._large_pass or self.is_small or opened_after < self.closings:
            return
        self.closings += 1
        self.is_small = self._is_unreported = self.closings >= CLOSED_TIMES

    def refuses(self, size: int) -> bool:
        """Return whether a batch of this size is too large for any request."""
        return self.is_small and size > SMALL_BYTES

    def take_notice(self) -> bool:
        """Return whether requests have become small since the last call, so that it is reported once."""
        is_new, self._is_unreported = self._is_unreported, False
        return is_new
