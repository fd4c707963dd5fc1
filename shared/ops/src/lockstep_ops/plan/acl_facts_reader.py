"""ACLs of both clusters: those that ACL sync would add, and those of ours that it would take back."""

from collections.abc import Collection, Mapping
from functools import partial

from lockstep_config import FlowSettings
from lockstep_kafka.admin.acl_reader import AclsUnsupported, NoAuthorizer, OAuthRules, read_acls
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.errors import NotPermitted, RequestRefused
from lockstep_ops.plan.rules.flow_facts import AclFacts
from lockstep_ops.plan.topic_reader import TopicReading
from lockstep_rules.acls.acl_plan import AclRule, PrefixCandidates, judge_with, plan
from lockstep_rules.acls.binding_ownership import RevocationHistory, deletions, owned_bindings, review
from lockstep_rules.filters import should_replicate_group
from lockstep_state.acl_binding import AclBinding
from lockstep_state.rows.state_rows import CopiedAcl, MirroredTopic, Row

LONG_AGO = float("-inf")


async def read_acl_facts(
    settings: FlowSettings, source: Admin, target: Admin, topics: TopicReading, rows: Mapping[str, Row]
) -> AclFacts:
    """Read the ACLs of both clusters, and return what acl-sync would change.

    Raises:
        ClusterUnreachable: A cluster does not answer.
    """
    asked = settings.acl_sync
    if not asked.enabled:
        return AclFacts(note="ACLs are not copied: sync.topic.acls.enabled is false")
    resources = frozenset({"TOPIC", "GROUP"} if asked.groups else {"TOPIC"})
    try:
        there, here = await read_acls(source, resources), await read_acls(target, resources)
    except (AclsUnsupported, NoAuthorizer, OAuthRules, NotPermitted, RequestRefused) as why:
        return AclFacts(note=f"ACLs: {why}")
    return _facts(settings, topics, rows, there, here, resources)


def _facts(
    settings: FlowSettings,
    topics: TopicReading,
    rows: Mapping[str, Row],
    source: Collection[AclBinding],
    target: Collection[AclBinding],
    resources: Collection[str],
) -> AclFacts:
    asked, one_cluster = settings.acl_sync, topics.source.cluster_id == topics.target.cluster_id
    rule = AclRule(
        replicates=lambda topic: (
            topic in topics.selection.topics or settings.replicates(topic, one_cluster=one_cluster)
        ),
        remote_topic=settings.remote_topic,
    )
    mirrored = [row for row in rows.values() if isinstance(row, MirroredTopic)]
    copies = {row.target_topic for row in mirrored if row.phase != "failed"}
    seen = (
        PrefixCandidates.from_listings(topics.source.names, topics.target.names, copies, rule)
        if asked.prefixed
        else None
    )
    follows = partial(should_replicate_group, groups=settings.groups) if asked.groups else None
    found = plan(source, target, partial(judge_with, rule=rule, prefixes=seen, groups=follows))
    if not asked.delete:
        return AclFacts(found.missing)
    owned = owned_bindings(row for row in rows.values() if isinstance(row, CopiedAcl))
    reviewed = review(owned, source, target, found.expected, resources)
    decided = deletions(
        reviewed,
        RevocationHistory(0, {one.binding: LONG_AGO for one in reviewed.revoked}),
        0.0,
        limit=asked.delete_max,
        shared=[str(flow) for flow in asked.shared],
        source=settings.flow.source,
        target=settings.flow.target,
    )
    return AclFacts(found.missing, tuple(one.binding for one in decided.due), "; ".join(decided.notes))
