"""The fetch session of one connection, so that each request names only what has changed (KIP-227; no I/O)."""

from collections.abc import Sequence
from typing import NamedTuple

from lockstep_kafka.messages.metadata_codec import PartitionLeader
from lockstep_state.kafka.kafka_errors import KafkaErrorCode
from lockstep_state.offsets import TopicPartition

FetchPosition = tuple[TopicPartition, PartitionLeader, int, int]
"""A partition to fetch: its leader as we know it, the offset, and the leader epoch of the record before that offset.

The epoch is -1 if the broker need not compare it with its log.
"""

SESSION_LOST = frozenset(
    {
        KafkaErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        KafkaErrorCode.INVALID_FETCH_SESSION_EPOCH,
        KafkaErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""Error codes after which the session begins again with all partitions."""

NO_SESSION = 0
LAST_EPOCH = 2**31 - 1
UNSAID = -1


class SessionRequest(NamedTuple):
    """One request of a session: session id, session epoch, changed partitions and forgotten partitions."""

    session_id: int
    epoch: int
    changed: Sequence[FetchPosition]
    forgotten: Sequence[tuple[TopicPartition, PartitionLeader]]


class FetchSession:
    """The fetch session of one connection.

    Ask for a `plan`, send it, and note the result, in turn.
    """

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = 0
        self._planned: dict[TopicPartition, tuple[PartitionLeader, int, int]] = {}
        self._max_partition_bytes = 0

    def plan(self, positions: Sequence[FetchPosition], max_partition_bytes: int = 0) -> SessionRequest:
        """Return the request with which the broker answers for exactly `positions`.

        A request without a session keeps the order given. In a session the broker itself sees that each partition has
        its turn.

        Args:
            positions: The partitions to fetch.
            max_partition_bytes: The limit of bytes for each partition.
        """
        if max_partition_bytes != self._max_partition_bytes:  # the broker remembers the limit of each partition
            self._planned = {tp: (leader, UNSAID, UNSAID) for tp, (leader, _, _) in self._planned.items()}
            self._max_partition_bytes = max_partition_bytes
        if self._id == NO_SESSION:
            self._planned = {tp: (leader, offset, before) for tp, leader, offset, before in positions}
            return SessionRequest(NO_SESSION, 0, positions, ())
        changed = [position for position in positions if self._planned.get(position[0]) != position[1:]]
        planned = {tp for tp, _, _, _ in positions}
        forgotten = [(tp, leader) for tp, (leader, _, _) in self._planned.items() if tp not in planned]
        # To the broker a topic that was created again under the same name is another topic: both lists name it.
        forgotten += [
            (tp, self._planned[tp][0])
            for tp, leader, _, _ in changed
            if tp in self._planned and self._planned[tp][0].topic_id != leader.topic_id
        ]
        self._planned = {tp: (leader, offset, before) for tp, leader, offset, before in positions}
        return SessionRequest(self._id, self._epoch, changed, forgotten)

    def plan_moved(self, moved: Sequence[FetchPosition]) -> SessionRequest | None:
        """Return the request that repeats the last plan with other offsets for these partitions.

        The result is None if the broker has no session.
        """
        if self._id == NO_SESSION:
            return None
        for tp, leader, offset, before in moved:
            self._planned[tp] = (leader, offset, before)
        return SessionRequest(self._id, self._epoch, moved, ())

    def answered(self, session_id: int) -> None:
        """Note that a request was answered without an error of its own.

        A broker that has no room for a session answers with session id 0.
        """
        if session_id == NO_SESSION:
            self.reset()
        elif session_id != self._id:
            self._id, self._epoch = session_id, 1
        else:
            self._epoch = 1 if self._epoch == LAST_EPOCH else self._epoch + 1

    def reset(self) -> None:
        """Note that the session is lost, or the connection is another one.

        The next plan names all partitions.
        """
        self._id, self._epoch = NO_SESSION, 0
        self._planned = {}
