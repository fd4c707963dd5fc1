"""Renames of topics: Java's patterns and replacements, and the way back."""

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_rules.patterns.java_regex.tokens import UntranslatablePattern
from lockstep_rules.renames import BadReplacement, Rename, find_original_name, rename_topic


@pytest.mark.parametrize(
    ("pattern", "replacement", "name", "new"),
    [
        ("orders-(.*)", "eu.orders.$1", "orders-x", "eu.orders.x"),
        ("orders-(.*)", "eu.orders.$1", "my-orders-x", None),  # the whole name, as Matcher.matches
        (r"A\.(.*)", "$1", "A.orders", "orders"),
        ("(?<what>[a-z]+)-v[0-9]+", "${what}", "orders-v12", "orders"),
        ("(a)(b)?", "$1-$2", "a", "a-"),  # a group that took no part is empty
        ("(a)", "$12", "a", "a2"),  # there is no group 12
        ("(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)(k)(l)", "$12", "abcdefghijkl", "l"),
        ("orders", "$0.$0", "orders", "orders.orders"),
        ("orders", r"\$1", "orders", "$1"),
        ("a|ab", "x", "ab", "xb"),  # Matcher.replaceFirst finds a before it finds ab
        ("(?i)ORDERS", "o", "orders", "o"),
        ("(.*)-(.*)-(.*)-(.*)", "$4.$3.$2.$1", "a-b-c-d", "d.c.b.a"),  # too many choices for `re`: it runs on RE2
        ("(.*?)-(.*?)-(.*?)-(.*)", "$4/$1", "a-b-c-d-e", "d-e/a"),  # lazy repetitions, on RE2 too
        ("a-.*?-.*?-.*?", "x", "a-b-c-d", "xd"),
        ("((?:ab)+)(c)?", "$1-$2", "ababc", "abab-c"),
        ("(?:(a)|b)+c", "$0", "abc", "abc"),  # the group inside the repetition is not asked for
    ],
)
def test_name_becomes_what_regex_router_makes_of_it(pattern: str, replacement: str, name: str, new: str | None) -> None:
    rename = Rename(pattern, replacement)
    assert rename.rename(name) == new
    assert deepcopy(rename) == rename
    assert deepcopy(rename).rename(name) == new


@pytest.mark.parametrize(
    ("pattern", "replacement", "sentence"),
    [
        ("a", "$1", "names group 1, but the pattern has 0"),
        ("(a)", "$", "has a $ without a group behind it"),
        ("(a)", "$x", "has a $ without a group behind it"),
        ("(a)", "b\\", "ends in a backslash"),
        ("(?<a>a)", "${b}", "names the group 'b', which the pattern does not have"),
        ("(ab)+c", "$1", "names group 1, which is inside a repetition"),
        ("((?:x|(a))-){2}(b)", "$3$2", "names group 2, which is inside a repetition"),
    ],
)
def test_replacement_that_java_refuses_is_refused(pattern: str, replacement: str, sentence: str) -> None:
    with pytest.raises(BadReplacement, match=sentence.replace("$", r"\$")):
        Rename(pattern, replacement)


@pytest.mark.parametrize("pattern", ["(", "(a+)+b(?=c)"])
def test_pattern_that_no_filter_takes_is_refused(pattern: str) -> None:
    with pytest.raises(UntranslatablePattern):
        Rename(pattern, "x")


@pytest.mark.parametrize("pattern", ["(.*)+", "(a?)*-b", "x(?:(-[a-z]*)?){2}", r"(?=(\b){2})a", "((b*|c)+)?"])
def test_pattern_that_repeats_a_part_without_text_is_refused(pattern: str) -> None:
    with pytest.raises(UntranslatablePattern, match="it repeats a part that may match nothing"):
        Rename(pattern, "x")


@pytest.mark.parametrize(
    ("pattern", "replacement", "renamed", "original"),
    [
        ("orders-(.*)", "eu.orders.$1", "eu.orders.x", "orders-x"),
        (r"A\.(.*)", "$1", "orders", "A.orders"),
        ("(.*)-(.*)", "$2_$1", "b_a", "a-b"),
        ("a(.*)", "$1$1", "bb", "ab"),
        ("a(.*)", "$1$1", "bc", None),
        ("orders", "payments", "payments", "orders"),
        ("orders-v[0-9]", "orders", "orders", None),  # it could have been any version
        ("orders-(.*)", "orders", "orders", None),
        ("orders-([0-9]*)", "eu.$1", "eu.x", None),  # no name becomes it
    ],
)
def test_original_name_is_found_where_the_new_one_shows_it(
    pattern: str, replacement: str, renamed: str, original: str | None
) -> None:
    assert Rename(pattern, replacement).original_name(renamed) == original


RENAMES = (Rename("orders-(.*)", "eu.orders.$1"), Rename("orders-old-(.*)", "never"), Rename("(a.*)", "eu.$1"))


def test_first_rename_that_matches_counts() -> None:
    assert [rename_topic(RENAMES, name) for name in ("orders-old-x", "abc", "x")] == ["eu.orders.old-x", "eu.abc", "x"]


@given(st.text("ordesabeu.-", min_size=1, max_size=14))
def test_original_name_becomes_the_new_one_again(renamed: str) -> None:
    name = find_original_name(RENAMES, renamed)
    assert name is None or rename_topic(RENAMES, name) == renamed


@pytest.mark.parametrize(
    ("pattern", "examples"),
    [
        ("orders-(.*)", ["orders-t"]),
        (r"A\.(a|b[0-9]{2})-([^t]+?)x?", ["A.a-Tx", "A.b11-Tx"]),
        ("((a{1000}){1000}){1000}|b", ["b"]),
        ("(?!t)(.*)", []),
        ("x", []),  # it keeps its name
    ],
)
def test_examples_are_names_that_change(pattern: str, examples: list[str]) -> None:
    assert list(Rename(pattern, "x").examples()) == examples
