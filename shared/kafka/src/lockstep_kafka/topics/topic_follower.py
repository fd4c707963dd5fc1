"""Replay a topic and go on following it: a `TopicReader` on a thread of its own that hands over to the event loop.

Each follower sees every record of the partitions it was given, in order per partition. It reads from the beginning to
the end taken first (then `caught_up` is set) and goes on.
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
from lockstep_kafka.common.asyncio_util import error_retrieved
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable
from lockstep_kafka.topics.topic_reader import Record, TopicReader

NO_STARTS: Mapping[int, int] = MappingProxyType({})

AHEAD = 4
"""Batches the thread may be ahead of the loop; bounds memory during the replay of a long topic."""


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
    """Of a topic of the flow's target, which sees the follower as the client `client`."""
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
    """Lives from `start` to `stop`, or within `async with`.

    `conf` are librdkafka settings of the cluster (a group id in it is not joined), `access` what we need there.
    `partitions` None: all there are at the start. `on_records` is called in the event loop with one or more records at
    a time. Every error that it raises ends the follower, and is raised by `caught_up`, `failed` and on exit.
    `from_beginning` False starts at the end: what is appended after `caught_up` has returned is handed over.
    `starts` are offsets to begin at in place of the first one, by partition.
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
        """Per partition, the offset after the last record handed over."""
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
        """Hand over every record that is in the topic now, then end. Raises as `caught_up`."""
        self.start()
        try:
            await self.caught_up(silent_s=silent_s)
        finally:
            self.end()

    def start(self) -> None:
        """Begin reading. Call within the event loop that is to receive the records."""
        self._loop = asyncio.get_running_loop()
        self._caught_up: asyncio.Future[None] = self._loop.create_future()
        self._heard: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        # Each may go unawaited; its error is then for the task that awaits another one.
        for future in (self._caught_up, self._heard, self._ended):
            future.add_done_callback(error_retrieved)
        self._thread = threading.Thread(target=self._run, name=f"follow {self._topic}", daemon=True)
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

    async def caught_up(self, *, silent_s: float | None = None) -> None:
        """Return once every record that was there at the start has been handed over. Raises what `failed` raises, and
        ClusterUnreachable if nothing more comes for `silent_s` seconds. Without them it waits for ever.
        """
        while True:
            before = dict(self.positions)
            done, _ = await asyncio.wait({self._caught_up}, timeout=silent_s)
            if done:
                return self._caught_up.result()
            if self.positions == before:
                why = self._reader.trouble or self._reader.ends_trouble or "no record came"
                raise ClusterUnreachable(
                    self._alias, self._bootstrap, f"topic {self._topic} is not read within {silent_s:g} s: {why}"
                )

    async def permitted(self) -> None:
        """Return once the broker has handed out something of each partition, if only its end, which takes it up to half
        a second. An empty one is `caught_up` before it is known whether it may be read. Raises what `failed` raises.
        """
        await asyncio.shield(self._heard)

    async def failed(self) -> None:
        """Return when the follower was stopped. Raises LogTruncated, TopicMissing or NotPermitted when reading cannot
        go on,
        and what `on_records` raised.
        """
        await asyncio.shield(self._ended)

    @property
    def trouble(self) -> str:
        """Why the cluster cannot be reached just now; "" while it can."""
        return self._reader.trouble

    def trouble_over(self) -> None:
        """The cluster answers: others have asked it. Nothing of the topic need come for that."""
        self._reader.trouble = ""

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
        except Exception as exc:  # noqa: BLE001 - a mistake of ours: raised by `failed`, not lost with the thread
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
        # Never at OFFSET_END, which would be looked up later, past what was appended meanwhile.
        self._reader.begin(
            {p: first for p, (first, _) in ends.items()}, at_the_beginning=self._from_beginning and not self._starts
        )
        said: dict[int, int] = {}
        while not self._stopping.is_set():
            came = self._reader.read()
            # librdkafka says each time anew that it is at the end: the loop need not wake for that.
            if came is None or (not came[0] and came[1].items() <= said.items()):
                continue
            said.update(came[1])
            self._room.acquire()
            self._call_loop(self._deliver, *came)
