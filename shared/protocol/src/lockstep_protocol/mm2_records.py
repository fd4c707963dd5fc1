"""MM2's records as values (`mm2-behaviour.md` §1.3 to 1.5 and 1.7). How they lie in a topic is `codec`'s business."""

from dataclasses import dataclass

from lockstep_protocol.offsets import DownstreamOffset, UpstreamOffset


@dataclass(frozen=True, slots=True)
class OffsetSync:
    """The source's record at `upstream` was acknowledged by the target at `downstream`.

    `topic` is the source's name.
    """

    topic: str
    partition: int
    upstream: UpstreamOffset
    downstream: DownstreamOffset


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Group `group`, committed at `upstream` on the source, is at `downstream` on the target.

    `topic` is the target's name; `metadata` is what the group committed beside its offset.
    """

    group: str
    topic: str
    partition: int
    upstream: UpstreamOffset
    downstream: DownstreamOffset
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The flow `source->target` was alive at `timestamp_ms` of the sender's wall clock."""

    source: str
    target: str
    timestamp_ms: int
