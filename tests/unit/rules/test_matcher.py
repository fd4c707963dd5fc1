"""No pattern takes for ever on any name, and RE2 matches what `re` does."""

import pickle
import re
import subprocess
import sys
import time
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep_rules.filters import (
    DEFAULT_CONFIG_PROPERTIES_EXCLUDE,
    DEFAULT_GROUPS_EXCLUDE,
    DEFAULT_TOPICS,
    DEFAULT_TOPICS_EXCLUDE,
    NameFilter,
)
from lockstep_rules.patterns import matcher
from lockstep_rules.patterns.java_regex.tokens import UntranslatablePattern
from lockstep_rules.patterns.matcher import UnboundedPattern, build_matcher

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
    "([a-z]+-?)*[0-9]",
]


@pytest.mark.parametrize("pattern", FOREVER)
def test_pattern_with_catastrophic_backtracking_matches_at_once(pattern: str) -> None:
    names = NameFilter((pattern,))
    began = time.process_time()
    assert not names.matches("a" * 248 + "!")
    assert not names.matches("x" * 249)
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "pattern", [r"(a+)+\1", "(?>a+b?)+(a+)+c", "(a++b*)+(c*)+d", "(?=(a+)+b).*", "(a{0,50}){0,50}b"]
)
def test_pattern_without_linear_matching_is_refused_by_name(pattern: str) -> None:
    with pytest.raises(UntranslatablePattern, match="it can take exponential time on some names, and it "):
        NameFilter((pattern,))


@pytest.mark.parametrize(
    "patterns",
    [
        DEFAULT_TOPICS,
        DEFAULT_TOPICS_EXCLUDE,
        DEFAULT_GROUPS_EXCLUDE,
        DEFAULT_CONFIG_PROPERTIES_EXCLUDE,
        (".*", "orders", "orders-.*-eu", "(foo|bar)", "^a.*$", "[a-z]+", "(?i)A+"),
    ],
)
def test_common_patterns_are_matched_by_re(patterns: tuple[str, ...]) -> None:
    assert isinstance(NameFilter(patterns)._included, re.Pattern)


@pytest.mark.parametrize("pattern", [".*a.*b.*", "(orders-.*)+", "(ab|b)*(cd|d)"])
def test_pattern_with_many_choices_is_matched_by_re2(pattern: str) -> None:
    assert not isinstance(NameFilter((pattern,))._included, re.Pattern)


def test_re2_is_loaded_for_the_first_pattern_that_needs_it() -> None:
    code = (
        "import sys; from lockstep_rules.filters import NameFilter; NameFilter(('a.*', '(b|c)')); loaded = 're2' in "
        "sys.modules; NameFilter(('(a+)+b',)); sys.exit(loaded or 're2' not in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    "pattern",
    ["(?!.*-test).*-prod-.*-v.*", r"(?=.*eu)(?!.*-test)(.*)-\1-.*", r"(a|b)-\1", "(?<!x)y+", "a++b", "x{1001}"],
)
def test_pattern_that_re2_does_not_have_is_matched_by_re(pattern: str) -> None:
    assert isinstance(NameFilter((pattern,))._included, re.Pattern)


def test_pattern_too_large_for_re2_is_refused() -> None:
    with pytest.raises(UnboundedPattern, match="it repeats too much"):
        build_matcher("((a|bc){1000}){1000}")


def test_linear_filter_can_be_pickled() -> None:
    steady = NameFilter(("(a+)+b",))
    unpickled = pickle.loads(pickle.dumps(steady))  # noqa: S301 - the bytes are ours
    assert unpickled == steady
    assert (unpickled.matches("aab"), unpickled.matches("aac")) == (True, False)


def wrapped(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    ends = st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "*?", ""])
    opening = st.sampled_from(["(", "(?:", "(?i:", "(?=", "(?!"])
    return st.one_of(
        st.builds("{}{}){}".format, opening, inner, ends),
        st.builds("{}{}".format, inner, inner),
        st.builds("(?:{}|{})".format, inner, inner),
    )


leaves = st.sampled_from(
    ["a", "b", "A", ".", "[ab]", "[^a]", r"\w", r"\W", r"\d", "[a-b-]", r"\b", r"\A", r"\Z", "", "(?<=a)", "(?<!b)"]
)
patterns = st.recursive(leaves, wrapped, max_leaves=7)


@settings(max_examples=300, deadline=None)
@given(patterns, st.lists(st.text("abAB-1\né", max_size=6), min_size=1, max_size=6))
def test_re2_matches_what_re_matches(pattern: str, names: list[str]) -> None:
    try:
        expected = re.compile("(?a)" + pattern)
        with patch.object(matcher, "FEW_CHOICES", -1):
            built = build_matcher("(?a)" + pattern)
    except (re.error, UnboundedPattern):
        return
    assert [bool(built.fullmatch(name)) for name in names] == [bool(expected.fullmatch(name)) for name in names]
