"""Where the project is stands in one place, and a fork that changes it is followed everywhere."""

import re

import pytest

from lockstep_state import project_address
from tests.support.tracked_files import tracked_texts
from tools.docs import address

PLACE = "shared/state/src/lockstep_state/project_address.py"
FORK = "https://github.com/Example-Org/mirror"
# Files with addresses of others, which are copied from them or name them as their sources.
OF_OTHERS = re.compile(
    r"tests/support/(?:franz_go/|connect_client/|axe|spark_operator\.py|(?:known|documented)_clusters\.py)|docs/reference/clusters\.md"
    r"|services/console/src/lockstep_console/static/vendor/|tools/console/package"
)
OTHERS = {"apache", "confluentinc", "OWNER"}
ADDRESS = re.compile(r"(?:(?:github|githubusercontent)\.com|ghcr\.io)/([\w.-]+)")
OWNER = project_address.REPOSITORY.split("/")[3]


def stated() -> dict[str, str]:
    """Each file that states an address of ours, or of nobody that is known here."""
    return {
        name: text
        for name, text in tracked_texts().items()
        if not OF_OTHERS.match(name) and set(ADDRESS.findall(text)) - OTHERS
    }


def test_no_file_states_another_address() -> None:
    strays = {
        f"{name}: {owner}"
        for name, text in stated().items()
        if name != "tests/unit/house/test_project_address.py" and name != "tests/unit/house/test_release.py"
        for owner in set(ADDRESS.findall(text)) - OTHERS
        if owner != OWNER
    }
    assert strays == set(), "write it with make docs, or ask lockstep_state.project_address for it"


def test_code_asks_for_the_address_in_one_place() -> None:
    ours = (project_address.REPOSITORY, project_address.IMAGES)
    assert [name for name, text in stated().items() if name.endswith(".py") and any(own in text for own in ours)] == [
        PLACE
    ]
    assert tracked_texts()[PLACE].count(project_address.REPOSITORY) == 1


def test_files_have_the_address_of_the_one_place() -> None:
    assert address.stated() == project_address.REPOSITORY, "run make docs"


def test_files_of_a_fork_have_its_address_everywhere() -> None:
    for file in address.files():
        text = file.read_text(encoding="utf-8")
        forked = address.with_address(text, project_address.REPOSITORY, FORK)
        remaining = {owner for owner in ADDRESS.findall(forked) if owner.lower() == OWNER.lower()}
        assert not remaining, file
        assert address.with_address(forked, FORK, project_address.REPOSITORY) == text, file


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("https://github.com/a/b/blob/main/x", "https://github.com/C/d/blob/main/x"),
        ("https://raw.githubusercontent.com/a/b/main/x.svg", "https://raw.githubusercontent.com/C/d/main/x.svg"),
        ("${X:-ghcr.io/a}/lockstep-cli", "${X:-ghcr.io/c}/lockstep-cli"),
        ("https://github.com/a/b-other https://github.com/aa/b ghcr.io/a-b/x", None),
    ],
)
def test_address_is_replaced_as_a_whole(before: str, after: str | None) -> None:
    assert address.with_address(before, "https://github.com/a/b", "https://github.com/C/d") == (after or before)


def test_registry_has_the_owner_in_lower_case() -> None:
    assert project_address.image_registry("https://github.com/Some-Org/repository") == "ghcr.io/some-org"
