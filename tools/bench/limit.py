"""The limit: how fast these brokers hand out, and take in, the very batches that a system has to copy.

Nothing is decoded and nothing is decided: fetch-only reads the source topic to its end, produce-only appends the
batches it found to a topic of the other cluster, in requests that were made ready before the clock starts, and both at
once is what it says.
"""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from lockstep_data_plane.record_batch.layout import Batch, scan
from tests.support.wire import Connection
from tools.bench.wire import fetch_frame, fetched, produce_frame, produced

CONNECTIONS = 4  # on two cores more gain nothing; each serves its share of the partitions
PARTITION_MAX_BYTES = 4 << 20
FETCH_MAX_BYTES = 48 << 20
REQUEST_BYTES = 1 << 20
IN_FLIGHT = 4  # produce requests a connection has under way
NO_OFFSET = bytes(8)

Share = TypeVar("Share")
Content = TypeVar("Content")

Batches = Mapping[int, deque[bytes]]
"""Of each partition its batches, base offset zero, in the order of the log."""

Requests = Sequence[Sequence[bytes]]


@dataclass(frozen=True, slots=True)
class LogShape:
    """What a topic's log holds; ``stored`` are the bytes of its batches."""

    batches: int
    stored: int
    records: int


def log_shape(bootstrap: str, topic: str, ends: Sequence[int]) -> LogShape:
    """Read the whole log and count. Raises BrokerRefused."""
    sizes = [(len(batch.data), batch.record_count) for _, batch in _batches(bootstrap, topic, dict(enumerate(ends)))]
    return LogShape(len(sizes), sum(size for size, _ in sizes), sum(count for _, count in sizes))


def fetch_only(bootstrap: str, topic: str, ends: Sequence[int]) -> float:
    """Return the seconds that reading every partition from 0 to its end takes. Raises BrokerRefused."""
    read = partial(_batches, bootstrap, topic)
    return _timed(lambda share: deque(read(share), maxlen=0), _shares(dict(enumerate(ends))))


def read_batches(bootstrap: str, topic: str, ends: Sequence[int]) -> Batches:
    """Return every batch of the topic, made ready to be appended elsewhere. Raises BrokerRefused."""
    batches: dict[int, deque[bytes]] = defaultdict(deque)
    for partition, batch in _batches(bootstrap, topic, dict(enumerate(ends))):
        batches[partition].append(NO_OFFSET + batch.data[8:])
    return batches


def requests(topic: str, batches: Batches) -> Requests:
    """Return the produce requests of each connection, serialised.

    Empties ``batches``, so that the bytes lie in memory only once.
    """
    return [list(_frames(topic, share)) for share in _shares(batches)]


def produce_only(bootstrap: str, requests: Requests) -> float:
    """Return the seconds until the last of the requests was acknowledged by all replicas. Raises BrokerRefused."""

    def write(share: Sequence[bytes]) -> None:
        with Connection(bootstrap) as connection:
            for number, frame in enumerate(share):
                if number >= IN_FLIGHT:
                    produced(connection.receive())
                connection.send(frame)
            for _ in share[-IN_FLIGHT:]:
                produced(connection.receive())

    return _timed(write, requests)


def both_at_once(source: str, topic: str, ends: Sequence[int], target: str, requests: Requests) -> float:
    """Return the seconds until every partition was read and every request was acknowledged, side by side: what a copy
    that costs nothing would take on these cores. Raises BrokerRefused."""
    both = (partial(fetch_only, source, topic, ends), partial(produce_only, target, requests))
    return _timed(lambda act: act(), both)


def _timed(act: Callable[[Share], object], shares: Sequence[Share]) -> float:
    """Return the seconds until all shares are done, each on a thread of its own."""
    began = time.perf_counter()
    with ThreadPoolExecutor(len(shares)) as pool:
        for done in [pool.submit(act, share) for share in shares]:
            done.result()
    return time.perf_counter() - began


def _shares(by_partition: Mapping[int, Content]) -> list[dict[int, Content]]:
    shares: list[dict[int, Content]] = [{} for _ in range(min(CONNECTIONS, len(by_partition)))]
    for partition, content in by_partition.items():
        shares[partition % len(shares)][partition] = content
    return shares


def _batches(bootstrap: str, topic: str, ends: Mapping[int, int]) -> Iterator[tuple[int, Batch]]:
    """Yield each batch up to these ends, with its partition."""
    positions = dict.fromkeys(ends, 0)
    sizes = {"partition_max_bytes": PARTITION_MAX_BYTES, "max_bytes": FETCH_MAX_BYTES}
    with Connection(bootstrap) as connection:
        while positions:
            connection.send(fetch_frame(topic, positions, **sizes))
            for partition, records in fetched(connection.receive()):
                for batch in scan(records):
                    yield partition, batch
                    positions[partition] = batch.last_offset + 1
            # The fetched partitions go to the back, so that the response limit does not starve the last ones.
            positions = {number: start for number, start in reversed(positions.items()) if start < ends[number]}


def _frames(topic: str, share: Batches) -> Iterator[bytes]:
    """Yield requests of about `REQUEST_BYTES`, with one batch of a partition at most; all partitions advance alike."""
    queues = dict(share)
    while queues:
        request: list[tuple[int, bytes]] = []
        size = 0
        for partition, queue in list(queues.items()):
            if request and size + len(queue[0]) > REQUEST_BYTES:
                continue
            request.append((partition, queue.popleft()))
            size += len(request[-1][1])
            del queues[partition]
            if queue:
                queues[partition] = queue  # at the back: whoever was left out comes first in the next request
        yield produce_frame(topic, request)
