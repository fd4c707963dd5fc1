"""Which other flows of a file may bring the ACLs of a flow to its target too, or back to its source. Pure.

Only what keeps its name can: topics under the identity policy, and groups. A binding that one flow takes back there is
perhaps another's, or comes round again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lockstep_config.flow.model import FlowSettings
from lockstep_protocol.names import Flow


def with_shared_acls(flows: Sequence[FlowSettings]) -> tuple[FlowSettings, ...]:
    """The flows, each with `acl_sync.shared`. Filters are not compared with each other: they only match names."""
    keeping = [s.flow for s in flows if _keeps_names(s)]
    return tuple(
        replace(s, acl_sync=replace(s.acl_sync, shared=_shared(s.flow, keeping))) if _keeps_names(s) else s
        for s in flows
    )


def _keeps_names(settings: FlowSettings) -> bool:
    acls = settings.acl_sync
    return acls.enabled and (acls.groups or settings.keeps_names)


def _shared(flow: Flow, flows: Sequence[Flow]) -> tuple[Flow, ...]:
    reached = {flow.target}
    while further := {f.target for f in flows if f.source in reached} - reached:
        reached |= further
    others = (f for f in flows if f != flow)
    return tuple(f for f in others if f.target == flow.target or (f.target == flow.source and f.source in reached))
