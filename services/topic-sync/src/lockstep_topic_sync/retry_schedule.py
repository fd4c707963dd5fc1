"""The retries of failed topics, each with a back-off of its own. Pure; time is an argument."""

from collections.abc import Container

from lockstep_kafka.common.backoff import KeyedBackoff
from lockstep_state.reasons.reason import Reason

FIRST, LIMIT = 1.0, 60.0
"""Seconds until the first retry of a topic, and between retries in the long run."""


class RetrySchedule(KeyedBackoff[str]):
    """Topics whose last attempt failed, with the reason, until one succeeds."""

    def __init__(self) -> None:
        super().__init__(FIRST, LIMIT)
        self.reasons: dict[str, Reason] = {}
        """The reasons by topic."""

    def failed_for(self, topic: str, reason: Reason, now: float) -> None:
        self.reasons[topic] = reason
        self.failed(topic, now)

    def succeeded(self, topic: str) -> None:
        super().succeeded(topic)
        self.reasons.pop(topic, None)

    def keep_only(self, topics: Container[str]) -> None:
        """Forget all other topics."""
        for topic in [t for t in self.reasons if t not in topics]:
            self.succeeded(topic)
