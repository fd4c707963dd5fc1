"""Log starts and ends of the few partitions that rows alone cannot translate.

Their offsets are beyond the known end of the source's log, or before the first known record of the copy.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from lockstep_kafka.admin.admin import Admin
from lockstep_rules.groups.group_selection import CheckpointRule, Committed, target_topic
from lockstep_rules.offsets.run_translator import RunTranslator
from lockstep_state.offsets import DownstreamOffset, TopicPartition

Positions = Mapping[str, tuple[Committed, ...]]
"""Committed offsets on the source, by group."""


async def mark_beyond(source: Admin, positions: Positions, rule: CheckpointRule, runs: RunTranslator) -> Positions:
    """Return the positions, with `log_end` set on each offset that is beyond the end of its log.

    The ends are read after the positions, so an offset that a consumer reached by reading is never beyond them. Only
    logs that are not known to reach so far are asked. Raises ClusterUnreachable.
    """
    suspects = {
        position.tp
        for position in _counted(positions, rule)
        if not runs.reaches(position.topic, position.partition, position.offset or 0)
    }
    if not suspects:
        return positions
    ends, _ = await source.end_offsets_or_troubles(suspects)

    def marked(position: Committed) -> Committed:
        tp, offset = position.tp, position.offset
        if tp not in suspects or offset is None or runs.reaches(*tp, offset):
            return position
        end = ends.get(tp, -1)
        return position if offset <= end else replace(position, log_end=end)

    return {group: tuple(map(marked, committed)) for group, committed in positions.items()}


async def read_begins(
    target: Admin, positions: Positions, rule: CheckpointRule, runs: RunTranslator
) -> Mapping[TopicPartition, DownstreamOffset]:
    """Return the log starts on the target, by partition of the source.

    Only partitions are asked in which a group is before the first known record of the copy. Those without an answer are
    left out. Raises ClusterUnreachable.
    """
    copies: dict[TopicPartition, TopicPartition] = {}
    late_begins: dict[TopicPartition, int] = {}
    for position in _counted(positions, rule):
        tp = position.tp
        # Thousands of groups may read the same partition, and a round is to cost a comparison for each of them.
        if tp not in late_begins:
            late_begins[tp] = runs.find_late_begin(*tp) or 0
        if (position.offset or 0) < late_begins[tp]:
            copies[tp] = target_topic(rule, position.topic), position.partition
    begins = await target.begin_offsets(copies.values()) if copies else {}
    return {tp: DownstreamOffset(begins[copy]) for tp, copy in copies.items() if copy in begins}


def _counted(positions: Positions, rule: CheckpointRule) -> Iterable[Committed]:
    return (
        position
        for committed in positions.values()
        for position in committed
        if position.offset is not None and rule.counts(position.topic)
    )
