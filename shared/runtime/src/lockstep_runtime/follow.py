"""Replay a topic and go on following it: a consumer without a group, on a thread of its own, that never commits.

Each follower sees every record of the partitions it was given, in order per partition. It reads from the beginning to
the end taken
first (then `caught_up` is set) and goes on. An unreachable cluster is no error here: librdkafka keeps trying,
`trouble` says so.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from lockstep_config.permissions import NO_ACCESS, Access
from lockstep_runtime.errors import ClusterTrouble, ClusterUnreachable, LogTruncated, NotPermitted, TopicMissing
from lockstep_runtime.login import logged_in
from lockstep_runtime.retry import Verdict, classify
from lockstep_runtime.standstill import LOOK_EVERY, Standstill
from lockstep_runtime.unanswered import Unanswered
from lockstep_runtime.waiting import error_retrieved

__all__ = ["Follower", "Record", "follow", "replay"]

AT_ONCE = 5000
"""Records handed over in one go during replay: enough to make the hand-over cheap, small enough not to hold up the
loop.
"""

AHEAD = 4
"""Batches the thread may be ahead of the loop; bounds memory during the replay of a long topic."""

IDLE = 0.5
"""Seconds one poll of an idle topic blocks; also how long a stop may take."""

QUICK = 2.0
"""Seconds for a question that others wait behind."""

FOLLOWING = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    # A position the log no longer has must be an error: jumping would fold a log with a hole in it.
    "auto.offset.reset": "error",
    "fetch.min.bytes": "1",
    "fetch.wait.max.ms": "500",
    "fetch.message.max.bytes": "1048576",
    "queued.max.messages.kbytes": "8192",
    "reconnect.backoff.max.ms": "2000",
    "allow.auto.create.topics": "false",
    "log_level": "0",
}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it lies in the log. `timestamp_ms` is -1 where the record has none."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int


def follow(
    conf: Mapping[str, str],
    topic: str,
    *,
    on_records: Callable[[Sequence[Record]], None],
    partitions: Iterable[int] | None = None,
    from_beginning: bool = True,
    alias: str = "",
    access: Access = NO_ACCESS,
    isolation: str = "read_committed",
) -> Follower:
    """A follower of `topic`, not yet started: use it with `async with`, then `await caught_up()`.

    `conf` are librdkafka settings of the cluster (a group id in it is not joined), `access` what we need there.
    `partitions` None: all there are at the start.
    `on_records` is called in the event loop with one or more records at a time; whatever it raises ends the follower
    and is
    raised by `caught_up`, `failed` and on exit. `from_beginning` False starts at the end: what is appended after
    `caught_up` has returned is handed over.
    """
    return Follower(conf, topic, on_records, partitions, from_beginning, alias, access, isolation)


async def replay(
    conf: Mapping[str, str],
    topic: str,
    *,
    on_records: Callable[[Sequence[Record]], None],
    partitions: Iterable[int] | None = None,
    alias: str = "",
    access: Access = NO_ACCESS,
) -> None:
    """Hand over every record that is in the topic now, then stop. Raises what `Follower.failed` raises."""
    follower = follow(conf, topic, on_records=on_records, partitions=partitions, alias=alias, access=access)
    follower.start()
    try:
        await follower.caught_up()
    finally:
        follower.end()


class Follower:
    """See `follow`. Lives from `start` (or `async with`) to `stop`."""

    def __init__(
        self,
        conf: Mapping[str, str],
        topic: str,
        on_records: Callable[[Sequence[Record]], None],
        partitions: Iterable[int] | None,
        from_beginning: bool,
        alias: str,
        access: Access,
        isolation: str,
    ) -> None:
        self.topic = topic
        self.alias = alias
        self._access = access
        self.bootstrap = conf.get("bootstrap.servers", "")
        # The group id is obligatory for the constructor and unused: assign() and no commit.
        self._conf = {"group.id": "lockstep-follow", **conf, **FOLLOWING, "isolation.level": isolation}
        self._on_records = on_records
        self._partitions = None if partitions is None else sorted(set(partitions))
        self._from_beginning = from_beginning
        self._stopping = threading.Event()
        self._room = threading.Semaphore(AHEAD)
        self._positions: dict[int, int] = {}
        self._missing: dict[int, int] = {}
        self._unheard: set[int] = set()
        self._unanswered = Unanswered()
        self.trouble: str = ""
        """Why the cluster cannot be reached just now; "" while it can."""

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.stop()

    def start(self) -> None:
        """Begin reading. Call within the event loop that is to receive the records."""
        self._loop = asyncio.get_running_loop()
        self._caught_up: asyncio.Future[None] = self._loop.create_future()
        self._heard: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        # Each may go unawaited; its error is then for whoever awaits another one.
        for future in (self._caught_up, self._heard, self._ended):
            future.add_done_callback(error_retrieved)
        self._thread = threading.Thread(target=self._run, name=f"follow {self.topic}", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """End reading; no record is handed over afterwards. Takes up to half a second, more while the broker is
        away.
        """
        self.end()
        await asyncio.to_thread(self._thread.join, 5.0)

    def end(self) -> None:
        """Like `stop`, without waiting for the thread to end."""
        self._stopping.set()
        self._room.release()

    async def caught_up(self) -> None:
        """Return once every record that was there at the start has been handed over. Raises what `failed` raises."""
        await asyncio.shield(self._caught_up)

    async def permitted(self) -> None:
        """Return once the broker has handed out something of each partition, if only its end, which takes it up to half
        a second: one that is empty is `caught_up` before it is known whether it may be read. Raises what `failed`
        raises."""
        await asyncio.shield(self._heard)

    async def failed(self) -> None:
        """Return when the follower was stopped. Raises LogTruncated, TopicMissing or NotPermitted when reading cannot
        go on,
        and what `on_records` raised."""
        await asyncio.shield(self._ended)

    @property
    def positions(self) -> dict[int, int]:
        """Per partition, the offset after the last record handed over."""
        return dict(self._positions)

    # -- on the event loop ---------------------------------------------------------------------------------------------

    def _deliver(self, records: Sequence[Record], ends: Mapping[int, int]) -> None:
        self._room.release()
        if self._stopping.is_set() or self._ended.done():
            return
        try:
            if records:
                self._on_records(records)
        except Exception as exc:  # noqa: BLE001 - not ours to judge: it ends the follower and is raised by `failed`
            self._stopping.set()
            self._end(exc)
            return
        self._positions.update(ends)
        self._missing = {p: end for p, end in self._missing.items() if self._positions.get(p, -1) < end}
        if not self._missing and not self._caught_up.done():
            self._caught_up.set_result(None)
        self._unheard -= ends.keys()
        if not self._unheard and not self._heard.done():
            self._heard.set_result(None)

    def _expect(self, ends: Mapping[int, tuple[int, int]]) -> None:
        self._missing = {p: end for p, (first, end) in ends.items() if end > first}
        self._unheard = set(ends)

    def _end(self, exc: BaseException | None) -> None:
        for future in (self._caught_up, self._heard, self._ended):
            if not future.done():
                if exc is None and future is self._ended:
                    future.set_result(None)
                elif exc is None:
                    future.cancel()
                else:
                    future.set_exception(exc)

    def _tell(self, call: Callable[..., None], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:  # the loop is closed: nobody is left to tell
            self._stopping.set()

    # -- on the thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._consumer = self._client()
        except ClusterUnreachable as exc:
            self._tell(self._end, exc)
            return
        try:
            self._read()
        except ClusterTrouble as exc:
            self._tell(self._end, exc)
        except KafkaException as exc:
            self._tell(self._end, self._trouble(exc.args[0], 0))
        except Exception as exc:  # noqa: BLE001 - a mistake of ours: raised by `failed`, not lost with the thread
            self._tell(self._end, exc)
        else:
            self._tell(self._end, None)
        finally:
            self._consumer.close()

    def _client(self) -> Consumer:
        try:
            return logged_in(Consumer, {**self._conf, "error_cb": self._complain}, self.alias)
        except KafkaException as exc:
            raise ClusterUnreachable(self.alias, self.bootstrap, exc.args[0].str()) from exc

    def _complain(self, error: KafkaError) -> None:
        if classify(error.code()) is Verdict.UNREACHABLE and error.code() != KafkaError._ALL_BROKERS_DOWN:
            self.trouble = error.str()

    def _read(self) -> None:
        ends = self._ends()
        if ends is None:
            return
        self._tell(self._expect, ends)
        self._tell(self._deliver, (), {})
        self._room.acquire()
        # Not OFFSET_END, which would be looked up later, past what was appended meanwhile.
        self._assign({p: OFFSET_BEGINNING if self._from_beginning else end for p, (_, end) in ends.items()})
        positions = {p: first if self._from_beginning else end for p, (first, end) in ends.items()}
        standstill, looked_at = Standstill(LOOK_EVERY), time.monotonic()
        while not self._stopping.is_set():
            if time.monotonic() - looked_at >= standstill.every:
                looked_at = time.monotonic()
                self._go_on(standstill, positions)
            # poll returns with the first record at once; consume(n, timeout) would wait for n of them.
            first = self._consumer.poll(IDLE)
            if first is None:
                continue
            messages = [first, *self._consumer.consume(AT_ONCE, 0)]
            records, reached = self._sort(messages)
            positions.update(reached)
            self._room.acquire()
            self._tell(self._deliver, records, reached)

    def _assign(self, positions: Mapping[int, int]) -> None:
        partitions = [TopicPartition(self.topic, number, at) for number, at in positions.items()]
        self._consumer.unassign()
        self._consumer.assign(partitions)
        self._consumer.resume(partitions)

    def _go_on(self, standstill: Standstill, positions: Mapping[int, int]) -> None:
        """Begin anew, where it stands, what librdkafka no longer fetches, and with another client where this one is not
        answered. Whatever it holds is fetched again."""
        ends: dict[int, int] = {}
        try:
            for number in standstill.unmoved(positions):
                ends[number] = _watermarks(self._consumer, TopicPartition(self.topic, number), QUICK)[1]
        except KafkaException as exc:
            if self._unanswered.again() and self._connect_anew(exc.args[0].str()):
                self._assign(positions)
            return
        self._unanswered.answered()
        if stuck := standstill.look(positions, ends):
            where = ", ".join(f"{self.topic}-{p} at {positions[p]} of {ends[p]}" for p in stuck)
            log.warning(
                "reading anew", extra={"text": f"nothing came of what is there: {where}", "cluster": self.alias}
            )
            self._assign(positions)

    def _connect_anew(self, why: str) -> bool:
        """Whether there is another client now. It has nothing assigned."""
        try:
            fresh = self._client()
        except ClusterUnreachable as exc:
            self.trouble = str(exc)
            return False
        log.debug("connecting anew", extra={"text": f"{self.topic}: no answer ({why})", "cluster": self.alias})
        self._consumer.close()
        self._consumer = fresh
        return True

    def _ends(self) -> dict[int, tuple[int, int]] | None:
        """Where each partition begins and ends now; None when stopped before a broker answered."""
        while not self._stopping.is_set():
            try:
                partitions = self._partitions
                if partitions is None:
                    metadata = self._consumer.list_topics(self.topic, timeout=2.0).topics[self.topic]
                    if metadata.error is not None and not _passes(metadata.error):
                        raise KafkaException(metadata.error)
                    partitions = sorted(metadata.partitions)
                    if not partitions:
                        raise TopicMissing(self.alias, self.topic)
                ends = {p: _watermarks(self._consumer, TopicPartition(self.topic, p)) for p in partitions}
                return ends if self._from_beginning else {p: (end, end) for p, (_, end) in ends.items()}
            except KafkaException as exc:
                error = exc.args[0]
                if not _passes(error):
                    raise
                self._consumer.poll(0)  # lets error_cb say what is wrong on the wire
                if classify(error.code()) is Verdict.UNREACHABLE and self._unanswered.again():
                    self._connect_anew(error.str())
        return None

    def _sort(self, messages: Sequence[Message]) -> tuple[list[Record], dict[int, int]]:
        records: list[Record] = []
        reached: dict[int, int] = {}
        for message in messages:
            error = message.error()
            partition, offset = message.partition() or 0, message.offset() or 0
            if error is None:
                _, timestamp = message.timestamp()
                records.append(Record(self.topic, partition, offset, message.key(), message.value(), timestamp))
                reached[partition] = offset + 1
                self.trouble = ""
            elif error.code() == KafkaError._PARTITION_EOF:
                reached[partition] = max(offset, reached.get(partition, 0))
                self.trouble = ""
            elif not _passes(error):
                raise self._trouble(error, partition)
        return records, reached

    def _trouble(self, error: KafkaError, partition: int) -> ClusterTrouble:
        if error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION):
            return TopicMissing(self.alias, self.topic)
        if classify(error.code()) is Verdict.DENIED:
            return NotPermitted(
                self.alias, "READ", f"topic {self.topic}", self._access.remedy("topic", self.topic, "Read")
            )
        if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            return LogTruncated(self.alias, self.topic, partition, self._positions.get(partition, 0))
        return ClusterUnreachable(self.alias, self.bootstrap, error.str())


def _passes(error: KafkaError) -> bool:
    """Whether librdkafka gets over the error by itself, or it is about the group that we do not use: it looks for its
    coordinator all the same, which needs a permission that we do not."""
    if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
        return True
    if error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID):
        return False
    return classify(error.code()) in (Verdict.UNREACHABLE, Verdict.RETRIABLE)


def _watermarks(consumer: Consumer, partition: TopicPartition, timeout: float = 5.0) -> tuple[int, int]:
    first, end = consumer.get_watermark_offsets(partition, timeout=timeout) or (0, 0)
    return int(first), int(end)
