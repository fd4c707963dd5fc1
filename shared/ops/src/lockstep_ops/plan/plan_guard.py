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


def setting_changes(flow: str, then: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """Yield the differences of a flow's effective settings."""
    for key in sorted(then.keys() | now.keys()):
        if then.get(key) != now.get(key):
            yield f"{flow}: {key} was {_shown(then.get(key))} and is {_shown(now.get(key))}"


def basis_changes(then: ClusterBasis, now: ClusterBasis) -> Iterator[str]:
    """Yield the differences of a cluster."""
    if then.cluster_id != now.cluster_id:
        yield f"{now.alias} was cluster {then.cluster_id} and is cluster {now.cluster_id}"
        return
    for name in sorted(then.topics.keys() | now.topics.keys()):
        before, after = then.topics.get(name), now.topics.get(name)
        if before is None:
            yield f"topic {name} is new on {now.alias}"
        elif after is None:
            yield f"topic {name} is gone from {now.alias}, or no longer selected"
        else:
            yield from _topic_changes(f"topic {name} on {now.alias}", before, after)


def _topic_changes(topic: str, then: BasisTopic, now: BasisTopic) -> Iterator[str]:
    if then.topic_id != now.topic_id:
        yield f"{topic} was deleted and created again"
    if then.partitions != now.partitions:
        yield f"{topic} had {then.partitions} partitions and has {now.partitions}"
    for key in sorted(then.configs.keys() | now.configs.keys()):
        if then.configs.get(key) != now.configs.get(key):
            yield f"{topic}: {key} was {_shown(then.configs.get(key))} and is {_shown(now.configs.get(key))}"


def _shown(value: str | None) -> str:
    return value or "unset"


async def require_unchanged(plan: Path, file: Path, timeout: float = REACHED_WITHIN_S) -> None:
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
    planned = {str(one.get("flow")): one for one in body["flows"] if isinstance(one, dict)}
    if planned.keys() != flows.keys():
        differs = min(planned.keys() ^ flows.keys())
        where = "the plan" if differs in planned else str(file)
        raise CannotUse(f"{plan} is not a plan of {file}: only {where} has the flow {differs}; make it anew")
    changes: list[str] = []
    for name, one in planned.items():
        changes += setting_changes(name, one.get("settings", {}), effective.flows[name])
    if not changes:
        clusters, coming = ClusterSnapshots(flows.values(), "plan"), coming_topics(flows.values())
        for name, one in planned.items():
            then = read_basis(plan, one.get("source")), read_basis(plan, one.get("target"))
            try:
                topics = await FlowReader(flows[name], clusters, coming, WorkProgress(), timeout).topics()
            except ClusterError as why:
                raise CannotUse(f"{plan} cannot be checked: {why}") from why
            changes += basis_changes(then[0], cluster_basis(topics.source))
            changes += basis_changes(then[1], cluster_basis(topics.target))
    if changes:
        more = f" (and {len(changes) - NAMED_CHANGES:,} more)" if len(changes) > NAMED_CHANGES else ""
        raise CannotUse(f"{plan} does not hold any more: {changes[0]}{more}; nothing was started, make the plan anew")
