"""The code writes the events that are declared."""

from lockstep_state.commands.command_vocabulary import VERBS
from lockstep_state.event_kinds import EVENT_KINDS, EVENTS_BY_SERVICE
from tests.unit.golden.texts import event_details

ANSWERS = {verb.answer for verb in VERBS.values()}
"""Their detail is put together at run time."""


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
