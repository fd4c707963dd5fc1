"""Metrics of lag and of the states of partitions and slots."""

import pytest

from lockstep_data_plane.driver.metrics_collector import CASES, SlotRun
from lockstep_state.rows.state_rows import DesiredState, MirroredTopic, Restarts, SlotStatus
from tests.support.metered_driver import PRODUCER, Driver, copying, row

TASK = {"connector": '"A->B.MirrorSourceConnector"', "task": "0"}


class TestLag:
    def test_metrics_lag_of_a_partition_not_begun_is_all_records(self) -> None:
        driver = Driver()
        driver.assign(("t", 0), ("t", 1))
        assert "lockstep_lag_records" not in driver.page(), "nobody knows yet"
        assert driver.value("lockstep_lag_unknown_partitions") == 2
        driver.observe({("t", 0): 120_000, ("t", 1): None})
        assert driver.value("lockstep_lag_records") == 120_000
        assert driver.value("lockstep_lag_unknown_partitions") == 1
        assert driver.value("lockstep_partition_states", state="not-begun") == 2

    def test_a_source_that_does_not_answer_leaves_it_unknown(self) -> None:
        driver = copying(upstream=9)
        driver.observe({("t", 0): 10, ("t", 1): 5})
        assert driver.value("lockstep_lag_records", partition="0") == 0
        driver.now += 20_000
        driver.collector.estimator.forget_check()
        assert "lockstep_lag_records" not in driver.page()
        assert "lockstep_lag_seconds" not in driver.page()
        assert "kafka_consumer_fetch_manager_records_lag" not in driver.page()
        assert driver.value("lockstep_lag_unknown_partitions") == 2

    def test_metrics_lag_covers_missing_partitions_and_failed_topics(self) -> None:
        driver = copying(upstream=9)
        driver.say(MirroredTopic(source_topic="t", target_topic="A.t", partitions=1, target_partitions=1, missing=1))
        driver.say(MirroredTopic(source_topic="u", target_topic="A.u", partitions=1, phase="failed"))
        driver.observe({("t", 0): 10, ("t", 1): 5, ("u", 0): 7})
        lags = {
            (labels["topic"], labels["partition"]): value for labels, value in driver.page()["lockstep_lag_records"]
        }
        assert lags == {("t", "0"): 0, ("t", "1"): 5, ("u", "0"): 7}

    def test_metrics_of_a_newly_silent_slot_need_frequent_end_offsets(self) -> None:
        driver = copying(upstream=9)
        assert driver.collector.has_silent_slot, "it has not spoken yet"
        driver.say(SlotStatus(slot=0, phase="started", run="r1"))
        assert not driver.collector.has_silent_slot
        assert driver.value("lockstep_partition_states", state="copying") == 1
        driver.now += 16_000
        assert driver.collector.has_silent_slot
        assert driver.value("lockstep_partition_states", state="silent") == 1
        driver.now += 60_000
        assert not driver.collector.has_silent_slot, "what is away for long is not asked about all the time"

    @pytest.mark.parametrize("shown", ["halted", "stuck", "paused"])
    def test_metrics_lag_of_a_partition_that_does_not_move_goes_up_to_the_source_end(self, shown: str) -> None:
        driver = copying(phase=shown.replace("stuck", "copying"), case="refused" * (shown == "halted"), upstream=9)
        resting, stuck = ([("t", 0)] if shown == which else [] for which in ("paused", "stuck"))
        driver.observe({("t", 0): 100}, stuck=stuck, resting=resting)
        assert driver.value("lockstep_lag_records") == 90
        assert driver.value("kafka_consumer_fetch_manager_records_lag", topic="t", partition="0") == 90
        for state in ("halted", "stuck", "paused"):
            assert driver.value(f"lockstep_partition_{state}") == (state == shown)

    def test_metrics_end_offsets_read_before_another_driver_led_are_dropped(self) -> None:
        driver = copying(upstream=9)
        driver.observe({("t", 0): 100})
        driver.collector.reset()
        driver.assign(("t", 0))
        driver.now += 11_000
        assert "lockstep_lag_records" not in driver.page()


class TestStates:
    def test_halted_partitions_are_counted_by_case(self) -> None:
        driver = Driver()
        driver.assign(("t", 0), ("t", 1))
        driver.say(row(0, phase="halted", case="source-truncated"), row(1))
        assert driver.value("lockstep_partition_halted", partition="0") == 1
        assert {labels["case"]: v for labels, v in driver.page()["lockstep_halted_partitions"]} == {
            **dict.fromkeys(CASES, 0),
            "source-truncated": 1,
        }

    def test_a_slot_runs_once_its_present_run_has_spoken(self) -> None:
        driver = copying()
        assert driver.value("kafka_connect_connector_status", **TASK, status="unassigned") == 1
        driver.say(SlotStatus(slot=0, phase="started", run="r1", held_bytes=300, held_records=4))
        assert driver.value("kafka_connect_connector_status", **TASK, status="running") == 1
        assert driver.value("lockstep_slots", state="running") == 1
        assert driver.value("kafka_connect_worker_task_count") == 1
        assert driver.value("kafka_producer_buffer_available_bytes", clientid=PRODUCER) == 700
        assert driver.value("kafka_connect_source_task_source_record_active_count", **TASK) == 4

    def test_a_slot_that_has_failed_is_failed_until_it_speaks_again(self) -> None:
        driver = copying()
        driver.say(SlotStatus(slot=0, phase="started", run="r1", held_bytes=300))
        driver.kept = {0: SlotRun("r2", restarts=1)}
        assert driver.value("kafka_connect_connector_status", **TASK, status="failed") == 1
        assert driver.value("kafka_connect_worker_connector_failed_task_count") == 1
        assert driver.value("lockstep_slots", state="assigned") == 1
        assert driver.value("lockstep_held_bytes") == 0
        driver.say(SlotStatus(slot=0, phase="started", run="r2"))
        assert driver.value("kafka_connect_worker_connector_failed_task_count") == 0

    def test_metrics_of_a_failed_slot_are_failed_under_the_next_driver_too(self) -> None:
        driver = copying()
        driver.kept = {}
        driver.say(Restarts(owner="data-plane", subject="slot:0", count=2, phase="failed", asked=("", "")))
        assert driver.value("kafka_connect_connector_status", **TASK, status="failed") == 1

    def test_a_slot_that_is_to_rest_has_connect_s_word_for_it(self) -> None:
        driver = copying()
        driver.say(SlotStatus(slot=0, phase="started", run="r1"), DesiredState(scope="slot:0", phase="paused"))
        assert driver.value("kafka_connect_connector_status", **TASK, status="paused") == 1
        assert driver.value("lockstep_slots", state="paused") == driver.value("kafka_connect_worker_task_count") == 1
        driver.say(DesiredState(scope="slot:0", phase="stopped"))
        driver.kept = {}
        assert driver.value("kafka_connect_connector_status", **TASK, status="stopped") == 1
