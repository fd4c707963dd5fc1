"""Reads which permissions a flow lacks on one of its clusters. Brokers are asked what we may do."""

from collections.abc import Collection, Sequence

from lockstep_config.credentials.permissions import EVERY, Grant, Remedy
from lockstep_kafka.admin.admin import Admin
from lockstep_ops.permission_check import HeldPermissions, missing_permissions, named_groups, topics_for

NO_TOPIC = "lockstep-no-topic"
"""The name of a topic that is on no cluster."""


async def missing_rights(
    cluster: Admin, grants: Sequence[Grant], every: Sequence[str], there: Collection[str]
) -> tuple[Remedy, ...]:
    """Return who lacks which right, and the command that grants it.

    Nothing can be said of topics that we may describe and that do not exist, nor of transactional ids.

    Args:
        cluster: The cluster.
        grants: The rights.
        every: Topics that `*` stands for.
        there: Topics that the cluster lists.

    Raises:
        ClusterError: The cluster does not answer, or refuses.
    """
    topics = await cluster.topic_operations(topics_for(grants, there, every))
    groups = await cluster.group_operations(named_groups(grants))
    hidden = dict.fromkeys(topics.denied, frozenset[str]())
    held = HeldPermissions(await cluster.cluster_operations(), topics.done | hidden, groups.done)
    lacks = [
        *(
            cluster.access.remedy(lack.grant.resource, lack.grant.name, lack.grant.operation)
            for lack in missing_permissions(grants, held, every)
        ),
        *(Remedy(str(denied), "") if denied.remedy is None else denied.remedy for denied in groups.denied.values()),
    ]
    return tuple(dict.fromkeys(lacks))


async def unknown_rights(cluster: Admin) -> str:
    """Return a sentence if the brokers of a cluster do not say what we may do, else "".

    With a sentence no right is missing as far as anybody can know.

    Raises:
        ClusterError: The cluster does not answer, or refuses.
    """
    if await cluster.cluster_operations() is not None:
        return ""
    return f"rights on {cluster.alias} are not checked: its brokers do not say what a client may do"


async def hidden_topics(source: Admin, there: Collection[str]) -> Remedy | None:
    """Return why the flow selects no topic of those that its source lists.

    It returns None if the source lists all of its topics: then it has none that is selected. Brokers list only topics
    that we may describe. They refuse any other one by its name, also one that does not exist.

    Raises:
        ClusterError: The source does not answer, or refuses.
    """
    asked = await source.topic_operations([NO_TOPIC])
    if not asked.denied:
        return None
    shown = "no topic that passes topics and topics.exclude" if there else "no topic"
    remedy = source.access.remedy("topic", EVERY, "Read")
    return Remedy(f"{source.alias} shows {shown}. It has none, or {remedy.lacks}", remedy.command)
