"""How many replicas of a service run: members of its group."""

from collections.abc import Iterable

from lockstep_config import FlowSettings
from lockstep_protocol.names import service_group
from lockstep_runtime.kafka.admin import Admin


async def count_replicas(target: Admin, settings: FlowSettings, services: Iterable[str]) -> dict[str, int]:
    """How many replicas of each service run for the flow. Those that we may not describe are absent. Raises
    ClusterError."""
    groups = {service_group(name, settings.flow, settings.group_id): name for name in services}
    described = await target.describe_groups(groups)
    return {groups[name]: group.members for name, group in described.done.items()}
