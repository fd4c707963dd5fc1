"""Linear matching: it ends in time for any name, and matches as `re` does."""

import pickle
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep_rules.filters import NameFilter
from lockstep_rules.patterns.java_regex.tokens import UntranslatablePattern
from lockstep_rules.patterns.linear_regex import NotSteady, _Steps, build_matcher

FOREVER = [
    "(a+)+b",
    "(a|a)*b",
    "(a|aa)+b",
    "(x+x+)+y",
    "(a?){30}a{30}b",
    "a*a*a*a*a*a*a*a*a*a*b",
    ".*.*.*.*.*.*.*b",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "((((a)+)+)+)+b",
    "(?i)(a+)+B",
    "(?=(a+)+b).*",
    "(a{0,50}){0,50}b",
    "([a-z]+-?)*[0-9]",
]


@pytest.mark.parametrize("pattern", FOREVER)
def test_pattern_with_catastrophic_backtracking_matches_at_once(pattern: str) -> None:
    names = NameFilter((pattern,))
    began = time.process_time()
    assert not names.matches("a" * 248 + "!")
    assert not names.matches("x" * 249)
    assert time.process_time() - began < 2


@pytest.mark.parametrize("pattern", [r"(a+)+\1", "(?>a+b?)+(a+)+c", "(a++b*)+(c*)+d"])
def test_pattern_without_linear_matching_is_refused_by_name(pattern: str) -> None:
    with pytest.raises(UntranslatablePattern, match="it can take exponential time on some names, and it "):
        NameFilter((pattern,))


@pytest.mark.parametrize(
    "patterns",
    [
        (r"mm2.*\.internal", r".*\.replica", "__.*"),
        ("console-consumer-.*", "connect-.*", "__.*"),
        (".*", "orders", "orders-.*-eu", "(foo|bar)", "^a.*$", "[a-z]+"),
    ],
)
def test_common_pattern_is_matched_by_re(patterns: tuple[str, ...]) -> None:
    assert isinstance(NameFilter(patterns)._included, re.Pattern)


def test_pattern_with_too_many_states_is_refused() -> None:
    with pytest.raises(NotSteady, match="it repeats too much"):
        build_matcher("((a|bc){1000}){1000}")


def test_linear_filter_can_be_pickled() -> None:
    steady = NameFilter(("(a+)+b",))
    there = pickle.loads(pickle.dumps(steady))  # noqa: S301 - the bytes are ours
    assert there == steady
    assert (there.matches("aab"), there.matches("aac")) == (True, False)


def wrapped(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    ends = st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "*?", ""])
    opening = st.sampled_from(["(", "(?:", "(?i:", "(?=", "(?!"])
    return st.one_of(
        st.builds("{}{}){}".format, opening, inner, ends),
        st.builds("{}{}".format, inner, inner),
        st.builds("(?:{}|{})".format, inner, inner),
    )


leaves = st.sampled_from(
    [
        "a",
        "b",
        "A",
        ".",
        "[ab]",
        "[^a]",
        r"\w",
        r"\W",
        r"\d",
        "[a-b-]",
        r"\b",
        r"\A",
        r"\Z",
        "",
        "(?<=a)",
        "(?<!b)",
    ]
)
patterns = st.recursive(leaves, wrapped, max_leaves=7)


@settings(max_examples=300, deadline=None)
@given(patterns, st.lists(st.text("abAB-1\né", max_size=6), min_size=1, max_size=6))
def test_step_by_step_matches_what_re_matches(pattern: str, names: list[str]) -> None:
    try:
        known = re.compile("(?a)" + pattern)
    except re.error:
        return
    steps = _Steps("(?a)" + pattern)
    assert [bool(steps.fullmatch(name)) for name in names] == [bool(known.fullmatch(name)) for name in names]
