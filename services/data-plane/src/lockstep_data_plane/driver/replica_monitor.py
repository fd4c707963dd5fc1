"""The services of a flow that have no replica. A service that does not run writes no row about it."""

from lockstep_kafka.admin.replicas import describe_replicas
from lockstep_kafka.common.errors import ClusterError
from lockstep_runtime.flow.context import FlowContext
from lockstep_state.commands.command_vocabulary import SERVICES

CHECK_INTERVAL_S = 10.0


class ReplicaMonitor:
    """The replicas of one flow's services, as their consumer groups show them while the driver copies."""

    def __init__(self, ctx: FlowContext) -> None:
        self._ctx = ctx
        self._checked_at = float("-inf")
        self.absent: frozenset[str] = frozenset()
        """Services whose group had no member at the last check."""
        self.unknown = self._other_services()
        """Services whose group was not described: before the first check, or because the target did not answer."""

    def _other_services(self) -> frozenset[str]:
        return frozenset(name for name in SERVICES if name != self._ctx.service and self._ctx.settings.needs(name))

    async def observe_if_due(self) -> None:
        """Describe the groups if `CHECK_INTERVAL_S` has passed since the last check.

        A group that may not be described counts as one with members, as in `lockstep status`.
        """
        ctx = self._ctx
        now = ctx.clock.monotonic()
        if now - self._checked_at < CHECK_INTERVAL_S:
            return
        self._checked_at = now
        services = self._other_services()
        try:
            replicas = await describe_replicas(ctx.target, ctx.settings, services)
        except ClusterError:  # a slot that needs the target to act reports it
            self.absent, self.unknown = frozenset(), services
            return
        self.absent = frozenset(name for name, count in replicas.counts.items() if not count)
        self.unknown = replicas.unknown
