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
        found = list(_find_cycles(flows))
    except ClassFailed as exc:
        findings.problem("", str(exc))
        return
    reported: set[frozenset[str]] = set()
    for way, again in found:
        route = frozenset(str(settings.flow) for settings, _ in way)
        if route not in reported:
            reported.add(route)
            _report(layers, way, again, findings)


def _find_cycles(flows: Sequence[FlowSettings]) -> Iterable[tuple[tuple[Step, ...], str]]:
    """Yield for each flow the first way by which one of its topics comes back, with the name that it then has.

    The flow would mirror that name again.
    """
    has_renames = any(settings.enabled and settings.renames for settings in flows)
    running = [settings for settings in flows if settings.enabled and (has_renames or not settings.keeps_names)]
    for first in running:
        found = next((way for probe in _probes(first) if (way := _round(first, probe, running))), None)
        if found is not None:
            yield found


def _round(first: FlowSettings, probe: str, running: Sequence[FlowSettings]) -> tuple[tuple[Step, ...], str] | None:
    open_: deque[tuple[Step, ...]] = deque([((first, probe),)])
    seen = {(first.flow.source, probe)}
    while open_ and len(seen) < MOST_STEPS:
        way = open_.popleft()
        settings, topic = way[-1]
        here = settings.flow.target
        remote = settings.remote_topic(topic)
        if here == first.flow.source and first.replicates(remote) and _goes_on(way, first, remote):
            return way, remote
        if (here, remote) in seen:
            continue
        seen.add((here, remote))
        open_.extend(
            (*way, (other, remote)) for other in running if other.flow.source == here and other.replicates(remote)
        )
    return None


def _goes_on(way: Sequence[Step], first: FlowSettings, remote: str) -> bool:
    """Return whether a topic that comes back to the first cluster as `remote` is mirrored for ever from there.

    Where producer ids tell the origin of records, only a name that is new each time goes on.
    """
    if not all(settings.keeps_names for settings, _ in way):
        return True
    names = [topic for settings, topic in way if settings is first]
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


def _report(layers: Layers, way: Sequence[Step], again: str, findings: Diagnostics) -> None:
    first, probe = way[0]
    names = [f"{probe} of {first.flow.source}"]
    names += [f"{topic} on {settings.flow.source}" for settings, topic in way[1:]]
    names.append(f"{again} on {first.flow.source}")
    flows = " and ".join(dict.fromkeys(str(settings.flow) for settings, _ in way))
    message = (
        f"leads round: {' is '.join(names[:2])}{''.join(f', {name}' for name in names[2:])}, which {first.flow} "
        f"mirrors again, and so for ever: {_instead(way, flows)}, or let them select different topics"
    )
    keys = (
        "lockstep.rename",
        "transforms",
        *(ALIAS_KEYS if any(settings.aliases != settings.flow for settings, _ in way) else ()),
        "replication.policy.separator",
        "replication.policy.class",
        "lockstep.replication.policy.class",
    )
    lines = (Reader(layers, settings.flow).entry(key) for key in keys for settings, _ in way)
    findings.problem(next(filter(None, lines), "replication.policy.separator"), message)


def _instead(way: Sequence[Step], flows: str) -> str:
    policies = [settings.policy for settings, _ in way]
    if any(settings.aliases != settings.flow for settings, _ in way):
        return f"give {flows} each {' and '.join(ALIAS_KEYS)} of its own, each cluster the same in all flows"
    if any(settings.renames for settings, _ in way):
        return f"let one of {flows} take back the names that the other one gives"
    if all(policy == policies[0] for policy in policies) and not getattr(policies[0], "separator", "."):
        return f"give {flows} a replication.policy.separator that is not empty"
    return f"give {flows} the same replication.policy.separator and replication.policy.class"
