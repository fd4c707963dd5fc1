"""Checks which of the declared permissions we have, by what brokers say that we may do (KIP-430). Pure."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from lockstep_config.credentials.permissions import EVERY, PREFIXED, Grant


@dataclass(frozen=True, slots=True)
class HeldPermissions:
    """Operations that we may do on the cluster, on topics and on groups, in Kafka's upper-case words.

    Nothing may be done with a topic that we may not describe. Of a topic or group that is absent nothing can be said:
    it was not asked about, or does not exist. The same holds for the cluster if `cluster` is None.
    """

    cluster: frozenset[str] | None = frozenset()
    topics: Mapping[str, frozenset[str]] = field(default_factory=dict)
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MissingPermission:
    """A grant that is missing on these resources, by name. A grant on the cluster has none."""

    grant: Grant
    names: tuple[str, ...] = ()


def topics_for(grants: Iterable[Grant], listed: Collection[str], every: Collection[str]) -> frozenset[str]:
    """Return the topics that the grants are about.

    Brokers hide what we may not describe, so topics that are known by name are asked about in any case.

    Args:
        grants: The grants.
        listed: Topics that the cluster lists.
        every: Topics that `*` stands for.
    """
    topic_grants = [grant for grant in grants if grant.resource == "topic"]
    named = {grant.name for grant in topic_grants if grant.name != EVERY and grant.pattern != PREFIXED}
    return frozenset(name for grant in topic_grants for name in _names(grant, {*listed, *every, *named}, every))


def named_groups(grants: Iterable[Grant]) -> frozenset[str]:
    """Return the groups that grants name. Groups of a `*` are not named."""
    return frozenset(grant.name for grant in grants if grant.resource == "group" and grant.name != EVERY)


def missing_permissions(
    grants: Iterable[Grant], held: HeldPermissions, every: Iterable[str]
) -> tuple[MissingPermission, ...]:
    """Return which of the grants are missing, in their order.

    Create counts if either the cluster or the topic has it. Grants that cannot be checked are not missing: those of
    transactional ids, and of topics that do not exist yet.
    """
    missing = []
    for grant in grants:
        operation = _upper(grant.operation)
        if grant.resource == "cluster":
            if held.cluster is not None and operation not in held.cluster:
                missing.append(MissingPermission(grant))
            continue
        creates = held.cluster is None or operation in held.cluster
        if grant.operation == "Create" and (creates or grant.resource != "topic"):
            continue
        granted = {"topic": held.topics, "group": held.groups}.get(grant.resource, {})
        names = (
            _names(grant, granted, every)
            if grant.resource == "topic"
            else [group for group in granted if group == grant.name]
        )
        without = tuple(sorted(name for name in names if operation not in granted[name]))
        # A topic that is there needs no Create.
        if without and grant.operation != "Create":
            missing.append(MissingPermission(grant, without))
    return tuple(missing)


def _names(grant: Grant, present: Collection[str], every: Iterable[str]) -> list[str]:
    if grant.name == EVERY:
        return [name for name in every if name in present]
    if grant.pattern == PREFIXED:
        return [name for name in present if name.startswith(grant.name)]
    return [grant.name] if grant.name in present else []


def _upper(operation: str) -> str:
    """Return an operation in Kafka's upper-case form: `DescribeConfigs` becomes `DESCRIBE_CONFIGS`."""
    return re.sub("(?<!^)(?=[A-Z])", "_", operation).upper()
