"""Reasons: a code with values, and its sentence."""

import json
from string import Formatter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence, read_reason
from lockstep_state.reasons.reason_code import CatalogueCode
from lockstep_state.reasons.refusal_catalogue import RefusalCode

reasons = st.builds(
    lambda code, details: Reason(code, tuple(sorted(details.items()))),
    st.text(),
    st.dictionaries(st.text(), st.text() | st.integers()),
)


@given(reasons)
def test_reason_through_json_is_the_same(reason: Reason) -> None:
    assert Reason.from_json(json.loads(json.dumps(reason.to_json()))) == reason


@given(reasons)
def test_sentence_of_any_reason_is_a_text_with_its_code_or_values(reason: Reason) -> None:
    assert bool(format_sentence(reason)) or not reason or reason.code == ReasonCode.UNKNOWN


def test_reason_of_equal_details_is_equal_in_any_order() -> None:
    reason = ReasonCode.UNKNOWN.to_reason(a=1, b="c")
    assert reason == ReasonCode.UNKNOWN.to_reason(b="c", a=1)
    assert (reason.detail("a"), reason.detail("x")) == (1, None)


def test_reason_of_a_newer_release_is_shown_as_such() -> None:
    shown = format_sentence(Reason("moved-to-the-moon", (("offset", 5), ("topic", "orders"))))
    assert shown == "moved-to-the-moon, a reason that this release does not know (offset 5, topic orders)"
    assert format_sentence(Reason("x")) == "x, a reason that this release does not know"


def test_reason_without_the_values_of_its_sentence_is_shown_as_such() -> None:
    assert format_sentence(ReasonCode.UNKNOWN.to_reason()) == "unknown, a reason that this release does not know"


def test_text_of_an_earlier_release_is_unknown_and_shown() -> None:
    old = read_reason(NO_REASON, "the topic was created anew on the target")
    assert old.code == ReasonCode.UNKNOWN
    assert format_sentence(old) == "the topic was created anew on the target"
    assert read_reason(NO_REASON, "") == NO_REASON
    reason = ReasonCode.GROUP_GONE.to_reason()
    assert read_reason(reason, "any text") == reason


@pytest.mark.parametrize("code", [*ReasonCode, *RefusalCode])
def test_sentence_of_every_code_is_made_of_its_details(code: CatalogueCode) -> None:
    pieces = list(Formatter().parse(code.sentence))
    names = {name for _, name, _, _ in pieces if name is not None}
    assert all(map(str.isidentifier, names)), "details have names"
    shown = ("" if name is None else f"7 {spec}s" if spec and spec.isalpha() else "7" for _, name, spec, _ in pieces)
    literals = (literal for literal, *_ in pieces)
    expected = "".join(map("".join, zip(literals, shown, strict=True)))
    assert format_sentence(code.to_reason(**dict.fromkeys(names, 7))) == expected != ""


def test_code_of_a_reason_is_in_one_catalogue_only() -> None:
    words = [code.value for code in (*ReasonCode, *RefusalCode)]
    assert len(set(words)) == len(words)


@pytest.mark.parametrize(("count", "shown"), [(1, "1 member."), (0, "0 members."), (2_000, "2,000 members.")])
def test_sentence_with_a_number_has_its_noun(count: int, shown: str) -> None:
    assert shown in format_sentence(RefusalCode.MIRROR_MAKER_RUNS.to_reason(group="g", cluster="B", members=count))
    unfit = RefusalCode.MIRROR_MAKER_RUNS.to_reason(group="g", cluster="B", members=str(count))
    assert "does not know" in format_sentence(unfit), "a number is no text"


@pytest.mark.parametrize(
    "body", [{}, {"code": 1}, {"code": "x", "details": []}, {"code": "x", "details": {"a": None}}, {"code": None}]
)
def test_value_that_is_no_reason_is_refused(body: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="not a reason"):
        Reason.from_json(body)


def test_reason_with_fields_of_a_newer_release_is_read() -> None:
    assert Reason.from_json({"code": "x", "since": [1]}) == Reason("x")
