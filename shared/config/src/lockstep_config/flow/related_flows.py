"""Gives each flow of a file the state topics of the other flows by which its groups are placed."""

from collections.abc import Sequence
from dataclasses import replace

from lockstep_config.flow.identity_topology import may_share
from lockstep_config.flow.model import FlowSettings
from lockstep_protocol.names import Flow, state_topic


def with_opposites(flows: Sequence[FlowSettings]) -> tuple[FlowSettings, ...]:
    """The flows, each with the state topic of the file's flow in the opposite direction, unless it names one itself."""
    topics = {s.flow: state_topic(s.flow, s.group_id) for s in flows if s.enabled}
    return tuple(
        replace(s, checkpoint=replace(s.checkpoint, opposite=topics.get(Flow(s.flow.target, s.flow.source))))
        if s.checkpoint.opposite is None
        else s
        for s in flows
    )


def with_siblings(flows: Sequence[FlowSettings]) -> tuple[FlowSettings, ...]:
    """Return the flows, each with the state topics of its siblings.

    These are flows to the same target that keep names as well, and that may have topics and groups in common.
    """
    merging = [s for s in flows if s.enabled and s.keeps_names]

    def siblings(flow: FlowSettings) -> tuple[str, ...]:
        return tuple(
            state_topic(other.flow, other.group_id)
            for other in merging
            if other is not flow
            and other.flow.target == flow.flow.target
            and may_share(flow.topics, other.topics)
            and may_share(flow.groups, other.groups)
        )

    return tuple(
        replace(s, checkpoint=replace(s.checkpoint, siblings=siblings(s))) if s in merging else s for s in flows
    )
