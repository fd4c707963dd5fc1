"""What one sees of the mirroring at one moment, as a value; and how far behind a partition is. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from lockstep_state.rows.state_rows import PartitionProgress


@dataclass(frozen=True, slots=True)
class TopicLine:
    """One topic of one flow. Ends are summed over its partitions; `rate` is records a second reaching the target."""

    flow: str
    topic: str
    source_end: int
    target_end: int
    lag_records: int
    lag_ms: int
    rate: float


@dataclass(frozen=True, slots=True)
class FlowLine:
    """One flow. Ages in milliseconds, None where there was no such record yet."""

    flow: str
    heartbeat_age_ms: int | None
    checkpoints: int
    """Checkpoints read since the beginning."""
    checkpoint_age_ms: int | None
    halted: tuple[str, ...] = ()
    """Partitions that stand still, with the reason."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything, at one moment. `phase` says what is going on, `group` what the consumer group does."""

    seconds: float
    phase: str
    group: str
    topics: tuple[TopicLine, ...]
    flows: tuple[FlowLine, ...]

    @property
    def lag_records(self) -> int:
        return sum(line.lag_records for line in self.topics)


def partition_lag(source_end: int, target_end: int, progress: PartitionProgress | None) -> int:
    """Records of a partition that the target does not have yet.

    The written progress is up to a second old. What the target's log has grown by since then came from upstream, so
    the present position is known to the record, unless the source has gaps: then the answer is too high until
    progress is written again.
    """
    if progress is None:
        return max(0, source_end - target_end)
    upstream = progress.upstream + max(0, target_end - 1 - progress.downstream)
    return max(0, source_end - 1 - upstream)


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie; `values` must not be empty."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
