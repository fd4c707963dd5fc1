"""Ascending offsets with the gaps that a log cleaner leaves."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import overload

Stretch = tuple[int, int, int]
"""A stretch of consecutive offsets: the first one, its index among all, and how many."""

_INDEX = itemgetter(1)


@dataclass(frozen=True, slots=True)
class GappedOffsets(Sequence[int]):
    """A sequence of ascending offsets, kept as stretches, because a batch has far fewer of them than records."""

    stretches: tuple[Stretch, ...]

    @classmethod
    def gather(cls, offsets: Iterable[int]) -> "GappedOffsets":
        """Return the sequence of these offsets, which ascend."""
        return cls(tuple(_gather(offsets)))

    @classmethod
    def join(cls, parts: Iterable[Sequence[int]]) -> "GappedOffsets":
        """Return the offsets of several batches, one behind the other."""
        stretches: list[Stretch] = []
        index = 0
        for first, _, count in (stretch for part in parts for stretch in stretches_within(part)):
            if stretches and stretches[-1][0] + stretches[-1][2] == first:
                before, begin, earlier = stretches.pop()
                stretches.append((before, begin, earlier + count))
            else:
                stretches.append((first, index, count))
            index += count
        return cls(tuple(stretches))

    def __len__(self) -> int:
        if not self.stretches:
            return 0
        _, begin, count = self.stretches[-1]
        return begin + count

    def __iter__(self) -> Iterator[int]:
        for first, _, count in self.stretches:
            yield from range(first, first + count)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        if isinstance(index, slice):
            return tuple(self)[index]
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(f"there are {len(self)} offsets, none has the index {index}")
        first, begin, _ = self.stretches[bisect_right(self.stretches, position, key=_INDEX) - 1]
        return first + position - begin


def _gather(offsets: Iterable[int]) -> list[Stretch]:
    stretches: list[Stretch] = []
    first = begin = index = 0
    following = None
    for offset in offsets:
        if offset != following:
            if index:
                stretches.append((first, begin, index - begin))
            first, begin = offset, index
        following = offset + 1
        index += 1
    if index:
        stretches.append((first, begin, index - begin))
    return stretches


def stretches_within(offsets: Sequence[int]) -> Sequence[Stretch]:
    """Return the stretches of ascending offsets, if possible without reading each of them."""
    if type(offsets) is range and offsets.step == 1:
        return ((offsets.start, 0, len(offsets)),) if offsets else ()
    if isinstance(offsets, GappedOffsets):
        return offsets.stretches
    if offsets and offsets[-1] - offsets[0] + 1 == len(offsets):
        return [(offsets[0], 0, len(offsets))]
    return _gather(offsets)
