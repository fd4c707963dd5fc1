"""Which groups of the source get checkpoints, and where they stand there (`mm2.md` §2.3 and §3.5).

A group counts when it is a consumer group (classic or KIP-848; librdkafka lists no other protocols than "" and
"consumer"), passes the group filter, and has an offset in a topic that passes the topic filter. Its state on the source
is irrelevant.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from lockstep_checkpoint.plan import CheckpointRule, Committed, consumes_mirrored
from lockstep_protocol.filters import Names, should_replicate_group
from lockstep_protocol.offsets import UpstreamOffset
from lockstep_runtime.admin import Admin
from lockstep_runtime.described import GroupOffset
from lockstep_runtime.errors import ClusterTrouble, ClusterUnreachable

__all__ = ["SourceGroups", "SourceLook", "is_consumer_group", "offsets_of"]

CONSUMER_TYPES = frozenset({"CLASSIC", "CONSUMER", "UNKNOWN", ""})
"""Brokers older than 3.8 do not say; all they have are classic ones."""


@dataclass(frozen=True, slots=True)
class SourceLook:
    """What one look at the source found."""

    committed: Mapping[str, tuple[Committed, ...]] = field(default_factory=dict)
    """Per group of interest, what it has committed, in all topics."""
    failed: Mapping[str, ClusterTrouble] = field(default_factory=dict)
    """Groups that could not be looked at this time."""


def is_consumer_group(group: str, kind: str, groups: Names) -> bool:
    """Whether a listed group may be of interest, as far as the listing tells. `kind` is Kafka's group type in upper
    case.
    """
    return kind in CONSUMER_TYPES and should_replicate_group(group, groups)


async def offsets_of(admin: Admin, group: str) -> Mapping[tuple[str, int], GroupOffset] | ClusterTrouble:
    """What the group has committed, or why that cannot be said; raises ClusterUnreachable, which is no group's own."""
    try:
        return await admin.group_offsets(group)
    except ClusterUnreachable:
        raise
    except ClusterTrouble as trouble:
        return trouble


class SourceGroups:
    """Looks at the groups of one source. One request a broker and one a group each time, a few groups at once.

    New groups are noticed at each look. A group that consumes other topics only is asked again after `refresh_every`,
    the longest time after which MirrorMaker 2 would notice it too; None: what the first look found is all there will
    be.
    """

    def __init__(self, admin: Admin, groups: Names, rule: CheckpointRule, refresh_every: timedelta | None) -> None:
        self._admin = admin
        self._groups = groups
        self._rule = rule
        self._refresh_every = refresh_every
        self._listed: set[str] = set()
        self._tracked: set[str] = set()
        self._uninteresting: set[str] = set()
        self._refreshed_at: float | None = None

    async def look(self, now: float, owned: Callable[[str], bool]) -> SourceLook:
        """Look at every group that `owned` accepts. `now` is a monotonic clock in seconds.

        Raises ClusterUnreachable when the source is away and NotPermitted when groups may not be listed at all; what
        happens to a single group is in the answer.
        """
        await self._list(now)
        candidates = {group for group in self._listed | self._tracked if owned(group)}
        names = sorted(candidates - self._uninteresting)
        answers = await asyncio.gather(*(self._committed(group) for group in names))
        committed: dict[str, tuple[Committed, ...]] = {}
        failed: dict[str, ClusterTrouble] = {}
        for group, answer in zip(names, answers, strict=True):
            if isinstance(answer, ClusterTrouble):
                failed[group] = answer
            elif consumes_mirrored(answer, self._rule):
                committed[group] = answer
            elif answer:
                # A group without any offset may be about to commit its first one; this one consumes something else.
                self._uninteresting.add(group)
        self._tracked = committed.keys() | failed.keys()
        return SourceLook(committed, failed)

    async def _list(self, now: float) -> None:
        if self._refreshed_at is not None and self._refresh_every is None:
            return
        listed = await self._admin.list_groups()
        # A coordinator that did not answer leaves its groups out: that is why tracked ones are asked all the same.
        self._listed = {one.group for one in listed if is_consumer_group(one.group, one.type, self._groups)}
        if self._refreshed_at is None or self._refresh_every is None:
            self._refreshed_at = now
        elif now - self._refreshed_at >= self._refresh_every.total_seconds():
            self._refreshed_at = now
            self._uninteresting.clear()

    async def _committed(self, group: str) -> tuple[Committed, ...] | ClusterTrouble:
        offsets = await offsets_of(self._admin, group)
        if isinstance(offsets, ClusterTrouble):
            return offsets
        return tuple(
            Committed(topic, partition, UpstreamOffset(at.offset), at.metadata)
            for (topic, partition), at in sorted(offsets.items())
        )
