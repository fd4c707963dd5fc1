"""The metrics of the heartbeat service."""

from lockstep_state.metric import MetricSet

METRICS = MetricSet()

BEATS = METRICS.counter("lockstep_heartbeats", ("flow",), "Heartbeats acknowledged by the target")
AGE = METRICS.gauge(
    "lockstep_heartbeat_age_seconds",
    ("flow", "source", "target"),
    "Seconds since the target acknowledged the last heartbeat of this upstream cluster to the acting replica; -1:"
    " none yet",
)

UPSTREAM_HOPS = METRICS.gauge(
    "lockstep_upstream_hops",
    ("flow", "upstream"),
    "Mirrors between an upstream cluster and the target, on the shortest path through this flow that a heartbeat took",
)
UPSTREAM_AGE = METRICS.gauge(
    "lockstep_upstream_heartbeat_age_seconds",
    ("flow", "upstream"),
    "Seconds since the newest heartbeat of an upstream cluster that reached the target was sent, by the sender's"
    " clock and ours; if none has arrived, since the service started to listen",
)
UPSTREAM_LATENCY = METRICS.gauge(
    "lockstep_upstream_heartbeat_latency_seconds",
    ("flow", "upstream"),
    "From the sending of that heartbeat to its arrival on the target, by both clocks: negative if the sender's"
    " clock is ahead; absent before the first one arrives",
)
