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
    one: Path
    other: Path


def route_text(path: Path) -> str:
    """Return the clusters that a path leads through: `A->B->C`."""
    return "->".join([path[0].flow.source, *(link.flow.target for link in path)])


def defaults(links: Sequence[Link], stated: Mapping[Flow, Mode]) -> dict[Flow, Mode]:
    """Return what each flow copies: as `stated`, else `local` or `relay`.

    It is `local` if the flow's target feeds its source too, or if another flow leads to its target from the origin
    directly.
    """
    modes: dict[Flow, Mode] = {
        link.flow: "local" if any(_opposite(link, other) for other in links) else "relay" for link in links
    }
    modes.update((flow, mode) for flow, mode in stated.items() if flow in modes)
    while changed := {
        relaying.flow
        for found in double_routes(links, modes)
        for direct, relaying in ((found.one, found.other[-1]), (found.other, found.one[-1]))
        if len(direct) == 1 and relaying.flow not in stated
    }:
        modes.update(dict.fromkeys(changed, "local"))
    return modes


def _opposite(link: Link, other: Link) -> bool:
    back = (other.flow.target, other.flow.source) == (link.flow.source, link.flow.target)
    return back and _carry_same(link, other)


def double_routes(links: Sequence[Link], modes: Mapping[Flow, Mode]) -> list[DoubleRoute]:
    """Return for each origin the first pair of routes by which its records could reach a cluster twice."""
    found = []
    for origin in _clusters(links):
        arrivals: dict[str, list[Path]] = {}
        for path in _paths(origin, links, modes):
            there = arrivals.setdefault(path[-1].flow.target, [])
            other = next((p for p in there if p[-1] != path[-1] and _may_meet(p, path)), None)
            if other is not None:
                found.append(DoubleRoute(origin, *sorted((other, path), key=len)))
                break
            there.append(path)
    return found


def unreached(links: Sequence[Link], modes: Mapping[Flow, Mode]) -> list[Path]:
    """Return the shortest route of each pair of clusters whose records would pass only if every flow relayed.

    A pair counts if no record of its first cluster reaches the second one now.
    """
    everything: dict[Flow, Mode] = dict.fromkeys(modes, "relay")
    found = []
    for origin in _clusters(links):
        reached = {path[-1].flow.target for path in _paths(origin, links, modes)}
        missing: dict[str, Path] = {}
        for path in islice(_paths(origin, links, everything), MOST_PATHS):
            end = path[-1].flow.target
            if end not in reached:
                missing.setdefault(end, path)  # the shortest ones come first
        found += [path for _, path in sorted(missing.items())]
    return found


def leads_back(link: Link, links: Sequence[Link]) -> bool:
    """Return whether topics of the flow come back from its target to its source, over any clusters."""
    at, seen = [link.flow.target], {link.flow.target}
    while at:
        here = at.pop()
        for other in links:
            if other.flow.source == here and other.flow.target not in seen and _carry_same(link, other):
                seen.add(other.flow.target)
                at.append(other.flow.target)
    return link.flow.source in seen


def _clusters(links: Sequence[Link]) -> list[str]:
    return sorted({link.flow.source for link in links})


def _paths(origin: str, links: Sequence[Link], modes: Mapping[Flow, Mode]) -> Iterator[Path]:
    """Yield every route of a record of `origin`, short ones first. A route ends where it comes to a cluster again."""
    open_: deque[Path] = deque([()])
    while open_:
        path = open_.popleft()
        here = path[-1].flow.target if path else origin
        been = {origin, *(step.flow.target for step in path[:-1])}
        if here in been and path:
            continue
        for link in links:
            carries = modes[link.flow] == "relay" or here == origin
            if link.flow.source == here and link.flow.target != origin and carries:
                longer = (*path, link)
                if _may_meet(path, (link,)):
                    yield longer
                    open_.append(longer)


def _may_meet(one: Path, other: Path) -> bool:
    return all(_carry_same(a, b) for a in one for b in other)


def _carry_same(link: Link, other: Link) -> bool:
    """Return whether both flows may carry the same topic."""
    return link.renames or other.renames or may_share(link.topics, other.topics)


def may_share(one: Names, other: Names) -> bool:
    """Return whether some topic could be selected by both; False only if the beginnings of the names exclude it."""
    if not (isinstance(one, NameFilter) and isinstance(other, NameFilter)):
        return True
    if any("(?" in pattern for pattern in (*one.include, *other.include)):
        return True  # a flag holds for the following elements too
    return any(_overlap(stem(a), stem(b)) for a in one.include for b in other.include)


def stem(pattern: str) -> tuple[str, bool]:
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


def _overlap(one: tuple[str, bool], other: tuple[str, bool]) -> bool:
    (a, a_open), (b, b_open) = one, other
    if a_open and b_open:
        return a.startswith(b) or b.startswith(a)
    if a_open:
        return b.startswith(a)
    return a.startswith(b) if b_open else a == b
