"""MM2's checkpoint latency by group and partition.

Each partition has a window of its own, where MM2's legacy metrics share one (`mm2-behaviour.md` §6).
"""

from collections.abc import Collection, Iterable, Iterator

from lockstep_checkpoint.metrics import LATENCY
from lockstep_rules.sliding_window import Window, window_stats
from lockstep_runtime.telemetry.metrics import Sample
from lockstep_state.codecs.mm2_codec import Checkpoint
from lockstep_state.names import Flow


class CheckpointLatencies:
    """The checkpoint latencies of one flow.

    As in MM2, a partition has a series from its first acknowledged checkpoint on.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._windows: dict[tuple[str, str, int], Window] = {}

    def acknowledged(self, checkpoints: Iterable[Checkpoint], took_ms: int, now_ms: int) -> None:
        for checkpoint in checkpoints:
            window = self._windows.setdefault((checkpoint.group, *checkpoint.tp), Window())
            window.record(now_ms, took_ms)

    def keep_only(self, groups: Collection[str]) -> None:
        """Drop the series of all other groups."""
        self._windows = {key: window for key, window in self._windows.items() if key[0] in groups}

    def samples(self, now_ms: int) -> Iterator[Sample]:
        for (group, topic, partition), window in self._windows.items():
            labels = (self._flow.source, self._flow.target, group, topic, str(partition))
            for metric, value in zip(LATENCY, window_stats(window.summary, now_ms), strict=True):
                yield Sample(metric, labels, value)
