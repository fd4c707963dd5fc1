"""Patterns that match no legal topic name."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_rules.filters import NameFilter
from lockstep_rules.patterns.java_regex.tokens import UntranslatablePattern
from lockstep_rules.patterns.unmatchable_patterns import needed_but_illegal
from lockstep_state.names import TOPIC_CHARACTERS


@pytest.mark.parametrize(
    ("pattern", "needed"),
    [
        ("orders.* # only orders", (" ", "#")),
        ('"orders.*"', ('"',)),
        ("orders.* payments", (" ",)),
        ("\u201corders\u201d", ("\u201c", "\u201d")),
        ("a b|c d", (" ",)),
        ("(a:b)+", (":",)),
        (r"orders\s.*", (" ",)),
        (r"\Qa b\E", (" ",)),
        ("a[ :]b", (" ",)),
        (r"(?=x y).*", (" ",)),
        ("[^-A-Za-z0-9._]", (" ",)),
    ],
)
def test_pattern_needs_characters_that_no_topic_has(pattern: str, needed: tuple[str, ...]) -> None:
    assert needed_but_illegal(pattern) == needed


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "",
            ".*",
            "orders",
            "^orders$",
            "[^.].*",
            "a b|c",
            "(a b)?c",
            "( x)*y",
            "[ a]b",
            "a( b){0}",
            "(?!a b).*",
            "(?<! )a",
        ),
        *(r"\w+", r"\W?a", r"a\.b", "(?i)ORDERS", r"\p{L}+", r"(a)\1", "(?<n>a)", "x{2,}"),
    ],
)
def test_pattern_that_a_topic_may_match_needs_no_illegal_character(pattern: str) -> None:
    assert needed_but_illegal(pattern) == ()


NAMES = ["".join(name) for length in range(1, 5) for name in itertools.product("aB.-", repeat=length)]
_atoms = st.sampled_from(
    ["a", "B", "\\.", "-", " ", "#", '"', ".", "[a ]", "[ #]", "[^a]", "[^ ]", "\\s", "\\S", "\\W", "\\w"]
)
_pattern = st.recursive(
    _atoms,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{0,1}"])).map(lambda two: f"(?:{two[0]}){two[1]}"),
        inner.map(lambda one: f"(?={one})"),
        inner.map(lambda one: f"(?!{one})"),
    ),
    max_leaves=6,
)


@given(_pattern)
def test_pattern_found_unmatchable_matches_no_legal_name(pattern: str) -> None:
    try:
        needed, names = needed_but_illegal(pattern), NameFilter((pattern,))
    except UntranslatablePattern:
        return
    assert not TOPIC_CHARACTERS.intersection(needed)
    if needed:
        assert not any(map(names.matches, NAMES))
