"""How often what failed is started again."""

import pytest

from lockstep_config.flow.connector_settings import AutoRestart, AutoRestarts
from lockstep_runtime.util.auto_restart import (
    WORKS_AFTER,
    auto_restart_for,
    count_failure,
    is_spent,
    is_unlimited,
    reset_count,
)
from lockstep_state.commands.command_vocabulary import Connector
from lockstep_state.rows.state_rows import Restarts
from tests.support.reasons import reported

NEW = Restarts(owner="topic-sync")
ASKED = ("",)


def failures(allowed: AutoRestart, times: int, worked_s: float = 1.0) -> Restarts:
    row = NEW
    for _ in range(times):
        row = count_failure(row, allowed, worked_s, reported("no Java"), ASKED)
    return row


@pytest.mark.parametrize(("times", "spent"), [(1, False), (2, False), (3, True), (4, True)])
def test_auto_restart_limit_of_two_allows_two_after_the_first_failure(times: int, spent: bool) -> None:
    row = failures(AutoRestart(max_restarts=2), times)
    assert is_spent(row, ASKED) == spent
    assert row.reason == ("no Java" if spent else "")
    assert row.count == times


def test_switched_off_the_first_failure_is_the_last() -> None:
    assert is_spent(failures(AutoRestart(enabled=False), 1), ASKED)


def test_without_a_limit_nothing_is_counted() -> None:
    assert is_unlimited(AutoRestart())
    assert not is_unlimited(AutoRestart(max_restarts=5))
    assert not is_unlimited(AutoRestart(enabled=False))
    assert not is_spent(failures(AutoRestart(), 1_000), ASKED)


def test_auto_restart_count_begins_anew_after_long_work() -> None:
    assert failures(AutoRestart(max_restarts=2), 9, worked_s=WORKS_AFTER).count == 1


def test_auto_restart_waits_for_a_command_and_then_counts_anew() -> None:
    allowed = AutoRestart(max_restarts=1)
    spent = failures(allowed, 2)
    assert is_spent(spent, ASKED)
    assert not is_spent(spent, ("c1",)), "also when the command came while nobody led"
    assert reset_count(spent, ("c1",)) == Restarts(owner="topic-sync", asked=("c1",))
    row = count_failure(spent, allowed, 1.0, reported("no Java"), ("c1",))
    assert (row.count, is_spent(row, ("c1",))) == (1, False)


def test_each_connector_has_its_own() -> None:
    settings = AutoRestarts(checkpoint=AutoRestart(max_restarts=3), heartbeat=AutoRestart(enabled=False))
    limits = {connector: auto_restart_for(connector, settings) for connector in Connector}
    assert limits == {
        Connector.SOURCE: AutoRestart(),
        Connector.CHECKPOINT: AutoRestart(max_restarts=3),
        Connector.HEARTBEAT: AutoRestart(enabled=False),
    }
