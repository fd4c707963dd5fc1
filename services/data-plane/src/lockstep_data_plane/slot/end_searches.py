"""The searches for the end of the copy of partitions at rest, within one run of a slot.

A search is repeated if only the source knows where the copy ends and the source did not answer.
"""

import asyncio
from collections.abc import Awaitable, Callable

from lockstep_data_plane.slot.desired_partitions import DesiredPartition
from lockstep_kafka.common.backoff import KeyedBackoff
from lockstep_state.offsets import TopicPartition

ASKED_EVERY_S = 10.0
"""Seconds between two rounds of asking the source whether it answers about such partitions."""

ASKED_AT_ONCE = 50
"""The number of partitions about which the source is asked at the same time."""

SEARCHED_AGAIN_S, SEARCHED_AT_MOST_S = 10.0, 300.0
"""The first and the longest pause in seconds before a search is repeated that failed although the source answers."""


class EndSearches:
    """The searches that one run of a slot has done and those that it repeats."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """Take a monotonic clock, in seconds."""
        self._monotonic = monotonic
        self._orders: dict[TopicPartition, DesiredPartition] = {}
        """The partitions whose search is over, with their desired state at that time."""
        self._unknown: dict[TopicPartition, None] = {}
        """The partitions whose end only the source knows. The one that was asked about last comes last."""
        self._in_vain: KeyedBackoff[TopicPartition] = KeyedBackoff(SEARCHED_AGAIN_S, SEARCHED_AT_MOST_S)

    def begin(self, tp: TopicPartition) -> None:
        """Note that a search or copy of the partition begins."""
        self._orders.pop(tp, None)
        self._unknown.pop(tp, None)

    def end(self, tp: TopicPartition, order: DesiredPartition, *, needs_source: bool) -> None:
        """Note that a search is over.

        Args:
            tp: The partition, by its name in the source.
            order: Its desired state. No search begins again while this stays the same.
            needs_source: Only the source knows the end, so the search is repeated once the source answers.
        """
        self._orders[tp] = order
        if needs_source:
            self._unknown[tp] = None
            self._in_vain.failed(tp, self._monotonic())
        else:
            self._in_vain.succeeded(tp)

    def was_searched(self, tp: TopicPartition, order: DesiredPartition) -> bool:
        """Return whether the partition was searched under this desired state already."""
        return self._orders.get(tp) == order

    async def retry_searches(
        self, source_answers: Callable[[TopicPartition], Awaitable[bool]], changed: asyncio.Event
    ) -> None:
        """Allow the search of a partition again once the source answers about it, and set `changed`.

        Never returns.
        """
        while True:
            await asyncio.sleep(ASKED_EVERY_S)
            while due := self._due():
                answers = await asyncio.gather(*map(source_answers, due))
                for tp in (tp for tp, is_answered in zip(due, answers, strict=True) if is_answered):
                    self.begin(tp)
                    changed.set()
                if not all(answers):
                    break

    def _due(self) -> list[TopicPartition]:
        """Return the partitions to ask the source about now, and move them to the end of the queue."""
        waiting = self._in_vain.waiting(self._monotonic()) if self._unknown else frozenset()
        due = [tp for tp in self._unknown if tp not in waiting][:ASKED_AT_ONCE]
        for tp in due:
            self._unknown[tp] = self._unknown.pop(tp)
        return due
