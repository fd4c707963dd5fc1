"""Checks that the file and the clusters still are what a plan relies on (`lockstep run --plan`)."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from lockstep_ops.exit_codes import CannotUse
from lockstep_ops.plan.plan_document import read_basis, read_body
from lockstep_ops.plan.rules.flow_plan import BasisTopic, ClusterBasis

REACHED_WITHIN_S = 10.0

NAMED_CHANGES = 1
"""The number of changes that a refusal names. For more it only says how many."""


def setting_changes(flow: str, planned: Mapping[str, str], present: Mapping[str, str]) -> Iterator[str]:
    """Yield the differences of a flow's effective settings."""
    for key in sorted(planned.keys() | present.keys()):
        if planned.get(key) != present.get(key):
            yield f"{flow}: {key} was {_shown(planned.get(key))} and is {_shown(present.get(key))}"


def basis_changes(planned: ClusterBasis, present: ClusterBasis) -> Iterator[str]:
    """Yield the differences of a cluster."""
    if planned.cluster_id != present.cluster_id:
        yield f"{present.alias} was cluster {planned.cluster_id} and is cluster {present.cluster_id}"
        return
    for name in sorted(planned.topics.keys() | present.topics.keys()):
        planned_topic, present_topic = planned.topics.get(name), present.topics.get(name)
        if planned_topic is None:
            yield f"topic {name} is new on {present.alias}"
        elif present_topic is None:
            yield f"topic {name} is gone from {present.alias}, or no longer selected"
        else:
            yield from _topic_changes(f"topic {name} on {present.alias}", planned_topic, present_topic)


def _topic_changes(topic: str, planned: BasisTopic, present: BasisTopic) -> Iterator[str]:
    if planned.topic_id != present.topic_id:
        yield f"{topic} was deleted and created again"
    if planned.partitions != present.partitions:
        yield f"{topic} had {planned.partitions} partitions and has {present.partitions}"
    for key in sorted(planned.configs.keys() | present.configs.keys()):
        if planned.configs.get(key) != present.configs.get(key):
            yield f"{topic}: {key} was {_shown(planned.configs.get(key))} and is {_shown(present.configs.get(key))}"


def _shown(value: str | None) -> str:
    return value or "unset"


async def require_unchanged(plan: Path, file: Path) -> None:
    """Check that nothing has changed since the plan was made.

    Raises:
        CannotUse: Something has. The message is one sentence that names it.
    """
    from lockstep_kafka.common.errors import ClusterError
    from lockstep_ops.cluster_snapshot import ClusterSnapshots
    from lockstep_ops.needed_topics import coming_topics
    from lockstep_ops.plan.effective_settings import read_effective
    from lockstep_ops.plan.flow_reader import FlowReader
    from lockstep_ops.plan.rules.plan_builder import cluster_basis
    from lockstep_ops.services import served_flows
    from lockstep_ops.work_progress import WorkProgress

    body = read_body(plan)
    effective = read_effective(file, os.environ)
    flows = {str(settings.flow): settings for settings in served_flows(effective.configuration)}
    flow_plans = {str(flow_plan.get("flow")): flow_plan for flow_plan in body["flows"] if isinstance(flow_plan, dict)}
    if flow_plans.keys() != flows.keys():
        differs = min(flow_plans.keys() ^ flows.keys())
        owner = "the plan" if differs in flow_plans else str(file)
        raise CannotUse(f"{plan} is not a plan of {file}: only {owner} has the flow {differs}; make it anew")
    changes: list[str] = []
    for name, flow_plan in flow_plans.items():
        changes += setting_changes(name, flow_plan.get("settings", {}), effective.flows[name])
    if not changes:
        clusters, coming = ClusterSnapshots(flows.values(), "plan"), coming_topics(flows.values())
        for name, flow_plan in flow_plans.items():
            bases = read_basis(plan, flow_plan.get("source")), read_basis(plan, flow_plan.get("target"))
            try:
                topics = await FlowReader(flows[name], clusters, coming, WorkProgress(), REACHED_WITHIN_S).topics()
            except ClusterError as error:
                raise CannotUse(f"{plan} cannot be checked: {error}") from error
            changes += basis_changes(bases[0], cluster_basis(topics.source))
            changes += basis_changes(bases[1], cluster_basis(topics.target))
    if changes:
        more = f" (and {len(changes) - NAMED_CHANGES:,} more)" if len(changes) > NAMED_CHANGES else ""
        raise CannotUse(f"{plan} does not hold any more: {changes[0]}{more}; nothing was started, make the plan anew")
