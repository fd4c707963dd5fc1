"""The records of a topic that a command could not read. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lockstep_kafka.topics.topic_reader import Record
from lockstep_ops.formatting import count_text


@dataclass(frozen=True, slots=True)
class UnreadRecords:
    """Records of one topic that were passed over. `first` is the place of the first one, with the reason."""

    topic: str
    count: int
    first: str

    def __str__(self) -> str:
        records = count_text(self.count, "record")
        return f"{records} of {self.topic} cannot be read, so what they say does not count: {self.first}"


@dataclass(slots=True)
class PassedOverRecords:
    """Records that were passed over while topics were read."""

    _by_topic: dict[str, UnreadRecords] = field(default_factory=dict)

    def pass_over(self, record: Record, error: ValueError) -> None:
        """Note a record that cannot be read, and go on behind it."""
        place = f"partition {record.partition} offset {record.offset}: {error}"
        earlier = self._by_topic.get(record.topic, UnreadRecords(record.topic, 0, place))
        self._by_topic[record.topic] = UnreadRecords(record.topic, earlier.count + 1, earlier.first)

    @property
    def topics(self) -> Sequence[UnreadRecords]:
        """Return the records that were passed over, by topic."""
        return [self._by_topic[topic] for topic in sorted(self._by_topic)]


def as_counts(unread: Sequence[UnreadRecords]) -> Mapping[str, int]:
    """Return how many records of each topic were passed over, for programs."""
    return {records.topic: records.count for records in unread}
