"""The refusal of a failback for records that one cluster lacks: its code, and their number once."""

from collections.abc import Callable

import pytest

from lockstep_config import FlowSettings
from lockstep_ops.switch.failback_actions import undecided
from lockstep_ops.switch.own_copies import DivergedRecords
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.reasons.refusal_catalogue import RefusalCode

COUNTS = {("t", 0): 5, ("t", 1): 15}


@pytest.mark.parametrize(
    ("found", "code", "number"),
    [
        (DivergedRecords(COUNTS), RefusalCode.DIVERGED, "has 20 records that"),
        (DivergedRecords(COUNTS, frozenset({("t", 0)})), RefusalCode.DIVERGED_AT_MOST, "has at most 20 records that"),
        (DivergedRecords({("t", 0): 1}), RefusalCode.DIVERGED, "has 1 record that"),
    ],
)
def test_undecided_records_are_counted_once(
    settings: Callable[..., FlowSettings], found: DivergedRecords, code: RefusalCode, number: str
) -> None:
    reason = undecided(settings(), found)
    sentence = format_sentence(reason)
    assert (reason.code, reason.detail("count")) == (code, found.total)
    assert number in sentence
    assert sentence.split(". Say")[0].count("record") == 1
