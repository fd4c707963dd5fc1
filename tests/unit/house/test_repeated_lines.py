"""A line of a page that makes a folder or a link can be run again: the second run gives what the first one gave."""

import re

import pytest

from tests.support.tracked_files import tracked_texts

COPIES_FOLDER = re.compile(r"\bcp -(?:r|a)\S* \S+[^/.] (\S+?)(?=`|\s|$)")
"""The copy of a folder. If the target is there already, the folder is copied into it."""
MAKES = re.compile(r"\b(?:mkdir (?!-p )|ln -s )")
"""A folder or a link that may be there already."""


def unrepeatable(line: str) -> bool:
    """Return whether a line does another thing when it is run again."""
    copied = COPIES_FOLDER.search(line)
    return bool(MAKES.search(line)) or (copied is not None and f"rm -rf {copied[1]} " not in line[: copied.start()])


def test_lines_of_pages_can_be_run_again() -> None:
    pages = {name: text for name, text in tracked_texts().items() if name.endswith(".md")}
    assert "README.md" in pages
    lines = [f"{name}: {line}" for name, text in pages.items() for line in text.splitlines()]
    assert [line for line in lines if unrepeatable(line)] == []


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("make release && cp -r build/release release", True),
        ("make release && rm -rf release && cp -r build/release release", False),
        ("`rm -rf other && cp -r build/release release`", True),
        ("cp -r build/release/. release", False),
        ("mkdir certs", True),
        ("mkdir -p certs", False),
    ],
)
def test_line_that_nests_or_fails_the_second_time_is_named(line: str, wanted: bool) -> None:
    assert unrepeatable(line) is wanted
