"""Two topics compared record by record, as a copy with its source."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.support.clusters import Record


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a copy differs from its source; all zero and `first_difference` None when it does not."""

    compared: int
    missing: int
    doubled: int
    reordered: int
    first_difference: str | None

    @property
    def equal(self) -> bool:
        return self.first_difference is None


def compare(source: Iterable[Record], target: Iterable[Record]) -> Comparison:
    """Compares two topics record by record, partition by partition: key, value, headers, timestamp and order.

    *Missing* and *doubled* count records of the source that are too few or too many on the target (a record the source
    never had counts as doubled); *reordered* counts the places at which what both have stands in another order.
    """
    ours, theirs = _by_partition(source), _by_partition(target)
    missing = doubled = reordered = compared = 0
    first: str | None = None
    for partition in sorted(ours.keys() | theirs.keys()):
        wanted, found = ours[partition], theirs[partition]
        compared += len(wanted)
        if [one.same_as() for one in wanted] == [one.same_as() for one in found]:
            continue
        too_few = Counter(one.same_as() for one in wanted)
        too_few.subtract(one.same_as() for one in found)
        missing += sum(count for count in too_few.values() if count > 0)
        doubled -= sum(count for count in too_few.values() if count < 0)
        reordered += _out_of_place(wanted, found)
        first = first or _first_difference(partition, wanted, found)
    return Comparison(compared, missing, doubled, reordered, first)


def _by_partition(records: Iterable[Record]) -> defaultdict[int, list[Record]]:
    split: defaultdict[int, list[Record]] = defaultdict(list)
    for record in records:
        split[record.partition or 0].append(record)
    return split


def _out_of_place(wanted: Sequence[Record], found: Sequence[Record]) -> int:
    common = Counter(one.same_as() for one in wanted) & Counter(one.same_as() for one in found)

    def first_occurrences(records: Sequence[Record]) -> list[object]:
        left = common.copy()
        kept: list[object] = []
        for record in records:
            if left[record.same_as()] > 0:
                left[record.same_as()] -= 1
                kept.append(record.same_as())
        return kept

    return sum(a != b for a, b in zip(first_occurrences(wanted), first_occurrences(found), strict=True))


def _first_difference(partition: int, wanted: Sequence[Record], found: Sequence[Record]) -> str:
    for position, (a, b) in enumerate(zip(wanted, found, strict=False)):
        if a.same_as() != b.same_as():
            return f"partition {partition}, record {position}: {a} became {b}"
    longer, name = (wanted, "missing") if len(wanted) > len(found) else (found, "extra")
    position = min(len(wanted), len(found))
    return (
        f"partition {partition}: {abs(len(wanted) - len(found))} {name} from record {position} on: {longer[position]}"
    )
