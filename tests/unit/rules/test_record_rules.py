"""Rules drop records and change headers, by the names of headers and by missing values."""

import pickle

import pytest

from lockstep_rules.filters import NameFilter
from lockstep_rules.record_rules import (
    NO_RULES,
    AddHeader,
    DropHeaders,
    DropRecord,
    HasHeader,
    Header,
    InTopic,
    IsTombstone,
    RecordRules,
    Rule,
    RuleSelection,
    matches_name,
)

INTERNAL = DropRecord((HasHeader("x-internal"),))
DEBUG = DropHeaders("x-debug-*")
ORIGIN = AddHeader("x-origin", b"A", (HasHeader("x-origin", negated=True),))


def apply(rules: tuple[Rule, ...], *names: str, is_tombstone: bool = False) -> list[str] | None:
    """Return the header names that a record with these ones gets."""
    headers: list[Header] = [(name, b"v") for name in names]
    left = RecordRules(rules).apply(headers, is_tombstone=is_tombstone)
    return None if left is None else [name for name, _ in left]


@pytest.mark.parametrize(
    ("rules", "names", "is_tombstone", "left"),
    [
        ((INTERNAL,), ["x"], False, ["x"]),
        ((INTERNAL,), ["x", "x-internal"], False, None),
        ((DropRecord((HasHeader("x", negated=True),)),), [], False, None),
        ((DropRecord((HasHeader("x", negated=True),)),), ["x"], False, ["x"]),
        ((DropRecord((HasHeader("x-*"),)),), ["x-y"], False, None),
        ((DropRecord((IsTombstone(),)),), [], True, None),
        ((DropRecord((IsTombstone(),)),), [], False, []),
        ((DropRecord((IsTombstone(negated=True),)),), [], False, None),
        ((DropRecord((HasHeader("x"), IsTombstone())),), ["x"], False, ["x"]),
        ((DropRecord((HasHeader("x"), IsTombstone())),), ["x"], True, None),
        ((DEBUG,), ["x-debug-a", "b", "x-debug-", "x-debug"], False, ["b", "x-debug"]),
        ((DropHeaders("a"),), ["a", "b", "a"], False, ["b"]),
        ((ORIGIN,), ["b"], False, ["b", "x-origin"]),
        ((ORIGIN,), ["x-origin"], False, ["x-origin"]),
        ((DropHeaders("x-origin"), ORIGIN), ["x-origin", "b"], False, ["b", "x-origin"]),
        ((AddHeader("x-internal", b""), INTERNAL), [], False, None),
        ((AddHeader("t", b"", (IsTombstone(),)),), [], True, ["t"]),
    ],
)
def test_rules_apply_in_their_order(
    rules: tuple[Rule, ...], names: list[str], is_tombstone: bool, left: list[str] | None
) -> None:
    assert apply(rules, *names, is_tombstone=is_tombstone) == left


def test_a_topic_has_the_rules_whose_topics_it_is_among() -> None:
    audit = DropRecord((IsTombstone(),), (InTopic(NameFilter(("audit-.*",))),))
    others = AddHeader("a", b"1", topics=(InTopic(NameFilter(("audit-.*",)), negated=True),))
    selection = RuleSelection((audit, others))
    assert selection.for_topic("audit-x") == RecordRules((DropRecord((IsTombstone(),)),))
    assert selection.for_topic("orders") == RecordRules((AddHeader("a", b"1"),))
    assert RuleSelection((audit,)).for_topic("orders") is None
    assert NO_RULES.for_topic("orders") is None


def test_a_version_stands_for_what_the_rules_do() -> None:
    versions = {
        RecordRules(rules).version
        for rules in (
            (INTERNAL,),
            (DEBUG,),
            (INTERNAL, DEBUG),
            (DEBUG, INTERNAL),
            (ORIGIN,),
            (AddHeader("x-origin", b"B", ORIGIN.conditions),),
            (DropHeaders("x-debug-"),),
            (DropRecord((IsTombstone(),)),),
            (DropRecord((IsTombstone(negated=True),)),),
        )
    }
    assert len(versions) == 9
    assert RecordRules((INTERNAL, ORIGIN)).version == RecordRules((INTERNAL, ORIGIN)).version
    assert "A" not in RecordRules((ORIGIN,)).version


def test_rules_can_be_pickled_with_their_program() -> None:
    rules = RecordRules((INTERNAL, DEBUG, ORIGIN))
    assert rules.program
    assert pickle.loads(pickle.dumps(rules)).version == rules.version  # noqa: S301  # its own


def test_the_loop_pattern_is_a_filter_and_an_added_header_of_one_name() -> None:
    mark = AddHeader("x-origin", b"A")
    assert RuleSelection((DropRecord((HasHeader("x-origin"),)), mark)).loop_header() == "x-origin"
    assert RuleSelection((DropRecord((HasHeader("x-*"),)), mark)).loop_header() == "x-origin"
    assert RuleSelection((INTERNAL, mark)).loop_header() is None
    of_some = DropRecord((HasHeader("x-origin"),), (InTopic(NameFilter(("audit-.*",))),))
    assert RuleSelection((of_some, mark)).loop_header() is None
    assert RuleSelection((DropRecord((HasHeader("x-origin", negated=True),)), mark)).loop_header() is None


def test_rules_say_whether_tombstones_may_go() -> None:
    assert RecordRules((INTERNAL,)).drops_tombstones
    assert not RecordRules((DropRecord((HasHeader("x"), IsTombstone(negated=True))),)).drops_tombstones
    assert not RecordRules((DEBUG,)).drops_records


def test_a_name_with_a_wildcard_is_the_beginning_of_names() -> None:
    assert [matches_name("a*", name) for name in ("a", "ab", "b", "")] == [True, True, False, False]
    assert matches_name("*", "anything")
