"""The offsets up to which partitions are fetched: delays, and ends that an operator has set (no I/O, no clock).

A delayed record stays in the source's log. So a delay costs no memory, and a slot that is killed has nothing to find
again. The driver says in rows what it has seen for as long as the delay (`SeenEnds`). Without such a row nothing is
fetched.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.phases import Phase
from lockstep_data_plane.record_batch.layout import LARGEST_OFFSET
from lockstep_rules.offsets.first_seen import no_delay, released_offset
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import MirroredTopic, SeenEnds

NO_LIMIT = LARGEST_OFFSET + 2
"""The limit of a partition without one: beyond every offset."""

_NO_TOPICS: Mapping[str, MirroredTopic] = MappingProxyType({})


class FetchLimits:
    """The limits of a slot's partitions. A limit is the first offset that is not copied."""

    def __init__(
        self, delay_ms: Callable[[str], int] = no_delay, topics: Mapping[str, MirroredTopic] = _NO_TOPICS
    ) -> None:
        """Begin without rows and ends.

        Args:
            delay_ms: Returns the delay of a source topic in milliseconds; 0: it has none.
            topics: The rows of mirrored topics by name in the source, which may change.
        """
        self._delay_ms = delay_ms
        self._topics = topics
        self._delayed: dict[str, bool] = {}
        self._seen: dict[TopicPartition, SeenEnds] = {}
        self._ends: Mapping[TopicPartition, int] = {}
        self._cut: dict[TopicPartition, tuple[int, int, int]] = {}
        """The incarnation, next offset and limit at which an answer brought only records beyond the limit."""

    def take_row(self, row: SeenEnds) -> bool:
        """Take a new row of a partition, and return whether its records are delayed here."""
        self._seen[row.topic, row.partition] = row
        return self._is_delayed(row.topic)

    def set_ends(self, ends: Mapping[TopicPartition, int]) -> bool:
        """Set the ends of copies, in place of all that were set before, and return whether they differ."""
        before, self._ends = self._ends, ends
        return before != ends

    def find(self, partition: PartitionState) -> int:
        """Return the limit of a partition now; `NO_LIMIT`: it has none.

        An end counts instead of a delay: an operator wants the records before it now. Records that the target has
        already are counted and not appended. They are the next ones, and each has an offset of its own, so that many
        offsets may be read beyond the limit. A partition at rest reads only such records.
        """
        end = self._ends.get(partition.tp)
        if end is None:
            if not self._is_delayed(partition.topic):
                return NO_LIMIT
            end = released_offset(self._seen.get(partition.tp), self._topics.get(partition.topic))
        if partition.phase is Phase.LOCATING:
            return NO_LIMIT
        return max(end, partition.position + partition.records_to_skip)

    def allows(self, partition: PartitionState) -> bool:
        """Return whether the next record of the partition may be fetched, as far as limits say."""
        limit = self.find(partition)
        if limit == NO_LIMIT:
            return True
        return partition.fetch_from < limit and not self.is_cut(partition, limit)

    def on_cut(self, partition: PartitionState, limit: int) -> None:
        """Note that what comes next in the log goes beyond the limit. Nothing is fetched until the limit changes."""
        self._cut[partition.tp] = partition.incarnation, partition.fetch_from, limit

    def is_cut(self, partition: PartitionState, limit: int) -> bool:
        """Return whether nothing more before the limit is to come, because the next batch goes beyond it."""
        return self._cut.get(partition.tp) == (partition.incarnation, partition.fetch_from, limit)

    def has_reached(self, partition: PartitionState, end: int) -> bool:
        """Return whether everything before an end is on the target, or was judged and needs only its answers."""
        if partition.acked.upstream + 1 >= end:
            return True
        is_judged = partition.reads and partition.position == partition.fetch_from and not partition.records_to_skip
        return is_judged and (partition.position >= end or self.is_cut(partition, end))

    def forget(self, tp: TopicPartition) -> None:
        """Forget what was fetched of a partition that leaves the slot."""
        self._cut.pop(tp, None)

    def _is_delayed(self, topic: str) -> bool:
        if topic not in self._delayed:
            self._delayed[topic] = self._delay_ms(topic) > 0
        return self._delayed[topic]
