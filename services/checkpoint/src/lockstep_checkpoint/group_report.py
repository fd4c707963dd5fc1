"""The rows and events of the state and events topics about consumer groups."""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from lockstep_checkpoint.group_view import (
    GroupView,
    ReadingTime,
    TranslationState,
    join_sentences,
    sentences_by_partition,
)
from lockstep_checkpoint.unanswered_reading import unanswered_since
from lockstep_rules.groups.group_sync import HELD, REFUSED, Ahead
from lockstep_rules.selection_count import GROUP_KEYS, NOT_COUNTED, SelectionCount
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.telemetry.log_dedup import LOGGED, LogDedup
from lockstep_state.codecs.mm2_codec import Checkpoint
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence
from lockstep_state.rows.group_rows import AHEAD_ON_TARGET, REWOUND_ON_SOURCE
from lockstep_state.rows.state_rows import GroupStatus, SourceGroupsStatus

GONE_KEPT = timedelta(days=7)
"""The time for which the row of a group that is gone stays. Some applications use a new group id at each start."""

NOWHERE: Mapping[TopicPartition, Reason] = MappingProxyType({})

Written = Callable[[str], Mapping[TopicPartition, Checkpoint]]


class GroupReport:
    """The group rows of one flow, kept true, with events for what changes.

    Requests to the source and to the target run side by side, and each reports its result. This class compares and
    writes one row at a time, so that each change is reported once. `written` returns a group's acknowledged
    checkpoints.
    """

    def __init__(self, ctx: FlowContext, written: Written) -> None:
        self._ctx = ctx
        self._written = written
        self._views: dict[str, GroupView] = {}
        self._log_dedup = LogDedup()
        self._writing = asyncio.Lock()

    async def on_source_read(
        self,
        states: Mapping[str, TranslationState],
        failed: Mapping[str, Reason],
        was_requested: Callable[[str], bool],
        began: ReadingTime | None,
    ) -> tuple[str, ...]:
        """Record a round over the source's groups, and return the groups that this process had not read before.

        Args:
            states: The translated offsets of each group that could be read.
            failed: Why other groups could not be read.
            was_requested: Accepts the groups that the round asked for. One in neither of both is gone.
            began: When the reading began; None: the offsets are those read before.
        """
        new_views = [group for group in states if self._view(group).read_at is None]
        rows = {group: self._ctx.state.get(GroupStatus, group) for group in new_views}
        new = [group for group, row in rows.items() if row is None or row.is_gone]
        await asyncio.gather(*(self._ctx.event("GroupFound", group) for group in new))
        self._views.update({group: self._view(group) for group in new_views})
        self._log_dedup.keep_only(cause for view in self._views.values() for cause in (view.failure, view.held_cause))
        await asyncio.gather(*self._changes(states, failed))
        for group, trouble in failed.items():
            self._views[group] = self._view(group).failing(trouble)
        for group, state in states.items():
            self._views[group] = self._view(group).read(state, began)
            if self._syncs and self._view(group).synced:
                await self._record_rewind(group)
        await self._write(group for group in (*states, *failed))
        await self._expire_gone_groups(states.keys() | failed.keys(), was_requested)
        return tuple(new_views)

    def _changes(self, translated: Iterable[str], failed: Mapping[str, Reason]) -> Iterator[Coroutine[Any, Any, None]]:
        """Yield the events of groups that begin or cease to fail.

        They are sent concurrently: one cause fails thousands.
        """
        for group, trouble in failed.items():
            if not self._view(group).failure:
                level = self._level("more groups failing", trouble)
                text = f"{group}: {format_sentence(trouble)}"
                yield self._ctx.event("GroupFailing", group, text, level=level, cause=trouble)
        for group in translated:
            if self._view(group).failure:
                yield self._ctx.event("GroupRecovered", group)

    async def record_reading(self, shares: Collection[int], began_ms: int, count: SelectionCount = NOT_COUNTED) -> None:
        """Write that all groups of these shares are known as of `began_ms` (`SourceGroupsStatus`).

        Rows of changed groups are written before. A share that another replica owns by now is left to that one. An
        event is written once if `count` says that groups exist and none is selected.
        """
        own_shares, share_row = self._owned_shares(shares), self._ctx.state.get(SourceGroupsStatus, "0")
        unselected, excluded = (count.total, count.included) if count.is_nothing else (0, 0)
        row = SourceGroupsStatus(share=0, phase="read", read_ms=began_ms, unselected=unselected, excluded=excluded)
        await self._record(replace(row, share=share) for share in own_shares)
        if unselected and 0 in own_shares and (share_row is None or not share_row.unselected):
            text, flow = count.sentence("groups", self._ctx.source.alias, GROUP_KEYS), str(self._ctx.flow)
            await self._ctx.event("NoGroupSelected", flow, text, total=count.total, included=count.included)

    async def record_failure(self, shares: Collection[int], cause: Reason) -> None:
        """Write that the source answers, but its groups of these shares cannot be listed or translated."""
        rows = [self._reading(share) for share in self._owned_shares(shares)]
        await self._record(replace(row, phase="failing", cause=cause, unanswered_ms=0) for row in rows)

    async def record_silence(self, shares: Collection[int], asked_ms: int) -> None:
        """Write that the source has not answered a reading that began at `asked_ms`.

        Shares that were never read are skipped.
        """
        now_ms = self._ctx.clock.wall_ms()
        rows = [row for row in map(self._reading, self._owned_shares(shares)) if row.read_ms]
        await self._ctx.state.write_all(
            replace(row, unanswered_ms=unanswered_since(row, asked_ms, now_ms)) for row in rows
        )

    def _owned_shares(self, shares: Collection[int]) -> list[int]:
        return sorted(self._ctx.leadership.leading().intersection(shares))

    def _reading(self, share: int) -> SourceGroupsStatus:
        row = self._ctx.state.get(SourceGroupsStatus, str(share))
        return row or SourceGroupsStatus(share=share, phase="read")

    async def _record(self, rows: Iterable[SourceGroupsStatus]) -> None:
        state = self._ctx.state
        await state.write_all([row for row in rows if state.differs(row)])

    def rewound(self, group: str) -> Mapping[TopicPartition, int]:
        """Return the group's checkpoints from before it went back on the source (`rewinds`)."""
        view = self._view(group).with_checkpoints(self._written(group))
        if group in self._views:
            self._views[group] = view
        return view.rewound

    def misplaced(self, group: str) -> Mapping[TopicPartition, tuple[Reason, int | None]]:
        """Return the partitions whose checkpoint may be wrong on the target (`GroupView.misplaced`)."""
        return self._view(group).misplaced(self._written(group).keys())

    def read_at(self, group: str) -> float | None:
        return self._view(group).read_at

    def reads(self, group: str, tp: TopicPartition, mirrored: Collection[str] | None = None) -> bool:
        return self._view(group).reads(tp, mirrored)

    async def record_synced(
        self, group: str, moved: Mapping[TopicPartition, int], ahead: tuple[Ahead, ...] = ()
    ) -> None:
        """Record that the target's group is at every checkpoint, except where it is `ahead`.

        `moved` has the offsets that were just committed for it. Without effect on a group that is gone from the source.
        """
        if self._is_gone(group):
            return
        view = self._view(group)
        if not view.synced or (view.held and moved):
            offsets = {f"{topic}-{partition}": offset for (topic, partition), offset in sorted(moved.items())}
            await self._ctx.event(
                "GroupSynced",
                group,
                f"{group} on {self._ctx.flow.target}: {len(offsets)} partitions moved",
                offsets=offsets,
            )
        await self._record_target_state(group, "", NO_REASON, "", ahead, synced=True)

    async def record_held(
        self,
        group: str,
        kind: str,
        cause: Reason,
        ahead: tuple[Ahead, ...] = (),
        *,
        left_out: Mapping[TopicPartition, Reason] = NOWHERE,
    ) -> None:
        """Record that the target's group stays as it is, and log each reason once.

        Without effect on a group that is gone from the source.

        Args:
            group: The id of the group.
            kind: One of `HELD`, or "" if only some partitions are left out.
            cause: The reason, one of `left_out` if that has any.
            ahead: Partitions whose offset on the target is beyond the checkpoint.
            left_out: Why partitions are not at their checkpoints. The group is not synced then.
        """
        view = self._view(group)
        if self._is_gone(group):
            return
        sentence = join_sentences(sentences_by_partition(left_out)) or format_sentence(cause)
        if view.held_reason != sentence:
            level = self._level("more groups left alone", cause) or logging.INFO
            text = f"{group} on {self._ctx.flow.target}: {sentence}"
            self._ctx.log.info("group left alone", text, level=level, group=group, reason=sentence)
        await self._record_target_state(group, kind, cause, sentence, ahead, synced=view.synced and not left_out)

    async def _record_target_state(
        self, group: str, kind: str, cause: Reason, sentence: str, ahead: tuple[Ahead, ...], *, synced: bool
    ) -> None:
        """Update the row with what a round found on the target, and keep the rewinds that are still `ahead`."""
        await self._log_ahead(group, ahead)
        if self._is_gone(group):  # another round has found that meanwhile
            return
        marks = self.rewound(group)
        shown = {part.tp for part in ahead if part.state == REWOUND_ON_SOURCE}
        remaining = marks if kind == REFUSED else {tp: downstream for tp, downstream in marks.items() if tp in shown}
        before = self._views.get(group)
        self._views[group] = replace(
            self._view(group),
            synced=synced,
            held=kind,
            held_reason=sentence,
            held_cause=cause,
            ahead=ahead,
            rewound=remaining,
        )
        if self._views[group] != before:
            await self._write([group])

    async def _record_rewind(self, group: str) -> None:
        marks, written, ahead = self.rewound(group), self._written(group), self._view(group).ahead
        reported = {part.tp for part in ahead}
        new = [
            Ahead(tp, downstream, int(written[tp].downstream), REWOUND_ON_SOURCE)
            for tp, downstream in sorted(marks.items())
            if tp in written and tp not in reported
        ]
        if new:
            await self._log_ahead(group, new)
            self._views[group] = replace(self._view(group), ahead=(*self._view(group).ahead, *new))

    async def _log_ahead(self, group: str, ahead: Iterable[Ahead]) -> None:
        reported = {(part.tp, part.state) for part in self._view(group).ahead}
        new = [part for part in ahead if (part.tp, part.state) not in reported]
        if new:
            skips = join_sentences(tuple(map(str, new)))
            text = f"{group} on {self._ctx.flow.target}: consumers that move there skip records: {skips}"
            await self._ctx.event("GroupAhead", group, text, states=_states(new))

    def _level(self, message: str, cause: Reason) -> int | None:
        """Return the log level of one more line with this cause: debug if enough others had it; None: the default."""
        count = self._log_dedup.count(cause)
        if count == LOGGED + 1:
            self._ctx.log.warn(message, "for the same reason; lockstep status names them")
        return logging.DEBUG if count > LOGGED else None

    def reset(self) -> None:
        """Forget this process's views: its share of the groups may have changed. The rows remain in the state topic."""
        self._views.clear()

    def groups(self) -> tuple[str, ...]:
        """Return the existing groups, including failing ones.

        While the source cannot be read, the groups of its last reading count too: their offsets on the target matter
        most then.
        """
        rows = self._ctx.state.all(GroupStatus)
        return tuple(sorted({*self._views, *(row.group for row in rows if not row.is_gone)}))

    def phases(self) -> Mapping[str, int]:
        """Count the groups in each phase."""
        counts = dict.fromkeys(("translated", "waiting", "failing"), 0)
        for group in self._views:
            counts[self._row(group).phase] += 1
        return counts

    def count_partitions(self) -> Mapping[str, int]:
        """Count the partitions of readable groups by how well their offset on the target is known."""
        counts = dict.fromkeys(("exact", "behind", "waiting", AHEAD_ON_TARGET, REWOUND_ON_SOURCE), 0)
        for view in self._views.values():
            ahead = {part.tp: part.state for part in view.ahead}
            for tp, translated in view.translation.translated_offsets:
                kind = "exact" if translated.exact else "waiting" if translated.offset is None else "behind"
                counts[ahead.get(tp, kind)] += 1
        return counts

    def synced_groups(self) -> int:
        """Count the groups whose offsets on the target are at their checkpoints."""
        return sum(view.synced and not view.is_left_alone for view in self._views.values())

    def left_alone(self) -> Mapping[str, str]:
        """Return the groups that are left alone on the target, with the reason."""
        return {group: view.left_alone for group, view in sorted(self._views.items()) if view.is_left_alone}

    def count_held(self) -> Mapping[str, int]:
        """Count the groups that are left alone, for each of `HELD`."""
        counts = dict.fromkeys(HELD, 0)
        for view in self._views.values():
            for word in view.words:
                counts[word] += 1
        return counts

    @property
    def _syncs(self) -> bool:
        return self._ctx.settings.checkpoint.sync_group_offsets

    def _view(self, group: str) -> GroupView:
        """Return the present view, which may change at every await.

        Until this process has read the group, its row counts. The source may be lost, and a row written from nothing
        would say that all is well.
        """
        view = self._views.get(group)
        return view or GroupView.from_row(self._ctx.state.get(GroupStatus, group), syncs=self._syncs)

    def _is_gone(self, group: str) -> bool:
        row = self._ctx.state.get(GroupStatus, group)
        return group not in self._views and row is not None and row.is_gone

    def _row(self, group: str) -> GroupStatus:
        self.rewound(group)
        return self._views[group].row(group, self._written(group))

    async def _write(self, groups: Iterable[str]) -> None:
        async with self._writing:
            rows = [self._row(group) for group in groups if group in self._views]
            await self._ctx.state.write_all([row for row in rows if self._has_changed(row)])

    def _has_changed(self, row: GroupStatus) -> bool:
        """Return whether the row says more than that the group was read again, as the row of its share does."""
        written = self._ctx.state.get(GroupStatus, row.group)
        return self._ctx.state.differs(row if written is None else replace(row, read_ms=written.read_ms))

    async def _expire_gone_groups(self, present: Iterable[str], was_requested: Callable[[str], bool]) -> None:
        living, state = set(present), self._ctx.state
        absent = [row for row in state.all(GroupStatus) if row.group not in living and was_requested(row.group)]
        newly_gone = [row for row in absent if not row.is_gone]
        await asyncio.gather(
            *(self._ctx.event("GroupGone", row.group) for row in newly_gone if row.group in self._views)
        )
        async with self._writing:
            reason = ReasonCode.GROUP_GONE.to_reason()
            text = format_sentence(reason)
            await state.write_all([replace(row, phase="waiting", reason=text, cause=reason) for row in newly_gone])
            for row in newly_gone:
                self._views.pop(row.group, None)
            since = self._ctx.clock.wall_ms() - GONE_KEPT // timedelta(milliseconds=1)
            await self._ctx.remove_rows(row for row in absent if row.is_gone and row.at_ms <= since)


def _states(ahead: Iterable[Ahead]) -> dict[str, str]:
    return {f"{part.tp[0]}-{part.tp[1]}": part.state for part in ahead}
