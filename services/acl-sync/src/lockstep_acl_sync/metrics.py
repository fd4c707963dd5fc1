"""What acl-sync's page shows beside what every service shows."""

from lockstep_runtime.telemetry.metrics import Metric, Type

__all__ = ["ACLS", "ADDED", "DELETED", "METRICS"]

ADDED = Metric("lockstep_acls_added", Type.COUNTER, ("flow",), "ACL bindings added on the target")
DELETED = Metric(
    "lockstep_acls_deleted",
    Type.COUNTER,
    ("flow",),
    "ACL bindings of ours deleted on the target, revoked on the source",
)
ACLS = Metric(
    "lockstep_acls",
    Type.GAUGE,
    ("flow", "state"),
    "Bindings when last compared: of the source `copied` ones, which the target has too, and ones `left-out`; of the"
    " target ones `owned`, which we made, and of these ones `revoked`, which the source has no more",
)

METRICS = (ADDED, DELETED, ACLS)
