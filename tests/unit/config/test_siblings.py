"""Flows to one target that keep names know of each other, so that neither moves groups beyond records of the other."""

import pytest

from lockstep_config.credentials.permissions import target_grants
from lockstep_state.names import Flow
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


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (KEPT, "A->B and C->B may select the same topics: both write to one log of each on B. A group that both move"),
        (f"{KEPT}sync.group.offsets.enabled = false\n", "one log of each on B. lockstep plan names them (LS023)"),
        (f"{KEPT}A->B.groups = a.*\nC->B.groups = c.*\n", "one log of each on B. lockstep plan names them (LS023)"),
        ("", ""),
        (f"{KEPT}A->B.topics = orders\nC->B.topics = bills\n", ""),
        (f"{KEPT}C->B.enabled = false\n", ""),
    ],
)
def test_flows_that_may_merge_topics_are_noted(load_text: LoadText, lines: str, said: str) -> None:
    notes = [str(note) for note in load_text(FILE + lines).notes if "LS023" in str(note)]
    assert len(notes) == bool(said)
    assert all(said in note and "replication.policy.class" in note for note in notes)


def test_flows_of_a_mesh_with_kept_names_know_their_siblings(load_text: LoadText) -> None:
    """Each cluster is fed by two flows, and each of these reads where the other one has a group."""
    ways = [Flow(source, target) for source in "ABC" for target in "ABC" if source != target]
    enabled = "\n".join(f"{way}.enabled = true" for way in ways if way.target != "B")
    mesh = load_text(f"{FILE}{KEPT}{enabled}\n")
    for way in ways:
        (third,) = {"A", "B", "C"} - {way.source, way.target}
        assert mesh.flow(way).checkpoint.siblings == (f"mm2-lockstep-state.{third}.internal",)
    merged = [str(note) for note in mesh.notes if "LS023" in str(note)]
    assert len(merged) == len("ABC")
