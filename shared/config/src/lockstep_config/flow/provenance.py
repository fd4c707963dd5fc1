"""The `lockstep.provenance` of a file's flows, and what follows if clusters feed each other under the same names.

Names tell where a record came from unless the replication policy keeps them; only then these settings count. This
module is pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from lockstep_config.flow.identity_topology import (
    Link,
    Mode,
    Path,
    default_modes,
    double_routes,
    leads_back,
    route_text,
    unreached_routes,
)
from lockstep_config.flow.model import FlowSettings
from lockstep_config.resolve import precedence
from lockstep_config.resolve.diagnostics import Diagnostics
from lockstep_config.resolve.precedence import Layers
from lockstep_state.names import Flow, state_topic

KEY = "lockstep.provenance"
CONFIGS = "sync.topic.configs.enabled"
GROUPS = "sync.group.offsets.enabled"


def with_provenance(
    layers: Layers, flows: Sequence[FlowSettings], aliases: Sequence[str], findings: Diagnostics
) -> tuple[FlowSettings, ...]:
    """Return the flows with what each copies if topics keep their names.

    If a record could reach a cluster twice, that is a problem, which names both routes.

    If topics come back to their source, only one of the flows between two clusters changes configs of existing
    topics. It is the flow from the cluster that `clusters` names first. Both flows would undo each other's changes
    for ever.
    """
    links = [_link(s) for s in flows if s.enabled and s.keeps_names]
    stated = _stated(layers, flows, [link.flow for link in links], findings)
    modes = default_modes(links, stated)
    for double in double_routes(links, modes):
        findings.problem(KEY, _both_ways(double.origin, double.shorter, double.longer))
    back = [link.flow for link in links if leads_back(link, links)]
    if back:
        findings.note(KEY, _goes_round(back, modes))
    for path in unreached_routes(links, modes):
        findings.note(KEY, _not_relayed(path, modes))
    for settings in flows:
        if settings.data_plane.exactly_once and modes.get(settings.flow) == "relay":
            _one_id_only(settings, links, stated, modes, findings)
    state = {s.flow: state_topic(s.flow, s.group_id) for s in flows if s.flow in modes}
    return tuple(_settled(layers, settings, links, modes, state, aliases, findings) for settings in flows)


def _link(settings: FlowSettings) -> Link:
    return Link(settings.flow, settings.topics, settings.renames)


def _stated(
    layers: Layers, flows: Sequence[FlowSettings], keeping: Sequence[Flow], findings: Diagnostics
) -> dict[Flow, Mode]:
    stated: dict[Flow, Mode] = {}
    for settings in flows:
        cell = precedence.connector(layers, settings.flow, KEY)
        if cell is None:
            continue
        if settings.flow in keeping:
            stated[settings.flow] = cell.value
        elif KEY in layers.flow_lines(settings.flow):
            findings.without_effect(cell.entry, f"the topics of {settings.flow} get new names on the target")
    return stated


def _one_id_only(
    settings: FlowSettings,
    links: Sequence[Link],
    stated: dict[Flow, Mode],
    modes: dict[Flow, Mode],
    findings: Diagnostics,
) -> None:
    """Refuse `relay` under transactions, or forget the mode of the flow if no topic comes back and it is not stated.

    A transactional id has one producer id, which cannot identify several origins. If nothing comes back, the origin
    is not needed.
    """
    flow = settings.flow
    if flow not in stated and not leads_back(_link(settings), links):
        del modes[flow]
        return
    if settings.data_plane.by_key:
        cause, instead = "lockstep.legacy.partitioning=key", "preserve"
        key = f"{flow}.lockstep.legacy.partitioning"
    else:
        cause, instead = f"exactly.once.source.support=enabled for {flow.target}", "disabled"
        key = f"{flow.target}.exactly.once.source.support"
    message = (
        f"is relay for {flow}, and {cause}: a transactional id cannot distinguish several origins; set "
        f"{flow}.{KEY}=local, or {key}={instead}"
    )
    findings.problem(KEY, message)


def _goes_round(back: Sequence[Flow], modes: Mapping[Flow, Mode]) -> str:
    names_text = ", ".join(
        f"{flow} copies {'all' if modes[flow] == 'relay' else 'what was written on its source'}" for flow in back
    )
    return (
        f"topics of {' and '.join(map(str, back))} come back to their source under the same names. MirrorMaker copies "
        f"every record round and round there, without end; here each cluster gets it once: {names_text}"
    )


def _both_ways(origin: str, shorter: Path, longer: Path) -> str:
    target = longer[-1].flow.target
    relaying = " or ".join(f"{path[-1].flow}.{KEY}=local" for path in (shorter, longer) if len(path) > 1)
    return (
        f"records of {origin} reach {target} twice under the same topic names, by {route_text(shorter)} and by "
        f"{route_text(longer)}: set {relaying}, or let these flows select different topics"
    )


def _not_relayed(path: Path, modes: dict[Flow, Mode]) -> str:
    holding = [step.flow for step in path[1:] if modes[step.flow] == "local"]
    keys = " and ".join(f"{flow}.{KEY}=relay" for flow in holding)
    return (
        f"records of {path[0].flow.source} do not reach {path[-1].flow.target} by {route_text(path)}: "
        f"{' and '.join(map(str, holding))} copies only what originated on its source; {keys} would let them pass"
    )


def _settled(
    layers: Layers,
    settings: FlowSettings,
    links: Sequence[Link],
    modes: dict[Flow, Mode],
    state: dict[Flow, str],
    aliases: Sequence[str],
    findings: Diagnostics,
) -> FlowSettings:
    flow = settings.flow
    if flow not in modes:
        return settings
    mode: Literal["local", "relay"] = modes[flow]
    upstream = tuple(topic for upstream_flow, topic in state.items() if upstream_flow.target == flow.source)
    data_plane = replace(settings.data_plane, provenance=mode, upstream_state_topics=upstream)
    settings = replace(settings, data_plane=data_plane)
    comes_back = leads_back(_link(settings), links)
    if comes_back and settings.checkpoint.enabled and settings.checkpoint.sync_group_offsets:
        message = (
            f"topics come back from {flow.target} to {flow.source} under the same names, so {flow} places groups after "
            f"the records of {flow.source} that they read. They may skip records that were written on {flow.target}, "
            f"and that they had not read on {flow.source} yet"
        )
        findings.note(GROUPS, message)
    is_first = aliases.index(flow.source) < aliases.index(flow.target)
    if not comes_back or is_first or CONFIGS in layers.flow_lines(flow) or not settings.topic_sync.sync_configs:
        return settings
    message = (
        f"topics come back from {flow.target} to {flow.source} under the same names, so {flow} does not change "
        f"configs on {flow.target}. Those of {flow.target} count, because clusters names it first. To reverse that, "
        f"set {flow}.{CONFIGS}=true and {Flow(flow.target, flow.source)}.{CONFIGS}=false"
    )
    findings.note(CONFIGS, message)
    return replace(settings, topic_sync=replace(settings.topic_sync, sync_configs=False))
