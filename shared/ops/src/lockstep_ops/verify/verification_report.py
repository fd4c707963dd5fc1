"""The results of verification in a flow, by topic and by difference, and the share that is compared. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeVar

from lockstep_ops.exit_codes import Exit
from lockstep_rules.offsets.verified_copy import present_verification
from lockstep_state.names import Flow
from lockstep_state.reasons.verification_reason import DifferenceKind
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress, Row, VerifiedPartition

R = TypeVar("R", bound=Row)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedTopic:
    """One topic with the sums over its partitions."""

    topic: str
    partitions: int
    records: int
    bytes: int
    differ: int
    """Records that both logs have and that are not equal, or not in their place."""
    missing: int
    extra: int
    beyond: int
    """Records behind the end of the copy that are not the source's next ones."""
    not_verified: int
    behind: int
    """The number of source offsets that are wanted and not compared yet.

    A request names the wanted ones. Without one, all that are copied are wanted.
    """
    seconds: float
    transforms: tuple[str, ...] = ()
    """The versions of the transforms through which the source was read. (): its records were compared as they are."""

    @property
    def is_complete(self) -> bool:
        return not (self.not_verified or self.behind)


@dataclass(frozen=True, slots=True)
class FoundDifference:
    """One difference. An offset is -1 if that log has no such record."""

    topic: str
    partition: int
    kind: str
    source_offset: int
    target_offset: int


@dataclass(frozen=True, slots=True)
class BeyondCopy:
    """Records of a partition of the target that are beyond the copy.

    `target_offset` is that of the first one, or -1 if not known.
    """

    topic: str
    partition: int
    records: int
    target_offset: int


@dataclass(frozen=True, slots=True)
class UnverifiedStretch:
    """Records of a partition that could not be compared, and why. Offsets are the source's; -1 is not known."""

    topic: str
    partition: int
    reason: str
    first: int
    last: int
    records: int


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """The verification report of one flow."""

    flow: Flow
    depth: str
    topics: tuple[VerifiedTopic, ...]
    differences: tuple[FoundDifference, ...]
    """The first differences of each partition."""
    beyond: tuple[BeyondCopy, ...]
    not_verified: tuple[UnverifiedStretch, ...]
    waiting: Mapping[str, str]
    """The reasons why topics and partitions are not compared, by their names."""

    @property
    def exit_code(self) -> Exit:
        """Return the exit code: everything is equal, something differs, or something was not compared."""
        if any(topic.differ or topic.missing or topic.extra or topic.beyond for topic in self.topics):
            return Exit.TROUBLE
        complete = self.topics and not self.waiting and all(topic.is_complete for topic in self.topics)
        return Exit.FINE if complete else Exit.NOT_VERIFIED

    def as_json(self) -> dict[str, Any]:
        return {
            "flow": str(self.flow),
            "depth": self.depth,
            "equal": self.exit_code is Exit.FINE,
            "topics": [asdict(topic) for topic in self.topics],
            "differences": [asdict(entry) for entry in self.differences],
            "beyond": [asdict(stretch) for stretch in self.beyond],
            "not_verified": [asdict(entry) for entry in self.not_verified],
            "waiting": dict(self.waiting),
        }


def build_verification(
    flow: Flow, rows: Mapping[str, Row], topics: Sequence[str] = (), request: str = ""
) -> VerificationReport:
    """Return what the rows of the state topic say of verification.

    Args:
        flow: The flow.
        rows: The rows.
        topics: Source topics. (): all that are selected.
        request: The request that is reported. What is copied behind the ends that it asks for does not count. "": all
            that is copied counts.
    """
    selected = sorted(
        (row.source_topic, row)
        for row in rows.values()
        if isinstance(row, MirroredTopic) and row.is_selected and (not topics or row.source_topic in topics)
    )
    lines, differences, beyond, stretches, waiting, depths = [], [], [], [], {}, set()
    for name, topic in selected:
        if topic.phase != "mirrored":
            waiting[name] = f"it is not mirrored: {topic.reason}" if topic.cause else "it is not mirrored"
        partition_rows = []
        for number in range(topic.partitions):
            progress = _row(rows, PartitionProgress, name, number)
            latest = _row(rows, VerifiedPartition, name, number)
            row = present_verification(latest, progress, topic)
            if row is not None:
                depths.add(row.depth)
                differences += [FoundDifference(name, number, *fields) for fields in row.found]
                if row.beyond:
                    beyond.append(BeyondCopy(name, number, row.beyond, row.beyond_first))
                stretches += [UnverifiedStretch(name, number, *fields) for fields in row.stretches]
            if reason := _wait_reason(topic, progress, latest):
                waiting[f"{name}-{number}"] = reason
            partition_rows.append((row or VerifiedPartition(topic=name, partition=number), progress))
        for number in topic.missing_partitions:
            waiting[f"{name}-{number}"] = "the target topic has no such partition"
        lines.append(_topic(name, partition_rows, request))
    return VerificationReport(
        flow=flow,
        depth="+".join(sorted(depths)),
        topics=tuple(lines),
        differences=tuple(differences),
        beyond=tuple(beyond),
        not_verified=tuple(stretches),
        waiting=waiting,
    )


def _wait_reason(topic: MirroredTopic, progress: PartitionProgress | None, latest: VerifiedPartition | None) -> str:
    """Return why the partition is not compared, or "" if nothing prevents it. `latest` may be of a log that is gone."""
    if latest is not None and latest.cause:
        return latest.reason
    if progress is None and topic.phase == "mirrored":
        return "nothing of it is copied yet"
    return ""


def _behind(row: VerifiedPartition, progress: PartitionProgress | None, request: str) -> int:
    """Return the number of source offsets that are to be compared and are not yet.

    A request names them. Without one, all that are copied count.
    """
    wanted = row.source_end - 1
    if not request or row.request != request:
        wanted = max(wanted, -1 if progress is None else progress.upstream)
    return max(0, wanted - max(row.upstream, row.first - 1))


def _row(rows: Mapping[str, Row], kind: type[R], topic: str, number: int) -> R | None:
    row = rows.get(f"{kind.kind}/{topic}/{number}")
    return row if isinstance(row, kind) else None


def _topic(
    name: str, rows: Iterable[tuple[VerifiedPartition, PartitionProgress | None]], request: str
) -> VerifiedTopic:
    partitions = list(rows)
    kinds: dict[str, int] = {}
    for row, _ in partitions:
        for kind, count in row.differences:
            kinds[kind] = kinds.get(kind, 0) + count
    missing = kinds.pop(DifferenceKind.MISSING.value, 0)
    extra = kinds.pop(DifferenceKind.EXTRA.value, 0) + kinds.pop(DifferenceKind.FOREIGN.value, 0)
    return VerifiedTopic(
        topic=name,
        partitions=len(partitions),
        records=sum(row.records for row, _ in partitions),
        bytes=sum(row.bytes for row, _ in partitions),
        differ=sum(kinds.values()),
        missing=missing,
        extra=extra,
        beyond=sum(row.beyond for row, _ in partitions),
        not_verified=sum(count for row, _ in partitions for _, count in row.not_verified),
        transforms=tuple(sorted({row.transform for row, _ in partitions if row.transform})),
        behind=sum(_behind(*partition, request) for partition in partitions),
        seconds=round(sum(row.busy_ms for row, _ in partitions) / 1000, 1),
    )


class ComparedShare(NamedTuple):
    """Source offsets that are compared, of those that are wanted."""

    compared: int
    wanted: int


def compared_share(rows: Iterable[VerifiedPartition], request: str) -> ComparedShare:
    """Return the share of the partitions that a request has reached."""
    reached = [row for row in rows if row.request == request and row.first >= 0]
    return ComparedShare(
        sum(max(0, row.upstream - row.first + 1) for row in reached),
        sum(max(0, max(row.upstream_end, row.source_end - 1) - row.first + 1) for row in reached),
    )
