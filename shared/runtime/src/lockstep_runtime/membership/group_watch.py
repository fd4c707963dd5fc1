"""Watch whether the group of a service still serves its member: it answers, and gives it a share of the work."""

import asyncio
from collections.abc import Callable

from lockstep_kafka.common.asyncio_util import to_next_tick
from lockstep_kafka.common.errors import ClusterError
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.membership.leader_loop import TICK
from lockstep_runtime.util.liveness_timer import LivenessTimer
from lockstep_state.names import COMMANDS_PARTITIONS, service_group

GROUP_SILENT_AFTER = 60.0
"""Seconds without an answer of the group after which its consumer hangs.

A group in a rebalance keeps its members waiting for a quarter of that.
"""

NOTHING_HELD_AFTER = 20.0
"""Seconds as a member without a partition after which the instance joins as a new member, once.

A group remembers the partitions of an instance id, also if the commands topic did not exist then. It assigns these
again without a rebalance.
"""


class GroupLost(ClusterError):
    """The consumer of the commands topic ended; the next session joins again."""


class InstanceTaken(GroupLost):
    """Another process joined the group under our instance's name; the next session joins under another name."""

    def __init__(self, alias: str, group: str, instance: str) -> None:
        sentence = f"cluster {alias}: another process joined group {group} as {instance!r}"
        super().__init__(alias, f"{sentence}: give each replica its own --instance")
        self.instance = instance


class GroupWatch:
    """Watch the group of one flow, in all of its sessions."""

    def __init__(self, ctx: FlowContext) -> None:
        self._ctx = ctx
        self.rejoins = False
        """The next membership is that of a new member, without the instance's former partitions."""

    async def run(self, trouble: Callable[[], str]) -> None:
        """Watch for as long as the group serves this member.

        Args:
            trouble: Returns why the target cannot be reached just now.

        Raises:
            GroupLost: The group has not answered for long although the target can be reached. Its consumer hangs, and
                no
            instance would ever lead here again. Or the group has assigned nothing for long.
        """
        ctx, timer, alive = self._ctx, LivenessTimer(), True
        held_at = ctx.clock.monotonic()
        while timer.seconds_since(alive, ctx.clock.monotonic()) <= GROUP_SILENT_AFTER:
            await asyncio.sleep(to_next_tick(TICK))
            alive = ctx.group_is_current or bool(trouble())
            if ctx.leadership.held:
                self.rejoins = False
            if ctx.leadership.held or not ctx.group_is_current:
                held_at = ctx.clock.monotonic()
            elif ctx.clock.monotonic() - held_at > NOTHING_HELD_AFTER and not self.rejoins:
                group = service_group(ctx.service, ctx.flow, ctx.settings.group_id)
                if await self._is_full(group):
                    held_at = ctx.clock.monotonic()
                    continue
                self.rejoins = True
                text = f"group {group} gives {ctx.instance} no partition, joining as a new member"
                raise GroupLost(ctx.target.alias, f"cluster {ctx.target.alias}: {text}")
        alias = ctx.target.alias
        raise GroupLost(
            alias, f"cluster {alias}: nothing heard of our group for {GROUP_SILENT_AFTER:.0f} s, joining anew"
        )

    async def _is_full(self, group: str) -> bool:
        """Return whether the group has more members than partitions, so that some have none.

        A member of a full group that joins again only takes the share of another one. If the number is unknown, the
        group counts as full, and the next check asks again.
        """
        try:
            return await self._ctx.target.count_members(group) > COMMANDS_PARTITIONS
        except ClusterError:
            return True
