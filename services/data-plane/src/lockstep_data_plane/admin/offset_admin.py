"""The source connector's offsets, as an operator lists, alters and resets them.

A row that is altered or reset names where the copy is to begin, in an epoch that the target has not seen. The slot that
starts the partition next obeys (`Resumer`). Until then no offset run has that epoch, so no translation uses records
that do not exist yet.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from lockstep_data_plane.record_batch.layout import EPOCHS
from lockstep_rules.offsets.decided_place import DECIDED, DecidedPlace
from lockstep_rules.offsets.lag import SILENT_AFTER_S
from lockstep_runtime.flow.connect_offsets import ConnectOffsets, changed_offsets_answer, listed_offsets_answer
from lockstep_runtime.flow.context import Answer, FlowContext
from lockstep_runtime.state.desired_state import DesiredPhase
from lockstep_runtime.util.liveness_timer import LivenessTimer
from lockstep_state.codecs.connect_offsets import OffsetChange, RefusedOffsets, parse_changes
from lockstep_state.commands.command import Command
from lockstep_state.commands.command_vocabulary import OFFSETS_ALTER, OFFSETS_LIST, OFFSETS_RESET, Connector
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import NO_REASON
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress, SlotStatus, progress_by_partition

ALTERED, RESET = "altered", "reset"


def altered_rows(
    rows: Iterable[PartitionProgress], source: str, changes: Sequence[OffsetChange]
) -> list[PartitionProgress]:
    """Return the rows that the changes alter, in the order of `rows`.

    A partition without a row needs none: its first start goes by Connect's own record. The same changes a second time
    return nothing.

    Args:
        rows: The present rows.
        source: The alias of the source in `changes`.
        changes: The offsets to begin behind.

    Raises:
        RefusedOffsets: The producer id of a partition has no epoch left.
    """
    offsets = {tp: change.offset for change in changes if (tp := _changed_partition(change, source)) is not None}
    altered = []
    for row in rows:
        tp = (row.topic, row.partition)
        if tp in offsets and (new := with_position(row, offsets[tp])) != row:
            altered.append(new)
    return altered


def reset_rows(rows: Iterable[PartitionProgress]) -> list[PartitionProgress]:
    """Return the rows in reset form, without those that have it already. Raises RefusedOffsets."""
    return [new for row in rows if (new := with_position(row, None)) != row]


def partitions_to_check(
    changes: Iterable[OffsetChange], source: str, topics: Iterable[MirroredTopic]
) -> set[TopicPartition]:
    """Return the existing source partitions that are given an offset, for `refuse_beyond`."""
    counts = {row.source_topic: row.partitions for row in topics if row.phase != "deleted"}
    altered = (_changed_partition(change, source) for change in changes if change.offset is not None)
    return {tp for tp in altered if tp is not None and tp[1] < counts.get(tp[0], 0)}


def refuse_beyond(changes: Iterable[OffsetChange], source: str, ends: Mapping[TopicPartition, int]) -> None:
    """Raise RefusedOffsets for an offset that the source has not written: the partition would halt as truncated.

    Args:
        changes: The offsets to begin behind.
        source: The alias of the source in `changes`.
        ends: The next offset of each source partition. A partition without one is not checked.
    """
    for change in changes:
        tp = _changed_partition(change, source)
        if tp is None or change.offset is None or tp not in ends or change.offset < ends[tp]:
            continue
        last_offset = ends[tp] - 1
        at_most = (
            f"its last offset is {last_offset:,}: name that one at most"
            if last_offset >= 0
            else "it is empty: reset it"
        )
        raise RefusedOffsets(
            f"{tp[0]}-{tp[1]} has no offset {change.offset:,} on {source}, and would halt as truncated; {at_most}"
        )


def _refuse_left(rows: Iterable[PartitionProgress], arguments: Mapping[str, Any]) -> None:
    """Raise RefusedOffsets if a decision is about a place at which its partition is no more.

    Args:
        rows: The present rows.
        arguments: The arguments of the command. Only those of a decision about a halted partition have a place.
    """
    if DECIDED not in arguments:
        return
    place = DecidedPlace.from_json(arguments[DECIDED])
    for row in rows:
        if (row.topic, row.partition) == (place.topic, place.partition) and place.is_left(row):
            raise RefusedOffsets(
                f"{place.topic}-{place.partition} has gone on, or somebody else has decided, since this was decided: "
                f"it is {row.phase} at source offset {row.upstream:,}; look again"
            )


def not_located(rows: Iterable[PartitionProgress], topics: Iterable[MirroredTopic]) -> list[PartitionProgress]:
    """Return the rows of mirrored topics that do not say where the copy ends, halted ones last.

    A row that an operator has altered does say it.
    """
    mirrored = {topic.source_topic for topic in topics if topic.phase == "mirrored"}
    unlocated = [row for row in rows if row.topic in mirrored and not row.has_end]
    return sorted(unlocated, key=lambda row: (row.phase == "halted", row.topic, row.partition))


def _changed_partition(change: OffsetChange, source: str) -> TopicPartition | None:
    """Return the partition of the flow that a change names; None: it names none, or one of another source."""
    partition = change.source_partition()
    return partition[1] if partition is not None and partition[0] == source else None


def connect_entry(row: PartitionProgress, source: str) -> OffsetChange:
    """Return the offset of a partition as Connect lists it; None in it: nothing was copied, or it was reset."""
    partition = {"cluster": source, "partition": row.partition, "topic": row.topic}
    return OffsetChange(partition, row.upstream if row.upstream >= 0 and row.begins != RESET else None)


def with_position(row: PartitionProgress, offset: int | None) -> PartitionProgress:
    """Return the row of a copy that is to begin behind upstream `offset`.

    -1 begins at offset 0, and None where a first copy would begin.

    Raises:
        RefusedOffsets: The producer id has no epoch left.
    """
    upstream = -1 if offset is None else offset
    begins = RESET if offset is None else ALTERED
    stopped = replace(
        row,
        phase="stopped",
        cause=NO_REASON,
        case="",
        upstream=upstream,
        open_run=_run_below(row, upstream),
        begins=begins,
        lag_records=max(0, row.source_end - 1 - upstream),
    )
    if row.begins:  # nothing was appended in its epoch yet
        return stopped
    if row.producer_epoch >= EPOCHS:
        raise RefusedOffsets(f"our producer id has no epoch left in {row.topic}-{row.partition}")
    return replace(
        stopped,
        upstream_epoch=-1,
        producer_epoch=row.producer_epoch + 1,
        sequence=-1,
        others=(),
        skips=(),
        lag_ms=0,
        located=False,
        beyond=0,
        uncounted=0,
    )


def _run_below(row: PartitionProgress, upstream: int) -> tuple[int, ...]:
    """Return the open offset run, if the copy goes on behind it; else ().

    The run stays true then. A halted row does not say whether its run is true.
    """
    if row.case or len(row.open_run) != 3:
        return ()
    first, _, records = row.open_run
    return row.open_run if first + records <= upstream + 1 else ()


ENDED_WITHIN_S = 25.0
FREE_WITHIN_S = 120.0
CHECK_INTERVAL_S = 0.25


class OffsetAdmin:
    """The admin of one flow's source offsets. A change that was left half-way is completed by repeating it."""

    def __init__(self, ctx: FlowContext) -> None:
        self._ctx = ctx
        self._offsets = ConnectOffsets(ctx, Connector.SOURCE)
        self._lock = asyncio.Lock()
        """The lock that either running slots or a change of offsets holds."""
        self._waiting_changes = 0

    @property
    def awaited(self) -> bool:
        """Return whether a change of offsets waits for the slots to drain."""
        return self._waiting_changes > 0

    @asynccontextmanager
    async def copying(self) -> AsyncIterator[None]:
        """Hold the offsets unchanged while slots run.

        So slots begin by all rows of a change, or by none. Raises TimeoutError if the former holder does not end within
        `FREE_WITHIN_S`, which is a mistake.
        """
        await self._acquire(FREE_WITHIN_S, "the slots of before, or a change of offsets,")
        try:
            yield
        finally:
            self._lock.release()

    async def _acquire(self, within_s: float, caller: str) -> None:
        try:
            async with asyncio.timeout(within_s):
                await self._lock.acquire()
        except TimeoutError as exc:
            raise TimeoutError(f"{caller} did not come to an end within {within_s:.0f} s") from exc

    async def carry_out(self, command: Command) -> Answer | None:
        """Carry out a command about offsets; None for other verbs.

        Raises ValueError (RefusedOffsets) and ClusterError.
        """
        if command.verb == OFFSETS_LIST:
            return listed_offsets_answer(await self._list())
        if command.verb not in (OFFSETS_ALTER, OFFSETS_RESET):
            return None
        ctx, source = self._ctx, self._ctx.settings.aliases.source
        changes = parse_changes(Connector.SOURCE, command.arguments) if command.verb == OFFSETS_ALTER else ()
        self._waiting_changes += 1
        try:
            await self._acquire(ENDED_WITHIN_S, "the slots")
        except TimeoutError as exc:
            raise ValueError(f"{exc}: ask again when they have") from exc
        finally:
            self._waiting_changes -= 1
        try:
            await self._wait_drained()
            # A source that is away hinders no alteration: an offset beyond its end halts when it is back.
            ends = await ctx.source.end_offsets(partitions_to_check(changes, source, ctx.state.all(MirroredTopic)))
            refuse_beyond(changes, source, ends)
            rows = ctx.state.all(PartitionProgress)
            _refuse_left(rows, command.arguments)
            # Rows first: a row counts before Connect's record.
            if command.verb == OFFSETS_ALTER:
                await ctx.state.write_all(altered_rows(rows, source, changes))
                await self._offsets.write(changes)
                return changed_offsets_answer(command.verb, len(changes))
            await ctx.state.write_all(reset_rows(rows))
            return changed_offsets_answer(command.verb, await self._offsets.reset())
        finally:
            self._lock.release()

    async def _list(self) -> list[OffsetChange]:
        """Return the offsets from the rows, and from Connect's records of partitions without a row.

        While the flow is stopped an offset is what the target's log says, and the call waits for it. Raises ValueError
        if an offset cannot be determined.
        """
        source = self._ctx.settings.aliases.source
        await self._wait_located()
        rows = progress_by_partition(self._ctx.state.all(PartitionProgress))
        connect_changes = (await self._offsets.read()).values()
        return [
            *(connect_entry(row, source) for row in rows.values()),
            *(change for change in connect_changes if _changed_partition(change, source) not in rows),
        ]

    async def _wait_located(self) -> None:
        """Wait until the rows of a stopped flow say where the copies end.

        While the flow runs they are as they were written last, like Connect's own records.
        """
        ctx, waited_s = self._ctx, 0.0
        while ctx.desired_state.connector(Connector.SOURCE) is DesiredPhase.STOPPED:
            unknown = not_located(ctx.state.all(PartitionProgress), ctx.state.all(MirroredTopic))
            if not unknown:
                return
            first_row = unknown[0]
            if waited_s >= ENDED_WITHIN_S or all(row.phase == "halted" for row in unknown):
                reason = first_row.reason or f"{ctx.flow.target} was not asked within {ENDED_WITHIN_S:.0f} s: ask again"
                name, others = f"{first_row.topic}-{first_row.partition}", len(unknown) - 1
                raise ValueError(f"where the copy ends of {name} is not known, and of {others} others: {reason}")
            waited_s += CHECK_INTERVAL_S
            await asyncio.sleep(CHECK_INTERVAL_S)

    async def _wait_drained(self) -> None:
        """Wait until every slot has drained or has been silent for `SILENT_AFTER_S`.

        Raises ValueError if a slot goes on, or if the connector was resumed.
        """
        ctx, waited_s = self._ctx, 0.0
        timers: defaultdict[int, LivenessTimer] = defaultdict(LivenessTimer)
        while True:
            if ctx.desired_state.connector(Connector.SOURCE) is not DesiredPhase.STOPPED:
                raise ValueError(f"the {Connector.SOURCE.value} was resumed meanwhile: stop it first")
            now = ctx.clock.monotonic()
            started = [status for status in ctx.state.all(SlotStatus) if status.phase == "started"]
            alive = [s.slot for s in started if timers[s.slot].silent_for(s, now) < SILENT_AFTER_S]
            if not alive:
                return
            if waited_s >= ENDED_WITHIN_S:
                raise ValueError(f"slot {alive[0]} has not ended within {ENDED_WITHIN_S:.0f} s: ask again when it has")
            waited_s += CHECK_INTERVAL_S
            await asyncio.sleep(CHECK_INTERVAL_S)
