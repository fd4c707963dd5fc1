"""How many of the numbered records that stand in the source are too few or too many in the copy. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Numbers = Mapping[int, Sequence[int]]
"""The number of each record of each partition, in the order of the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """``records`` stand in the source. What the source never had counts as doubled; ``displaced`` ones stand before one
    that they should follow."""

    records: int
    lost: int
    doubled: int
    displaced: int
    first: str = ""
    """Where the first difference is, by partition and place; empty when there is none."""

    @property
    def equal(self) -> bool:
        return not (self.lost or self.doubled or self.displaced)


def count(source: Numbers, target: Numbers) -> Count:
    """Partition by partition: a record that went to another one is lost in the one and doubled in the other."""
    records = lost = doubled = displaced = 0
    first = ""
    for partition in sorted(source.keys() | target.keys()):
        wanted, found = source.get(partition, ()), target.get(partition, ())
        records += len(wanted)
        if list(wanted) == list(found):
            continue
        too_few = Counter(wanted)
        too_few.subtract(found)
        lost += sum(times for times in too_few.values() if times > 0)
        doubled -= sum(times for times in too_few.values() if times < 0)
        displaced += _displaced(wanted, found)
        first = first or _first_difference(partition, wanted, found)
    return Count(records=records, lost=lost, doubled=doubled, displaced=displaced, first=first)


def _displaced(wanted: Sequence[int], found: Sequence[int]) -> int:
    """How often a record that is there for the first time stands before the one it should follow."""
    place = {number: at for at, number in reversed(list(enumerate(wanted)))}
    seen: set[int] = set()
    highest, back = -1, 0
    for number in found:
        if number in seen or number not in place:
            continue
        seen.add(number)
        if place[number] < highest:
            back += 1
        highest = max(highest, place[number])
    return back


def _first_difference(partition: int, wanted: Sequence[int], found: Sequence[int]) -> str:
    for at, (ours, theirs) in enumerate(zip(wanted, found, strict=False)):
        if ours != theirs:
            return f"partition {partition}, place {at}: {theirs} instead of {ours}"
    at = min(len(wanted), len(found))
    if len(wanted) > len(found):
        return f"partition {partition}, place {at}: nothing instead of {wanted[at]}"
    return f"partition {partition}, place {at}: {found[at]} instead of nothing"
