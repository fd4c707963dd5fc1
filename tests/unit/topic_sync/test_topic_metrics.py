"""Metrics of topic-sync: only the leader shows its topics."""

from pathlib import Path

from lockstep_state.rows.state_rows import MirroredTopic
from lockstep_topic_sync.app import TopicSync
from tests.support.flow_context import leading, read_row
from tests.support.reasons import reported


def test_topics_are_counted_from_their_rows(tmp_path: Path) -> None:
    """Also by a new leader, before its first round."""
    ctx = leading(tmp_path, "topic-sync", (0, 5))
    TopicSync(ctx)
    read_row(ctx, MirroredTopic(source_topic="t", target_topic="A.t", partitions=3, target_partitions=3))
    read_row(ctx, MirroredTopic(source_topic="u", target_topic="A.u", partitions=3, missing=2, cause=reported("r")))
    page = ctx.metrics.exposition().decode()
    assert 'lockstep_topics{flow="A->B",phase="mirrored"} 1.0' in page
    assert 'lockstep_topics{flow="A->B",phase="failing"} 1.0' in page
    assert 'lockstep_topics{flow="A->B",phase="failed"} 0.0' in page
    assert 'lockstep_missing_partitions{flow="A->B"} 2.0' in page


def test_replica_that_lost_the_lead_shows_no_topics(tmp_path: Path) -> None:
    ctx = leading(tmp_path, "topic-sync", (0, 5))
    TopicSync(ctx)
    read_row(ctx, MirroredTopic(source_topic="t", target_topic="A.t", partitions=3, phase="failed"))
    assert "lockstep_topics" in ctx.metrics.exposition().decode()
    ctx.leadership.assigned(())
    assert "lockstep_topics" not in ctx.metrics.exposition().decode()
    assert "lockstep_missing_partitions" not in ctx.metrics.exposition().decode()
