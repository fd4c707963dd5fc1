"""Judges if consumer groups can move to the target now, and where each goes on there (no I/O, no clock)."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from lockstep_ops.formatting import utc_moment
from lockstep_rules.groups.group_prospects import CONTESTS, find_obstacle
from lockstep_rules.groups.group_readings import GroupReadings
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.rows.state_rows import GroupStatus, MirroredTopic

NOWHERE: Mapping[TopicPartition, int] = MappingProxyType({})
NEVER_READ = GroupReadings({})


@dataclass(frozen=True, slots=True)
class GroupAtSource:
    """A group on the source: the offsets that it has committed, and the client ids of its members.

    With `has_moved` it has committed others since the checkpoint service was asked to translate them.
    """

    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    members: tuple[str, ...] = ()
    has_moved: bool = False


class Prospect(Enum):
    """The means that can still move a group that is not at its place.

    The value is for how many seconds a switch waits. None means as long as a step may.
    """

    CONSUMERS = None
    """The group's consumers, which go on on the source."""
    SERVICES = 20.0
    """The services of the flow, in a round or two that the switch asks for."""
    NOTHING = 3.0
    """Nothing that a switch does. It reads once more, because what it has read may be of the moment before."""


@dataclass(frozen=True, slots=True)
class GroupVerdict:
    """The verdict of a switch on one group.

    The state is one of these:

    - `exact`: it reads nothing again
    - `behind`: it reads at most `read_again` records again
    - `in-use`: it has members on the target, and is left alone
    - `reading`: its members on the source have not read to the end
    - `moving`: its newest position is not translated or written yet
    - `waiting`: no position is known for it
    - `contested`: records of another flow may be before its place
    - `skips`: its position on the target is beyond the translated one
    - `refused`: the target does not take it
    - `unknown`: it has a place, and the age of the position from which that follows is not known

    `known_ms` is up to when its position on the source is known, in Unix milliseconds; 0 means not known.
    """

    group: str
    state: str
    text: str = ""
    read_again: int = 0
    partitions: int = 0
    known_ms: int = 0
    prospect: Prospect = Prospect.NOTHING

    @property
    def can_move(self) -> bool:
        return self.state in ("exact", "behind", "in-use", "unknown")

    @property
    def is_stuck(self) -> bool:
        """Return whether nothing that a switch does moves the group.

        A group that skips is not stuck: its place may pass it as consumers read.
        """
        return not self.can_move and self.prospect is Prospect.NOTHING and self.state != "skips"


class GroupPatience:
    """The time for which each group could not move, look after look."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, Prospect], float] = {}

    def overdue(self, unmoved: Iterable[GroupVerdict], now_s: float) -> list[GroupVerdict]:
        """Return the groups that cannot move now and for which a switch waits no longer (`Prospect`)."""
        verdicts = {(verdict.group, verdict.prospect): verdict for verdict in unmoved}
        self._since = {key: self._since.get(key, now_s) for key in verdicts}
        return [
            verdict
            for (_, prospect), verdict in verdicts.items()
            if prospect.value is not None and now_s - self._since[verdict.group, prospect] >= prospect.value
        ]


def judge_groups(
    rows: Iterable[GroupStatus],
    at_source: Mapping[str, GroupAtSource],
    members_at_target: Mapping[str, tuple[str, ...]],
    topics: Iterable[MirroredTopic],
    ends: Mapping[TopicPartition, int],
    target_ends: Mapping[TopicPartition, int] = NOWHERE,
    readings: GroupReadings = NEVER_READ,
) -> list[GroupVerdict]:
    """Return a verdict for each group that reads one of the topics.

    Args:
        rows: The groups' rows.
        at_source: The groups on the source. Groups that could not be asked are absent, as all are if the source is
            gone.
        members_at_target: Members of groups on the target.
        topics: The topics.
        ends: Where the source's logs end for this switch.
        target_ends: Where the target's logs end. A group whose place is there has nothing more to read, although the
            source's log ends with the marker of a transaction.
        readings: Up to when the positions are known.
    """
    targets = {row.target_topic: row.source_topic for row in topics}
    verdicts = []
    for row in rows:
        source = at_source.get(row.group)
        if row.phase == "failing":
            text, known_ms = format_sentence(row.why) or "it fails", readings.position_known_ms(row)
            verdicts.append(GroupVerdict(row.group, "waiting", text, known_ms=known_ms))
        elif _is_about(row, source, targets):
            members = members_at_target.get(row.group, ())
            at_end = {
                (targets[topic], number)
                for topic, number, _, downstream in row.positions
                if topic in targets and downstream >= target_ends.get((topic, number), downstream + 1)
            }
            unread_ends = {tp: end for tp, end in ends.items() if tp not in at_end}
            verdicts.append(_judge(row, source, members, targets, unread_ends, readings.position_known_ms(row)))
    return verdicts


def _is_about(row: GroupStatus, source: GroupAtSource | None, targets: Mapping[str, str]) -> bool:
    """Return whether the group reads one of the topics, as far as its row can deny it."""
    if row.more_waiting or row.more_behind or row.more_ahead or (source is not None and source.offsets):
        return True
    listed = (*row.positions, *row.behind, *row.waiting, *row.ahead)
    return not listed or any(topic in targets for topic, *_ in listed)


def _judge(
    row: GroupStatus,
    source: GroupAtSource | None,
    members_at_target: tuple[str, ...],
    targets: Mapping[str, str],
    ends: Mapping[TopicPartition, int],
    known_ms: int,
) -> GroupVerdict:
    count = sum(topic in targets for topic, *_ in row.positions)

    def verdict(state: str, text: str, read_again: int = 0, prospect: Prospect = Prospect.NOTHING) -> GroupVerdict:
        return GroupVerdict(row.group, state, text, read_again, count, known_ms, prospect)

    unread = _unread(source, ends) if source is not None and source.members else {}
    works = source is not None and (bool(unread) or source.has_moved)
    obstacle = find_obstacle(row, targets.keys(), reads_source=source is not None)
    if row.held == "refused":
        return verdict("refused", row.held_reason or "the target does not take it")
    if reason := _skip_reason(row, targets):
        return verdict("skips", reason, prospect=Prospect.CONSUMERS if works else Prospect.NOTHING)
    if members_at_target:
        return verdict("in-use", f"on the target it has {', '.join(members_at_target)}")
    if obstacle is not None and obstacle[1].code in CONTESTS:
        return verdict("contested", format_sentence(obstacle[1]))
    if source is not None and unread:
        (topic, number), records = max(unread.items(), key=lambda item: item[1])
        names = ", ".join(source.members)
        text = f"{names} has {records:,} records of {topic}-{number} to read on the source"
        return verdict("reading", text, prospect=Prospect.CONSUMERS)
    if works:
        return verdict("moving", "it has just committed other offsets on the source", prospect=Prospect.CONSUMERS)
    settles = Prospect.SERVICES if obstacle is None else Prospect.NOTHING
    if reason := _wait_reason(row, source, targets):
        return verdict("waiting", reason, prospect=settles)
    if row.held == "in-use" or not row.synced:
        return verdict("moving", row.held_reason or "it is not moved on the target yet", prospect=settles)
    read_again = row.read_again - sum(records for topic, _, records in row.behind if topic not in targets)
    behind = f"at most {read_again:,} records are read again" if read_again or row.more_behind else ""
    if source is not None:
        return verdict("behind" if behind else "exact", behind, read_again)
    if not known_ms:
        return verdict("unknown", "when its position was read on the source is not known", read_again)
    dated = f"by its position of {utc_moment(known_ms)}"
    return verdict("behind" if behind else "exact", f"{behind}, {dated}" if behind else dated, read_again)


def _skip_reason(row: GroupStatus, targets: Mapping[str, str]) -> str:
    """Return why consumers that move would skip records, as a sentence, or "" if they would not."""
    ahead = [entry for entry in row.ahead if entry[0] in targets]
    if not ahead:
        return f"{row.more_ahead:,} more partitions are beyond their translated offsets" if row.more_ahead else ""
    topic, number, offset, place, contest = ahead[0]
    words = contest.replace("-", " ")
    return f"{topic}-{number} is {words}: its offset is {offset}, the translated offset is {place}"


def _unread(source: GroupAtSource, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Return how many records the group's consumers have to read on the source, by partition.

    In a topic that they read, a partition without a committed offset counts as a whole: a consumer that begins at the
    end commits nothing.
    """
    topics = {topic for topic, _ in source.offsets}
    return {
        tp: end - source.offsets.get(tp, 0)
        for tp, end in ends.items()
        if tp[0] in topics and source.offsets.get(tp, 0) < end
    }


def _wait_reason(row: GroupStatus, source: GroupAtSource | None, targets: Mapping[str, str]) -> str:
    """Return why the group's place is not known in some partition, as a sentence, or "" if all are known."""
    waits = [wait for wait in row.waits if wait[0] in targets]
    if waits:
        topic, number, reason = waits[0]
        return f"{topic}-{number}: {format_sentence(reason)}"
    if row.more_waiting or not row.is_placed:
        return format_sentence(row.why) or f"the place of {row.more_waiting:,} more partitions is not known"
    if source is not None:
        placed = {(targets[topic], number) for topic, number, *_ in row.positions if topic in targets}
        if lacking := sorted(source.offsets.keys() - placed):
            return f"{lacking[0][0]}-{lacking[0][1]} has an offset on the source and no checkpoint"
    return ""


def groups_text(verdicts: Iterable[GroupVerdict]) -> str:
    """Return the number of groups by state as a text: `12 groups: 10 exact, 1 behind, 1 in-use`."""
    counts = Counter(verdict.state for verdict in verdicts)
    named = ", ".join(f"{count} {state}" for state, count in counts.most_common())
    return f"{counts.total()} {'group' if counts.total() == 1 else 'groups'}" + (f": {named}" if named else "")
