"""A topic of numbered records and its copy, which MM2 and Lockstep make in turn while a writer goes on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from confluent_kafka import KafkaException

from tests.faults.counting import Count, count
from tests.faults.numbered import read_numbers
from tests.support.clusters import admin, end_offsets
from tests.support.control import NOT_YET
from tests.support.eventually import wait_until

WITHIN = 180.0  # seconds; usual is 15 for either's start

until = partial(wait_until, within=WITHIN, every=0.25)


@dataclass(frozen=True, slots=True)
class Seen:
    """Both as they stand now, by partition the numbers in the order of the log. Neither has a gap in its offsets, so a
    record's place is its offset."""

    source: Mapping[int, Sequence[int]]
    copy: Mapping[int, Sequence[int]]

    def counted(self) -> Count:
        """What is lost and doubled of all up to the newest that was copied."""
        last = {number: max(found, default=-1) for number, found in self.copy.items()}
        return count({p: [n for n in found if n <= last[p]] for p, found in self.source.items()}, self.copy)

    def missed(self, partition: int, upstream: int, downstream: int) -> int:
        """How many of the copied records a group never reads that stood at `upstream` of the source and goes on at
        `downstream` of the copy: 0, or its place is beyond the truth."""
        still_to_read = set(self.source[partition][upstream:]).intersection(self.copy[partition])
        return len(still_to_read.difference(self.copy[partition][downstream:]))

    def again(self, partition: int, upstream: int, downstream: int) -> int:
        """How many records it reads twice, or more often."""
        read = set(self.source[partition][:upstream])
        return sum(number in read for number in self.copy[partition][downstream:])


@dataclass(frozen=True, slots=True)
class NumberedCopy:
    """A topic at `a` and what it is called at `b`."""

    a: str
    b: str
    topic: str
    remote: str

    def wait_for_more(self, records: int) -> None:
        """Returns once so many more stand on the target, some in every partition."""
        before: dict[int, int] = {}

        def grown() -> bool:
            if self.remote not in admin(self.b).list_topics(timeout=20).topics:
                return False
            try:
                now = end_offsets(self.b, self.remote)
            except KafkaException as error:
                if error.args[0].code() in NOT_YET:
                    return False
                raise
            if not before:
                before.update(now)
            each = [end - before.get(number, 0) for number, end in now.items()]
            return min(each) > 0 and sum(each) >= records

        until(grown, what=f"{self.remote} grows")

    def wait_complete(self) -> None:
        """Returns once the newest record of each partition is there, whoever copies it; nobody may write any more."""
        newest = {number: found[-1:] for number, found in read_numbers(self.a, self.topic).items()}

        def there() -> bool:
            return {number: found[-1:] for number, found in read_numbers(self.b, self.remote).items()} == newest

        until(there, what=f"{self.remote} has all of it")

    def seen(self) -> Seen:
        """The copy is read first: all that is in it is in the source then."""
        copy = read_numbers(self.b, self.remote)
        return Seen(read_numbers(self.a, self.topic), copy)

    def counted(self) -> Count:
        """As `Seen.counted`, now."""
        return self.seen().counted()
