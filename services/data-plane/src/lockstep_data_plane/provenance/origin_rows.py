"""The `origin/*` rows in the state topics of a cluster, read when somebody needs to know them all.

A row is acknowledged before the first batch that bears its producer id. So whoever has fetched a batch and then reads
the state topics up to an end taken since has its row, or there is none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable

from lockstep_data_plane.common.single_flight import SingleFlight
from lockstep_data_plane.record_batch.layout import CONTROL, Batch
from lockstep_data_plane.record_batch.rebuild import read_records
from lockstep_data_plane.wire.cluster import ClusterClient, KafkaProtocolError
from lockstep_data_plane.wire.log_reader import LogCursor
from lockstep_protocol.kafka_errors import KafkaErrorCode
from lockstep_protocol.names import is_state_topic
from lockstep_protocol.rows.state_rows import MalformedRow, Origin, decode_row

ORIGIN = f"{Origin.kind}/".encode()


class OriginRows:
    """The rows of some state topics, as far as they were read."""

    def __init__(self, cluster: ClusterClient, topics: Callable[[], Awaitable[Collection[str]]]) -> None:
        """`topics` names the topics there are at the moment."""
        self._cluster = cluster
        self._topics = topics
        self._cursors: dict[str, LogCursor] = {}
        self._reading = SingleFlight(self._read_on)
        self.rows: list[Origin] = []
        """In the order of each topic's log."""

    async def read(self) -> None:
        """Read on, at least to where the topics end now; who asks while it is being read shares the next reading.
        Raises KafkaProtocolError and BrokerUnreachable; what was read until then is kept."""
        await self._reading.done()

    async def _read_on(self) -> None:
        topics = await self._topics()
        await self._cluster.refresh(topics)
        for topic in topics:
            cursor = self._cursors.setdefault(topic, LogCursor(self._cluster, (topic, 0)))
            async for batches in cursor.unread():
                self.rows += rows_in(batches)


def rows_in(batches: Iterable[Batch]) -> list[Origin]:
    """The origin rows in some batches of a state topic. What is no row is passed over, as in every fold."""
    found = []
    for batch in batches:
        if batch.attributes & CONTROL:
            continue
        for record in read_records(batch):
            if record.key is None or not bytes(record.key).startswith(ORIGIN):
                continue
            try:
                row = decode_row(bytes(record.key), None if record.value is None else bytes(record.value))
            except MalformedRow:
                continue
            if isinstance(row, Origin):
                found.append(row)
    return found


async def state_topics(cluster: ClusterClient, expected: Collection[str]) -> list[str]:
    """The state topics of all flows into the cluster, of whatever file and instance. Raises BrokerUnreachable, and
    KafkaProtocolError where one of `expected` cannot be looked at: a listing leaves out what we may not describe, and a
    flow that sees no rows copies everything back."""
    names = await cluster.topic_names()
    await cluster.refresh(expected)
    for topic in expected:
        code = cluster.trouble(topic)
        if code not in (KafkaErrorCode.NONE, KafkaErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            about = f"cluster {cluster.alias}: {topic}, which says where records came from"
            raise KafkaProtocolError(code, about, cluster.alias, ("topic", topic, "Read"))
    return sorted(name for name in names if is_state_topic(name))
