"""Append facts to control topics: every append is acknowledged by all in-sync replicas before it returns.

One `ControlProducer` a cluster and process, any number of `ControlTopicLog`s on it. Records without an explicit
partition go where MM2's own producer would put them (murmur2 of the key).

A producer is idempotent if the cluster gives producer ids. Otherwise one request to a broker is in flight, so records
stay in order. One whose answer is lost may be in the log twice.
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
from lockstep_kafka.librdkafka.producer_id_support import NO_IDS, WITHOUT_IDS, ProducerIdQuestion
from lockstep_state.kafka.librdkafka_errors import error_text

log = logging.getLogger(__name__)

IDLE = 0.2
"""Seconds one poll without anything in flight blocks."""

NO_LOG = logging.getLogger(f"{__name__}.librdkafka")
"""Gets what librdkafka would write to stderr: its fatal errors, which we tell ourselves."""
NO_LOG.disabled = True

APPENDING: Mapping[str, Any] = {
    "acks": "all",
    "enable.idempotence": "true",
    # Java's default partitioner; with another hash the same key lands elsewhere and compaction keeps both.
    "partitioner": "murmur2_random",
    # One append for what comes together. With 0 each record is a request. While a busy broker owes more answers than
    # may be in flight, librdkafka then asks its socket a hundred thousand times a second.
    "linger.ms": "2",
    "allow.auto.create.topics": "false",
    "log_level": "0",
    "logger": NO_LOG,
}

WITHOUT_IDEMPOTENCE = {"enable.idempotence": "false", "max.in.flight.requests.per.connection": "1"}
"""These settings keep records in order on a cluster that gives no producer ids."""

LOST = frozenset(
    {KafkaError._MSG_TIMED_OUT, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION, KafkaError._FATAL}
)
"""What a producer says that knows of no broker any more, or does nothing more for another reason."""

WITHIN = 30.0
"""Seconds within which librdkafka retries an append; afterwards the caller's next round does."""

ACTS_WITHIN = 5.0
"""The same for records that have no term: shorter than a take-over, so that they do not outlast one in a queue."""

STOPS_S = 1.0


class QueuedRecord(NamedTuple):
    """A record on its way. `future`: who waits for its partition and offset. `timestamp_ms` 0: librdkafka's clock."""

    future: asyncio.Future[tuple[int, int]]
    topic: str
    key: bytes | None
    value: bytes | None
    partition: int
    timestamp_ms: int
    headers: Sequence[tuple[str, bytes]]


Delivered = tuple[asyncio.Future[tuple[int, int]], ClusterError | None, int, int]
"""Of a record: who waits for it, what went wrong, and its partition and offset."""


class ControlProducer:
    """One producer with a thread that serves its acknowledgements. What is not acknowledged `within` seconds raises
    NotAppended. `access` is what we need on the cluster.
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
        """The present producer does nothing more (librdkafka's fatal errors)."""
        self._end_cause: KafkaError | None = None
        """Why the present producer does nothing more. Later errors only say that it does not."""
        self._idempotent = True
        self._acknowledged = False
        """True once the cluster has acknowledged a record."""
        self._question = ProducerIdQuestion(access, str(conf.get("client.id", "")))
        self._refused: deque[tuple[QueuedRecord, KafkaError]] = deque()
        """Records that the present producer did not take, for it has ended."""
        self._again: deque[QueuedRecord] = deque()
        """Records that no producer has sent, and that the next one gets."""
        self._delivered: deque[Delivered] = deque()
        """What threads have found delivered or lost. The event loop settles it."""

    async def start(self) -> None:
        """Begin, unless it has begun, in the loop that appends. Does not need the cluster: appends wait for it. Raises
        ClusterUnreachable where certificates do not serve, or there is no access token to log in with.
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
        """Wait at most `within` seconds for what is in flight, then end; what is left raises NotAppended."""
        if not self._started:
            return
        await asyncio.to_thread(self._report, self._producer.flush, within)
        self._stopping.set()
        self._wanted.set()
        self._question.close()
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
        """Queue one record, once started; the future holds (partition, offset) or raises NotAppended or
        NotPermitted.
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
                    self._question.ask_if_due(self._loop, self._end_without_ids)
            else:
                # Errors of the connection pile up unless somebody polls, hence not without a limit.
                self._wanted.wait(5.0)
                self._wanted.clear()
                self._report(self._producer.poll, 0)
            if self._lost:
                self._lost = False
                if self._unanswered.is_due() or self._fatal:
                    self._replace()
            self._wake_loop()

    def _report(self, poll_or_flush: Callable[[float], int], seconds: float) -> None:
        """Let a producer report. Why it has come to its end it raises once, in place of a report."""
        try:
            poll_or_flush(seconds)
        except KafkaException as exc:
            self._end_cause = exc.args[0]
            self._lost = self._fatal = True
            log.debug("producer ended", extra={"text": error_text(exc.args[0]), "cluster": self.alias})

    def _clear(self, producer: Producer) -> None:
        """Let a producer report all records that it holds: a flush ends early by raising why the producer has ended."""
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
        """Go on with another producer. What the former one holds is not appended, or was without our knowing: it must
        not come after what is sent from now on. Where the former got no producer id, it has sent nothing: the next one
        gets all that it holds, and is not idempotent.
        """
        if self._idempotent and not self._gives_ids:
            self._idempotent = False
            log.info("appending without idempotence", extra={"text": NO_IDS, "cluster": self.alias})
        try:
            fresh = self._made()
        except (ClusterUnreachable, KafkaException) as exc:
            log.debug("no other producer", extra={"text": str(exc), "cluster": self.alias})
            self._report_refused()
            self._lost = bool(self._again)
            return  # what is lost next comes here again
        log.debug("connecting anew", extra={"text": f"appends to {self.alias}: no answer", "cluster": self.alias})
        with self._replacing:
            former, self._producer = self._producer, fresh
            if not self._gives_ids:  # all that it holds comes before what is sent from now on
                self._clear(former)
                self._report_refused()
                while self._again:
                    self._produce(self._again.popleft())
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
        """Report a record that is not appended, or was without our knowing. If its producer has ended, that waits until
        the reason is known.
        """
        self._lost |= error.code() in LOST
        self._fatal |= error.code() == KafkaError._FATAL
        if error.code() in OF_THE_END:
            self._refused.append((record, error))
        else:
            self._delivered.append((record.future, self._trouble(record.topic, error), -1, -1))

    def _report_refused(self) -> None:
        """Report records whose producer has ended, or keep them for the next one. Those that it took come first."""
        refused = sorted(self._refused, key=lambda each: each[1].code() == KafkaError._FATAL)
        self._refused.clear()
        for record, error in refused:
            if not self._gives_ids and error.code() != KafkaError._PURGE_INFLIGHT and not self._stopping.is_set():
                self._again.append(record)
            else:
                self._delivered.append((record.future, self._trouble(record.topic, error), -1, -1))

    def _wake_loop(self) -> None:
        """Once for all that one poll found: each time costs a system call, and a turn of the event loop."""
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
    """Appends to one topic; the first append starts the producer if it is not running, and raises what that does."""

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
        """Append one record and return its offset. Raises NotAppended (it may be there all the same) or
        NotPermitted.
        """
        await self._producer.start()
        _, offset = await self._producer.send(self.topic, key, value, partition, timestamp_ms, headers)
        return offset

    async def append_all(
        self, records: Iterable[tuple[bytes | None, bytes | None]], *, partition: int | None = None
    ) -> Sequence[int]:
        """Append in order (within a partition) and return the offsets, once all are acknowledged."""
        await self._producer.start()
        results = await asyncio.gather(*self.send(records, partition=partition))
        return [offset for _, offset in results]

    def send(
        self, records: Iterable[tuple[bytes | None, bytes | None]], *, partition: int | None = None
    ) -> list[asyncio.Future[tuple[int, int]]]:
        """Queue them in order, where the producer has been started; each future holds (partition, offset) or raises as
        `append` does.
        """
        return [self._producer.send(self.topic, key, value, partition, None) for key, value in records]
