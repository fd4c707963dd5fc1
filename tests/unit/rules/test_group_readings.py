"""The time up to which the groups of a source were read, and its age."""

from dataclasses import replace

import pytest

from lockstep_rules.groups.group_readings import GroupReadings, age_limit_ms
from lockstep_state.names import COMMANDS_PARTITIONS
from lockstep_state.rows.state_rows import GroupStatus, SourceGroupsStatus

LIMIT_MS = 120_000
READ = [SourceGroupsStatus(share=share, phase="read", read_ms=1_000, at_ms=1_500) for share in range(6)]
ORDERS = GroupStatus(group="orders", phase="translated", read_ms=400)  # falls to share 0


def with_share_0(**changes: int | str) -> GroupReadings:
    return GroupReadings.from_rows([replace(READ[0], **changes), *READ[1:]])  # type: ignore[arg-type]  # by name


def test_list_of_groups_is_known_up_to_the_oldest_reading() -> None:
    assert len(READ) == COMMANDS_PARTITIONS
    assert GroupReadings.from_rows(READ).list_known_ms == 1_000
    assert with_share_0(read_ms=700).list_known_ms == 700
    assert GroupReadings.from_rows(READ[1:]).list_known_ms == 0, "one share was never read"
    assert with_share_0(read_ms=0).list_known_ms == 0, "written by an earlier release"
    assert GroupReadings.from_rows([]).list_known_ms == 0


def test_position_is_known_up_to_the_reading_of_its_share() -> None:
    assert with_share_0(read_ms=700).position_known_ms(ORDERS) == 700
    assert with_share_0(read_ms=300).position_known_ms(ORDERS) == 400, "its share was not read to the end"
    assert with_share_0(read_ms=700).position_known_ms(replace(ORDERS, phase="failing")) == 400
    assert GroupReadings.from_rows([]).position_known_ms(replace(ORDERS, read_ms=0)) == 0


@pytest.mark.parametrize(
    ("unanswered_ms", "at_ms", "now_ms", "age_ms"),
    [
        (0, 1_500, 31_000, 30_000),
        (31_000, 600_000, 600_000, 30_000),  # the source is gone since then
        (31_000, 600_000, 600_000 + LIMIT_MS, 30_000),
        (31_000, 600_000, 600_001 + LIMIT_MS, 599_001 + LIMIT_MS),  # nobody has asked since
        (999, 1_500, 2_000, 0),
    ],
)
def test_age_ends_with_the_answers_of_the_source(unanswered_ms: int, at_ms: int, now_ms: int, age_ms: int) -> None:
    row = SourceGroupsStatus(share=0, phase="read", read_ms=1_000, at_ms=at_ms, unanswered_ms=unanswered_ms)
    readings = GroupReadings.from_rows([row, *(replace(row, share=share) for share in range(1, 6))])
    assert readings.oldest_age_ms(now_ms, LIMIT_MS) == age_ms


def test_age_is_that_of_the_share_read_longest_ago() -> None:
    assert with_share_0(read_ms=1).oldest_age_ms(5_001, LIMIT_MS) == 5_000
    assert with_share_0(read_ms=0).oldest_age_ms(5_001, LIMIT_MS) is None


def test_age_limit_is_two_intervals_and_some_seconds_at_least() -> None:
    assert age_limit_ms(60_000) == 120_000
    assert age_limit_ms(1_000) == 10_000
