"""What heartbeat's page shows beside what every service shows."""

from lockstep_runtime.telemetry.metrics import Metric, Type

__all__ = ["AGE", "BEATS", "METRICS", "UPSTREAM_AGE", "UPSTREAM_HOPS", "UPSTREAM_LATENCY"]

BEATS = Metric("lockstep_heartbeats", Type.COUNTER, ("flow",), "Heartbeats acknowledged by the target")
AGE = Metric(
    "lockstep_heartbeat_age_seconds",
    Type.GAUGE,
    ("flow", "source", "target"),
    "Since the target acknowledged the last heartbeat of this upstream to the replica that acts; -1: none yet",
)

UPSTREAM_HOPS = Metric(
    "lockstep_upstream_hops",
    Type.GAUGE,
    ("flow", "upstream"),
    "Mirrors between a cluster upstream and the target, on the shortest way through this flow that heartbeats took",
)
UPSTREAM_AGE = Metric(
    "lockstep_upstream_heartbeat_age_seconds",
    Type.GAUGE,
    ("flow", "upstream"),
    "Since the newest heartbeat of a cluster upstream that reached the target was sent, by its sender's clock and ours;"
    " where none has, since we listen",
)
UPSTREAM_LATENCY = Metric(
    "lockstep_upstream_heartbeat_latency_seconds",
    Type.GAUGE,
    ("flow", "upstream"),
    "From sending that heartbeat to its arrival on the target, by both clocks: negative where the sender's is ahead;"
    " absent before the first that arrives",
)

METRICS = (BEATS, AGE, UPSTREAM_HOPS, UPSTREAM_AGE, UPSTREAM_LATENCY)
