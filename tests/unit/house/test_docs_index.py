"""Every page is listed in an index, every link of a page leads somewhere, to the heading that it names, and the modules
that pages for developers name are there."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.support.source_modules import REPOSITORY

DOCS = REPOSITORY / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
CHART = REPOSITORY / "deploy" / "helm" / "lockstep" / "README.md"
LINKING = [*(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), CHART, *PAGES]
DEVELOPERS_FOLDERS = ("internals", "decisions")
FOR_DEVELOPERS = [REPOSITORY / "CONTRIBUTING.md", *(page for page in PAGES if page.parent.name in DEVELOPERS_FOLDERS)]

FENCE = re.compile(r"^([ >]*)(```+|~~~+).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"\]\(<?([^()\s<>]+)>?(?:\s+\"[^\"]*\")?\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *#* *$", re.MULTILINE)
NAMED = re.compile(r"<a (?:name|id)=\"([^\"]+)\"")
MODULE = re.compile(r"`((?:[\w.-]+/)*\w+\.py)`")
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


@cache
def text_of(page: Path) -> str:
    """The page without its blocks of code."""
    return FENCE.sub("", page.read_text("utf-8"))


@cache
def anchors(page: Path) -> frozenset[str]:
    """What may follow a `#`, as GitHub makes it of headings."""
    seen: Counter[str] = Counter()
    modules = set(NAMED.findall(text_of(page)))
    for heading in HEADING.findall(text_of(page)):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        modules.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return frozenset(modules)


def links(page: Path) -> Iterator[tuple[str, Path, str]]:
    """Each link within the repository: as it is written, the file, and the anchor."""
    for written in LINK.findall(CODE.sub("", text_of(page))):
        if not ELSEWHERE.match(written):
            path, _, anchor = unquote(written).partition("#")
            yield written, (page.parent / path).resolve() if path else page, anchor


def listed(index: Path) -> set[Path]:
    return {file for _, file, _ in links(index)}


@cache
def modules() -> str:
    """The paths of all Python files, one a line."""
    folders = ("services", "shared", "tests", "tools", ".ci")
    return "\n".join(str(file) for folder in folders for file in (REPOSITORY / folder).rglob("*.py"))


def is_module(named: str) -> bool:
    """`core/phases.py` and `data-plane/core/phases.py` are both `.../lockstep_data_plane/core/phases.py`."""
    head, slash, rest = named.partition("/")
    package = f"lockstep_{head.replace('-', '_')}{slash}{rest}"
    return any(f"/{path}\n" in f"{modules()}\n" for path in (named, package))


def torn_links(page: Path) -> Iterator[str]:
    """Links that a mark of code within them tears apart: `](` is in the code, and the bracket before it is not."""
    for code in CODE.finditer(text_of(page)):
        before, middle, _ = code[0].partition("](")
        if middle and "[" not in before:
            yield code[0]


def faults(page: Path) -> Iterator[str]:
    for torn in torn_links(page):
        yield f"{torn}: a mark of code tears a link apart"
    for written, file, anchor in links(page):
        if not file.exists():
            yield f"{written}: there is no such file"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            yield f"{written}: no such heading"


def test_each_page_is_in_an_index() -> None:
    """The index of a folder is its README.md; what docs/README.md lists itself needs no other."""
    top = listed(DOCS / "README.md")
    indexes = {page.parent: top | listed(page) for page in PAGES if page.name == "README.md" and page in top}
    missing = [page for page in PAGES if page != DOCS / "README.md" and page not in indexes.get(page.parent, top)]
    assert not missing, [str(page.relative_to(REPOSITORY)) for page in missing]


def test_the_index_is_reached_from_the_start() -> None:
    assert {DOCS / "README.md", REPOSITORY / "CONTRIBUTING.md"} <= listed(REPOSITORY / "README.md")


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_each_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    assert not list(faults(page))


@pytest.mark.parametrize("page", FOR_DEVELOPERS, ids=lambda page: page.name)
def test_each_module_that_is_named_is_there(page: Path) -> None:
    assert not [named for named in MODULE.findall(text_of(page)) if not is_module(named)]


def test_docs_index_ignores_links_and_headings_in_code(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# The `a_b` [word](x.md), again!\n\n## Twice\n\n## Twice\n\n[one](#twice-1) [two\nlines](page.md#nowhere)"
        ' `[no](y.md)` [out](https://a.b/c) ![picture](z.png "title")\n\n```text\n# no heading\n[no](w.md)\n```\n'
    )
    assert anchors(page) == {"the-a_b-word-again", "twice", "twice-1"}
    assert [written for written, _, _ in links(page)] == ["x.md", "#twice-1", "page.md#nowhere", "z.png"]
    assert [fault.partition(":")[0] for fault in faults(page)] == ["x.md", "page.md#nowhere", "z.png"]


def test_docs_index_finds_links_with_a_torn_mark_of_code(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("[a-`b](a-`b.md) and [`c`](page.md) and `[no](y.md)`\n")
    assert list(torn_links(page)) == ["`b](a-`"]
    assert len(list(faults(page))) == 1
