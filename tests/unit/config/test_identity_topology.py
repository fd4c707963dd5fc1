"""Flows that keep topic names: records that reach a cluster twice, and the default provenance of each flow."""

from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_config.flow.identity_topology import (
    Link,
    Mode,
    default_modes,
    double_routes,
    leads_back,
    may_share,
    route_text,
    unreached_routes,
)
from lockstep_rules.filters import NameFilter
from lockstep_state.names import Flow


def links_of(text: str) -> list[Link]:
    """`A->B B->A:orders.*` as links; without a pattern every topic."""
    links = []
    for part in text.split():
        flow, _, pattern = part.partition(":")
        links.append(Link(Flow.parse(flow), NameFilter((pattern or ".*",))))
    return links


def stated_in(text: str) -> dict[Flow, Mode]:
    modes: dict[Flow, Mode] = {}
    for part in text.split():
        flow, _, mode = part.partition("=")
        modes[Flow.parse(flow)] = "relay" if mode == "relay" else "local"
    return modes


MESH = "A->B B->A A->C C->A B->C C->B"


@pytest.mark.parametrize(
    ("graph", "stated", "local"),
    [
        pytest.param("A->B", "", "", id="one way"),
        pytest.param("A->B B->C", "", "", id="chain"),
        pytest.param("A->B B->C C->A", "", "", id="ring"),
        pytest.param("A->B B->A", "", "A->B B->A", id="pair"),
        pytest.param("A->B:x.* B->A:y.*", "", "", id="there and back with other topics is no pair"),
        pytest.param(MESH, "", MESH, id="full mesh"),
        pytest.param("A->B B->C A->C", "", "B->C", id="what comes directly is not passed on as well"),
        pytest.param("A->B:y.* B->C:y.* A->C:x.*", "", "", id="directly with other topics"),
        pytest.param("A->B B->A", "A->B=relay", "B->A", id="as stated"),
        pytest.param("A->B B->C C->D A->D", "", "C->D", id="a longer way round"),
    ],
)
def test_the_default_of_each_flow(graph: str, stated: str, local: str) -> None:
    links = links_of(graph)
    modes = default_modes(links, stated_in(stated))
    assert sorted(str(flow) for flow, mode in modes.items() if mode == "local") == sorted(local.split())
    assert double_routes(links, modes) == []


@pytest.mark.parametrize(
    ("graph", "stated", "ways"),
    [
        pytest.param("A->B A->C B->D C->D", "", [("A", "A->B->D", "A->C->D")], id="diamond"),
        pytest.param("A->B B->C A->C", "B->C=relay", [("A", "A->C", "A->B->C")], id="directly and relayed"),
        pytest.param(
            "A->B B->A B->C C->B",
            "A->B=relay B->A=relay B->C=relay C->B=relay",
            [("A", "A->B", "A->B->C->B"), ("C", "C->B", "C->B->A->B")],
            id="back to a cluster it came through",
        ),
    ],
)
def test_topology_names_double_routes(graph: str, stated: str, ways: list[tuple[str, str, str]]) -> None:
    links = links_of(graph)
    routes = double_routes(links, default_modes(links, stated_in(stated)))
    assert [(each.origin, route_text(each.shorter), route_text(each.longer)) for each in routes] == ways


def test_topology_names_routes_cut_by_local() -> None:
    links = links_of("A->B B->A B->C C->B")
    assert [route_text(path) for path in unreached_routes(links, default_modes(links, {}))] == ["A->B->C", "C->B->A"]
    hub = default_modes(links, stated_in("B->A=relay B->C=relay"))
    assert unreached_routes(links, hub) == []
    assert double_routes(links, hub) == []


def test_topology_finds_flows_of_a_cycle() -> None:
    links = links_of("A->B B->C C->A C->D")
    assert [str(link.flow) for link in links if leads_back(link, links)] == ["A->B", "B->C", "C->A"]


@pytest.mark.parametrize(
    ("pattern", "other_pattern", "shared"),
    [
        (".*", "orders", True),
        ("orders", "orders", True),
        ("orders", "payments", False),
        (r"orders\.eu", r"orders\.us", False),
        (r"eu\..*", r"us\..*", False),
        (r"eu\..*", r"eu\.orders", True),
        ("orders.*", "order", False),
        ("orders*", "order", True),
        ("orders?x", "orderx", True),
        ("a|b", "b", True),
        ("[ab].*", "b", True),
        ("ab{0,1}", "a", True),
        (r"\d+", "7", True),
        ("(?i)ORDERS", "orders", True),
        (r"orders\-.*", "orders-x", True),
    ],
)
def test_topology_finds_filters_that_may_select_the_same_topic(pattern: str, other_pattern: str, shared: bool) -> None:
    a, b = NameFilter((pattern,)), NameFilter((other_pattern,))
    assert may_share(a, b) is may_share(b, a) is shared


elements = st.lists(
    st.sampled_from(["a", "b", "ab", r"a\.b", "a.*", "b.+", "a?b", "a|b", "[ab]", "(a)b*", "a{2}", r"\w", "(?i)A"]),
    min_size=1,
    max_size=2,
).map(lambda patterns: NameFilter(tuple(patterns)))


@given(a=elements, b=elements, name=st.text("abAB.", min_size=1, max_size=4))
def test_topology_filters_that_share_a_name_are_never_disjoint(a: NameFilter, b: NameFilter, name: str) -> None:
    if a.matches(name) and b.matches(name):
        assert may_share(a, b)


flows = st.lists(st.sampled_from([Flow(*pair) for pair in permutations("ABCD", 2)]), unique=True, max_size=8)


@given(flows=flows, stated=st.dictionaries(st.sampled_from([Flow(*p) for p in permutations("ABCD", 2)]), st.booleans()))
def test_topology_that_is_not_refused_brings_no_record_twice(flows: list[Flow], stated: dict[Flow, bool]) -> None:
    """Held against a copy of the rule itself: a record spreads over the flows until nothing new happens."""
    links = [Link(flow, NameFilter((".*",))) for flow in flows]
    modes = default_modes(links, {flow: "relay" if relay else "local" for flow, relay in stated.items()})
    refused = {route.origin for route in double_routes(links, modes)}
    for origin in "ABCD":
        copies: Counter[str] = Counter({origin: 1})
        spreading = [origin]
        while spreading and max(copies.values()) == 1:
            here = spreading.pop()
            for flow in flows:
                if flow.source == here and flow.target != origin and (modes[flow] == "relay" or here == origin):
                    copies[flow.target] += 1
                    spreading.append(flow.target)
        assert (max(copies.values()) > 1) == (origin in refused)
