"""A check for flows between which a topic would be mirrored for ever, each time under a longer name.

MM2 sees a circle by names alone: `A.t` on B came from A. A flow back with another separator, or another policy, does
not read that name as it was meant, and MM2 then fills both clusters. If names are kept or changed by
`lockstep.rename`, producer ids tell instead (`provenance`). Renames may still give a topic new names for ever, and
records may come back over a flow that asks for names alone. This module is pure.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from lockstep_config.flow.identity_topology import literal_prefix
from lockstep_config.flow.model import FlowSettings
from lockstep_config.flow.reader import Reader
from lockstep_config.keys.key_types import ALIAS_KEYS
from lockstep_config.keys.python_classes import ClassFailed
from lockstep_config.resolve.diagnostics import Diagnostics
from lockstep_config.resolve.precedence import Layers
from lockstep_rules.filters import NameFilter, Names
from lockstep_rules.policy import DefaultReplicationPolicy, without_renames

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
    for route, remote in _find_returns(flows):
        flow_names = frozenset(str(settings.flow) for settings, _ in route)
        if flow_names not in reported:
            reported.add(flow_names)
            _note_return(layers, route, remote, findings)


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


def _find_returns(flows: Sequence[FlowSettings]) -> Iterator[tuple[tuple[Step, ...], str]]:
    """Yield for each flow the first way by which a renamed topic comes back to its source under another name.

    If the last flow of that way tells by the name where records came from, it brings the same records once more: the
    name of a renamed topic does not say so. Otherwise it brings records that were written on the way, to another topic.
    """
    running = [settings for settings in flows if settings.enabled]
    for origin in running:
        for route, remote in (step for probe in _renamed(origin) for step in _walk(origin, probe, running)):
            if _ends_at_source(route) and remote != route[0][1]:
                yield route, remote
                break


def _round(origin: FlowSettings, probe: str, running: Sequence[FlowSettings]) -> tuple[tuple[Step, ...], str] | None:
    return next(
        (
            (route, remote)
            for route, remote in _walk(origin, probe, running)
            if _ends_at_source(route) and origin.replicates(remote) and _goes_on(route, origin, remote)
        ),
        None,
    )


def _walk(origin: FlowSettings, probe: str, running: Sequence[FlowSettings]) -> Iterator[tuple[tuple[Step, ...], str]]:
    """Yield each way that a topic goes from the first flow on, with the name at its end, short ways first."""
    routes: deque[tuple[Step, ...]] = deque([((origin, probe),)])
    visited = {(origin.flow.source, probe)}
    while routes and len(visited) < MOST_STEPS:
        route = routes.popleft()
        settings, topic = route[-1]
        cluster, remote = settings.flow.target, settings.remote_topic(topic)
        yield route, remote
        if (cluster, remote) in visited:
            continue
        visited.add((cluster, remote))
        routes.extend(
            (*route, (onward, remote))
            for onward in running
            if onward.flow.source == cluster and onward.replicates(remote)
        )


def _ends_at_source(route: Sequence[Step]) -> bool:
    return route[-1][0].flow.target == route[0][0].flow.source


def _goes_on(route: Sequence[Step], origin: FlowSettings, remote: str) -> bool:
    """Return whether a topic that comes back to the first cluster as `remote` is mirrored for ever from there.

    Where producer ids tell the origin of records, only a name that is new each time goes on.
    """
    if not all(settings.keeps_names for settings, _ in route):
        return True
    names = [topic for settings, topic in route if settings is origin]
    return remote not in names and len(names) >= MOST_ROUNDS


def _probes(settings: FlowSettings) -> list[str]:
    """Return topics of the source that the flow mirrors, one or so for each of its patterns and renames."""
    names = dict.fromkeys((*_likely(settings.topics), *_renamed(settings)))
    return [name for name in names if name and settings.replicates(name)]


def _renamed(settings: FlowSettings) -> Iterator[str]:
    """Yield topics of the source that the flow renames, one or so for each rename."""
    policy = settings.policy
    if isinstance(policy, DefaultReplicationPolicy) and policy.renames:
        before = without_renames(policy).format_remote_topic(settings.aliases.source, "t").removesuffix("t")
        for rename in policy.renames:
            yield from (name.removeprefix(before) for name in rename.examples() if name.startswith(before))


def _likely(topics: Names) -> Iterable[str]:
    if isinstance(topics, NameFilter):
        for pattern in topics.include:
            literal, is_open = literal_prefix(pattern)
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


def _note_return(layers: Layers, route: Sequence[Step], remote: str, findings: Diagnostics) -> None:
    origin, probe = route[0]
    last, topic = route[-1]
    reader = Reader(layers, origin.flow)
    brings = (
        f"copies what is written there to {remote} on {origin.flow.source}, not to {probe}"
        if last.hides_origin(topic)
        else f"copies the same records back as {remote}"
    )
    findings.note(
        reader.entry("lockstep.rename") or reader.entry("transforms") or "lockstep.rename",
        f"makes {probe} of {origin.flow.source} {topic} on {last.flow.source}, and {last.flow} {brings}. Give "
        f"{last.flow} the rename that takes the name back, or let it not select that topic",
    )


def _instead(route: Sequence[Step], flows: str) -> str:
    policies = [settings.policy for settings, _ in route]
    if any(settings.aliases != settings.flow for settings, _ in route):
        return f"give {flows} each {' and '.join(ALIAS_KEYS)} of its own, each cluster the same in all flows"
    if any(settings.renames for settings, _ in route):
        return f"let one of {flows} take back the names that the other one gives"
    if all(policy == policies[0] for policy in policies) and not getattr(policies[0], "separator", "."):
        return f"give {flows} a replication.policy.separator that is not empty"
    return f"give {flows} the same replication.policy.separator and replication.policy.class"
