"""What slots report of more than their partitions: once for all of them, and until all of them are over it."""

import logging

import pytest

from lockstep_state.names import state_topic
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import SlotStatus
from tests.support.metered_driver import Driver

OLD = ReasonCode.REQUEST_UNFIT.to_reason(cluster="A", broker="a:9092", request="Fetch", theirs="none", ours="version 4")
OTHER = ReasonCode.REPORTED.to_reason(cluster="A", text="something else")


def status(run: str = "r1", *, causes: tuple[tuple[str, Reason], ...] = (), phase: str = "started") -> SlotStatus:
    return SlotStatus(slot=0, phase=phase, run=run, causes=causes)


def passed_over(count: int, run: str = "r1", topic: str = "mm2-offsets", partition: int = 3) -> SlotStatus:
    return SlotStatus(slot=0, phase="started", run=run, unreadable=((topic, partition, count),))


def test_slot_reports_a_cluster_that_is_too_old_once(caplog: pytest.LogCaptureFixture) -> None:
    driver = Driver()
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            driver.say(status(causes=(("t-0", OTHER), ("t-1", OLD), ("t-2", OLD))))
        assert driver.remote_troubles.reasons == {"cluster A": OLD}
        assert driver.periodic.troubles.now == {}, "it does not excuse slots that are silent"
        driver.say(status(causes=(("t-0", OTHER),)))
    assert driver.remote_troubles.reasons == {}
    assert [entry.getMessage() for entry in caplog.records] == ["cluster A failing", "cluster A recovered"]


@pytest.mark.parametrize("phase", ["started", "released"])
def test_slot_reports_of_an_earlier_or_released_run_are_ignored(phase: str) -> None:
    driver = Driver()
    driver.say(status("r0", causes=(("t-0", OLD),)))
    assert driver.remote_troubles.reasons == {}
    driver.say(status(causes=(("t-0", OLD),)), status(phase=phase, causes=(("t-0", OLD),)))
    assert bool(driver.remote_troubles.reasons) is (phase == "started")
    driver.collector.reset()
    assert driver.remote_troubles.reasons == {}


def test_slot_reports_count_each_unreadable_record_once() -> None:
    """Each run reads the topic again from its beginning, and so does each slot."""
    driver = Driver()
    for count in (1, 1, 3):
        driver.say(passed_over(count))
    assert driver.unreadable.counts == {"mm2-offsets": 3}
    driver.kept[0] = driver.kept[0].__class__("r2")
    for count in (1, 3, 4):
        driver.say(passed_over(count, "r2"))
    driver.say(passed_over(2, "r2", partition=4))
    assert driver.unreadable.counts == {"mm2-offsets": 6}


def test_slot_reports_leave_to_the_driver_what_it_reads_itself() -> None:
    driver = Driver()
    driver.say(passed_over(5, topic=state_topic(driver.flow), partition=0))
    assert driver.unreadable.counts == {}
