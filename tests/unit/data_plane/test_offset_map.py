"""Which record is where, by the offset runs: exact or not known."""

from lockstep_data_plane.verify.offset_map import OffsetMap
from lockstep_rules.offsets.offset_runs import Run
from lockstep_state.reasons.verification_reason import NotComparedReason

MAP = OffsetMap([Run(10, 0, 5), Run(15, 5, 0), Run(20, 5, 10)], decided=34)


def test_record_in_a_run_has_one_place_in_each_log() -> None:
    assert [MAP.find_target(at) for at in (9, 10, 14, 15, 19, 20, 29, 30)] == [None, 0, 4, None, None, 5, 14, None]
    assert [MAP.find_source(at) for at in (-1, 0, 4, 5, 14, 15)] == [None, 10, 14, 20, 29, None]


def test_record_between_runs_or_decided_behind_them_is_passed_over() -> None:
    passed = [at for at in range(40) if MAP.explain_absence(at) is NotComparedReason.PASSED_OVER]
    assert passed == [15, 16, 17, 18, 19, 30, 31, 32, 33, 34]


def test_record_where_runs_were_thinned_is_in_no_run() -> None:
    thinned = OffsetMap([Run(10, 0, 5), Run(20, 8, 10)])
    assert {thinned.explain_absence(at) for at in range(15, 20)} == {NotComparedReason.NO_RUN}
    assert thinned.explain_absence(10) is None


def test_record_without_any_run_is_not_passed_over() -> None:
    assert OffsetMap(decided=100).explain_absence(5) is None
    assert MAP.explain_absence(9) is NotComparedReason.BEFORE_THE_RUNS


def test_copy_has_gone_back_if_an_earlier_record_has_a_later_place() -> None:
    assert not MAP.has_gone_back(24, 9)
    assert not MAP.has_gone_back(17, 4)
    assert MAP.has_gone_back(24, 8)
    assert MAP.has_gone_back(40, 13)


def test_first_pair_that_both_logs_have_is_found_in_a_run() -> None:
    assert MAP.find_start(0, 0) == (10, 0)
    assert MAP.find_start(12, 0) == (12, 2)
    assert MAP.find_start(12, 4) == (14, 4)
    assert MAP.find_start(15, 0) == (20, 5)
    assert MAP.find_start(0, 9) == (24, 9)
    assert MAP.find_start(30, 0) is None
