"""Whether a flow is ready to switch, as the driver's page shows it."""

from dataclasses import replace

import pytest

from lockstep_data_plane.driver.source_monitor import TROUBLE
from lockstep_kafka.common.errors import ClusterUnreachable
from lockstep_state.reasons.switch_reason import SwitchReason
from lockstep_state.rows.state_rows import (
    AclStatus,
    DesiredState,
    FlowPulse,
    GroupStatus,
    MirroredTopic,
    Row,
    SlotStatus,
    SourceGroupsStatus,
)
from tests.support.metered_driver import Driver, row
from tests.support.reasons import reported
from tests.support.source_groups import groups_read_at

GROUP = GroupStatus(group="mail", phase="translated", synced=True, exact=1)
SOURCE = "connector:MirrorSourceConnector"


@pytest.fixture
def driver() -> Driver:
    """One for which everything is copied, and both clusters have said so."""
    driver = Driver()
    driver.say(MirroredTopic(source_topic="t", target_topic="A.t", partitions=1, target_partitions=1))
    driver.assign(("t", 0))
    driver.say(row(upstream=9), SlotStatus(slot=0, phase="started", run="r1"), *groups_read_at(driver.now))
    driver.observe({("t", 0): 10})
    driver.replicas.unknown = frozenset()
    driver.settings.switch_limits = replace(driver.settings.switch_limits, max_groups_age_ms=60_000)
    return driver


def blocking(driver: Driver) -> dict[str, float]:
    """The reasons on the page that count any, which agree with whether the flow is ready."""
    counts = {labels["reason"]: value for labels, value in driver.page()["lockstep_switch_blockers"]}
    assert list(counts) == [reason.word for reason in SwitchReason]
    counted = {reason: count for reason, count in counts.items() if count}
    assert driver.value("lockstep_switch_ready", flow="A->B") == (not counted)
    return counted


@pytest.mark.parametrize(
    "rows",
    [
        [GROUP],
        [
            FlowPulse(source="A", target="B", phase="failing"),
            DesiredState(scope="connector:MirrorHeartbeatConnector", phase="paused"),
        ],
    ],
    ids=["everything is well", "heartbeats fail"],
)
def test_flow_at_its_end_is_ready_to_switch(driver: Driver, rows: list[Row]) -> None:
    driver.say(*rows)
    assert blocking(driver) == {}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (row(upstream=9, phase="halted", case="refused"), "partition-halted"),
        (DesiredState(scope=SOURCE, phase="stopped"), "stopped"),
        (DesiredState(scope="topic:t", phase="paused"), "paused"),
        (replace(GROUP, held="in-use"), "group-in-use"),
        (replace(GROUP, held="refused"), "group-refused"),
        (replace(GROUP, synced=False), "group-waiting"),
        (replace(GROUP, phase="failing"), "group-failing"),
        (replace(GROUP, more_ahead=1), "group-skips"),
        (SourceGroupsStatus(share=1, phase="failing", cause=reported("denied")), "groups-unknown"),
        (SourceGroupsStatus(share=1, phase="read"), "groups-stale"),
        (AclStatus(phase="failing"), "service-failing"),
        (MirroredTopic(source_topic="u", target_topic="A.u", partitions=1, phase="failed"), "topic-failed"),
        (MirroredTopic(source_topic="t", target_topic="A.t", partitions=1, phase="deleted"), "nothing-copied"),
    ],
)
def test_one_row_makes_the_flow_not_ready_with_its_reason(driver: Driver, change: Row, reason: str) -> None:
    driver.say(change)
    assert blocking(driver) == {reason: 1}


def test_partition_behind_the_limit_of_the_file_is_counted_as_lag(driver: Driver) -> None:
    driver.observe({("t", 0): 30})
    assert blocking(driver) == {}, "it is behind for no time yet"
    for _ in range(3):
        driver.now += 5_000
        driver.say(SlotStatus(slot=0, phase="started", run="r1"))
    driver.observe({("t", 0): 30})
    assert blocking(driver) == {"lag": 1}
    driver.settings.switch_limits = replace(driver.settings.switch_limits, max_lag_ms=15_000)
    assert blocking(driver) == {}


def test_partition_whose_slot_is_silent_is_not_copied(driver: Driver) -> None:
    driver.now += 16_000
    assert blocking(driver) == {"partition-not-copying": 1}


def test_partition_of_a_slot_that_speaks_seldom_is_copied(driver: Driver) -> None:
    """On slow cores: it meant to speak every five seconds."""
    driver.now += 9_000
    driver.say(SlotStatus(slot=0, phase="started", run="r1", pause_ms=9_000))
    driver.now += 27_000
    assert blocking(driver) == {}
    driver.now += 1_000
    assert blocking(driver) == {"partition-not-copying": 1}


def test_slot_that_was_frozen_is_not_waited_for_longer(driver: Driver) -> None:
    driver.say(SlotStatus(slot=0, phase="started", run="r1", pause_ms=600_000))
    driver.settings.switch_limits = replace(driver.settings.switch_limits, max_groups_age_ms=600_000)
    driver.now += 61_000
    assert blocking(driver) == {"partition-not-copying": 1}


def test_driver_that_has_not_asked_the_clusters_does_not_know_the_lag() -> None:
    driver = Driver()
    driver.replicas.unknown = frozenset()
    driver.assign(("t", 0), ("t", 1))
    driver.say(row(0, upstream=9), row(1, upstream=9), SlotStatus(slot=0, phase="started", run="r1"))
    driver.now += 11_000
    driver.say(SlotStatus(slot=0, phase="started", run="r1"))
    assert blocking(driver) == {"lag-unknown": 2, "groups-unknown": 1}


def test_source_that_does_not_answer_is_the_only_reason(driver: Driver) -> None:
    driver.collector.estimator.forget_check()
    driver.periodic.troubles.record_failure(TROUBLE, ClusterUnreachable("A", "a:9092", "no answer"))
    driver.now += 11_000
    driver.say(SlotStatus(slot=0, phase="started", run="r1"))
    assert blocking(driver) == {"source-unreachable": 1}
    driver.periodic.troubles.record_success(TROUBLE)
    driver.observe({("t", 0): 10})
    assert blocking(driver) == {}


@pytest.mark.parametrize("kind", ["absent", "unknown"])
def test_service_without_a_known_replica_is_counted_once(driver: Driver, kind: str) -> None:
    setattr(driver.replicas, kind, frozenset({"acl-sync", "checkpoint"}))
    assert blocking(driver) == {"service-failing": 2}
    driver.say(AclStatus(phase="failing", cause=reported("r")))
    assert blocking(driver) == {"service-failing": 2}


def test_service_that_clients_do_not_need_may_be_unknown(driver: Driver) -> None:
    driver.replicas.unknown = frozenset({"heartbeat"})
    driver.say(AclStatus(phase="in-sync"))
    assert blocking(driver) == {}, "nothing that clients use depends on it"


def test_driver_that_has_just_begun_does_not_know_the_replicas(driver: Driver) -> None:
    driver.replicas.unknown = Driver().replicas.unknown
    assert blocking(driver) == {"service-failing": 3}


def test_unknown_replicas_have_no_reason_besides_their_cause(driver: Driver) -> None:
    """While the target is away, or the flow is stopped, the driver does not ask."""
    driver.replicas.unknown = frozenset({"checkpoint"})
    driver.periodic.troubles.record_failure("target", ClusterUnreachable("B", "b:9092", "no answer"))
    assert blocking(driver) == {"target-unreachable": 1}
    driver.periodic.troubles.record_success("target")
    driver.say(DesiredState(scope=SOURCE, phase="stopped"))
    assert blocking(driver) == {"stopped": 1}


def test_acls_of_a_flow_that_does_not_copy_them_do_not_count(driver: Driver) -> None:
    driver.settings.services = ("topic-sync", "data-plane")
    driver.say(AclStatus(phase="failing", cause=reported("r")))
    assert blocking(driver) == {}


def test_stopped_flow_is_not_ready_after_its_driver_has_stopped(driver: Driver) -> None:
    driver.say(DesiredState(scope=SOURCE, phase="stopped"), row(upstream=9, phase="stopped"))
    driver.collector.reset()
    assert blocking(driver) == {"stopped": 1}


def test_page_of_a_replica_that_does_not_lead_has_no_readiness(driver: Driver) -> None:
    driver.is_acting = False
    assert "lockstep_switch_ready" not in driver.page()
    assert "lockstep_switch_blockers" not in driver.page()
