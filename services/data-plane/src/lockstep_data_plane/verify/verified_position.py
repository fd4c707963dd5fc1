"""The row that says how far a partition's copy is compared, and what to compare next (no I/O, no clock)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from lockstep_data_plane.verify.batch_comparison import Depth
from lockstep_data_plane.verify.difference import NotCompared
from lockstep_data_plane.verify.offset_map import OffsetMap
from lockstep_data_plane.verify.partition_verifier import LISTED, PartitionVerifier
from lockstep_rules.offsets.verified_copy import count_decisions, is_about_copy
from lockstep_state.reasons.reason import NO_REASON
from lockstep_state.reasons.verification_reason import DifferenceKind, NotComparedReason
from lockstep_state.rows.state_rows import PartitionProgress, Verification, VerifiedPartition

OFFSET = DifferenceKind.OFFSET.value

_CLOSER = {Depth.COUNT.value: 0, Depth.CRC.value: 1, Depth.BYTES.value: 2, Depth.RECORD.value: 2}
"""The order of depths. Equal bytes are equal records, so `bytes` is as close as `record`."""


class LogRanges(NamedTuple):
    """The start and end offsets of both logs of a partition.

    `source_end` is the end for a copy at the flow's isolation level. `source_log_end` and `target_log_end` are the
    ends of the leaders' own logs. A log that ends before the copy has lost records.
    """

    source_start: int
    target_start: int
    source_end: int
    source_log_end: int
    target_log_end: int
    target_end: int = -1
    """The end of the target's log for a reader of the copy."""


@dataclass(frozen=True, slots=True)
class CopyState:
    """The facts about a copy when it is compared."""

    progress: PartitionProgress
    offsets: OffsetMap
    logs: LogRanges
    at_ms: int
    is_traced: bool = False
    """True if records are left out by their origin, and other clients write to the target too."""
    comparable_from: int = 0
    """The first source offset that the known version of the transform has made the copy of."""


class ComparisonStretch(NamedTuple):
    """The row to go on from, and the offsets to compare next: the first ones, and those after the last.

    Nothing is to be compared if `begin` equals `end`.
    """

    row: VerifiedPartition
    begin: tuple[int, int]
    end: tuple[int, int]


def row_to_compare(
    former: VerifiedPartition | None, copy: CopyState, depth: str, request: Verification | None = None
) -> VerifiedPartition:
    """Return the row of a partition to compare, up to where its copy is now.

    What is verified as closely or closer stays verified, unless a request wants everything compared again. A
    request's end is the source's end when the request was first seen.
    """
    progress = copy.progress
    is_new = request is not None and (former is None or former.request != request.id)
    again = is_new and request is not None and request.again
    row = former if former is not None and not again and _goes_on(former, copy, depth) else _begun(copy, depth)
    if request is not None:
        source_end = copy.logs.source_end if is_new or former is None else min(former.source_end, copy.logs.source_end)
        row = replace(row, request=request.id, done=False, source_end=source_end)
    return replace(
        row,
        upstream_end=progress.upstream,
        downstream_end=progress.downstream,
        generation=copy.offsets.generation,
        decisions=count_decisions(progress),
        transform=progress.transform,
    )


def _begun(copy: CopyState, depth: str) -> VerifiedPartition:
    progress = copy.progress
    return VerifiedPartition(
        topic=progress.topic,
        partition=progress.partition,
        depth=depth,
        source_topic_id=progress.source_topic_id,
        target_topic_id=progress.target_topic_id,
        verified_ms=copy.at_ms,
    )


def _goes_on(row: VerifiedPartition, copy: CopyState, depth: str) -> bool:
    """Return whether what the row says still holds.

    It has to be about both logs and close enough, and its records must not have been copied again.
    """
    if not is_about_copy(row, copy.progress) or _CLOSER[row.depth] < _CLOSER[depth]:
        return False
    is_same_generation = row.generation == copy.offsets.generation
    return is_same_generation or not copy.offsets.has_gone_back(row.upstream, row.downstream)


def needs_comparison(row: VerifiedPartition | None, progress: PartitionProgress, depth: str) -> bool:
    """Return whether a followed copy has records that are not compared."""
    if row is None or not is_about_copy(row, progress) or _CLOSER[row.depth] < _CLOSER[depth]:
        return True
    return row.upstream < progress.upstream or bool(row.cause)


def waits_for_copy(row: VerifiedPartition | None, progress: PartitionProgress, request: Verification) -> bool:
    """Return whether all that is copied is compared, and the request waits for more that is being copied."""
    if row is None or row.request != request.id or row.cause or not is_about_copy(row, progress):
        return False
    return progress.upstream <= row.upstream < row.source_end - 1 and progress.phase == "copying"


def next_stretch(row: VerifiedPartition, copy: CopyState) -> ComparisonStretch:
    """Return what to compare next, from where the row ends.

    If a log begins after that, or nothing was compared yet, it begins with the first pair of records that both logs
    may have. What is before that is not verified.
    """
    logs, end = copy.logs, (row.upstream_end + 1, row.downstream_end + 1)
    goes_on = row.first >= 0
    begin = (row.upstream + 1, row.downstream + 1) if goes_on else (0, 0)
    if begin[0] < copy.comparable_from <= end[0]:
        return _behind_other_transform(row, copy, begin[0], end)
    if goes_on and begin[0] >= logs.source_start and begin[1] >= logs.target_start:
        return ComparisonStretch(row, begin, end)
    least = max(begin[0], logs.source_start), max(begin[1], logs.target_start)
    start = copy.offsets.find_start(*least) or end
    if start[0] > end[0] or start[1] > end[1]:
        start = end
    missed = list(_unpaired(least, start, copy.offsets))
    if copy.is_traced or copy.progress.transform:  # what is in front of the runs may be left out: reading it decides
        missed = [stretch for stretch in missed if stretch.reason is not NotComparedReason.BEFORE_THE_RUNS]
        first_run = copy.offsets.runs[0].upstream if copy.offsets.runs else start[0]
        start = (least[0] if first_run >= start[0] else start[0], start[1])
    counts: Counter[NotComparedReason] = Counter()
    for stretch in missed:
        counts[stretch.reason] += stretch.records
    row = _with_not_compared(row, counts, missed)
    return ComparisonStretch(replace(row, first=row.first if goes_on else start[0]), start, end)


def comparable_from(progress: PartitionProgress, version: str) -> int:
    """Return the first source offset whose copy can be compared.

    Args:
        progress: The progress of the copy.
        version: The version of the topic's transform that is known; "": none.
    """
    if progress.transform not in ("", version):
        return progress.upstream + 1
    return max(0, progress.transform_since)


def _behind_other_transform(
    row: VerifiedPartition, copy: CopyState, begin: int, end: tuple[int, int]
) -> ComparisonStretch:
    """Return what to compare next behind records that another version of the transform has made.

    Args:
        row: The row that ends before these records.
        copy: The facts about the copy.
        begin: The first source offset that is not compared.
        end: The offsets behind the copy.
    """
    source_start = max(copy.comparable_from, copy.logs.source_start)
    pair = copy.offsets.find_start(source_start, copy.logs.target_start) or end
    nearest = next((run.upstream for run in copy.offsets.runs if run.upstream_end > source_start), end[0])
    # What is in front of the nearest run may be left out: reading it decides.
    start = (source_start if pair[0] == max(nearest, source_start) else pair[0], pair[1])
    stretches = (
        (max(begin, run.upstream, copy.logs.source_start), min(run.upstream_end, copy.comparable_from))
        for run in copy.offsets.runs
    )
    made = [(first, behind) for first, behind in stretches if first < behind]
    if made:
        records = sum(behind - first for first, behind in made)
        reason = NotComparedReason.OTHER_TRANSFORM
        missed = NotCompared(reason, made[0][0], made[-1][1] - 1, records)
        row = _with_not_compared(row, {reason: records}, [missed])
    first = row.first if row.first >= 0 else start[0]
    return ComparisonStretch(replace(row, first=first, upstream=max(row.upstream, start[0] - 1)), start, end)


def _unpaired(least: tuple[int, int], start: tuple[int, int], offsets: OffsetMap) -> Iterator[NotCompared]:
    """Yield the records before the first pair that only one log has.

    Args:
        least: The first offsets of both logs to look at.
        start: The offsets of the first pair.
        offsets: The offset runs of the partition.
    """
    first_run = offsets.runs[0].upstream if offsets.runs else start[0]
    before = min(start[0], first_run) - least[0]
    if before > 0:
        yield NotCompared(NotComparedReason.BEFORE_THE_RUNS, least[0], least[0] + before - 1, before)
    for run in offsets.runs:
        first, last = max(run.upstream, least[0]), min(run.upstream_end, start[0]) - 1
        if first <= last:
            yield NotCompared(NotComparedReason.REMOVED_ON_TARGET, first, last, last - first + 1)
    unknown = max(0, start[1] - least[1])
    for run in offsets.runs:
        first, last = max(run.downstream, least[1]), min(run.downstream_end, start[1]) - 1
        if first <= last:
            unknown -= last - first + 1
            distance = run.upstream - run.downstream
            yield NotCompared(NotComparedReason.REMOVED_ON_SOURCE, first + distance, last + distance, last - first + 1)
    if unknown > 0 and before <= 0:
        yield NotCompared(NotComparedReason.BEFORE_THE_RUNS, -1, -1, unknown)


def add_comparison(row: VerifiedPartition, verifier: PartitionVerifier, busy_ms: int) -> VerifiedPartition:
    """Return the row with the verifier's results added. `verifier` began where the row ends."""
    source, target = verifier.position
    differences = Counter(dict(row.differences)) + verifier.differences
    listed = [(difference.kind, difference.source_offset, difference.target_offset) for difference in verifier.listed]
    return replace(
        _with_not_compared(row, verifier.not_compared, verifier.stretches),
        upstream=max(row.upstream, source - 1),
        downstream=max(row.downstream, target - 1),
        shift=verifier.shift,
        records=row.records + verifier.records,
        bytes=row.bytes + verifier.bytes,
        busy_ms=row.busy_ms + busy_ms,
        differences=tuple(sorted(differences.items())),
        found=(*row.found, *listed)[:LISTED],
    )


def add_counts(stretch: ComparisonStretch, offsets: OffsetMap, target_end: int) -> VerifiedPartition:
    """Return the row after a comparison of counts: of the offset runs between both ends, and the target's log end.

    Source offsets in no run were passed over. They are control batches, records that compaction has removed, and
    records that a policy has skipped.
    """
    row, (begin, end) = stretch.row, (stretch.begin[0], stretch.end[0])
    inside = [(max(begin, run.upstream), min(end, run.upstream_end)) for run in offsets.runs]
    inside = [(copied_begin, copied_end) for copied_begin, copied_end in inside if copied_begin < copied_end]
    differences = Counter(dict(row.differences))
    listed = list(row.found)
    if target_end < stretch.end[1]:
        differences[DifferenceKind.MISSING.value] += stretch.end[1] - target_end
        listed.append((DifferenceKind.MISSING.value, -1, target_end))
    gaps, position = [], begin
    for copied_begin, copied_end in (*inside, (end, end)):
        if position < copied_begin:
            reason = offsets.explain_absence(position) or NotComparedReason.NO_RUN
            gaps.append(NotCompared(reason, position, copied_begin - 1, copied_begin - position))
        position = copied_end
    counts: Counter[NotComparedReason] = Counter()
    for gap in gaps:
        counts[gap.reason] += gap.records
    return replace(
        _with_not_compared(row, counts, gaps),
        upstream=max(row.upstream, end - 1),
        downstream=max(row.downstream, stretch.end[1] - 1),
        records=row.records + sum(copied_end - copied_begin for copied_begin, copied_end in inside),
        differences=tuple(sorted(differences.items())),
        found=tuple(listed[:LISTED]),
    )


def _is_reached(row: VerifiedPartition) -> bool:
    """Return whether everything up to the row's end is compared."""
    return row.upstream >= row.upstream_end


def finish_comparison(row: VerifiedPartition, progress: PartitionProgress, at_ms: int) -> VerifiedPartition:
    """Return the row after a comparison that began at `at_ms`.

    A request is carried out once the copy is compared up to the request's end of the source. If nothing more is
    copied, it is carried out at the end of the copy.
    """
    is_asked = bool(row.request) and row.upstream + 1 >= row.source_end
    if not _is_reached(row):
        return replace(row, cause=NO_REASON, done=row.done or is_asked)
    is_done = is_asked or row.upstream_end + 1 >= row.source_end or progress.phase != "copying"
    return replace(row, cause=NO_REASON, done=is_done, verified_ms=at_ms)


def is_enough(row: VerifiedPartition, position: int) -> bool:
    """Return whether everything that a request wants is compared up to a source offset, though more is copied."""
    return bool(row.request) and not row.done and position >= row.source_end


def with_beyond(row: VerifiedPartition, tail: PartitionVerifier) -> VerifiedPartition:
    """Return the row with the number of records that only the target has after the copy's end.

    `tail` compared these records with the source's. A record of the source that is not on the target yet is no
    difference.
    """
    kinds = tail.differences
    beyond = sum(count for kind, count in kinds.items() if kind not in (DifferenceKind.MISSING.value, OFFSET))
    first = min(
        (
            difference.target_offset
            for difference in tail.listed
            if difference.kind != OFFSET and difference.target_offset >= 0
        ),
        default=-1,
    )
    return replace(row, beyond=beyond, beyond_first=first)


def _with_not_compared(
    row: VerifiedPartition, counts: Mapping[NotComparedReason, int], listed: Sequence[NotCompared]
) -> VerifiedPartition:
    together = Counter(dict(row.not_verified)) + Counter({reason.value: n for reason, n in counts.items()})
    stretches: Iterable[tuple[str, int, int, int]] = (
        (stretch.reason.value, stretch.first, stretch.last, stretch.records) for stretch in listed
    )
    return replace(row, not_verified=tuple(sorted(together.items())), stretches=(*row.stretches, *stretches)[:LISTED])
