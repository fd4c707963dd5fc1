"""Rules for records and headers: `lockstep.filter`, `lockstep.headers`, and Connect's transforms in their place."""

import pytest

from lockstep_config.keys.record_rules import parse_filter, parse_headers
from lockstep_config.text.values import BadValue
from lockstep_rules.filters import NameFilter
from lockstep_rules.record_rules import (
    AddHeader,
    DropHeaders,
    DropRecord,
    HasHeader,
    InTopic,
    IsTombstone,
    RecordRules,
    Rule,
)
from tests.support.source_modules import REPOSITORY

from .conftest import A_TO_B, LoadText, MistakesOf, ab

CONNECT = "org.apache.kafka.connect.transforms."
IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"


def step(kind: str, called: str, short: str, /, **keys: str) -> str:
    """Return the lines of a transform or predicate."""
    java_class = f"{CONNECT}{'predicates.' if kind == 'predicates' else ''}{short}"
    lines = {"type": java_class, **{key.replace("_", "."): value for key, value in keys.items()}}
    return "".join(f"{kind}.{called}.{key} = {value}\n" for key, value in lines.items())


INTERNAL = "predicates = p\n" + step("predicates", "p", "HasHeaderKey", name="x-internal")


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("", ()),
        ("header a", (DropRecord((HasHeader("a"),)),)),
        (" not header a ; tombstone;", (DropRecord((HasHeader("a", negated=True),)), DropRecord((IsTombstone(),)))),
        ("header x-* and not tombstone", (DropRecord((HasHeader("x-*"), IsTombstone(negated=True))),)),
        ("topic a|b and tombstone", (DropRecord((IsTombstone(),), (InTopic(NameFilter(("a|b",))),)),)),
    ],
)
def test_a_filter_is_read(text: str, rules: tuple[DropRecord, ...]) -> None:
    assert parse_filter(text) == rules


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("drop a", (DropHeaders("a"),)),
        ("drop x-* ; add b=c", (DropHeaders("x-*"), AddHeader("b", b"c"))),
        ("add b = c=d e", (AddHeader("b", b"c=d e"),)),
        ("add b=", (AddHeader("b", b""),)),
        (
            "add b=ü if not header b and tombstone",
            (AddHeader("b", "ü".encode(), (HasHeader("b", True), IsTombstone())),),
        ),
    ],
)
def test_changes_of_headers_are_read(text: str, rules: tuple[Rule, ...]) -> None:
    assert parse_headers(text) == rules


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("header", "has 'header', which is no condition: write header NAME, tombstone or topic PATTERN"),
        ("header a or tombstone", "which is no condition"),
        ("not not tombstone", "which is no condition"),
        ("header a*b", r"has 'a\*b': \* stands only at the end of a header's name"),
        ("; ".join(["tombstone"] * 101), "has 101 rules: at most 100 are allowed"),
    ],
)
def test_a_filter_that_is_none_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(BadValue, match=sentence):
        parse_filter(text)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("remove a", "has 'remove a', which is no rule: write drop NAME, or add NAME=VALUE"),
        ("drop", "which is no rule"),
        ("add a", "which is no rule"),
        ("add =b", "which is no rule"),
        ("add a*=b", r"has 'a\*', which is not the name of one header"),
        ("drop a if b", "has 'b', which is no condition"),
        (f"add a={'x' * 4096}", "adds 4097 bytes to each record: at most 4096 are allowed"),
    ],
)
def test_changes_that_are_none_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(BadValue, match=sentence):
        parse_headers(text)


def test_a_topic_has_the_rules_for_the_name_that_the_policy_gives(load_text: LoadText) -> None:
    lines = "lockstep.filter = tombstone and topic A\\\\.audit-.*\nlockstep.rename = A\\\\.audit-(.*) -> new.$1"
    settings = ab(load_text, lines)
    assert settings.record_rules("audit-x") == RecordRules((DropRecord((IsTombstone(),)),))
    assert settings.record_rules("orders") is None


def test_heartbeats_are_copied_as_they_are(load_text: LoadText) -> None:
    settings = ab(load_text, "lockstep.headers = add a=b")
    assert settings.record_rules("heartbeats") is None
    assert settings.record_rules("orders") == RecordRules((AddHeader("a", b"b"),))


@pytest.mark.parametrize(
    ("lines", "rules"),
    [
        (INTERNAL + "transforms = f\n" + step("transforms", "f", "Filter", predicate="p"), "header x-internal"),
        (
            INTERNAL + "transforms = f\n" + step("transforms", "f", "Filter", predicate="p", negate="true"),
            "not header x-internal",
        ),
        (
            "predicates = p\npredicates.p.type = " + CONNECT + "predicates.RecordIsTombstone\ntransforms = f\n"
            "transforms.f.type = Filter\ntransforms.f.predicate = p",
            "tombstone",
        ),
        (
            "predicates = p\n"
            + step("predicates", "p", "TopicNameMatches", pattern="a.*")
            + "transforms = f\n"
            + step("transforms", "f", "Filter", predicate="p"),
            "topic a.*",
        ),
    ],
)
def test_connects_filter_becomes_a_rule(load_text: LoadText, lines: str, rules: str) -> None:
    assert ab(load_text, IDENTITY + lines).data_plane.record_rules.rules == parse_filter(rules)


def test_connects_chain_keeps_its_order(load_text: LoadText) -> None:
    lines = (
        INTERNAL
        + "transforms = i, d, f\n"
        + step("transforms", "i", "InsertHeader", header="x-origin", value_literal="A", predicate="p", negate="true")
        + step("transforms", "d", "DropHeaders", headers="a, b")
        + step("transforms", "f", "Filter", predicate="p")
    )
    assert ab(load_text, IDENTITY + lines).data_plane.record_rules.rules == (
        AddHeader("x-origin", b"A", (HasHeader("x-internal", negated=True),)),
        DropHeaders("a"),
        DropHeaders("b"),
        DropRecord((HasHeader("x-internal"),)),
    )


FILTER = step("transforms", "f", "Filter", predicate="p")
INSERT = {"header": "h", "value_literal": "v"}


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (f"transforms = f\n{FILTER}", "names the predicate 'p', but there is no predicates.p.type"),
        (
            f"transforms = f\n{FILTER}" + step("predicates", "p", "RecordIsTombstone"),
            "but there is no 'p' in predicates",
        ),
        (
            "transforms = f\n" + step("transforms", "f", "Filter"),
            "is a Filter without transforms.f.predicate, which drops",
        ),
        (f"{INTERNAL}transforms = f\n{FILTER}transforms.f.negate = maybe", "transforms.f.negate: is 'maybe'"),
        (f"{INTERNAL}transforms = f\n{FILTER}transforms.f.extra = 1", "it is no key of Filter that has a counterpart"),
        (
            "predicates = p\npredicates.p.type = com.acme.Mine\ntransforms = f\n" + FILTER,
            "Only HasHeaderKey, RecordIsTombstone, TopicNameMatches of",
        ),
        (
            "predicates = p\npredicates.p.type = com.acme.Mine\ntransforms = f\n" + FILTER,
            "NAME.sql = SELECT * FROM records WHERE CONDITION filters by any other one",
        ),
        (
            "transforms = i\n" + step("transforms", "i", "InsertHeader", **INSERT, negate="true"),
            "transforms.i.negate: negates no predicate, which Connect refuses: add transforms.i.predicate",
        ),
        (
            "predicates = p\n" + step("predicates", "p", "HasHeaderKey") + f"transforms = f\n{FILTER}",
            "without predicates.p.name",
        ),
        (
            "transforms = i\n" + step("transforms", "i", "InsertHeader", header="h"),
            "without transforms.i.value.literal",
        ),
        *(
            (
                "transforms = i\n" + step("transforms", "i", "InsertHeader", header="h", value_literal=literal),
                "may write otherwise",
            )
            for literal in ("1.0", "01", "true", '"a"', "[1]", "2026-01-01")
        ),
        (
            "transforms = m\n" + step("transforms", "m", "MaskField$Value", fields="name"),
            "NAME.sql = SELECT json_mask(value, '$.FIELD', 'mask') AS value FROM records does the same",
        ),
        ("transforms = m\ntransforms.m.type = com.acme.Mine", "no Java runs for records here"),
        (
            "lockstep.headers = drop x\ntransforms = i\n" + step("transforms", "i", "InsertHeader", **INSERT),
            "filters records or changes headers, and so does lockstep.headers: keep one of the two",
        ),
        (
            "predicates = p\n"
            + step("predicates", "p", "TopicNameMatches", pattern="a")
            + "transforms = r, f\n"
            + step("transforms", "r", "RegexRouter", regex="a", replacement="b")
            + FILTER,
            "put the RegexRouter last",
        ),
    ],
)
def test_what_has_no_counterpart_is_a_mistake(mistakes_of: MistakesOf, lines: str, sentence: str) -> None:
    mistakes = mistakes_of(IDENTITY + lines)
    assert any(sentence in mistake for mistake in mistakes), mistakes


def test_the_loop_pattern_is_noted_with_what_does_it_here(load_text: LoadText) -> None:
    lines = "lockstep.filter = header x-origin\nlockstep.headers = add x-origin=A"
    (note,) = [note for note in load_text(IDENTITY + lines).notes if "coming back" in note.message]
    assert "by the header x-origin. lockstep.provenance does that by producer ids" in note.message


def test_predicate_that_no_line_names_has_no_effect(load_text: LoadText) -> None:
    unused = load_text(step("predicates", "p", "RecordIsTombstone")).unused
    assert {entry.message for entry in unused} == {"has no effect: no predicate is named by `predicates`"}


def blocks_of_the_guide() -> list[str]:
    page = (REPOSITORY / "docs" / "guides" / "filter-and-headers.md").read_text(encoding="utf-8")
    return [block.partition("```")[0] for block in page.split("```properties\n")[1:]]


def test_file_of_the_guide_has_its_rules(load_text: LoadText) -> None:
    settings = load_text(whole=blocks_of_the_guide()[0]).flow(A_TO_B)
    changes = (DropHeaders("x-debug-*"), AddHeader("x-origin", b"A", (HasHeader("x-origin", negated=True),)))
    internal = DropRecord((HasHeader("x-internal"),))
    assert settings.record_rules("orders") == RecordRules((internal, *changes))
    assert settings.record_rules("audit-x") == RecordRules((internal, DropRecord((IsTombstone(),)), *changes))


def test_chain_of_the_guide_is_the_filter_beside_it(load_text: LoadText) -> None:
    settings = ab(load_text, IDENTITY + blocks_of_the_guide()[1])
    assert settings.data_plane.record_rules.rules == parse_filter("header x-internal")
