"""The decision whether a group can reach its checkpoint while a switch waits for it (no I/O, no clock)."""

from collections.abc import Collection

from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.group_rows import GroupStatus

PHASES = frozenset({"translated", "waiting", "failing"})

CONTESTS = frozenset({ReasonCode.CONTESTED, ReasonCode.CONTEST_UNKNOWN})
"""Reason codes of a group that does not move because another flow feeds the same topic, or may."""

SETTLED_BY_COPYING = frozenset(
    {
        ReasonCode.NOTHING_COPIED,
        ReasonCode.TARGET_RECREATED,
        ReasonCode.SOURCE_RECREATED,
        ReasonCode.NO_OFFSET_SYNC,
        ReasonCode.SOURCE_END_UNKNOWN,
    }
)
"""Reason codes that end once more is copied. A step of the switch waits for that."""

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
"""Reason codes that end once a step of the switch reads the target again."""

SETTLED_BY_READING = frozenset({ReasonCode.WAITING_NOT_LISTED, ReasonCode.GROUP_NOT_PLACED})
"""Reason codes that end once a step of the switch reads the group on the source, if that answers."""


def may_settle(reason: Reason, *, reads_source: bool = True) -> bool:
    """Return whether a step of a switch can end this reason. A code that this release does not know stays.

    With `reads_source` the switch reads its groups on the source.
    """
    settled = SETTLED_BY_COPYING | SETTLED_BY_LOOKING | (SETTLED_BY_READING if reads_source else frozenset())
    return reason.code in settled


def find_obstacle(
    row: GroupStatus, topics: Collection[str] | None = None, *, reads_source: bool = True
) -> tuple[str, Reason] | None:
    """Return a partition and the reason why the group cannot reach its checkpoint during a switch; None: none is known.

    The partition is "" if the reason is about the whole group. A failing group is a blocker of its own, so only its
    partitions count here.

    Args:
        row: The row of the group.
        topics: The topics of the target that count; None: all.
        reads_source: See `may_settle`.
    """
    for topic, number, reason in row.waits:
        if (topics is None or topic in topics) and not may_settle(reason, reads_source=reads_source):
            return f"{topic}-{number}", reason
    if row.phase == "failing":
        return None  # it is judged by itself
    if row.phase not in PHASES:
        return "", row.stated_cause or ReasonCode.GROUP_NOT_PLACED.to_reason()
    cause, held_cause = row.stated_cause, row.stated_held_cause
    if not row.waits and not row.is_placed and cause and not may_settle(cause, reads_source=reads_source):
        return "", cause
    if not row.synced and not row.held and held_cause and not may_settle(held_cause, reads_source=reads_source):
        return "", held_cause
    return None
