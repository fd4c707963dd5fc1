"""Numbered records that are written on several clusters, and which of them each cluster has. A record's number says
where it was written."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

from tests.faults.counting import Count, Numbers, count
from tests.faults.numbered import read_numbers
from tests.support.eventually import wait_until

SPAN = 10**11


def first_of(cluster: int) -> int:
    """The number of the first record written on a cluster, counted from 0."""
    return cluster * SPAN


def _written_on(numbers: Numbers, cluster: int) -> dict[int, list[int]]:
    return {p: [n for n in found if n // SPAN == cluster] for p, found in numbers.items()}


def counts(found: Sequence[Numbers]) -> Mapping[tuple[int, int], Count]:
    """By origin and cluster: how what the cluster has of the origin's records differs from what the origin has."""
    return {
        (origin, cluster): count(_written_on(found[origin], origin), _written_on(numbers, origin))
        for origin in range(len(found))
        for cluster, numbers in enumerate(found)
        if cluster != origin
    }


def came_back(found: Sequence[Numbers]) -> Mapping[int, int]:
    """By origin: how many records too many stand in its own log of what was written there, whichever partition they are
    in. The comparison with the others does not see them when those have them as often."""
    back = {}
    for origin, numbers in enumerate(found):
        times = Counter(chain.from_iterable(_written_on(numbers, origin).values()))
        if more := times.total() - len(times):
            back[origin] = more
    return back


def same_everywhere(bootstraps: Sequence[str], topic: str, *, within: float) -> Mapping[tuple[int, int], Count]:
    """Returns once each cluster has every record of every cluster, in its origin's order. Raises at once when one has a
    record twice, its origin included, and NeverHappened."""

    def equal() -> Mapping[tuple[int, int], Count] | None:
        read = [read_numbers(bootstrap, topic) for bootstrap in bootstraps]
        if back := came_back(read):
            raise RuntimeError(f"{topic}: records that came back to where they were written, by cluster: {back}")
        counted = counts(read)
        for way, each in counted.items():
            if each.doubled or each.displaced:
                raise RuntimeError(f"{topic}, of {way[0]} on {way[1]}: {each}")
        return counted if all(each.equal for each in counted.values()) else None

    return wait_until(equal, within=within, every=0.5, what=f"{topic} is the same everywhere")
