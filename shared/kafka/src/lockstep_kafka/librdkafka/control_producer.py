"""Append facts to control topics: every append is acknowledged by all in-sync replicas before it returns.

One `ControlProducer` a cluster and process, any number of `ControlTopicLog`s on it. Records without an explicit
partition go where MM2's own producer would put them (murmur2 of the key).
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from lockstep_config.credentials.permissions import NO_ACCESS, Access
from lockstep_kafka.common.error_verdicts import error_verdict
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable, NotAppended, NotPermitted
from lockstep_kafka.librdkafka.client_factory import create_client
from lockstep_kafka.librdkafka.client_reset import ClientReset
from lockstep_state.kafka.kafka_errors import ErrorMeaning, KafkaErrorCode
from lockstep_state.kafka.librdkafka_errors import error_text

log = logging.getLogger(__name__)

IDLE = 0.2
"""Seconds one poll without anything in flight blocks."""

APPENDING = {
    "acks": "all",
    "enable.idempotence": "true",
    # Java's default partitioner; with another hash the same key lands elsewhere and compaction keeps both.
    "partitioner": "murmur2_random",
    # One append for what comes together. With 0 each record is a request. While a busy broker owes more answers than
    # may be in flight, librdkafka then asks its socket a hundred thousand times a second.
    "linger.ms": "2",
    "allow.auto.create.topics": "false",
    "log_level": "0",
}


OF_ITS_TIME = frozenset({KafkaError.INVALID_TIMESTAMP, KafkaError.INVALID_RECORD})
"""Of several records in one request the broker says the first of some and the second of others."""

CLOCK_OFF = (
    "the broker does not accept a record (INVALID_TIMESTAMP or INVALID_RECORD). Most likely this machine's clock "
    "is further from the broker's than the topic allows (message.timestamp.after.max.ms): set the clock"
)

LOST = frozenset(
    {KafkaError._MSG_TIMED_OUT, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION, KafkaError._FATAL}
)
"""What a producer says that knows of no broker any more, or does nothing more for another reason."""

WITHIN = 30.0
"""Seconds within which librdkafka retries an append; afterwards the caller's next round does."""

ACTS_WITHIN = 5.0
"""The same for records that have no term: shorter than a take-over, so that they do not outlast one in a queue."""

Delivered = tuple[asyncio.Future[tuple[int, int]], ClusterError | None, int, int]
"""Of a record: who waits for it, what went wrong, and its partition and offset."""


class ControlProducer:
    """One producer with a thread that serves its acknowledgements. What is not acknowledged `within` seconds raises
    NotAppended. `access` is what we need on the cluster."""

    def __init__(
        self, alias: str, conf: Mapping[str, str], *, within: float = WITHIN, access: Access = NO_ACCESS
    ) -> None:
        self.alias = alias
        self._access = access
        self._conf: dict[str, Any] = {**conf, **APPENDING, "message.timeout.ms": f"{within * 1000:.0f}"}
        self._conf["error_cb"] = self._on_error
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
        self._delivered: deque[Delivered] = deque()
        """What threads have found delivered or lost. The event loop settles it."""

    async def start(self) -> None:
        """Begin, unless it has begun, in the loop that appends. Does not need the cluster: appends wait for it. Raises
        ClusterUnreachable where certificates do not serve, or there is no access token to log in with."""
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
        return create_client(Producer, self._conf, self.alias)

    async def stop(self, within: float = 3.0) -> None:
        """Wait at most `within` seconds for what is in flight, then end; what is left raises NotAppended."""
        if not self._started:
            return
        await asyncio.to_thread(self._producer.flush, within)
        self._stopping.set()
        self._wanted.set()
        await asyncio.to_thread(self._thread.join, 2.0)
        self._producer.purge()
        await asyncio.to_thread(self._producer.flush, 1.0)
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
        NotPermitted."""
        future: asyncio.Future[tuple[int, int]] = self._loop.create_future()
        try:
            with self._replacing:
                self._producer.produce(
                    topic,
                    value=value,
                    key=key,
                    partition=-1 if partition is None else partition,
                    timestamp=0 if timestamp_ms is None else timestamp_ms,  # 0: librdkafka's clock
                    headers=list(headers),
                    on_delivery=partial(self._on_delivery, future),
                )
        except BufferError:
            future.set_exception(NotAppended(self.alias, topic, "too many records wait for the cluster already"))
        except KafkaException as exc:
            self._lost |= exc.args[0].code() in LOST
            self._fatal |= exc.args[0].code() == KafkaError._FATAL
            future.set_exception(self._trouble(topic, exc.args[0]))
        self._wanted.set()
        return future

    def _serve(self) -> None:
        while not self._stopping.is_set():
            if len(self._producer):
                self._poll(IDLE)
            else:
                # Errors of the connection pile up unless somebody polls, hence not without a limit.
                self._wanted.wait(5.0)
                self._wanted.clear()
                self._poll(0)
            if self._lost:
                self._lost = False
                if self._unanswered.is_due() or self._fatal:
                    self._replace()
            self._wake_loop()

    def _poll(self, seconds: float) -> None:
        try:
            self._producer.poll(seconds)
        except KafkaException as exc:  # raised instead of a callback when the producer has come to its end
            log.debug("producer ended", extra={"text": error_text(exc.args[0]), "cluster": self.alias})
            self._lost = self._fatal = True

    def _replace(self) -> None:
        """Go on with another producer. What the former one holds is not appended, or was without our knowing: it must
        not come after what is sent from now on."""
        try:
            fresh = self._made()
        except (ClusterUnreachable, KafkaException) as exc:
            log.debug("no other producer", extra={"text": str(exc), "cluster": self.alias})
            return  # what is lost next comes here again
        log.debug("connecting anew", extra={"text": f"appends to {self.alias}: no answer", "cluster": self.alias})
        with self._replacing:
            former, self._producer = self._producer, fresh
            self._fatal, self._end_cause = False, None
        former.purge()
        with suppress(KafkaException):  # as in `_poll`; by then the records that it held are reported
            former.flush(1.0)

    def _on_delivery(self, future: asyncio.Future[tuple[int, int]], error: KafkaError | None, message: Message) -> None:
        topic, partition, offset = message.topic() or "", message.partition() or 0, message.offset()
        trouble = None if error is None else self._trouble(topic, error)
        if error is None:
            self._unanswered.answered()
        else:
            self._lost |= error.code() in LOST
            self._fatal |= error.code() == KafkaError._FATAL
        self._delivered.append((future, trouble, partition, -1 if offset is None else offset))

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

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self._end_cause = error

    def _trouble(self, topic: str, error: KafkaError) -> ClusterError:
        if error.code() == KafkaError._FATAL and self._end_cause is not None:
            error = self._end_cause
        if error.code() == KafkaErrorCode.CLUSTER_AUTHORIZATION_FAILED:  # of InitProducerId, which names no topic
            remedy = self._access.remedy("cluster", "", "IdempotentWrite")
            return NotPermitted(self.alias, "IDEMPOTENT_WRITE", "the cluster (InitProducerId)", remedy)
        if error_verdict(error.code()) is ErrorMeaning.DENIED:
            return NotPermitted(self.alias, "WRITE", f"topic {topic}", self._access.remedy("topic", topic, "Write"))
        return NotAppended(self.alias, topic, CLOCK_OFF if error.code() in OF_ITS_TIME else error_text(error))


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
        `append` does."""
        return [self._producer.send(self.topic, key, value, partition, None) for key, value in records]
