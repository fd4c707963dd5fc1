"""Two topics compared record by record, as a copy with its source."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.support.clusters import Record

Content = tuple[object, ...]
"""What a faithful copy has in common with its record."""


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
    """Compare two topics record by record, partition by partition: key, value, headers, timestamp and order.

    *Missing* and *doubled* count records of the source that are too few or too many on the target (a record the source
    never had counts as doubled); *reordered* counts the places at which what both have stands in another order.
    """
    originals, copies = _by_partition(source), _by_partition(target)
    missing = doubled = reordered = compared = 0
    first: str | None = None
    for partition in sorted(originals.keys() | copies.keys()):
        wanted, copied = originals[partition], copies[partition]
        compared += len(wanted)
        wanted_contents, copied_contents = ([record.same_as() for record in log] for log in (wanted, copied))
        if wanted_contents == copied_contents:
            continue
        missing += (Counter(wanted_contents) - Counter(copied_contents)).total()
        doubled += (Counter(copied_contents) - Counter(wanted_contents)).total()
        reordered += _out_of_place(wanted_contents, copied_contents)
        first = first or _first_difference(partition, wanted, copied)
    return Comparison(compared, missing, doubled, reordered, first)


def _by_partition(records: Iterable[Record]) -> defaultdict[int, list[Record]]:
    split: defaultdict[int, list[Record]] = defaultdict(list)
    for record in records:
        split[record.partition or 0].append(record)
    return split


def _out_of_place(wanted: Sequence[Content], copied: Sequence[Content]) -> int:
    common = Counter(wanted) & Counter(copied)

    def first_occurrences(contents: Sequence[Content]) -> list[Content]:
        remaining = common.copy()
        kept: list[Content] = []
        for content in contents:
            if remaining[content] > 0:
                remaining[content] -= 1
                kept.append(content)
        return kept

    return sum(a != b for a, b in zip(first_occurrences(wanted), first_occurrences(copied), strict=True))


def _first_difference(partition: int, wanted: Sequence[Record], copied: Sequence[Record]) -> str:
    for position, (original, copy) in enumerate(zip(wanted, copied, strict=False)):
        if original.same_as() != copy.same_as():
            return f"partition {partition}, record {position}: {original} became {copy}"
    longer, name = (wanted, "missing") if len(wanted) > len(copied) else (copied, "extra")
    position = min(len(wanted), len(copied))
    return (
        f"partition {partition}: {abs(len(wanted) - len(copied))} {name} from record {position} on: {longer[position]}"
    )
