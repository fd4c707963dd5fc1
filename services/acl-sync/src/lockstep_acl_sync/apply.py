"""Read ACLs and add those a plan found missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError

from lockstep_acl_sync.bindings import AclBinding
from lockstep_runtime.admin import Admin
from lockstep_runtime.described import AclBinding as DescribedAcl
from lockstep_runtime.errors import NotPermitted, RequestRefused

__all__ = ["AclsAdded", "NoAuthorizer", "add_acls", "read_acls"]

CLUSTER = "the cluster (resource CLUSTER kafka-cluster)"


class NoAuthorizer(Exception):
    """The cluster keeps no ACLs at all (SECURITY_DISABLED). A state of that cluster, not a failure."""

    def __init__(self, alias: str) -> None:
        super().__init__(
            f"cluster {alias} has no authorizer, so there are no ACLs to keep in step (authorizer.class.name)"
        )
        self.alias = alias


@dataclass(frozen=True, slots=True)
class AclsAdded:
    """What became of each binding that was to be added."""

    done: tuple[AclBinding, ...] = ()
    refused: tuple[tuple[AclBinding, NotPermitted | RequestRefused], ...] = ()


async def read_acls(admin: Admin) -> frozenset[AclBinding]:
    """Every binding about topics, of any pattern.

    Raises NoAuthorizer, NotPermitted (DESCRIBE on the cluster), RequestRefused and ClusterUnreachable. librdkafka
    answers with no bindings where the first two hold, so they are asked for then; where the broker's settings may not
    be read, no authorizer looks like no bindings.
    """
    try:
        described = await admin.describe_acls("TOPIC")
    except RequestRefused as refused:
        raise (NoAuthorizer(admin.alias) if refused.code == KafkaError.SECURITY_DISABLED else refused) from refused
    except NotPermitted as denied:
        raise NotPermitted(admin.alias, "DESCRIBE", CLUSTER) from denied
    if not described:
        if "DESCRIBE" not in await admin.cluster_operations():
            raise NotPermitted(admin.alias, "DESCRIBE", CLUSTER)
        if await admin.broker_config("authorizer.class.name") == "":
            raise NoAuthorizer(admin.alias)
    return frozenset(_ours(one) for one in described)


async def add_acls(admin: Admin, bindings: Sequence[AclBinding]) -> AclsAdded:
    """Add each binding; one that is there already counts as done. Raises NoAuthorizer and ClusterUnreachable."""
    theirs = [_theirs(one) for one in bindings]
    outcome = await admin.create_acls(theirs)
    if any(trouble.code == KafkaError.SECURITY_DISABLED for trouble in outcome.failed.values()):
        raise NoAuthorizer(admin.alias)
    by_key = {Admin.acl_key(their): our for their, our in zip(theirs, bindings, strict=True)}
    refused: dict[AclBinding, NotPermitted | RequestRefused] = {
        by_key[key]: trouble for key, trouble in outcome.failed.items()
    }
    for key in outcome.denied:
        refused[by_key[key]] = NotPermitted(admin.alias, "ALTER", CLUSTER)
    done = tuple(sorted(by_key[key] for key in outcome.done))
    return AclsAdded(done, tuple((binding, refused[binding]) for binding in sorted(refused)))


def _ours(acl: DescribedAcl) -> AclBinding:
    return AclBinding(
        name=acl.name,
        principal=acl.principal,
        operation=acl.operation,
        permission=acl.permission,
        host=acl.host,
        resource=acl.resource_type,
        pattern=acl.pattern_type,
    )


def _theirs(acl: AclBinding) -> DescribedAcl:
    return DescribedAcl(
        resource_type=acl.resource,
        name=acl.name,
        pattern_type=acl.pattern,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission=acl.permission,
    )
