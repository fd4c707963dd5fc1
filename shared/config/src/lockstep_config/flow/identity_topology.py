"""The flows of a file that could bring a record to a cluster twice, if topics keep their names.

Records can come round then, because a topic's name does not say where they came from. `lockstep.provenance` says what
each flow copies: `local` only what originated on its source, `relay` everything but what originated on its target
(`kafka-wire.md` §4). This module is pure.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from lockstep_rules.filters import NameFilter, Names
from lockstep_state.names import Flow

Mode = Literal["local", "relay"]

MOST_PATHS = 2000
"""The most routes through a file that are followed for a remark. A full mesh of many clusters has millions."""

_META = frozenset(".*+?[](){}|^$")


@dataclass(frozen=True, slots=True)
class Link:
    """A flow that runs and whose names of topics do not show where they came from, and the topics that it selects."""

    flow: Flow
    topics: Names
    renames: bool = False
    """Topics have other names behind the flow, so that any topic may meet any other."""


Path = tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class DoubleRoute:
    """Two routes by which records of `origin` reach the same cluster. They end with different flows."""

    origin: str
    shorter: Path
    longer: Path


def route_text(path: Path) -> str:
    """Return the clusters that a path leads through: `A->B->C`."""
    return "->".join([path[0].flow.source, *(link.flow.target for link in path)])


def default_modes(links: Sequence[Link], stated: Mapping[Flow, Mode]) -> dict[Flow, Mode]:
    """Return what each flow copies: as `stated`, else `local` or `relay`.

    It is `local` if the flow's target feeds its source too, or if another flow leads to its target from the origin
    directly.
    """
    modes: dict[Flow, Mode] = {
        link.flow: "local" if any(_opposite(link, candidate) for candidate in links) else "relay" for link in links
    }
    modes.update((flow, mode) for flow, mode in stated.items() if flow in modes)
    while changed := {
        relaying.flow
        for double in double_routes(links, modes)
        for direct, relaying in ((double.shorter, double.longer[-1]), (double.longer, double.shorter[-1]))
        if len(direct) == 1 and relaying.flow not in stated
    }:
        modes.update(dict.fromkeys(changed, "local"))
    return modes


def _opposite(link: Link, candidate: Link) -> bool:
    is_opposite = (candidate.flow.target, candidate.flow.source) == (link.flow.source, link.flow.target)
    return is_opposite and _carry_same(link, candidate)


def double_routes(links: Sequence[Link], modes: Mapping[Flow, Mode]) -> list[DoubleRoute]:
    """Return for each origin the first pair of routes by which its records could reach a cluster twice."""
    doubles = []
    for origin in _clusters(links):
        arrivals: dict[str, list[Path]] = {}
        for path in _paths(origin, links, modes):
            routes = arrivals.setdefault(path[-1].flow.target, [])
            second = next((p for p in routes if p[-1] != path[-1] and _may_meet(p, path)), None)
            if second is not None:
                doubles.append(DoubleRoute(origin, *sorted((second, path), key=len)))
                break
            routes.append(path)
    return doubles


def unreached_routes(links: Sequence[Link], modes: Mapping[Flow, Mode]) -> list[Path]:
    """Return the shortest route of each pair of clusters whose records would pass only if every flow relayed.

    A pair counts if no record of its first cluster reaches the second one now.
    """
    everything: dict[Flow, Mode] = dict.fromkeys(modes, "relay")
    routes = []
    for origin in _clusters(links):
        reached = {path[-1].flow.target for path in _paths(origin, links, modes)}
        missing: dict[str, Path] = {}
        for path in islice(_paths(origin, links, everything), MOST_PATHS):
            end = path[-1].flow.target
            if end not in reached:
                missing.setdefault(end, path)  # the shortest ones come first
        routes += [path for _, path in sorted(missing.items())]
    return routes


def leads_back(link: Link, links: Sequence[Link]) -> bool:
    """Return whether topics of the flow come back from its target to its source, over any clusters."""
    open_clusters, reached = [link.flow.target], {link.flow.target}
    while open_clusters:
        cluster = open_clusters.pop()
        for onward in links:
            end = onward.flow.target
            if onward.flow.source == cluster and end not in reached and _carry_same(link, onward):
                reached.add(end)
                open_clusters.append(end)
    return link.flow.source in reached


def _clusters(links: Sequence[Link]) -> list[str]:
    return sorted({link.flow.source for link in links})


def _paths(origin: str, links: Sequence[Link], modes: Mapping[Flow, Mode]) -> Iterator[Path]:
    """Yield every route of a record of `origin`, short ones first. A route ends where it comes to a cluster again."""
    routes: deque[Path] = deque([()])
    while routes:
        path = routes.popleft()
        cluster = path[-1].flow.target if path else origin
        visited = {origin, *(step.flow.target for step in path[:-1])}
        if cluster in visited and path:
            continue
        for link in links:
            carries = modes[link.flow] == "relay" or cluster == origin
            if link.flow.source == cluster and link.flow.target != origin and carries:
                extended = (*path, link)
                if _may_meet(path, (link,)):
                    yield extended
                    routes.append(extended)


def _may_meet(path: Path, other_path: Path) -> bool:
    return all(_carry_same(a, b) for a in path for b in other_path)


def _carry_same(link: Link, other: Link) -> bool:
    """Return whether both flows may carry the same topic."""
    return link.renames or other.renames or may_share(link.topics, other.topics)


def may_share(topics: Names, other_topics: Names) -> bool:
    """Return whether some topic could be selected by both; False only if the beginnings of the names exclude it."""
    if not (isinstance(topics, NameFilter) and isinstance(other_topics, NameFilter)):
        return True
    if any("(?" in pattern for pattern in (*topics.include, *other_topics.include)):
        return True  # a flag holds for the following elements too
    return any(_overlap(literal_prefix(a), literal_prefix(b)) for a in topics.include for b in other_topics.include)


def literal_prefix(pattern: str) -> tuple[str, bool]:
    """Return the beginning of every name that matches a pattern, and whether anything may follow it."""
    literal = ""
    escaped = False
    if "|" in pattern:
        return "", True
    for c in pattern:
        if escaped:
            if c.isalnum():
                return literal, True
            literal, escaped = literal + c, False
        elif c == "\\":
            escaped = True
        elif c in _META:
            return literal[:-1] if c in "*?{" else literal, True
        else:
            literal += c
    return literal, False


def _overlap(stem_a: tuple[str, bool], stem_b: tuple[str, bool]) -> bool:
    (a, a_open), (b, b_open) = stem_a, stem_b
    if a_open and b_open:
        return a.startswith(b) or b.startswith(a)
    if a_open:
        return b.startswith(a)
    return a.startswith(b) if b_open else a == b
