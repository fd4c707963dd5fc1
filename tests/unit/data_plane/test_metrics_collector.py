"""What the driver's page shows of slots, from their rows alone: over restarts, moves and changes of leader."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from lockstep_data_plane.driver.lag_estimator import ObservedPartition
from lockstep_data_plane.driver.metrics import METRICS
from lockstep_data_plane.driver.metrics_collector import CASES, MetricsCollector, SlotRun
from lockstep_protocol.lag import LogRange
from lockstep_protocol.names import Flow
from lockstep_protocol.rows.state_rows import (
    Assignment,
    MirroredTopic,
    PartitionProgress,
    Restarts,
    Row,
    SlotStatus,
    Wanted,
)
from lockstep_runtime.flow import common_metrics
from lockstep_runtime.flow.context import Clock
from lockstep_runtime.kafka.topic_follower import Record
from lockstep_runtime.state.desired_state import DesiredState
from lockstep_runtime.state.state_log import StateLog
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.telemetry.metrics import Metrics

T = 1_700_000_000_000
FLOW = Flow("A", "B")
CONSUMER = '"A->B|A->B.MirrorSourceConnector-0|replication-consumer"'
PRODUCER = '"connector-producer-A->B.MirrorSourceConnector-0"'
TASK = {"connector": '"A->B.MirrorSourceConnector"', "task": "0"}


@dataclass
class Plane:
    max_in_flight_bytes: int = 1000
    by_key: bool = False


@dataclass
class Settings:
    data_plane: Plane = field(default_factory=Plane)


class Driver:
    """A flow's context as far as `MetricsCollector` asks, with a real fold of the rows."""

    def __init__(self) -> None:
        self.now = T
        self.flow, self.settings, self.metrics, self.acting = FLOW, Settings(), Metrics(), True
        self.clock = Clock(wall_ms=lambda: self.now, monotonic=lambda: self.now / 1000)
        self.state = StateLog(FlowLog("data-plane", FLOW), self.clock.wall_ms, lambda _: 0)
        self.kept: dict[int, SlotRun] = {0: SlotRun("r1")}
        self.collector = MetricsCollector(self, lambda: self.kept)  # type: ignore[arg-type]  # the attributes it reads
        self._offset = 0
        self.say(MirroredTopic(source_topic="t", target_topic="A.t", partitions=2, target_partitions=2))

    @property
    def wanted(self) -> DesiredState:
        return DesiredState(self.state.rows)

    def say(self, *rows: Row) -> None:
        for row in rows:
            key, value = replace(row, at_ms=row.at_ms or self.now).encode()
            self.state.receive([Record("state", 0, self._offset, key, value, self.now)])
            self._offset += 1

    def assign(self, *partitions: tuple[str, int], slot: int = 0) -> None:
        self.collector.follow(partitions)
        self.say(Assignment(slot=slot, partitions=partitions))

    def look(self, ends: dict[tuple[str, int], int | None], *, stuck: Any = (), resting: Any = ()) -> None:
        """The driver looks at the clusters: the source's logs end there (None: not answered), the target has all."""
        rows = {tp: self.state.get(PartitionProgress, tp[0], str(tp[1])) for tp in ends}
        seen = {tp: ObservedPartition(rows[tp], None if end is None else LogRange(0, end)) for tp, end in ends.items()}
        self.collector.on_observed(stuck, seen, resting)

    def page(self) -> dict[str, list[tuple[dict[str, str], float]]]:
        found: dict[str, list[tuple[dict[str, str], float]]] = {}
        for family in text_string_to_metric_families(self.metrics.exposition().decode()):
            for sample in family.samples:
                found.setdefault(sample.name, []).append((sample.labels, sample.value))
        return found

    def value(self, name: str, **labels: str) -> float:
        """The only sample with these labels."""
        (value,) = [v for found, v in self.page().get(name, []) if labels.items() <= found.items()]
        return value


def row(number: int = 0, **more: Any) -> PartitionProgress:
    return PartitionProgress(
        **{
            "topic": "t",
            "partition": number,
            "producer_id": 1,
            "slot": 0,
            "source_end": more.get("upstream", -1) + 1,
            **more,
        }
    )


def copying(**more: Any) -> Driver:
    driver = Driver()
    driver.assign(("t", 0))
    driver.say(row(**more))
    return driver


class TestCounts:
    def test_metrics_counters_continue_when_a_slot_restarts(self) -> None:
        driver = Driver()
        driver.assign(("t", 0))
        for since, records, size in ((1, 100, 9_000), (1, 120, 12_000), (2, 10, 500), (2, 300, 15_000)):
            driver.say(row(records=records, bytes=size, read_bytes=2 * size, counts_since=since))
        assert driver.value("lockstep_records_total", topic="t", partition="0") == 120 + 300
        assert driver.value("lockstep_bytes_total") == 12_000 + 15_000
        assert driver.value("kafka_connect_mirror_mirrorsourceconnector_record_count") == 420
        assert driver.value("kafka_consumer_incoming_byte_total", clientid=CONSUMER) == 2 * 27_000
        assert driver.value("kafka_producer_outgoing_byte_total", clientid=PRODUCER) == 27_000

    def test_a_run_that_is_larger_at_once_is_a_new_one_all_the_same(self) -> None:
        driver = copying(records=100, counts_since=1)
        driver.say(row(records=400, counts_since=2))
        assert driver.value("lockstep_records_total") == 500

    def test_rows_of_two_slots_in_turns_count_once(self) -> None:
        driver = Driver()
        driver.assign(("t", 0))
        for since, records in ((1, 10), (2, 5), (1, 12), (2, 9), (1, 12)):
            driver.say(row(records=records, counts_since=since))
        assert driver.value("lockstep_records_total") == 12 + 9

    def test_partitions_count_apart(self) -> None:
        driver = Driver()
        driver.assign(("t", 0), ("t", 1))
        driver.say(row(0, records=3, counts_since=1), row(1, records=5, counts_since=1))
        assert driver.value("lockstep_records_total", partition="0") == 3
        assert driver.value("lockstep_records_total", partition="1") == 5

    def test_metrics_counters_exclude_those_of_a_former_driver(self) -> None:
        driver = Driver()
        driver.say(row(records=1000, bytes=1000, counts_since=1, gaps=(("in-doubt", 3),)))
        driver.assign(("t", 0))
        assert driver.value("lockstep_records_total") == 0
        driver.say(row(records=1010, bytes=1010, counts_since=1, gaps=(("in-doubt", 4),)))
        driver.say(row(records=5, bytes=5, counts_since=2, gaps=(("in-doubt", 4),)))
        assert driver.value("lockstep_records_total") == 15
        assert driver.value("lockstep_gaps_total", case="in-doubt") == 1

    def test_metrics_counters_continue_after_another_driver_led(self) -> None:
        driver = copying(records=100, counts_since=1)
        driver.collector.reset()
        driver.say(row(records=700, counts_since=2))
        driver.assign(("t", 0))
        assert driver.value("lockstep_records_total") == 100
        driver.say(row(records=705, counts_since=2))
        assert driver.value("lockstep_records_total") == 105

    def test_rows_of_an_older_release_count_as_of_one_beginning(self) -> None:
        driver = copying(records=5)
        driver.say(row(records=8))
        assert driver.value("lockstep_records_total") == 8

    def test_rates_are_per_second_over_the_window(self) -> None:
        driver = copying(records=600, bytes=6000, counts_since=1)
        assert driver.value("kafka_connect_mirror_mirrorsourceconnector_record_rate") == 20
        assert driver.value("kafka_connect_mirror_mirrorsourceconnector_byte_rate") == 200
        driver.now += 60_000
        assert driver.value("kafka_connect_mirror_mirrorsourceconnector_record_rate") == 0

    def test_gaps_of_the_flow_add_up_by_case(self) -> None:
        driver = Driver()
        driver.assign(("t", 0), ("t", 1))
        driver.say(row(0, gaps=(("records-gone", 1),), given_up=7, target_lost=5), row(1, gaps=(("records-gone", 2),)))
        assert driver.value("lockstep_gaps_total", case="records-gone") == 3
        assert driver.value("lockstep_given_up_offsets_total", partition="0") == 7
        assert driver.value("lockstep_target_lost_offsets_total", partition="0") == 5
        driver.assign(("t", 1))
        assert driver.value("lockstep_gaps_total", case="records-gone") == 3

    def test_offset_syncs_of_all_runs_of_a_slot_add_up(self) -> None:
        driver = copying()
        driver.say(SlotStatus(slot=0, phase="started", run="r1", syncs=10))
        driver.say(SlotStatus(slot=0, phase="started", run="r0", syncs=90))  # one that is over
        driver.kept = {0: SlotRun("r2", restarts=1)}
        driver.say(SlotStatus(slot=0, phase="started", run="r2", syncs=12))
        assert driver.value("lockstep_offset_syncs_total", slot="0") == 22


class TestSeries:
    def test_metrics_of_a_partition_that_leaves_the_flow_are_removed(self) -> None:
        driver = Driver()
        driver.assign(("t", 0), ("t", 1))
        driver.say(row(0), row(1))
        assert len(driver.page()["lockstep_lag_records"]) == 2
        driver.say(MirroredTopic(source_topic="t", target_topic="A.t", partitions=2, phase="excluded"))
        driver.say(MirroredTopic(source_topic="u", target_topic="A.u", partitions=2, target_partitions=2))
        driver.assign(("u", 1))
        driver.say(replace(row(1), topic="u"))
        left = [s for samples in driver.page().values() for s in samples if s[0].get("topic") in ("t", "A.t")]
        assert left == []
        assert driver.value("lockstep_partitions") == 1

    def test_a_replica_that_does_not_lead_shows_none(self) -> None:
        driver = copying()
        driver.acting = False
        assert driver.page() == {}

    def test_metrics_counters_continue_when_another_slot_has_the_partition(self) -> None:
        driver = copying(read_bytes=10, counts_since=1)
        driver.say(Assignment(slot=0))
        driver.assign(("t", 0), slot=1)
        driver.say(row(slot=1, read_bytes=7, counts_since=2))
        incoming = driver.page()["kafka_consumer_incoming_byte_total"]
        assert sorted(value for _, value in incoming) == [7, 10]
        assert driver.value("kafka_consumer_fetch_manager_records_lag", clientid=CONSUMER.replace("r-0", "r-1")) == 0

    def test_each_declared_metric_is_shown(self) -> None:
        driver = copying()
        shown = set(driver.page())
        assert {metric.shown_as for metric in METRICS} - shown == {"lockstep_slot_restarts_total"}  # the driver's own
        assert shown <= {metric.shown_as for metric in (*METRICS, *common_metrics.METRICS)}


class TestLag:
    def test_metrics_lag_seconds_grows_while_a_slot_is_silent(self) -> None:
        driver = copying(upstream=9, source_end=13, lag_records=3, lag_ms=1500)
        driver.look({("t", 0): 13})
        driver.now += 10_000
        assert driver.value("lockstep_lag_seconds", partition="0") == 11.5
        driver.say(row(upstream=12, source_end=13))
        driver.now += 10_000
        assert driver.value("lockstep_lag_seconds", partition="0") == 0

    def test_metrics_lag_of_a_partition_not_begun_is_all_records(self) -> None:
        driver = Driver()
        driver.assign(("t", 0), ("t", 1))
        assert "lockstep_lag_records" not in driver.page(), "nobody knows yet"
        assert driver.value("lockstep_lag_unknown_partitions") == 2
        driver.look({("t", 0): 120_000, ("t", 1): None})
        assert driver.value("lockstep_lag_records") == 120_000
        assert driver.value("lockstep_lag_unknown_partitions") == 1
        assert driver.value("lockstep_partition_states", state="not-begun") == 2

    def test_a_source_that_does_not_answer_leaves_it_unknown(self) -> None:
        driver = copying(upstream=9)
        driver.look({("t", 0): 10, ("t", 1): 5})
        assert driver.value("lockstep_lag_records", partition="0") == 0
        driver.now += 20_000
        driver.collector.estimator.lost()
        assert "lockstep_lag_records" not in driver.page()
        assert "lockstep_lag_seconds" not in driver.page()
        assert "kafka_consumer_fetch_manager_records_lag" not in driver.page()
        assert driver.value("lockstep_lag_unknown_partitions") == 2

    def test_metrics_lag_covers_missing_partitions_and_failed_topics(self) -> None:
        driver = copying(upstream=9)
        driver.say(MirroredTopic(source_topic="t", target_topic="A.t", partitions=2, target_partitions=1, missing=1))
        driver.say(MirroredTopic(source_topic="u", target_topic="A.u", partitions=1, phase="failed"))
        driver.look({("t", 0): 10, ("t", 1): 5, ("u", 0): 7})
        lags = {(at["topic"], at["partition"]): value for at, value in driver.page()["lockstep_lag_records"]}
        assert lags == {("t", "0"): 0, ("t", "1"): 5, ("u", "0"): 7}

    def test_metrics_of_a_newly_silent_slot_need_frequent_end_offsets(self) -> None:
        driver = copying(upstream=9)
        assert driver.collector.unheard, "it has not spoken yet"
        driver.say(SlotStatus(slot=0, phase="started", run="r1"))
        assert not driver.collector.unheard
        assert driver.value("lockstep_partition_states", state="copying") == 1
        driver.now += 16_000
        assert driver.collector.unheard
        assert driver.value("lockstep_partition_states", state="silent") == 1
        driver.now += 60_000
        assert not driver.collector.unheard, "what is away for long is not asked about all the time"

    def test_metrics_lag_of_a_halted_partition_goes_up_to_the_source_end(self) -> None:
        driver = copying(phase="halted", case="refused", upstream=9, lag_records=1)
        driver.look({("t", 0): 100})
        assert driver.value("lockstep_lag_records") == 90
        assert driver.value("kafka_consumer_fetch_manager_records_lag", topic="t", partition="0") == 90

    def test_metrics_lag_of_a_stuck_partition_goes_up_to_the_source_end(self) -> None:
        driver = copying(upstream=9, lag_records=0)
        driver.look({("t", 0): 100}, stuck=[("t", 0)])
        assert driver.value("lockstep_lag_records") == 90
        assert driver.value("lockstep_partition_stuck") == 1

    def test_metrics_lag_of_a_dead_slot_counts_from_the_first_growth(self) -> None:
        driver = copying(upstream=9, lag_records=0)
        driver.now += 3_600_000
        driver.look({("t", 0): 100})
        driver.now += 10_000
        assert driver.value("lockstep_lag_records") == 90
        assert driver.value("kafka_consumer_fetch_manager_records_lag", topic="t", partition="0") == 90
        assert driver.value("lockstep_lag_seconds") == 10
        driver.say(row(upstream=99, source_end=100))
        assert driver.value("lockstep_lag_records") == driver.value("lockstep_lag_seconds") == 0

    def test_metrics_end_offsets_read_before_another_driver_led_are_dropped(self) -> None:
        driver = copying(upstream=9)
        driver.look({("t", 0): 100})
        driver.collector.reset()
        driver.assign(("t", 0))
        driver.now += 11_000
        assert "lockstep_lag_records" not in driver.page()

    def test_metrics_of_a_paused_partition_have_lag_and_are_not_stuck(self) -> None:
        driver = copying(phase="paused", upstream=9, lag_records=1)
        driver.look({("t", 0): 100}, resting={("t", 0)})
        assert driver.value("lockstep_lag_records") == 90
        assert driver.value("lockstep_partition_paused") == 1
        assert driver.value("lockstep_partition_stuck") == driver.value("lockstep_partition_halted") == 0


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
        driver.say(SlotStatus(slot=0, phase="started", run="r1"), Wanted(scope="slot:0", phase="paused"))
        assert driver.value("kafka_connect_connector_status", **TASK, status="paused") == 1
        assert driver.value("lockstep_slots", state="paused") == driver.value("kafka_connect_worker_task_count") == 1
        driver.say(Wanted(scope="slot:0", phase="stopped"))
        driver.kept = {}
        assert driver.value("kafka_connect_connector_status", **TASK, status="stopped") == 1


class TestWindows:
    def test_metrics_of_mm2_have_the_remote_topic_and_both_aliases(self) -> None:
        driver = copying(age_window=(T, 4, 1, 9, 5), latency_window=(T, 6, 2, 11, 7))
        theirs = {"source": "A", "target": "B", "topic": "A.t", "partition": "0"}
        prefix = "kafka_connect_mirror_mirrorsourceconnector"
        for suffix, age, latency in (("", 4, 6), ("_min", 1, 2), ("_max", 9, 11), ("_avg", 5, 7)):
            assert driver.value(f"{prefix}_record_age_ms{suffix}", **theirs) == age
            assert driver.value(f"{prefix}_replication_latency_ms{suffix}", **theirs) == latency

    def test_a_minute_later_they_are_empty_but_for_the_last(self) -> None:
        driver = copying(age_window=(T, 4, 1, 9, 5))
        driver.now += 60_000
        assert driver.value("kafka_connect_mirror_mirrorsourceconnector_record_age_ms") == 4
        assert math.isnan(driver.value("kafka_connect_mirror_mirrorsourceconnector_record_age_ms_avg"))
