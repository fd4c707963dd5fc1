"""What topic-sync's page shows beside what every service shows."""

from lockstep_runtime.metrics import Metric, Type

__all__ = ["METRICS", "TOPICS"]

TOPICS = Metric(
    "lockstep_topics",
    Type.GAUGE,
    ("flow", "phase"),
    "Topics of the flow: `mirrored`, `failed` (tried again), `deleted` (gone on the source), `excluded` (no longer"
    " selected)",
)

METRICS = (TOPICS,)
