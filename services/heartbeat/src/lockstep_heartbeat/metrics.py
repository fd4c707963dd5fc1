"""What heartbeat's page shows beside what every service shows."""

from lockstep_runtime.metrics import Metric, Type

__all__ = ["AGE", "BEATS", "METRICS"]

BEATS = Metric("lockstep_heartbeats", Type.COUNTER, ("flow",), "Heartbeats acknowledged by the target")
AGE = Metric(
    "lockstep_heartbeat_age_seconds",
    Type.GAUGE,
    ("flow", "source", "target"),
    "Since the target acknowledged the last heartbeat of this upstream to the replica that acts; -1: none yet",
)

METRICS = (BEATS, AGE)
