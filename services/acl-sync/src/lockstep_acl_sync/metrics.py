"""The metrics of the acl-sync service."""

from lockstep_state.metric import MetricSet

METRICS = MetricSet()

ADDED = METRICS.counter("lockstep_acls_added", ("flow",), "ACL bindings added on the target")
DELETED = METRICS.counter(
    "lockstep_acls_deleted",
    ("flow",),
    "ACL bindings that Lockstep created and deleted on the target after they were revoked on the source",
)
ACLS = METRICS.gauge(
    "lockstep_acls",
    ("flow", "state"),
    "ACL bindings at the last comparison. Source: `copied` (the target has them too) and `left-out`. Target:"
    " `owned` (created by Lockstep) and, of these, `revoked` (no longer on the source)",
)
