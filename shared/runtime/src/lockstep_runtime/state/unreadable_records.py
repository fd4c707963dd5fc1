"""Records that are not what their topic should hold: passed over, logged once, and counted."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.telemetry.log import FlowLog

LOGGED_AT_MOST = 100
"""Most warnings for each topic. Further records are counted only."""

REMEMBERED_AT_MOST = 10_000
"""Most records that are remembered as logged: a topic is replayed in each session."""


PARTITIONS_IN_ROW = 100

PRESENT_AT_MOST = 1_000
"""Most keys, whose last record cannot be read, that are kept by name. The others are only counted."""


PassOver: TypeAlias = Callable[[str, int, int, ValueError], None]
"""The type of `UnreadableRecords.pass_over_at`: topic, partition, offset, and what the codec raised."""


class UnreadableRecords:
    """Keep what a reader of some topics could not read. It goes on behind such a record, as if there were none."""

    def __init__(self, log: FlowLog, on_new: Callable[[str, int], None] = lambda topic, records: None) -> None:
        """Take the log, and a function that gets a topic and the number of its records that were not known."""
        self._log = log
        self._on_new = on_new
        self._logged: set[int] = set()
        self._counts: Counter[tuple[str, int]] = Counter()
        self._warned: Counter[str] = Counter()
        self._present: dict[tuple[str, bytes | None], str] = {}
        self._more: set[str] = set()
        """Topics with keys that are not named. They are known again when the topic is read again."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Return how many records were passed over since the start, by topic."""
        topics: Counter[str] = Counter()
        for (topic, _), count in self._counts.items():
            topics[topic] += count
        return dict(sorted(topics.items()))

    @property
    def by_partition(self) -> tuple[tuple[str, int, int], ...]:
        """Return topic, partition and count of the first partitions that have some, as many as fit into a row."""
        listed = sorted(self._counts.items())[:PARTITIONS_IN_ROW]
        return tuple((topic, partition, count) for (topic, partition), count in listed)

    def count(self, topic: str, partition: int, records: int) -> None:
        """Count records that were passed over, and are logged elsewhere."""
        self._counts[topic, partition] += records
        self._on_new(topic, records)

    @property
    def present(self) -> Iterable[str]:
        """Return a sentence for each key of a compacted topic whose last record cannot be read.

        Beyond `PRESENT_AT_MOST` keys, one sentence says that there are more.
        """
        more = (f"more than {PRESENT_AT_MOST} keys, which are not named",) if self._more else ()
        return (*self._present.values(), *more)

    def pass_over(self, record: Record, error: ValueError, *, stays: bool) -> None:
        """Go on behind a record that cannot be read.

        Args:
            record: The record.
            error: What the codec raised.
            stays: The topic is compacted, so the record stays until another one has its key.
        """
        if stays and len(self._present) >= PRESENT_AT_MOST and (record.topic, record.key) not in self._present:
            self._more.add(record.topic)
        elif stays:
            self._present[record.topic, record.key] = f"{record.location}: {error}"
        identity = hash((record.topic, record.partition, record.offset, record.key, record.value))
        if identity in self._logged:
            return
        if len(self._logged) < REMEMBERED_AT_MOST:
            self._logged.add(identity)
        self.count(record.topic, record.partition, 1)
        self._warned[record.topic] += 1
        location = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
        if self._warned[record.topic] <= LOGGED_AT_MOST:
            self._log.warn("unreadable record passed over", f"{record.location}: {error}", **location)
        elif self._warned[record.topic] == LOGGED_AT_MOST + 1:
            self._log.warn("unreadable records passed over", f"{record.topic}: further ones are counted, not logged")

    def pass_over_at(self, topic: str, partition: int, offset: int, error: ValueError) -> None:
        """Go on behind what cannot be read at an offset of a log: a record, or a batch that begins with it."""
        self.pass_over(Record(topic, partition, offset, None, None, 0), error, stays=False)

    def pass_over_later(self, error: ValueError) -> None:
        """Go on without a record that was kept as bytes, and whose offset another reader has logged."""
        self._log.warn("unreadable row passed over", str(error))

    def was_read(self, record: Record) -> None:
        """Note that a record can be read, so an earlier one with its key is no longer present. Cheap if none is."""
        if self._present:
            self._present.pop((record.topic, record.key), None)

    def begin(self, topic: str) -> None:
        """Note that a topic is read from its beginning."""
        self._more.discard(topic)
        self._present = {(name, key): sentence for (name, key), sentence in self._present.items() if name != topic}
