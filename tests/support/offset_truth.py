"""What offset runs are held against: every upstream offset's true place, and a partition that is copied, written down,
killed and continued."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from lockstep_data_plane.core.offset_run_log import OffsetRunLog
from lockstep_rules.offsets.offset_runs import RunMap, Translation
from lockstep_state.offsets import UpstreamOffset
from lockstep_state.rows.state_rows import OffsetRuns, PartitionProgress, decode_row

Stretch = tuple[int, int, int]
"""(first upstream, first downstream, records)"""
StateRow = OffsetRuns | PartitionProgress

FIRST = PartitionProgress(
    topic="t", partition=0, producer_id=4000, source_topic_id="source", target_topic_id="target", downstream=-1
)


@st.composite
def logs(draw: st.DrawFn, begin: tuple[int, int] = (0, 0), most: int = 12) -> list[Stretch]:
    """Return stretches with gaps in either log, in both or in none."""
    up, down = (offset + draw(st.integers(0, 3)) for offset in begin)
    stretches: list[Stretch] = []
    for _ in range(draw(st.integers(1, most))):
        count = draw(st.integers(1, 6))
        stretches.append((up, down, count))
        up += count + draw(st.sampled_from((0, 0, 1, 1, 4)))
        down += count + draw(st.sampled_from((0, 0, 0, 1, 3)))
    return stretches


def exact_places(slot_spans: Iterable[Stretch]) -> dict[int, int]:
    """Return where a group at each upstream offset stands exactly, from the first record to two behind the last one: at
    the record, or behind the last one before the offset."""
    places: dict[int, int] = {}
    for up, down, count in slot_spans:
        if places:
            last = max(places)
            places.update(dict.fromkeys(range(last, up), places[last]))
        places.update({up + i: down + i for i in range(count + 1)})
    last = max(places)
    return {**places, last + 1: places[last], last + 2: places[last]}


def read(rows: Iterable[StateRow]) -> RunMap:
    """Return what a reader knows who has folded these rows one by one, with new maps for new topics."""
    runs = RunMap(FIRST.producer_id, FIRST.source_topic_id, FIRST.target_topic_id)
    for row in rows:
        runs = runs.fold(row) if isinstance(row, OffsetRuns) else runs.fold_progress(row)
    return runs


def translated(runs: RunMap, positions: Iterable[int]) -> Iterator[tuple[int, Translation | None]]:
    for position in positions:
        yield position, runs.translate(UpstreamOffset(position))


def as_it_lies(row: StateRow) -> StateRow:
    """Return a row as it is after it was written to the topic and read."""
    read_row = decode_row(*row.encode())
    assert isinstance(read_row, StateRow)
    assert read_row == row
    return read_row


@dataclass
class Copied:
    """A partition as a slot copies it: stretches in, rows out."""

    lag_max: int = 100
    progress: PartitionProgress = FIRST
    log: list[StateRow] = field(default_factory=list)
    """Every row ever written, in order."""
    stretches: list[Stretch] = field(default_factory=list)
    """What holds in the present generation, in order."""
    runs: OffsetRunLog = field(init=False)

    def __post_init__(self) -> None:
        self.runs = OffsetRunLog(self.lag_max).continued(self.progress)

    def copies(self, slot_spans: Sequence[Stretch]) -> None:
        for up, down, count in slot_spans:
            self.runs.add_run(up, down, count)
            self.stretches.append((up, down, count))
            self.progress = replace(
                self.progress, upstream=up + count - 1, downstream=down + count - 1, sequence=len(self.stretches)
            )

    def passes_over(self, records: int) -> None:
        """Control batches at the source's end."""
        self.progress = replace(self.progress, upstream=self.progress.upstream + records)

    def writes(self, *, only_runs: bool = False) -> None:
        rows = self.runs.due()
        self.log += map(as_it_lies, rows)
        self.runs.mark_written(rows)
        if not only_runs:
            self.log.append(as_it_lies(replace(self.progress, open_run=self.runs.open_run)))

    def present(self) -> dict[str, StateRow]:
        """Return the last row of each key."""
        return {row.key(): row for row in self.log}

    def dies_and_goes_on(self) -> None:
        """A new slot has what is written, and copies or counts again what lies behind the progress written."""
        row = next((row for row in reversed(self.log) if isinstance(row, PartitionProgress)), FIRST)
        rows = [written for written in self.present().values() if isinstance(written, OffsetRuns)]
        again, self.stretches, self.progress = self.stretches, [], row
        self.runs = OffsetRunLog(self.lag_max).continued(row, rows)
        behind = [s for s in again if s[0] + s[2] - 1 > row.upstream]
        self.stretches = [s for s in again if s[0] + s[2] - 1 <= row.upstream]
        for up, down, count in behind:
            written_down = max(0, row.upstream + 1 - up)
            self.stretches += [(up, down, written_down)] if written_down else []
            self.copies([(up + written_down, down + written_down, count - written_down)])

    def begins_again(self, upstream: int, downstream: int, *, in_place: bool) -> None:
        """A decision: the next record is `upstream`, and the target's log ends at `downstream` now. `in_place`: by the
        slot that has it; else by another one, from what is written."""
        row = replace(
            self.progress,
            producer_epoch=self.progress.producer_epoch + 1,
            upstream=upstream - 1,
            downstream=downstream - 1,
            sequence=-1,
            open_run=self.runs.open_run if in_place else self._written_open_run(),
        )
        self.log.append(as_it_lies(row))
        rows = [written for written in self.present().values() if isinstance(written, OffsetRuns)]
        self.runs = (self.runs if in_place else OffsetRunLog(self.lag_max)).continued(row, rows)
        kept = [(u, d, min(n, upstream - u, downstream - d)) for u, d, n in self.stretches]
        self.stretches = [*(stretch for stretch in kept if stretch[2] > 0), (upstream, downstream, 0)]
        self.progress = row

    def _written_open_run(self) -> tuple[int, ...]:
        return next((row.open_run for row in reversed(self.log) if isinstance(row, PartitionProgress)), ())
