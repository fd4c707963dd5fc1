"""Judge whether a group that is not at its place can come there while a switch waits for it (no I/O, no clock)."""

from collections.abc import Collection

from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.group_rows import GroupStatus

PHASES = frozenset({"translated", "waiting", "failing"})

CONTESTS = frozenset({ReasonCode.CONTESTED, ReasonCode.CONTEST_UNKNOWN})
"""Codes of a group that another flow to the same topic keeps from moving, or may."""

SETTLED_BY_COPYING = frozenset(
    {
        ReasonCode.NOTHING_COPIED,
        ReasonCode.TARGET_RECREATED,
        ReasonCode.SOURCE_RECREATED,
        ReasonCode.NO_OFFSET_SYNC,
        ReasonCode.SOURCE_END_UNKNOWN,
    }
)
"""The place is known once more is copied, and a step of the switch waits for that."""

SETTLED_BY_LOOKING = frozenset(
    {
        ReasonCode.TARGET_END_UNKNOWN,
        ReasonCode.TOPIC_WAS_ABSENT,
        ReasonCode.TARGET_GROUP_FIRST_READ,
        ReasonCode.TARGET_GROUP_ACTIVE,
        ReasonCode.TARGET_GROUP_WAS_ACTIVE,
        ReasonCode.TARGET_GROUP_MOVED,
    }
)
"""A step of the switch asks the target again."""

SETTLED_BY_READING = frozenset({ReasonCode.WAITING_NOT_LISTED, ReasonCode.GROUP_NOT_PLACED})
"""A step of the switch reads the group on the source, where there is one. Then its row is of this process."""


def may_settle(reason: Reason, *, reads_source: bool = True) -> bool:
    """Return whether a step of a switch can end what the reason says. Every other code, and one that this release does
    not know, stays. `reads_source`: the switch asks the source where its groups are."""
    settled = SETTLED_BY_COPYING | SETTLED_BY_LOOKING | (SETTLED_BY_READING if reads_source else frozenset())
    return reason.code in settled


def find_obstacle(
    row: GroupStatus, topics: Collection[str] | None = None, *, reads_source: bool = True
) -> tuple[str, Reason] | None:
    """Return a partition with the reason for which the group cannot come to its place during a switch, however long
    that waits. None: nothing of the row says so. The partition is "" if the reason is about the group.

    `topics`: the topics of the target that count; None: all. `reads_source`: see `may_settle`.
    """
    for topic, number, reason in row.waits:
        if (topics is None or topic in topics) and not may_settle(reason, reads_source=reads_source):
            return f"{topic}-{number}", reason
    if row.phase == "failing":
        return None  # it is judged by itself
    if row.phase not in PHASES:
        return "", row.why or ReasonCode.GROUP_NOT_PLACED.to_reason()
    if not row.waits and not row.is_placed and row.why and not may_settle(row.why, reads_source=reads_source):
        return "", row.why
    held = row.why_held
    if not row.synced and not row.held and held and not may_settle(held, reads_source=reads_source):
        return "", held
    return None
