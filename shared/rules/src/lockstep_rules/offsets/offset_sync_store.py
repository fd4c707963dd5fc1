"""The translation of offsets by sparse offset syncs (`mm2-behaviour.md` §3.2 and §3.3).

The store keeps at most 64 syncs a partition, dense near the newest and exponentially sparser behind it. MirrorMaker 2
does exactly the same, so both write the same checkpoint for a group. Slots refer to syncs. Two slots are *the same*
when they refer to the same sync, not when two syncs are equal. For distinct syncs at slots i < j:

    A  slot 0 is the newest sync
    B  up(i) <= up(j) + 2^j - 2^i          near enough: translation loses at most half of a group's lag
    C  up(i) >= up(j) + 2^max(i-2, 0)      far enough: a slot is not spent on a neighbour
    D  slot 63 is the oldest sync that may be used

in signed 64-bit arithmetic that wraps; a bound that wrapped below zero makes B true and C false.
"""

from typing import TypeAlias

from lockstep_state.codecs.mm2_codec import OffsetSync
from lockstep_state.offsets import DownstreamOffset, TopicPartition, UpstreamOffset

SLOTS = 64
TOO_OLD = DownstreamOffset(-1)
"""The result for an upstream offset below every usable sync. No checkpoint may be written from it."""

History: TypeAlias = tuple[OffsetSync, ...]
"""The `SLOTS` slots of one partition, newest first. It is never changed in place: a reader may keep one."""


class OffsetSyncStore:
    """The fold of the offset-syncs topic: every partition's history of syncs.

    Before `finish_reading` nothing is translated. With `keep_only_newest`, only the last of the syncs read until then
    stays for each partition. That is for a start without the checkpoints written earlier, where an older sync could
    lead behind them (`mm2-behaviour.md` §3.4).
    """

    def __init__(self, *, keep_only_newest: bool) -> None:
        self._keep_only_newest = keep_only_newest
        self._read_to_end = False
        self.position = -1
        """Offset in the syncs topic of the last sync folded; -1: none."""
        self.histories: dict[TopicPartition, History] = {}
        """The slots by source topic and partition."""

    def fold(self, position: int, sync: OffsetSync) -> None:
        """Store the sync at offset `position` of the syncs topic.

        A sync at or below the last position was folded already and changes nothing. An older sync read again has the
        same fields as an upstream rewind, which forgets the history. Only the position distinguishes the two.
        """
        if position <= self.position:
            return
        self.position = position
        key = (sync.topic, sync.partition)
        history = self.histories.get(key)
        if history is None or (self._keep_only_newest and not self._read_to_end):
            self.histories[key] = _only(sync)
        else:
            self.histories[key] = with_sync(history, sync)

    def finish_reading(self) -> None:
        """Allow translation: the topic was read to the end that it had at the start. Idempotent."""
        self._read_to_end = True

    def translate_downstream(self, topic: str, partition: int, upstream: UpstreamOffset) -> DownstreamOffset | None:
        """Return the downstream offset for `upstream` of a source partition.

        None while the answer is unknown (the topic is not read to its end, or the partition has no sync). `TOO_OLD`
        below the oldest usable sync, else an offset that is never beyond the truth. Monotonic in `upstream` while the
        store does not change.
        """
        if not self._read_to_end:
            return None
        history = self.histories.get((topic, partition))
        return None if history is None else translate(history, upstream)


def translate(history: History, upstream: UpstreamOffset) -> DownstreamOffset:
    """Return the downstream offset of the newest sync at or below `upstream`, plus one if the group is past it.

    It is never more than one: how many of the records between were dropped on the way is unknown.
    """
    sync = newest_sync_at(history, upstream)
    if sync is None:
        return TOO_OLD
    past = 0 if sync.upstream == upstream else 1
    return DownstreamOffset(sync.downstream + past)


def newest_sync_at(history: History, upstream: UpstreamOffset) -> OffsetSync | None:
    """Return the newest sync at or below `upstream`; None if all are above."""
    return next((sync for sync in history if sync.upstream <= upstream), None)


def with_sync(history: History, sync: OffsetSync) -> History:
    """Return the history after one more sync. One below the newest sync is an upstream rewind and drops all others."""
    if sync.upstream < history[0].upstream:
        return _only(sync)
    new = list(history)
    new[0] = sync
    replacement = sync
    reading = 0
    for slot in range(1, SLOTS):
        newer = new[slot - 1]
        far, near = _FAR[slot - 1], _NEAR[slot]
        below = new[slot + 1] if slot < SLOTS - 1 else None
        # Walk the old slots for the oldest sync that may be here; it never has to be found again for a later slot.
        while True:
            candidate = history[reading]
            far_enough = _is_far(newer, candidate, far)
            promote = (
                far_enough
                and (below is None or _is_far(candidate, below, _FAR[slot]))
                and _is_near(newer, candidate, near)
            )
            if promote:
                replacement = candidate
            skip = not far_enough or (reading < SLOTS - 1 and candidate is history[reading + 1])
            if promote or skip:
                reading += 1
            if not (skip and reading < slot):
                break
        if _is_near(newer, new[slot], near):
            break  # the rest was valid behind this slot before and still is
        new[slot] = replacement
    return tuple(new)


def _only(sync: OffsetSync) -> History:
    return (sync,) * SLOTS


_NEAR = tuple((1 << slot) - (1 << max(slot - 1, 0)) for slot in range(SLOTS))
"""2^j - 2^i of invariant B, by the slot j of the older sync; i is the one before."""

_FAR = tuple(1 << max(slot - 2, 0) for slot in range(SLOTS))
"""The addend of invariant C, by the slot i of the newer sync."""


def _is_near(newer: OffsetSync, older: OffsetSync, added: int) -> bool:
    """Return invariant B of two neighbours.

    No offset is larger than a bound that has wrapped, so the arithmetic need not wrap.
    """
    if newer is older:
        return True
    bound = older.upstream + added
    return bound < 0 or newer.upstream <= bound


def _is_far(newer: OffsetSync, older: OffsetSync, added: int) -> bool:
    """Return invariant C of two neighbours. A bound that has wrapped is beyond every offset."""
    if newer is older:
        return True
    bound = older.upstream + added
    return 0 <= bound <= newer.upstream
