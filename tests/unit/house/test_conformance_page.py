"""`conformance.md` is what the names of the tests make of it, and claims nothing that no test bears out."""

import re
from pathlib import Path

import pytest

from tools.docs.conformance import PAGE, Standing, Table, by_number, named_tests, numbers_of, page, read_table

TABLE = read_table()
TESTS = named_tests()
BEHAVIOURS = 188
ALL = set(range(1, BEHAVIOURS + 1))
ALTERING_OFFSETS = {*range(41, 49), *range(73, 80), *range(131, 139)}
"""Commands of our own take these over from Connect: being Java's is no excuse."""


def test_each_behaviour_has_one_sentence() -> None:
    numbers = [number for sentences in TABLE.sections.values() for number in sentences]
    assert numbers == sorted(ALL)
    for sentences in TABLE.sections.values():
        assert [text for text in sentences.values() if not text.strip() or text.endswith(".") or "|" in text] == []


def test_each_name_has_numbers_that_exist() -> None:
    wrong = [test for test in TESTS if not test.numbers or not set(test.numbers) <= ALL]
    assert wrong == [], "a name is test_mm2_NNN_words or test_mm2_NNN_NNN_words, from 001 to 188"


def test_no_number_has_both_a_reason_and_a_test() -> None:
    numbered = {number for test in TESTS for number in test.numbers}
    assert numbered & TABLE.java.keys() == set()
    assert TABLE.partly.keys() & TABLE.java.keys() == set()
    assert TABLE.partly.keys() | TABLE.java.keys() <= ALL


def test_no_reason_goes_round_the_altering_of_offsets() -> None:
    assert ALTERING_OFFSETS & TABLE.java.keys() == set()


def test_the_counts_at_the_top_are_those_of_the_lines() -> None:
    """Told from the page alone, so that neither can say less than the other."""
    text = PAGE.read_text()
    claimed = {word: int(count) for word, count in re.findall(r"^\| ([A-Za-z' ]+) \| (\d+) \|", text, re.MULTILINE)}
    words = re.findall(r"^\| \d+ \| .* \| \*\*([a-z ]+)\*\*(?:: .*)? \|$", text, re.MULTILINE)
    java = re.findall(r"\d+", " ".join(re.findall(r"^\| ([\d, ]+) \| [^|]* \|$", text, re.MULTILINE)))
    shown = {standing: words.count(standing) for standing in (Standing.PARTLY, Standing.NOT_YET)}
    shown[Standing.JAVA] = len(java)
    assert claimed == shown | {Standing.TESTED: BEHAVIOURS - sum(shown.values())}
    assert len(words) == shown[Standing.PARTLY] + shown[Standing.NOT_YET]


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("test_mm2_017_a_word", (17,)),
        ("test_mm2_002_003_words", (2, 3)),
        ("test_mm2_001_until_3_9_it_is_so", (1,)),
        ("test_mm2_17_a_word", ()),
        ("test_mm2_017", ()),
        ("test_mm2_0171_a_word", ()),
    ],
)
def test_numbers_are_read_from_a_name(name: str, numbers: tuple[int, ...]) -> None:
    assert numbers_of(name) == numbers


def test_a_line_of_the_table_may_stand_for_several_numbers() -> None:
    assert by_number({"7": "one", "41-43": "three"}) == {7: "one", 41: "three", 42: "three", 43: "three"}
    with pytest.raises(ValueError, match="41-43 says something of 42, as another key does"):
        by_number({"42": "one", "41-43": "three"})


def test_tests_are_found_in_classes_and_among_coroutines(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "unit"
    folder.mkdir(parents=True)
    folder.joinpath("test_some.py").write_text(
        "class TestA:\n    def test_mm2_001_a(self): ...\nasync def test_mm2_002_b(): ...\ndef test_c(): ...\n"
    )
    named = named_tests(tmp_path)
    assert {(test.path, test.numbers) for test in named} == {
        ("tests/unit/test_some.py", (1,)),
        ("tests/unit/test_some.py", (2,)),
    }


def test_conformance_page_names_what_is_not_tested() -> None:
    table = Table({"Some": {1: "one", 2: "two", 3: "three", 4: "four"}}, {3: "of Java"}, {1: "half of it"})
    tests = [test for test in TESTS if test.numbers in ((1,), (2,))]
    text = page(table, tests)
    for line in ("| partly | 1 |", "| not yet | 1 |", "| Java's own | 1 |", "| 4 | four | **not yet** |"):
        assert line in text
    assert "| 1 | one | **partly**: half of it |" in text
    assert "| 3 | of Java |" in text
    assert "| two |" not in text
