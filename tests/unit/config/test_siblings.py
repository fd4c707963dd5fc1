"""Flows to one target that keep names know of each other, so that neither moves groups beyond records of the other."""

import pytest

from lockstep_config.credentials.permissions import target_grants
from lockstep_protocol.names import Flow
from tests.unit.config.conftest import LoadText

FILE = """
clusters = A, B, C
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
C.bootstrap.servers = c:1
A->B.enabled = true
C->B.enabled = true
sync.group.offsets.enabled = true
"""
KEPT = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
THEIRS = "mm2-lockstep-state.C.internal"


@pytest.mark.parametrize(
    ("lines", "siblings"),
    [
        (KEPT, (THEIRS,)),
        ("", ()),
        (f"{KEPT}A->B.topics = orders\nC->B.topics = bills\n", ()),
        (f"{KEPT}A->B.groups = a.*\nC->B.groups = c.*\n", ()),
        (f"{KEPT}C->B.enabled = false\n", ()),
    ],
)
def test_flows_that_may_merge_topics_and_groups_are_siblings(
    load_text: LoadText, lines: str, siblings: tuple[str, ...]
) -> None:
    settings = load_text(FILE + lines).flow(Flow("A", "B"))
    assert settings.checkpoint.siblings == siblings
    readable = {grant.name for grant in target_grants(settings) if grant.operation == "Read"}
    assert (THEIRS in readable) is bool(siblings)
