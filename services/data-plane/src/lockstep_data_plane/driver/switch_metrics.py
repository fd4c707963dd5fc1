"""The metrics of a flow's readiness for a switch of its clients to the target."""

from collections.abc import Iterator

from lockstep_data_plane.driver import metrics as m
from lockstep_data_plane.driver.metrics_collector import MetricsCollector
from lockstep_data_plane.driver.replica_monitor import ReplicaMonitor
from lockstep_data_plane.driver.source_monitor import TROUBLE
from lockstep_rules.groups.group_readings import GroupReadings
from lockstep_rules.switch.switch_readiness import (
    FailingPart,
    SwitchFacts,
    SwitchPartition,
    count_by_reason,
    find_blockers,
    is_ready,
)
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.state.desired_state import DesiredPhase
from lockstep_runtime.state.failing_parts import failing_parts, groups_unknown
from lockstep_runtime.telemetry.metrics import Sample
from lockstep_state.commands.command_vocabulary import SERVICES, Connector
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import GroupStatus, SourceGroupsStatus

TARGET_TROUBLE = "target"
"""The runtime's name for the trouble of a target that does not answer (`FlowRunner`)."""


class SwitchMetrics:
    """The switch metrics of one flow while its driver leads, also while the flow is stopped."""

    def __init__(self, ctx: FlowContext, collector: MetricsCollector, replicas: ReplicaMonitor) -> None:
        self._ctx = ctx
        self._collector = collector
        self._replicas = replicas
        ctx.metrics.ask(self.samples)

    def samples(self) -> Iterator[Sample]:
        """Yield readiness and blockers; nothing while another replica leads."""
        if not self._ctx.is_acting:
            return
        flow, blockers = str(self._ctx.flow), find_blockers(self.facts(), self._ctx.settings.switch_limits)
        yield Sample(m.SWITCH_READY, (flow,), is_ready(blockers))
        for reason, count in count_by_reason(blockers).items():
            yield Sample(m.SWITCH_BLOCKERS, (flow, reason.word), count)

    def facts(self) -> SwitchFacts:
        """Return the facts of a switch, from the rows and from the last checks of both clusters."""
        states, lags = self._collector.partition_states(), self._collector.lags()
        partitions = [
            SwitchPartition(
                topic,
                number,
                states[topic, number],
                None if lag is None else lag.records,
                None if lag is None else round(lag.seconds * 1000),
                self._ctx.settings.delay_ms(topic),
            )
            for (topic, number), lag in lags.items()
        ]
        readings = self._ctx.state.all(SourceGroupsStatus)
        return SwitchFacts(
            partitions=partitions,
            groups=self._ctx.state.all(GroupStatus),
            groups_unknown=groups_unknown(readings),
            groups_age_ms=GroupReadings.from_rows(readings).oldest_age_ms(
                self._ctx.clock.wall_ms(), self._ctx.settings.switch_limits.max_groups_age_ms
            ),
            resting=list(self._ctx.desired_state.held_back()),
            failing=list(self._failing()),
        )

    def _failing(self) -> Iterator[FailingPart]:
        ctx = self._ctx
        troubles = ctx.periodic.troubles.now
        if TROUBLE in troubles:
            yield FailingPart("source", ctx.flow.source, ReasonCode.REPORTED.to_reason(text=troubles[TROUBLE]))
        if TARGET_TROUBLE in troubles:
            reason = ReasonCode.REPORTED.to_reason(text=troubles[TARGET_TROUBLE])
            yield FailingPart("target", ctx.flow.target, reason)
        services = [service for service in SERVICES if ctx.settings.needs(service)]
        reported = list(failing_parts(ctx.state.rows, ctx.desired_state, services))
        yield from reported
        named = {part.name for part in reported}
        for service in sorted(self._replicas.absent - named):
            yield FailingPart("service", service, ReasonCode.NO_REPLICA.to_reason())
        # The driver asks no target that is away, and none while the flow is stopped. Both are blockers by themselves.
        asks = (
            TARGET_TROUBLE not in troubles and ctx.desired_state.connector(Connector.SOURCE) is not DesiredPhase.STOPPED
        )
        for service in sorted(self._replicas.unknown - named) if asks else ():
            yield FailingPart("service", service, ReasonCode.REPLICAS_UNKNOWN.to_reason())
