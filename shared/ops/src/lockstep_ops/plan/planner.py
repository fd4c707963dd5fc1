"""Makes the plan of some flows of a file: reads both clusters of each, and nothing is changed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version

from lockstep_config import FlowSettings
from lockstep_ops.cluster_snapshot import ClusterSnapshots
from lockstep_ops.needed_topics import coming_topics
from lockstep_ops.plan.effective_settings import EffectiveSettings
from lockstep_ops.plan.flow_reader import FlowReader, with_claims
from lockstep_ops.plan.record_sampler import measured_rate
from lockstep_ops.plan.rules.copy_forecast import CopyRate
from lockstep_ops.plan.rules.flow_facts import FlowFacts
from lockstep_ops.plan.rules.flow_plan import Plan
from lockstep_ops.plan.rules.plan_builder import build_flow_plan, build_plan
from lockstep_ops.services import served_flows
from lockstep_ops.work_progress import WorkProgress
from lockstep_runtime.util.clock import now_ms
from lockstep_state.names import Flow


@dataclass(frozen=True, slots=True)
class Planner:
    """A maker of plans.

    `timeout` is the seconds within which a cluster has to answer. `rate` is the bytes a second that each flow copies;
    None: not stated. `measure` reads from the source for some seconds, and takes that as the rate.
    """

    timeout: float
    rate: int | None = None
    measure: bool = False

    async def plan(self, effective: EffectiveSettings, flows: Sequence[FlowSettings], progress: WorkProgress) -> Plan:
        """Return the plan of `flows`, which are some of the file's.

        Args:
            effective: The file.
            flows: The flows that are planned.
            progress: It is kept up to date, for a display.

        Raises:
            ClusterError: A cluster does not answer, or refuses.
        """
        loaded = effective.configuration
        enabled = {settings.flow for settings in loaded.flows if settings.enabled}
        clusters, coming = ClusterSnapshots(flows, "plan"), coming_topics(served_flows(loaded))
        facts: list[FlowFacts] = []
        rates: list[CopyRate | None] = []
        for settings in flows:
            opposite = Flow(settings.flow.target, settings.flow.source) in enabled
            reader = FlowReader(settings, clusters, coming, progress, self.timeout, opposite=opposite)
            flow_facts = await reader.read()
            rate, remark = await self._given_rate(flow_facts, progress)
            facts.append(replace(flow_facts, remarks=(*flow_facts.remarks, remark)) if remark else flow_facts)
            rates.append(rate)
        flow_plans = [
            build_flow_plan(flow_facts, rate, effective.flows[str(flow_facts.settings.flow)])
            for flow_facts, rate in zip(with_claims(facts), rates, strict=True)
        ]
        return build_plan(str(loaded.path), now_ms(), version("lockstep-kafka-ops"), flow_plans)

    async def _given_rate(self, facts: FlowFacts, progress: WorkProgress) -> tuple[CopyRate | None, str]:
        if self.rate is not None:
            return CopyRate(self.rate, "stated"), ""
        if not (self.measure and facts.copied):
            return None, ""
        progress.begin(f"{facts.settings.flow}: measuring", 1)
        rate_and_remark = await measured_rate(facts.settings, facts.logs)
        progress.advance()
        return rate_and_remark
