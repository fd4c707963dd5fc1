"""Up to which moment it is known what the source had."""

from dataclasses import replace

import pytest

from lockstep_ops.switch.switch_positions import RecordsKnown
from lockstep_state.rows.state_rows import Row, SourceEnds
from tests.support.takeover_rows import progress, rows_of, topic

ASKED = SourceEnds(asked_ms=1_700_000_003_000)
COUNTED = "is counted only as far as slots had fetched it"


def test_records_known_is_when_the_driver_asked_for_all_ends() -> None:
    times = RecordsKnown.from_rows(rows_of(progress(0, at_ms=1_700_000_009_000), ASKED), [topic(partitions=2)])
    assert times.least_ms == 1_700_000_003_000
    assert times.sentence("A") == f"What A accepted after 2023-11-14T22:13:23.000+00:00 {COUNTED}"


@pytest.mark.parametrize("rows", [{}, rows_of(replace(ASKED, more=1))])
def test_records_known_has_no_moment_where_not_all_ends_are_known(rows: dict[str, Row]) -> None:
    times = RecordsKnown.from_rows(rows, [topic(partitions=2)])
    assert (times.least_ms, times.sentence("A")) == (0, f"What A accepted {COUNTED}")


@pytest.mark.parametrize(
    ("answered_ms", "since"), [(1_700_000_001_000, "after 2023-11-14T22:13:21.000+00:00 already"), (0, "at any time")]
)
def test_records_known_names_partitions_without_an_answer(answered_ms: int, since: str) -> None:
    rows = rows_of(replace(ASKED, unanswered=(("t", 1, answered_ms), ("u", 0, 1))))
    times = RecordsKnown.from_rows(rows, [topic(partitions=2)])
    assert times.by_partition == {("t", 0): 1_700_000_003_000, ("t", 1): answered_ms}
    assert times.least_ms == answered_ms
    assert times.sentence("A") == (
        f"What A accepted after 2023-11-14T22:13:23.000+00:00 {COUNTED}, and so is what it accepted {since} in t-1, "
        "about which it did not answer"
    )
