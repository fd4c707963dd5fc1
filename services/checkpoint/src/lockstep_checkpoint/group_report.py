"""What operators see of each group: its row in the state topic and the events of its life."""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lockstep_checkpoint.group_sync import AHEAD_ON_TARGET, HELD, REFUSED, REWOUND_ON_SOURCE, Ahead, rewinds
from lockstep_checkpoint.run_translator import TranslatedOffset
from lockstep_protocol.mm2_codec import Checkpoint
from lockstep_protocol.offsets import TopicPartition
from lockstep_protocol.rows.state_rows import GROUP_GONE, GroupStatus
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.telemetry.log_dedup import SAID, LogDedup

SHOWN = 3
"""Reasons a row spells out; the rest is counted."""

LISTED = 50
"""Partitions a row lists that are behind, and as many that wait; the rest is counted."""

Written = Callable[[str], Mapping[TopicPartition, Checkpoint]]


@dataclass(frozen=True, slots=True)
class TranslationState:
    """The position of a group that could be described: `untranslated` are sentences for people, `places` are by target
    partition, in order."""

    untranslated: tuple[str, ...] = ()
    places: tuple[tuple[TopicPartition, TranslatedOffset], ...] = ()


@dataclass(frozen=True, slots=True)
class _GroupView:
    """What this process knows of a group beside its checkpoints."""

    trouble: str = ""
    translation: TranslationState = TranslationState()
    synced: bool = False
    held: str = ""
    """One of `HELD`, with the reason beside it."""
    held_reason: str = ""
    ahead: tuple[Ahead, ...] = ()
    rewound: Mapping[TopicPartition, int] = field(default_factory=dict)
    """See `rewinds`; `positions`: (upstream, downstream) of the checkpoints when it was asked last."""
    positions: Mapping[TopicPartition, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def read(cls, row: GroupStatus | None, *, syncs: bool) -> "_GroupView":
        """What an earlier process or another replica knew. Without `syncs` no round describes the target any more."""
        if row is None:
            return cls()
        return cls(
            synced=row.synced,
            held=row.held if syncs else "",
            held_reason=row.held_reason if syncs else "",
            ahead=tuple(Ahead((name, number), at, place, how) for name, number, at, place, how in row.ahead if syncs),
            rewound={(topic, partition): at for topic, partition, at in row.rewound},
            positions={(topic, partition): (up, down) for topic, partition, up, down in row.positions},
        )

    @property
    def left_alone(self) -> str:
        """Why the target's group stays as it is; "" where it is at its places."""
        return _joined((*([self.held_reason] if self.held_reason else []), *map(str, self.ahead)))


class GroupReport:
    """Keeps the group rows of one flow true and says what changed. `written` answers with a group's acknowledged
    checkpoints.

    Requests to the source and to the target run side by side, and each reports its result. This class compares and
    writes one row at a time, so that each change is reported once.
    """

    def __init__(self, ctx: FlowContext, written: Written) -> None:
        self._ctx = ctx
        self._written = written
        self._views: dict[str, _GroupView] = {}
        self._sayings = LogDedup()
        self._writing = asyncio.Lock()

    async def on_source_read(
        self, standing: Mapping[str, TranslationState], failed: Mapping[str, str], owned: Callable[[str], bool]
    ) -> tuple[str, ...]:
        """A round described the source: these groups exist with these positions, and these could not be described.

        Returns the groups found since the last round. Every owned group that is in neither is gone.
        """
        found = [group for group in standing if group not in self._views]
        rows = {group: self._ctx.state.get(GroupStatus, group) for group in found}
        new = [group for group, row in rows.items() if row is None or row.is_gone]
        await asyncio.gather(*(self._ctx.event("GroupFound", group) for group in new))
        syncs = self._ctx.settings.checkpoint.sync_group_offsets
        self._views.update({group: _GroupView.read(row, syncs=syncs) for group, row in rows.items()})
        said = {why for view in self._views.values() for why in (view.trouble, view.held_reason) if why}
        self._sayings.only(said | {one.state for view in self._views.values() for one in view.ahead})
        await asyncio.gather(*self._changes(standing, failed))
        for group, trouble in failed.items():
            self._views[group] = replace(self._view(group), trouble=trouble)
        for group, how in standing.items():
            self._views[group] = replace(self._view(group), trouble="", translation=how)
            if syncs and self._view(group).synced:
                await self._record_rewind(group)
        await self._write(group for group in (*standing, *failed))
        await self._bury(standing.keys() | failed.keys(), owned)
        return tuple(found)

    def _changes(self, standing: Iterable[str], failed: Mapping[str, str]) -> Iterator[Coroutine[Any, Any, None]]:
        """The events of groups that fail now, or do so no more. They go at once: one cause fails thousands."""
        for group, trouble in failed.items():
            if not self._view(group).trouble:
                level = self._level("more groups failing", trouble)
                yield self._ctx.event("GroupFailing", group, f"{group}: {trouble}", level=level, reason=trouble)
        for group in standing:
            if self._view(group).trouble:
                yield self._ctx.event("GroupRecovered", group)

    def rewound(self, group: str) -> Mapping[TopicPartition, int]:
        """The group's checkpoints before it went back on the source (`rewinds`)."""
        view, written = self._view(group), self._written(group)
        marks = rewinds(view.rewound, view.positions, written)
        if group in self._views:
            positions = {where: (int(one.upstream), int(one.downstream)) for where, one in written.items()}
            self._views[group] = replace(view, rewound=marks, positions={**view.positions, **positions})
        return marks

    async def synced(self, group: str, moved: Mapping[TopicPartition, int], ahead: tuple[Ahead, ...] = ()) -> None:
        """The target's group is at every checkpoint, except where it is `ahead`. `moved` are the offsets just committed
        for it. Without effect on a group that is gone from the source.
        """
        if self._is_gone(group):
            return
        view = self._view(group)
        if not view.synced or (view.held and moved):
            where = {f"{topic}-{partition}": offset for (topic, partition), offset in sorted(moved.items())}
            await self._ctx.event(
                "GroupSynced",
                group,
                f"{group} on {self._ctx.flow.target}: {len(where)} partitions moved",
                offsets=where,
            )
        await self._record_target_state(group, "", "", ahead, synced=True)

    async def held(self, group: str, kind: str, why: str, ahead: tuple[Ahead, ...] = ()) -> None:
        """The target's group is left as it is, for a reason of `HELD`. Said once for each reason. Without effect on one
        that is gone from the source."""
        view = self._view(group)
        if self._is_gone(group):
            return
        if view.held_reason != why:
            level = self._level("more groups left alone", why) or logging.INFO
            text = f"{group} on {self._ctx.flow.target}: {why}"
            self._ctx.log.info("group left alone", text, level=level, group=group, reason=why)
        await self._record_target_state(group, kind, why, ahead, synced=view.synced)

    async def _record_target_state(
        self, group: str, kind: str, why: str, ahead: tuple[Ahead, ...], *, synced: bool
    ) -> None:
        """The row with what a round found on the target. Rewinds that still show stay. A group that had members there,
        or has another position, follows its own positions."""
        await self._log_ahead(group, ahead)
        marks = self.rewound(group)
        shown = {one.where for one in ahead if one.state == REWOUND_ON_SOURCE}
        left = marks if kind == REFUSED else {where: at for where, at in marks.items() if where in shown}
        view = replace(self._view(group), synced=synced, held=kind, held_reason=why, ahead=ahead, rewound=left)
        if view != self._view(group):
            self._views[group] = view
            await self._write([group])

    async def _record_rewind(self, group: str) -> None:
        """A group that went back on the source keeps its earlier position on the target until a round shows more."""
        marks, written, ahead = self.rewound(group), self._written(group), self._view(group).ahead
        known = {one.where for one in ahead}
        new = [
            Ahead(where, at, int(written[where].downstream), REWOUND_ON_SOURCE)
            for where, at in sorted(marks.items())
            if where in written and where not in known
        ]
        if new:
            await self._log_ahead(group, new)
            self._views[group] = replace(self._view(group), ahead=(*self._view(group).ahead, *new))

    async def _log_ahead(self, group: str, ahead: Iterable[Ahead]) -> None:
        known = {(one.where, one.state) for one in self._view(group).ahead}
        new = [one for one in ahead if (one.where, one.state) not in known]
        if new:
            skips = _joined(tuple(map(str, new)))
            text = f"{group} on {self._ctx.flow.target}: consumers that move there skip records: {skips}"
            level = self._level("more groups ahead", new[0].state)
            await self._ctx.event("GroupAhead", group, text, level=level, states=_states(new))

    def _level(self, message: str, why: str) -> int | None:
        """Of one more such line: debug, if enough others have the same reason. None: the usual one."""
        count = self._sayings.count(why)
        if count == SAID + 1:
            self._ctx.log.warn(message, "for the same reason; lockstep status names them")
        return logging.DEBUG if count > SAID else None

    def reset(self) -> None:
        """Our share of the groups may be another one from now on. What was reported is stored in the state topic."""
        self._views.clear()

    def groups(self) -> tuple[str, ...]:
        """The groups that exist, failing ones included, and those that existed when the source was last described.

        The second kind counts while the source cannot be described: then their offsets on the target matter most.
        """
        rows = self._ctx.state.all(GroupStatus)
        return tuple(sorted({*self._views, *(row.group for row in rows if not row.is_gone)}))

    def phases(self) -> Mapping[str, int]:
        """How many groups are in each phase."""
        counts = dict.fromkeys(("translated", "waiting", "failing"), 0)
        for group in self._views:
            counts[self._row(group).phase] += 1
        return counts

    def count_places(self) -> Mapping[str, int]:
        """How many partitions of groups that could be described are exact, behind, waiting or beyond their places."""
        counts = dict.fromkeys(("exact", "behind", "waiting", AHEAD_ON_TARGET, REWOUND_ON_SOURCE), 0)
        for view in self._views.values():
            ahead = {one.where: one.state for one in view.ahead}
            for where, place in view.translation.places:
                kind = "exact" if place.exact else "waiting" if place.at is None else "behind"
                counts[ahead.get(where, kind)] += 1
        return counts

    def synced_groups(self) -> int:
        """How many groups were brought to their checkpoints on the target."""
        return sum(view.synced and not view.left_alone for view in self._views.values())

    def held_back(self) -> Mapping[str, str]:
        """Groups left alone on the target, with the reason."""
        return {group: view.left_alone for group, view in sorted(self._views.items()) if view.left_alone}

    def held_for(self) -> Mapping[str, int]:
        """How many groups are left alone for which of `HELD`."""
        counts = dict.fromkeys(HELD, 0)
        for view in self._views.values():
            for why in {view.held, *(one.state for one in view.ahead)} - {""}:
                counts[why] += 1
        return counts

    def _view(self, group: str) -> _GroupView:
        """As it is now: to be asked again after every await."""
        return self._views.get(group, _GroupView())

    def _is_gone(self, group: str) -> bool:
        row = self._ctx.state.get(GroupStatus, group)
        return group not in self._views and row is not None and row.is_gone

    def _row(self, group: str) -> GroupStatus:
        self.rewound(group)
        view = self._views[group]
        written = self._written(group)
        if view.trouble:
            phase, reason = "failing", view.trouble
        else:
            phase, reason = "translated" if written else "waiting", _joined(view.translation.untranslated)
        positions = tuple(
            (topic, partition, int(one.upstream), int(one.downstream))
            for (topic, partition), one in sorted(written.items())
        )
        ahead = {one.where for one in view.ahead}
        behind, waiting = _behind(view.translation, ahead), _waiting(view.translation)
        return GroupStatus(
            group=group,
            phase=phase,
            reason=reason,
            synced=view.synced,
            positions=positions,
            exact=sum(place.exact for where, place in view.translation.places if where not in ahead),
            behind=behind[:LISTED],
            waiting=waiting[:LISTED],
            more_behind=len(behind[LISTED:]),
            more_waiting=len(waiting[LISTED:]),
            held=view.held,
            held_reason=view.held_reason,
            ahead=tuple((*one.where, one.offset, one.place, one.state) for one in view.ahead[:LISTED]),
            more_ahead=len(view.ahead[LISTED:]),
            rewound=tuple((*where, at) for where, at in sorted(view.rewound.items())),
        )

    async def _write(self, groups: Iterable[str]) -> None:
        async with self._writing:
            rows = [self._row(group) for group in groups if group in self._views]
            await self._ctx.state.write_all([row for row in rows if self._ctx.state.differs(row)])

    async def _bury(self, present: Iterable[str], owned: Callable[[str], bool]) -> None:
        living, state = set(present), self._ctx.state
        gone = [
            row for row in state.all(GroupStatus) if row.group not in living and owned(row.group) and not row.is_gone
        ]
        await asyncio.gather(*(self._ctx.event("GroupGone", row.group) for row in gone if row.group in self._views))
        async with self._writing:
            await state.write_all([replace(row, phase="waiting", reason=GROUP_GONE) for row in gone])
            for row in gone:
                self._views.pop(row.group, None)


def _behind(standing: TranslationState, ahead: Collection[TopicPartition]) -> tuple[tuple[str, int, int], ...]:
    places = [(where, place) for where, place in standing.places if where not in ahead]
    found = [(*where, place.behind) for where, place in places if place.at is not None and place.behind]
    return tuple(sorted(found, key=lambda one: -one[2]))


def _states(ahead: Iterable[Ahead]) -> dict[str, str]:
    return {f"{one.where[0]}-{one.where[1]}": one.state for one in ahead}


def _waiting(standing: TranslationState) -> tuple[tuple[str, int, str], ...]:
    return tuple((*where, place.why) for where, place in standing.places if place.at is None)


def _joined(reasons: tuple[str, ...]) -> str:
    more = len(reasons) - SHOWN
    return "; ".join(reasons[:SHOWN]) + (f"; and {more} partitions more" if more > 0 else "")
