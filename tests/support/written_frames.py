"""What a connection writes, and a small request for it."""

from typing import Any

from lockstep_kafka.messages.message_versions import load_message


class WrittenFrames:
    """Stands where a connection has its stream: keeps what is written."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def write(self, frame: bytes | memoryview) -> None:
        self.frames.append(bytes(frame))


def describe_producers(topic: str) -> Any:
    """A request about partition 5 of a topic."""
    m = load_message("describe_producers", 0, "request")
    return m.DescribeProducersRequest(topics=(m.TopicRequest(name=topic, partition_indexes=(5,)),))
