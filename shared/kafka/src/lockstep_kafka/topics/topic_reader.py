"""A reader of one topic without a group and without commits, over a librdkafka client that is replaced if it is stuck.

It blocks throughout: use it on its own thread (`TopicFollower`). An unreachable cluster is no error here: librdkafka
keeps trying, and `trouble` says so.
"""

import logging
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from lockstep_config.credentials.permissions import Access
from lockstep_kafka.common.backoff import Backoff
from lockstep_kafka.common.error_verdicts import error_verdict
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable, LogTruncated, NotPermitted, TopicMissing
from lockstep_kafka.librdkafka.client_factory import create_client
from lockstep_kafka.librdkafka.client_reset import ClientReset
from lockstep_state.kafka.kafka_errors import ErrorMeaning
from lockstep_state.kafka.librdkafka_errors import error_text

CHECK_INTERVAL, AT_MOST = 15.0, 240.0
"""Seconds between two checks for a stall, at first and at most.

A stall is found at the second check. If the reader begins again without success, or if that keeps a slow cluster from
answering, the seconds double from check to check.
"""


class StallDetector:
    """A detector of partitions whose reader has got nothing for long, although their logs have more.

    Positions are those of the next record that the reader is to get. No I/O, no clock.

    librdkafka can stop fetching a partition for good, without an error. That happens if the leader goes away while
    librdkafka asks it whether the log is still the same one (fetch state validate-epoch-wait, librdkafka issue 4492).
    """

    def __init__(self, every: float = CHECK_INTERVAL) -> None:
        self._backoff = Backoff(every, AT_MOST)
        self.every = self._backoff.next()
        """Seconds until the next check."""
        self._checked: Mapping[int, int] = {}
        self._behind: Mapping[int, int] = {}

    def find_stalled(self, positions: Mapping[int, int]) -> Iterable[int]:
        """Return the partitions that have not moved since the last check.

        Only their log ends need to be asked for.
        """
        unmoved = [number for number, position in positions.items() if self._checked.get(number) == position]
        self._checked = dict(positions)
        return unmoved

    def check(self, positions: Mapping[int, int], ends: Mapping[int, int]) -> list[int]:
        """Return the partitions that were behind their log ends at the last check, and have not moved since."""
        behind = {number: positions[number] for number, end in ends.items() if end > positions[number]}
        stuck = [number for number, position in behind.items() if self._behind.get(number) == position]
        self._behind = behind
        if not stuck:
            self._backoff.reset()
        self.every = self._backoff.next()
        return stuck


AT_ONCE = 5000
"""Records read in one go during replay.

They are enough to make handing them over cheap, and few enough not to hold up the loop.
"""

IDLE = 0.5
"""Seconds that one poll of an idle topic blocks, and that a stop may take."""

ANSWERS = 5.0
"""Seconds within which the cluster has to answer where a partition begins and ends."""

QUICK = 2.0
"""Seconds for a request that holds up other work."""

FOLLOWING = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    # A position that the log no longer has must be an error. Otherwise a log with a hole would be folded.
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "fetch.min.bytes": "1",
    "fetch.wait.max.ms": "500",
    "fetch.message.max.bytes": "1048576",
    "queued.max.messages.kbytes": "8192",
    "allow.auto.create.topics": "false",
    # By default librdkafka reconnects every 100 ms while no broker can be reached, each time with other brokers.
    "reconnect.backoff.ms": "500",
    "reconnect.backoff.max.ms": "2000",
    "log_level": "0",
}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it is in the log.

    `timestamp_ms` is -1 if the record has none.
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int

    @property
    def location(self) -> str:
        """The place of the record in words."""
        return f"{self.topic} partition {self.partition} offset {self.offset}"


class TopicReader:
    """A reader of one topic, for one thread.

    Call `open`, `ends` and `begin`, then `read` again and again, and `close` at the end. Every permanent error is
    raised as ClusterError or KafkaException. `as_cluster_error` turns a KafkaException's error into a ClusterError.
    """

    def __init__(
        self,
        conf: Mapping[str, str],
        topic: str,
        alias: str,
        access: Access,
        stopping: threading.Event,
    ) -> None:
        # The constructor requires a group id. It is not used: partitions are assigned, and nothing is committed.
        self._conf = {"group.id": "lockstep-follow", **conf, **FOLLOWING}
        self._topic = topic
        self._alias = alias
        self._access = access
        self._bootstrap = conf.get("bootstrap.servers", "")
        self._stopping = stopping
        self._positions: dict[int, int] = {}
        self._unanswered = ClientReset()
        self._standstill = StallDetector(CHECK_INTERVAL)
        self._checked_at = 0.0
        self.trouble: str = ""
        """The error for which the cluster cannot be reached now, or ""."""
        self.ends_trouble: str = ""
        """The last error of a request for a partition's end.

        The partition may have no leader, although brokers answer.
        """

    def open(self) -> None:
        """Create the client.

        Raises:
            ClusterUnreachable: The client cannot be created.
        """
        self._consumer = self._client()

    def close(self) -> None:
        """Close the client.

        Call it only after `open`.
        """
        self._consumer.close()

    def ends(self, partitions: Iterable[int] | None) -> dict[int, tuple[int, int]] | None:
        """Return the first offset and the log end of each partition, or None if stopped before a broker answered.

        Args:
            partitions: The partitions. None means all that exist.
        """
        while not self._stopping.is_set():
            try:
                numbers = self._partitions() if partitions is None else partitions
                return {p: bounds(self._consumer, self._topic, p, ANSWERS) for p in numbers}
            except KafkaException as exc:
                error = exc.args[0]
                if not passes(error):
                    raise
                self.ends_trouble = error_text(error)
                self._consumer.poll(0)  # calls error_cb with the errors of connections
                if error_verdict(error.code()) is ErrorMeaning.UNREACHABLE and self._unanswered.is_due():
                    self._reconnect(error_text(error))
        return None

    def begin(self, positions: Mapping[int, int], *, at_the_beginning: bool) -> None:
        """Start reading from these offsets on, or with `at_the_beginning` from the first record of each log."""
        self._positions = dict(positions)
        self._assign(dict.fromkeys(positions, OFFSET_BEGINNING) if at_the_beginning else positions)
        self._checked_at = time.monotonic()

    def read(self) -> tuple[list[Record], dict[int, int]] | None:
        """Return new records, in order per partition, and the position of each partition after them.

        The result is None after half a second in which nothing came.
        """
        if time.monotonic() - self._checked_at >= self._standstill.every:
            self._checked_at = time.monotonic()
            self._recover()
        # poll returns with the first record at once; consume(n, timeout) would wait for n of them.
        first = self._consumer.poll(IDLE)
        if first is None:
            return None
        records, reached = self._sort([first, *self._consumer.consume(AT_ONCE, 0)])
        self._positions.update(reached)
        return records, reached

    def as_cluster_error(self, error: KafkaError, partition: int = 0) -> ClusterError:
        """Return the ClusterError for the error that ended the reading."""
        if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            return LogTruncated(self._alias, self._topic, partition, self._positions.get(partition, 0))
        return reading_error(error, self._topic, self._alias, self._bootstrap, self._access)

    def _client(self) -> Consumer:
        try:
            return create_client(Consumer, {**self._conf, "error_cb": self._complain}, self._alias)
        except KafkaException as exc:
            raise ClusterUnreachable(self._alias, self._bootstrap, error_text(exc.args[0])) from exc

    def _complain(self, error: KafkaError) -> None:
        if error_verdict(error.code()) is ErrorMeaning.UNREACHABLE and error.code() != KafkaError._ALL_BROKERS_DOWN:
            self.trouble = error_text(error)

    def _partitions(self) -> list[int]:
        metadata = self._consumer.list_topics(self._topic, timeout=QUICK).topics[self._topic]
        if metadata.error is not None and not passes(metadata.error):
            raise KafkaException(metadata.error)
        if not metadata.partitions:
            raise TopicMissing(self._alias, self._topic)
        return sorted(metadata.partitions)

    def _assign(self, positions: Mapping[int, int]) -> None:
        partitions = [TopicPartition(self._topic, number, position) for number, position in positions.items()]
        self._consumer.unassign()
        self._consumer.assign(partitions)
        self._consumer.resume(partitions)

    def _recover(self) -> None:
        """Begin again, at the present position, with partitions that librdkafka no longer fetches.

        If the client is not answered, another one takes its place. All records that the client holds are fetched again.
        """
        positions = self._positions
        ends: dict[int, int] = {}
        try:
            for number in self._standstill.find_stalled(positions):
                ends[number] = bounds(self._consumer, self._topic, number, QUICK)[1]
        except KafkaException as exc:
            if self._unanswered.is_due() and self._reconnect(error_text(exc.args[0])):
                self._assign(positions)
            return
        self._unanswered.answered()
        if stuck := self._standstill.check(positions, ends):
            stalled = ", ".join(f"{self._topic}-{p} at {positions[p]} of {ends[p]}" for p in stuck)
            log.warning(
                "reading anew", extra={"text": f"nothing came of what is there: {stalled}", "cluster": self._alias}
            )
            self._assign(positions)

    def _reconnect(self, reason: str) -> bool:
        """Replace the client, and return whether that succeeded.

        The new client has no partitions assigned.
        """
        try:
            fresh = self._client()
        except ClusterUnreachable as exc:
            self.trouble = str(exc)
            return False
        log.debug("connecting anew", extra={"text": f"{self._topic}: no answer ({reason})", "cluster": self._alias})
        self._consumer.close()
        self._consumer = fresh
        return True

    def _sort(self, messages: Sequence[Message]) -> tuple[list[Record], dict[int, int]]:
        records: list[Record] = []
        reached: dict[int, int] = {}
        for message in messages:
            error = message.error()
            partition, offset = message.partition() or 0, message.offset() or 0
            if error is None:
                _, timestamp = message.timestamp()
                records.append(Record(self._topic, partition, offset, message.key(), message.value(), timestamp))
                reached[partition] = offset + 1
                self.trouble = ""
            elif error.code() == KafkaError._PARTITION_EOF:
                reached[partition] = max(offset, reached.get(partition, 0))
                self.trouble = ""
            elif not passes(error):
                raise self.as_cluster_error(error, partition)
        return records, reached


def bounds(consumer: Consumer, topic: str, partition: int, timeout: float) -> tuple[int, int]:
    """Return the first offset of a partition and the one after its last.

    Raises:
        KafkaException: The cluster does not answer within `timeout` seconds.
    """
    first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=timeout) or (0, 0)
    return int(first), int(end)


def passes(error: KafkaError) -> bool:
    """Return whether the reading goes on after the error.

    librdkafka recovers from it by itself, or the error is about the group, which we do not use. librdkafka looks for
    the group's coordinator all the same, and that needs a permission that our work does not need.
    """
    if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
        return True
    if error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID):
        return False
    return error_verdict(error.code()) in (ErrorMeaning.UNREACHABLE, ErrorMeaning.RETRIABLE)


def reading_error(error: KafkaError, topic: str, alias: str, bootstrap: str, access: Access) -> ClusterError:
    """Return the ClusterError for an error that ends the reading of a topic."""
    if error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION):
        return TopicMissing(alias, topic)
    if error_verdict(error.code()) is ErrorMeaning.DENIED:
        return NotPermitted(alias, "READ", f"topic {topic}", access.remedy("topic", topic, "Read"))
    return ClusterUnreachable(alias, bootstrap, error_text(error))
