"""Builds the plan of a flow, and of a file, from the facts that were found. Pure."""

from collections.abc import Mapping, Sequence

from lockstep_ops.plan.rules.changes import planned_changes
from lockstep_ops.plan.rules.copy_forecast import CopyRate, copy_forecast, settled_rate
from lockstep_ops.plan.rules.flow_facts import ClusterState, FlowFacts
from lockstep_ops.plan.rules.flow_plan import BasisTopic, ClusterBasis, FlowPlan, Plan, summarize
from lockstep_ops.plan.rules.hazards import find_hazards
from lockstep_ops.plan.rules.link_traffic import forecast_traffic


def build_flow_plan(facts: FlowFacts, rate: CopyRate | None, settings: Mapping[str, str]) -> FlowPlan:
    """Return the plan of a flow.

    Args:
        facts: The facts of the flow.
        rate: The rate that is stated or measured, if any.
        settings: The effective settings, by key, without secrets.
    """
    copy = copy_forecast(facts, settled_rate(rate, facts.settings.data_plane.max_bytes_per_s.default))
    return FlowPlan(
        flow=str(facts.settings.flow),
        enabled=facts.settings.enabled,
        changes=planned_changes(facts),
        copy=copy,
        traffic=forecast_traffic(facts),
        groups=facts.groups,
        held_back=facts.held_back,
        hazards=find_hazards(facts, copy),
        rights=facts.rights,
        remarks=facts.remarks,
        source=cluster_basis(facts.source),
        target=cluster_basis(facts.target),
        settings=dict(settings),
    )


def build_plan(file: str, made_at_ms: int, release: str, flows: Sequence[FlowPlan]) -> Plan:
    """Return the plan of all flows of a file."""
    flow_plans = tuple(flows)
    return Plan(file=file, made_at_ms=made_at_ms, release=release, flows=flow_plans, summary=summarize(flow_plans))


def cluster_basis(facts: ClusterState) -> ClusterBasis:
    """Return what a plan relies on: the cluster itself, its topics, their partitions and configs."""
    return ClusterBasis(
        alias=facts.alias,
        bootstrap=facts.bootstrap,
        cluster_id=facts.cluster_id,
        topics={
            name: BasisTopic(
                topic_id=topic.topic_id,
                partitions=topic.partitions,
                configs=dict(sorted({**topic.configs, **topic.own}.items())),
            )
            for name, topic in sorted(facts.topics.items())
            if topic.is_there
        },
    )
