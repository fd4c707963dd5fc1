"""The permissions that a flow's users need on its two clusters, each with the feature that needs it.

This one declaration has three uses. The tests' brokers grant exactly these, and `acls-needed.md` lists them. The
error of a refused request takes from here why it was needed. Words are those of `kafka-acls`. What Kafka grants along
with another operation is not listed beside it (Describe with Read, Write, Delete and Alter; DescribeConfigs with
AlterConfigs).
"""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from lockstep_config.clients.principal import find_principal
from lockstep_config.flow.model import FlowSettings
from lockstep_state.commands.command_vocabulary import SERVICES
from lockstep_state.names import commands_topic, events_topic, quarantine_topic, service_group, state_topic
from lockstep_state.reasons.reason_catalogue import TO_GRANT

LITERAL, PREFIXED = "literal", "prefixed"

EVERY = "*"
CHECKED = "settings that would lose what this topic holds are found"
THE_CLUSTER = "kafka-cluster"
UNKNOWN_PRINCIPAL = "User:OURS"
"""The placeholder for the client's principal while it is unknown (`find_principal`)."""

IMPLIED: Mapping[str, frozenset[str]] = {
    "Describe": frozenset({"Read", "Write", "Delete", "Alter"}),
    "DescribeConfigs": frozenset({"AlterConfigs"}),
}
"""Operations that Kafka grants along with others, each with those others."""


@dataclass(frozen=True, slots=True)
class Grant:
    """One operation on one resource: topic, group, transactional-id or cluster.

    `name` is `*` for all resources of that type, and the prefix if `pattern` is prefixed. `feature` ends the sentence
    "it is needed for ...".
    """

    resource: str
    name: str
    operation: str
    feature: str
    pattern: str = LITERAL

    def covers(self, resource: str, name: str, operation: str) -> bool:
        """Return whether a refused operation on that resource lacks this grant."""
        is_named = self.name in (EVERY, name) or (self.pattern == PREFIXED and name.startswith(self.name))
        is_asked = operation == self.operation or self.operation in IMPLIED.get(operation, ())
        return resource == self.resource and is_asked and (is_named or resource == "cluster")


@dataclass(frozen=True, slots=True)
class Remedy:
    """The command that ends a refusal.

    `lacks` says which principal lacks which permission and what needs it, `command` grants it. Refusals of one cause
    have one command.
    """

    lacks: str
    command: str

    def __str__(self) -> str:
        return f"{self.lacks}{TO_GRANT}{self.command}"


@dataclass(frozen=True, slots=True)
class Access:
    """The permissions that a flow needs on one cluster, and the login that needs them."""

    login: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Java's properties with which the flow logs in to the cluster. They hold secrets."""
    bootstrap: str = ""
    grants: tuple[Grant, ...] = ()

    @property
    def principal(self) -> str:
        """The principal as it is now: a token shows it only once it is there, and a certificate may be replaced."""
        return find_principal(self.login) or UNKNOWN_PRINCIPAL

    def _grant(self, resource: str, name: str, operation: str) -> Grant | None:
        covering = [grant for grant in self.grants if grant.covers(resource, name, operation)]
        # A grant that names the resource itself says more than a grant for all.
        covering.sort(key=lambda grant: (grant.operation != operation, grant.name == EVERY, -len(grant.name)))
        return covering[0] if covering else None

    def remedy(self, resource: str, name: str, operation: str) -> Remedy:
        """Return what ends a refusal of the operation on that resource."""
        grant = self._grant(resource, name, operation)
        resource_text = "the cluster" if resource == "cluster" else f"{resource} {name}"
        needed = grant or Grant(resource, name, operation, "")
        feature = f" ({needed.feature})" if needed.feature else ""
        principal = self.principal
        command = grant_command(needed, principal, self.bootstrap)
        return Remedy(f"{principal} lacks {needed.operation} on {resource_text}{feature}", command)


NO_ACCESS = Access()


def source_grants(settings: FlowSettings) -> tuple[Grant, ...]:
    """Return the grants on the flow's source.

    They are those that Strimzi lists for MirrorMaker 2's source user and no others, less if the flow does less. A
    flow in the place of a MirrorMaker 1 also commits for its group, as MirrorMaker 1 did.
    """
    grants = [
        *_topic(EVERY, "records are copied from the topics that are mirrored", "Read"),
        *_topic(EVERY, "the copies of topics get their configs", "DescribeConfigs"),
    ]
    if settings.checkpoint.enabled:
        grants += [
            Grant("cluster", THE_CLUSTER, "Describe", "checkpoints list the consumer groups"),
            Grant("group", EVERY, "Describe", "checkpoint reads the offsets of consumer groups"),
        ]
    if settings.data_plane.legacy is not None:
        feature = "a legacy flow's positions are those of this group (lockstep.legacy.group)"
        grants.append(Grant("group", settings.data_plane.legacy.group, "Read", feature))
    if settings.data_plane.offset_syncs_location == "source":
        grants += _offset_syncs(settings)
    if settings.acl_sync.enabled:
        grants.append(Grant("cluster", THE_CLUSTER, "Describe", "ACL sync lists the ACLs (sync.topic.acls.enabled)"))
    if settings.checkpoint.opposite is not None:
        grants += _topic(settings.checkpoint.opposite, "groups fail back by the rows of the flow to here", "Read")
    for topic in settings.data_plane.upstream_state_topics:
        grants += _topic(topic, "what came from the target is not copied back (lockstep.provenance)", "Read")
    return _merged(grants)


def target_grants(settings: FlowSettings) -> tuple[Grant, ...]:
    """Return the grants on the flow's target."""
    grants = [*_lockstep_grants(settings), *_copy_grants(settings)]
    policy = settings.policy
    if settings.checkpoint.enabled:
        grants += _topic(settings.checkpoints_topic, "checkpoints", "Create", "Read", "Write")
        grants += _topic(settings.checkpoints_topic, CHECKED, "DescribeConfigs")
    if settings.checkpoint.sync_group_offsets:
        for topic in settings.checkpoint.siblings:
            grants += _topic(topic, "a group skips no records of another flow to the same topics", "Read")
        grants.append(Grant("group", EVERY, "Read", "sync.group.offsets.enabled moves consumer groups"))
    if settings.heartbeat.enabled:
        grants += _topic(policy.heartbeats_topic(), "heartbeats", "Create", "Write")
        grants += _topic(policy.heartbeats_topic(), "lockstep probe sees that heartbeats come", "Read")
        grants += _topic(policy.heartbeats_topic(), CHECKED, "DescribeConfigs")
    if settings.data_plane.offset_syncs_location == "target":
        grants += _offset_syncs(settings)
    if settings.acl_sync.enabled:
        grants += [
            Grant("cluster", THE_CLUSTER, "Describe", "ACL sync lists the ACLs (sync.topic.acls.enabled)"),
            Grant("cluster", THE_CLUSTER, "Alter", "ACL sync adds ACLs (sync.topic.acls.enabled)"),
        ]
    return _merged(grants)


def _lockstep_grants(settings: FlowSettings) -> list[Grant]:
    """Return the grants on Lockstep's own topics, groups and transactional ids on the target."""
    flow, instance, plane = settings.flow, settings.group_id, settings.data_plane
    grants = [
        *_topic(state_topic(flow, instance), "the flow's state", "Create", "Read", "Write"),
        *_topic(events_topic(flow, instance), "the flow's events", "Create", "Read", "Write"),
        *_topic(commands_topic(flow, instance), "commands are taken", "Create", "Read"),
        *_topic(commands_topic(flow, instance), "commands are given (lockstep pause, resume ...)", "Write"),
    ]
    grants += [
        Grant("group", service_group(service, flow, instance), "Read", "replicas of a service share their work")
        for service in SERVICES
    ]
    progress_topic = settings.control.offset_storage_topic
    grants += _topic(progress_topic, "progress is kept where MirrorMaker 2 keeps it", "Create", "Read", "Write")
    for name in (state_topic, events_topic, commands_topic):
        grants += _topic(name(flow, instance), CHECKED, "DescribeConfigs")
    grants += _topic(progress_topic, CHECKED, "DescribeConfigs")
    if "quarantine" in {plane.on_refused.default, *(value for _, value in plane.on_refused.others)}:
        feature = "what the target refuses is kept (lockstep.on.refused=quarantine)"
        grants += _topic(quarantine_topic(flow, instance), feature, "Create", "Write")
    if plane.exactly_once:
        key = "lockstep.legacy.partitioning=key" if plane.by_key else "exactly.once.source.support"
        prefix = f"lockstep-{instance + '-' if instance else ''}{flow.source}-{flow.target}-"
        grants.append(Grant("transactional-id", prefix, "Write", f"transactions ({key})", PREFIXED))
    return grants


def _copy_grants(settings: FlowSettings) -> list[Grant]:
    """Return the grants on the copies of topics.

    If topics keep their names, no prefix tells the copies from other topics, so the grants are for every topic.
    """
    name, pattern = EVERY, LITERAL
    if not settings.keeps_names:
        remote = settings.remote_topic("t")
        name, pattern = remote.removesuffix("t"), PREFIXED
    features = {
        "Create": "topics that are missing on the target are created",
        "Write": "records are copied to them",
        "Read": "the end of each copy is read, so that nothing is written twice, and groups are moved in it",
        "Alter": "copies get more partitions when their topics do",
        "AlterConfigs": "copies keep the configs of their topics (sync.topic.configs.enabled)",
        "DescribeConfigs": "limits of the copies are known",
    }
    if settings.topic_sync.keeps_counts:
        del features["Alter"]
    # AlterConfigs includes DescribeConfigs.
    del features["DescribeConfigs" if settings.topic_sync.sync_configs else "AlterConfigs"]
    return [Grant("topic", name, operation, feature, pattern) for operation, feature in features.items()]


def _offset_syncs(settings: FlowSettings) -> list[Grant]:
    feature, topic = "offset syncs, by which groups are translated", settings.offset_syncs_topic
    grants = []
    if settings.data_plane.emit_offset_syncs:
        grants += [*_topic(topic, feature, "Create", "Write"), *_topic(topic, CHECKED, "DescribeConfigs")]
    if settings.checkpoint.enabled:
        grants += _topic(topic, feature, "Read")
    return grants


def _topic(name: str, feature: str, *operations: str) -> list[Grant]:
    return [Grant("topic", name, operation, feature) for operation in operations]


def _merged(grants: Iterable[Grant]) -> tuple[Grant, ...]:
    """Merge grants of the same operation on the same resource into one, which names all their features."""
    merged: dict[tuple[str, str, str], Grant] = {}
    for grant in grants:
        permission = (grant.resource, grant.name, grant.operation)
        former = merged.setdefault(permission, grant)
        if grant.feature not in former.feature:
            merged[permission] = replace(former, feature=f"{former.feature}; {grant.feature}")
    return tuple(merged.values())


def grant_command(grant: Grant, principal: str, bootstrap: str) -> str:
    """Return the command line that grants a permission."""
    words = ["kafka-acls", "--bootstrap-server", bootstrap, "--add", "--allow-principal", principal]
    words += ["--operation", grant.operation]
    words += ["--cluster"] if grant.resource == "cluster" else [f"--{grant.resource}", grant.name]
    if grant.pattern == PREFIXED:
        words += ["--resource-pattern-type", "prefixed"]
    return shlex.join(words)


def needed_access(settings: FlowSettings, alias: str) -> Access:
    """Return the permissions that the flow needs on its source or its target, by the cluster's alias."""
    cluster = settings.source if alias == settings.flow.source else settings.target
    grants = source_grants(settings) if alias == settings.flow.source else target_grants(settings)
    return Access(cluster.properties, cluster.bootstrap, grants)
