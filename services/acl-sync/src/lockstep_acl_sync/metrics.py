"""What acl-sync's page shows beside what every service shows."""

from lockstep_runtime.telemetry.metrics import Metric, Type

__all__ = ["ACLS", "ADDED", "DELETED", "METRICS"]

ADDED = Metric("lockstep_acls_added", Type.COUNTER, ("flow",), "ACL bindings added on the target")
DELETED = Metric(
    "lockstep_acls_deleted",
    Type.COUNTER,
    ("flow",),
    "ACL bindings that Lockstep created and deleted on the target after they were revoked on the source",
)
ACLS = Metric(
    "lockstep_acls",
    Type.GAUGE,
    ("flow", "state"),
    "ACL bindings at the last comparison. Source: `copied` (the target has them too) and `left-out`. Target:"
    " `owned` (created by Lockstep) and, of these, `revoked` (no longer on the source)",
)

METRICS = (ADDED, DELETED, ACLS)
