"""A check for flows between which a topic would be mirrored for ever, each time under a longer name.

MM2 sees a circle by names alone: `A.t` on B came from A. A flow back with another separator, or another policy, does
not read that name as it was meant, and MM2 then fills both clusters. If names are kept or changed by
`lockstep.rename`, producer ids tell instead (`provenance`). Renames may still give a topic new names for ever. This
module is pure.
"""

from collections import deque
from collections.abc import Iterable, Sequence

from lockstep_config.flow.identity_topology import stem
from lockstep_config.flow.model import FlowSettings
from lockstep_config.flow.reader import Reader
from lockstep_config.keys.key_types import ALIAS_KEYS
from lockstep_config.keys.python_classes import ClassFailed
from lockstep_config.resolve.diagnostics import Diagnostics
from lockstep_config.resolve.precedence import Layers
from lockstep_rules.filters import NameFilter, Names

MOST_STEPS = 500
"""The most names that are followed from one flow on: a file of many clusters has very many ways."""

MOST_ROUNDS = 4
"""The times that renames may lead a topic through one flow, each time under a new name."""

Step = tuple[FlowSettings, str]
"""A flow, and a topic of its source that it mirrors."""


def check_cycles(layers: Layers, flows: Sequence[FlowSettings], findings: Diagnostics) -> None:
    """Report each circle as a problem of the line that makes the difference, if there is one."""
    try:
        cycles = list(_find_cycles(flows))
    except ClassFailed as exc:
        findings.problem("", str(exc))
        return
    reported: set[frozenset[str]] = set()
    for route, remote in cycles:
        flow_names = frozenset(str(settings.flow) for settings, _ in route)
        if flow_names not in reported:
            reported.add(flow_names)
            _report(layers, route, remote, findings)


def _find_cycles(flows: Sequence[FlowSettings]) -> Iterable[tuple[tuple[Step, ...], str]]:
    """Yield for each flow the first way by which one of its topics comes back, with the name that it then has.

    The flow would mirror that name again.
    """
    has_renames = any(settings.enabled and settings.renames for settings in flows)
    running = [settings for settings in flows if settings.enabled and (has_renames or not settings.keeps_names)]
    for origin in running:
        cycle = next((route for probe in _probes(origin) if (route := _round(origin, probe, running))), None)
        if cycle is not None:
            yield cycle


def _round(origin: FlowSettings, probe: str, running: Sequence[FlowSettings]) -> tuple[tuple[Step, ...], str] | None:
    routes: deque[tuple[Step, ...]] = deque([((origin, probe),)])
    visited = {(origin.flow.source, probe)}
    while routes and len(visited) < MOST_STEPS:
        route = routes.popleft()
        settings, topic = route[-1]
        cluster = settings.flow.target
        remote = settings.remote_topic(topic)
        if cluster == origin.flow.source and origin.replicates(remote) and _goes_on(route, origin, remote):
            return route, remote
        if (cluster, remote) in visited:
            continue
        visited.add((cluster, remote))
        routes.extend(
            (*route, (onward, remote))
            for onward in running
            if onward.flow.source == cluster and onward.replicates(remote)
        )
    return None


def _goes_on(route: Sequence[Step], origin: FlowSettings, remote: str) -> bool:
    """Return whether a topic that comes back to the first cluster as `remote` is mirrored for ever from there.

    Where producer ids tell the origin of records, only a name that is new each time goes on.
    """
    if not all(settings.keeps_names for settings, _ in route):
        return True
    names = [topic for settings, topic in route if settings is origin]
    return remote not in names and len(names) >= MOST_ROUNDS


def _probes(settings: FlowSettings) -> list[str]:
    """Return topics of the source that the flow mirrors, one or so for each of its patterns."""
    return [name for name in dict.fromkeys(_likely(settings.topics)) if settings.replicates(name)]


def _likely(topics: Names) -> Iterable[str]:
    if isinstance(topics, NameFilter):
        for pattern in topics.include:
            literal, is_open = stem(pattern)
            yield from (literal + end for end in (("t", "1", "") if is_open else ("",)))
    else:
        yield "t"


def _report(layers: Layers, route: Sequence[Step], remote: str, findings: Diagnostics) -> None:
    origin, probe = route[0]
    names = [f"{probe} of {origin.flow.source}"]
    names += [f"{topic} on {settings.flow.source}" for settings, topic in route[1:]]
    names.append(f"{remote} on {origin.flow.source}")
    flows = " and ".join(dict.fromkeys(str(settings.flow) for settings, _ in route))
    message = (
        f"leads round: {' is '.join(names[:2])}{''.join(f', {name}' for name in names[2:])}, which {origin.flow} "
        f"mirrors again, and so for ever: {_instead(route, flows)}, or let them select different topics"
    )
    keys = (
        "lockstep.rename",
        "transforms",
        *(ALIAS_KEYS if any(settings.aliases != settings.flow for settings, _ in route) else ()),
        "replication.policy.separator",
        "replication.policy.class",
        "lockstep.replication.policy.class",
    )
    lines = (Reader(layers, settings.flow).entry(key) for key in keys for settings, _ in route)
    findings.problem(next(filter(None, lines), "replication.policy.separator"), message)


def _instead(route: Sequence[Step], flows: str) -> str:
    policies = [settings.policy for settings, _ in route]
    if any(settings.aliases != settings.flow for settings, _ in route):
        return f"give {flows} each {' and '.join(ALIAS_KEYS)} of its own, each cluster the same in all flows"
    if any(settings.renames for settings, _ in route):
        return f"let one of {flows} take back the names that the other one gives"
    if all(policy == policies[0] for policy in policies) and not getattr(policies[0], "separator", "."):
        return f"give {flows} a replication.policy.separator that is not empty"
    return f"give {flows} the same replication.policy.separator and replication.policy.class"
