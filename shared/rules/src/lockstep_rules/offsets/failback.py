"""Where a group that moved to the target goes on when it comes back, by both flows' runs (decision 0025).

The groups of one flow read two kinds of topics on the source. The flow copies the first kind; the flow in the opposite
direction writes the second. The records of the second kind are on the target already, and only that other flow knows
where.

If topics have the same name on both sides, one topic is of both kinds. Of the records that the group has not read, some
came from the target. These are at or behind the place there that the opposite flow's runs give. The others were written
to the source after the last record from the target that the group has read. They were copied to the target after that
record, so they are behind the place too. Until the group has read a record from the target, this argument does not
hold. Then the earlier of both flows' answers counts. Behind the place there can be copies of records that the group has
read, without another record between them: the position moves on behind these. So a group is at its exact place if one
side had no writer while the other one had.

An operator may have left records of the target out for good, which the opposite flow then does not copy. A group that
has read what was written on the source since goes on behind these records.
"""

from lockstep_rules.offsets.run_translator import NoRun, RunTranslator, TranslatedOffset
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode


def place_back(
    back: RunTranslator, theirs: str, forth: RunTranslator, ours: str, partition: int, position: UpstreamOffset
) -> TranslatedOffset:
    """The position in `theirs`, on the target, of a group that reads `position` of `ours` on the source next.

    `back` is the answer of the flow from the target to the source. `forth` is the answer of the flow itself, which may
    not mirror the topic at all. The position is never beyond a record that the group has not read. The group reads at
    most `behind` records again.
    """
    # Up to here nothing came from the target, so the place is the same.
    reads = forth.copied_to(ours, partition, position)
    found = back.translate_back(theirs, partition, reads)
    if isinstance(found, Reason):
        return TranslatedOffset(None, reason=found)
    destination = DownstreamOffset(found.upstream)
    beyond = max(0, position - found.known_until)
    untold = beyond - forth.copied_between(ours, partition, found.known_until, position) if beyond else 0
    if forth.copy_name(ours) is None:
        return TranslatedOffset(destination, behind=untold)
    mine = forth.translate(ours, partition, position)
    if found.follows:
        end, missing = _own_records_end(mine)
        if end is None:
            # The number of those that came from the target is unknown.
            return TranslatedOffset(destination, behind=position)
        # The group has read all copies of its own records before `end`. What else is there was left out for good.
        destination = DownstreamOffset(max(destination, min(end, found.left_out_until)))
        # What the flow itself appended there without a gap, the group has read.
        destination = DownstreamOffset(forth.appended_until(ours, partition, destination, end))
        own = max(0, end - destination) - back.copied_between(theirs, partition, destination, end)
        return TranslatedOffset(destination, behind=untold + own + missing)
    if isinstance(mine, NoRun):
        return TranslatedOffset(None, reason=ReasonCode.FORWARD_UNKNOWN.to_reason())
    if mine.at is None:
        return mine
    if mine.at > destination:
        return TranslatedOffset(destination, behind=untold + mine.behind + mine.at - destination)
    from_there = position - forth.copied_between(ours, partition, 0, position)
    return TranslatedOffset(mine.at, behind=untold + mine.behind + min(max(0, found.since - mine.at), from_there))


def _own_records_end(mine: TranslatedOffset | NoRun) -> tuple[int | None, int]:
    """Where the copies of the source's own records that the group has read end on the target. The count is how many of
    these may not be there yet; None: unknown."""
    if isinstance(mine, NoRun):
        return mine.most, 0
    return mine.at, mine.behind
