"""Which slots still owe it to say where their copies end: they were killed, or cut off, before that was written down.
No I/O, no clock."""

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import replace

from lockstep_data_plane.slot.end_searches import SEARCHED_AGAIN_S, SEARCHED_AT_MOST_S
from lockstep_kafka.common.backoff import KeyedBackoff
from lockstep_rules.offsets.lag import SILENT_AFTER_S
from lockstep_runtime.util.liveness_timer import LivenessTimer
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import Assignment, PartitionProgress, Row, SlotStatus


class SlotEnds:
    """Of one flow, as its driver sees it."""

    def __init__(self) -> None:
        self._undecidable: dict[int, frozenset[PartitionProgress]] = {}
        """By slot, rows of which it has found out that they are in doubt: to look again changes nothing by itself."""
        self._answered: frozenset[TopicPartition] = frozenset()
        """Partitions whose copies' ends the source alone knows, and about which it answers again."""
        self._in_vain: KeyedBackoff[TopicPartition] = KeyedBackoff(SEARCHED_AGAIN_S, SEARCHED_AT_MOST_S)
        self._timers: defaultdict[int, LivenessTimer] = defaultdict(LivenessTimer)

    def owed(self, rows: Mapping[str, Row], slot: int, partitions: Iterable[TopicPartition]) -> bool:
        """Whether a slot with these partitions, which is stopped and has no job, is to find out where their copies
        end."""
        status = rows.get(SlotStatus(slot=slot, phase="").key())
        if isinstance(status, SlotStatus) and status.phase != "released":
            return True
        unknown = _unknown(rows, partitions)
        unknown = frozenset(row for row in unknown if not row.needs_source or _partition(row) in self._answered)
        return not unknown <= self._undecidable.get(slot, frozenset())

    def owing(self, rows: Mapping[str, Row]) -> bool:
        """Whether one of the slots does, by what it was assigned last. Those that are assigned nothing owe nothing."""
        return any(
            self.owed(rows, row.slot, row.partitions)
            for row in list(rows.values())
            if isinstance(row, Assignment) and row.partitions
        )

    def unanswered(self, rows: Mapping[str, Row], now: float) -> list[TopicPartition]:
        """Return the partitions about which the source is to be asked, because it alone knows where their copies end.
        `now`: seconds of a clock that does not go back."""
        waiting = self._in_vain.waiting(now)
        every = (
            _partition(row) for row in list(rows.values()) if isinstance(row, PartitionProgress) and row.needs_source
        )
        return [tp for tp in every if tp not in waiting]

    def source_answers(self, partitions: Collection[TopicPartition]) -> None:
        """Note about which partitions the source answers. Their copies are then worth another search."""
        self._answered = frozenset(partitions)

    def ended(
        self,
        rows: Mapping[str, Row],
        slot: int,
        partitions: Iterable[TopicPartition],
        now: float,
        *,
        only_locates: bool,
    ) -> None:
        """A job of the slot is over. `only_locates`: it copied nothing. `now`: as for `unanswered`."""
        searched = frozenset(partitions)
        unknown = _unknown(rows, searched) if only_locates else frozenset()
        self._undecidable[slot] = frozenset(row for row in unknown if row.phase == "halted")
        in_vain = {_partition(row) for row in unknown if row.needs_source}
        for tp in self._answered & searched:
            if tp in in_vain:
                self._in_vain.failed(tp, now)
            else:
                self._in_vain.succeeded(tp)
        self._answered -= searched

    def orphaned_rows(self, rows: Mapping[str, Row], running: Container[int], now: float) -> Iterator[SlotStatus]:
        """The reports in the place of slots that were killed and will not come back, for they have nothing to copy any
        more. `running`: those that have a job; `now`: seconds of a clock that does not go back."""
        for row in list(rows.values()):
            if not isinstance(row, SlotStatus) or row.phase == "released" or row.slot in running:
                continue
            assigned = rows.get(Assignment(slot=row.slot).key())
            has_some = isinstance(assigned, Assignment) and bool(assigned.partitions)
            if not has_some and self._timers[row.slot].silent_for(row, now) >= SILENT_AFTER_S:
                yield replace(row, phase="released", partitions=0, resting=0, held_bytes=0, held_records=0)


def _unknown(rows: Mapping[str, Row], partitions: Iterable[TopicPartition]) -> frozenset[PartitionProgress]:
    """The rows of those that do not say where the copy ends."""
    found = (rows.get(PartitionProgress(topic=topic, partition=number).key()) for topic, number in partitions)
    return frozenset(row for row in found if isinstance(row, PartitionProgress) and not row.has_end)


def _partition(row: PartitionProgress) -> TopicPartition:
    return row.topic, row.partition
