"""The producer for control topics: all in-sync replicas acknowledge each append before it returns.

A process has one `ControlProducer` for each cluster, and any number of `ControlTopicLog`s on it. Records without an
explicit partition go where MM2's own producer would put them (murmur2 of the key).

A producer is idempotent if the cluster gives producer ids. Otherwise one request to a broker is in flight, so records
stay in order. A record whose answer is lost may be in the log twice.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from lockstep_config.credentials.permissions import NO_ACCESS, Access
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable, NotAppended
from lockstep_kafka.librdkafka.append_trouble import OF_THE_END, append_trouble
from lockstep_kafka.librdkafka.client_factory import create_client
from lockstep_kafka.librdkafka.client_reset import ClientReset
from lockstep_kafka.librdkafka.producer_id_support import NO_IDS, WITHOUT_IDS, ProducerIdCheck
from lockstep_state.kafka.librdkafka_errors import error_text

log = logging.getLogger(__name__)

IDLE = 0.2
"""Seconds that one poll without an event blocks."""

NO_LOG = logging.getLogger(f"{__name__}.librdkafka")
"""A disabled logger for what librdkafka would write to stderr: its fatal errors, which we log ourselves."""
NO_LOG.disabled = True

APPENDING: Mapping[str, Any] = {
    "acks": "all",
    "enable.idempotence": "true",
    # Java's default partitioner; with another hash the same key lands elsewhere and compaction keeps both.
    "partitioner": "murmur2_random",
    # Records that come together go in one append. With 0 each record is a request. If a busy broker then owes more
    # answers than may be in flight, librdkafka polls its socket a hundred thousand times a second.
    "linger.ms": "2",
    "allow.auto.create.topics": "false",
    "log_level": "0",
    "logger": NO_LOG,
}

WITHOUT_IDEMPOTENCE = {"enable.idempotence": "false", "max.in.flight.requests.per.connection": "1"}
"""Settings that keep records in order on a cluster that gives no producer ids."""

LOST = frozenset(
    {KafkaError._MSG_TIMED_OUT, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION, KafkaError._FATAL}
)
"""Codes of a producer that no longer knows any broker, or that ended for another reason."""

WITHIN = 30.0
"""Seconds within which librdkafka retries an append. Afterwards the caller's next round does."""

ACTS_WITHIN = 5.0
"""The same limit for records without a term.

It is shorter than a take-over, so that such records do not outlast one in a queue.
"""

STOPS_S = 1.0


class QueuedRecord(NamedTuple):
    """A record on its way to the cluster.

    `future` gets its partition and offset. A `timestamp_ms` of 0 stands for librdkafka's clock.
    """

    future: asyncio.Future[tuple[int, int]]
    topic: str
    key: bytes | None
    value: bytes | None
    partition: int
    timestamp_ms: int
    headers: Sequence[tuple[str, bytes]]


Delivered = tuple[asyncio.Future[tuple[int, int]], ClusterError | None, int, int]
"""The result for one record: its future, its error if it failed, its partition and its offset."""


class ControlProducer:
    """A producer for one cluster, with a thread that serves its acknowledgements.

    Args:
        alias: The alias of the cluster.
        conf: librdkafka's settings.
        within: Seconds after which a record without an acknowledgement raises NotAppended.
        access: The rights that we need on the cluster. Errors name them.
    """

    def __init__(
        self, alias: str, conf: Mapping[str, str], *, within: float = WITHIN, access: Access = NO_ACCESS
    ) -> None:
        self.alias = alias
        self._access = access
        self._conf: dict[str, Any] = {**conf, **APPENDING, "message.timeout.ms": f"{within * 1000:.0f}"}
        self._stopping = threading.Event()
        self._wanted = threading.Event()
        self._started = False
        self._making = asyncio.Lock()
        self._replacing = threading.Lock()
        self._unanswered = ClientReset()
        self._lost = False
        self._fatal = False
        """True if the present producer sends nothing more (librdkafka's fatal errors)."""
        self._end_cause: KafkaError | None = None
        """The error that ended the present producer. Later errors only say that it has ended."""
        self._idempotent = True
        self._acknowledged = False
        """True once the cluster has acknowledged a record."""
        self._id_check = ProducerIdCheck(access, str(conf.get("client.id", "")))
        self._refused: deque[tuple[QueuedRecord, KafkaError]] = deque()
        """Records that the present producer did not take, or gave back, because it has ended."""
        self._requeued: deque[QueuedRecord] = deque()
        """Records that no producer has sent, and that the next one gets."""
        self._delivered: deque[Delivered] = deque()
        """Results that threads have queued for the event loop."""

    async def start(self) -> None:
        """Start the producer in the running event loop, unless it has been started.

        It does not need the cluster: appends wait for it.

        Raises:
            ClusterUnreachable: The certificates cannot be used, or there is no access token for the login.
        """
        if self._started:
            return
        async with self._making:
            if self._started:
                return
            self._loop = asyncio.get_running_loop()
            self._producer = await asyncio.to_thread(self._made)
            self._started = True
            self._thread = threading.Thread(target=self._serve, name=f"facts {self.alias}", daemon=True)
            self._thread.start()

    def _made(self) -> Producer:
        return create_client(Producer, self._conf | ({} if self._idempotent else WITHOUT_IDEMPOTENCE), self.alias)

    async def stop(self, within: float = 3.0) -> None:
        """Wait at most `within` seconds for the records in flight, then end.

        The remaining ones raise NotAppended.
        """
        if not self._started:
            return
        await asyncio.to_thread(self._report, self._producer.flush, within)
        self._stopping.set()
        self._wanted.set()
        self._id_check.close()
        await asyncio.to_thread(self._thread.join, 2.0)
        await asyncio.to_thread(self._clear, self._producer)
        self._report_refused()
        self._settle()

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> asyncio.Future[tuple[int, int]]:
        """Queue one record on the started producer.

        Returns:
            A future for (partition, offset), which may raise NotAppended or NotPermitted.
        """
        future: asyncio.Future[tuple[int, int]] = self._loop.create_future()
        record = QueuedRecord(
            *(future, topic, key, value),
            partition=-1 if partition is None else partition,
            timestamp_ms=0 if timestamp_ms is None else timestamp_ms,
            headers=headers,
        )
        with self._replacing:
            self._produce(record)
        self._wanted.set()
        return future

    def _produce(self, record: QueuedRecord) -> None:
        try:
            self._producer.produce(
                record.topic,
                value=record.value,
                key=record.key,
                partition=record.partition,
                timestamp=record.timestamp_ms,
                headers=list(record.headers),
                on_delivery=partial(self._on_delivery, record),
            )
        except BufferError:
            trouble = NotAppended(self.alias, record.topic, "too many records wait for the cluster already")
            self._delivered.append((record.future, trouble, -1, -1))
        except KafkaException as exc:
            self._fail(record, exc.args[0])

    def _serve(self) -> None:
        while not self._stopping.is_set():
            if len(self._producer):
                self._report(self._producer.poll, IDLE)
                if self._lacks_id:
                    self._id_check.ask_if_due(self._loop, self._end_without_ids)
            else:
                # The wait has a limit, because errors of the connection pile up without a poll.
                self._wanted.wait(5.0)
                self._wanted.clear()
                self._report(self._producer.poll, 0)
            if self._lost:
                self._lost = False
                if self._unanswered.is_due() or self._fatal:
                    self._replace()
            self._wake_loop()

    def _report(self, poll_or_flush: Callable[[float], int], seconds: float) -> None:
        """Let a producer call back.

        It raises the error that ended it once, in place of callbacks.
        """
        try:
            poll_or_flush(seconds)
        except KafkaException as exc:
            self._end_cause = exc.args[0]
            self._lost = self._fatal = True
            log.debug("producer ended", extra={"text": error_text(exc.args[0]), "cluster": self.alias})

    def _clear(self, producer: Producer) -> None:
        """Let a producer report all records that it holds.

        A flush ends early if it raises the error that ended the producer, so it is repeated.
        """
        deadline = time.monotonic() + STOPS_S
        while True:
            producer.purge()
            self._report(producer.flush, STOPS_S)
            if not len(producer) or time.monotonic() > deadline:
                return

    @property
    def _lacks_id(self) -> bool:
        """Return whether the present producer may wait for a producer id."""
        return self._idempotent and not self._acknowledged

    def _end_without_ids(self) -> None:
        if self._lacks_id:
            self._end_cause = KafkaError(KafkaError._UNSUPPORTED_FEATURE, NO_IDS)
            self._lost = self._fatal = True

    def _replace(self) -> None:
        """Replace the producer by another one.

        The records that the former one holds are not appended, or were appended without an acknowledgement. They must
        not come after later records. A former producer without a producer id has sent nothing: the next one gets all
        its records, and is not idempotent.
        """
        if self._idempotent and not self._gives_ids:
            self._idempotent = False
            log.info("appending without idempotence", extra={"text": NO_IDS, "cluster": self.alias})
        try:
            fresh = self._made()
        except (ClusterUnreachable, KafkaException) as exc:
            log.debug("no other producer", extra={"text": str(exc), "cluster": self.alias})
            self._report_refused()
            self._lost = bool(self._requeued)
            return  # the next lost record repeats this
        log.debug("connecting anew", extra={"text": f"appends to {self.alias}: no answer", "cluster": self.alias})
        with self._replacing:
            former, self._producer = self._producer, fresh
            if not self._gives_ids:  # its records come before later ones
                self._clear(former)
                self._report_refused()
                while self._requeued:
                    self._produce(self._requeued.popleft())
        self._clear(former)
        self._report_refused()
        self._fatal, self._end_cause = False, None

    @property
    def _gives_ids(self) -> bool:
        return self._end_cause is None or self._end_cause.code() not in WITHOUT_IDS

    def _on_delivery(self, record: QueuedRecord, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._fail(record, error)
            return
        self._unanswered.answered()
        self._acknowledged = True
        partition, offset = message.partition() or 0, message.offset()
        self._delivered.append((record.future, None, partition, -1 if offset is None else offset))

    def _fail(self, record: QueuedRecord, error: KafkaError) -> None:
        """Report a record that was not appended, or whose acknowledgement was lost.

        If its producer has ended, the report waits until the cause is known.
        """
        self._lost |= error.code() in LOST
        self._fatal |= error.code() == KafkaError._FATAL
        if error.code() in OF_THE_END:
            self._refused.append((record, error))
        else:
            self._delivered.append((record.future, self._trouble(record.topic, error), -1, -1))

    def _report_refused(self) -> None:
        """Report records whose producer has ended, or keep them for the next one.

        Records that the producer had taken come first.
        """
        refused = sorted(self._refused, key=lambda refusal: refusal[1].code() == KafkaError._FATAL)
        self._refused.clear()
        for record, error in refused:
            if not self._gives_ids and error.code() != KafkaError._PURGE_INFLIGHT and not self._stopping.is_set():
                self._requeued.append(record)
            else:
                self._delivered.append((record.future, self._trouble(record.topic, error), -1, -1))

    def _wake_loop(self) -> None:
        """Wake the event loop once for all results of one poll.

        Each time costs a system call, and a turn of the event loop.
        """
        if self._delivered:
            try:
                self._loop.call_soon_threadsafe(self._settle)
            except RuntimeError:  # the loop is closed: no task waits for it
                self._stopping.set()

    def _settle(self) -> None:
        while self._delivered:
            future, trouble, partition, offset = self._delivered.popleft()
            if future.done():
                continue
            if trouble is None:
                future.set_result((partition, offset))
            else:
                future.set_exception(trouble)

    def _trouble(self, topic: str, error: KafkaError) -> ClusterError:
        return append_trouble(self.alias, topic, error, self._end_cause, self._access)


class ControlTopicLog:
    """The log of one control topic, for appends.

    The first append starts the producer if it is not running, and raises the same errors as `ControlProducer.start`.
    """

    def __init__(self, producer: ControlProducer, topic: str) -> None:
        self._producer = producer
        self.topic = topic

    async def append(
        self,
        key: bytes | None,
        value: bytes | None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> int:
        """Append one record and return its offset.

        Raises:
            NotAppended: The record was not acknowledged. It may be in the log all the same.
            NotPermitted: We may not write to the topic.
        """
        await self._producer.start()
        _, offset = await self._producer.send(self.topic, key, value, partition, timestamp_ms, headers)
        return offset

    async def append_all(
        self, records: Iterable[tuple[bytes | None, bytes | None]], *, partition: int | None = None
    ) -> Sequence[int]:
        """Append records in order (within a partition) and return their offsets, once all are acknowledged."""
        await self._producer.start()
        results = await asyncio.gather(*self.send(records, partition=partition))
        return [offset for _, offset in results]

    def send(
        self, records: Iterable[tuple[bytes | None, bytes | None]], *, partition: int | None = None
    ) -> list[asyncio.Future[tuple[int, int]]]:
        """Queue records in order on the started producer.

        Returns:
            A future for (partition, offset) of each record. It raises the same errors as `append`.
        """
        return [self._producer.send(self.topic, key, value, partition, None) for key, value in records]
