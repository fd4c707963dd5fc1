"""A reader of control topics takes the settings of the cluster as they come (`topic_reader.py`)."""

import threading

import pytest

from lockstep_config.credentials.permissions import NO_ACCESS
from lockstep_kafka.topics.topic_reader import TopicReader


@pytest.mark.parametrize("most_ms", ["20", "1000", "60000"])
def test_topic_reader_accepts_any_reconnect_backoff(most_ms: str) -> None:
    """librdkafka refuses a most that is below the least."""
    conf = {"bootstrap.servers": "127.0.0.1:1", "reconnect.backoff.ms": most_ms, "reconnect.backoff.max.ms": most_ms}
    reader = TopicReader(conf, "mm2-lockstep-state.A.internal", "B", NO_ACCESS, threading.Event())
    reader.open()
    reader.close()
