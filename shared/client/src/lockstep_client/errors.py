"""The errors of this package. The text of each is one sentence for the person who asked."""

from collections.abc import Sequence

from lockstep_client.checkpoints import RemoteOffsets


class MirrorClientError(Exception):
    """The root of the errors of this package."""


class ClusterUnreachable(MirrorClientError):
    """No broker answered in time, so nothing was read. A retry may help."""

    def __init__(self, bootstrap: str, reason: str) -> None:
        super().__init__(f"the cluster at {bootstrap} did not answer: {reason}")
        self.bootstrap = bootstrap


class NotPermitted(MirrorClientError):
    """The cluster refused for lack of a permission."""

    def __init__(self, request: str, reason: str) -> None:
        super().__init__(f"not permitted to {request}: {reason}")


class RequestRefused(MirrorClientError):
    """The cluster answered with another error. `code` is Kafka's or librdkafka's."""

    def __init__(self, request: str, code: int, reason: str) -> None:
        super().__init__(f"could not {request}: {reason}")
        self.code = code


class CheckpointsTopicMissing(MirrorClientError):
    """The cluster has no checkpoints from that source. The alias, policy or cluster is wrong, or checkpoints are off.

    `there` has the checkpoints topics that exist.
    """

    def __init__(self, topic: str, bootstrap: str, existing_topics: Sequence[str]) -> None:
        existing = (
            f"there are {', '.join(existing_topics)}" if existing_topics else "there is no checkpoints topic at all"
        )
        super().__init__(f"the cluster at {bootstrap} has no topic {topic}; {existing}")
        self.topic = topic
        self.existing_topics = tuple(existing_topics)


class CheckpointsNotRead(MirrorClientError, TimeoutError):
    """Time ran out before the end of the checkpoints topic was reached (MM2 would return what it has so far).

    `position` is the next offset to read, `end` the offset to reach. `so_far` has the offsets until then: each was true
    once, and a newer one may follow.
    """

    def __init__(self, topic: str, timeout: float, position: int, end: int, so_far: RemoteOffsets) -> None:
        super().__init__(
            f"{topic} was read up to offset {position} of {end} within {timeout:g} s, {len(so_far.checkpoints)} "
            "checkpoints found so far: allow more time"
        )
        self.topic = topic
        self.position = position
        self.end = end
        self.so_far = so_far


class UnsupportedCheckpoint(MirrorClientError):
    """A checkpoint has a version that this release does not know, so nothing is returned (KAFKA-20659)."""

    def __init__(self, topic: str, offset: int, reason: str) -> None:
        super().__init__(f"{topic} at offset {offset}: {reason}; upgrade lockstep-kafka-client")
        self.topic = topic
        self.offset = offset
