"""A line that installs Lockstep brings in nothing else: it names files, or one version of each package with hashes."""

import re

import pytest

from tests.support.tracked_files import tracked_texts

TOOLS = re.compile(r"\b(?:pip3? (?:install|download|wheel)|uv pip (?:install|sync)|uv tool (?:install|run)|uvx|pipx) ")
FENCED = re.compile(r"^ *```\w*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
OLD_NAME = re.compile(r"(?<![\w-])lockstep(?:\[[a-z-]+[],]|[=~>]=\d)")
"""The distribution `lockstep` with an extra or a version: the name is of another project."""


def install_lines(text: str) -> list[str]:
    """The commands in the blocks of a page that install something, each without its line breaks."""
    blocks = (block.replace("\\\n", " ") for block in FENCED.findall(text))
    return [line.strip() for block in blocks for line in block.splitlines() if TOOLS.search(line)]


def is_pinned(line: str) -> bool:
    """Whether a line takes nothing by its name alone."""
    if "--require-hashes" in line and "--no-deps" in line:
        return " -r " in line
    return "--no-index" in line and line.endswith("/*.whl")


LINES = [
    f"{name}: {line}"
    for name, text in tracked_texts().items()
    if name.endswith(".md") and not name.startswith("docs/decisions/")
    for line in install_lines(text)
]


@pytest.mark.parametrize("line", LINES)
def test_install_line_has_a_requirements_file_with_hashes(line: str) -> None:
    assert is_pinned(line.partition(": ")[2])


def test_pages_with_an_installation_are_looked_at() -> None:
    assert {line.partition(":")[0] for line in LINES} >= {"README.md", "docs/get-started.md", "docs/guides/install.md"}


@pytest.mark.parametrize(
    ("line", "pinned"),
    [
        ("pip install --require-hashes --no-deps -r all.txt", True),
        ("pip install --no-index --no-deps wheels/*.whl", True),
        ("pip install --no-index --find-links wheels lockstep-kafka", False),
        ("uv pip install --require-hashes --no-deps lockstep-kafka==0.1.0", False),
        ("uv tool install --find-links release 'lockstep-kafka[all]==0.1.0'", False),
    ],
)
def test_line_is_pinned_by_files_or_hashes_alone(line: str, pinned: bool) -> None:
    assert install_lines(f"```sh\n{line}\n```\n") == [line]
    assert is_pinned(line) is pinned


def test_nothing_names_the_distribution_of_another_project() -> None:
    of_this = "tests/unit/house/test_install_lines.py"
    decisions = "docs/decisions/"
    texts = {name: text for name, text in tracked_texts().items() if name != of_this and not name.startswith(decisions)}
    assert [f"{name}: {match[0]}" for name, text in texts.items() for match in OLD_NAME.finditer(text)] == []
