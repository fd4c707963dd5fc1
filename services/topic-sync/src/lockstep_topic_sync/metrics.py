"""The metrics of the topic-sync service."""

from lockstep_state.metric import MetricSet

METRICS = MetricSet()

TOPICS = METRICS.gauge(
    "lockstep_topics",
    ("flow", "phase"),
    "Topics of the flow, by phase: `mirrored`, `failing` (mirrored, but partitions are missing or configs fail;"
    " retried), `creating` (the copy of a topic that gets another name is being created), `failed` (not mirrored;"
    " retried), `deleted` (gone on the source), `excluded` (no longer selected),"
    " `left-out` (selected, but not mirrored because its name says that it is a copy from the target)",
)
MISSING_PARTITIONS = METRICS.gauge(
    "lockstep_missing_partitions",
    ("flow",),
    "Source partitions that the target does not have and that could not be added: they are not copied",
)
