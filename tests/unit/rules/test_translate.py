"""Patterns match in Python as in java.util.regex under `matches()`, or are refused.

What each pattern matches here was seen in a Java 17 on the same names.
"""

import contextlib
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_rules.patterns.java_regex.tokens import UntranslatablePattern
from lockstep_rules.patterns.java_regex.translate import to_python


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("", [""], ["a"]),
        ("topic-1", ["topic-1"], ["topic-11"]),
        ("a|", ["a", ""], ["aa"]),
        ("a.b", ["a.b", "axb"], ["a\nb", "a\rb", "a\x85b", "a\u2028b"]),
        ("(?s)a.b", ["axb", "a\nb", "a\u2028b"], ["ab"]),
        ("a++b", ["ab", "aab"], ["b"]),
        ("a*+a", [], ["a", "aa"]),
        ("(?>a|ab)c", ["ac"], ["abc"]),
        (r"(?>a*)b", ["b", "aab"], ["a"]),
        (r"\p{Alpha}+", ["aB"], ["é", "1", ""]),
        (r"\p{L}+", ["aBé日本", "ǅ", "𝔸"], ["1", "²", "Ⅷ", "_"]),
        (r"\pL", ["a", "é"], ["1"]),
        (r"\p{IsNd}+", ["1٣"], ["²", "a"]),
        (r"\P{Digit}+", ["aé٣"], ["a1"]),
        (r"[\P{Digit}1]+", ["a1"], ["2"]),
        (r"[^\P{Digit}]+", ["12"], ["a"]),
        (r"\p{Punct}+", ["!~[]^`{\\"], ["a", " "]),
        (r"\p{Space}+", [" \t\n\x0b\f\r"], ["\xa0"]),
        (r"\Qa.b*\E", ["a.b*"], ["axb", "a.bb"]),
        (r"\Qab\E+c", ["abc", "abbc"], ["ababc", "ac"]),
        (r"a\Q.", ["a."], ["ab"]),
        (r"\\Q", [r"\Q"], ["Q"]),
        (r"[\Qa-c\E]+", ["a-c"], ["b"]),
        (r"[a-\Qc\E]+", ["abc"], ["-"]),
        ("a|(?i)b|c", ["a", "b", "B", "c", "C"], ["A"]),
        ("((?i)a|b)c|d", ["ac", "Ac", "Bc", "d"], ["aC", "D"]),
        ("(?i:a)b", ["ab", "Ab"], ["aB"]),
        ("(?i)a(?-i)b", ["ab", "Ab"], ["AB"]),
        ("(?i)é|k", ["é", "K"], ["É", "\u212a"]),
        ("(?i-s:A).", ["ax", "Ax"], ["a\n"]),
        (r"(?i)(a)\1", ["aA", "Aa"], ["ab"]),
        (r"a\z", ["a"], ["a\n"]),
        (r"\Aa\Z\n", ["a\n"], ["a"]),
        (r"a$\r\n", ["a\r\n"], ["a\r", "a"]),
        ("^a$", ["a"], ["a\n"]),
        (r"(?<n>a|b)\k<n>", ["aa", "bb"], ["ab"]),
        (r"(a)\11", ["aa1"], ["aa"]),
        (r"\h+", [" \t\xa0\u3000"], ["\n", "a"]),
        (r"[\H]+", ["ab\n"], [" "]),
        (r"\v+", ["\n\x0b\r\u2029"], [" "]),
        (r"\R", ["\n", "\r\n", "\u2028"], ["\n\n"]),
        ("[a-z&&[^b]]+", ["ac"], ["b", "A"]),
        ("[a-z&&b-d]+", ["bcd"], ["a", "e"]),
        ("[a-z&&b-d&&[c]]+", ["c"], ["b"]),
        ("[^a[b]]+", ["cd"], ["a", "b"]),
        ("[^a-c&&[b]]", ["a", "c", "z"], ["b"]),
        ("[[a-c]&&[b-d]]+", ["bc"], ["a", "d"]),
        (r"[\w&&[^\d_]]+", ["ab"], ["1", "_"]),
        ("[]a]+", ["]a"], ["b"]),
        ("[^]a]+", ["b["], ["]"]),
        (r"[\d-a]+", ["1-a"], ["b"]),
        ("[a-]+", ["a-"], ["b"]),
        ("[+--]+", ["+,-"], ["."]),
        ("[a&b^]+", ["a&b^"], ["c"]),
        ("[[a][b]]+", ["ab"], ["[", "]"]),
        (r"\w+", ["aZ_9"], ["é"]),
        (r"\d+", ["09"], ["٣"]),
        (r"\x41\x{1F600}\u0042\0103\e\cA\t", ["A😀BC\x1b\x01\t"], ["A"]),
        ("a{2}", ["aa"], ["a", "aaa"]),
        ("a{1,2}+b", ["ab", "aab"], ["b"]),
        ("a{2,}?", ["aa", "aaa"], ["a"]),
        ("}]", ["}]"], ["}"]),
        (r"a(?=b)b|c(?!d).|(?<=x)y|z(?<!y)", ["ab", "ce", "z"], ["a", "cd", "y"]),
        (r"\bfoo\b.bar|a\Bb", ["foo bar", "ab"], ["foobar"]),
        (r"\-\_\ \.", ["-_ ."], ["-_ x"]),
        (r"mm2.*\.internal|.*\.replica|__.*", ["mm2-x.internal", "x.replica", "__c"], ["mm2-xinternal", "_c"]),
    ],
)
def test_the_same_names_match(pattern: str, matching: list[str], others: list[str]) -> None:
    translated = re.compile(to_python(pattern))
    assert [name for name in matching if not translated.fullmatch(name)] == []
    assert [name for name in others if translated.fullmatch(name)] == []


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(a", "a ( without its ), at character 2"),
        ("ab)", "a ) without its (, at character 2"),
        ("*.log", "* has nothing to repeat (.* is any text), at character 1"),
        ("a**", "* has nothing to repeat (.* is any text), at character 3"),
        ("a|+", "+ has nothing to repeat, at character 3"),
        ("[a", "a [ without its ], at character 2"),
        ("[z-a]", "illegal range z-a: its end comes before its beginning, at character 4"),
        ("{", "{ has nothing to repeat, at character 1"),
        ("a{,2}", "illegal repetition {,2}, at character 5"),
        ("a{2,1}", "illegal repetition {2,1}: the upper bound is below the lower one, at character 6"),
        ("a{1", "a { without its }, at character 3"),
        ("a\\", "a \\ at the end escapes nothing, at character 2"),
        (r"\y", r"\y is not supported, at character 2"),
        (r"\p{Foo}", r"\p{Foo} is not supported: use a general category such as L, Lu or Nd, or one of "),
        (r"(?i)\p{Lu}", r"\p{Lu} under the flag i has no counterpart here, at character 10"),
        (r"(a)\2", r"\2 refers to a group that does not precede it, at character 5"),
        (r"\k<n>", r"\k must name a group that precedes it, at character 5"),
        ("(?<n>a)(?<n>b)", "there is a group named 'n' already, at character 12"),
        ("(?<1>a)", "'1' is no name for a group: ASCII letters and digits, a letter first, at character 5"),
        ("(?P<n>a)", "unknown kind of group, at character 2"),
        ("(?m)^a", "the flag m (MULTILINE) has no counterpart here, at character 3"),
        ("a(?x) b", "the flag x (COMMENTS) has no counterpart here, at character 4"),
        ("(?iq)a", "unknown flag 'q', at character 4"),
        ("(?i", "flags without their ), at character 3"),
        (r"\b{g}", r"\b{g} (grapheme cluster boundary) has no counterpart here, at character 2"),
        ("[a&&]", "&& needs a class on either side, at character 2"),
        ("[a&&[b]c&&d]", "a class with several && must have a single class between each two of them"),
        (r"\x4", r"\x needs two hexadecimal digits, at character 2"),
        (r"\x{110000}", r"\x{110000} is no character, at character 10"),
        (r"\ud83d\ude00", "half of a surrogate pair: write the character itself or"),
        (r"\08", r"\0 needs octal digits, at character 2"),
        ("(?<=a+)b", "Python's regular expressions refuse it: look-behind requires fixed-width pattern"),
        ("(" * 5000 + ")" * 5000, "too large: "),
        ("a{99999999999}", "too large: "),
    ],
)
def test_untranslatable_pattern_is_refused_with_its_place(pattern: str, reason: str) -> None:
    with pytest.raises(UntranslatablePattern) as caught:
        to_python(pattern)
    assert caught.value.pattern == pattern
    assert caught.value.reason.startswith(reason)
    assert str(caught.value) == f"regular expression {pattern!r}: {caught.value.reason}"


@given(st.text())
def test_quoted_text_matches_itself_and_nothing_longer(text: str) -> None:
    translated = re.compile(to_python("\\Q" + text.replace("\\E", "") + "\\E"))
    assert translated.fullmatch(text.replace("\\E", ""))
    assert not translated.fullmatch(text + "x")


@given(st.text(r"ab.-[]()^$*+?{}|\&:<>=!iQEdpLx01,", max_size=12))
def test_every_text_is_translated_or_refused(pattern: str) -> None:
    with contextlib.suppress(UntranslatablePattern):
        re.compile(to_python(pattern))


def test_a_refusal_can_travel_between_processes() -> None:
    refusal = UntranslatablePattern("(a", "a ( without its )")
    assert str(pickle.loads(pickle.dumps(refusal))) == str(refusal)  # noqa: S301 - the bytes are ours
