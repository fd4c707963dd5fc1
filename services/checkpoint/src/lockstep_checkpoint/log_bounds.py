"""Asks both clusters about the few positions that rows alone cannot place.

They are beyond what is known of the source's log, or before the first known record of a copy.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from lockstep_kafka.admin.admin import Admin
from lockstep_rules.groups.group_selection import CheckpointRule, Committed, target_topic
from lockstep_rules.offsets.run_translator import RunTranslator
from lockstep_state.offsets import DownstreamOffset, TopicPartition

Positions = Mapping[str, tuple[Committed, ...]]
"""By group, each of its committed offsets on the source."""


async def mark_beyond(source: Admin, positions: Positions, rule: CheckpointRule, exact: RunTranslator) -> Positions:
    """Return the positions, with `log_end` of each that is beyond the end of its log.

    The ends are read after the positions, so that no offset is beyond them that a consumer reached by reading. Only
    logs are asked that are not known to reach so far. Raises ClusterUnreachable.
    """
    suspects = {
        (position.topic, position.partition)
        for position in _counted(positions, rule)
        if not exact.reaches(position.topic, position.partition, position.offset or 0)
    }
    if not suspects:
        return positions
    ends, _ = await source.end_offsets_or_troubles(suspects)

    def marked(position: Committed) -> Committed:
        where, offset = (position.topic, position.partition), position.offset
        if where not in suspects or offset is None or exact.reaches(*where, offset):
            return position
        end = ends.get(where, -1)
        return position if offset <= end else replace(position, log_end=end)

    return {group: tuple(map(marked, every)) for group, every in positions.items()}


async def read_begins(
    target: Admin, positions: Positions, rule: CheckpointRule, exact: RunTranslator
) -> Mapping[TopicPartition, DownstreamOffset]:
    """Return where the target's logs begin, by topic and partition of the source. Asked are those in which a group is
    before the first known record of the copy. What is not answered is left out. Raises ClusterUnreachable."""
    copies: dict[TopicPartition, TopicPartition] = {}
    late_begins: dict[TopicPartition, int] = {}
    for position in _counted(positions, rule):
        where = position.topic, position.partition
        # Thousands of groups may read the same partition, and a round is to cost a comparison for each of them.
        if where not in late_begins:
            late_begins[where] = exact.find_late_begin(*where) or 0
        if (position.offset or 0) < late_begins[where]:
            copies[where] = target_topic(rule, position.topic), position.partition
    begins = await target.begin_offsets(copies.values()) if copies else {}
    return {where: DownstreamOffset(begins[copy]) for where, copy in copies.items() if copy in begins}


def _counted(positions: Positions, rule: CheckpointRule) -> Iterable[Committed]:
    return (
        position
        for every in positions.values()
        for position in every
        if position.offset is not None and rule.counts(position.topic)
    )
