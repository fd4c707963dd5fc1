"""A follower of one partition of each of many topics of a cluster, over one librdkafka client and one thread.

`TopicFollower` has a client and a thread for each topic, which is right for the few topics of a service. A process
that follows two topics of each of many flows would have a hundred of both.

librdkafka says nothing of a topic that is missing, or is deleted or created again while it is read. Ask the cluster for
its topics before `follow`, and now and then afterwards.
"""

import asyncio
import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from lockstep_config.credentials.permissions import NO_ACCESS, Access
from lockstep_kafka.common.asyncio_util import retrieve_error
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable, LogTruncated
from lockstep_kafka.librdkafka.client_factory import create_client
from lockstep_kafka.topics.topic_reader import AT_ONCE, FOLLOWING, Record, passes, reading_error
from lockstep_state.kafka.librdkafka_errors import error_text

WAIT_S = 0.5
"""Seconds for which the thread waits at a time. A topic that is added or left waits as long."""

SELDOM = {
    "fetch.min.bytes": "1000000",
    "fetch.wait.max.ms": "250",
    "fetch.max.bytes": "2097152",
    "queued.max.messages.kbytes": "2048",
}
"""Settings by which a broker answers four times a second, and not once for each record of many topics.

What is read ahead of many long topics is bounded for all of them together.
"""

GATHER_S = 0.1
"""Seconds for which the thread waits for more behind the first record, so that the loop wakes ten times a second."""

AHEAD = 4
"""Batches that the thread may be ahead of the loop. It bounds memory while long topics are read."""


Batch = tuple[int, Sequence[Record], int, ClusterError | None]
"""What came of a topic: its generation, records, the position behind them, and what ended the reading."""


class FollowedTopic:
    """One topic that is followed, from `TopicsFollower.follow` until `leave`."""

    def __init__(
        self, topic: str, first: int, end: int, on_records: Callable[[Sequence[Record]], None], generation: int
    ) -> None:
        """Take the offset to begin at, and the end that counts as caught up."""
        self.topic, self.first, self.end, self.generation = topic, first, end, generation
        self.position = first
        """The offset after the last record that was handed over."""
        self._on_records = on_records
        loop = asyncio.get_running_loop()
        self._caught_up: asyncio.Future[None] = loop.create_future()
        self._ended: asyncio.Future[None] = loop.create_future()
        for future in (self._caught_up, self._ended):
            future.add_done_callback(retrieve_error)
        self._note_position(first)

    async def caught_up(self) -> None:
        """Wait until every record before `end` was handed over. It raises the errors of `failed` too."""
        await asyncio.shield(self._caught_up)

    async def failed(self) -> None:
        """Raise what ended the following: a ClusterError, or what the function for the records raised."""
        await asyncio.shield(self._ended)

    def deliver(self, records: Sequence[Record], position: int) -> None:
        """Hand over records, and note the position behind them."""
        if self._ended.done():
            return
        try:
            if records:
                self._on_records(records)
        except Exception as exc:  # noqa: BLE001  # any error ends the following, and is raised by `failed`
            self.fail(exc)
            return
        self._note_position(position)

    def fail(self, exc: Exception) -> None:
        """End the following with an error."""
        for future in (self._caught_up, self._ended):
            if not future.done():
                future.set_exception(exc)

    def _note_position(self, position: int) -> None:
        self.position = max(self.position, position)
        if self.position >= self.end and not self._caught_up.done():
            self._caught_up.set_result(None)


class TopicsFollower:
    """The followed topics of one cluster. The client is created with the first of them.

    Args:
        conf: librdkafka's settings of the cluster. A group id in them is not joined.
        alias: The alias of the cluster, for errors.
        access: The rights that we need on the cluster. Errors name them.
        partition: The partition of each topic that is read.
    """

    def __init__(self, conf: Mapping[str, str], alias: str, *, access: Access = NO_ACCESS, partition: int = 0) -> None:
        self._alias, self._access, self._partition = alias, access, partition
        self._bootstrap = conf.get("bootstrap.servers", "")
        self._conf = {"group.id": "lockstep-follow", **conf, **FOLLOWING, **SELDOM}
        self._followed: dict[str, FollowedTopic] = {}
        self._generation = 0
        self._assigned: dict[str, int] = {}
        """On the thread: the generation of each topic that is assigned. What comes of a former one does not count."""
        self._delivered_until: dict[str, int] = {}
        """On the thread: the position that was handed over last."""
        self._calls: queue.SimpleQueue[Callable[[Consumer], None]] = queue.SimpleQueue()
        self._room = threading.Semaphore(AHEAD)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def follow(self, topic: str, first: int, end: int, on_records: Callable[[Sequence[Record]], None]) -> FollowedTopic:
        """Read a topic from the offset `first` on. `on_records` is called in the event loop, in log order.

        A topic that is followed already is left before.
        """
        self._loop = asyncio.get_running_loop()
        self._generation += 1
        followed = FollowedTopic(topic, first, end, on_records, self._generation)
        self._followed[topic] = followed
        self._calls.put(partial(self._assign, followed))
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"follow {self._alias}", daemon=True)
            self._thread.start()
        return followed

    def leave(self, followed: FollowedTopic) -> None:
        """Read a topic no further, unless it is followed anew meanwhile."""
        if self._followed.get(followed.topic) is followed:
            del self._followed[followed.topic]
            self._calls.put(partial(self._unassign, followed.topic))

    def end(self) -> None:
        """End reading. The thread is not waited for: it may wait for a cluster that is away."""
        self._stopping.set()
        self._room.release()

    # -- on the event loop ---------------------------------------------------------------------------------------------

    def _deliver(self, batch: Mapping[str, Batch]) -> None:
        self._room.release()
        for topic, (generation, records, position, error) in batch.items():
            followed = self._followed.get(topic)
            if followed is None or followed.generation != generation:
                continue  # it was left, or is followed anew
            followed.deliver(records, position)
            if error is not None:
                followed.fail(error)

    def _fail_all(self, exc: Exception) -> None:
        self._thread = None
        for followed in list(self._followed.values()):
            followed.fail(exc)

    def _call_loop(self, call: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *arguments)
        except RuntimeError:  # the loop is closed: no task waits for it
            self._stopping.set()

    # -- on the thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            consumer = create_client(Consumer, self._conf, self._alias)
        except KafkaException as exc:
            self._call_loop(self._fail_all, ClusterUnreachable(self._alias, self._bootstrap, error_text(exc.args[0])))
            return
        try:
            is_full = False
            while not self._stopping.is_set():
                self._carry_out_calls(consumer)
                first = consumer.poll(WAIT_S)
                if first is not None:
                    if not is_full:
                        self._stopping.wait(GATHER_S)
                    messages = [first, *consumer.consume(AT_ONCE, 0)]
                    is_full = len(messages) > AT_ONCE
                    self._hand_over(messages)
        except Exception as exc:  # noqa: BLE001  # raised by `failed` of each topic
            self._call_loop(self._fail_all, exc)
        finally:
            consumer.close()

    def _carry_out_calls(self, consumer: Consumer) -> None:
        while not self._calls.empty():
            self._calls.get()(consumer)

    def _assign(self, followed: FollowedTopic, consumer: Consumer) -> None:
        partition = TopicPartition(followed.topic, self._partition, followed.first)
        self._unassign(followed.topic, consumer)
        self._assigned[followed.topic], self._delivered_until[followed.topic] = followed.generation, followed.first
        consumer.incremental_assign([partition])
        consumer.resume([partition])

    def _unassign(self, topic: str, consumer: Consumer) -> None:
        self._assigned.pop(topic, None)
        present = [partition for partition in consumer.assignment() if partition.topic == topic]
        if present:
            consumer.incremental_unassign(present)

    def _hand_over(self, messages: Sequence[Message]) -> None:
        records: defaultdict[str, list[Record]] = defaultdict(list)
        reached: dict[str, int] = {}
        errors: dict[str, ClusterError] = {}
        for message in messages:
            topic, offset, error = message.topic() or "", message.offset() or 0, message.error()
            if topic not in self._assigned:
                continue
            if error is None:
                _, timestamp = message.timestamp()
                value, key = message.value(), message.key()
                records[topic].append(Record(topic, self._partition, offset, key, value, timestamp))
                reached[topic] = offset + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                reached[topic] = max(offset, reached.get(topic, 0))
            elif not passes(error):
                errors[topic] = self._cluster_error(error, topic)
        # The end of a topic is reported again and again. The loop need not wake for that.
        moved = {
            topic for topic, position in reached.items() if position > self._delivered_until[topic]
        } | errors.keys()
        if moved:
            self._delivered_until.update({topic: reached[topic] for topic in moved if topic in reached})
            self._room.acquire()
            batch = {
                topic: (self._assigned[topic], records.get(topic, []), self._delivered_until[topic], errors.get(topic))
                for topic in moved
            }
            self._call_loop(self._deliver, batch)

    def _cluster_error(self, error: KafkaError, topic: str) -> ClusterError:
        if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            return LogTruncated(self._alias, topic, self._partition, self._delivered_until.get(topic, 0))
        return reading_error(error, topic, self._alias, self._bootstrap, self._access)
