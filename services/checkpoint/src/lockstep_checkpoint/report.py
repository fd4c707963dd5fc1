"""What operators see of each group: its row in the state topic and the events of its life."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from lockstep_checkpoint.exact import Place
from lockstep_checkpoint.plan import TargetPartition
from lockstep_protocol.records import Checkpoint
from lockstep_protocol.state import GroupStatus
from lockstep_runtime.context import FlowContext
from lockstep_runtime.sayings import SAID, Sayings

__all__ = ["GONE", "GroupReport", "Standing"]

GONE = "it has no offsets in mirrored topics on the source any more"
SHOWN = 3
"""Reasons a row spells out; the rest is counted."""

LISTED = 50
"""Partitions a row lists that are behind, and as many that wait; the rest is counted."""

Written = Callable[[str], Mapping[TargetPartition, Checkpoint]]


@dataclass(frozen=True, slots=True)
class Standing:
    """How a group that could be looked at stands: `untranslated` are sentences for people, `places` are by target
    partition, in order."""

    untranslated: tuple[str, ...] = ()
    places: tuple[tuple[TargetPartition, Place], ...] = ()


@dataclass(frozen=True, slots=True)
class _View:
    """What this process knows of a group beside its checkpoints."""

    trouble: str = ""
    standing: Standing = Standing()
    synced: bool = False
    held: str = ""


class GroupReport:
    """Keeps the group rows of one flow true and says what changed. `written` answers with a group's acknowledged
    checkpoints.

    Looks at the source and at the target go on side by side, and each tells what it found: one row at a time is
    compared and written, so that what both have to say is said once.
    """

    def __init__(self, ctx: FlowContext, written: Written) -> None:
        self._ctx = ctx
        self._written = written
        self._views: dict[str, _View] = {}
        self._sayings = Sayings()
        self._writing = asyncio.Lock()

    async def looked_at(
        self, standing: Mapping[str, Standing], failed: Mapping[str, str], owned: Callable[[str], bool]
    ) -> tuple[str, ...]:
        """A round looked at the source: these groups are there (and stand so), these could not be looked at.

        Returns the groups found since the last round. Every owned group that is in neither is gone.
        """
        found = [group for group in standing if group not in self._views]
        rows = {group: self._ctx.state.get(GroupStatus, group) for group in found}
        new = [group for group, row in rows.items() if row is None or row.reason == GONE]
        await asyncio.gather(*(self._ctx.event("GroupFound", group) for group in new))
        self._views.update({group: _View(synced=row is not None and row.synced) for group, row in rows.items()})
        self._sayings.only(why for view in self._views.values() for why in (view.trouble, view.held) if why)
        for group, trouble in failed.items():
            if not self._view(group).trouble:
                quiet = self._one_of_many("more groups failing", trouble)
                await self._ctx.event(
                    "GroupFailing", group, f"{group}: {trouble}", loud=True, quiet=quiet, reason=trouble
                )
            self._views[group] = replace(self._view(group), trouble=trouble)
        for group, how in standing.items():
            if self._view(group).trouble:
                await self._ctx.event("GroupRecovered", group)
            self._views[group] = replace(self._view(group), trouble="", standing=how)
        await self._write(group for group in (*standing, *failed))
        await self._bury(standing.keys() | failed.keys(), owned)
        return tuple(found)

    async def synced(self, group: str, moved: Mapping[TargetPartition, int]) -> None:
        """The target's group stands at or beyond every checkpoint; `moved` are the offsets just committed for it, if
        any. Without effect on a group that is gone from the source.
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
        if not view.synced or view.held:
            self._views[group] = replace(self._view(group), synced=True, held="")
            await self._write([group])

    def held(self, group: str, why: str) -> None:
        """The target's group is left as it is. Said once for each reason. Without effect on one that is gone from the
        source."""
        view = self._view(group)
        if view.held == why or self._is_gone(group):
            return
        level = logging.DEBUG if self._one_of_many("more groups left alone", why) else logging.INFO
        text = f"{group} on {self._ctx.flow.target}: {why}"
        self._ctx.log.say("group left alone", text, level=level, group=group, reason=why)
        self._views[group] = replace(view, held=why)

    def _one_of_many(self, message: str, why: str) -> bool:
        """Whether enough others lack the same permission that this one is not worth a line."""
        count = self._sayings.count(why)
        if count == SAID + 1:
            self._ctx.log.warn(message, "for want of the same permission; lockstep status names them")
        return count > SAID

    def forget(self) -> None:
        """Our share of the groups may be another one from now on. What was said stands in the state topic."""
        self._views.clear()

    def groups(self) -> tuple[str, ...]:
        """The groups that are there, failing ones included, and those that were when the source was last looked at.

        The second count where the source cannot be looked at now: that is when their offsets on the target matter most.
        """
        rows = self._ctx.state.all(GroupStatus)
        return tuple(sorted({*self._views, *(row.group for row in rows if row.reason != GONE)}))

    def phases(self) -> Mapping[str, int]:
        """How many groups are in each phase."""
        counts = dict.fromkeys(("translated", "waiting", "failing"), 0)
        for group in self._views:
            counts[self._row(group).phase] += 1
        return counts

    def standing(self) -> Mapping[str, int]:
        """How many partitions of groups that could be looked at are exact, behind and waiting."""
        counts = dict.fromkeys(("exact", "behind", "waiting"), 0)
        for view in self._views.values():
            for _, place in view.standing.places:
                counts["exact" if place.exact else "waiting" if place.at is None else "behind"] += 1
        return counts

    def synced_groups(self) -> int:
        """How many groups were brought to their checkpoints on the target."""
        return sum(view.synced for view in self._views.values())

    def held_back(self) -> Mapping[str, str]:
        """Groups left alone on the target, with the reason."""
        return {group: view.held for group, view in sorted(self._views.items()) if view.held}

    def _view(self, group: str) -> _View:
        """As it is now: to be asked again after every await."""
        return self._views.get(group, _View())

    def _is_gone(self, group: str) -> bool:
        row = self._ctx.state.get(GroupStatus, group)
        return group not in self._views and row is not None and row.reason == GONE

    def _row(self, group: str) -> GroupStatus:
        view = self._views[group]
        written = self._written(group)
        if view.trouble:
            phase, reason = "failing", view.trouble
        else:
            phase, reason = "translated" if written else "waiting", _joined(view.standing.untranslated)
        positions = tuple(
            (topic, partition, int(one.upstream), int(one.downstream))
            for (topic, partition), one in sorted(written.items())
        )
        behind, waiting = _behind(view.standing), _waiting(view.standing)
        return GroupStatus(
            group=group,
            phase=phase,
            reason=reason,
            synced=view.synced,
            positions=positions,
            exact=sum(place.exact for _, place in view.standing.places),
            behind=behind[:LISTED],
            waiting=waiting[:LISTED],
            more_behind=len(behind[LISTED:]),
            more_waiting=len(waiting[LISTED:]),
        )

    async def _write(self, groups: Iterable[str]) -> None:
        async with self._writing:
            rows = [self._row(group) for group in groups if group in self._views]
            await self._ctx.state.write_all([row for row in rows if self._ctx.state.differs(row)])

    async def _bury(self, present: Iterable[str], owned: Callable[[str], bool]) -> None:
        living = set(present)
        for row in self._ctx.state.all(GroupStatus):
            if row.group in living or not owned(row.group) or row.reason == GONE:
                continue
            if row.group in self._views:
                await self._ctx.event("GroupGone", row.group)
            async with self._writing:
                await self._ctx.state.write_if_changed(replace(row, phase="waiting", reason=GONE))
                self._views.pop(row.group, None)


def _behind(standing: Standing) -> tuple[tuple[str, int, int], ...]:
    found = [(*where, place.behind) for where, place in standing.places if place.at is not None and place.behind]
    return tuple(sorted(found, key=lambda one: -one[2]))


def _waiting(standing: Standing) -> tuple[tuple[str, int, str], ...]:
    return tuple((*where, place.why) for where, place in standing.places if place.at is None)


def _joined(reasons: tuple[str, ...]) -> str:
    more = len(reasons) - SHOWN
    return "; ".join(reasons[:SHOWN]) + (f"; and {more} partitions more" if more > 0 else "")
