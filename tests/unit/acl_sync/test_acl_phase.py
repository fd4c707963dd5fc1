"""The phase of ACL sync after a round in which the target refused ACLs."""

import pytest

from lockstep_acl_sync.app import _phase_after
from lockstep_kafka.common.errors import ClusterError, NotPermitted, RequestRefused, RequestUnsupported

REFUSED = RequestRefused("B", "create an ACL for", "topic orders", 42, "no")
DENIED = NotPermitted("B", "to create an ACL", "cluster")
UNKNOWN = RequestUnsupported("B", "create an ACL for", "topic orders", 35, "no")


@pytest.mark.parametrize(
    ("troubles", "phase", "code"),
    [
        ([], "in-sync", ""),
        ([REFUSED], "failing", "request-refused"),
        ([REFUSED, DENIED], "not-permitted", "acls-refused"),
        ([UNKNOWN, REFUSED], "not-supported", "acls-unsupported"),
    ],
)
def test_phase_says_what_the_target_did(troubles: list[ClusterError], phase: str, code: str) -> None:
    after, cause = _phase_after(troubles)
    assert (after, cause.code) == (phase, code)
