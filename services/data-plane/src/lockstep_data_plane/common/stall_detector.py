"""Which partitions do not move although their source does (no I/O, no clock)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from lockstep_protocol.offsets import TopicPartition
from lockstep_protocol.rows.state_rows import PartitionProgress


@dataclass(frozen=True, slots=True)
class StalledPartition:
    """The copy stands at `upstream` since `for_s` seconds, the source's readable records end at `end`."""

    tp: TopicPartition
    upstream: int
    end: int
    for_s: float


class CopyStallDetector:
    """Remembers since when each partition stands still with something to copy."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._since: dict[TopicPartition, tuple[int, float]] = {}
        self.stuck: dict[TopicPartition, StalledPartition] = {}
        """Those that were named and have not moved since."""

    def check(
        self,
        rows: Iterable[PartitionProgress],
        ends: Mapping[TopicPartition, int],
        now: float,
        resting: Collection[TopicPartition] = (),
    ) -> tuple[list[StalledPartition], list[TopicPartition]]:
        """Those newly found stuck, and those that move again, are up to date, halted with a reason of their own, or
        `resting` because somebody wants it so. `ends`: the next offset behind what can be read; a partition that is not
        in it was not answered for and stays as it was. `now`: seconds of a clock that does not go back."""
        found: list[StalledPartition] = []
        over: list[TopicPartition] = []
        for row in rows:
            tp = (row.topic, row.partition)
            if tp not in ends:
                continue
            upstream, since = self._since.get(tp, (row.upstream, now))
            at_rest = row.phase == "halted" or tp in resting
            if at_rest or row.upstream != upstream or ends[tp] - 1 <= row.upstream:
                self._since[tp] = (row.upstream, now)
                if self.stuck.pop(tp, None) is not None:
                    over.append(tp)
                continue
            self._since[tp] = (upstream, since)
            if now - since >= self._patience_s and tp not in self.stuck:
                self.stuck[tp] = StalledPartition(tp, upstream, ends[tp], now - since)
                found.append(self.stuck[tp])
        return found, over
