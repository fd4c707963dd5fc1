"""The positions of the partitions of a flow during a switch: what is copied, and what is lost (no I/O, no clock)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lockstep_ops.formatting import count_text, name_partitions, shorten, utc_moment
from lockstep_rules.offsets.lag import NOT_COUNTABLE, is_of_another_log, missing_since_ms
from lockstep_rules.offsets.offset_runs import RunMap
from lockstep_rules.topic_plan import NOT_COPIED
from lockstep_state.offsets import SEQUENCES, TopicPartition
from lockstep_state.rows.state_rows import (
    Assignment,
    MirroredTopic,
    OffsetRuns,
    PartitionProgress,
    Row,
    SourceEnds,
    SwitchTopic,
    progress_by_partition,
)

NAMED = 3
"""The number of partitions that a sentence names. For more it only says how many."""


@dataclass(frozen=True, slots=True)
class PartitionLoss:
    """Records of a partition that the source was known to have and that are not on the target.

    `records` is -1 if their number is not known.
    """

    partition: TopicPartition
    records: int
    since_ms: int
    """The time from which records are missing, Unix milliseconds."""


def switched_topics(rows: Mapping[str, Row], names: Sequence[str], heartbeats: Iterable[str]) -> list[MirroredTopic]:
    """Return the selected topics that a switch is about, also those that cannot be copied now.

    Heartbeats are left out: they are written all the time, and no client reads them.

    Args:
        rows: The flow's rows.
        names: Source topics. Empty: all.
        heartbeats: Heartbeats topics.
    """
    left_out = set(heartbeats)
    return [
        row
        for _, row in sorted(rows.items())
        if isinstance(row, MirroredTopic)
        and row.is_selected
        and row.source_topic not in left_out
        and (not names or row.source_topic in names)
    ]


def _present_row(rows: Mapping[str, Row], tp: TopicPartition) -> PartitionProgress | None:
    """Return the progress of a partition, if it is about the topics that exist now."""
    topic = rows.get(MirroredTopic.key_of(tp[0]))
    row = rows.get(PartitionProgress.key_of(tp[0], tp[1]))
    present_topic = topic if isinstance(topic, MirroredTopic) else None
    return row if isinstance(row, PartitionProgress) and not is_of_another_log(row, present_topic) else None


def not_copied(
    ends: Mapping[TopicPartition, int], starts: Mapping[TopicPartition, int], rows: Mapping[str, Row]
) -> dict[TopicPartition, int]:
    """Return how many offsets of each partition before its end are not on the target yet.

    Partitions of which everything is copied are absent.
    """
    counts = {}
    for tp, end in sorted(ends.items()):
        row = _present_row(rows, tp)
        next_offset = starts.get(tp, 0) if row is None or row.upstream < 0 else row.upstream + 1
        if end > next_offset:
            counts[tp] = end - next_offset
    return counts


def _numbers(topic: MirroredTopic) -> range:
    """Return the partitions of a topic on the source, also those that the target lacks.

    A topic without a copy may never have been described. Then only its first partition is known.
    """
    return range(max(topic.source_partitions, 1 if topic.phase in NOT_COPIED else 0))


def known_loss(rows: Mapping[str, Row], topics: Iterable[MirroredTopic]) -> list[PartitionLoss]:
    """Return what the source was known to have and the target has not, by the newest rows, the largest number first.

    The number is unknown for a partition that the target lacks, whose copy has not begun, or that halted without
    knowing what the target holds. Records beyond the row are not lost. Each record has its own offset on the source,
    so the number is never less than what is lost.
    """
    losses = []
    progress, ends, observed_ends = progress_by_partition(rows.values()), known_source_ends(rows), _asked_ends(rows)
    begun: dict[str, set[int]] = defaultdict(set)
    for name, number in progress:
        begun[name].add(number)
    numbered = [
        (topic, number) for topic in topics for number in sorted({*_numbers(topic), *begun[topic.source_topic]})
    ]
    for topic, number in numbered:
        row, end = progress.get((topic.source_topic, number)), ends.get((topic.source_topic, number), -1)
        missing = 0 if row is None else max(row.lag_records, end - 1 - row.upstream) - row.beyond
        if row is None or is_of_another_log(row, topic) or row.case in NOT_COUNTABLE:
            losses.append(PartitionLoss((topic.source_topic, number), -1, 0))
        elif missing > 0:
            since = missing_since_ms(row, observed_ends.get((topic.source_topic, number)))
            losses.append(PartitionLoss((topic.source_topic, number), missing, row.at_ms if since is None else since))
        elif end < 0:  # the source was not heard yet
            losses.append(PartitionLoss((topic.source_topic, number), -1, 0))
    return sorted(losses, key=lambda loss: (-loss.records, loss.partition))


def known_source_ends(rows: Mapping[str, Row]) -> dict[TopicPartition, int]:
    """Return the next offset of each source partition, as slots and driver saw it last.

    Partitions that nobody saw are absent.
    """
    observed_ends, progress = _asked_ends(rows), progress_by_partition(rows.values())
    next_offsets = {tp: max(row.source_end, observed_ends.get(tp, (-1, None))[0]) for tp, row in progress.items()}
    return {tp: end for tp, end in next_offsets.items() if end >= 0}


def _asked_ends(rows: Mapping[str, Row]) -> dict[TopicPartition, tuple[int, int | None]]:
    newest = rows.get(SourceEnds().key())
    return newest.by_partition() if isinstance(newest, SourceEnds) else {}


@dataclass(frozen=True, slots=True)
class RecordsKnown:
    """The moment up to which it is known what the source had of each partition, in Unix milliseconds; 0 is unknown."""

    by_partition: Mapping[TopicPartition, int]

    @classmethod
    def from_rows(cls, rows: Mapping[str, Row], topics: Iterable[MirroredTopic]) -> "RecordsKnown":
        """Return what the driver's last look shows.

        Rows of slots do not count, because a slot also writes a row when the source has been silent for long.
        """
        row = rows.get(SourceEnds().key())
        newest = row if isinstance(row, SourceEnds) else SourceEnds()
        numbers = {topic.source_topic: range(max(topic.partitions, len(_numbers(topic)))) for topic in topics}
        return cls(newest.known_ms((topic, number) for topic, partitions in numbers.items() for number in partitions))

    @property
    def least_ms(self) -> int:
        """Return the moment up to which everything is known, in Unix milliseconds; 0 is unknown."""
        return min(self.by_partition.values(), default=0)

    def sentence(self, source: str) -> str:
        """Return a sentence that says up to when it is known what the source had."""
        newest_ms = max(self.by_partition.values(), default=0)
        counted = "is counted only as far as slots had fetched it"
        if not newest_ms:
            return f"What {source} accepted {counted}"
        text = f"What {source} accepted after {utc_moment(newest_ms)} {counted}"
        older = [tp for tp, ms in sorted(self.by_partition.items()) if ms < newest_ms]
        if not older:
            return text
        since = f"after {utc_moment(self.least_ms)} already" if self.least_ms else "at any time"
        unanswered = name_partitions(older, NAMED)
        return f"{text}, and so is what it accepted {since} in {unanswered}, about which it did not answer"


def groups_known_until(known_ms: int, source: str) -> str:
    """Say up to when the groups of the source are known (`GroupReadings.list_known_ms`), as a sentence."""
    means = "a group that appeared later is not known, and what a group committed later it reads again"
    if not known_ms:
        return f"Up to which moment the groups of {source} were read is not known: {means}"
    return f"The groups of {source} and their positions are known up to {utc_moment(known_ms)}: {means}"


def count_losses(losses: Iterable[PartitionLoss]) -> dict[TopicPartition, int]:
    """Return the losses of which the number is known, by partition."""
    return {loss.partition: loss.records for loss in losses if loss.records > 0}


def unknown_losses(losses: Iterable[PartitionLoss]) -> tuple[TopicPartition, ...]:
    """Return the partitions of which the loss is not known."""
    return tuple(loss.partition for loss in losses if loss.records < 0)


def unknown_loss_text(partitions: Sequence[TopicPartition]) -> str:
    """Return a sentence that names partitions of which the loss is not known."""
    return f"how many records of {name_partitions(partitions, NAMED)} are lost is not known: they were never copied"


def diverged_records(
    ends: Mapping[TopicPartition, int],
    rows: Mapping[str, Row],
    opposite_rows: Mapping[str, Row],
    starts: Mapping[TopicPartition, int] | None = None,
) -> dict[TopicPartition, int]:
    """Return the records of a cluster that the other one lacks, by partition.

    They are behind what the flow has copied. Records that the opposite flow copied to the cluster do not count, nor do
    those that the cluster has no more.

    Args:
        ends: The end offsets of the cluster's partitions.
        rows: The rows of the flow.
        opposite_rows: The rows of the opposite flow.
        starts: The begin offsets of the cluster's partitions.
    """
    copies = _copied_ranges(opposite_rows)
    sources = _source_topics(opposite_rows)
    counts = {}
    for tp, end in sorted(ends.items()):
        row = _present_row(rows, tp)
        next_offset = max((starts or {}).get(tp, 0), 0 if row is None else row.upstream + 1 + row.beyond)
        if end <= next_offset:
            continue
        ranges = copies.get((sources.get(tp[0], ""), tp[1]), ())
        copied = sum(max(0, min(end, until) - max(next_offset, since)) for since, until in ranges)
        if end - next_offset > copied:
            counts[tp] = end - next_offset - copied
    return counts


def unwritten_tails(
    partitions: Iterable[TopicPartition], ends: Mapping[TopicPartition, int], rows: Mapping[str, Row]
) -> dict[TopicPartition, tuple[int, int]]:
    """Return the partitions whose log goes on behind what the flow to their cluster has written down.

    What is behind may be that flow's own.

    Args:
        partitions: Partitions of a cluster.
        ends: Their end offsets.
        rows: The rows of the flow to that cluster.

    Returns:
        By partition, the slot that copies it and the generation of the slot's assignment. The slot is -1 if none does,
        or if the flow has records in the partition that it has yet to count.
    """
    sources = _source_topics(rows)
    assignments = [row for row in rows.values() if isinstance(row, Assignment) and not row.ending]
    slots = {tp: (row.slot, row.generation) for row in assignments for tp in row.partitions}
    progress = progress_by_partition(rows.values())
    unwritten = {}
    for topic, number in partitions:
        source = (sources.get(topic, ""), number)
        row = progress.get(source)  # acknowledged before the first append
        if row is not None and not row.has_end and ends.get((topic, number), 0) > row.downstream + 1:
            unwritten[topic, number] = (-1, 0) if row.uncounted else slots.get(source, (-1, 0))
    return unwritten


def with_copies_outside_runs(
    partitions: Iterable[TopicPartition], rows: Mapping[str, Row]
) -> frozenset[TopicPartition]:
    """Return the partitions to which the flow may have appended records that no offset run names.

    Runs are thinned, and some records that a slot finds again after a kill get none. The sequences of an epoch tell how
    many records it has, so they show whether each has its run. Three kinds cannot be counted so: runs carried over from
    an earlier epoch, records in transactions, and records that are in the log twice.

    Args:
        partitions: Partitions of a cluster.
        rows: The rows of the flow to that cluster.
    """
    sources, copies, progress = _source_topics(rows), _copied_ranges(rows), progress_by_partition(rows.values())

    def has_them(tp: TopicPartition) -> bool:
        source = (sources.get(tp[0], ""), tp[1])
        row = progress.get(source)
        if row is None or row.producer_id < 0:  # a row comes before the first append
            return False
        if row.transactional or row.producer_epoch or row.left_epoch >= 0 or row.doubled:
            return True
        appended = row.sequence + 1 + sum(sequence + 1 for _, sequence in row.others)
        return (appended - sum(until - since for since, until in copies.get(source, ()))) % SEQUENCES != 0

    return frozenset(filter(has_them, partitions))


def _source_topics(rows: Mapping[str, Row]) -> dict[str, str]:
    """Return the source topics of a flow by the names of their copies."""
    return {row.target_topic: row.source_topic for row in rows.values() if isinstance(row, MirroredTopic)}


def _copied_ranges(rows: Mapping[str, Row]) -> dict[TopicPartition, list[tuple[int, int]]]:
    """Return the ranges of target offsets that a flow has appended: the first, and the one behind the last."""
    chunks: dict[TopicPartition, list[OffsetRuns]] = defaultdict(list)
    for row in rows.values():
        if isinstance(row, OffsetRuns):
            chunks[row.topic, row.partition].append(row)
    return {
        tp: [(run.downstream, run.downstream_end) for run in RunMap.build(row, chunks.get(tp, ())).records]
        for tp, row in progress_by_partition(rows.values()).items()
        if _present_row(rows, tp) is not None
    }


def topic_rows(
    topics: Iterable[MirroredTopic],
    switch: str,
    ends: Mapping[TopicPartition, int],
    rows: Mapping[str, Row],
    target_ends: Mapping[TopicPartition, int],
    lost: Iterable[PartitionLoss] = (),
    records_known: RecordsKnown | None = None,
) -> list[SwitchTopic]:
    """Return a row for each topic, with what is known of its partitions."""
    progress, losses = progress_by_partition(rows.values()), {loss.partition: loss for loss in lost}
    known_ms = None if records_known is None else records_known.by_partition
    switch_topics = []
    for topic in topics:
        name, numbers = topic.source_topic, _numbers(topic)
        upstream = {n: progress[name, n].upstream if (name, n) in progress else -1 for n in numbers}
        switch_topics.append(
            SwitchTopic(
                topic=name,
                target_topic=topic.target_topic,
                switch=switch,
                ends=tuple(ends.get((name, n), -1) for n in numbers),
                copied=tuple(upstream[n] for n in numbers),
                target_ends=tuple(target_ends.get((topic.target_topic, n), -1) for n in numbers),
                missing=tuple(losses[name, n].records if (name, n) in losses else 0 for n in numbers),
                since_ms=tuple(losses[name, n].since_ms if (name, n) in losses else 0 for n in numbers),
                known_ms=() if known_ms is None else tuple(known_ms.get((name, n), 0) for n in numbers),
            )
        )
    return switch_topics


def known_ends(rows: Mapping[str, Row], switch: str) -> dict[TopicPartition, int]:
    """Return the end offsets that the switch with this id wrote down, as far as they are known."""
    return {
        (row.topic, number): end
        for row in rows.values()
        if isinstance(row, SwitchTopic) and row.switch == switch
        for number, end in enumerate(row.ends)
        if end >= 0
    }


def records_by_partition(counts: Mapping[TopicPartition, int]) -> str:
    """Return counts as a text, the largest ones by name: `12 records: orders-3 (10), orders-1 (2)`."""
    return f"{count_text(sum(counts.values()), 'record')}: {partitions_by_count(counts)}"


def partitions_by_count(counts: Mapping[TopicPartition, int]) -> str:
    """Return the same without the sum."""
    largest = sorted(counts, key=lambda tp: (-counts[tp], tp))
    return shorten([f"{topic}-{number} ({counts[topic, number]:,})" for topic, number in largest], NAMED)
