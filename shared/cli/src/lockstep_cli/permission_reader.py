"""Which permissions a flow lacks on one of its clusters: brokers are asked what we may do there."""

from collections.abc import Collection, Sequence

from lockstep_cli.permission_check import HeldPermissions, missing_permissions, named_groups, topics_for
from lockstep_config.credentials.permissions import EVERY, Grant
from lockstep_runtime.kafka.admin import Admin

NO_TOPIC = "lockstep-no-topic"
"""The name of a topic that is on no cluster."""


async def missing_rights(
    cluster: Admin, grants: Sequence[Grant], every: Sequence[str], there: Collection[str]
) -> tuple[str, ...]:
    """A sentence for each, which ends with the command that grants it. `every`: the topics that `*` stands for;
    `there`: the topics that the cluster lists. Nothing can be said of topics that we may describe and that are not
    there, nor of transactional ids. Raises ClusterError."""
    topics = await cluster.topic_operations(topics_for(grants, there, every))
    groups = await cluster.group_operations(named_groups(grants))
    hidden = dict.fromkeys(topics.denied, frozenset[str]())
    held = HeldPermissions(await cluster.cluster_operations(), topics.done | hidden, groups.done)
    lacks = [
        *(
            str(cluster.access.remedy(lack.grant.resource, lack.grant.name, lack.grant.operation))
            for lack in missing_permissions(grants, held, every)
        ),
        *map(str, groups.denied.values()),
    ]
    return tuple(dict.fromkeys(lacks))


async def hidden_topics(source: Admin, there: Collection[str]) -> str:
    """Why the flow selects no topic of those that its source lists. Empty where the source lists all of its topics:
    then it has none. Brokers list only topics that we may describe, and by its name they refuse any other one, also one
    that does not exist. Raises ClusterError."""
    asked = await source.topic_operations([NO_TOPIC])
    if not asked.denied:
        return ""
    shown = "no topic that passes topics and topics.exclude" if there else "no topic"
    return f"{source.alias} shows {shown}. It has none, or {source.access.remedy('topic', EVERY, 'Read')}"
