"""The fetch and comparison of both logs of a partition, in step."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import NamedTuple

from lockstep_data_plane.fetch.fetch_schedule import TokenBucket
from lockstep_data_plane.log_reader import log_between
from lockstep_data_plane.record_batch.classify import AbortedTransactions
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_data_plane.record_batch.rebuild import next_offset
from lockstep_data_plane.verify.agreement_search import SOURCE, TARGET, Agreement, AgreementSearch
from lockstep_data_plane.verify.partition_verifier import PartitionVerifier, SourceBatch
from lockstep_data_plane.verify.transformed_batch import TransformedBatch
from lockstep_kafka.wire.cluster import ClusterClient
from lockstep_kafka.wire.connection_errors import BrokerUnreachable
from lockstep_state.offsets import TopicPartition

Fetched = tuple[list[Batch], AbortedTransactions]
Transform = Callable[[Batch], Awaitable[TransformedBatch]]


class LogStretch(NamedTuple):
    """A partition of a cluster, and the offsets to read of it, from `begin` up to `end` without `end` itself."""

    cluster: ClusterClient
    tp: TopicPartition
    begin: int
    end: int
    isolation: str = "read_uncommitted"

    async def read(self) -> AsyncIterator[Fetched]:
        """Yield batches as `log_between` does.

        Raises:
            KafkaProtocolError: As for `log_between`.
            BrokerUnreachable: As for `log_between`, or the log is not stable up to `end`. The missing records would
                otherwise count as a difference.
        """
        last_batch: Batch | None = None
        async for batches, aborted in log_between(self.cluster, self.tp, self.begin, self.end, self.isolation):
            yield batches, aborted
            last_batch = batches[-1]
        if self.isolation == "read_committed":
            stable = self.begin if last_batch is None else next_offset(last_batch)
            if stable < self.end:
                raise BrokerUnreachable(
                    f"cluster {self.cluster.alias}: {self.tp[0]}-{self.tp[1]} is stable up to {stable}, not to "
                    f"{self.end}: a transaction is open, or replicas lag"
                )


class ReadLimit:
    """The limit of bytes a second that one slot reads of both clusters together; None for no limit."""

    def __init__(self, bytes_per_s: int | None) -> None:
        self._bytes_per_s: int | None = None
        self._bucket: TokenBucket | None = None
        self.change(bytes_per_s)

    def change(self, bytes_per_s: int | None) -> None:
        """Set another limit. If it is the same one, the bytes read so far still count."""
        if bytes_per_s != self._bytes_per_s:
            self._bytes_per_s = bytes_per_s
            self._bucket = TokenBucket(bytes_per_s) if bytes_per_s else None

    async def count(self, size: int) -> None:
        """Count bytes that were read, and wait as long as the limit wants."""
        if self._bucket is not None:
            self._bucket.consume(size, time.monotonic())
            while (wait_s := self._bucket.wait_s(time.monotonic())) > 0:
                await asyncio.sleep(wait_s)


async def compare_logs(
    verifier: PartitionVerifier,
    source: LogStretch,
    target: LogStretch,
    limit: ReadLimit,
    goes_on: Callable[[], bool],
    learn: Callable[[Sequence[Batch]], Awaitable[None]] | None = None,
    transform: Transform | None = None,
) -> None:
    """Read both logs to their ends and compare them with `verifier`.

    Each log is read only as far as the comparison needs it, so neither is far ahead in memory. If both differ for
    long, the next place where they agree is searched. Both are then read again from where they differ. After an error
    the verifier has what was compared until then.

    Args:
        verifier: Compares the batches and keeps the findings.
        source: The offsets to read of the source.
        target: The offsets to read of the target.
        limit: The limit of bytes a second.
        goes_on: Asked after each comparison. The reading ends if it returns False.
        learn: Gets the batches of the source before the verifier does.
        transform: Returns what the transform of the topic leaves of a batch of the source. None: there is no transform.

    Raises:
        KafkaProtocolError: A broker answers with an error.
        BrokerUnreachable: A leader cannot be reached, or a log does not give its records.
    """
    while True:
        await _compare_until_lost(verifier, source, target, limit, goes_on, learn, transform)
        if not verifier.is_lost:
            return
        source, target = (
            log._replace(begin=begin) for log, begin in zip((source, target), verifier.position, strict=True)
        )
        verifier.go_on(await _find_agreement(verifier, source, target, limit, transform))


async def _compare_until_lost(
    verifier: PartitionVerifier,
    source: LogStretch,
    target: LogStretch,
    limit: ReadLimit,
    goes_on: Callable[[], bool],
    learn: Callable[[Sequence[Batch]], Awaitable[None]] | None,
    transform: Transform | None,
) -> None:
    reading = {source: source.read(), target: target.read()}
    while reading:
        needed = [log for log in reading if (verifier.needs_source if log is source else verifier.needs_target)]
        logs = needed or list(reading)  # none is needed where the log that has ended is the one that waits
        size = 0
        for log, answer in zip(logs, await asyncio.gather(*(anext(reading[log], None) for log in logs)), strict=True):
            if answer is None:
                del reading[log]
                if log is source:
                    verifier.end_source()
                else:
                    verifier.end_target()
                continue
            batches, aborted = answer
            size += sum(len(batch.data) for batch in batches)
            if log is source:
                if learn is not None:
                    await learn(batches)
                kept = verifier.source_batches(batches, aborted)
                verifier.add_source(await _transformed(kept, transform))
            else:
                verifier.add_target(batches, aborted)
        verifier.compare()
        if (source not in reading and verifier.lacks_source) or (target not in reading and verifier.lacks_target):
            verifier.drain()
        if verifier.is_lost or not goes_on():
            return
        await limit.count(size)
    verifier.finish()


async def _transformed(batches: Sequence[Batch], transform: Transform | None) -> Sequence[SourceBatch]:
    """Return what the transform leaves of batches. One that cannot be read stays, and the verifier reports it."""
    if transform is None:
        return batches
    left: list[SourceBatch] = []
    for batch in batches:
        try:
            left.append(await transform(batch))
        except ValueError:
            left.append(batch)
    return left


async def _find_agreement(
    verifier: PartitionVerifier,
    source: LogStretch,
    target: LogStretch,
    limit: ReadLimit,
    transform: Transform | None,
) -> Agreement:
    """Return where both logs agree again after they differed for long, or their ends if they do not.

    Both logs are read on from the verifier's position, each time the one of which fewer records were read. Raises as
    `compare_logs`.
    """
    search, reading = AgreementSearch(), [source.read(), target.read()]
    ended = [False, False]
    while not all(ended):
        behind = SOURCE if search.read[SOURCE] < search.read[TARGET] else TARGET
        log = 1 - behind if ended[behind] else behind
        answer = await anext(reading[log], None)
        if answer is None:
            ended[log] = True
            continue
        batches, aborted = answer
        if log == SOURCE:
            searched = await _transformed(verifier.searched_batches(batches, aborted), transform)
            agreement = verifier.search_source(search, searched)
        else:
            agreement = verifier.search_target(search, batches, aborted)
        if agreement is not None:
            return agreement
        await limit.count(sum(len(batch.data) for batch in answer[0]))
    return search.find_at_end() or Agreement(source.end, target.end)
