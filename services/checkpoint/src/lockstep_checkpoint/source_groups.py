"""The consumer groups of the source that get checkpoints, and their offsets (`mm2-behaviour.md` §2.3 and §3.5).

`group_selection` says which groups count. librdkafka lists no other protocols than "" and "consumer".
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import timedelta

from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.admin_types import GroupOffset
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable, NotPermitted
from lockstep_rules.filters import Names, should_replicate_group
from lockstep_rules.groups.group_selection import (
    CONSUMER_TYPES,
    OTHER_PROTOCOLS,
    CheckpointRule,
    Committed,
    consumes_mirrored,
    is_consumer_group,
    target_topic,
)
from lockstep_rules.policy import without_renames
from lockstep_rules.selection_count import SelectionCount, count_groups
from lockstep_runtime.state.state_fold import StateFold
from lockstep_state.offsets import UpstreamOffset
from lockstep_state.rows.state_rows import GroupStatus, MirroredTopic


@dataclass(frozen=True, slots=True)
class SourceGroupOffsets:
    """The committed offsets of one reading of the source."""

    committed: Mapping[str, tuple[Committed, ...]] = field(default_factory=dict)
    """The committed offsets of each group that counts, in all topics."""
    failed: Mapping[str, ClusterError] = field(default_factory=dict)
    """The errors of groups that could not be described."""
    requested: frozenset[str] = frozenset()
    """The groups that were owned when the reading began, and those with a row that is gone. One of them that is in
    neither mapping does not exist."""
    not_replicated: frozenset[str] | None = None
    """Selected groups of protocols that are not replicated, by the last refresh; None: unknown."""


async def read_group_offsets(admin: Admin, group: str) -> Mapping[tuple[str, int], GroupOffset] | ClusterError:
    """Return the committed offsets of a group, or the error of the group. Raises ClusterUnreachable."""
    try:
        return await admin.group_offsets(group)
    except ClusterUnreachable:
        raise
    except ClusterError as trouble:
        return trouble


def find_hidden_groups(
    topics: Mapping[str, Set[str]], denied: Mapping[str, ClusterError]
) -> Mapping[str, ClusterError]:
    """Return the groups whose offsets a denied topic may hide, with the error of their first such topic.

    `topics` has the topics in which each group had offsets.
    """
    lacking = {group: sorted(names & denied.keys()) for group, names in sorted(topics.items())}
    return {group: denied[names[0]] for group, names in lacking.items() if names}


def topics_on_source(
    rows: Iterable[GroupStatus], mirrored: Iterable[str], rule: CheckpointRule
) -> Mapping[str, frozenset[str]]:
    """Return the mirrored source topics in which each group had offsets, by its row.

    `mirrored` has the topics of the source: not every name on the target leads back to its own.
    """
    copies: dict[str, set[str]] = {}
    for topic in mirrored:
        copies.setdefault(target_topic(rule, topic), set()).add(topic)

    def originals(copy: str) -> Iterator[str]:
        by_name = (
            rule.policy.upstream_topic(copy),
            without_renames(rule.policy).format_remote_topic(rule.flow.target, copy),
        )
        named = {topic for topic in by_name if topic is not None and target_topic(rule, topic) == copy}
        return filter(rule.counts, named | copies.get(copy, set()))

    def list_copies(row: GroupStatus) -> set[str]:
        copies_with_offset = {topic for topic, *_ in row.positions} | {topic for topic, *_ in row.ahead}
        return copies_with_offset | {topic for topic, _, _ in (*row.behind, *row.waiting)}

    return {row.group: frozenset(topic for copy in list_copies(row) for topic in originals(copy)) for row in rows}


class SourceGroups:
    """The groups of one source. Each round sends one request a broker and one a group, a few groups at once.

    Each round notices new groups. A group that only consumes other topics is described again after `refresh_every`, the
    longest time after which MirrorMaker 2 would notice it. None: the result of the first round is final.

    A group with a row is asked in each round, listed or not. A coordinator that does not answer leaves its groups out
    of a listing, and this process may not have seen them yet.
    """

    def __init__(
        self,
        admin: Admin,
        protocols: Callable[[], Awaitable[Mapping[str, str]]],
        groups: Names,
        rule: CheckpointRule,
        refresh_every: timedelta | None,
        state: StateFold,
    ) -> None:
        """Take what a reading needs. `protocols` returns the protocol of every group, or raises ClusterError."""
        self._admin = admin
        self._protocols = protocols
        self._groups = groups
        self._rule = rule
        self._refresh_every = refresh_every
        self._state = state
        self._listed: set[str] = set()
        self._tracked: dict[str, frozenset[str]] = {}
        """The groups that count and the topics of their offsets, when last described."""
        self._uninteresting: set[str] = set()
        self._refreshed_at: float | None = None
        self._not_replicated: frozenset[str] | None = None
        self.count = SelectionCount()
        """The count of consumer groups in the last listing, and of those that the filter selects."""

    async def read(self, now: float, owned: Callable[[str], bool]) -> SourceGroupOffsets:
        """Read every group that `owned` accepts. `now` is a monotonic time in seconds.

        The errors of single groups are in the result.

        Raises:
            ClusterUnreachable: The source does not answer.
            NotPermitted: Groups may not be listed at all.
        """
        await self._list(now)
        rows = {row.group: row for row in self._state.all(GroupStatus)}
        # Once: our share may be another one before the round is over.
        requested = frozenset(filter(owned, self._listed | self._tracked.keys() | rows.keys()))
        living = (row for row in rows.values() if row.group in requested and not row.is_gone)
        rows_of_groups = {row.group: row for row in living if self._is_selected(row.group)}
        candidates = requested & (self._listed | self._tracked.keys()) - self._uninteresting
        group_ids = sorted(candidates | rows_of_groups.keys())
        answers = await asyncio.gather(*(self._committed(group) for group in group_ids))
        committed: dict[str, tuple[Committed, ...]] = {}
        failed: dict[str, ClusterError] = {}
        vanished: dict[str, frozenset[str]] = {}
        for group, answer in zip(group_ids, answers, strict=True):
            if isinstance(answer, ClusterError):
                failed[group] = answer
            elif consumes_mirrored(answer, self._rule):
                committed[group] = answer
            elif self._tracked.get(group) or group in rows_of_groups:
                vanished[group] = self._tracked.get(group, frozenset())
            elif answer:
                # A group without any offset may be about to commit its first one; this one consumes something else.
                self._uninteresting.add(group)
        if unseen := [rows_of_groups[group] for group, topics in vanished.items() if not topics]:
            mirrored = (row.source_topic for row in self._state.all(MirroredTopic))
            vanished |= topics_on_source(unseen, mirrored, self._rule)
        failed |= await self._hidden(vanished)
        topics = {group: frozenset(offset.topic for offset in offsets) for group, offsets in committed.items()}
        unasked = {group: names for group, names in self._tracked.items() if group not in requested}
        tracked = self._tracked | vanished
        self._tracked = unasked | {group: tracked.get(group, frozenset()) for group in failed} | topics
        return SourceGroupOffsets(committed, failed, requested, self._not_replicated)

    def forget_uninteresting(self) -> None:
        """Let the next round describe the groups again that only consumed other topics."""
        self._uninteresting.clear()

    async def _hidden(self, vanished: Mapping[str, Set[str]]) -> Mapping[str, ClusterError]:
        """Return the groups whose offsets still exist, each with the error of a topic that may not be described.

        A coordinator leaves out the offsets of such topics. `vanished` has the topics in which each group had offsets.
        """
        topics_to_describe = {topic for topics in vanished.values() for topic in topics}
        return (
            find_hidden_groups(vanished, (await self._admin.topics(topics_to_describe)).denied)
            if topics_to_describe
            else {}
        )

    def _is_selected(self, group: str) -> bool:
        return should_replicate_group(group, self._groups)

    async def _list(self, now: float) -> None:
        if self._refreshed_at is not None and self._refresh_every is None:
            return
        listed = await self._admin.list_groups()
        operations = None if listed else await self._admin.cluster_operations()
        if operations is not None and "DESCRIBE" not in operations:
            remedy = self._admin.access.remedy("cluster", "", "Describe")
            raise NotPermitted(self._admin.alias, "to list", "groups", remedy)
        self.count = count_groups((name for name, kind in listed.items() if kind in CONSUMER_TYPES), self._groups)
        # A coordinator that did not answer leaves its groups out: that is why known ones are asked all the same.
        self._listed = {group for group, kind in listed.items() if is_consumer_group(group, kind, self._groups)}
        if self._refreshed_at is None or self._refresh_every is None:
            self._refreshed_at = now
        elif now - self._refreshed_at >= self._refresh_every.total_seconds():
            self._refreshed_at = now
            self._uninteresting.clear()
        if self._refreshed_at == now:
            self._not_replicated = await self._find_not_replicated()

    async def _find_not_replicated(self) -> frozenset[str] | None:
        try:
            protocols = await self._protocols()
        except ClusterError:
            return None  # which is shown; the groups that are replicated do not wait for it
        other_groups = (group for group, protocol in protocols.items() if protocol in OTHER_PROTOCOLS)
        return frozenset(filter(self._is_selected, other_groups))

    async def _committed(self, group: str) -> tuple[Committed, ...] | ClusterError:
        offsets = await read_group_offsets(self._admin, group)
        if isinstance(offsets, ClusterError):
            return offsets
        return tuple(
            Committed(topic, partition, UpstreamOffset(committed.offset), committed.metadata)
            for (topic, partition), committed in sorted(offsets.items())
        )
