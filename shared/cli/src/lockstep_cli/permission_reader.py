"""Which permissions a flow lacks on one of its clusters: brokers are asked what we may do there."""

from collections.abc import Collection, Sequence

from lockstep_cli.permission_check import HeldPermissions, missing_permissions, named_groups, topics_for
from lockstep_config.credentials.permissions import Grant
from lockstep_runtime.kafka.admin import Admin


async def missing_rights(
    cluster: Admin, grants: Sequence[Grant], every: Sequence[str], there: Collection[str]
) -> tuple[str, ...]:
    """A sentence for each, which ends with the command that grants it. `every`: the topics that `*` stands for;
    `there`: the topics of the cluster. Nothing can be said of topics that are not there, nor of transactional ids.
    Raises ClusterError."""
    topics = await cluster.topic_operations(topics_for(grants, there, every))
    groups = await cluster.group_operations(named_groups(grants))
    held = HeldPermissions(await cluster.cluster_operations(), topics.done, groups.done)
    lacks = [
        *(
            str(cluster.access.remedy(lack.grant.resource, lack.grant.name, lack.grant.operation))
            for lack in missing_permissions(grants, held, every)
        ),
        *map(str, (*topics.denied.values(), *groups.denied.values())),
    ]
    return tuple(dict.fromkeys(lacks))
