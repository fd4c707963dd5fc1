"""Detection of requests that brokers do not know and answer by closing the connection.

Kafka's brokers say that they do not know a request. Other brokers close the connection at it, each time. Brokers that
went away end the connection too.
"""

from collections.abc import Hashable
from math import inf
from typing import NamedTuple

AGAIN_WITHIN_S = 60.0
"""Longest time between two closes at requests of one kind that count as proof and not as an accident."""


class _Close(NamedTuple):
    began: float = -inf
    closed_at: float = -inf
    is_second: bool = False


class ClosedRequests:
    """The last request of each kind at which the brokers of a cluster closed the connection."""

    def __init__(self) -> None:
        self._last: dict[Hashable, _Close] = {}
        self.count = 0
        """Number of requests at which brokers closed the connection."""

    def closes_again(self, kind: Hashable, began: float, now: float) -> bool:
        """Note a close, and return whether the former request of this kind ended so, too.

        A request that was in flight at the former close ended with it, and proves nothing. All subjects of one
        request get the same answer.

        Args:
            kind: The kind of the request.
            began: When the request was made (seconds of a monotonic clock); inf means after all others.
            now: The present time of that clock.
        """
        former = self._last.get(kind, _Close())
        if began == former.began != inf:
            return former.is_second
        is_second = now - former.closed_at <= AGAIN_WITHIN_S and began >= former.closed_at
        self._last[kind] = _Close(began, now, is_second)
        self.count += 1
        return is_second

    def note_answer(self, kind: Hashable) -> None:
        """Note that a request of this kind was answered: an earlier close was an accident."""
        self._last.pop(kind, None)
