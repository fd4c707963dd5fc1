"""The rule by which an offset sync is due (`mm2-behaviour.md` §3.1).

Syncs are frequent enough that a translated offset is at most `offset.lag.max` behind. MM2 decides at each acknowledged
record. A data plane that acknowledges batches decides once a run of records. Of the syncs that MM2 would emit within
the run it emits two. One is the newest, and one the first, without which a group inside the run would have no
translation at all. MM2 leaves out syncs too when it has more to send than it may have outstanding.
"""

from collections.abc import Sequence

from lockstep_state.offsets import DownstreamOffset, UpstreamOffset


class OffsetSyncRule:
    """The rule for one partition, new at every start of its copy. It takes constant time a run and does no I/O.

    `lag_max` is `offset.lag.max` in records; 0 emits at every record. Raises ValueError if it is negative.
    """

    __slots__ = ("_delayed", "_last_acked", "_step", "_synced")

    def __init__(self, lag_max: int) -> None:
        if lag_max < 0:
            raise ValueError(f"offset.lag.max cannot be negative, it is {lag_max}")
        self._step = lag_max + 1
        self._last_acked: tuple[UpstreamOffset, DownstreamOffset] | None = None
        """Upstream and downstream offset of the last acknowledged record; None before the first, which gets a sync."""
        self._synced = 0
        """Downstream offset of the last sync."""
        self._delayed: tuple[UpstreamOffset, DownstreamOffset] | None = None

    def acknowledged(
        self, upstream_first: UpstreamOffset, downstream_first: DownstreamOffset, count: int
    ) -> tuple[tuple[UpstreamOffset, DownstreamOffset], ...]:
        """Return the syncs to emit after a run of acknowledged records, oldest first and at most two.

        The record at `upstream_first` + i is at `downstream_first` + i. Runs must come in the order of acknowledgement.
        Raises ValueError for an empty run.
        """
        if count < 1:
            raise ValueError(f"a run has at least one record, not {count}")
        last_acked, newest = self._last_acked, downstream_first + count - 1
        if (
            last_acked is not None
            and last_acked[0] + 1 == upstream_first
            and last_acked[1] <= downstream_first
            and newest - self._synced < self._step
        ):
            self._last_acked = self._delayed = _pair(upstream_first + count - 1, newest)
            return ()
        due: list[int] = []
        if self._is_due(upstream_first, downstream_first):
            self._synced = downstream_first
            due.append(downstream_first)
        # Within the run only the lag can be due: each `step` records after the latest sync.
        steps = (newest - self._synced) // self._step
        if steps > 0:
            if not due:
                due.append(self._synced + self._step)
            self._synced += steps * self._step
            if due[-1] != self._synced:
                due.append(self._synced)
        self._last_acked = _pair(upstream_first + count - 1, newest)
        self._delayed = None if due and due[-1] == newest else self._last_acked
        return tuple(_pair(upstream_first + (downstream - downstream_first), downstream) for downstream in due)

    def on_stretches(
        self, downstream: int, stretches: Sequence[tuple[int, int, int]]
    ) -> tuple[tuple[UpstreamOffset, DownstreamOffset], ...]:
        """Return the oldest and the newest sync to emit after the batch at `downstream` was acknowledged.

        `stretches` has its runs as (first upstream offset, index in the batch, number of records). Behind a gap a sync
        is always due. So runs that are neither among the first two nor the last one change nothing, however many there
        are.
        """
        due: list[tuple[UpstreamOffset, DownstreamOffset]] = []
        for first, begin, count in (*stretches[:2], *stretches[2:][-1:]):
            due += self.acknowledged(UpstreamOffset(first), DownstreamOffset(downstream + begin), count)
        return tuple(due) if len(due) <= 2 else (due[0], due[-1])

    def flush(self) -> tuple[UpstreamOffset, DownstreamOffset] | None:
        """Return a sync for the last acknowledged record, unless it has one.

        MM2 emits it at every offset flush (KAFKA-15906).
        """
        delayed, self._delayed = self._delayed, None
        return delayed

    def _is_due(self, upstream: int, downstream: int) -> bool:
        """Return whether a record needs a sync of its own, by the four conditions of MM2's `PartitionState.update`."""
        last_upstream, last_downstream = self._last_acked or (upstream, downstream)
        no_previous_sync_this_lifetime = self._last_acked is None
        translated_offset_too_stale = downstream - self._synced >= self._step
        skipped_upstream_record = upstream - last_upstream != 1
        truncated_downstream_topic = downstream < last_downstream
        return (
            no_previous_sync_this_lifetime
            or translated_offset_too_stale
            or skipped_upstream_record
            or truncated_downstream_topic
        )


def _pair(upstream: int, downstream: int) -> tuple[UpstreamOffset, DownstreamOffset]:
    return UpstreamOffset(upstream), DownstreamOffset(downstream)
