"""The limit: how fast these brokers hand out, and take in, the very batches that a system has to copy.

Nothing is decoded and nothing is decided: fetch-only reads the source topic to its end, produce-only appends the
batches it found to a topic of the other cluster, in requests that were made ready before the clock starts, and both at
once is what it says.
"""

import struct
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from tools.bench.wire import Connection, fetch_frame, fetched, produce_frame, produced, record_count, whole_batches

CONNECTIONS = 4  # on two cores more gain nothing; each serves its share of the partitions
PARTITION_MAX_BYTES = 4 << 20
FETCH_MAX_BYTES = 48 << 20
REQUEST_BYTES = 1 << 20
IN_FLIGHT = 4  # produce requests a connection has under way

Share = TypeVar("Share")
Content = TypeVar("Content")
OnBatch = Callable[[int, bytes, int, int], None]

Batches = Mapping[int, deque[bytes]]
"""Of each partition its batches, base offset zero, in the order of the log."""

Requests = Sequence[Sequence[bytes]]


def fetch_only(bootstrap: str, topic: str, ends: Sequence[int]) -> float:
    """Seconds that reading every partition from 0 to its end takes. Raises BrokerRefused."""

    def read(share: Mapping[int, int]) -> None:
        _read(bootstrap, topic, share, lambda partition, records, start, end: None)

    return _timed(lambda: _each(read, _shares(dict(enumerate(ends)))))


@dataclass(frozen=True, slots=True)
class LogShape:
    """What a topic's log holds; ``stored`` are the bytes of its batches."""

    batches: int
    stored: int
    records: int


def log_shape(bootstrap: str, topic: str, ends: Sequence[int]) -> LogShape:
    """Read the whole log and count. Raises BrokerRefused."""
    sizes: list[int] = []
    counts: list[int] = []

    def count(partition: int, records: bytes, start: int, end: int) -> None:
        sizes.append(end - start)
        counts.append(record_count(records, start))

    _read(bootstrap, topic, dict(enumerate(ends)), count)
    return LogShape(len(sizes), sum(sizes), sum(counts))


def read_batches(bootstrap: str, topic: str, ends: Sequence[int]) -> Batches:
    """Every batch of the topic, made ready to be appended elsewhere. Raises BrokerRefused."""
    found: dict[int, deque[bytes]] = defaultdict(deque)

    def keep(partition: int, records: bytes, start: int, end: int) -> None:
        found[partition].append(struct.pack(">q", 0) + records[start + 8 : end])

    _read(bootstrap, topic, dict(enumerate(ends)), keep)
    return found


def requests(topic: str, batches: Batches) -> Requests:
    """The produce requests of each connection, serialised.

    Empties ``batches``, so that the bytes lie in memory only once.
    """
    return [_frames(topic, share) for share in _shares(batches)]


def produce_only(bootstrap: str, requests: Requests) -> float:
    """Seconds until the last of the requests was acknowledged by all replicas. Raises BrokerRefused."""

    def write(share: Sequence[bytes]) -> None:
        with Connection(bootstrap) as connection:
            under_way = 0
            for frame in share:
                if under_way == IN_FLIGHT:
                    produced(connection.receive())
                    under_way -= 1
                connection.send(frame)
                under_way += 1
            for _ in range(under_way):
                produced(connection.receive())

    return _timed(lambda: _each(write, requests))


def both_at_once(source: str, topic: str, ends: Sequence[int], target: str, requests: Requests) -> float:
    """Seconds until every partition was read and every request was acknowledged, done side by side: what a copy that
    costs nothing would take on these cores. Raises BrokerRefused."""
    both = (partial(fetch_only, source, topic, ends), partial(produce_only, target, requests))
    return _timed(lambda: _each(lambda act: act(), both))


def _timed(act: Callable[[], None]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _each(act: Callable[[Share], object], shares: Sequence[Share]) -> None:
    with ThreadPoolExecutor(len(shares)) as pool:
        for done in [pool.submit(act, share) for share in shares]:
            done.result()


def _shares(by_partition: Mapping[int, Content]) -> list[dict[int, Content]]:
    shares: list[dict[int, Content]] = [{} for _ in range(min(CONNECTIONS, len(by_partition)))]
    for partition, content in by_partition.items():
        shares[partition % len(shares)][partition] = content
    return shares


def _read(bootstrap: str, topic: str, ends: Mapping[int, int], on_batch: OnBatch) -> None:
    positions = dict.fromkeys(ends, 0)
    with Connection(bootstrap) as connection:
        while positions:
            connection.send(
                fetch_frame(topic, positions, partition_max_bytes=PARTITION_MAX_BYTES, max_bytes=FETCH_MAX_BYTES)
            )
            for partition, records in fetched(connection.receive()):
                for start, end, after in whole_batches(records):
                    on_batch(partition, records, start, end)
                    positions[partition] = after
            # The fetched partitions go to the back, so that the response limit does not starve the last ones.
            positions = {partition: at for partition, at in reversed(positions.items()) if at < ends[partition]}


def _frames(topic: str, share: Batches) -> list[bytes]:
    """Requests of about `REQUEST_BYTES`, one batch of each partition at most, the partitions advancing side by side."""
    queues = dict(share)
    frames: list[bytes] = []
    while queues:
        request: list[tuple[int, bytes]] = []
        size = 0
        for partition, queue in list(queues.items()):
            if request and size + len(queue[0]) > REQUEST_BYTES:
                continue
            batch = queue.popleft()
            request.append((partition, batch))
            size += len(batch)
            del queues[partition]
            if queue:
                queues[partition] = queue  # at the back: whoever was left out comes first in the next request
        frames.append(produce_frame(topic, request))
    return frames
