"""The consumer of heartbeats that are mirrored to the target.

One consumer without a group reads all their topics, on a thread that hands over only the newest heartbeat of each.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, Message, TopicPartition

from lockstep_heartbeat.upstream_clusters import UpstreamHeartbeat, with_heartbeat
from lockstep_kafka.common.errors import ClusterUnreachable
from lockstep_kafka.librdkafka.client_factory import create_client
from lockstep_kafka.librdkafka.client_reset import ClientReset
from lockstep_kafka.topics.topic_reader import Record, bounds
from lockstep_state.codecs.mm2_codec import MalformedRecord, UnsupportedRecordVersion, decode_heartbeat
from lockstep_state.kafka.librdkafka_errors import error_text

log = logging.getLogger(__name__)

IDLE = 0.5
"""Seconds that a poll without heartbeats blocks, and that a stop may take."""

ANSWERS = 2.0
"""Seconds within which the cluster has to say where a topic ends."""

QUIET = 15.0
"""Seconds without a heartbeat after which the cluster is asked whether it answers."""

BEFORE = 10
"""Records before the end at which reading a topic begins: the last one gives the age of the newest heartbeat. A
transaction's marker may be the last."""

LISTENING = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    # A topic that was created again, or whose end is gone, is gone on with at its end: only what is new counts.
    "auto.offset.reset": "latest",
    "isolation.level": "read_committed",
    "fetch.min.bytes": "1",
    "fetch.wait.max.ms": "5000",
    "fetch.message.max.bytes": "65536",
    "queued.max.messages.kbytes": "1024",
    "allow.auto.create.topics": "false",
    "log_level": "0",
}


class UpstreamMonitor:
    """The newest heartbeats (`heard`) and errors (`troubles`) by topic, current to within a fetch."""

    def __init__(
        self,
        alias: str,
        conf: Mapping[str, str],
        wall_ms: Callable[[], int],
        on_unreadable: Callable[[Record, ValueError], None] = lambda record, error: None,
    ) -> None:
        """Prepare the monitor; `listen_to` starts its thread.

        Args:
            alias: The cluster, for messages.
            conf: librdkafka's settings.
            wall_ms: The clock for arrivals, in Unix milliseconds.
            on_unreadable: Called in the thread for each record that is no heartbeat.
        """
        self._alias = alias
        self._on_unreadable = on_unreadable
        # The group id is obligatory and unused: assign() and no commit.
        self._conf = {"group.id": "lockstep-heartbeat-listen", **conf, **LISTENING}
        self._wall_ms = wall_ms
        self._stopping = threading.Event()
        self._reset = ClientReset()
        self._topics: frozenset[str] = frozenset()
        self._ends: dict[str, int] = {}
        self._next: dict[str, int] = {}
        """By topic, the offset after the last record that was read."""
        self._thread: threading.Thread | None = None
        self.heartbeats: dict[str, UpstreamHeartbeat] = {}
        self.troubles: dict[str, str] = {}
        """The reason why the newest record of a topic could not be read."""

    def listen_to(self, topics: Collection[str]) -> None:
        """Follow these topics from now on. Starts the thread if necessary."""
        self._topics = frozenset(topics)
        if self._topics and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._run, name="upstream heartbeats", daemon=True)
            self._thread.start()

    async def stop(self) -> None:
        """Stop the thread, within half a second."""
        self._stopping.set()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, 5.0)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                consumer = create_client(Consumer, self._conf, self._alias)
            except ClusterUnreachable as exc:
                self.troubles = dict.fromkeys(self._topics, str(exc))
                return  # the next `listen_to` begins again
            try:
                self._listen(consumer)
            finally:
                consumer.close()

    def _listen(self, consumer: Consumer) -> None:
        """Poll until stopped, or until another consumer should continue, as no records come and no broker answers."""
        listening: frozenset[str] = frozenset()
        heard_at = time.monotonic()
        while not self._stopping.is_set():
            if listening != self._topics:
                listening = self._topics
                self._assign(consumer, listening)
            message = consumer.poll(IDLE)
            if message is not None:
                self._on_record(message)
                if message.error() is None:
                    heard_at = time.monotonic()
            if listening and time.monotonic() - heard_at > QUIET:
                heard_at = time.monotonic()
                if not self._answers(consumer, min(listening)) and self._reset.is_due():
                    text = f"heartbeats on {self._alias}: no answer"
                    log.debug("connecting anew", extra={"text": text, "cluster": self._alias})
                    return

    def _answers(self, consumer: Consumer, topic: str) -> bool:
        try:
            bounds(consumer, topic, 0, ANSWERS)
        except KafkaException:
            return False
        self._reset.answered()
        return True

    def _assign(self, consumer: Consumer, topics: frozenset[str]) -> None:
        """Assign the last records of each topic, or its end if the cluster does not say where that is.

        Records before that end say nothing about latency.
        """
        assigned: list[TopicPartition] = []
        for topic in sorted(topics):
            try:
                begin, end = bounds(consumer, topic, 0, ANSWERS)
            except KafkaException as exc:
                self.troubles[topic] = error_text(exc.args[0])
                self._ends[topic] = 0
                assigned.append(TopicPartition(topic, 0, OFFSET_END))
            else:
                self._ends[topic] = end
                # What was read already does not arrive once more. A topic that was created again may have ended sooner.
                next_offset = self._next.get(topic, 0)
                assigned.append(
                    TopicPartition(topic, 0, max(begin, end - BEFORE, next_offset if next_offset <= end else 0))
                )
        consumer.assign(assigned)
        self.heartbeats = {topic: next_offset for topic, next_offset in self.heartbeats.items() if topic in topics}
        self.troubles = {topic: reason for topic, reason in self.troubles.items() if topic in topics}
        self._next = {topic: offset for topic, offset in self._next.items() if topic in topics}

    def _on_record(self, message: Message) -> None:
        topic = message.topic() or ""
        error = message.error()
        if error is not None:
            # librdkafka looks for the coordinator of the group that we do not use, and need not be let.
            if error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
                self.troubles[topic] = error_text(error)
            return
        read_ms, offset = self._wall_ms(), message.offset() or 0
        self._next[topic] = offset + 1
        try:
            beat = decode_heartbeat(message.key(), message.value())
        except (UnsupportedRecordVersion, MalformedRecord) as exc:
            self.troubles[topic] = f"{topic} holds what is no heartbeat: {exc}"
            record = Record(topic, message.partition() or 0, offset, message.key(), message.value(), -1)
            self._on_unreadable(record, exc)
            return
        self.troubles.pop(topic, None)
        new = offset >= self._ends.get(topic, 0)
        self.heartbeats[topic] = with_heartbeat(self.heartbeats.get(topic), beat.timestamp_ms, read_ms, new=new)
