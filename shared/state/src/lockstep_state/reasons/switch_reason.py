"""The reasons that prevent a switch of clients to the target, for programs and for people (no I/O, no clock)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from lockstep_state.reasons.reason import NO_REASON, Detail, Reason


class SwitchReason(Enum):
    """The reasons why clients cannot move to the target now.

    Their order is the one in which they are shown: causes first.
    """

    TARGET_UNREACHABLE = (
        "target-unreachable",
        "the target cluster does not answer",
        "bring the target back: no client can move there",
    )
    SOURCE_UNREACHABLE = (
        "source-unreachable",
        "the source cluster does not answer, so what is missing on the target is not known",
        "bring the source back, or run `lockstep failover`",
    )
    STOPPED = ("stopped", "an operator or the file stopped the flow, or a part of it", "run `lockstep resume`")
    PAUSED = ("paused", "an operator or the file paused the flow, or a part of it", "run `lockstep resume`")
    SERVICE_FAILING = (
        "service-failing",
        "a service of the flow has failed, or no replica of it runs",
        "run `lockstep status --services`, and start or repair the service",
    )
    NOTHING_COPIED = (
        "nothing-copied",
        "the flow has no partition to copy",
        "check `topics` in the file, and that topic-sync runs",
    )
    TOPIC_FAILED = (
        "topic-failed",
        "a topic cannot be created or changed on the target",
        "read the reason in `lockstep status --topics`",
    )
    PARTITION_HALTED = (
        "partition-halted",
        "a partition is halted and waits for a decision",
        "decide what happens with its records: `lockstep status --partitions --only trouble`",
    )
    PARTITION_NOT_COPYING = (
        "partition-not-copying",
        "a partition is not copied now: it is not begun, not assigned, silent, stuck, or about to continue",
        "wait until its slot copies it, or read the reason in `lockstep status --partitions`",
    )
    LAG_UNKNOWN = (
        "lag-unknown",
        "how far a partition is behind is not known",
        "read the reason in `lockstep status --partitions`",
    )
    LAG = (
        "lag",
        "a partition is further behind than `lockstep.switch.max.lag.seconds` permits",
        "wait until the copy has caught up",
    )
    DELAYED = (
        "delayed",
        "a partition is copied late on purpose (`lockstep.delay`), and its last records are not on the target",
        "remove `lockstep.delay` from the file, and wait until the copy has caught up",
    )
    GROUPS_NOT_SYNCED = (
        "groups-not-synced",
        "there are, or may be, consumer groups, and Lockstep does not write their offsets to the target",
        "set `sync.group.offsets.enabled = true`, and do not set `emit.checkpoints.enabled = false`",
    )
    GROUPS_UNKNOWN = (
        "groups-unknown",
        "the consumer groups of the source are not known: the checkpoint service has not read them, or may not",
        "wait for its first round, or read the reason in `lockstep status`",
    )
    GROUPS_STALE = (
        "groups-stale",
        "the consumer groups of the source were read too long ago: groups and offsets that are newer are not known",
        "see that the checkpoint service runs and reads the source, and wait for its next round",
    )
    GROUP_FAILING = (
        "group-failing",
        "the offsets of a group cannot be read or translated",
        "read the reason in `lockstep status --groups`",
    )
    GROUP_REFUSED = (
        "group-refused",
        "the target refuses the offsets of a group",
        "grant the missing right, or remove the share group of that name",
    )
    GROUP_SKIPS = (
        "group-skips",
        "the offset of a group on the target is beyond its translated offset: its consumers would skip records",
        "stop its consumers on the target, then set the group back there",
    )
    GROUP_CONTESTED = (
        "group-contested",
        "another flow feeds a topic of the group too, or may, and the group would skip records of that flow",
        "let the group read on both sources, or give one flow names of its own: `lockstep plan` names the topics",
    )
    GROUP_STUCK = (
        "group-stuck",
        "the translated offset of a group is not known or not right, and no step of a switch changes that",
        "read the reason in `lockstep status --groups`, or leave the group behind",
    )
    GROUP_WAITING = (
        "group-waiting",
        "the translated offset of a group is not known, or not written to the target yet",
        "wait for the next round of the checkpoint service, or read the reason in `lockstep status --groups`",
    )
    GROUP_IN_USE = (
        "group-in-use",
        "a group has members on the target, so that Lockstep cannot set its offsets there",
        "stop these consumers, if they are not meant to work on the target already",
    )

    def __init__(self, word: str, meaning: str, remedy: str) -> None:
        self.word = word
        self.meaning = meaning
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Blocker:
    """One thing that prevents a switch, or a note about one: a code with details.

    `format_blocker` makes its sentence, and only where it is shown.
    """

    reason: SwitchReason
    subject: str = ""
    """A partition `T-N`, a topic, a group, a service, a cluster or a scope; "" for the flow."""
    details: tuple[tuple[str, Detail], ...] = ()
    """The names and values that its sentence names, ordered by name."""
    blocks: bool = True
    cause: Reason = NO_REASON
    """The known cause of it."""

    @classmethod
    def with_details(
        cls,
        reason: SwitchReason,
        subject: str,
        details: Mapping[str, Detail],
        *,
        blocks: bool = True,
        cause: Reason = NO_REASON,
    ) -> "Blocker":
        """Return the blocker with these details."""
        return cls(reason, subject, tuple(sorted(details.items())), blocks, cause)
