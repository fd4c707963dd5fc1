"""`commands.md` has the commands and verbs as they are declared."""

import re

from tools.docs.commands import PAGE, TABLES, filled


def test_commands_page_matches_the_commands() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page) == page, "docs/reference/commands.md is stale: python -m tools.docs.commands"
    assert set(re.findall(r"<!-- commands: ([a-z]+) -->", page)) == set(TABLES)
