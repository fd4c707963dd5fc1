"""A follower of a topic: a `TopicReader` on its own thread, which hands records to the event loop.

Each follower gets every record of its partitions, in order per partition. It reads from the beginning to the end that
it took first (then `caught_up` returns), and goes on.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import Any, Self

from confluent_kafka import KafkaException

from lockstep_config import FlowSettings
from lockstep_config.credentials.permissions import NO_ACCESS, Access, needed_access
from lockstep_config.flow import client_settings
from lockstep_kafka.common.asyncio_util import retrieve_error
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable
from lockstep_kafka.topics.topic_reader import Record, TopicReader

NO_STARTS: Mapping[int, int] = MappingProxyType({})

AHEAD = 4
"""Batches that the thread may be ahead of the loop. It bounds memory during the replay of a long topic."""


def target_follower(
    settings: FlowSettings,
    client: str,
    topic: str,
    on_records: Callable[[Sequence[Record]], None],
    *,
    partitions: Iterable[int] | None = None,
    from_beginning: bool = True,
    starts: Mapping[int, int] = NO_STARTS,
) -> "TopicFollower":
    """Return a follower of a topic on the flow's target, for the client `client`."""
    alias = settings.flow.target
    return TopicFollower(
        client_settings.target_consumer(settings, client),
        topic,
        on_records=on_records,
        partitions=partitions,
        from_beginning=from_beginning,
        starts=starts,
        alias=alias,
        access=needed_access(settings, alias),
    )


class TopicFollower:
    """A follower of a topic, from `start` to `stop`, or within `async with`.

    Args:
        conf: librdkafka's settings of the cluster. A group id in them is not joined.
        topic: The name of the topic.
        on_records: Called in the event loop with one or more records at a time. Every error that it raises ends the
            follower, and is raised by `caught_up`, `permitted` and `failed`.
        partitions: The partitions to read. None means all partitions that exist at the start.
        from_beginning: False to start at the end: records that are appended after `caught_up` has returned are handed
            over.
        starts: Offsets to begin at in place of the first one, by partition.
        alias: The alias of the cluster, for errors.
        access: The rights that we need on the cluster. Errors name them.
    """

    def __init__(
        self,
        conf: Mapping[str, str],
        topic: str,
        *,
        on_records: Callable[[Sequence[Record]], None],
        partitions: Iterable[int] | None = None,
        from_beginning: bool = True,
        starts: Mapping[int, int] = NO_STARTS,
        alias: str = "",
        access: Access = NO_ACCESS,
    ) -> None:
        self._topic = topic
        self._alias = alias
        self._bootstrap = conf.get("bootstrap.servers", "")
        self._on_records = on_records
        self._partitions = None if partitions is None else sorted(set(partitions))
        self._from_beginning = from_beginning
        self._starts = starts
        self._stopping = threading.Event()
        self._reader = TopicReader(conf, topic, alias, access, self._stopping)
        self._room = threading.Semaphore(AHEAD)
        self.positions: dict[int, int] = {}
        """The offset after the last record handed over, by partition."""
        self._missing: dict[int, int] = {}
        self._unheard: set[int] = set()

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.stop()

    async def replay(self, *, silent_s: float | None = None) -> None:
        """Hand over every record that is in the topic now, then end.

        It raises the errors of `caught_up`.
        """
        self.start()
        try:
            await self.caught_up(silent_s=silent_s)
        finally:
            self.end()

    def start(self) -> None:
        """Begin reading.

        Call it within the event loop that is to receive the records.
        """
        self._loop = asyncio.get_running_loop()
        self._caught_up: asyncio.Future[None] = self._loop.create_future()
        self._heard: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        # A future may have no waiting task. Another future gives the same error to its task.
        for future in (self._caught_up, self._heard, self._ended):
            future.add_done_callback(retrieve_error)
        self._thread = threading.Thread(target=self._run, name=f"follow {self._topic}", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """End reading.

        No record is handed over afterwards. It takes up to half a second, and more while the broker is away.
        """
        self.end()
        await asyncio.to_thread(self._thread.join, 5.0)

    def end(self) -> None:
        """End reading as `stop` does, without waiting for the thread to end."""
        self._stopping.set()
        self._room.release()

    async def caught_up(self, *, silent_s: float | None = None) -> None:
        """Wait until every record that existed at the start has been handed over.

        It raises the errors of `failed` too.

        Args:
            silent_s: Seconds without a record after which to raise. None waits for ever.

        Raises:
            ClusterUnreachable: No record came for `silent_s` seconds.
        """
        while True:
            before = dict(self.positions)
            done, _ = await asyncio.wait({self._caught_up}, timeout=silent_s)
            if done:
                return self._caught_up.result()
            if self.positions == before:
                reason = self._reader.trouble or self._reader.ends_trouble or "no record came"
                raise ClusterUnreachable(
                    self._alias, self._bootstrap, f"topic {self._topic} is not read within {silent_s:g} s: {reason}"
                )

    async def permitted(self) -> None:
        """Wait until the broker has answered a fetch of each partition, even if it only returned the end.

        That takes the broker up to half a second. An empty partition is `caught_up` before it is known whether it may
        be read. The errors are those of `failed`.
        """
        await asyncio.shield(self._heard)

    async def failed(self) -> None:
        """Wait until the follower was stopped, or raise what ended it.

        It also raises the errors of `on_records`.

        Raises:
            LogTruncated: The log no longer holds the offset that was to be read next.
            TopicMissing: The topic does not exist.
            NotPermitted: We may not read the topic.
        """
        await asyncio.shield(self._ended)

    @property
    def trouble(self) -> str:
        """The error for which the cluster cannot be reached now, or ""."""
        return self._reader.trouble

    def trouble_over(self) -> None:
        """Clear `trouble`, because other requests show that the cluster answers.

        An idle topic would not show it.
        """
        self._reader.trouble = ""

    # -- on the event loop ---------------------------------------------------------------------------------------------

    def _deliver(self, records: Sequence[Record], ends: Mapping[int, int]) -> None:
        self._room.release()
        if self._stopping.is_set() or self._ended.done():
            return
        try:
            if records:
                self._on_records(records)
        except Exception as exc:  # noqa: BLE001 - any error ends the follower and is raised by `failed`
            self._stopping.set()
            self._end(exc)
            return
        self.positions.update(ends)
        self._missing = {p: end for p, end in self._missing.items() if self.positions.get(p, -1) < end}
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

    def _call_loop(self, call: Callable[..., None], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:  # the loop is closed: no task waits for it
            self._stopping.set()

    # -- on the thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._reader.open()
        except ClusterUnreachable as exc:
            self._call_loop(self._end, exc)
            return
        try:
            self._read()
        except ClusterError as exc:
            self._call_loop(self._end, exc)
        except KafkaException as exc:
            self._call_loop(self._end, self._reader.as_cluster_error(exc.args[0]))
        except Exception as exc:  # noqa: BLE001 - a mistake in Lockstep: raised by `failed`
            self._call_loop(self._end, exc)
        else:
            self._call_loop(self._end, None)
        finally:
            self._reader.close()

    def _read(self) -> None:
        ends = self._reader.ends(self._partitions)
        if ends is None:
            return
        if not self._from_beginning:
            ends = {p: (end, end) for p, (_, end) in ends.items()}
        ends = {p: (min(max(first, self._starts.get(p, first)), end), end) for p, (first, end) in ends.items()}
        self._call_loop(self._expect, ends)
        self._call_loop(self._deliver, (), {})
        self._room.acquire()
        # Never begin at OFFSET_END: librdkafka looks it up later, behind records that were appended meanwhile.
        self._reader.begin(
            {p: first for p, (first, _) in ends.items()}, at_the_beginning=self._from_beginning and not self._starts
        )
        handed_over: dict[int, int] = {}
        while not self._stopping.is_set():
            came = self._reader.read()
            # librdkafka reports the end of a partition again and again. The loop need not wake for that.
            if came is None or (not came[0] and came[1].items() <= handed_over.items()):
                continue
            handed_over.update(came[1])
            self._room.acquire()
            self._call_loop(self._deliver, *came)
