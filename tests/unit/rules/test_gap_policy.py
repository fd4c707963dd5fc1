"""Gap decisions by case and policy: the next offset, the lost records and the repeated ones."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_config.keys.lockstep_keys import LOCKSTEP_KEYS
from lockstep_rules.offsets.gap_policy import GapCase, GapDecision, GapFound, decide_gap, goes_back, lost_on_target

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "no-silent-loss.md"


def found(case: GapCase, wanted: int = 100, start: int = 0, end: int = 200, agreed: int = -1) -> GapFound:
    return GapFound(case=case, text="", next_upstream=wanted, start=start, end=end, agreed=agreed)


def on_target(case: GapCase, held: int, target_end: int) -> GapFound:
    return replace(found(case), acked_downstream=held, target_end=target_end)


@pytest.mark.parametrize("case", GapCase)
def test_gap_without_a_policy_has_no_decision(case: GapCase) -> None:
    assert decide_gap(found(case), "halt") is None


@pytest.mark.parametrize(
    ("here", "word", "begin", "lost", "again"),
    [
        (found(GapCase.RECORDS_GONE, start=150), "skip", 150, (100, 149), None),
        (found(GapCase.RECORDS_GONE, start=150), "restart", 150, (100, 149), None),
        (found(GapCase.SOURCE_TRUNCATED, end=90, agreed=80), "skip", 80, None, None),
        (found(GapCase.SOURCE_TRUNCATED, start=10, end=90, agreed=80), "restart", 10, None, (10, 89)),
        (found(GapCase.SOURCE_TRUNCATED, start=85, end=90, agreed=80), "skip", 85, None, None),
        (found(GapCase.SOURCE_RECREATED, end=30), "skip", 30, (0, 29), None),
        (found(GapCase.SOURCE_RECREATED, start=5, end=30), "restart", 5, None, None),
        (found(GapCase.TARGET_TRUNCATED), "skip", 100, None, None),
        (found(GapCase.TARGET_TRUNCATED, start=10), "restart", 10, None, (10, 99)),
        (found(GapCase.TARGET_RECREATED), "skip", 100, None, None),
        (found(GapCase.TARGET_RECREATED, start=10), "restart", 10, None, None),
        (found(GapCase.DOUBT), "progress", 100, None, (100, 199)),
        (found(GapCase.DOUBT, end=100), "progress", 100, None, None),
    ],
)
def test_gap_decision_by_case_and_policy(
    here: GapFound, word: str, begin: int, lost: tuple[int, int] | None, again: tuple[int, int] | None
) -> None:
    assert decide_gap(here, word) == GapDecision(begin=begin, policy=word, skipped=lost, repeated=again)


@pytest.mark.parametrize(
    ("here", "gone", "counted"),
    [
        (on_target(GapCase.TARGET_TRUNCATED, held=149, target_end=100), (100, 149), 50),
        (on_target(GapCase.TARGET_TRUNCATED, held=149, target_end=149), (149, 149), 1),
        (on_target(GapCase.TARGET_TRUNCATED, held=149, target_end=150), None, 0),  # others have appended since
        (on_target(GapCase.TARGET_RECREATED, held=149, target_end=7), (0, 149), 0),  # retention had taken some, perhaps
        (on_target(GapCase.TARGET_RECREATED, held=-1, target_end=0), None, 0),
        (found(GapCase.TARGET_RECREATED), None, 0),
        (on_target(GapCase.RECORDS_GONE, held=149, target_end=100), None, 0),
    ],
)
def test_gap_decision_names_records_lost_on_the_target(
    here: GapFound, gone: tuple[int, int] | None, counted: int
) -> None:
    skipping, restarting = (decide_gap(here, word) for word in ("skip", "restart"))
    assert skipping is not None
    assert restarting is not None
    assert (here.lost_downstream, skipping.lost_downstream, lost_on_target(here, skipping)) == (gone, gone, counted)
    assert skipping.facts()["gone"] == gone
    assert ("stays gone" in skipping.text("lockstep.on.gap")) == (gone is not None)
    assert (restarting.lost_downstream, lost_on_target(here, restarting)) == (None, 0), "it is copied again"


def test_gap_facts_have_the_ranges_of_both_sides() -> None:
    source = {"case": "target-truncated", "wanted": 100, "source_start": 0, "source_end": 200}
    assert found(GapCase.TARGET_TRUNCATED).facts() == source, "no facts of a log that was not read"
    here = on_target(GapCase.TARGET_TRUNCATED, held=149, target_end=100)
    assert here.facts() == source | {"target_wanted": 150, "target_end": 100, "gone": (100, 149)}


def test_gap_decision_text_has_the_begin_and_the_cost() -> None:
    decision = GapDecision(begin=150, policy="restart", skipped=(100, 149), repeated=(150, 160))
    assert decision.text("lockstep.on.gap") == (
        "going on at offset 150 (lockstep.on.gap=restart); offsets 100 to 149 are not copied; "
        "offsets 150 to 160 may be on the target twice"
    )
    assert decision.facts() == {"lost": (100, 149), "again": (150, 160), "gone": None}


@pytest.mark.parametrize(("committed", "back"), [(None, False), (99, False), (149, False), (150, True), (200, True)])
def test_gap_decision_returns_committed_progress_beyond_it(committed: int | None, back: bool) -> None:
    assert goes_back(committed, GapDecision(begin=150, policy="skip")) is back


@given(
    case=st.sampled_from([c for c in GapCase if c is not GapCase.DOUBT]),
    word=st.sampled_from(["skip", "restart"]),
    wanted=st.integers(0, 50),
    start=st.integers(0, 50),
    length=st.integers(0, 50),
    agreed=st.integers(0, 50),
)
def test_gap_decision_is_within_the_log_and_has_its_cost(
    case: GapCase, word: str, wanted: int, start: int, length: int, agreed: int
) -> None:
    here = found(case, wanted, start, start + length, agreed)
    decision = decide_gap(here, word)
    assert decision is not None
    for span in (decision.skipped, decision.repeated):
        assert span is None or span[0] <= span[1]
    if case in (GapCase.SOURCE_TRUNCATED, GapCase.SOURCE_RECREATED, GapCase.RECORDS_GONE) or word == "restart":
        assert here.start <= decision.begin <= here.end
    if case is GapCase.RECORDS_GONE and start > wanted:
        assert decision.skipped == (wanted, start - 1), "every offset that nobody can copy any more is named"


def test_the_page_names_every_case_and_every_value() -> None:
    page = PAGE.read_text()
    for case in GapCase:
        assert f"`{case.value}`" in page
    for key in LOCKSTEP_KEYS:
        if key.name.startswith("lockstep.on."):
            assert f"`{key.name}`" in page
            assert all(f"`{choice}`" in page for choice in key.choices)
