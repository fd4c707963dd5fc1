"""The choice between the data plane's runs, those of the reverse flow, and offset syncs (decisions 0021 and 0025)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lockstep_rules.offsets.failback import translate_failback
from lockstep_rules.offsets.offset_sync_store import TOO_OLD, OffsetSyncStore, newest_sync_at
from lockstep_rules.offsets.run_translator import RunTranslator, TranslatedOffset
from lockstep_state.offsets import DownstreamOffset, TopicPartition, UpstreamOffset
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode


@dataclass(frozen=True, slots=True)
class ReverseTranslation:
    """The offset runs of the reverse flow, from the target to the source."""

    runs: RunTranslator | None = None
    """The runs of its rows; None if there are none or they cannot be read."""
    unreadable: Reason = NO_REASON
    """The reason why its rows cannot be read; NO_REASON if they are read, and if the flow never ran."""


class OffsetTranslator:
    """The translation of committed offsets, by runs first.

    If runs cover an offset, they alone count, even where the syncs lead further. After a truncated or re-created topic,
    old syncs lead too far.
    """

    def __init__(
        self,
        runs: RunTranslator,
        store: OffsetSyncStore | None,
        trouble: str = "",
        reverse: ReverseTranslation | None = None,
        origin: Callable[[str], str | None] = lambda topic: None,
        begins: Mapping[TopicPartition, DownstreamOffset] = MappingProxyType({}),
    ) -> None:
        """Combine what can translate.

        Args:
            runs: The data plane's offset runs.
            store: The offset syncs; None: they cannot be read.
            trouble: The reason why `store` is None.
            reverse: The runs of the reverse flow; None: there is no such flow.
            origin: Returns the topic of the target whose copy a topic of the source may be, by its name.
            begins: Log starts of the target, by source partition (`read_begins`).
        """
        self._runs = runs
        self._store = store
        self._trouble = trouble
        self._reverse = reverse
        self._origin = origin
        self._begins = begins

    def translate(self, topic: str, partition: int, upstream: UpstreamOffset) -> TranslatedOffset:
        """Return the target offset of a group that reads `upstream` of a source partition next, as far as known."""
        target_topic = self._origin(topic)
        if target_topic is not None and self._reverse is not None:
            if self._reverse.unreadable:
                return TranslatedOffset(None, reason=self._reverse.unreadable)
            reverse = self._reverse.runs
            if reverse is not None and reverse.copy_name(target_topic) == topic:
                return translate_failback(reverse, target_topic, self._runs, topic, partition, upstream)
        translated = self._translate_forward(topic, partition, upstream)
        is_copied = target_topic == topic or self._runs.copy_name(topic) is not None
        if translated.offset is None and target_topic is not None and not is_copied:
            return TranslatedOffset(None, reason=ReasonCode.OPPOSITE_MISSING.to_reason())
        return translated

    def _translate_forward(self, topic: str, partition: int, upstream: UpstreamOffset) -> TranslatedOffset:
        translated = self._runs.translate(topic, partition, upstream)
        if isinstance(translated, TranslatedOffset):
            return translated
        begin = self._begins.get((topic, partition))
        if begin is not None and translated.most is not None and translated.most <= begin:
            return TranslatedOffset(begin)  # no record before the first known one is on the target any more
        return self._by_syncs(topic, partition, upstream, translated.most)

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
        sync = newest_sync_at(self._store.histories[topic, partition], upstream)
        behind = 0 if sync is None else max(0, upstream - sync.upstream - 1)
        return TranslatedOffset(downstream if most is None else min(downstream, most), behind=behind, by_runs=False)
