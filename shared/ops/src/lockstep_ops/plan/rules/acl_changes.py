"""The ACLs that ACL sync would add to the target, and those of ours that it would take back. Pure."""

from collections.abc import Collection, Mapping
from functools import partial

from lockstep_config import FlowSettings
from lockstep_ops.plan.rules.flow_facts import AclFacts, TopicReading
from lockstep_rules.acls.acl_plan import AclRule, PrefixCandidates, judge_with, plan
from lockstep_rules.acls.binding_ownership import RevocationHistory, deletions, owned_bindings, review
from lockstep_rules.filters import should_replicate_group
from lockstep_rules.topic_plan import copy_owners
from lockstep_state.acl_binding import AclBinding
from lockstep_state.rows.state_rows import CopiedAcl, MirroredTopic, Row

LONG_AGO = float("-inf")


def acl_resources(settings: FlowSettings) -> frozenset[str]:
    """Return the resource types of the ACLs that the flow copies."""
    return frozenset({"TOPIC", "GROUP"} if settings.acl_sync.groups else {"TOPIC"})


def acl_changes(
    settings: FlowSettings,
    topics: TopicReading,
    rows: Mapping[str, Row],
    source: Collection[AclBinding],
    target: Collection[AclBinding],
) -> AclFacts:
    """Return what acl-sync would change.

    Args:
        settings: The flow.
        topics: The topics of both clusters.
        rows: The flow's rows.
        source: The ACLs of the source, of `acl_resources`.
        target: Those of the target.
    """
    acl_sync, one_cluster = settings.acl_sync, topics.source.cluster_id == topics.target.cluster_id
    rule = AclRule(
        replicates=lambda topic: (
            topic in topics.selection.topics or settings.replicates(topic, one_cluster=one_cluster)
        ),
        remote_topic=settings.remote_topic,
    )
    mirrored = [row for row in rows.values() if isinstance(row, MirroredTopic)]
    if settings.renames:
        rule = rule.with_renames(mirrored, topics.selection.left_out)
    copies = copy_owners(mirrored)
    prefixes = (
        PrefixCandidates.from_listings(topics.source.names, topics.target.names, copies, rule)
        if acl_sync.prefixed
        else None
    )
    groups = partial(should_replicate_group, groups=settings.groups) if acl_sync.groups else None
    acl_plan = plan(source, target, partial(judge_with, rule=rule, prefixes=prefixes, groups=groups))
    if not acl_sync.delete:
        return AclFacts(acl_plan.missing)
    owned = owned_bindings(row for row in rows.values() if isinstance(row, CopiedAcl))
    reviewed = review(owned, source, target, acl_plan.expected, acl_resources(settings))
    decided = deletions(
        reviewed,
        RevocationHistory(0, {acl.binding: LONG_AGO for acl in reviewed.revoked}),
        0.0,
        limit=acl_sync.delete_max,
        shared=[str(flow) for flow in acl_sync.shared],
        source=settings.flow.source,
        target=settings.flow.target,
    )
    return AclFacts(acl_plan.missing, tuple(acl.binding for acl in decided.due), "; ".join(decided.notes))
