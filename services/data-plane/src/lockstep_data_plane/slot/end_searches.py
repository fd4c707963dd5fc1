"""Partitions at rest whose end a run of a slot has searched, and those that are searched again. The source alone knows
where their copies end, and it did not answer."""

import asyncio
from collections.abc import Awaitable, Callable

from lockstep_data_plane.slot.desired_state import DesiredPartition
from lockstep_kafka.common.backoff import KeyedBackoff
from lockstep_state.offsets import TopicPartition

ASKED_EVERY_S = 10.0
"""Seconds from asking the source whether it answers about such partitions to asking it again."""

ASKED_AT_ONCE = 50
"""About so many of them."""

SEARCHED_AGAIN_S, SEARCHED_AT_MOST_S = 10.0, 300.0
"""From a search in vain, although the source answered, to the next one: at first and at most."""


class EndSearches:
    """Remember the searches of one run of a slot."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """Take a clock that does not go back, in seconds."""
        self._monotonic = monotonic
        self._orders: dict[TopicPartition, DesiredPartition] = {}
        """Those that were searched, with what was wanted of them then."""
        self._unknown: dict[TopicPartition, None] = {}
        """Those whose end the source alone knows. The one that was asked about last comes last."""
        self._in_vain: KeyedBackoff[TopicPartition] = KeyedBackoff(SEARCHED_AGAIN_S, SEARCHED_AT_MOST_S)

    def begin(self, tp: TopicPartition) -> None:
        """Note that the partition is searched, or copied, from now on."""
        self._orders.pop(tp, None)
        self._unknown.pop(tp, None)

    def end(self, tp: TopicPartition, order: DesiredPartition, *, needs_source: bool) -> None:
        """Note that a search is over. `needs_source`: the source alone knows the end."""
        self._orders[tp] = order
        if needs_source:
            self._unknown[tp] = None
            self._in_vain.failed(tp, self._monotonic())
        else:
            self._in_vain.succeeded(tp)

    def is_over(self, tp: TopicPartition, order: DesiredPartition) -> bool:
        """Return whether a partition needs no search while it is wanted like this."""
        return self._orders.get(tp) == order

    async def repeat(self, source_answers: Callable[[TopicPartition], Awaitable[bool]], changed: asyncio.Event) -> None:
        """Let a search begin again once the source answers about its partition, and set `changed` then. Never
        returns."""
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
        """The partitions about which the source is asked now. Each call goes on behind the last one."""
        waiting = self._in_vain.waiting(self._monotonic()) if self._unknown else frozenset()
        due = [tp for tp in self._unknown if tp not in waiting][:ASKED_AT_ONCE]
        for tp in due:
            self._unknown[tp] = self._unknown.pop(tp)
        return due
