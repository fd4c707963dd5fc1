"""What acl-sync's page shows beside what every service shows."""

from lockstep_runtime.metrics import Metric, Type

__all__ = ["ACLS", "ADDED", "METRICS"]

ADDED = Metric("lockstep_acls_added", Type.COUNTER, ("flow",), "ACL bindings added on the target")
ACLS = Metric(
    "lockstep_acls",
    Type.GAUGE,
    ("flow", "state"),
    "Bindings of the source when last compared: `copied` ones, which the target has too, and ones `left-out`, which"
    " MirrorMaker 2's rule does not copy",
)

METRICS = (ADDED, ACLS)
