"""What topic-sync's page shows beside what every service shows."""

from lockstep_runtime.telemetry.metrics import Metric, Type

__all__ = ["METRICS", "MISSING_PARTITIONS", "TOPICS"]

TOPICS = Metric(
    "lockstep_topics",
    Type.GAUGE,
    ("flow", "phase"),
    "Topics of the flow: `mirrored`, `failing` (mirrored, and lacks partitions, or its configs fail; tried again),"
    " `failed` (not mirrored; tried again), `deleted` (gone on the source), `excluded` (no longer selected),"
    " `left-out` (selected, and not mirrored because its name says that it is a copy from the target)",
)
MISSING_PARTITIONS = Metric(
    "lockstep_missing_partitions",
    Type.GAUGE,
    ("flow",),
    "Partitions of the source that the target does not have and that could not be added: nothing of them is copied",
)

METRICS = (TOPICS, MISSING_PARTITIONS)
