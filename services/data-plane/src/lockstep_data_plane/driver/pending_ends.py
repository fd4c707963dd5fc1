"""The slots that still have to find out where their copies end (no I/O, no clock).

They were killed or cut off before that end was written to the state topic.
"""

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import replace

from lockstep_data_plane.slot.end_searches import SEARCHED_AGAIN_S, SEARCHED_AT_MOST_S
from lockstep_kafka.common.backoff import KeyedBackoff
from lockstep_rules.offsets.lag import SILENT_AFTER_S
from lockstep_runtime.util.liveness_timer import LivenessTimer
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import Assignment, PartitionProgress, Row, SlotStatus


class PendingEnds:
    """The pending ends of one flow. Times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._undecidable: dict[int, frozenset[PartitionProgress]] = {}
        """By slot, the rows that a search left in doubt. To repeat the search changes nothing by itself."""
        self._answered: frozenset[TopicPartition] = frozenset()
        """Partitions whose end of the copy only the source knows, and about which the source answers again."""
        self._search_backoff: KeyedBackoff[TopicPartition] = KeyedBackoff(SEARCHED_AGAIN_S, SEARCHED_AT_MOST_S)
        self._timers: defaultdict[int, LivenessTimer] = defaultdict(LivenessTimer)

    def pending(self, rows: Mapping[str, Row], slot: int, partitions: Iterable[TopicPartition]) -> bool:
        """Return whether a stopped slot without a job has to locate the ends of copies in these partitions."""
        status = rows.get(SlotStatus.key_of(slot))
        if isinstance(status, SlotStatus) and status.phase != "released":
            return True
        unknown = _rows_without_end(rows, partitions)
        unknown = frozenset(row for row in unknown if not row.needs_source or _partition(row) in self._answered)
        return not unknown <= self._undecidable.get(slot, frozenset())

    def any_pending(self, rows: Mapping[str, Row]) -> bool:
        """Return whether a slot of the present assignment has a pending end. Slots without partitions have none."""
        return any(
            self.pending(rows, row.slot, row.partitions)
            for row in list(rows.values())
            if isinstance(row, Assignment) and row.partitions
        )

    def partitions_to_query(self, rows: Mapping[str, Row], now: float) -> list[TopicPartition]:
        """Return the partitions to query the source about, because only the source knows where their copies end.

        A partition whose search was fruitless is left out until its back-off is over.
        """
        waiting = self._search_backoff.waiting(now)
        undecided = (
            _partition(row) for row in list(rows.values()) if isinstance(row, PartitionProgress) and row.needs_source
        )
        return [tp for tp in undecided if tp not in waiting]

    def note_source_answers(self, partitions: Collection[TopicPartition]) -> None:
        """Note about which partitions the source answers. Their ends are pending until the next search."""
        self._answered = frozenset(partitions)

    def note_job_end(
        self,
        rows: Mapping[str, Row],
        slot: int,
        partitions: Iterable[TopicPartition],
        now: float,
        *,
        only_locates: bool,
    ) -> None:
        """Note that a job of the slot has ended. `only_locates`: it was a search and copied nothing."""
        searched = frozenset(partitions)
        unknown = _rows_without_end(rows, searched) if only_locates else frozenset()
        self._undecidable[slot] = frozenset(row for row in unknown if row.phase == "halted")
        fruitless = {_partition(row) for row in unknown if row.needs_source}
        for tp in self._answered & searched:
            if tp in fruitless:
                self._search_backoff.failed(tp, now)
            else:
                self._search_backoff.succeeded(tp)
        self._answered -= searched

    def release_rows(self, rows: Mapping[str, Row], running: Container[int], now: float) -> Iterator[SlotStatus]:
        """Yield a released row for each slot that was killed, has no job in `running` and no partitions.

        A slot counts as killed once its row has not changed for `SILENT_AFTER_S`.
        """
        for row in list(rows.values()):
            if not isinstance(row, SlotStatus) or row.phase == "released" or row.slot in running:
                continue
            assigned = rows.get(Assignment.key_of(row.slot))
            has_some = isinstance(assigned, Assignment) and bool(assigned.partitions)
            if not has_some and self._timers[row.slot].silent_for(row, now) >= SILENT_AFTER_S:
                yield replace(row, phase="released", partitions=0, resting=0, held_bytes=0, held_records=0)


def _rows_without_end(rows: Mapping[str, Row], partitions: Iterable[TopicPartition]) -> frozenset[PartitionProgress]:
    """Return the progress rows of these partitions that do not say where the copy ends."""
    progress_rows = (rows.get(PartitionProgress.key_of(topic, number)) for topic, number in partitions)
    return frozenset(row for row in progress_rows if isinstance(row, PartitionProgress) and not row.has_end)


def _partition(row: PartitionProgress) -> TopicPartition:
    return row.topic, row.partition
