"""How long checkpoints took, by group and partition: MM2's checkpoint latency, with a window for each where MM2's
legacy metrics share one (`mm2-behaviour.md` §6)."""

from collections.abc import Collection, Iterable, Iterator

from lockstep_checkpoint.metrics import LATENCY
from lockstep_rules.sliding_window import Window, stats
from lockstep_runtime.telemetry.metrics import Sample
from lockstep_state.codecs.mm2_codec import Checkpoint
from lockstep_state.names import Flow


class CheckpointLatencies:
    """Of one flow. A partition has its series from its first acknowledged checkpoint on, as in MM2."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._windows: dict[tuple[str, str, int], Window] = {}

    def acknowledged(self, checkpoints: Iterable[Checkpoint], took_ms: int, now_ms: int) -> None:
        """These were written together."""
        for one in checkpoints:
            self._windows.setdefault((one.group, one.topic, one.partition), Window()).record(now_ms, took_ms)

    def only(self, groups: Collection[str]) -> None:
        """Other groups are gone, or not ours any more."""
        self._windows = {key: window for key, window in self._windows.items() if key[0] in groups}

    def samples(self, now_ms: int) -> Iterator[Sample]:
        """For /metrics."""
        for (group, topic, partition), window in self._windows.items():
            labels = (self._flow.source, self._flow.target, group, topic, str(partition))
            for metric, value in zip(LATENCY, stats(window.summary, now_ms), strict=True):
                yield Sample(metric, labels, value)
