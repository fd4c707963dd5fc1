"""How many replicas of a service run: members of its group."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lockstep_config import FlowSettings
from lockstep_kafka.admin.admin import Admin
from lockstep_state.names import service_group


@dataclass(frozen=True, slots=True)
class Replicas:
    """How many replicas of each service run. A service whose group we may not describe is in neither."""

    counts: Mapping[str, int]
    unknown: frozenset[str]
    """Services whose groups the target did not describe for another reason."""


async def describe_replicas(target: Admin, settings: FlowSettings, services: Iterable[str]) -> Replicas:
    """What the target knows about the replicas of these services for the flow. Raises ClusterError."""
    groups = {service_group(name, settings.flow, settings.group_id): name for name in services}
    described = await target.describe_groups(groups)
    return Replicas(
        {groups[name]: group.members for name, group in described.done.items()},
        frozenset(groups[name] for name in described.failed),
    )


async def count_replicas(target: Admin, settings: FlowSettings, services: Iterable[str]) -> Mapping[str, int]:
    """How many replicas of each service run for the flow. Those that the target does not describe are absent. Raises
    ClusterError.
    """
    return (await describe_replicas(target, settings, services)).counts
