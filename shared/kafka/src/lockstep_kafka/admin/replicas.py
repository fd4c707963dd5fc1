"""The number of replicas of a service that run, counted as members of the service's group."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lockstep_config import FlowSettings
from lockstep_kafka.admin.admin import Admin
from lockstep_state.names import service_group


@dataclass(frozen=True, slots=True)
class Replicas:
    """The number of replicas of each service that run.

    A service whose group we may not describe is in neither field.
    """

    counts: Mapping[str, int]
    unknown: frozenset[str]
    """Services whose groups the target did not describe for another reason than a missing right."""


async def describe_replicas(target: Admin, settings: FlowSettings, services: Iterable[str]) -> Replicas:
    """Return the replicas of these services of the flow, as the target describes their groups.

    Raises:
        ClusterError: The request as a whole failed.
    """
    groups = {service_group(name, settings.flow, settings.group_id): name for name in services}
    described = await target.describe_groups(groups)
    return Replicas(
        {groups[name]: group.members for name, group in described.done.items()},
        frozenset(groups[name] for name in described.failed),
    )


async def count_replicas(target: Admin, settings: FlowSettings, services: Iterable[str]) -> Mapping[str, int]:
    """Return how many replicas of each service run for the flow.

    A service that the target does not describe is absent.

    Raises:
        ClusterError: The request as a whole failed.
    """
    return (await describe_replicas(target, settings, services)).counts
