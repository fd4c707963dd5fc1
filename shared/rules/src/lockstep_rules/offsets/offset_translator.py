"""Which of several answers counts: the data plane's runs, those of the flow in the opposite direction, or offset syncs
(decisions 0021 and 0025)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lockstep_rules.offsets.failback import place_back
from lockstep_rules.offsets.run_translator import RunTranslator, TranslatedOffset
from lockstep_rules.offsets.translation import TOO_OLD, OffsetSyncStore, newest_at
from lockstep_state.offsets import DownstreamOffset, TopicPartition, UpstreamOffset
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode


@dataclass(frozen=True, slots=True)
class ReverseTranslation:
    """What is known of the flow from the target to the source."""

    places: RunTranslator | None = None
    """What its rows say; None where there are none or they cannot be read."""
    unreadable: Reason = NO_REASON
    """Why they cannot be read; NO_REASON where they are read, and where the flow never ran."""


class OffsetTranslator:
    """If runs cover a position, they alone count, even where the syncs lead further. After a truncated or re-created
    topic, old syncs lead too far. `store` None: the syncs cannot be read, for the reason `trouble`. `theirs` answers
    with the target's topic whose copy a topic of the source may be, by its name. `begins`: see `read_begins`.
    """

    def __init__(
        self,
        exact: RunTranslator,
        store: OffsetSyncStore | None,
        trouble: str = "",
        opposite: ReverseTranslation | None = None,
        theirs: Callable[[str], str | None] = lambda topic: None,
        begins: Mapping[TopicPartition, DownstreamOffset] = MappingProxyType({}),
    ) -> None:
        self._exact = exact
        self._store = store
        self._trouble = trouble
        self._opposite = opposite
        self._theirs = theirs
        self._begins = begins

    def translate(self, topic: str, partition: int, upstream: UpstreamOffset) -> TranslatedOffset:
        """The target position of a group that reads `upstream` of a source partition next, as far as it is known."""
        theirs = self._theirs(topic)
        if theirs is not None and self._opposite is not None:
            if self._opposite.unreadable:
                return TranslatedOffset(None, reason=self._opposite.unreadable)
            back = self._opposite.places
            if back is not None and back.copy_name(theirs) == topic:
                return place_back(back, theirs, self._exact, topic, partition, upstream)
        place = self._forth(topic, partition, upstream)
        if place.at is None and theirs is not None and theirs != topic:
            return TranslatedOffset(None, reason=ReasonCode.OPPOSITE_MISSING.to_reason())
        return place

    def _forth(self, topic: str, partition: int, upstream: UpstreamOffset) -> TranslatedOffset:
        found = self._exact.translate(topic, partition, upstream)
        if isinstance(found, TranslatedOffset):
            return found
        begin = self._begins.get((topic, partition))
        if begin is not None and found.most is not None and found.most <= begin:
            return TranslatedOffset(begin)  # no record before the first known one is on the target any more
        return self._by_syncs(topic, partition, upstream, found.most)

    def _by_syncs(
        self, topic: str, partition: int, upstream: UpstreamOffset, most: DownstreamOffset | None
    ) -> TranslatedOffset:
        if self._store is None:
            reason = ReasonCode.SYNCS_UNREADABLE.to_reason(text=self._trouble)
            return TranslatedOffset(None, reason=reason, by_runs=False)
        downstream = self._store.translate_downstream(topic, partition, upstream)
        if downstream is None:
            return TranslatedOffset(None, reason=ReasonCode.NO_OFFSET_SYNC.to_reason(), by_runs=False)
        if downstream == TOO_OLD:
            reason = ReasonCode.OLDER_THAN_SYNCS.to_reason(offset=upstream)
            return TranslatedOffset(None, reason=reason, by_runs=False)
        sync = newest_at(self._store.histories[topic, partition], upstream)
        behind = 0 if sync is None else max(0, upstream - sync.upstream - 1)
        return TranslatedOffset(downstream if most is None else min(downstream, most), behind=behind, by_runs=False)
