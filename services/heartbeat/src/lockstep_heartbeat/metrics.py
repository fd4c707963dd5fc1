"""What heartbeat's page shows beside what every service shows."""

from lockstep_runtime.telemetry.metrics import Metric, Type

__all__ = ["AGE", "BEATS", "METRICS", "UPSTREAM_AGE", "UPSTREAM_HOPS", "UPSTREAM_LATENCY"]

BEATS = Metric("lockstep_heartbeats", Type.COUNTER, ("flow",), "Heartbeats acknowledged by the target")
AGE = Metric(
    "lockstep_heartbeat_age_seconds",
    Type.GAUGE,
    ("flow", "source", "target"),
    "Seconds since the target acknowledged the last heartbeat of this upstream cluster to the acting replica; -1:"
    " none yet",
)

UPSTREAM_HOPS = Metric(
    "lockstep_upstream_hops",
    Type.GAUGE,
    ("flow", "upstream"),
    "Mirrors between an upstream cluster and the target, on the shortest path through this flow that a heartbeat took",
)
UPSTREAM_AGE = Metric(
    "lockstep_upstream_heartbeat_age_seconds",
    Type.GAUGE,
    ("flow", "upstream"),
    "Seconds since the newest heartbeat of an upstream cluster that reached the target was sent, by the sender's"
    " clock and ours; if none has arrived, since the service started to listen",
)
UPSTREAM_LATENCY = Metric(
    "lockstep_upstream_heartbeat_latency_seconds",
    Type.GAUGE,
    ("flow", "upstream"),
    "From the sending of that heartbeat to its arrival on the target, by both clocks: negative if the sender's"
    " clock is ahead; absent before the first one arrives",
)

METRICS = (BEATS, AGE, UPSTREAM_HOPS, UPSTREAM_AGE, UPSTREAM_LATENCY)
