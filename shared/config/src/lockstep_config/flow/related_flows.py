"""Relations between the flows of a file: the state topics by which groups are placed, and merged topics."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from lockstep_config.flow.identity_topology import may_share
from lockstep_config.flow.model import FlowSettings
from lockstep_config.flow.reader import Reader
from lockstep_config.resolve.diagnostics import Diagnostics
from lockstep_config.resolve.precedence import Layers
from lockstep_state.names import Flow, state_topic

POLICY = "replication.policy.class"


def with_opposites(flows: Sequence[FlowSettings]) -> tuple[FlowSettings, ...]:
    """Return the flows, each with the state topic of the file's flow in the opposite direction.

    A flow that names such a topic itself keeps it.
    """
    topics = {s.flow: state_topic(s.flow, s.group_id) for s in flows if s.enabled}
    return tuple(
        replace(s, checkpoint=replace(s.checkpoint, opposite=topics.get(Flow(s.flow.target, s.flow.source))))
        if s.checkpoint.opposite is None
        else s
        for s in flows
    )


def with_siblings(flows: Sequence[FlowSettings]) -> tuple[FlowSettings, ...]:
    """Return the flows, each with the state topics of the flows that may merge topics and share groups with it."""

    def sibling_aliases(flow: FlowSettings) -> tuple[str, ...]:
        return tuple(
            state_topic(candidate.flow, candidate.group_id)
            for candidate in flows
            if _may_merge(flow, candidate) and may_share(flow.groups, candidate.groups)
        )

    return tuple(
        replace(s, checkpoint=replace(s.checkpoint, siblings=sibling_aliases(s))) if s.enabled and s.keeps_names else s
        for s in flows
    )


def note_merges(layers: Layers, flows: Sequence[FlowSettings], findings: Diagnostics) -> None:
    """Note each pair of flows that may write to one topic. Only the clusters know which topics there are."""
    for earlier, later in combinations(flows, 2):
        if _may_merge(earlier, later):
            entry = Reader(layers, later.flow).entry(POLICY)
            move_same_groups = earlier.checkpoint.sync_group_offsets and may_share(earlier.groups, later.groups)
            groups = ". A group that both move goes to the earlier place of both" if move_same_groups else ""
            findings.note(
                entry or POLICY,
                f"keeps names, and {earlier.flow} and {later.flow} may select the same topics: both write to one log "
                f"of each on {later.flow.target}{groups}. lockstep plan names them (LS023)",
            )


def _may_merge(earlier: FlowSettings, later: FlowSettings) -> bool:
    """Return whether two flows to one target both keep names and may select the same topics."""
    return (
        earlier.flow != later.flow
        and earlier.flow.target == later.flow.target
        and all(flow.enabled and flow.keeps_names for flow in (earlier, later))
        and (earlier.renames or later.renames or may_share(earlier.topics, later.topics))
    )
