"""`java.util.Properties` syntax, with lines."""

from pathlib import Path

import javaproperties
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_config.text.properties import PropertiesText, read_properties

FILE = Path("mm2.properties")


def read(text: str) -> PropertiesText:
    return read_properties(text.encode(), FILE)


def pairs(text: str) -> dict[str, str]:
    return {entry.key: entry.value for entry in read(text).entries}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", {"a": "1"}),
        ("a = 1", {"a": "1"}),
        ("a:1\nb 2\nc\t3", {"a": "1", "b": "2", "c": "3"}),
        ("# a=1\n! b=2\n  # c=3\nd=4#5", {"d": "4#5"}),
        ("a=1 ", {"a": "1 "}),
        ("a", {"a": ""}),
        ("A->B.topics=x", {"A->B.topics": "x"}),
        (r"topics=foo\.bar", {"topics": "foo.bar"}),
        (r"topics=foo\\.bar", {"topics": r"foo\.bar"}),
        ("topics=a,\\\n      b,\\\n  c", {"topics": "a,b,c"}),
        ("a=1\\\n# no comment", {"a": "1# no comment"}),
        (r"a\ b\=c=d", {"a b=c": "d"}),
        (r"a=\u00e9\tx", {"a": "é\tx"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("", {}),
    ],
)
def test_the_syntax_is_javas(text: str, expected: dict[str, str]) -> None:
    assert pairs(text) == expected


def test_every_key_knows_the_line_it_begins_on() -> None:
    text = read("# one\n\na=1\nb=2,\\\n  3,\\\n  4\n\nc=5\r\nd=6\re=7")
    assert {entry.key: entry.line for entry in text.entries} == {"a": 3, "b": 4, "c": 8, "d": 9, "e": 10}


def test_properties_key_set_twice_has_its_last_value_with_a_note() -> None:
    text = read("a=1\nb=2\na=3")
    assert [(entry.key, entry.value, entry.line) for entry in text.entries] == [("b", "2", 2), ("a", "3", 3)]
    assert [str(note) for note in text.notes] == [
        "mm2.properties:3: a: is set twice, first in line 1: the last one counts"
    ]


def test_malformed_unicode_escape_is_a_problem_and_reading_continues() -> None:
    text = read("a=1\nb=C:\\user\n c=\\u12\nd=4")
    assert [entry.key for entry in text.entries] == ["a", "d"]
    assert [problem.line for problem in text.problems] == [2, 3]
    assert "no Unicode escape" in text.problems[0].message


def test_utf8_is_read_as_written_and_noted_where_java_differs() -> None:
    text = read_properties("# größe\nname=müller\n".encode(), FILE)
    assert text.entries[0].value == "müller"
    assert [note.line for note in text.notes] == [2]
    assert "ISO-8859-1" in text.notes[0].message


def test_bytes_that_are_no_utf8_are_read_as_iso_8859_1() -> None:
    text = read_properties("name=müller".encode("iso-8859-1"), FILE)
    assert (text.entries[0].value, text.notes) == ("müller", ())


def test_an_escape_needs_no_note_and_a_byte_order_mark_is_no_part_of_a_key() -> None:
    text = read_properties(b"\xef\xbb\xbfname=m\\u00fcller", FILE)
    assert (text.entries[0].key, text.entries[0].value, text.notes) == ("name", "müller", ())


texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(texts, texts))
def test_properties_written_by_java_are_read_back(expected: dict[str, str]) -> None:
    written = javaproperties.dumps(expected, timestamp=None)
    text = read_properties(written.encode("iso-8859-1"), FILE)
    assert {entry.key: entry.value for entry in text.entries} == expected
    assert not text.problems


@given(st.dictionaries(texts, texts))
def test_properties_without_escapes_are_read_from_utf8(expected: dict[str, str]) -> None:
    written = javaproperties.dumps(expected, timestamp=None, ensure_ascii=False)
    assert {entry.key: entry.value for entry in read(written).entries} == expected


@given(st.binary())
def test_any_bytes_are_read_or_refused_with_a_line(data: bytes) -> None:
    text = read_properties(data, FILE)
    lines = len(data.splitlines()) + 1
    assert all(1 <= place.line <= max(lines, data.count(b"\r") + data.count(b"\n") + 1) for place in text.entries)
    assert all(problem.line for problem in text.problems)
