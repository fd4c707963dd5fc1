"""The target offset of a group that moved to the target and comes back (decision 0025).

The groups of a flow read two kinds of topics on the source. The flow copies the first kind, and the reverse flow writes
the second. The records of the second kind are on the target already, and only the reverse flow knows their offsets.

If topics have the same name on both sides, one topic is of both kinds. Of the records that the group has not read, some
came from the target. These are at or behind the target offset that the reverse flow's runs give. The others were
written to the source after the last record from the target that the group has read. They were copied to the target
after that record, so they are behind the offset too. Until the group has read a record from the target, this argument
does not hold. Then the earlier of both flows' offsets counts. Behind the offset there can be copies of records that the
group has read, without another record between them: the offset moves on behind these. So a group is at its exact offset
if one side had no writer while the other one had.

An operator may have left records of the target out for good, which the reverse flow then does not copy. A group that
has read what was written on the source since goes on behind these records.
"""

from lockstep_rules.offsets.run_translator import NoRun, RunTranslator, TranslatedOffset
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode


def translate_failback(
    reverse: RunTranslator,
    target_topic: str,
    forward: RunTranslator,
    source_topic: str,
    partition: int,
    position: UpstreamOffset,
) -> TranslatedOffset:
    """Return the offset in `target_topic` of a group that reads `position` of `source_topic` on the source next.

    The offset is never beyond a record that the group has not read. The group reads at most `behind` records again.

    Args:
        reverse: The runs of the flow from the target to the source.
        target_topic: The topic on the target.
        forward: The runs of the flow itself, which may not mirror the topic at all.
        source_topic: The topic on the source.
        partition: The number of the partition.
        position: The committed offset on the source.
    """
    # Up to here nothing came from the target, so the place is the same.
    copied_end = forward.find_run_end(source_topic, partition, position)
    origin = reverse.translate_upstream(target_topic, partition, copied_end)
    if isinstance(origin, Reason):
        return TranslatedOffset(None, reason=origin)
    destination = DownstreamOffset(origin.upstream)
    beyond = max(0, position - origin.known_until)
    uncounted = beyond - forward.count_copied(source_topic, partition, origin.known_until, position) if beyond else 0
    if forward.copy_name(source_topic) is None:
        return TranslatedOffset(destination, behind=uncounted)
    translated = forward.translate(source_topic, partition, position)
    if origin.follows:
        end, missing = _own_records_end(translated)
        if end is None:
            # The number of those that came from the target is unknown.
            return TranslatedOffset(destination, behind=position)
        # The group has read all copies of its own records before `end`. What else is there was left out for good.
        destination = DownstreamOffset(max(destination, min(end, origin.left_out_until)))
        # What the flow itself appended there without a gap, the group has read.
        destination = DownstreamOffset(forward.appended_until(source_topic, partition, destination, end))
        own = max(0, end - destination) - reverse.count_copied(target_topic, partition, destination, end)
        return TranslatedOffset(destination, behind=uncounted + own + missing)
    if isinstance(translated, NoRun):
        return TranslatedOffset(None, reason=ReasonCode.FORWARD_UNKNOWN.to_reason())
    if translated.offset is None:
        return translated
    if translated.offset > destination:
        return TranslatedOffset(destination, behind=uncounted + translated.behind + translated.offset - destination)
    from_target = position - forward.count_copied(source_topic, partition, 0, position)
    return TranslatedOffset(
        translated.offset,
        behind=uncounted + translated.behind + min(max(0, origin.since - translated.offset), from_target),
    )


def _own_records_end(translated: TranslatedOffset | NoRun) -> tuple[int | None, int]:
    """Return the target offset after the copies of the source's own records that the group has read; None: unknown.

    The count says how many of these copies may be missing yet.
    """
    if isinstance(translated, NoRun):
        return translated.most, 0
    return translated.offset, translated.behind
