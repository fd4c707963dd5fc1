"""Positions of a legacy flow, which are a consumer group's on the source: whose word counts, what is committed. Pure.

What we commit bears a mark in its metadata, so a commit of anybody else's, MirrorMaker 1's or a reset's, is known for
what it is, whatever became of us in between (`docs/decisions/0031-positions-of-a-legacy-flow.md`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lockstep_data_plane.admin.offset_alteration import ALTERED, with_position
from lockstep_protocol.names import Flow
from lockstep_protocol.offsets import TopicPartition
from lockstep_protocol.rows.state_rows import PartitionProgress
from lockstep_runtime.kafka.admin_types import GroupOffset

Positions = Mapping[TopicPartition, GroupOffset]
Rows = Mapping[TopicPartition, PartitionProgress]


def commit_metadata(flow: Flow, producer_id: int) -> str:
    """The metadata of our commits. The producer id is the flow's own as long as its state lasts."""
    return f"lockstep {flow} {producer_id}"


@dataclass(slots=True)
class GroupStart:
    """Where partitions begin that nobody copies now. `rows` are to be written first, then `marks` committed: who is
    killed in between finds the same again."""

    rows: list[PartitionProgress] = field(default_factory=list)
    marks: dict[TopicPartition, GroupOffset] = field(default_factory=dict)
    moved: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    """By partition: the next offset by our progress, and the one by the group."""


def plan_start(partitions: Iterable[TopicPartition], rows: Rows, there: Positions, mark: str) -> GroupStart:
    """`there`: what the group has committed. A commit of somebody else's counts, of ours our own progress does, which
    is exact. Without a commit the progress counts too, and without both the file does, so nothing is said here.

    Raises RefusedOffsets where a partition's producer has no epoch left."""
    found = GroupStart()
    for tp in partitions:
        at, row = there.get(tp), rows.get(tp)
        if at is None:
            continue
        if at.metadata != mark:
            found.marks[tp] = GroupOffset(at.offset, mark)
        if row is None:
            found.rows.append(PartitionProgress(topic=tp[0], partition=tp[1], upstream=at.offset - 1, begins=ALTERED))
        elif at.metadata != mark and (new := _following_group(row, at.offset)) != row:
            found.rows.append(new)
            found.moved[tp] = (row.upstream + 1, at.offset)
    return found


def _following_group(row: PartitionProgress, offset: int) -> PartitionProgress:
    if row.upstream + 1 == offset and not row.begins:
        return row
    return with_position(row, offset - 1)


@dataclass(slots=True)
class DueCommits:
    """What is to be committed. `foreign`: positions that somebody else committed while we copy, by partition: theirs,
    and ours, by which they are replaced."""

    writes: dict[TopicPartition, GroupOffset] = field(default_factory=dict)
    foreign: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)


def due_commits(rows: Iterable[PartitionProgress], there: Positions, mark: str) -> DueCommits:
    """`rows`: of the partitions that we copy. What the target has acknowledged counts, nothing else; what is there
    already is left out, and what the broker has forgotten comes again."""
    found = DueCommits()
    for row in rows:
        if row.begins:
            continue  # nobody has looked yet where it stands
        tp = (row.topic, row.partition)
        at, wanted = there.get(tp), GroupOffset(row.upstream + 1, mark)
        if at == wanted:
            continue
        found.writes[tp] = wanted
        if at is not None and at.metadata != mark and at.offset != wanted.offset:
            found.foreign[tp] = (at.offset, wanted.offset)
    return found
