"""Every document, section and decision that code, tests and schemas cite is in the repository."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.support.source_modules import REPOSITORY
from tests.support.tracked_files import tracked_texts

FOLDERS = ("services/", "shared/", "tests/", "tools/", "deploy/")
PAGE = re.compile(r"(?<!`)`((?:[\w.-]+/)*[\w.-]+\.md)`((?:,? (?:and |to )?§\d+(?:\.\d+)*[a-z]?)*)")
SECTION = re.compile(r"§(\d+(?:\.\d+)*[a-z]?)")
DECISION = re.compile(r"decisions?[ /](\d{4})(?:(?:,| and) (\d{4}))?")
OUTSIDE = re.compile(r"(?<![\w/-])(?:wire|mm2|mm1|design|style|field|features|house|operate)\.md|\bdesign §")


@cache
def _citing() -> tuple[tuple[str, str], ...]:
    return tuple(_cited())


def _cited() -> Iterator[tuple[str, str]]:
    for file, text in tracked_texts().items():
        if file.startswith(FOLDERS) and file.endswith((".py", ".json")) and REPOSITORY / file != Path(__file__):
            # A citation may be broken over two lines, of a docstring or of a comment.
            yield file, re.sub(r"\s*\n\s*(?:# )?", " ", text)


@cache
def _pages(cited: str) -> tuple[Path, ...]:
    if "/" in cited:
        return tuple(file for file in [REPOSITORY / cited] if file.is_file())
    return tuple((REPOSITORY / "docs").rglob(cited)) + tuple(REPOSITORY.glob(cited))


@cache
def _has_section(page: Path, number: str) -> bool:
    """A heading of that number, or a line or row that begins with it."""
    return re.search(rf"^(?:#+ |\| *|\s*(?:[-*] )?)\**{re.escape(number)}\b", page.read_text("utf-8"), re.M) is not None


def test_cited_pages_are_in_the_repository() -> None:
    wrong, cited = [], 0
    for file, text in _citing():
        for name, sections in PAGE.findall(text):
            pages = _pages(name)
            cited += 1
            if len(pages) != 1:
                wrong.append(f"{file}: {name} is {len(pages)} pages of docs/")
                continue
            missing = [number for number in SECTION.findall(sections) if not _has_section(pages[0], number)]
            wrong += [f"{file}: {name} has no §{number}" for number in missing]
    assert not wrong, "\n".join(wrong)
    assert cited > 100, "nothing found: this test has lost its subject"


def test_cited_decisions_are_in_the_repository() -> None:
    decisions = {file.name[:4] for file in (REPOSITORY / "docs" / "decisions").glob("[0-9]*.md")}
    wrong = [
        f"{file}: decision {number}"
        for file, text in _citing()
        for numbers in DECISION.findall(text)
        for number in numbers
        if number and number not in decisions
    ]
    assert not wrong, "\n".join(wrong)


def test_citations_are_within_the_repository() -> None:
    wrong = [f"{file}: {citation}" for file, text in _citing() for citation in OUTSIDE.findall(text)]
    assert not wrong, "\n".join(wrong)
