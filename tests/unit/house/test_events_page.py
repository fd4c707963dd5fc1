"""`events.md` is what the declarations make of it, and the code writes the events that are declared."""

import re

from lockstep_state.commands.command_vocabulary import VERBS
from lockstep_state.event_kinds import EVENT_KINDS, EVENTS_BY_SERVICE
from tests.unit.golden.texts import event_details
from tools.docs.events import PAGE, filled

ANSWERS = {verb.answer for verb in VERBS.values()}
"""Their detail is put together at run time."""


def test_events_page_matches_the_declarations() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page) == page, "docs/reference/events.md is stale: python -m tools.docs.events"


def test_events_page_has_a_table_for_each_service() -> None:
    assert re.findall(r"<!-- events of ([a-z -]+) -->", PAGE.read_text(encoding="utf-8")) == list(EVENTS_BY_SERVICE)


def test_events_in_code_are_the_declared_kinds_with_their_detail() -> None:
    declared: dict[str, set[str]] = {}
    for kinds in EVENTS_BY_SERVICE.values():
        for kind in kinds:
            declared.setdefault(kind.name, set()).update(kind.detail.split())
    written = event_details()
    assert written.keys() == declared.keys()
    assert {k: v for k, v in written.items() if k not in ANSWERS} == {
        k: v for k, v in declared.items() if k not in ANSWERS
    }


def test_event_kind_of_two_services_has_one_level() -> None:
    for kinds in EVENTS_BY_SERVICE.values():
        for kind in kinds:
            assert EVENT_KINDS[kind.name].level == kind.level
