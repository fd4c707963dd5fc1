"""The lookup of origins for the batches of one flow's source, which wait meanwhile (`kafka-wire.md` §4).

A batch with an unknown producer id is held back, with everything fetched behind it, until the source's state topics are
read to their ends. Other partitions continue. Short-lived producers bring new ids all the time. So all requested ids
are looked up together, and not too often.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable

from lockstep_config import FlowSettings
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.provenance import OWN, FlowIds, ProvenanceRule, batches_with_records, origins_by_producer
from lockstep_data_plane.fetch.fetcher import Delivery
from lockstep_data_plane.log_reader import LogCursor
from lockstep_data_plane.progress.control_topic_writer import ControlTopicWriter
from lockstep_data_plane.provenance.producer_ids import find_origin, new_producer_id, origin_row
from lockstep_data_plane.record_batch.layout import CONTROL, Batch, CorruptRecordError
from lockstep_data_plane.record_batch.rebuild import read_records
from lockstep_kafka.common.asyncio_util import cancelled
from lockstep_kafka.common.backoff import AWAY_AT_MOST_S, Backoff
from lockstep_kafka.common.single_flight import SingleFlight
from lockstep_kafka.wire.cluster import ClusterClient, KafkaProtocolError
from lockstep_kafka.wire.connection_errors import BrokerUnreachable
from lockstep_kafka.wire.error_codes import RETRIABLE_ERRORS
from lockstep_runtime.state.unreadable_records import PassOver
from lockstep_state.kafka.kafka_errors import KafkaErrorCode
from lockstep_state.names import is_state_topic, state_topic
from lockstep_state.rows.state_rows import MalformedRow, Origin, decode_row

ORIGIN = f"{Origin.kind}/".encode()


class OriginRows:
    """The `origin/*` rows of some state topics, as far as they were read.

    A row is acknowledged before the first batch that has its producer id. A reader that has fetched a batch then reads
    the state topics to their present ends. It has the batch's row then, or the batch has none.

    Args:
        cluster: The cluster of the topics.
        topics: Returns the present topics.
        pass_over: Is called for each record that is no row, and each batch that cannot be read.
    """

    def __init__(
        self, cluster: ClusterClient, topics: Callable[[], Awaitable[Collection[str]]], pass_over: PassOver
    ) -> None:
        self._pass_over = pass_over
        self._cluster = cluster
        self._topics = topics
        self._cursors: dict[str, LogCursor] = {}
        self.read = SingleFlight(self._read_on).run
        """Read at least to the present ends of the topics. Callers that ask meanwhile share the next reading.

        Raises KafkaProtocolError and BrokerUnreachable. What was read until then is kept.
        """
        self.rows: list[Origin] = []
        """The rows, in the order of each topic's log."""

    async def _read_on(self) -> None:
        topics = await self._topics()
        await self._cluster.refresh(topics)
        for topic in topics:
            cursor = self._cursors.setdefault(topic, LogCursor(self._cluster, (topic, 0)))
            async for batches in cursor.read_new_batches():
                self.rows += rows_in(batches, topic, self._pass_over)


def rows_in(batches: Iterable[Batch], topic: str, pass_over: PassOver) -> list[Origin]:
    """Return the origin rows in batches of partition 0 of the state topic `topic`.

    `pass_over` is called for each record that is no row, and for each batch that cannot be read. Both stay in the log.
    """
    origins = []
    for batch in batches:
        if batch.attributes & CONTROL:
            continue
        try:
            records = list(read_records(batch))
        except CorruptRecordError as error:
            pass_over(topic, 0, batch.base_offset, error)
            continue
        for record in records:
            if record.key is None or not bytes(record.key).startswith(ORIGIN):
                continue
            try:
                row = decode_row(bytes(record.key), None if record.value is None else bytes(record.value))
            except MalformedRow as error:
                pass_over(topic, 0, record.offset, error)
                continue
            if isinstance(row, Origin):
                origins.append(row)
    return origins


async def state_topics(cluster: ClusterClient, expected: Collection[str]) -> list[str]:
    """Return the state topics of all flows into the cluster, of every file and instance.

    A listing leaves out topics that may not be described, and a flow that sees no rows would copy everything back.
    Raises BrokerUnreachable, and KafkaProtocolError if one of `expected` cannot be described.
    """
    names = await cluster.topic_names()
    await cluster.refresh(expected)
    for topic in expected:
        code = cluster.trouble(topic)
        if code not in (KafkaErrorCode.NONE, KafkaErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            context = f"cluster {cluster.alias}: {topic}, which says where records came from"
            raise KafkaProtocolError(code, context, cluster.alias, ("topic", topic, "Read"))
    return sorted(name for name in names if is_state_topic(name))


KNOWN_AT_MOST = 200_000
"""Producer ids whose origin is remembered. If they are more, all are looked up again when they come again.

The former ones are kept until then: what came before may still wait to be judged, behind a transform for example.
"""

LEAST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 1.0
PAUSE_FACTOR = 4
"""The least pause between two lookups, as a multiple of what the last one took, within the limits above."""


class OriginLookup:
    """The `Provenance` of one flow in one slot, and the deliveries that wait for it."""

    def __init__(
        self,
        settings: FlowSettings,
        ids: FlowIds,
        source: ClusterClient,
        target: ClusterClient,
        control_writer: ControlTopicWriter,
        *,
        deliver: Callable[[Delivery], None],
        delivered: Callable[[PartitionState], None],
        trouble: Callable[[BaseException | None], None],
        pass_over: PassOver,
    ) -> None:
        """Start without any known producer id.

        Args:
            settings: The settings of the flow.
            ids: The flow's producer id and source cluster.
            source: The source, whose state topics have the origins of what is copied.
            target: The target, whose state topic has the flow's own rows.
            control_writer: Writes origin rows.
            deliver: Gets what was held, in order.
            delivered: Gets each partition behind its deliveries.
            trouble: Gets each passing error, and None when it is over.
            pass_over: Is called for what is no row in a state topic.
        """
        self._settings = settings
        self._mode = settings.data_plane.provenance
        self._own, self._source_cluster_id = ids
        self._source = source
        self._target = target
        self._control_writer = control_writer
        self._deliver = deliver
        self._delivered = delivered
        self._trouble = trouble
        self._source_origins = OriginRows(
            source, lambda: state_topics(source, settings.data_plane.upstream_state_topics), pass_over
        )
        self._own_origins = OriginRows(target, self._own_state, pass_over)
        self._origins: dict[int, int | None] = {-1: OWN}
        self._former_origins: dict[int, int | None] = {}
        self._written_down = {ids.producer_id}
        self._learning = asyncio.Lock()
        self._waiting: dict[PartitionState, list[Delivery]] = {}
        self._to_look_up: set[int] = set()
        self._task: asyncio.Task[None] | None = None

    async def _own_state(self) -> list[str]:
        return [state_topic(self._settings.flow, self._settings.group_id)]

    def traces(self, topic: str) -> bool:
        """Return whether a topic's batches are traced: not if the target topic's name says where they came from."""
        return self._mode is not None and self._settings.hides_origin(topic)

    # -- Traces --------------------------------------------------------------------------------------------------------

    async def look_up(self, producer_ids: Iterable[int]) -> None:
        """Look up the origins of these producer ids of the source. Raises RetriableError.

        An id that a batch had before the call is decided for good.
        """
        requested = set(producer_ids)
        async with self._learning:
            unknown = requested - self._origins.keys()
            if not unknown:
                return
            if len(self._origins) > KNOWN_AT_MOST:
                self._former_origins, self._origins = self._origins, {-1: OWN}
                unknown = requested - {-1}
            await self._source_origins.read()
            rule = self._rule()
            origins = origins_by_producer(self._source_origins.rows, rule.source)
            for producer_id in unknown:
                origin = origins.get(producer_id, rule.source)
                if not rule.copies(origin):
                    self._origins[producer_id] = None
                else:
                    self._origins[producer_id] = OWN if origin == rule.source else await self._id_for(origin, rule)

    def _rule(self) -> ProvenanceRule:
        source, target = self._source.cluster_id or self._source_cluster_id, self._target.cluster_id
        for cluster, cluster_id in ((self._source, source), (self._target, target)):
            if not cluster_id:
                raise BrokerUnreachable("the cluster does not report its id", cluster.alias)
        return ProvenanceRule(mode=self._mode or "local", source=source, target=target)

    async def _id_for(self, origin: str, rule: ProvenanceRule) -> int:
        """Return the flow's producer id for an origin, got and written down if it has none yet.

        Of two that were written at the same time the first counts.
        """
        flow = self._settings.flow
        while True:
            await self._own_origins.read()
            if (row := find_origin(self._own_origins.rows, flow, origin, rule.target)) is not None:
                return row.producer_id
            producer_id = await new_producer_id(self._settings)
            await self._control_writer.write(origin_row(producer_id, flow, origin, rule.target))

    async def claim(self, producer_id: int) -> None:
        """Write down that this producer id is one of the flow's own records, unless that is known.

        Transactions have ids of their own. The row is acknowledged on return. Raises as `look_up`.
        """
        if producer_id in self._written_down:
            return
        async with self._learning:
            rule = self._rule()
            await self._own_origins.read()
            if producer_id not in origins_by_producer(self._own_origins.rows, rule.target):
                await self._control_writer.write(origin_row(producer_id, self._settings.flow, rule.source, rule.target))
            self._written_down.add(producer_id)

    def copy_producer_id(self, batch: Batch) -> int | None:
        """Return the producer id of the batch's copy (`OWN`: the flow's own); None: the batch is not copied.

        The batch's own id must have been learnt, unless it is a marker.
        """
        if batch.attributes & CONTROL:
            return OWN
        producer_id = batch.producer_id
        return self._origins[producer_id] if producer_id in self._origins else self._former_origins[producer_id]

    async def own_producer_ids(self) -> frozenset[int]:
        """Return every producer id that the flow may have in the target's log now, but for its own.

        The id of a transactional id is not among them: it marks records of the source, which have the flow's own.
        Raises as `look_up`.
        """
        if self._mode != "relay":
            return frozenset()
        await self._own_origins.read()
        flow, rule = self._settings.flow, self._rule()
        ids = {
            row.producer_id
            for row in self._own_origins.rows
            if (row.source, row.target, row.target_cluster_id) == (flow.source, flow.target, rule.target)
            and row.origin_cluster_id != rule.source
        }
        return frozenset(ids - {self._own})

    # -- what waits ----------------------------------------------------------------------------------------------------

    def holds(self, partition: PartitionState) -> bool:
        """Return whether a delivery of the partition waits. Nothing more of it should be fetched then."""
        return partition in self._waiting

    def bytes_held(self, partition: PartitionState) -> int:
        """Return the bytes of the partition that wait."""
        deliveries = self._waiting.get(partition)
        return sum(len(delivery.fetched.records) for delivery in deliveries) if deliveries else 0

    def hold(self, delivery: Delivery) -> bool:
        """Return whether the delivery has to wait. It comes back through `deliver` then."""
        partition = delivery.partition
        unknown = self._unknown(delivery)
        if partition not in self._waiting and not unknown:
            return False
        self._waiting.setdefault(partition, []).append(delivery)
        self._to_look_up |= unknown
        if self._task is None:
            self._task = asyncio.create_task(self._resolve_origins(), name="look up origins")
        return True

    def _unknown(self, delivery: Delivery) -> set[int]:
        return batches_with_records(delivery.batches) - self._origins.keys()

    async def _resolve_origins(self) -> None:
        backoff = Backoff(limit=AWAY_AT_MOST_S)
        loop = asyncio.get_running_loop()
        while self._waiting:
            producer_ids, self._to_look_up = self._to_look_up, set()
            began = loop.time()
            try:
                await self.look_up(producer_ids)
            except RETRIABLE_ERRORS as exc:
                self._to_look_up |= producer_ids
                self._trouble(exc)
                await asyncio.sleep(backoff.next())
                continue
            backoff.reset()
            self._trouble(None)
            self._release()
            elapsed = loop.time() - began
            await asyncio.sleep(min(max(PAUSE_FACTOR * elapsed, LEAST_PAUSE_S), LONGEST_PAUSE_S))
        self._task = None

    def _release(self) -> None:
        for partition, waiting in list(self._waiting.items()):
            del self._waiting[partition]
            for index, delivery in enumerate(waiting):
                unknown = self._unknown(delivery)
                if unknown:
                    self._waiting[partition] = waiting[index:]
                    self._to_look_up |= unknown
                    break
                self._deliver(delivery)
            self._delivered(partition)

    def remove(self, partition: PartitionState) -> None:
        """Forget a partition that has left this slot."""
        self._waiting.pop(partition, None)

    def crashed(self) -> BaseException | None:
        """Return the mistake that ended the lookups; the slot ends with it. None: they go on."""
        task = self._task
        return task.exception() if task is not None and task.done() and not task.cancelled() else None

    async def close(self) -> None:
        """End the lookups."""
        if self._task is not None:
            await cancelled([self._task])
