"""Heartbeats whose topic was created again go on by themselves, other topics wait for somebody."""

from pathlib import Path

import pytest

from lockstep_data_plane.resume.evidence import EvidenceReader
from lockstep_rules.offsets.gap_policy import GapCase
from tests.support.flow_context import flow_context
from tests.support.memory_cluster import MemoryCluster


@pytest.mark.parametrize(
    ("topic", "case", "lines", "word"),
    [
        ("heartbeats", GapCase.SOURCE_RECREATED, "", "restart"),
        ("heartbeats", GapCase.TARGET_RECREATED, "", "restart"),
        ("C.heartbeats", GapCase.SOURCE_RECREATED, "", "restart"),
        ("heartbeats", GapCase.SOURCE_RECREATED, "lockstep.on.recreate = skip\n", "skip"),
        ("heartbeats", GapCase.DOUBT, "", "halt"),
        ("heartbeats", GapCase.RECORDS_GONE, "", "halt"),
        ("orders", GapCase.SOURCE_RECREATED, "", "halt"),
    ],
)
def test_policy_of_a_recreated_topic_spares_heartbeats(
    tmp_path: Path, topic: str, case: GapCase, lines: str, word: str
) -> None:
    settings = flow_context(tmp_path, "data-plane", lines=lines).settings
    assert EvidenceReader(settings, MemoryCluster("A"), MemoryCluster("B")).policy(topic)(case) == word
