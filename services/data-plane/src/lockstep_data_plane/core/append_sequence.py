"""A partition's chain of appends: one producer id, one epoch, sequences without a gap.

See `architecture.md` §5, "An append is a compare-and-swap". The broker takes a batch only if its sequence follows our
last one in that partition. So the next append must know the last one. An append sequence numbers outgoing batches, and
interprets each answer. It keeps as many batches unanswered as its connection allows. After a failure nothing more is
sent until every answer has come. Then the target's log is read (`target_tail.py`), and a new append sequence begins
where the log ends. The log resolves an unknown outcome; sending again never does (`kafka-wire.md` §1, §3).

With `IdentityRouting`, every batch goes into the partition of the same number, so a partition has one append sequence.
With `KeyedRouting` (`keyed_routing.py`) it has one for each partition of the target.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lockstep_data_plane.core.quarantine_entry import RefusedRecords
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.record_batch.classify import NO_LIMIT, TargetLimits
from lockstep_data_plane.record_batch.coalesce import next_outgoing
from lockstep_data_plane.record_batch.layout import (
    MERGED_BYTES,
    SMALL_BYTES,
    Batch,
    OutgoingBatch,
    StampedBatch,
    add_sequence,
    as_outgoing,
    stamp,
)
from lockstep_data_plane.record_batch.rebuild import rebuild
from lockstep_state.rows.state_rows import PartitionProgress

Skips = Sequence[tuple[int, int]]
"""Ranges of the source's offsets that are quarantined and passed over: the first and the last one of each."""

MERGES_NOTHING = TargetLimits(max_bytes=0)

WINDOW = 5
"""Unanswered batches of a partition at most, for near brokers and wherever more would only wait."""

FAR_S = 0.010
"""Seconds of round trip from which on a broker is far."""

FAR_WINDOW = 100
"""Unanswered batches of a partition at most on a connection to a far broker."""

LONG_S = 5.0
"""Seconds that an answer may take before more in flight would make the connection look lost."""

SLOT_BYTES_PER_S = 100_000_000
"""Bytes a second that the limits of what is in flight allow for: more than one slot copies, so that they never slow it
down. The bytes in flight must cover the round trip. A connection that asks for a megabyte and waits 80 ms for each
carries 12 MB a second on any line. For near brokers the settings hold exactly.
"""

GATHERED, GATHERED_BYTES = 16, 16 * 1024
"""The largest number of small acknowledged batches that are counted together, and the size up to which a batch is
small. Counting each one alone would cost as much as all other work.
"""


@dataclass(slots=True)
class InFlightBatch:
    """An outgoing batch that was sent.

    `base_offset` is its downstream offset once the target has acknowledged it. `acked_ms` is the time of that answer if
    the batch is counted later.
    """

    outgoing: OutgoingBatch
    sequence: int
    data: StampedBatch
    base_offset: int = -1
    acked_ms: int = 0


class Ack(NamedTuple):
    """An outgoing batch that is durable on the target.

    `downstream` is the offset of its first record, and `size` its bytes. `foreign` is the number of records of other
    writers between our last record and this batch. `at_ms` is the time of the target's answer; 0: now.
    """

    outgoing: OutgoingBatch
    downstream: int
    size: int
    foreign: int = 0
    at_ms: int = 0


def window_size(round_trip_s: float, under_way: int, duration_s: float) -> int:
    """Return how many batches of a partition may be unanswered on a producing connection.

    Producers that send again keep to the five batches that a broker remembers of them. Here nothing is sent again
    (decision 0005), and a broker takes any number of batches whose sequences follow each other. So a far broker gets as
    many as cover the round trip (decision 0041).

    Args:
        round_trip_s: The round trip of the connection.
        under_way: The bytes in flight on it.
        duration_s: The seconds that its last answer took.
    """
    far = round_trip_s >= FAR_S and duration_s < LONG_S and under_way < SLOT_BYTES_PER_S * round_trip_s
    return FAR_WINDOW if far else WINDOW


class AppendSequence:
    """The appends of one partition in one epoch. No I/O, no clock."""

    def __init__(
        self,
        producer_id: int,
        epoch: int,
        sequence: int,
        downstream: int,
        others: Iterable[tuple[int, int]] = (),
        *,
        transactional: bool = False,
        read_back: bool = False,
    ) -> None:
        """Begin behind our last record in the target's log.

        Args:
            producer_id: The partition's own producer id.
            epoch: The producer epoch of the chain.
            sequence: The sequence of our last record in the target's log; -1: there is none.
            downstream: The offset of that record. Without one it is the log end minus 1, or -1 where that is not known.
            others: As `PartitionProgress.others`.
            transactional: Batches are stamped as parts of a transaction.
            read_back: As `PartitionProgress.read_back`: batches carry no producer id, and one at a time is in flight.
        """
        self.producer_id = producer_id
        self._sequences = {producer_id: sequence, **dict(others)}
        self._current = producer_id
        self.epoch = epoch
        self.downstream = downstream
        self._transactional = transactional
        self._read_back = read_back
        self._next = add_sequence(sequence, 1)
        self._opened = False
        self._waiting: deque[OutgoingBatch] = deque()
        self._in_flight: deque[InFlightBatch] = deque()
        self._acked = 0
        """The number of batches at the front of `_in_flight` that are acknowledged and not counted yet."""
        self.broken = False
        self._bytes_held = 0

    @property
    def sequence(self) -> int:
        """Return the sequence of the last record acknowledged under the partition's own producer id."""
        return self._sequences[self.producer_id]

    @property
    def others(self) -> tuple[tuple[int, int], ...]:
        """Return the ends under other producer ids, as `PartitionProgress.others`."""
        if len(self._sequences) == 1:
            return ()
        return tuple(sorted((p, s) for p, s in self._sequences.items() if p != self.producer_id))

    def enqueue(self, outgoing: OutgoingBatch, producer_id: int = -1) -> None:
        """Queue an outgoing batch behind all others, under this producer id of ours; -1: the partition's own."""
        outgoing.producer_id = self.producer_id if producer_id < 0 else producer_id
        self._waiting.append(outgoing)
        self._bytes_held += len(outgoing.data)

    @property
    def bytes_held(self) -> int:
        """Return the bytes of the batches that wait or are in flight."""
        return self._bytes_held

    @property
    def records_held(self) -> int:
        """Return the number of records that wait or are in flight."""
        return sum(outgoing.count for outgoing in self._waiting) + sum(sent.outgoing.count for sent in self._in_flight)

    @property
    def sendable(self) -> bool:
        """Return whether a batch waits and `launch` may be called now with a window of one."""
        return self.may_launch(1)

    def may_launch(self, window: int, room: int = NO_LIMIT) -> bool:
        """Return whether `launch` may be called now.

        One batch goes alone until the target has shown that it knows the producer id. Without a producer id one batch
        always goes alone. Brokers keep the order of one producer id only, so another id waits until no batch is in
        flight (`kafka-wire.md` §1).

        Args:
            window: The largest number of batches without an answer.
            room: The largest size of the next batch, in bytes.
        """
        if not self._waiting or self.broken:
            return False
        if room < NO_LIMIT and max(len(self._waiting[0].data), MERGED_BYTES) > room:
            return False
        if not self._in_flight:
            return True
        in_flight = len(self._in_flight) - self._acked
        return (
            self._opened
            and not self._read_back
            and in_flight < window
            and self._waiting[0].producer_id == self._current
        )

    def launch(self, limits: TargetLimits = MERGES_NOTHING) -> InFlightBatch:
        """Stamp the next outgoing batch, or several small ones merged into one that the target takes.

        The caller sends it at once, on the partition's one connection.
        """
        first = self._waiting[0]
        if first.producer_id != self._current:
            self._current = first.producer_id
            self._next = add_sequence(self._sequences.get(self._current, -1), 1)
            self._opened = False
        if first.batches == 1 and len(first.data) > SMALL_BYTES:  # not worth merging
            outgoing = self._waiting.popleft()
        else:
            outgoing, size = next_outgoing(self._waiting, limits)
            self._bytes_held += len(outgoing.data) - size
        stamped = (-1, -1, -1) if self._read_back else (self._current, self.epoch, self._next)
        data = stamp(outgoing.data, *stamped, transactional=self._transactional)
        sent = InFlightBatch(outgoing, self._next, data)
        self._next = add_sequence(self._next, outgoing.count)
        self._in_flight.append(sent)
        return sent

    def defer_count(self, sent: InFlightBatch, base_offset: int, now_ms: int) -> bool:
        """Note an acknowledged batch that may be counted later, and return whether it may.

        That is so for a small batch while others are unanswered: their answer, or a failure, follows in any case.
        """
        may_wait = (
            self._opened
            and not self.broken
            and self._acked < GATHERED - 1
            and self._acked + 1 < len(self._in_flight)
            and self._in_flight[self._acked] is sent
            and len(sent.outgoing.data) <= GATHERED_BYTES
        )
        if may_wait:
            sent.base_offset, sent.acked_ms = base_offset, now_ms
            self._acked += 1
        return may_wait

    def is_misplaced(self, base_offset: int) -> bool:
        """Return whether an answer shows that the target's log differs from what we know, in a log that is read back.

        Then another writer has appended, or the log was truncated.
        """
        return self._read_back and base_offset != self.downstream + 1

    def on_ack(self, sent: InFlightBatch, base_offset: int) -> list[Ack]:
        """Note that the target acknowledged a batch, and return the batches that now count as acknowledged, in order.

        Batches behind an unanswered one wait for it. After a failure the result is empty, because the log is about to
        be read.
        """
        if self.broken:
            self._remove(sent)
            return []
        sent.base_offset = base_offset
        return self.count_acked()

    def count_acked(self) -> list[Ack]:
        """Return the acknowledged batches that were not returned yet, in order, up to the first unanswered one."""
        acks: list[Ack] = []
        while self._in_flight and self._in_flight[0].base_offset >= 0:
            acks.append(self._ack(self._in_flight.popleft()))
        if acks:
            self._acked = 0
            self._opened = True
        return acks

    def _ack(self, done: InFlightBatch) -> Ack:
        outgoing, begin = done.outgoing, done.base_offset
        size, last = len(outgoing.data), begin + outgoing.count - 1
        foreign = begin - self.downstream - 1
        self._sequences[self._current] = add_sequence(done.sequence, outgoing.count - 1)
        if last > self.downstream:
            self.downstream = last
        self._bytes_held -= size
        return Ack(outgoing, begin, size, foreign if foreign > 0 else 0, done.acked_ms)

    def on_failure(self, sent: InFlightBatch) -> None:
        """Note that a batch in flight was refused, or that its outcome is unknown.

        Nothing more is sent on this sequence. Answers that waited for the answer of this batch are forgotten.
        """
        self._remove(sent)
        self.break_off()

    def break_off(self) -> None:
        """Send nothing more, and forget the answers that waited for others."""
        self.broken = True
        for answered in [sent for sent in self._in_flight if sent.base_offset >= 0]:
            self._remove(answered)

    def _remove(self, sent: InFlightBatch) -> None:
        if sent in self._in_flight:
            self._in_flight.remove(sent)
            self._bytes_held -= sent.outgoing.size

    def skip_marker(self) -> None:
        """Note that the marker that ends a transaction is behind our last record: it takes one offset."""
        self.downstream += 1

    def reset(self) -> None:
        """Drop the batches that have not been sent; the next run fetches them again."""
        self._bytes_held -= sum(outgoing.size for outgoing in self._waiting)
        self._waiting.clear()

    def extend_last(self, covers: int, leader_epoch: int) -> bool:
        """Let the newest unacknowledged batch cover the offsets that were passed over behind it.

        Returns:
            False if there is no such batch. Then these offsets are decided already.
        """
        last = self._waiting[-1] if self._waiting else self._in_flight[-1].outgoing if self._in_flight else None
        if last is None:
            return False
        if covers > last.covers:
            last.covers, last.leader_epoch = covers, leader_epoch
        return True

    @property
    def unanswered(self) -> int:
        return len(self._in_flight)

    @property
    def idle(self) -> bool:
        """Return whether nothing waits and nothing is in flight."""
        return not self._waiting and not self._in_flight


class IdentityRouting(AppendSequence):
    """The routing of every batch into the partition of the same number, in order."""

    in_one_log = True
    """All records go into one partition of the target, whose log says how far the copy is."""
    sends_at_end = False
    """Batches may be appended also while the transaction is ending."""
    ends_whole = True
    """The records that the transaction holds may be committed."""

    def __init__(
        self,
        number: int,
        appends: tuple[int, int, int, int] = (-1, 0, -1, -1),
        *,
        others: Iterable[tuple[int, int]] = (),
        transactional: bool = False,
        read_back: bool = False,
    ) -> None:
        """Begin with nothing queued.

        Args:
            number: The number of the partition.
            appends: The producer id, epoch, sequence and downstream offset, as for `AppendSequence`.
            others: As for `AppendSequence`.
            transactional: As for `AppendSequence`.
            read_back: As for `AppendSequence`.
        """
        super().__init__(*appends, others, transactional=transactional, read_back=read_back)
        self.numbers: Sequence[int] = (number,)
        """The partitions of the target that records go to."""

    def fits_partitions(self, partitions: int) -> bool:
        """Return whether the copy can go on as it is if the target's topic has this number of partitions."""
        return True

    def spread_over(self, partitions: int) -> "IdentityRouting":
        """Return the routing to a topic with this number of partitions."""
        return self

    def after_resume(self, row: PartitionProgress, end: LastAppend, *, transactional: bool) -> "IdentityRouting":
        """Return the routing after a resume, with nothing queued: appends follow `end`."""
        appends = row.producer_id, row.producer_epoch, end.sequence, end.downstream
        number, others = self.numbers[0], end.others
        return IdentityRouting(number, appends, others=others, transactional=transactional, read_back=row.read_back)

    def appends_to(self, number: int) -> AppendSequence:
        """Return the append sequence of that partition of the target."""
        return self

    def pass_on(self, batch: Batch, producer_id: int) -> bool:
        """Queue a batch unchanged, and return True; False: its records have to be examined."""
        self.enqueue(as_outgoing(batch), producer_id)
        return True

    def queue_made(self, outgoing: OutgoingBatch, producer_id: int) -> bool:
        """Queue a batch that a transform made, and return True; False: its records have to be examined."""
        self.enqueue(outgoing, producer_id)
        return True

    def queue_records(
        self, batch: Batch, position: int, limits: TargetLimits, skips: Skips, producer_id: int
    ) -> int | None:
        """Queue the records of a batch from upstream offset `position` on.

        Returns:
            The offset behind these records; None: there are none.

        Raises:
            BatchRejected: A record cannot be sent (`KeyedRouting`).
            RecordTooLarge: The target does not take a record of this size.
            CorruptRecordError: The batch cannot be read.
        """
        outgoing_batches = rebuild(batch, position, limits, skips)
        for outgoing in outgoing_batches:
            self.enqueue(outgoing, producer_id)
        return outgoing_batches[-1].covers + 1 if outgoing_batches else None

    def close_group(self, limits: TargetLimits) -> None:
        """Close the group: all batches of an answer are queued.

        Raises:
            BatchRejected: A record cannot be sent. The records before it are queued.
        """

    def breaks_round(self, refusal: RefusedRecords | None) -> bool:
        """Return whether a refusal only breaks a round, which begins again and then ends before the refused records."""
        return False

    def on_failed(self) -> None:
        """Note that the copy of the partition failed."""

    def join_transaction(self) -> frozenset[int]:
        """Let the batches that wait join the transaction.

        Returns:
            The partitions of the target that the transaction then has batches for.
        """
        return frozenset(self.numbers)

    @property
    def all_sent(self) -> bool:
        """Return whether nothing more is to be appended in the transaction that is ending."""
        return self.unanswered == 0

    def decided_up_to(self, held: Sequence[Ack]) -> tuple[int, int]:
        """Return the (upstream offset, leader epoch) up to which everything is decided once the transaction ends.

        `held` are the batches that the transaction holds. (-1, -1): it decides nothing.
        """
        return (held[-1].outgoing.covers, held[-1].outgoing.leader_epoch) if held else (-1, -1)
