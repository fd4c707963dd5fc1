"""Which slots still owe it to say where their copies end: they were killed, or cut off, before that was written down.
No I/O, no clock."""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace

from lockstep_protocol.lag import SILENT_AFTER_S
from lockstep_protocol.offsets import TopicPartition
from lockstep_protocol.rows.state_rows import Assignment, PartitionProgress, Row, SlotStatus
from lockstep_runtime.util.liveness_timer import LivenessTimer


class SlotEnds:
    """Of one flow, as its driver sees it."""

    def __init__(self) -> None:
        self._undecidable: dict[int, frozenset[PartitionProgress]] = {}
        """By slot, rows of which it has found out that they are in doubt: to look again changes nothing by itself."""
        self._source_is_back = False
        """The source answers again, which may say more of copies whose end it alone knows."""
        self._timers: defaultdict[int, LivenessTimer] = defaultdict(LivenessTimer)

    def owed(self, rows: Mapping[str, Row], slot: int, partitions: Iterable[TopicPartition]) -> bool:
        """Whether a slot with these partitions, which is stopped and has no job, is to find out where their copies
        end."""
        status = rows.get(SlotStatus(slot=slot, phase="").key())
        if isinstance(status, SlotStatus) and status.phase != "released":
            return True
        unknown = _unknown(rows, partitions)
        if not self._source_is_back:
            unknown = frozenset(row for row in unknown if not row.needs_source)
        return not unknown <= self._undecidable.get(slot, frozenset())

    def owing(self, rows: Mapping[str, Row]) -> bool:
        """Whether one of the slots does, by what it was assigned last. Those that are assigned nothing owe nothing."""
        return any(
            self.owed(rows, row.slot, row.partitions)
            for row in list(rows.values())
            if isinstance(row, Assignment) and row.partitions
        )

    def source_is_back(self) -> None:
        """Note that the source answers. Copies whose end it alone knows are then worth another look."""
        self._source_is_back = True

    def ended(
        self, rows: Mapping[str, Row], slot: int, partitions: Iterable[TopicPartition], *, only_locates: bool
    ) -> None:
        """A job of the slot is over. `only_locates`: it copied nothing."""
        self._source_is_back = False
        unknown = _unknown(rows, partitions) if only_locates else frozenset()
        self._undecidable[slot] = frozenset(row for row in unknown if row.phase == "halted")

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
