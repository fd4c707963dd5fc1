"""MM2's checkpoint latency, by group and partition."""

from lockstep_checkpoint.checkpoint_latency import CheckpointLatencies
from lockstep_state.codecs.mm2_codec import Checkpoint
from lockstep_state.names import Flow
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset


def checkpoint(group: str, partition: int = 0) -> Checkpoint:
    return Checkpoint(group, "A.t", partition, UpstreamOffset(5), DownstreamOffset(5), "")


def shown(latencies: CheckpointLatencies, now_ms: int = 1000) -> dict[tuple[str, ...], list[float]]:
    latency: dict[tuple[str, ...], list[float]] = {}
    for _, labels, value in latencies.samples(now_ms):
        latency.setdefault(labels, []).append(value)
    return latency


def test_mm2_082_latency_is_kept_for_each_group_and_partition() -> None:
    latencies = CheckpointLatencies(Flow("A", "B"))
    assert shown(latencies) == {}
    latencies.acknowledged([checkpoint("g"), checkpoint("h", 1)], 12, 1000)
    latencies.acknowledged([checkpoint("g")], 4, 1000)
    assert shown(latencies) == {
        ("A", "B", "g", "A.t", "0"): [4, 4, 12, 8],
        ("A", "B", "h", "A.t", "1"): [12, 12, 12, 12],
    }


def test_a_group_that_is_gone_has_none() -> None:
    latencies = CheckpointLatencies(Flow("A", "B"))
    latencies.acknowledged([checkpoint("g"), checkpoint("h")], 12, 1000)
    latencies.keep_only({"h"})
    assert list(shown(latencies)) == [("A", "B", "h", "A.t", "0")]
