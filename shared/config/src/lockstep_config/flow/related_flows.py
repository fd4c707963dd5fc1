"""Relate the flows of a file: the state topics by which groups are placed, and merged topics."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from lockstep_config.flow.identity_topology import may_share
from lockstep_config.flow.model import FlowSettings
from lockstep_config.flow.reader import Reader
from lockstep_config.resolve.diagnostics import Diagnostics
from lockstep_config.resolve.precedence import Layers
from lockstep_protocol.names import Flow, state_topic

POLICY = "replication.policy.class"


def with_opposites(flows: Sequence[FlowSettings]) -> tuple[FlowSettings, ...]:
    """Return the flows, each with the state topic of the file's flow in the opposite direction, unless it names one
    itself."""
    topics = {s.flow: state_topic(s.flow, s.group_id) for s in flows if s.enabled}
    return tuple(
        replace(s, checkpoint=replace(s.checkpoint, opposite=topics.get(Flow(s.flow.target, s.flow.source))))
        if s.checkpoint.opposite is None
        else s
        for s in flows
    )


def with_siblings(flows: Sequence[FlowSettings]) -> tuple[FlowSettings, ...]:
    """Return the flows, each with the state topics of its siblings: they may merge topics with it, and share groups."""

    def siblings(flow: FlowSettings) -> tuple[str, ...]:
        return tuple(
            state_topic(other.flow, other.group_id)
            for other in flows
            if _may_merge(flow, other) and may_share(flow.groups, other.groups)
        )

    return tuple(
        replace(s, checkpoint=replace(s.checkpoint, siblings=siblings(s))) if s.enabled and s.keeps_names else s
        for s in flows
    )


def note_merges(layers: Layers, flows: Sequence[FlowSettings], findings: Diagnostics) -> None:
    """Note each two flows that may write to one topic, once. Only the clusters know which topics there are."""
    for one, other in combinations(flows, 2):
        if _may_merge(one, other):
            found = Reader(layers, other.flow).found(POLICY)
            moved = one.checkpoint.sync_group_offsets and may_share(one.groups, other.groups)
            groups = ". A group that both move goes to the earlier place of both" if moved else ""
            findings.note(
                found or POLICY,
                f"keeps names, and {one.flow} and {other.flow} may select the same topics: both write to one log of "
                f"each on {other.flow.target}{groups}. lockstep plan names them (LS023)",
            )


def _may_merge(one: FlowSettings, other: FlowSettings) -> bool:
    """Return whether two flows to one target both keep names and may select the same topics."""
    return (
        one.flow != other.flow
        and one.flow.target == other.flow.target
        and all(flow.enabled and flow.keeps_names for flow in (one, other))
        and may_share(one.topics, other.topics)
    )
