"""A source topic that the log cleaner has been through: every batch has gaps, so no system can pass one on as it lies.

Real cleaning by the broker: no broker takes a batch with gaps from a producer.
"""

from collections.abc import Callable
from dataclasses import replace

from tests.support.clusters import set_configs
from tests.support.eventually import wait_until
from tools.bench.clusters import Clusters
from tools.bench.limit import LogShape, log_shape
from tools.bench.load import Loaded, load
from tools.bench.wire import Connection, end_offsets

EACH = 4
"""One record of so many in a partition bears the key that the next such bears too; all others have their own."""

UNTIL_LATER = "86400000"
UNCLEANED = {
    "cleanup.policy": "compact",
    "min.compaction.lag.ms": UNTIL_LATER,
    "segment.bytes": str(64 << 20),
}
"""Settings under which the topic is filled and then copied: nothing is cleaned before `clean` asks for it, nor is
anything in the copy on the target, which gets them too."""

CLEAN_NOW = {"min.compaction.lag.ms": "0", "min.cleanable.dirty.ratio": "0.001", "segment.ms": "50"}
CLEAN_NO_MORE = {"min.compaction.lag.ms": UNTIL_LATER, "min.cleanable.dirty.ratio": None, "segment.ms": None}
CLEANED_WITHIN_S = 300.0
CHECK_INTERVAL_S = 2.0


def key_of(number: int, partitions: int) -> bytes:
    """The key of a record: one in `EACH` of a partition is superseded by the next such."""
    own = number // partitions % EACH
    return b"customer-%09d" % number if own else b"latest"


def left_of(records: int, partitions: int) -> int:
    """How many of so many records, dealt to the partitions in turn, are left when all is cleaned."""
    left = 0
    for partition in range(partitions):
        held = len(range(partition, records, partitions))
        superseded = len(range(0, held, EACH))
        left += held - superseded + min(superseded, 1)
    return left


def clean(
    clusters: Clusters, topic: str, partitions: int, loaded: Loaded, say: Callable[[str], None]
) -> tuple[Loaded, LogShape]:
    """Have the cleaner remove what was superseded, all of it.

    Returns what is then there. Raises NeverHappened, NotLoaded and KafkaException.

    One record more in each partition makes the broker begin a new segment: it never cleans the one it writes to.
    """
    set_configs(clusters.source, topic, CLEAN_NOW)
    wanted = left_of(loaded.records, partitions) + partitions
    load(
        clusters.source,
        topic,
        records=partitions,
        partitions=partitions,
        codec="none",
        batch_bytes=1 << 14,
        key_of=lambda _: b"the end",
    )
    with Connection(clusters.source) as connection:
        ends = end_offsets(connection, topic, partitions)

    def cleaned() -> LogShape | None:
        shape = log_shape(clusters.source, topic, ends)
        return shape if shape.records <= wanted else None

    shape = wait_until(
        cleaned, within=CLEANED_WITHIN_S, every=CHECK_INTERVAL_S, what=f"{topic} down to {wanted} records"
    )
    set_configs(clusters.source, topic, CLEAN_NO_MORE)
    say(f"{topic}: cleaned, {shape.records:,} of {loaded.records:,} records are left in {shape.batches:,} batches")
    return replace(loaded, records=shape.records), shape
