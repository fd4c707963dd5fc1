"""The reading of a stretch of a partition's log, to find the position of a copy. Nothing that is read is copied."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from lockstep_config.flow.model import FetchSettings
from lockstep_data_plane.record_batch.classify import AbortedTransactions
from lockstep_data_plane.record_batch.layout import Batch, expected_crc, scan
from lockstep_data_plane.record_batch.rebuild import next_offset
from lockstep_kafka.messages.fetch_codec import fetch_request, read_response, topic_names
from lockstep_kafka.messages.fetch_session import UNSAID
from lockstep_kafka.wire.cluster import ClusterClient
from lockstep_kafka.wire.connection_errors import BrokerUnreachable
from lockstep_state.kafka.kafka_errors import KafkaErrorCode
from lockstep_state.offsets import TopicPartition

AT_ONCE = FetchSettings(max_wait_ms=0, max_bytes=16 * 1024 * 1024, max_partition_bytes=4 * 1024 * 1024)

ENOUGH, AGAIN_MS = 3, 200
"""The number of empty answers in a row after which a broker counts as not giving its records, and the wait of all but
the first in milliseconds. An answer may be empty although there are records. A new leader may not know yet what is
replicated, or a remote segment does not arrive in time.
"""


async def log_between(
    cluster: ClusterClient, tp: TopicPartition, offset: int, end: int, isolation: str = "read_uncommitted"
) -> AsyncIterator[tuple[list[Batch], AbortedTransactions]]:
    """Yield all batches from the one that holds `offset` to the one before `end`.

    Each answer's aborted transactions come with its batches. Under read_committed the batches end at the last stable
    offset.

    Raises:
        KafkaProtocolError: A broker answers with an error.
        BrokerUnreachable: No leader can be reached, or the leader does not give the records that it has.
    """
    in_vain = 0
    while offset < end:
        if in_vain == ENOUGH:
            raise BrokerUnreachable(
                f"cluster {cluster.alias} gives nothing of {tp[0]}-{tp[1]} at offset {offset}, "
                f"though its log was said to go up to {end}"
            )
        leader = cluster.require_leader(tp)
        connection = await cluster.connection(leader.broker, "tail")
        # Any leader will do: what is read is compared with what is known of this log and of its end.
        positions = [(tp, replace(leader, epoch=UNSAID), offset, UNSAID)]
        wait_ms = AGAIN_MS if in_vain else None
        by_id = leader.topic_id is not None
        request = fetch_request(
            connection.version("fetch"), positions, AT_ONCE, isolation=isolation, wait_ms=wait_ms, by_id=by_id
        )
        answer = await connection.request(request)
        if not connection.throttled_for:  # or it answers without records because we are over a quota
            in_vain += 1
        for fetched in read_response([tp], answer, topic_names(positions)):
            if fetched.code != KafkaErrorCode.NONE:
                context = f"cluster {cluster.alias}: reading {tp[0]}-{tp[1]} at {offset}"
                raise cluster.to_error(tp, fetched.code, context, "Read")
            if isolation == "read_committed":
                end = min(end, fetched.last_stable)
            if batches := list(scan(fetched.records)):
                last = batches[-1]
                if len(batches) > 1 and _is_end_unknown(last):
                    batches.pop()  # the next answer has the batch behind it too, which shows where it ends
                yield batches, AbortedTransactions(fetched.aborted)
                reached = max(offset, last.base_offset, next_offset(batches[-1]))
                offset, in_vain = reached, 0 if reached > offset else in_vain


def _is_end_unknown(batch: Batch) -> bool:
    """Return whether neither the header nor the next batch shows where a batch ends."""
    return batch.following_offset < 0 and batch.magic == 2 and expected_crc(batch.data) != batch.crc


async def first_batch(cluster: ClusterClient, tp: TopicPartition, offset: int, end: int) -> Batch | None:
    """Return the batch that holds `offset`, or else the first one after it, or None if there is none before `end`.

    Raises:
        KafkaProtocolError: As for `log_between`.
        BrokerUnreachable: As for `log_between`.
    """
    async for batches, _ in log_between(cluster, tp, offset, end):
        batch = next((batch for batch in batches if batch.last_offset >= offset), None)
        if batch is not None:
            return batch
    return None


class LogCursor:
    """The position up to which the log of one partition was read, so that reading goes on from there."""

    def __init__(self, cluster: ClusterClient, tp: TopicPartition) -> None:
        self._cluster = cluster
        self._tp = tp
        self._topic_id = ""
        self._position = -1

    async def read_new_batches(self, on_restart: Callable[[], None] = lambda: None) -> AsyncIterator[list[Batch]]:
        """Yield the batches up to the present end of the log. A batch counts as read when the next is asked for.

        Args:
            on_restart: Called before batches that do not continue what was read. This is so at first, and if the log
                was truncated, the topic was re-created, or unread records are gone.

        Raises:
            KafkaProtocolError: As for `log_between`.
            BrokerUnreachable: As for `log_between`.
        """
        topic_id = self._cluster.topic_id(self._tp)
        start = await self._cluster.end_offset(self._tp, timestamp=-2)
        end = await self._cluster.end_offset(self._tp)
        if topic_id != self._topic_id or not start <= self._position <= end:
            self._topic_id, self._position = topic_id, start
            on_restart()
        async for batches, _ in log_between(self._cluster, self._tp, self._position, end):
            yield batches
            self._position = next_offset(batches[-1])
