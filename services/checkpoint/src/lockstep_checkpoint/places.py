"""Which of two answers counts: the data plane's runs, or MirrorMaker 2's offset syncs (decision 0021)."""

from __future__ import annotations

from lockstep_checkpoint.exact import ExactPlaces, Place
from lockstep_checkpoint.translation import TOO_OLD, OffsetSyncStore, newest_at
from lockstep_protocol.offsets import DownstreamOffset, UpstreamOffset

__all__ = ["Places"]


class Places:
    """Where runs say anything of a position they alone count, also where the syncs lead further: after a truncated or
    re-created topic old ones lead too far. `store` None: the syncs cannot be read, for the reason `trouble`.
    """

    def __init__(self, exact: ExactPlaces, store: OffsetSyncStore | None, trouble: str = "") -> None:
        self._exact = exact
        self._store = store
        self._trouble = trouble

    def translate(self, topic: str, partition: int, upstream: UpstreamOffset) -> Place:
        """Where a group that reads `upstream` of a source partition next stands, as far as it can be said."""
        found = self._exact.translate(topic, partition, upstream)
        return found if isinstance(found, Place) else self._by_syncs(topic, partition, upstream, found.most)

    def _by_syncs(self, topic: str, partition: int, upstream: UpstreamOffset, most: DownstreamOffset | None) -> Place:
        if self._store is None:
            return Place(None, why=self._trouble, by_runs=False)
        downstream = self._store.translate_downstream(topic, partition, upstream)
        if downstream is None:
            return Place(None, why="no offset sync yet", by_runs=False)
        if downstream == TOO_OLD:
            why = f"offset {upstream} is older than the oldest usable offset sync"
            return Place(None, why=why, by_runs=False)
        sync = newest_at(self._store.histories[topic, partition], upstream)
        behind = 0 if sync is None else max(0, upstream - sync.upstream - 1)
        return Place(downstream if most is None else min(downstream, most), behind=behind, by_runs=False)
