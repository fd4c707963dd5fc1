"""Offsets that ascend, with the gaps that a log cleaner leaves."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import overload

Stretch = tuple[int, int, int]
"""Consecutive offsets: the first one, its index among all, and how many."""

_INDEX = itemgetter(1)


@dataclass(frozen=True, slots=True)
class GappedOffsets(Sequence[int]):
    """Kept as stretches: a slot asks for these, and a batch has far fewer of them than records."""

    stretches: tuple[Stretch, ...]

    @classmethod
    def gather(cls, offsets: Iterable[int]) -> "GappedOffsets":
        """From each of them."""
        return cls(tuple(_gather(offsets)))

    @classmethod
    def join(cls, parts: Iterable[Sequence[int]]) -> "GappedOffsets":
        """Those of several batches, one behind the other."""
        found: list[Stretch] = []
        index = 0
        for first, _, count in (stretch for part in parts for stretch in stretches_within(part)):
            if found and found[-1][0] + found[-1][2] == first:
                before, begin, earlier = found.pop()
                found.append((before, begin, earlier + count))
            else:
                found.append((first, index, count))
            index += count
        return cls(tuple(found))

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
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(f"there are {len(self)} offsets, none has the index {index}")
        first, begin, _ = self.stretches[bisect_right(self.stretches, at, key=_INDEX) - 1]
        return first + at - begin


def _gather(offsets: Iterable[int]) -> list[Stretch]:
    """The stretches of offsets that ascend."""
    found: list[Stretch] = []
    first = begin = index = 0
    following = None
    for offset in offsets:
        if offset != following:
            if index:
                found.append((first, begin, index - begin))
            first, begin = offset, index
        following = offset + 1
        index += 1
    if index:
        found.append((first, begin, index - begin))
    return found


def stretches_within(offsets: Sequence[int]) -> Sequence[Stretch]:
    """The stretches of offsets, which ascend, without reading each of them where they are known already."""
    if type(offsets) is range and offsets.step == 1:
        return ((offsets.start, 0, len(offsets)),) if offsets else ()
    if isinstance(offsets, GappedOffsets):
        return offsets.stretches
    if offsets and offsets[-1] - offsets[0] + 1 == len(offsets):
        return [(offsets[0], 0, len(offsets))]
    return _gather(offsets)
